extension ScanSession {
    /// Something that the owner of the session needs to know.
    package enum Event: Hashable, Sendable {
        /// The scan runs, for the first time or again.
        case started
        /// Somebody else changed the scan; it is set up again in a moment.
        case disturbed(by: HCIOpcode)
        /// No report with data came for 90 s, so many times in a row; the scan is set up again.
        case stalled(count: Int)
        /// A step failed; the next attempt follows in `retry`.
        case unable(HCICommandFailure, retry: Duration)
        /// Another program or the kernel holds the scanner; the next attempt follows in `retry`.
        case scanBusy(retry: Duration)
        /// As asked for, the radio no longer scans for us, for now.
        case paused
        /// As asked for, the radio no longer scans for us.
        case ended
    }

    /// What to do now.
    package enum Action: Hashable, Sendable {
        /// Put this command into the adapter's queue, and call `commandFinished` with what comes of it.
        case send(HCICommandPacket)
        /// Tell the owner.
        case tell(Event)
    }

    /// What the session has to know about the controller.
    package struct Controller: Hashable, Sendable {
        package var hasExtendedScan: Bool
        package var hasCodedPHY: Bool
        package var ownAddressType: AddressType

        /// Extended scanning needs the feature, and the commands where the controller lists them.
        package init(
            features: LEFeatures, commands: HCISupportedCommands? = nil, ownAddressType: AddressType = .public
        ) {
            hasExtendedScan = features.contains(.extendedAdvertising) && commands?.hasExtendedScan ?? true
            hasCodedPHY = hasExtendedScan && features.contains(.coded)
            self.ownAddressType = ownAddressType
        }
    }
}

// The two sets of commands; a controller that has been told one refuses the other until it is reset.
extension ScanSession.Controller {
    /// Ends a scan.
    package var scanOff: HCICommandPacket {
        hasExtendedScan
            ? HCICommandPacket(LESetExtendedScanEnable(isEnabled: false))
            : HCICommandPacket(LESetScanEnable(isEnabled: false))
    }

    /// Sets how a scan listens.
    package func parameters(for plan: ScanPlan) -> HCICommandPacket {
        hasExtendedScan
            ? HCICommandPacket(
                LESetExtendedScanParameters(
                    isActive: plan.isActive, interval: plan.interval, window: plan.window, phys: plan.phys,
                    ownAddressType: ownAddressType))
            : HCICommandPacket(
                LESetScanParameters(
                    isActive: plan.isActive, interval: plan.interval, window: plan.window,
                    ownAddressType: ownAddressType))
    }

    /// Starts a scan.
    package func scanOn(for plan: ScanPlan) -> HCICommandPacket {
        hasExtendedScan
            ? HCICommandPacket(
                LESetExtendedScanEnable(isEnabled: true, filtersDuplicates: plan.filtersDuplicates))
            : HCICommandPacket(LESetScanEnable(isEnabled: true, filtersDuplicates: plan.filtersDuplicates))
    }
}
