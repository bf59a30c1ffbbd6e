internal import BLECore
internal import BLELinux

extension BLEError {
    /// A call to the kernel that involved no peer has failed.
    init(_ error: SystemCallError, subject: String?, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.meaning {
            case .noBluetooth:
                (
                    .unsupported, "this kernel has no Bluetooth",
                    "Load its module: `modprobe bluetooth`; in a container, use the host's network."
                )
            case .notPermitted(let capability):
                (
                    .notPermitted, "this process lacks \(capability.name)",
                    "Run as root, or give the program the capability: `setcap \(capability.name.lowercased())+ep PROGRAM`."
                )
            case .adapterGone:
                (.noAdapter, "the adapter is not there any more", "Plug it in again, or choose another one.")
            case .adapterDown:
                (
                    .adapterDown, "the adapter is switched off",
                    "Switch it on as root: `hciconfig \(subject ?? "hci0") up`."
                )
            case .blocked:
                (.blocked, "the adapter is blocked by rfkill", "Unblock it: `rfkill unblock bluetooth`.")
            case .inUse:
                (.busy, "another program has exclusive access to the adapter", "Stop that program first.")
            case .noAddress:
                (
                    .adapterDown, "the controller has no address of its own",
                    "Give it one as root: `btmgmt static-addr ADDRESS`, then switch it on."
                )
            case .unconfigured:
                (
                    .adapterDown, "the controller is not configured, mostly because it has no address of its own",
                    "Give it one as root: `btmgmt -i \(subject ?? "hci0") public-addr ADDRESS`; on a Raspberry Pi the package "
                        + "pi-bluetooth does that."
                )
            case .noResponse:
                (.timedOut, "the controller does not respond", "Unplug it and plug it in again.")
            case .outOfResources:
                (.system, "the process or the machine has run out of descriptors or memory", error.adapterRemedy)
            case .other:
                (.system, "\(error.call) failed", error.adapterRemedy)
            }
        self.init(code, subject: subject, during: operation, because: reason, hint: hint, errorNumber: error.errno)
    }

    /// A command to the controller has failed.
    init(_ failure: HCICommandFailure, subject: String, during operation: String) {
        let command = failure.opcode.description
        switch failure.reason {
        case .status(let status):
            let isBusy = status == .commandDisallowed || status == .controllerBusy
            self.init(
                isBusy ? .busy : .system, subject: subject, during: operation,
                because: "the controller refused \(command): \(status.name.lowercased())", hint: status.sentence,
                hciStatus: status)
        case .timeout:
            self.init(
                .timedOut, subject: subject, during: operation, because: "the controller did not respond to \(command)",
                hint: "If this recurs, switch the adapter off and on, or unplug it.", origin: .adapter)
        case .malformed, .noResponse:
            self.init(
                .malformedReply, subject: subject, during: operation, because: "\(failure)",
                hint: "The controller's firmware is at fault.")
        case .queueFull:
            self.init(
                .queueFull, subject: subject, during: operation,
                because: "\(HCICommandQueue.capacity) commands wait for the controller already")
        case .cancelled:
            self.init(.cancelled, subject: subject, during: operation, because: "the task was cancelled")
        case .adapterLost:
            self.init(
                .adapterDown, subject: subject, during: operation, because: "the adapter went down, away or was reset",
                hint: "Check that it is plugged in, powered and not blocked (`rfkill list`).")
        case .notSent(let errno):
            self.init(SystemCallError(call: "send", errno: errno), subject: subject, during: operation)
        }
    }

    /// The controller could not make a link.
    ///
    /// - Parameters:
    ///   - links: The number of links that are up on the adapter, where it has reported, or may have failed to report,
    ///     that it cannot have more.
    ///   - isOtherInitiating: Whether another program's connection attempt was seen beside this one.
    init(_ failure: Initiator.Failure, peer: PeerID, adapter: String, links: Int, isOtherInitiating: Bool) {
        if let status = failure.status, status.reportsTooManyLinks {
            self.init(
                .busy, subject: "\(peer)", during: "connect",
                because: "\(status.name.lowercased()), with \(links) \(links == 1 ? "link" : "links") up",
                hint: "Disconnect a device first; many controllers hold few links.", hciStatus: status)
            return
        }
        switch failure {
        case .timedOut:
            self = .notHeard(peer, links: links)
        case .cancelled:
            self.init(.cancelled, subject: "\(peer)", during: "connect", because: "the task was cancelled")
        case .busy:
            let reason =
                isOtherInitiating
                ? "another program kept the controller initiating another connection"
                : "the controller refused to initiate, as beside a scan or a connect of another program"
            self.init(
                .busy, subject: "\(peer)", during: "connect", because: reason,
                hint: "Stop that program's \(isOtherInitiating ? "connect" : "scan or connect"), or allow more time; "
                    + "if it was killed, switch the adapter off and on as root: "
                    + "`hciconfig \(adapter) down && hciconfig \(adapter) up`.")
        case .adapterLost:
            self.init(
                HCICommandFailure(opcode: .leCreateConnection, reason: .adapterLost), subject: adapter,
                during: "connect")
        case .cancelUnconfirmed(.timedOut), .cancelUnconfirmed(.cancelUnconfirmed):
            self.init(cancelUnconfirmedBy: adapter)
        case .endUnreported(.timedOut):
            self.init(
                .timedOut, subject: "\(peer)", during: "connect",
                because: "the controller has not reported how the connection attempt ended",
                hint:
                    "A link may be up that nobody holds. If the peer stays silent, switch the adapter off and on as root: "
                    + "`hciconfig \(adapter) down && hciconfig \(adapter) up`.", origin: .adapter)
        case .cancelUnconfirmed(let reason), .endUnreported(let reason):
            self.init(reason, peer: peer, adapter: adapter, links: links, isOtherInitiating: isOtherInitiating)
        case .refused(let failure):
            self.init(failure, subject: adapter, during: "connect")
        case .failed(let status):
            self.init(
                .connectFailed, subject: "\(peer)", during: "connect", because: status.name.lowercased(),
                hint: status.sentence, hciStatus: status)
        }
    }

    /// The kernel could not make a link, or not attach to one.
    init(_ failure: ConnectFailure, status: HCIStatus?, errno: Int32, peer: PeerID, adapter: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch failure {
            case .timedOut:
                (
                    .timedOut, "the peer was not heard in time",
                    "Check that it advertises, is near, and is not connected."
                )
            case .lowEnergyOff:
                (
                    .lowEnergyOff, "Low Energy is switched off on \(adapter)",
                    "Switch it on as root: `btmgmt le on`."
                )
            case .adapterUnavailable:
                (.adapterDown, "\(adapter) is switched off or gone", "Switch it on as root: `hciconfig \(adapter) up`.")
            case .aborted:
                (.adapterDown, "\(adapter) was switched off, reset or unplugged meanwhile", "Connect again.")
            case .busy, .alreadyConnected:
                (
                    .busy, "another socket, of this or another program, is connected or connecting to the peer",
                    "Close that link first; bluetoothd holds links too."
                )
            case .notLowEnergy:
                (.notSupported, "\(adapter) cannot do Low Energy", "Choose another adapter.")
            case .noBluetooth:
                (.unsupported, "this kernel has no Bluetooth", "In a container, use the host's network.")
            case .invalid:
                (.invalidArgument, "the kernel did not accept the addresses", "Check the peer's address type.")
            case .tooManyLinks:
                (.busy, "\(adapter) cannot hold any more links", "Close another link first.")
            case .notEstablished:
                (
                    .connectFailed, "the link came up and broke down at once",
                    "The peer is likely far away or disturbed; try again nearer to it."
                )
            case .outOfResources:
                (
                    .system, "the process or the machine has run out of descriptors or memory",
                    SystemCallError(call: "connect", errno: errno).adapterRemedy
                )
            case .other:
                (
                    .connectFailed, "the kernel could not connect",
                    SystemCallError(call: "connect", errno: errno).adapterRemedy
                )
            }
        self.init(
            code, subject: "\(peer)", during: "connect", because: status?.name.lowercased() ?? reason, hint: hint,
            hciStatus: status, errorNumber: errno == 0 ? nil : errno, origin: code == .timedOut ? .peer : nil)
    }

    /// As many links are up as this program may use.
    init(fullOf links: Int, limit: Int, peer: PeerID) {
        self.init(
            .busy, subject: "\(peer)", during: "connect",
            because: "\(links) \(links == 1 ? "link" : "links") up, and \(limit) may be",
            hint: "Disconnect a device first, or raise `Configuration.maximumLinks`.")
    }

    /// Each link that came up was handed to another program's socket.
    init(channelTakenOf peer: PeerID, adapter: String) {
        self.init(
            .busy, subject: "\(peer)", during: "connect",
            because: "another program took the link's channel before it could be used",
            hint:
                "bluetoothd does so where it serves the adapter: stop it, or give it another adapter than \(adapter).",
            errorNumber: SystemCallError.busy)
    }

    /// The controller did not confirm the cancel of a connection attempt.
    init(cancelUnconfirmedBy adapter: String) {
        self.init(
            .timedOut, subject: adapter, during: "connect",
            because: "the controller did not confirm the cancel of a connection attempt, which may still be pending",
            hint: "Connects resume by themselves when it responds again; else switch it off and on as root "
                + "(`hciconfig \(adapter) down && hciconfig \(adapter) up`), or unplug it.", origin: .adapter)
    }

    /// Returns the error of a connect whose peer was not heard in time.
    ///
    /// - Parameter links: How many links are up on the adapter: some controllers wait in silence at their limit.
    static func notHeard(_ peer: PeerID, links: Int = 0) -> BLEError {
        let limit =
            links == 0 ? "" : " \(links) \(links == 1 ? "link is" : "links are") up; some controllers hold few."
        return BLEError(
            .timedOut, subject: "\(peer)", during: "connect", because: "the peer was not heard in time",
            hint: "Check that it advertises, is near, is not connected to another host, and that "
                + "\(peer.type == .public ? "`public`" : "`random`") is its address type.\(limit)", origin: .peer)
    }
}

extension Adapter {
    func downError(during operation: String) -> BLEError {
        if presence == .gone {
            return BLEError(
                .noAdapter, subject: name, during: operation, because: "the adapter is not there any more",
                hint: "Plug it in again, or choose another one.")
        }
        return BLEError(
            SystemCallError(
                call: "use", errno: system.isBlocked(name) ? SystemCallError.blocked : SystemCallError.down),
            subject: subject, during: operation)
    }

    /// The error for a failed command: where the adapter is off by now, that, and why.
    func error(_ failure: HCICommandFailure, during operation: String) -> BLEError {
        if failure.reason == .adapterLost, presence == .down { return downError(during: operation) }
        return BLEError(failure, subject: name, during: operation)
    }

    /// The error for a connection attempt that the controller could not make.
    func error(_ failure: Initiator.Failure, _ peer: PeerID) -> BLEError {
        if failure == .adapterLost, presence == .down { return downError(during: "connect") }
        let mayBeFull = failure == .timedOut || failure.status?.reportsTooManyLinks ?? false
        let error = BLEError(
            failure, peer: peer, adapter: name, links: mayBeFull ? linksUp.count : 0,
            isOtherInitiating: initiator.hasSeenForeignAttempt)
        return failure.status?.isOfDisturbedLink ?? false ? namingWiFi(error) : error
    }

    /// The error for a socket that could not be attached to a link.
    ///
    /// - Parameter wasUp: Whether the controller has reported the link, or the kernel lists it.
    func error(_ failure: AttachError, status: HCIStatus?, _ peer: PeerID, wasUp: Bool) -> BLEError {
        switch failure {
        case .timedOut where wasUp, .connect(.timedOut, _) where wasUp:
            BLEError(
                .timedOut, subject: "\(peer)", during: "connect",
                because: "the link was up, and the kernel did not let this program use it in time",
                hint: "Allow more time: some controllers take long to report the features of a peer, "
                    + "which the kernel waits for.", origin: .adapter)
        case .timedOut, .connect(.timedOut, _): timedOutError(peer, isWaiting: false)
        case .cancelled: cancelledError(during: "connect")
        case .encryption(let failure): error(failure, peer)
        case .connect(let failure, let errno):
            failure == .notEstablished || status?.isOfDisturbedLink ?? false
                ? namingWiFi(BLEError(failure, status: status, errno: errno, peer: peer, adapter: name))
                : BLEError(failure, status: status, errno: errno, peer: peer, adapter: name)
        }
    }

    /// Returns an error whose hint names Wi-Fi too, where that likely has the same antenna.
    private func namingWiFi(_ error: BLEError) -> BLEError {
        guard system.sharesAntenna(name) else { return error }
        let hint = "Wi-Fi shares the adapter's antenna: let it use 5 GHz, or use another adapter."
        return error.hinting(error.hint.map { "\($0) \(hint)" } ?? hint)
    }

    /// What may keep the adapter from passing any data of links on, as a hint.
    var silenceHint: String {
        guard monitor.wasReset else {
            return
                "If nothing comes from any device, the adapter passes no data on: `blescan doctor` names such adapters."
        }
        // Row W72: after HCIDEVRESET the kernel sends no LE data.
        return
            "Another program has reset the controller, after which the kernel may send no data until it was switched "
            + "off and on as root: `hciconfig \(name) down && hciconfig \(name) up`."
    }

    /// The error for a scan that could not begin.
    func error(_ failure: ScanCoordinator.StartFailure) -> BLEError {
        switch failure {
        case .refused(let failure): BLEError(failure, subject: name, during: "scan")
        // Row W66.
        case .busy where scan.isHinderedByAdvertising:
            BLEError(
                .busy, subject: name, during: "scan",
                because: "the controller does not begin a scan, perhaps because it advertises",
                hint:
                    "Some controllers cannot do both: stop advertising, begin the scan first, or use another adapter.",
                hciStatus: .commandDisallowed)
        case .busy:
            BLEError(
                .busy, subject: name, during: "scan", because: "another program, or the kernel, holds the scanner",
                hint: "Stop the other scan (bluetoothd, hcitool, btmgmt), or switch the adapter off and on.",
                hciStatus: .commandDisallowed)
        }
    }

    func noAdapterError(_ all: [ControllerInfo], during operation: String) -> BLEError {
        let others = all.map { "\($0.name) (\($0.address))" }.joined(separator: ", ")
        return BLEError(
            .noAdapter, subject: nil, during: operation,
            because: all.isEmpty ? "this machine has no Bluetooth adapter" : "\(monitor.selector) is not there",
            hint: all.isEmpty
                ? "Plug one in, and check `dmesg` for its firmware." : "There are: \(others). Choose one of them.")
    }

    func notPermittedError(during operation: String) -> BLEError {
        BLEError(
            SystemCallError(call: "send", errno: SystemCallError.notPermitted), subject: subject, during: operation)
    }

    func cancelledError(during operation: String) -> BLEError {
        BLEError(.cancelled, subject: subject, during: operation, because: "the task was cancelled")
    }

    func timedOutError(_ peer: PeerID, isWaiting: Bool) -> BLEError {
        if isWaiting {
            return BLEError(
                .timedOut, subject: "\(peer)", during: "connect",
                because: "earlier connects of this program took all the time", hint: "Allow more time.")
        }
        guard !mayCommand else { return .notHeard(peer) }
        // Without capabilities nothing helps against a kernel that does not look for the peer: report that.
        if bonds.record(of: identity(of: peer) ?? peer)?.resolvingKey != nil {
            return BLEError(
                .timedOut, subject: "\(peer)", during: "connect", because: "the peer was not heard in time",
                hint:
                    "Check that it advertises and is near. It may use private addresses, and kernels from 6.19 on look for "
                    + "its identity address alone, unless the controller resolves them: give this program cap_net_raw. "
                    + "It also helps where another program has scanned, after which kernels from 6.10 on may not look "
                    + "for it.", origin: .peer)
        }
        return BLEError(
            .timedOut, subject: "\(peer)", during: "connect", because: "the peer was not heard in time",
            hint:
                "Check that it advertises and is near. If another program has scanned, kernels from 6.10 on may not look "
                + "for it: give this program cap_net_raw, or switch the adapter off and on as root: "
                + "`hciconfig \(name) down && hciconfig \(name) up`.", origin: .peer)
    }
}

extension HCIStatus {
    /// A Boolean value that indicates whether it ends a link on which the peer is no longer heard, or was never heard.
    fileprivate var isOfDisturbedLink: Bool { self == .connectionFailedToBeEstablished || self == .connectionTimeout }
}
