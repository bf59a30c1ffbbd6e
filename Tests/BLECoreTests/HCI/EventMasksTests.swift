import BLECore
import TestSupport
import Testing

@Suite struct EventMasksTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000)
    private static let events = HCIEventMask.kernel
    private let features: LEFeatures = [.encryption, .connectionParametersRequest, .dataLengthExtension]

    /// The kernel's mask of a controller of Bluetooth 4.0, and of one with the commands of extended advertising.
    @Test func whatIsNeededFollowsFromTheController() {
        #expect(needed(.encryption, octets([26: 0x1C])) == LEEventMask(rawValue: 0x1F))
        let new = needed(
            features.union([.le2M, .extendedAdvertising, .channelSelectionAlgorithm2]),
            octets([26: 0x1C, 34: 0x06, 35: 0x60, 37: 0xFF]))
        // 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 17 and 19.
        #expect(new == LEEventMask(rawValue: 0x0A_1BFF))
        // The commands alone decide, as in the kernel.
        #expect(needed(features, octets([37: 0x60])).contains(.extendedAdvertisingReport))
        #expect(!needed(features, nil).contains(.extendedAdvertisingReport))
    }

    @Test func anIsochronousControllerKeepsTheKernelsEvents() {
        let features: LEFeatures = [.connectedStreamPeripheral, .isochronousBroadcaster, .channelSounding]
        let mask = needed(features, nil)
        #expect(mask.isSuperset(of: [.connectedStreamEstablished, .connectedStreamRequest, .broadcastStreams]))
        #expect(mask.isSuperset(of: [.periodicAdvertising, .channelSounding]))
        // Kernels from 7.0 on wait for it on every new link.
        #expect(needed([.extendedFeatureSet], nil).contains(LEEventMask(rawValue: 1 << 42)))
    }

    @Test(.row("W72")) func aResetLeavesBothMasksToBeSet() {
        var masks = masks(features)
        let mask = masks.commands()
        let both = [HCICommandPacket(HCISetEventMask(Self.events))] + mask
        masks.controllerReset()
        #expect(masks.commands() == both)
        #expect(masks.commands() == mask)
        #expect(both[0].parameters == [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0x3F, 0x3D])
        // It may have come before this program began.
        #expect(masks.commands(isSilent: true) == both)

        // Before this program knows the controller.
        var early = EventMasks()
        early.controllerReset()
        #expect(early.commands() == [])
        early.use(features: features, commands: nil)
        #expect(early.commands() == both)
        // The kernel sets it up.
        for knowsTheController in [true, false] {
            var powered = EventMasks()
            if knowsTheController { powered.use(features: features, commands: nil) }
            powered.controllerReset()
            #expect(foreign(HCISetEventMask(Self.events), &powered, isSetUp: false) == nil)
            powered.use(features: features, commands: nil)
            #expect(powered.commands() == mask)
        }
    }

    @Test(.row("W10")) func aNarrowerMaskOfAnotherProgramIsWidened() {
        var masks = masks([.extendedAdvertising])
        let wide = needed([.extendedAdvertising], nil)
        let narrow = LEEventMask(rawValue: 0x1F | 1 << 40)
        #expect(foreign(LESetEventMask(narrow), &masks) == HCICommandPacket(LESetEventMask(narrow.union(wide))))
        let count = masks.repeatCount
        #expect(count == 1)
        // One with everything, as another program of this library sets it, is left alone; so is one that was refused.
        #expect(foreign(LESetEventMask(wide.union(.channelSounding)), &masks) == nil)
        #expect(foreign(LESetEventMask(narrow), &masks, .commandDisallowed) == nil)
        // Its command was not seen.
        #expect(
            masks.completed(.leSetEventMask, .success, isSetUp: true, at: start)
                == HCICommandPacket(LESetEventMask(wide.union(.channelSounding))))
        // A program that uses no controller yet needs nothing.
        var early = EventMasks()
        #expect(foreign(LESetEventMask(narrow), &early) == nil)
    }

    /// What the kernel or another program has switched on stays on, also where this library does not know it.
    @Test func masksAreOnlyWidened() {
        var masks = masks([.extendedAdvertising])
        let wide = needed([.extendedAdvertising], nil)
        let kernels = LEEventMask(rawValue: 0x1F | 1 << 60)
        masks.controllerReset()
        // While the kernel sets the controller up, nothing follows its commands.
        #expect(foreign(HCISetEventMask(.initial), &masks, isSetUp: false) == nil)
        #expect(foreign(LESetEventMask(kernels), &masks, isSetUp: false) == nil)
        let count = masks.repeatCount
        #expect(count == 0)
        #expect(masks.commands() == [HCICommandPacket(LESetEventMask(wide.union(kernels)))])
        masks.controllerReset()
        #expect(masks.commands().last == HCICommandPacket(LESetEventMask(wide)))

        // Both masks may be under way at once.
        let asleep = HCICommandPacket(HCISetEventMask(.initial))
        masks.received(asleep)
        masks.received(HCICommandPacket(LESetEventMask(kernels)))
        let first = masks.completed(.setEventMask, .success, isSetUp: true, at: start)
        #expect(first == HCICommandPacket(HCISetEventMask([.initial, .leMeta])))
        let second = masks.completed(.leSetEventMask, .success, isSetUp: true, at: start)
        #expect(second == HCICommandPacket(LESetEventMask(wide.union(kernels))))
    }

    /// The kernel masks Disconnection Complete while the machine sleeps.
    @Test(.row("W10")) func theOtherMaskIsSetOnlyWhereItHasNoLEEvents() {
        var masks = masks(features)
        let asleep = HCIEventMask(rawValue: HCIEventMask.initial.rawValue & ~(1 << 4))
        #expect(foreign(HCISetEventMask(asleep.union(.leMeta)), &masks) == nil)
        #expect(foreign(HCISetEventMask(asleep), &masks) == HCICommandPacket(HCISetEventMask(asleep.union(.leMeta))))
        #expect(masks.completed(.setEventMask, .success, isSetUp: true, at: start) == nil)
        #expect(masks.completed(.leSetScanEnable, .success, isSetUp: true, at: start) == nil)
    }

    @Test(.row("W10")) func aProgramThatInsistsIsFollowedFourTimesAMinute() {
        var masks = masks(features)
        let narrow = LESetEventMask(LEEventMask(rawValue: 0x1F))
        for _ in 1...4 { #expect(foreign(narrow, &masks) != nil) }
        #expect(foreign(narrow, &masks) == nil)
        masks.received(HCICommandPacket(narrow))
        #expect(masks.completed(.leSetEventMask, .success, isSetUp: true, at: start + .seconds(60)) != nil)
    }

    @Test(.row("W72", "H13")) func aMaskWithoutAResponseIsSetAgainOnceTheControllerResponds() {
        var masks = masks(features)
        masks.controllerReset()
        let commands = masks.commands()
        for command in commands {
            masks.finished(command, HCICommandFailure(opcode: command.opcode, reason: .timeout))
        }
        #expect(masks.controllerResponded() == commands)
        #expect(masks.controllerResponded() == [])
        // Once: a controller may respond to everything else.
        masks.finished(commands[0], HCICommandFailure(opcode: commands[0].opcode, reason: .timeout))
        #expect(masks.controllerResponded() == [])
        masks.finished(commands[0], HCICommandFailure(opcode: commands[0].opcode, reason: .status(.unknownCommand)))
        masks.finished(commands[1], nil)
        #expect(masks.controllerResponded() == [])
        // It was reset in between.
        masks.finished(commands[0], HCICommandFailure(opcode: commands[0].opcode, reason: .timeout))
        masks.controllerReset()
        #expect(masks.controllerResponded() == [])
    }

    @Test func aCommandThatIsTooShortIsIgnored() {
        var masks = masks([.extendedAdvertising])
        masks.received(HCICommandPacket(opcode: .leSetEventMask, parameters: [0x1F]))
        #expect(masks.completed(.leSetEventMask, .invalidParameters, isSetUp: true, at: start) == nil)
    }

    private func foreign(
        _ command: some HCICommand, _ masks: inout EventMasks, _ status: HCIStatus = .success, isSetUp: Bool = true
    ) -> HCICommandPacket? {
        masks.received(HCICommandPacket(command))
        return masks.completed(command.opcode, status, isSetUp: isSetUp, at: start)
    }

    private func masks(_ features: LEFeatures) -> EventMasks {
        var masks = EventMasks()
        masks.use(features: features, commands: nil)
        return masks
    }

    /// The mask that is set for a controller.
    private func needed(_ features: LEFeatures, _ octets: [UInt8]?) -> LEEventMask {
        var masks = EventMasks()
        masks.use(features: features, commands: octets.map(HCISupportedCommands.init))
        guard let parameters = masks.commands().first?.parameters else { return [] }
        var reader = ByteReader(parameters.span)
        return LEEventMask(rawValue: reader.u64() ?? 0)
    }

    private func octets(_ values: [Int: UInt8]) -> [UInt8] {
        (0..<64).map { values[$0] ?? 0 }
    }
}
