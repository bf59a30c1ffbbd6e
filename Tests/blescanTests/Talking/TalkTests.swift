import ArgumentParser
import BLECore
import BLELinux
import BareBLE
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

    /// The description of the operations is written line by line, and may be longer in ASCII.
    @Test func theHelpFitsATerminal() {
        for line in TalkOperation.usage.split(separator: "\n") {
            #expect(line.count <= 80 && String(line).ascii.count <= 80, "\(line)")
        }
    }

    @Test(arguments: [("subscribe 2a19", "notify"), ("unsubscribe", "stop"), ("raed 2a19", "read")])
    func theOperationThatIsMeantIsNamed(_ line: String, _ name: String) throws {
        let failure = try #require(throws: Failure.self) { try TalkOperation(line) }
        #expect(failure.hint == "Did you mean \(name)?" && failure.status == .usage)
    }

    /// Bytes alone are what a line has mostly; the options may stand anywhere.
    @Test(arguments: ["write ff02", "write ff02 --without-response", "write --without-response ff02"])
    func bytesThatAreMissingAreAskedFor(_ line: String) throws {
        let failure = try #require(throws: Failure.self) { try TalkOperation(line) }
        #expect(failure.message == "write: the bytes are missing" && failure.status == .usage)
        #expect(failure.hint?.contains("`write ff02 05a0`") == true)
    }

    @Test(arguments: [
        "write ff02 05a0 --without-response", "write --without-response ff02 05a0",
        "write ff02 --without-response 05a0", "write ff02 --hex 05a0 --without-response",
    ])
    func optionsOfAWriteStandAnywhere(_ line: String) throws {
        guard case .write(let attribute, let value, .withoutResponse) = try TalkOperation(line) else {
            Issue.record("it is no write: \(line)")
            return
        }
        #expect(attribute.text == "ff02")
        #expect(try value.bytes() == [0x05, 0xA0])
    }

    /// A battery monitor: the response to a request is three notifications, later.
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

    @Test func oneRequestMayHaveSeveralResponses() async throws {
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

    /// With no device at hand, demo:uart shows it: three packets of 20 bytes for one write.
    @Test func aLongWriteComesBackInParts() async throws {
        let bytes = Hex.encode(Array(1...60 as ClosedRange<UInt8>))
        let parts = stride(from: 0, to: 120, by: 40).map { String(bytes.dropFirst($0).prefix(40)) }
        let after = try await BuiltProgram.run([
            "notify", "demo:uart", "nordic-uart-tx", "--mtu", "23", "--after", "nordic-uart-rx=\(bytes)", "-n", "3",
            "--for", "20s", "-j",
        ])
        #expect(after.status == 0, "\(after.errors)")
        #expect(try after.objects().map { $0["hex"] as? String } == parts)
        let talk = try await BuiltProgram.run([
            "talk", "demo:uart", "--mtu", "23", "notify nordic-uart-tx", "write nordic-uart-rx \(bytes)",
            "wait 3 --for 20s", "--json",
        ])
        #expect(talk.status == 0, "\(talk.errors)")
        #expect(try talk.objects().filter { $0["event"] != nil }.map { $0["hex"] as? String } == parts)
    }

    @Test func aWaitThatIsNotFulfilledEndsIt() async throws {
        let outcome = try await BuiltProgram.run([
            "talk", "demo:uart", "notify nordic-uart-tx", "write nordic-uart-rx 00", "wait 2 --for 300ms", "read 2a00",
        ])
        #expect(outcome.status == 75)
        #expect(outcome.errors.contains("only 1 of 2 values came"))
        #expect(!outcome.output.contains("Virtual UART"), "nothing follows a failure")
        let none = try await BuiltProgram.run(["talk", "demo:uart", "notify nordic-uart-tx", "wait 1 --for 100ms"])
        #expect(none.status == 75 && none.errors.contains("no value came\n"), "\(none.errors)")
    }

    @Test(arguments: [
        ("read 2a6e", Int32(1), "could not read 2a6e"), ("write 2a00 00", 76, "2a00"),
        ("stop nordic-uart-tx", 1, "no subscription"), ("wait 0", 64, "from 1"),
        ("reed 2a00", 64, "Did you mean read?"),
        ("write nordic-uart-rx hello", 64, "`write nordic-uart-rx --text hello`"),
        ("write nordic-uart-rx good day --without-response", 64, "--text 'good day' --without-response`"),
        (#"write nordic-uart-rx "it's""#, 64, #"`write nordic-uart-rx --text it"'"s`"#),
        ("write 0x0008 0g", 64, "'0g' is not bytes"), ("read 'x", 64, "a quote has no end"),
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

    /// Comments and empty lines are counted, as editors do.
    @Test(arguments: [[], ["--json"]]) func anInvalidLineHasItsNumber(_ options: [String]) async throws {
        let text = "# the name\n\nread 2a00\nreed 2a00\n"
        let message = options.isEmpty ? "blescan: PLACE: there is" : #""error":"PLACE: there is"#
        func expected(_ place: String) -> String { message.replacingOccurrences(of: "PLACE", with: place) }
        let piped = try await BuiltProgram.run(["talk", "demo:uart"] + options, input: text)
        #expect(piped.status == 64 && piped.errors.contains(expected("line 4")), "\(piped.errors)")
        let folder = try TestFolder()
        try text.write(toFile: folder["operations"], atomically: true, encoding: .utf8)
        let read = try await BuiltProgram.run(["talk", "demo:uart", "--file", folder["operations"]] + options)
        #expect(
            read.status == 64 && read.errors.contains(expected(folder["operations"] + ", line 4")), "\(read.errors)")
        #expect(read.output.isEmpty, "it is found before the first operation")
    }

    /// Its beginning would be another operation.
    @Test func aLineThatIsTooLongIsNotPerformed() async throws {
        // Its last byte is the one too many.
        let text = "read 2a00" + String(repeating: " ", count: 65_527) + "1\n"
        let message = "line 1: the line is too long: more than 65536 bytes\n"
        let piped = try await BuiltProgram.run(["talk", "demo:uart"], input: text)
        #expect(piped.status == 64 && piped.errors.contains("blescan: " + message), "\(piped.errors)")
        #expect(piped.output.isEmpty)
        let folder = try TestFolder()
        try text.write(toFile: folder["operations"], atomically: true, encoding: .utf8)
        let read = try await BuiltProgram.run(["talk", "demo:uart", "--file", folder["operations"]])
        #expect(read.status == 64 && read.errors.contains(folder["operations"] + ", " + message), "\(read.errors)")
        #expect(read.output.isEmpty)
    }

    /// The values of a service do not depend on one another.
    @Test func whatCanBeReadOfAServiceIsShown() async throws {
        let service = "9d5a0001-3c7e-4b1f-8a26-e4710c95b3d8"
        let outcome = try await BuiltProgram.run(["talk", "demo:long-value", "read \(service)", "read 2a00"])
        #expect(outcome.status == 76)
        #expect(outcome.output.contains("fff1  000102"), "\(outcome.output)")
        let failures = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("blescan: could not read") }
        #expect(failures.count == 2, "each is reported: \(outcome.errors)")
        #expect(!outcome.output.contains("Virtual long value"), "nothing follows a failure")
    }

    /// Those of several arguments do not either; the status is that of the first failure, as for `blescan read`.
    @Test(arguments: [("read fff9 2a37 2a19 2a38", Int32(1)), ("read 2a37 fff9 2a19 2a38", 76)])
    func whatCanBeReadOfSeveralIsShown(_ operation: String, _ status: Int32) async throws {
        let outcome = try await BuiltProgram.run(["talk", "demo:heart-rate", operation, "read 2a00"])
        #expect(outcome.status == status, "\(outcome.errors)")
        #expect(outcome.output.contains("87 %") && outcome.output.contains("chest"), "\(outcome.output)")
        let failures = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("blescan: could not read") }
        #expect(failures.count == 2, "each is reported: \(outcome.errors)")
        #expect(!outcome.output.contains("Virtual HRM"), "nothing follows a failure")
    }

    @Test func theLinksEndEndsARead() async throws {
        let peer = try await SocketPeer(.battery, until: [0x0A, 0x08, 0x00])
        let outcome = try await BuiltProgram.run(["talk", "unix:\(peer.path)", "read fff9 2a19 2a00 2a01"])
        #expect(outcome.status == 1 && outcome.output.isEmpty, "the first failure's: \(outcome.errors)")
        let failures = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("blescan: could not read") }
        #expect(failures.count == 2 && failures.last?.contains("2a19") == true, "\(outcome.errors)")
    }

    @Test func severalFailuresLeaveThePrompt() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:heart-rate"], errors: terminal, keyboard: terminal)
        try await terminal.shown("`quit` ends")
        terminal.type("read fff9 2a37 2a19\n")
        try await terminal.shown("could not read fff9")
        try await terminal.shown("could not read 2a37")
        terminal.type("read 2a00\n")
        try await program.printed("Virtual HRM")
        terminal.type("quit\n")
        #expect(try await program.outcome().status == 0)
    }

    /// By its handle a value is as well known as by its name.
    @Test(arguments: [
        ("demo:battery", "write 0x0008 01", "it is not writable (properties: read, notify) [ATT 0x03]"),
        ("demo:battery", "write 2a19 01", "hint: `blescan explore` shows which values can be written."),
        ("demo:heart-rate", "write 0x0015 02", "control point not supported [ATT 0x80]"),
        ("demo:battery", "notify 0x0003", "hint: `read 0x0003` reads it."),
        ("demo:uart", "notify 0x0008", "hint: `blescan explore` shows which values the peer sends."),
    ])
    func whatIsNotPermittedIsExplained(_ peer: String, _ operation: String, _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["talk", peer, operation])
        #expect(outcome.status == 76 && outcome.errors.contains(words), "\(outcome.errors)")
    }

    @Test func bytesComeFromStandardInput() async throws {
        let outcome = try await BuiltProgram.run(
            ["talk", "demo:uart", "write nordic-uart-rx --file -"], input: "hi")
        #expect(outcome.output == "wrote 2 bytes to nordic-uart-rx (0x0008)\n")
    }

    /// Otherwise nothing would show that the command waits.
    @Test(arguments: [
        (["write", "demo:uart", "nordic-uart-rx", "--file", "-"], "the value"), (["replay", "-"], "a recording"),
        (["serve", "-", "--socket", "/nowhere/belt"], "the declaration"),
    ])
    func whatIsReadFromATerminalIsNamed(_ words: [String], _ contents: String) async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(words, errors: terminal, keyboard: terminal)
        try await terminal.shown("reading \(contents) from the terminal; Ctrl-D ends")
        terminal.type("\u{4}")
        _ = try await program.outcome()
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
        try await terminal.shown("could not keep the link")
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

    /// A virtual device that pairs has an address on its virtual radio.
    @Test func failuresNameThePeerAsItWasTyped() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:lock"], errors: terminal, keyboard: terminal)
        try await terminal.shown("`quit` ends")
        terminal.type("write fff1 00\n")
        try await terminal.shown("could not write 1 byte to fff1 (demo:lock): refused")
        terminal.type("quit\n")
        #expect(try await program.outcome().status == 0)
    }

    /// A value does not separate what is typed before it from what is typed after it.
    @Test func valuesArePrintedAboveThePrompt() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let peer = try SocketPeer(link: try await peripheral.connect())
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(
            ["talk", "unix:\(peer.path)", "--color", "never"], output: .terminal(terminal), errors: terminal,
            keyboard: terminal)
        let prompt = "unix:\(peer.path)> "
        try await terminal.shown(prompt)
        terminal.type("notify battery-level\n")
        try await terminal.shown("subscribed to 0x0008")
        terminal.type("read 2a")
        try await terminal.shown("\r\u{1B}[K\(prompt)read 2a")
        _ = try await peripheral.notify(0x2A19, [0x07])
        try await terminal.shown("07  7 %\n\r\u{1B}[K\(prompt)read 2a")
        #expect(terminal.text.contains(/\r\u{1B}\[K\d{4}-[^\n]*07  7 %\n/), "on a row of its own: \(terminal.text)")
        terminal.type("00\n")
        try await terminal.shown("Virtual")
        terminal.type("quit\n")
        #expect(try await program.outcome().status == 0)
        #expect(terminal.isCooked, "as it was")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP], ["xterm", "dumb"])
    func theTerminalIsRestoredAfterASignal(number: Int32, kind: String) async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(
            ["talk", "demo:battery"], errors: terminal, keyboard: terminal, environment: ["TERM": kind])
        try await terminal.shown("demo:battery> ")
        #expect(terminal.isCooked == (kind == "dumb"))
        program.signal(number)
        #expect(try await program.outcome().status == 130)
        #expect(terminal.isCooked)
    }

    /// No task of the program takes part: SIGQUIT is sent to one that hangs.
    @Test(arguments: [SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU])
    func theTerminalIsRestoredBeforeASignalThatNothingElseHandles(_ number: Int32) async throws {
        let terminal = try PseudoTerminal()
        // A shell has programs in the background ignore SIGQUIT, and these tests may be one.
        let start = "ulimit -c 0; exec env --default-signal=QUIT \"$0\" talk demo:battery"
        let program = try RunningProgram(
            ["-c", start, BuiltProgram.url.path], of: URL(filePath: "/bin/sh"), errors: terminal, keyboard: terminal)
        try await terminal.shown("demo:battery> ")
        #expect(!terminal.isCooked)
        program.signal(number)
        #expect(try await program.outcome().status == 128 + number, "it ends the program as any other")
        #expect(terminal.isCooked)
    }

    /// In the middle of an operation too.
    @Test func theEndOfTheTerminalEndsAWait() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:battery"], errors: terminal, keyboard: terminal)
        try await terminal.shown("demo:battery> ")
        terminal.type("notify 2a19\nwait --for 1h\n")
        try await terminal.shown("subscribed to 0x0008")
        program.signal(SIGHUP)
        #expect(try await program.outcome().status == 130)
    }

    /// Without a terminal that can clear a row, the lines are the terminal's own.
    @Test func aSimpleTerminalHasASimplePrompt() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(
            ["talk", "demo:battery"], errors: terminal, keyboard: terminal, environment: ["TERM": "dumb"])
        try await terminal.shown("demo:battery> ")
        #expect(terminal.isCooked)
        terminal.type("read 2a19\n")
        try await program.printed("64 %")
        terminal.type("\u{04}")
        #expect(try await program.outcome().status == 0)
        #expect(!terminal.text.contains("\u{1B}"))
    }

    @Test func everyObjectNamesItsOperation() async throws {
        let outcome = try await BuiltProgram.run(["talk", "demo:battery", "explore", "read 2a19", "--json"])
        #expect(try outcome.objects().map { $0["operation"] as? String } == ["explore", "read"])
        let explored = try await BuiltProgram.run(["explore", "demo:battery", "--json"])
        #expect(try explored.objects().first?["operation"] == nil)
    }

    /// What is under way on the device is not left half done, because nobody looks at its packets any more.
    @Test func itGoesOnWithoutTheReaderOfItsPackets() async throws {
        let folder = try TestFolder()
        let fifo = folder["fifo"]
        _ = unsafe mkfifo(fifo, 0o600)
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(
            ["talk", "demo:battery", "--record", fifo], errors: terminal, keyboard: terminal)
        let reader = try await RunningProgram(
            ["-c", "head -c 24 \"$0\" | wc -c", fifo], of: URL(filePath: "/bin/bash")
        ).outcome()
        #expect(reader.output.contains("24"))
        try await terminal.shown("demo:battery> ")
        terminal.type("read 2a19\nread 2a19\n")
        try await terminal.shown("nobody reads \(fifo) any more: the recording ends here, and the command goes on")
        terminal.type("read 2a00\nquit\n")
        try await program.printed("Virtual")
        #expect(try await program.outcome().status == 0)
        #expect(terminal.text.components(separatedBy: "nobody reads").count == 2, "it is said once")
    }

    /// At an empty prompt ^C ends the session, as in the middle of an operation without a prompt of its own.
    @Test(arguments: ["xterm", "dumb"]) func itCanBeInterrupted(_ kind: String) async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(
            ["talk", "demo:battery"], errors: terminal, keyboard: terminal, environment: ["TERM": kind])
        try await terminal.shown("demo:battery> ")
        if kind == "dumb" {
            terminal.type("notify 2a19\nwait\n")
            try await terminal.shown("subscribed to 0x0008")
        }
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 130)
    }

    /// As a shell does.
    @Test func anInterruptDropsTheLine() async throws {
        let terminal = try PseudoTerminal()
        let program = try RunningProgram(["talk", "demo:battery"], errors: terminal, keyboard: terminal)
        try await terminal.shown("demo:battery> ")
        terminal.type("reed 2a")
        try await terminal.shown("> reed 2a")
        program.signal(SIGINT)
        try await terminal.shown("> reed 2a^C\n\r\u{1B}[Kdemo:battery> ")
        terminal.type("read 2a00\n")
        try await program.printed("Virtual battery")
        terminal.type("quit\n")
        #expect(try await program.outcome().status == 0)
    }

    /// The session, its link and its subscriptions go on.
    @Test func anInterruptEndsTheOperation() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let peer = try SocketPeer(link: try await peripheral.connect())
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(["talk", "unix:\(peer.path)"], errors: terminal, keyboard: terminal)
        let prompt = "unix:\(peer.path)> "
        try await terminal.shown(prompt)
        terminal.type("notify 2a19\n")
        try await terminal.shown("subscribed to 0x0008")
        for _ in 0..<2 {
            let count = terminal.text.components(separatedBy: "interrupted").count
            terminal.type("wait 5 --for 1h\n")
            try await waited(for: "the line is complete") {
                terminal.text.components(separatedBy: "wait 5 --for 1h\n").count == count + 1
            }
            program.signal(SIGINT)
            try await waited(for: "the wait has ended, and the prompt is back") {
                let parts = terminal.text.components(separatedBy: "interrupted")
                return parts.count == count + 1 && parts.last?.contains(prompt) == true
            }
        }
        _ = try await peripheral.notify(0x2A19, [0x07])
        try await program.printed("7 %")
        terminal.type("quit\n")
        #expect(try await program.outcome().status == 0)
        #expect(peer.packets.last { $0.first == 0x12 }?.suffix(2) == [0, 0], "unsubscribed at the end")
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

    /// Root keeps its way to the file, as for each file that the user names.
    @Test(
        arguments: [
            (["write fff2 --file value"], true), (["read 2a00", "write fff2 --file=value"], true),
            (["write fff2 --file -"], false), (["# write fff2 --file value", "write fff2 05"], false), ([], false),
        ] as [([String], Bool)])
    func anOperationMayNameAFile(_ operations: [String], _ isFile: Bool) throws {
        #expect(try Talk.parse(["demo:uart"] + operations).namesFiles == isFile)
    }

    /// An apostrophe in it begins no quote.
    @Test(arguments: ["# the peer's name", "  #it's 5\" long", "\t# '"])
    func aCommentMayHaveAnyText(_ line: String) throws {
        let isComment = try TalkOperation(line) == nil
        #expect(isComment)
    }

    /// A file that has no operations may be one long line.
    @Test(arguments: [
        "WORD", "'WORD", "read WORD", "read --WORD", "write WORD", "write 0x0008 WORD", "write 0x0008 --u8 WORD",
        "wait WORD", "quit WORD", "quit" + String(repeating: " now", count: 1000),
    ])
    func theEndsOfALongLineAreQuoted(_ line: String) throws {
        let line = line.replacing("WORD", with: String(repeating: "x", count: 4000))
        let failure = try #require(throws: Failure.self) { try TalkOperation(line) }
        #expect(failure.message.count <= 450 && (failure.hint ?? "").count <= 450, "\(failure.message)")
    }

    @Test(arguments: ["'#x'", "\"#x\" 2a19"]) func aQuotedNumberSignBeginsNoComment(_ line: String) throws {
        let failure = try #require(throws: Failure.self) { try TalkOperation(line) }
        #expect(failure.message == "there is no operation '#x'" && failure.status == .usage)
    }
}

/// The line at the prompt.
@Suite struct PromptLineTests {
    private func line() -> PromptLine {
        PromptLine("uart> ") { words in
            words.isEmpty ? ["read", "write", "wait"] : ["nordic-uart-rx", "nordic-uart-tx"]
        }
    }

    /// Returns the lines that are complete after these keys, and what is on the terminal then.
    private func typed(_ keys: String, columns: Int = 40) -> (lines: [String], shown: String) {
        var line = line()
        var lines: [String] = []
        for byte in keys.utf8 { if case .line(.whole(let text)) = line.take(byte) { lines.append(text) } }
        return (lines, line.drawn(columns: columns))
    }

    @Test(arguments: [
        ("read 2a19\n", "read 2a19"), ("reed\u{7F}\u{7F}ad\n", "read"), ("ead\u{01}r\n", "read"),
        ("rad\u{1B}[D\u{1B}[De\n", "read"), ("ad\u{1B}[Hre\u{1B}[F x\u{05}y\n", "read xy"),
        ("write a b \u{17}c\n", "write a c"), ("tea\u{15}read\n", "read"), ("xread\u{01}\u{04}\n", "read"),
        ("xread\u{01}\u{1B}[3~\n", "read"), ("read\u{1B}[3~\n", "read"),
        ("readtea\u{1B}[D\u{1B}[D\u{1B}[D\u{0B}\n", "read"),
        ("é\u{7F}ü\n", "ü"), ("re\u{1B}[31~ad\u{07}\n", "read"), ("a\u{202E}\u{85}b\n", "ab"),
        ("wr\tno\tr\t01\n", "write nordic-uart-rx 01"),
    ])
    func keysEditIt(_ keys: String, _ text: String) {
        #expect(typed(keys).lines == [text])
    }

    @Test func theHistoryKeepsWhatWasBeingTyped() {
        #expect(typed("one\ntwo\nthr\u{1B}[A\u{1B}[A\u{1B}[A\n").lines == ["one", "two", "one"])
        #expect(typed("one\nthr\u{1B}[A\u{1B}[B\u{1B}[Bee\n").lines == ["one", "three"])
        #expect(typed("one\none\ntwo\n\u{1B}[A\u{1B}[A\n").lines == ["one", "one", "two", "one"], "each once")
    }

    @Test func severalWordsAreOffered() {
        var line = line()
        for byte in "read nordic-uart-".utf8 { #expect(line.take(byte) == .typing) }
        #expect(line.take(0x09) == .offers(["nordic-uart-rx", "nordic-uart-tx"]))
        #expect(line.drawn(columns: 40).hasSuffix("read nordic-uart-"))
    }

    /// What an operation cannot be performed on is no offer. The belt of the tests of `browse` has one of each kind.
    @Test(arguments: [
        ("read", ["device-name", "body-sensor-location", "battery-level"]),
        ("write", ["heart-rate-control-point", "nordic-uart-rx", "fff1"]),
        ("notify", ["heart-rate-measurement", "battery-level", "fff1"]),
        ("stop", ["heart-rate-measurement", "battery-level", "fff1"]), ("wait", ["--for"]), ("explore", []),
        ("write fff1", []), ("wait 5 --for", []),
    ])
    func whatIsOfferedFits(_ words: String, _ offers: [String]) {
        let words = words.split(separator: " ").map(String.init)
        #expect(TalkOperation.completions(after: words, in: Browsed.belt) == offers)
    }

    @Test func anOperationIsOfferedFirst() {
        #expect(TalkOperation.completions(after: [], in: GATTDatabase()) == TalkOperation.names)
    }

    @Test func aLineCanBeDropped() {
        var line = line()
        for byte in "read x\u{1B}".utf8 { _ = line.take(byte) }
        #expect(!line.isEmpty)
        line.drop()
        #expect(line.isEmpty && line.drawn(columns: 40).hasSuffix("uart> "))
        for byte in "[wait".utf8 { _ = line.take(byte) }
        #expect(line.take(0x0A) == .line(.whole("[wait")))
    }

    /// The beginning of what was pasted would be another operation.
    @Test(arguments: [4096, 4097, 10_000]) func aLineThatIsTooLongIsNotCut(_ count: Int) {
        var line = line()
        for _ in 0..<count { _ = line.take(0x61) }
        let result: InputLine =
            count > 4096 ? .tooLong("more than 4096 characters") : .whole(String(repeating: "a", count: count))
        #expect(line.take(0x0A) == .line(result))
        _ = line.take(0x62)
        #expect(line.take(0x0A) == .line(.whole("b")), "the rest of it is no line")
    }

    /// What is left of it is the beginning of another operation, until all of it is gone.
    @Test(arguments: [
        ("\u{7F}\u{7F}", true), ("\u{01}\u{04}\u{04}", true), ("\u{1B}[A\u{1B}[B\u{7F}\u{7F}", true),
        ("\u{1B}[A", false), ("\u{15}b", false), ("\u{17}b", false),
    ])
    func aLineThatWasTooLongIsNotTakenAfterDeleting(_ keys: String, _ isTooLong: Bool) {
        var line = line()
        for byte in "b\n".utf8 { _ = line.take(byte) }
        for _ in 0..<4098 { _ = line.take(0x61) }
        for byte in keys.utf8 { _ = line.take(byte) }
        #expect(line.take(0x0A) == .line(isTooLong ? .tooLong("more than 4096 characters") : .whole("b")))
        // Nothing was dropped of a line that had room.
        for _ in 0..<4097 { _ = line.take(0x61) }
        _ = line.take(0x7F)
        #expect(line.take(0x0A) == .line(.whole(String(repeating: "a", count: 4096))))
    }

    @Test func theEndIsAnEmptyLinesOnly() {
        var line = line()
        #expect(line.take(0x04) == .end)
        _ = line.take(0x61)
        #expect(line.take(0x04) == .typing)
    }

    /// A row that was wrapped could not be cleared.
    @Test(arguments: [10, 20, 40, 80], ["", "\u{01}", "\u{1B}[D\u{1B}[D\u{1B}[D"])
    func itStaysInOneRow(_ columns: Int, _ end: String) {
        for text in ["read 2a19", String(repeating: "0123456789", count: 20), String(repeating: "電池", count: 60)] {
            let shown = typed(text + end, columns: columns).shown
            let row = shown.replacing(/\u{1B}\[\d*[KD]|\r/, with: "")
            #expect(ScreenText.width(row) < columns)
        }
        #expect(typed("read" + end, columns: 40).shown.contains("uart> read"))
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
    func aValueHasTheBytesOfItsForm(_ words: [String], _ bytes: String) throws {
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

    /// It is neither a request for help nor one for objects or for UTC.
    @Test func aTextMayLookLikeAnOption() throws {
        #expect(try Self.bytes(["--text", "--help"]) == Array("--help".utf8))
        let write = ["write", "demo:uart", "0x0008", "--text"]
        for (words, isJSON) in [(["--json"], false), (["hi", "--json"], true), (["--text", "-j"], true)] {
            #expect(Console.isJSONWanted(by: (write + words)[...]) == isJSON, "\(words)")
        }
        for (words, isUTC) in [(["--utc"], false), (["hi", "--utc"], true), (["hi", "--", "--utc"], false)] {
            #expect(Timestamp.isUTCWanted(by: (write + words)[...]) == isUTC, "\(words)")
        }
        let operation = try TalkOperation("write 0x0008 --text hi --help")
        guard case .help? = operation else {
            Issue.record("an option after a text is one")
            return
        }
    }

    @Test(arguments: ["fff2", "fff2=", "=dd", "fff2=0", "tea=01", "fff2=zz"]) func afterNeedsBoth(_ text: String) {
        #expect(throws: BadValue.self) { try AfterArgument(argument: text) }
    }
}
