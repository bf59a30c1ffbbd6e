import BLECore
import BLELinux
import BareBLETestKit
import Foundation
import Glibc
import TestSupport
import Testing

@testable import blescan

/// `talk` and `notify --after`: several operations on one link.
@Suite struct TalkTests {
    private static let uart = [
        "notify nordic-uart-tx", "write nordic-uart-rx --text hi", "wait 1 --for 20s", "read device-name",
    ]

    /// A battery monitor: a request is answered by three notifications, later.
    private static func monitor() async throws -> SocketPeer {
        let holder = Lock<VirtualPeripheral?>(nil)
        let device = VirtualDevice(
            name: "BMS",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, .notify),
                        VirtualCharacteristic(
                            0xFFF2, .writeWithoutResponse,
                            onWrite: .call { request in
                                guard request == [0xDD, 0xA5] else { return .valueNotAllowed }
                                Task {
                                    let peripheral = holder.withLock { $0 }
                                    for part in 1...3 as ClosedRange<UInt8> {
                                        _ = try? await peripheral?.notify(0xFFF1, [part, 0x77])
                                    }
                                }
                                return nil
                            }),
                    ])
            ])
        let peripheral = VirtualPeripheral(device)
        holder.withLock { $0 = peripheral }
        return try SocketPeer(link: try await peripheral.connect())
    }

    @Test func operationsShareOneLink() async throws {
        let peer = try await SocketPeer(.uart)
        let outcome = try await BuiltProgram.run(["talk", "unix:\(peer.path)"] + Self.uart + ["--json"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let objects = try outcome.objects()
        #expect(objects.compactMap { $0["operation"] as? String } == ["write", "read"])
        #expect(objects.first { $0["event"] as? String == "notification" }?["hex"] as? String == "6869")
        #expect(peer.packets.filter { $0.first == 0x02 }.count == 1, "one link, one exchange of the MTU")
        #expect(peer.packets.last { $0.first == 0x12 }?.suffix(2) == [0, 0], "unsubscribed at the end")
    }

    @Test func linesComeFromStandardInputAndFromFiles() async throws {
        let text = "# the name\nread 2a00\n\nquit\nread 2a01\n"
        let piped = try await BuiltProgram.run(["talk", "demo:uart"], input: text)
        #expect(piped.status == 0 && piped.output.contains("Virtual UART"))
        #expect(piped.output.split(separator: "\n").count == 1, "nothing after quit")
        let folder = try TestFolder()
        try text.write(toFile: folder["operations"], atomically: true, encoding: .utf8)
        let read = try await BuiltProgram.run(["talk", "demo:uart", "--file", folder["operations"]])
        #expect(read.status == 0 && read.output == piped.output)
    }

    @Test func severalResponsesToOneRequest() async throws {
        let (first, second) = (try await Self.monitor(), try await Self.monitor())
        let after = try await BuiltProgram.run([
            "notify", "unix:\(first.path)", "fff1", "--after", "fff2=dda5", "-n", "3", "--for", "20s", "-j",
        ])
        #expect(after.status == 0, "\(after.errors)")
        #expect(try after.objects().map { $0["hex"] as? String } == ["0177", "0277", "0377"])
        let talk = try await BuiltProgram.run([
            "talk", "unix:\(second.path)", "notify fff1", "write fff2 dda5 --without-response",
            "wait 2 --for 20s", "wait 1 --for 20s", "--json",
        ])
        #expect(talk.status == 0, "\(talk.errors)")
        #expect(
            try talk.objects().filter { $0["event"] != nil }.map { $0["hex"] as? String } == ["0177", "0277", "0377"])
    }

    @Test func aWaitThatIsNotFulfilledEndsIt() async throws {
        let outcome = try await BuiltProgram.run([
            "talk", "demo:uart", "notify nordic-uart-tx", "write nordic-uart-rx 00", "wait 2 --for 300ms", "read 2a00",
        ])
        #expect(outcome.status == 75)
        #expect(outcome.errors.contains("only 1 of 2 values came"))
        #expect(!outcome.output.contains("Virtual UART"), "nothing follows a failure")
    }

    @Test(arguments: [
        ("read 2a6e", Int32(1), "could not read 2a6e"), ("write 2a00 00", 76, "2a00"),
        ("stop nordic-uart-tx", 1, "no subscription"), ("wait 0", 64, "from 1"),
        ("reed 2a00", 64, "Did you mean read?"),
        ("write 0x0008 0g", 64, "'g' is not a hex digit"), ("read 'x", 64, "a quote has no end"),
        ("read", 64, "missing"),
        ("stop 2a37", 1, "no subscription to 2a37"), ("explore --bogus", 64, "unknown option"),
        ("quit now", 64, "unexpected argument"), ("notify 0x000b", 1, "whose value is at 0x000a"),
        ("write nordic-uart-rx --file -", 64, "standard input has the operations"),
    ])
    func failuresHaveTheirStatus(_ operation: String, _ status: Int32, _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["talk", "demo:uart"], input: operation + "\nread 2a00\n")
        #expect(outcome.status == status, "\(outcome.errors)")
        #expect(outcome.errors.lowercased().contains(words.lowercased()), "\(outcome.errors)")
        #expect(outcome.output.isEmpty)
    }

    @Test func bytesComeFromStandardInput() async throws {
        let outcome = try await BuiltProgram.run(
            ["talk", "demo:uart", "write nordic-uart-rx --file -"], input: "hi")
        #expect(outcome.output == "wrote 2 bytes to nordic-uart-rx (0x0008)\n")
    }

    @Test func helpIsShownInPlace() async throws {
        let outcome = try await BuiltProgram.run(["talk", "demo:uart"], input: "read --help\n")
        #expect(outcome.status == 0 && outcome.errors.contains("read ATTRIBUTE ..."))
    }

    /// Between operations, too.
    @Test func aLinkLostAtThePromptIsReported() async throws {
        let peripheral = VirtualPeripheral(.uart)
        let peer = try SocketPeer(link: try await peripheral.connect())
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(["talk", "unix:\(peer.path)"], errors: terminal, keyboard: terminal)
        try await terminal.shown("> ")
        await peripheral.disconnect()
        #expect(try await program.outcome().status == 74)
        try await terminal.shown("the link has ended")
    }

    /// A mistake in a later argument is found before there is a link.
    @Test func mistakesAreFoundFirst() async throws {
        let peer = try await SocketPeer(.uart)
        let outcome = try await BuiltProgram.run(["talk", "unix:\(peer.path)", "read 2a00", "reed 2a01"])
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(peer.packets.isEmpty)
    }

    @Test func aLostLinkEndsIt() async throws {
        let peer = try await SocketPeer(.uart, until: [0x0A, 0x03, 0x00])
        let outcome = try await BuiltProgram.run(
            ["talk", "unix:\(peer.path)"], input: "notify nordic-uart-tx\nread 0x0003\nread 2a00\n")
        #expect(outcome.status == 74, "\(outcome.errors)")
    }

    @Test func aWaitEndsWithTheLink() async throws {
        let peripheral = VirtualPeripheral(.uart)
        let peer = try SocketPeer(link: try await peripheral.connect())
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(
            ["talk", "unix:\(peer.path)"], input: "notify nordic-uart-tx\nwait\n", errors: terminal)
        try await terminal.shown("subscribed to 0x000a")
        await peripheral.disconnect()
        #expect(try await program.outcome().status == 74, "\(terminal.text)")
    }

    @Test func aWaitNeedsASubscriptionOrATime() async throws {
        let outcome = try await BuiltProgram.run(["talk", "demo:uart", "wait 1"])
        #expect(outcome.status == 64 && outcome.errors.contains("there is no subscription to wait for"))
        #expect(try await BuiltProgram.run(["talk", "demo:uart", "wait --for 10ms"]).status == 0)
    }

    @Test func theUserIsAskedAndMayErr() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:battery"], errors: terminal, keyboard: terminal)
        try await terminal.shown("`quit` ends")
        terminal.type("read 2a6e\n")
        try await terminal.shown("hint: List what the peer has")
        terminal.type("read 2a19\n")
        try await program.printed("64 %")
        terminal.type("quit\n")
        #expect(try await program.outcome().status == 0)
    }

    @Test(arguments: ["", "notify 2a19\nwait\n"]) func itCanBeInterrupted(_ keys: String) async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:battery"], errors: terminal, keyboard: terminal)
        try await terminal.shown("demo:battery> ")
        terminal.type(keys)
        if !keys.isEmpty { try await terminal.shown("subscribed to 0x0008") }
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 130)
    }

    @Test func theEndOfTheInputEndsIt() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:battery"], errors: terminal, keyboard: terminal)
        try await terminal.shown("demo:battery> ")
        terminal.type("\u{04}")
        #expect(try await program.outcome().status == 0)
    }

    @Test(arguments: [
        ("read 2a19  2a00", ["read", "2a19", "2a00"]), ("write x --text 'a b'", ["write", "x", "--text", "a b"]),
        (#"a "b 'c" d'e f'"#, ["a", "b 'c", "de f"]), ("''", [""]), ("  ", []), ("\tread", ["read"]),
    ])
    func wordsAreThoseOfAShell(_ line: String, _ words: [String]) throws {
        #expect(try TalkWords.split(line) == words)
    }
}

/// The bytes of values on the command line.
@Suite struct ValueOptionsTests {
    @Test(arguments: [
        (["--u8", "0x10"], "10"), (["--u16", "0x1234"], "3412"), (["--u64", "1"], "0100000000000000"),
        (["--i64", "-2"], "feffffffffffffff"), (["--f32", "21.5"], "0000ac41"), (["--f64", "1"], "000000000000f03f"),
        (["--u32", "0x01020304", "--big-endian"], "01020304"), (["--text", #"a\r\n\t\0\\\x1b"#], "610d0a09005c1b"),
        (["--text", "ü"], "c3bc"), (["--hex", "0x05a0"], "05a0"),
    ])
    func formsOfAValue(_ words: [String], _ bytes: String) throws {
        #expect(try Hex.encode(Self.bytes(words)) == bytes)
    }

    @Test(arguments: [
        ["--u8", "0x100"], ["--u8", "0x"], ["--f32", "x"], ["--text", #"\q"#], ["--text", #"\x1"#], ["--text", #"a\"#],
        ["--text", "a", "--big-endian"], ["--u8", "1", "--u64", "1"], [],
    ])
    func otherWordsAreNone(_ words: [String]) {
        #expect(throws: Failure.self) { try Self.bytes(words) }
    }

    private static func bytes(_ words: [String]) throws -> [UInt8] {
        guard case .write(_, let value, _) = try TalkOperation("write 0x0008 " + words.joined(separator: " ")) else {
            return []
        }
        return try value.bytes()
    }

    @Test(arguments: ["fff2", "fff2=", "=dd", "fff2=0", "tea=01", "fff2=zz"]) func afterNeedsBoth(_ text: String) {
        #expect(throws: BadValue.self) { try AfterArgument(argument: text) }
    }
}
