import BLECore
import BareBLETestKit
import Testing

/// Peers that do not respond, disconnect, refuse, or violate the protocol: the status and the sentence for the user.
@Suite struct UnrulyPeerTests {
    /// Commands that reach the peer at different steps: at the MTU exchange, or without one at the first request.
    static let commands: [[String]] = [
        ["explore", "PEER"], ["explore", "PEER", "--mtu", "23"], ["read", "PEER", "2a19"],
        ["read", "PEER", "0x0003", "--mtu", "23"], ["write", "PEER", "2a19", "--u8", "1", "--mtu", "23"],
        ["write", "PEER", "0x0003", "--u8", "1", "--mtu", "23"], ["notify", "PEER", "2a19", "--mtu", "23"],
    ]

    private func run(_ command: [String], _ peer: SocketPeer, _ more: [String] = []) async throws -> Outcome {
        try await BuiltProgram.run(command.map { $0 == "PEER" ? "unix:\(peer.path)" : $0 } + more)
    }

    /// Expects one failure that names the program and the peer, and no output.
    private func expectParagraph(_ outcome: Outcome, status: Int32, peer: SocketPeer) {
        #expect(outcome.status == status)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.hasPrefix("blescan: could not "))
        #expect(outcome.errors.contains("unix:\(peer.path)"))
        let lines = outcome.errors.split(separator: "\n")
        #expect(lines.count == 1 || lines.count == 2 && lines[1].hasPrefix("hint: "))
    }

    @Test(arguments: commands) func aPeerThatDoesNotRespondEndsTheCommandWith75(_ command: [String]) async throws {
        let peer = try SocketPeer { _ in .silence }
        let outcome = try await run(command, peer, ["--timeout", "300ms"])
        expectParagraph(outcome, status: 75, peer: peer)
        #expect(outcome.errors.contains("the peer did not respond in time"))
        #expect(outcome.errors.contains("allow more time. --timeout sets the time.\n"))
    }

    /// The first request is that of the MTU.
    @Test func aPeerThatIsSilentFromTheStartWasConnectedTo() async throws {
        let peer = try SocketPeer { _ in .silence }
        let outcome = try await run(["read", "PEER", "2a19"], peer, ["--timeout", "300ms"])
        #expect(outcome.status == 75)
        #expect(
            outcome.errors.hasPrefix(
                "blescan: could not use the link (unix:\(peer.path)): it came up, but the peer did not respond in time\n"
                    + "hint: The device may be busy, or may not run an ATT server; try again, "),
            "\(outcome.errors)")
    }

    /// The link ends with the command, in the middle of an operation too.
    @Test(arguments: [["read", "PEER", "2a19"], ["write", "PEER", "0x0003", "--u8", "1"]])
    func theHintOfATimeoutIsAboutACommandThatHasEnded(_ command: [String]) async throws {
        let peer = try SocketPeer { $0.first == 0x02 ? .response([0x03, 0x17, 0x00]) : .silence }
        let outcome = try await run(command, peer, ["--timeout", "300ms"])
        #expect(outcome.status == 75)
        #expect(outcome.errors.hasSuffix("hint: Try again, or allow more time. --timeout sets the time.\n"))
        #expect(!outcome.errors.contains("still up"), "\(outcome.errors)")
    }

    @Test(arguments: commands) func aPeerThatDisconnectsEndsTheCommandWith74(_ command: [String]) async throws {
        let peer = try SocketPeer { _ in .disconnect }
        let outcome = try await run(command, peer)
        expectParagraph(outcome, status: 74, peer: peer)
        #expect(outcome.errors.contains("connect again"))
    }

    @Test(arguments: commands) func thePeerRefuses(_ command: [String]) async throws {
        let peer = try SocketPeer { .response(Self.response($0, code: 0x05)) }
        let outcome = try await run(command, peer)
        expectParagraph(outcome, status: 76, peer: peer)
        #expect(outcome.errors.contains("insufficient authentication"))
        #expect(outcome.errors.contains("[ATT 0x05]"))
    }

    /// With a handle there is no discovery, and bytes that are malformed for one command may be a value to another.
    @Test(arguments: commands.filter { !$0.contains("0x0003") })
    func aPeerThatSendsMalformedResponsesIsReported(_ command: [String]) async throws {
        let peer = try SocketPeer { pdu in
            // Responses of the right kind that end in the middle of their content.
            pdu.first == 0x02 ? .response([0x03, 0x17, 0x00]) : .response([(pdu.first ?? 0) &+ 1, 0x07, 0x01])
        }
        let outcome = try await run(command, peer, ["--timeout", "2s"])
        expectParagraph(outcome, status: 76, peer: peer)
    }

    /// Each response is one byte longer than the MTU. On the next link the peer would do the same.
    @Test(arguments: commands.filter { $0.contains("--mtu") })
    func aPeerThatViolatesTheProtocolEndsTheCommandWith76(_ command: [String]) async throws {
        let peer = try SocketPeer { _ in .response([0x0B] + [UInt8](repeating: 0, count: 23)) }
        let outcome = try await run(command, peer)
        expectParagraph(outcome, status: 76, peer: peer)
        #expect(outcome.errors.contains("the peer violated the protocol"), "\(outcome.errors)")
    }

    /// The link has ended all the same: in JSON the code stays.
    @Test func theCodeOfAViolationIsThatOfALostLink() async throws {
        let peer = try SocketPeer { _ in .response([0x0B] + [UInt8](repeating: 0, count: 23)) }
        let outcome = try await run(["read", "PEER", "0x0003", "--mtu", "23", "--json"], peer)
        #expect(outcome.status == 76)
        #expect(outcome.errors.contains(#""code":"disconnected""#), "\(outcome.errors)")
        #expect(outcome.errors.contains(#""status":76"#), "\(outcome.errors)")
    }

    /// Returns a device with three values at 0x0003, 0x0005 and 0x0007. With an MTU of 23 the first one is endless; the
    /// response to a read of the second one is malformed.
    static func peripheralWithInvalidValues() async -> VirtualPeripheral {
        let values: [VirtualCharacteristic] = [
            VirtualCharacteristic(0xFFF1, .read), VirtualCharacteristic(0xFFF2, .read),
            VirtualCharacteristic(0xFFF3, .read, value: [0xC7, 0x3A]),
        ]
        let peripheral = VirtualPeripheral(VirtualDevice(name: "Lamp", services: [VirtualService(0xFFF0, values)]))
        await peripheral.behave { request, respond in
            // A part that fills its packet is not the last one (Core Vol 3 Part G, 4.8.3).
            let part = [UInt8](repeating: 0x41, count: 22)
            let responses: [[UInt8]]
            switch Array(request.prefix(3)) {
            case [0x0A, 3, 0]: responses = [[0x0B] + part]
            case [0x0C, 3, 0]: responses = [[0x0D] + part]
            // An Error Response of two bytes.
            case [0x0A, 5, 0]: responses = [[0x01, 0x0A]]
            default: responses = respond(request)
            }
            return responses.map { (delay: .zero, pdu: $0) }
        }
        return peripheral
    }

    @Test(arguments: [[], ["--flat"], ["--json"]] as [[String]])
    func anInvalidValueIsShownInItsRowAndTheOthersAreRead(_ arguments: [String]) async throws {
        let peripheral = await Self.peripheralWithInvalidValues()
        let peer = try SocketPeer(link: try await peripheral.connect())
        let outcome = try await run(["explore", "PEER", "--mtu", "23"], peer, arguments)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.errors.isEmpty)
        #expect(outcome.output.contains("longer than the 512 bytes"), "\(outcome.output)")
        #expect(outcome.output.contains("malformed") && outcome.output.contains("c73a"), "\(outcome.output)")
        if arguments.isEmpty { #expect(outcome.output.hasSuffix(", 1 value read, 2 invalid\n"), "\(outcome.output)") }
        if arguments == ["--json"] {
            #expect(outcome.output.contains(#""code":"tooLong""#), "\(outcome.output)")
            #expect(outcome.output.contains(#""code":"malformedReply""#), "\(outcome.output)")
        }
    }

    /// The link is lost after the discovery: what was read before is shown all the same.
    @Test func theLinkIsLostWhileValuesAreRead() async throws {
        let values: [VirtualCharacteristic] = [
            VirtualCharacteristic(0xFFF1, .read, value: [0xAA]), VirtualCharacteristic(0xFFF2, .read, value: [0xBB]),
        ]
        for arguments in [[], ["--json"]] {
            let peer = try await SocketPeer(
                VirtualDevice(name: "Lamp", services: [VirtualService(0xFFF0, values)]), until: [0x0A, 0x05, 0x00])
            let outcome = try await run(["explore", "PEER"], peer, arguments)
            #expect(outcome.status == 74)
            #expect(outcome.output.contains("aa") && !outcome.output.contains("bb"))
            #expect(outcome.errors.contains("the peer ended the link"))
        }
    }

    @Test func theLinkIsLostWhileListening() async throws {
        let peer = try await SocketPeer(.heartRate)
        let program = try RunningProgram(["notify", "unix:\(peer.path)", "2a37"])
        try await program.printed("bpm")
        peer.disconnect()
        let outcome = try await program.outcome()
        #expect(outcome.status == 74)
        #expect(outcome.errors.contains("the peer ended the link"))
        #expect(!outcome.errors.contains("unsubscribed"))
    }

    @Test func oneUUIDSeveralTimes() async throws {
        let level: (UInt8) -> VirtualService = { .battery(level: $0) }
        let peer = try await SocketPeer(VirtualDevice(name: "Two batteries", services: [level(1), level(2)]))
        let outcome = try await run(["read", "PEER", "2a19"], peer)
        expectParagraph(outcome, status: 64, peer: peer)
        #expect(outcome.errors.contains("0x0003") && outcome.errors.contains("0x0007"))
        #expect(outcome.errors.contains("Name one of them by its handle"))
    }

    /// A message from the peer must not control the terminal that shows it.
    @Test(arguments: [
        ["explore", "PEER"], ["read", "PEER", "2a00"], ["explore", "PEER", "--json"],
        ["read", "PEER", "2a00", "--json"],
        ["explore", "PEER", "--trace"],
    ])
    func noEscapeSequenceReachesTheTerminal(_ command: [String]) async throws {
        // Clears the screen, sets the window's title, changes the writing direction, and ends the line.
        let name = "Lamp\u{1B}[2J\u{1B}]0;title\u{7}\u{9B}31m\u{202E}txet\u{2028}\r\nend"
        let peer = try await SocketPeer(
            VirtualDevice(name: name, services: [.genericAccess(name: name, appearance: 0)]))
        let outcome = try await run(command, peer)
        #expect(outcome.status == 0)
        for scalar in (outcome.output + outcome.errors).unicodeScalars where scalar != "\n" {
            #expect(scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value), "a control character is printed")
            #expect(![0x202E, 0x2028].contains(scalar.value), "a mark that turns the text around is printed")
        }
        #expect(outcome.output.contains("4c616d70"), "the bytes are shown")
    }

    /// Returns an Error Response for any request, and a regular response to an MTU request.
    private static func response(_ pdu: [UInt8], code: UInt8) -> [UInt8] {
        guard let opcode = pdu.first, opcode != 0x02 else { return [0x03, 0x17, 0x00] }
        return [0x01, opcode] + pdu.dropFirst().prefix(2) + [code]
    }
}
