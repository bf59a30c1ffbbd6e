// The event masks of one controller, which all programs share: a mask that one sets applies to all.
//
// Duties: have the controller send the LE events that the kernel and this program need, after each time at which that
// may have changed: when this program begins to use the adapter, after a power-up, after a reset that the kernel did
// not make, and after another program's command. The kernel leaves Extended Advertising Report out where it does not
// scan with the extended commands itself; other stacks set the mask of Bluetooth 4.0.
//
// Invariants:
// - A mask can be set and not read. What another program sets is known from its command, which is seen before its
//   response.
// - A mask is only ever widened: what another program, or the kernel by the same rule, has switched on stays on. So two
//   programs that keep masks do not undo each other's work.
// - All the same, other programs' commands are followed by four commands a minute at most.
// - Set Event Mask is sent in three cases: after a reset past the kernel that no Set Event Mask has followed, where the
//   controller is silent, because such a reset may have come before this program began, and where another program's
//   mask has no LE events. The kernel masks the ends of links on purpose while the machine sleeps.
// - A refusal changes nothing: the controller then sends what it sends. A command without a response is sent again
//   once, as soon as the controller has responded to another one.

/// Keeps the events that are needed switched on.
package struct EventMasks: ~Copyable {
    /// `nil` before the controller was asked what it can do.
    private var needed: LEEventMask?
    /// Whether the controller was reset, and its event mask was not set since.
    private var wasReset = false
    /// What other programs have switched on, as far as that was seen since the last reset.
    private var others: LEEventMask = []
    /// The masks in other programs' commands that have no response yet.
    private var announcedEvents: HCIEventMask?
    private var announcedLEEvents: LEEventMask?
    /// Commands without a response.
    private var unconfirmed: [HCICommandPacket] = []
    /// The commands that were sent again and have no response yet.
    private var repeated: Set<HCIOpcode> = []
    /// When other programs' commands were followed by one of these, in the last minute.
    private var repeats: [BootInstant] = []
    /// The number of commands of other programs that were followed by one of these.
    package private(set) var repeatCount = 0

    package init() {}

    /// This program knows the controller now.
    ///
    /// - Parameter commands: The commands that the controller lists; `nil` from one that lists none.
    package mutating func use(features: LEFeatures, commands: HCISupportedCommands?) {
        needed = LEEventMask(features: features, commands: commands)
    }

    /// The commands that switch the events on: when this program begins, after a power-up and after a reset, and where
    /// the controller is silent.
    package mutating func commands(isSilent: Bool = false) -> [HCICommandPacket] {
        guard let needed else { return [] }
        let mask = HCICommandPacket(LESetEventMask(needed.union(others)))
        guard wasReset || isSilent else { return [mask] }
        wasReset = false
        return [HCICommandPacket(HCISetEventMask(.kernel)), mask]
    }

    /// The controller was reset: by the kernel, which sets it up afterwards, or past it.
    package mutating func controllerReset() {
        others = []
        announcedEvents = nil
        announcedLEEvents = nil
        unconfirmed = []
        repeated = []
        wasReset = true
    }

    /// A command of this machine has its response, or failed for the reason given.
    package mutating func finished(_ command: HCICommandPacket, _ failure: HCICommandFailure?) {
        unconfirmed.removeAll { $0.opcode == command.opcode }
        let wasRepeated = repeated.remove(command.opcode) != nil
        switch failure?.reason {
        case .timeout, .queueFull, .cancelled, .notSent: if !wasRepeated { unconfirmed.append(command) }
        case nil, .status, .malformed, .noResponse, .adapterLost: break
        }
    }

    /// The controller has responded to a command, of any owner in this program.
    package mutating func controllerResponded() -> [HCICommandPacket] {
        defer { unconfirmed = [] }
        for command in unconfirmed { repeated.insert(command.opcode) }
        return unconfirmed
    }

    /// Another program, or the kernel, sends a command.
    package mutating func received(_ foreign: HCICommandPacket) {
        guard foreign.opcode == .setEventMask || foreign.opcode == .leSetEventMask else { return }
        var reader = ByteReader(foreign.parameters.span)
        guard let bits = reader.u64() else { return }
        if foreign.opcode == .setEventMask {
            announcedEvents = HCIEventMask(rawValue: bits)
        } else {
            announcedLEEvents = LEEventMask(rawValue: bits)
        }
    }

    /// Another program's command, or the kernel's, has its response.
    ///
    /// - Parameter isSetUp: Whether the adapter is on; before that the kernel sets the controller up.
    /// - Returns: The command that follows, where the mask lacks what is needed.
    package mutating func completed(
        _ foreign: HCIOpcode, _ status: HCIStatus?, isSetUp: Bool, at now: BootInstant
    ) -> HCICommandPacket? {
        switch foreign {
        case .setEventMask:
            let mask = announcedEvents
            announcedEvents = nil
            guard status == .success else { return nil }
            wasReset = false
            unconfirmed.removeAll { $0.opcode == foreign }
            guard needed != nil, isSetUp, let mask, !mask.contains(.leMeta), mayRepeat(at: now) else { return nil }
            return HCICommandPacket(HCISetEventMask(mask.union(.leMeta)))
        case .leSetEventMask:
            let mask = announcedLEEvents
            announcedLEEvents = nil
            guard status == .success else { return nil }
            if let mask { others = mask }
            guard let needed, isSetUp, mask.map({ !$0.isSuperset(of: needed) }) ?? true, mayRepeat(at: now) else {
                return nil
            }
            return HCICommandPacket(LESetEventMask(needed.union(others)))
        default: return nil
        }
    }

    private mutating func mayRepeat(at now: BootInstant) -> Bool {
        repeats.removeAll { now - $0 >= .seconds(60) }
        guard repeats.count < Self.repeatLimit else { return false }
        repeats.append(now)
        repeatCount += 1
        return true
    }

    /// The number of commands of other programs that are followed by one of these in a minute.
    package static let repeatLimit = 4
}

extension LEEventMask {
    /// Creates the mask that the kernel switches on, by the same rule (`hci_le_set_event_mask_sync`), and the reports
    /// of the scans and the completions of the connects that this program makes.
    package init(features: LEFeatures, commands: HCISupportedCommands?) {
        self = [.connectionComplete, .advertisingReport, .connectionUpdateComplete, .readRemoteFeaturesComplete]
        let byFeature: [(LEFeatures, LEEventMask)] = [
            (.encryption, .longTermKeyRequest),
            (.connectionParametersRequest, .remoteConnectionParameterRequest),
            (.dataLengthExtension, .dataLengthChange),
            (.le2M, .phyUpdateComplete),
            (.addressResolution, .enhancedConnectionComplete),
            (.extendedScannerFilterPolicies, .directedAdvertisingReport),
            (
                .extendedAdvertising,
                [.extendedAdvertisingReport, .enhancedConnectionComplete, .advertisingSetTerminated]
            ),
            (.channelSelectionAlgorithm2, .channelSelectionAlgorithm),
            (.periodicSyncTransferRecipient, .periodicSyncTransferReceived),
            (.connectedStreamCentral, .connectedStreamEstablished),
            (.connectedStreamPeripheral, [.connectedStreamEstablished, .connectedStreamRequest]),
            (.isochronousBroadcaster, [.broadcastStreams, .periodicAdvertising]),
            (.synchronizedReceiver, [.broadcastStreams, .periodicAdvertising]),
            (.channelSounding, .channelSounding),
            (.extendedFeatureSet, .readAllRemoteFeaturesComplete),
        ]
        for (feature, events) in byFeature where features.contains(feature) { formUnion(events) }
        guard let commands else { return }
        if commands.contains(octet: 34, bit: 1) { insert(.readLocalPublicKeyComplete) }
        if commands.contains(octet: 34, bit: 2) { insert(.generateDHKeyComplete) }
        if commands.contains(octet: 35, bit: 5) || commands.contains(octet: 35, bit: 6) { insert(.phyUpdateComplete) }
        if commands.hasExtendedScan { insert(.extendedAdvertisingReport) }
        if commands.hasExtendedConnect { insert(.enhancedConnectionComplete) }
    }
}
