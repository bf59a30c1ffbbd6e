import BLECore
import TestSupport
import Testing

/// The kernel's management interface, byte by byte.
@Suite struct ManagementTests {
    private typealias Information = ManagementReadControllerInformation

    private func event(_ bytes: [UInt8]) throws(MalformedPacket) -> ManagementEvent {
        try ManagementEvent(bytes.span)
    }

    private func packet(_ bytes: [UInt8]) throws(MalformedPacket) -> ManagementPacket {
        try ManagementPacket(bytes.span)
    }

    private func monitored(_ bytes: [UInt8]) throws(MalformedPacket) -> MonitorPacket {
        try MonitorPacket(bytes.span)
    }

    private func response(
        _ bytes: [UInt8], of adapter: UInt16? = 0
    ) throws -> Result<ManagementControllerInformation, ManagementFailure>? {
        try event(bytes).response(to: Information.self, of: adapter)
    }

    @Test func aCommandIsAHeaderAndItsParameters() throws {
        #expect(Information().packet(adapter: 0).bytes == ManagementPackets.readInformation)
        #expect(Information().packet(adapter: nil).bytes == bytes("0400ffff0000"))
        let read = try packet(ManagementPackets.readInformation)
        #expect(read == ManagementPacket(code: 4, adapter: 0, parameters: []))
        let long = ManagementPacket(code: 4, adapter: 0xFFFF, parameters: [UInt8](repeating: 1, count: 0x10001))
        #expect(long.adapter == nil && long.parameters.count == 0xFFFF)
        #expect(try packet(long.bytes) == long)
    }

    @Test func informationIsRead() throws {
        let information = try #require(try response(ManagementPackets.information)).get()
        #expect(information.address == BluetoothAddress("E8:48:B8:C8:20:00"))
        #expect(HCIVersion.specification(of: information.hciVersion) == "5.1")
        #expect(information.company == 0x005D && information.deviceClass == 0)
        #expect(information.name == "BrightAI-3456" && information.shortName.isEmpty)
        #expect(information.supportedSettings == ManagementSettings(rawValue: 0x3BFFF))
        // The switches of bluetoothd's first minute: power is off still.
        #expect(
            information.currentSettings == [
                .bondable, .secureSimplePairing, .classic, .lowEnergy, .secureConnections,
            ])
        #expect(information.supportedSettings.isSuperset(of: [.powered, .privacy, .staticAddress, .widebandSpeech]))
        #expect(!information.supportedSettings.contains(.controllerConfiguration))
    }

    @Test(.row("O31")) func aResponseBelongsToItsCommandAndAdapter() throws {
        #expect(try response(ManagementPackets.information, of: 1) == nil)
        #expect(try response(ManagementPackets.information, of: nil) == nil)
        for other in [ManagementPackets.refusal, ManagementPackets.version, ManagementPackets.newSettings] {
            #expect(try response(other) == nil)
        }
        // Command Status with Invalid Index, as for an adapter that another program has to itself.
        #expect(try response(bytes("02000300 0300 0400 11"), of: 3) == .failure(.status(.invalidIndex)))
        // Command Complete with a failure has no return parameters that could be read.
        #expect(try response(bytes("01000000 0300 0400 14")) == .failure(.status(.permissionDenied)))
        let short = MalformedPacket(format: "mgmt_rp_read_info", offset: 1, reason: .tooShort)
        #expect(try response(bytes("01000000 0400 0400 00 00")) == .failure(.malformed(short)))
    }

    @Test func eventsAreDistinguished() throws {
        #expect(
            try event(ManagementPackets.newSettings).content
                == .newSettings([.bondable, .secureSimplePairing, .classic, .lowEnergy, .secureConnections]))
        #expect(try event(bytes("26000000 0400 01020000")).content == .unknown(code: 0x26, parameters: [1, 2, 0, 0]))
        guard case .commandComplete(let complete) = try event(ManagementPackets.version).content,
            case .commandStatus(let status) = try event(ManagementPackets.refusal).content
        else {
            Issue.record("other events")
            return
        }
        #expect(complete.command.rawValue == 1 && complete.status == .success)
        #expect(complete.returnParameters == [1, 0x16, 0])
        #expect(try event(ManagementPackets.version).adapter == nil)
        #expect(status.command.rawValue == 0x4C && status.status == .invalidParameters)
        #expect(status.status.description == "Invalid Parameters (0x0d)")
        #expect(ManagementStatus(rawValue: 0x99).description == "status (0x99)")
    }

    @Test func theMonitorNamesThePrograms() throws {
        guard case .controlOpen(let open) = try monitored(ManagementPackets.controlOpen) else {
            Issue.record("another packet")
            return
        }
        #expect(open.program == "bluetoothd" && open.format == .control && open.adapter == nil && open.cookie == 1)
        #expect(try monitored(ManagementPackets.controlClose) == .other(opcode: 15))
        // Record 58 of Fixtures/hci/three-devices.btsnoop: a scanner in Python.
        let user =
            bytes("0e000000 1e00 02000000 0000 021600 01000000 10") + Array("python3".utf8)
            + [UInt8](repeating: 0, count: 9)
        guard case .controlOpen(let scanner) = try monitored(user) else {
            Issue.record("another packet")
            return
        }
        #expect(scanner.program == "python3" && scanner.format == .raw && scanner.adapter == 0)
    }

    @Test(
        .row("O31"),
        arguments: [
            ManagementPackets.information, ManagementPackets.refusal, ManagementPackets.version,
            ManagementPackets.newSettings, ManagementPackets.readInformation,
        ]) func cutOffAndOverlongPacketsAreErrors(_ whole: [UInt8]) throws
    {
        for length in 0..<whole.count {
            #expect(throws: MalformedPacket.self) { try packet(Array(whole.prefix(length))) }
            #expect(throws: MalformedPacket.self) { try event(Array(whole.prefix(length))) }
        }
        #expect(throws: MalformedPacket.self) { try packet(whole + [0]) }
        // With a length field that fits, what is missing is missed in the event or in the return parameters.
        let read = try packet(whole)
        for length in 0..<read.parameters.count {
            let cut = ManagementPacket(
                code: read.code, adapter: read.adapter, parameters: Array(read.parameters.prefix(length)))
            let isHeader = read.code <= 2 && length < 3
            #expect((try? event(cut.bytes)) == nil || !isHeader)
            if whole == ManagementPackets.information, !isHeader {
                guard case .failure(.malformed)? = try response(cut.bytes) else {
                    Issue.record("\(length) bytes were enough")
                    return
                }
            }
        }
    }

    @Test(.row("O31")) func cutOffMonitorPacketsAreErrors() throws {
        let packet = ManagementPackets.controlOpen
        for length in 0..<packet.count {
            #expect(throws: MalformedPacket.self) { try monitored(Array(packet.prefix(length))) }
            guard length >= 6 else { continue }
            let cut = Array(packet.prefix(4)) + [UInt8(length - 6), 0] + packet[6..<length]
            #expect(throws: MalformedPacket.self) { try monitored(cut) }
        }
    }

    @Test(.row("O31")) func nothingTraps() {
        for packet in [ManagementPackets.information, ManagementPackets.controlOpen] {
            for position in packet.indices.prefix(40) {
                var flipped = packet
                flipped[position] ^= 0xFF
                _ = try? response(flipped)
                _ = try? monitored(flipped)
            }
        }
    }

    // The layouts of mgmt.h: a list of two, and a Broadcom controller that lacks its public address.
    private static let unconfigured = bytes("0200 0100 0300")
    private static let configuration = bytes("3101 03000000 02000000")

    @Test func unconfiguredAdaptersAreRead() throws {
        #expect(ManagementReadUnconfiguredIndexList().packet(adapter: nil).bytes == bytes("3600ffff0000"))
        #expect(ManagementReadConfigurationInformation().packet(adapter: 3).bytes == bytes("370003000000"))
        #expect(try ManagementReadUnconfiguredIndexList.response(from: Self.unconfigured.span) == [1, 3])
        #expect(try ManagementReadUnconfiguredIndexList.response(from: bytes("0000").span).isEmpty)
        let information = try ManagementReadConfigurationInformation.response(from: Self.configuration.span)
        #expect(information.company == 0x0131 && information.missing == .publicAddress)
        #expect(information.supported == [.external, .publicAddress])
    }

    @Test func configurationOfAnotherLengthIsAnError() {
        for length in 0..<Self.unconfigured.count {
            let cut = Array(Self.unconfigured.prefix(length))
            #expect(throws: MalformedPacket.self) {
                try ManagementReadUnconfiguredIndexList.response(from: cut.span)
            }
        }
        for length in 0..<Self.configuration.count {
            let cut = Array(Self.configuration.prefix(length))
            #expect(throws: MalformedPacket.self) {
                try ManagementReadConfigurationInformation.response(from: cut.span)
            }
        }
        let (longList, longInformation) = (Self.unconfigured + [0], Self.configuration + [0])
        #expect(throws: MalformedPacket.self) {
            try ManagementReadUnconfiguredIndexList.response(from: longList.span)
        }
        #expect(throws: MalformedPacket.self) {
            try ManagementReadConfigurationInformation.response(from: longInformation.span)
        }
    }
}
