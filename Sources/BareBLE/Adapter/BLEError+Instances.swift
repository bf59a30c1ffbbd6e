internal import BLECore

extension BLEError {
    /// The controller has one advertiser, and the other back end uses it.
    init(oneAdvertiserOf adapter: String, during operation: String) {
        self.init(
            .busy, subject: adapter, during: operation,
            because: "the controller has one advertiser, which an advertisement with another back end uses",
            hint: "Give all advertisements the same `Advertisement.backEnd`.")
    }

    /// - Parameter links: The number of links that are up on the adapter.
    init(_ failure: InstanceSession.StartFailure, adapter: String, links: Int, during operation: String) {
        switch failure {
        case .notSupported:
            self.init(
                .notSupported, subject: adapter, during: operation,
                because: "the kernel cannot advertise so with this controller",
                hint:
                    "The kernel may be too old, or the controller lacks extended PDUs or the PHY. Where one PHY is LE "
                    + "Coded, both must be.")
        case .noFreeInstance(let limit):
            self.init(
                .busy, subject: adapter, during: operation,
                because: "the kernel can have \(limit) advertising instances, and all are in use",
                hint: "Stop one first. `btmgmt clr-adv` removes those of all programs.")
        case .adapterDown:
            self.init(
                .adapterDown, subject: adapter, during: operation, because: "the adapter was switched off or reset",
                hint: "Try again when it is on.")
        case .command(let failure) where links > 0 && failure.mayBeDueToLinks:
            self.init(
                .busy, subject: adapter, during: operation,
                because: "the kernel does not begin to advertise with \(links) \(links == 1 ? "link" : "links") up: "
                    + "\(failure)",
                hint: "Disconnect a device first. An advertisement that began earlier waits for that by itself.",
                origin: .adapter)
        case .command(let failure): self.init(failure, advertisingOn: adapter, during: operation)
        case .stopped:
            self.init(.cancelled, subject: adapter, during: operation, because: "it was stopped")
        }
    }

    /// A command about advertising instances has failed.
    init(_ failure: ManagementCommandFailure, advertisingOn adapter: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch failure.status {
            case .permissionDenied:
                (
                    .notPermitted,
                    "this process lacks CAP_NET_ADMIN, which the kernel demands for its advertising instances",
                    Self.managementCapability
                )
            case .unknownCommand, .notSupported:
                (
                    .notSupported, "the kernel does not advertise with this adapter: \(failure)",
                    "Use `Advertisement.BackEnd.controller`."
                )
            case .noResources:
                (
                    .busy, "there is no room for another advertising instance: \(failure)",
                    "Stop an advertisement first, of this or of another program."
                )
            case .notPowered, .rejected:
                (.adapterDown, "the adapter or its Low Energy is switched off: \(failure)", "Try again when it is on.")
            case .blocked:
                (.blocked, "the adapter is blocked by rfkill", "Unblock it: `rfkill unblock bluetooth`.")
            case .invalidIndex:
                (.noAdapter, "the adapter is not there any more", "Plug it in again, or choose another one.")
            default:
                switch failure.reason {
                case .timeout:
                    (.timedOut, "the kernel did not respond in time", "Unplug the adapter and plug it in again.")
                case .adapterLost:
                    (.noAdapter, "the adapter is not there any more", "Plug it in again, or choose another one.")
                default:
                    (
                        .system, "the kernel refused to advertise: \(failure)",
                        "`blescan doctor` examines the adapter; `dmesg` shows what the kernel reports."
                    )
                }
            }
        self.init(code, subject: adapter, during: operation, because: reason, hint: hint, origin: .adapter)
    }
}

extension ManagementCommandFailure {
    /// A Boolean value that indicates whether the kernel may accept the command when there are fewer links.
    ///
    /// What the kernel itself refuses beside links is Rejected with advertising sets, and otherwise Invalid Parameters.
    /// A controller refuses with Command Disallowed, which becomes Busy, or with a status for too many links.
    fileprivate var mayBeDueToLinks: Bool {
        guard let status else { return false }
        return status == .rejected || status == .invalidParameters || status == .busy || status == .noResources
    }
}
