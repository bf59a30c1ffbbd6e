import ArgumentParser
import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Foundation
import Glibc
import Testing

@testable import blescan

/// `blescan serve` with bonds, on a virtual radio.
@Suite(.timeLimit(.minutes(5))) struct ServeTests {
    private static let measurement: BluetoothUUID = 0x2A37
    /// The first adapter of a virtual radio.
    private static let adapter = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    @Test func theSubscriptionOfABondedCentralSurvivesARestart() async throws {
        let folder = try TestFolder()
        let directory = folder["bonds"]
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let phone = await radio.addCentral()
            try await Self.bondAndSubscribe(phone, in: directory, radio, time)
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(names.sorted() == [".bonds", ".clients", ".clients-lock", ".lock"].map { "00AA01000042" + $0 })
            for _ in 0..<2 {
                try await Self.run(directory, radio, time) {
                    try await phone.connect()
                    await radio.encrypt(phone)
                    _ = try await phone.nextValue()
                    await phone.disconnect()
                }
            }
        }
    }

    @Test(arguments: [[], ["--json"]])
    func aNameOrAPathCannotControlTheTerminal(_ options: [String]) async throws {
        let folder = try TestFolder()
        try "name \u{1B}[31mEVIL\nservice 180f\n".write(
            toFile: folder["device.txt"], atomically: true, encoding: .utf8)
        let devices = [[folder["device.txt"]], ["demo:battery", "--name", "\u{1B}[31mEVIL"]]
        for device in devices {
            let outcome = try await BuiltProgram.run(
                ["serve"] + device + ["--socket", folder["s\u{1B}[2J"], "--for", "1ms"] + options)
            #expect(outcome.status == 0)
            #expect(
                outcome.errors
                    == #"serving: \u{1b}[31mEVIL on unix:\#(folder.path)/s\u{1b}[2J; ^C ends it"# + "\n")
        }
    }

    /// A symbolic link is not followed.
    @Test func whereTheFileCannotBeWrittenOnlyTheSubscriptionsAreLost() async throws {
        let folder = try TestFolder()
        let directory = folder["bonds"]
        _ = try BondStore(directory: directory)
        try FileManager.default.createSymbolicLink(
            atPath: directory + "/00AA01000042.clients-lock", withDestinationPath: "elsewhere")
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let phone = await radio.addCentral()
            try await Self.bondAndSubscribe(phone, in: directory, radio, time)
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(names.sorted() == [".bonds", ".clients-lock", ".lock"].map { "00AA01000042" + $0 })
        }
    }

    @Test func onlyCentralsWithBondsHaveSubscriptionsThatAreKept() throws {
        let adapters = [UInt16(0), 1].map { index in
            AdapterDescription(
                ControllerInfo(
                    index: index, name: "hci\(index)", address: BluetoothAddress(rawValue: 1 + UInt64(index)),
                    isUp: true),
                isBlocked: false)
        }
        func store(_ arguments: String...) throws -> StateStore? {
            try Serve.parse(["demo:heart-rate"] + arguments).subscriptionStore(of: adapters)
        }
        #expect(try store() == nil)
        #expect(try store("--bonds", "/b")?.clientsPath == "/b/000000000001.clients")
        #expect(
            try store("--pairing", "show", "--bonds", "/b", "--adapter", "hci1")?.clientsPath
                == "/b/000000000002.clients")
        #expect(try store("--bonds", "/b", "--adapter", "hci2") == nil)
    }

    @Test func aNameThatNoCentralCouldReadWholeIsRefused() throws {
        _ = try Serve.parse(["demo:battery", "--name", String(repeating: "n", count: 248)])
        #expect(throws: (any Error).self) {
            try Serve.parse(["demo:battery", "--name", String(repeating: "n", count: 249)])
        }
        #expect(throws: (any Error).self) { try Serve.parse(["demo:battery", "--name", ""]) }
    }

    /// The next value of a plan comes after an interval, however many have subscribed.
    @Test func eachSubscriberReceivesEachValue() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let lines = ["service fff0", "characteristic fff1 notify"].map(InputLine.whole)
            var device = try ServedDevice(declaration: lines, file: "device.txt")
            device.plans = [
                ServedDevice.Plan(
                    service: 0xFFF0, characteristic: 0xFFF1, values: [[1], [2]], interval: .seconds(1))
            ]
            let command = try Serve.parse(["device.txt", "--for", "60s", "--json"])
            let central = Central(radio: radio)
            let serving = time.task { [device] in
                try await command.serve(
                    device, on: central, ServedRequests(), keepingSubscriptionsIn: nil, notingTo: ServedNotes())
            }
            let phones = [await radio.addCentral(), await radio.addCentral()]
            for phone in phones {
                try await phone.connect()
                try await phone.subscribe(to: 0xFFF1)
            }
            for phone in phones {
                var values: [UInt8] = []
                while values.count < 6 { values += try await phone.nextValue().bytes }
                #expect(values == [1, 2, 1, 2, 1, 2] || values == [2, 1, 2, 1, 2, 1])
            }
            try await serving.value
        }
    }

    private enum Stream {
        case results, messages
    }

    /// Serves one characteristic for a time, with lines for a pipe that nobody reads, to a central that has connected.
    ///
    /// - Parameters:
    ///   - characteristic: Its declaration.
    ///   - options: Those of the command.
    ///   - stream: What goes to the pipe. The rest is not kept.
    /// - Returns: What the pipe holds then.
    private static func linesThatNobodyReads(
        _ characteristic: String, _ options: [String], of stream: Stream = .results,
        _ body: @escaping @Sendable (VirtualCentral, AttributeHandle) async throws -> Void
    ) async throws -> Data {
        var ends: [Int32] = [-1, -1]
        _ = unsafe pipe(&ends)
        let (reading, writing) = (ends[0], ends[1])
        let null = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer {
            for descriptor in [reading, writing, null] { close(descriptor) }
        }
        let (results, messages) = stream == .results ? (writing, null) : (null, writing)
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let lines = ["service fff0", "characteristic \(characteristic)"].map(InputLine.whole)
            let device = try ServedDevice(declaration: lines, file: "device.txt")
            let command = try Serve.parse(["device.txt", "--json"] + options)
            let (output, notes) = (LineOutput(results), ServedNotes(to: LineOutput(messages)))
            let central = Central(try command.centralConfiguration(tracingTo: notes), radio: radio)
            let noting = Task { await notes.write() }
            let serving = time.task {
                try await command.serve(
                    device, on: central, ServedRequests(), keepingSubscriptionsIn: nil, printingTo: output,
                    notingTo: notes)
            }
            let phone = await radio.addCentral()
            try await phone.connect()
            try await body(phone, try await phone.characteristic(0xFFF1).value)
            // It ends though the reader has taken nothing.
            try await serving.value
            notes.finish()
            await noting.value
        }
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        var printed = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = unsafe read(reading, &buffer, buffer.count), count > 0 {
            printed.append(contentsOf: buffer.prefix(count))
        }
        return printed
    }

    /// Has a central subscribe and end that, a thousand times.
    private static func subscribeOften(_ phone: VirtualCentral, _ value: AttributeHandle) async throws {
        let handle = value + 1
        let head: [UInt8] = [0x12, UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
        for _ in 0..<1_000 {
            let responses = [
                try await phone.request(head + [1, 0]), try await phone.request(head + [0, 0]),
            ]
            #expect(responses == [[0x13], [0x13]])
        }
    }

    /// Such as a pager that shows its first page. A line has more than 100 bytes, and the pipe holds 64 KiB.
    @Test func aReaderThatHasStoppedHoldsUpNoCentral() async throws {
        _ = try await Self.linesThatNobodyReads("fff1 notify", ["--for", "2h"]) { phone, value in
            try await Self.subscribeOften(phone, value)
        }
    }

    /// Such as a terminal after ^S. The lines of a request and its response have more than 100 bytes.
    @Test func aReaderOfMessagesThatHasStoppedHoldsUpNoCentral() async throws {
        let printed = try await Self.linesThatNobodyReads(
            "fff1 notify", ["--for", "2h", "--trace"], of: .messages
        ) { phone, value in
            try await Self.subscribeOften(phone, value)
        }
        #expect(String(decoding: printed, as: UTF8.self).contains("Write Request (0x12)"))
    }

    @Test func theMessagesOfATraceAreADialogue() async throws {
        let printed = try await Self.linesThatNobodyReads(
            "fff1 read", ["--for", "60s", "--trace"], of: .messages
        ) { phone, value in
            _ = try await phone.request([0x0A, UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)])
        }
        let text = String(decoding: printed, as: UTF8.self)
        let dialogue = try Dialogue(text)
        #expect(dialogue.header("serving")?.hasSuffix(" on the adapter; ^C ends it") == true, "\(text)")
        #expect(!dialogue.steps.isEmpty)
    }

    /// The database has the last one by the time that the first is printed.
    @Test func eachValueOfABurstOfCommandsIsPrinted() async throws {
        let printed = try await Self.linesThatNobodyReads(
            "fff1 write-without-response", ["--for", "60s"]
        ) { phone, handle in
            for value in 1...5 as ClosedRange<UInt8> { await phone.command([value], at: handle) }
        }
        let objects = try printed.split(separator: 0x0A).map {
            try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any]
        }
        let written = objects.filter { $0?["event"] as? String == "written" }
        #expect(written.map { $0?["hex"] as? String } == ["01", "02", "03", "04", "05"])
    }

    private func isEndByThisProgram(_ line: Substring?) -> Bool {
        line.map { $0.contains("disconnected") && $0.contains("this program ended the link") } ?? false
    }

    @Test(arguments: [[], ["--json"]]) func theEndOfALinkIsPrintedAfterAnInterrupt(_ options: [String]) async throws {
        let folder = try TestFolder()
        let path = folder["socket"]
        let server = try RunningProgram(["serve", "demo:heart-rate", "--socket", path] + options)
        defer { server.signal(SIGKILL) }
        try await waited(for: "it serves") { FileManager.default.fileExists(atPath: path) }
        let client = try RunningProgram(["notify", "unix:\(path)", "2a37"])
        defer { client.signal(SIGKILL) }
        try await server.printed("subscribed")
        server.signal(SIGINT)
        let outcome = try await server.outcome()
        #expect(isEndByThisProgram(outcome.output.split(separator: "\n").last), "\(outcome.output)")
    }

    @Test func theEndOfALinkIsPrintedWhenTheTimeIsOver() async throws {
        let printed = try await Self.linesThatNobodyReads("fff1 notify", ["--for", "60s"]) { _, _ in }
        let text = String(decoding: printed, as: UTF8.self)
        #expect(isEndByThisProgram(text.split(separator: "\n").last), "\(text)")
    }

    /// The value of 2A01 is that of the virtual device: Heart Rate Belt.
    @Test func aVirtualDeviceHasItsAppearance() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let command = try Serve.parse(["demo:heart-rate", "--for", "60s", "--json"])
            let central = Central(radio: radio)
            let serving = time.task {
                try await command.serve(
                    ServedDevice(.heartRate), on: central, ServedRequests(), keepingSubscriptionsIn: nil,
                    notingTo: ServedNotes())
            }
            let phone = await radio.addCentral()
            try await phone.connect()
            #expect(try await phone.read(0x2A01) == [0x41, 0x03])
            try await serving.value
        }
    }

    private static let receive: BluetoothUUID = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
    private static let send: BluetoothUUID = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"

    /// To the central that has written it alone, with and without a response, in order; a long one in several values.
    @Test func aSerialLineSendsBackWhatIsWritten() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let command = try Serve.parse(["demo:uart", "--for", "60s", "--json"])
            let central = Central(radio: radio)
            let serving = time.task {
                try await command.serve(
                    ServedDevice(.uart), on: central, ServedRequests(), keepingSubscriptionsIn: nil,
                    notingTo: ServedNotes())
            }
            let phones = [await radio.addCentral(), await radio.addCentral()]
            for phone in phones {
                try await phone.connect()
                // Without a subscription nothing comes.
                try await phone.write([0x00], to: Self.receive)
                try await time.clock.sleep(for: .seconds(1))
                try await phone.subscribe(to: Self.send)
            }
            let handle = try await phones[0].characteristic(Self.receive).value
            try await phones[0].write([0x68, 0x69], to: Self.receive)
            await phones[0].command([0x21], at: handle)
            try await phones[0].write(Array(1...30 as ClosedRange<UInt8>), to: Self.receive)
            var values: [[UInt8]] = []
            for _ in 0..<4 { values.append(try await phones[0].nextValue().bytes) }
            // 23 bytes of the usual MTU, of which three are no value.
            #expect(
                values == [
                    [0x68, 0x69], [0x21], Array(1...20 as ClosedRange<UInt8>), Array(21...30 as ClosedRange<UInt8>),
                ])
            try await time.clock.sleep(for: .seconds(1))
            #expect(await phones[0].unreadValues.isEmpty)
            #expect(await phones[1].unreadValues.isEmpty)
            try await serving.value
        }
    }

    /// A part that is written alone continues the value, as of the virtual device itself, and leaves no gap.
    @Test func aSerialLineTakesPartsOfValues() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let command = try Serve.parse(["demo:uart", "--for", "60s", "--json"])
            let central = Central(radio: radio)
            let serving = time.task {
                try await command.serve(
                    ServedDevice(.uart), on: central, ServedRequests(), keepingSubscriptionsIn: nil,
                    notingTo: ServedNotes())
            }
            let phone = await radio.addCentral()
            try await phone.connect()
            let handle = try await phone.characteristic(Self.receive).value
            try await phone.subscribe(to: Self.send)
            try await phone.write([0x68, 0x69], at: handle)
            try await phone.prepare([0x21], at: handle, from: 2)
            try await phone.execute()
            try await phone.prepare([0x21], at: handle, from: 4)
            await #expect(throws: VirtualCentralError.refused(opcode: 0x18, handle: handle, code: .invalidOffset)) {
                try await phone.execute()
            }
            var values: [[UInt8]] = []
            for _ in 0..<2 { values.append(try await phone.nextValue().bytes) }
            #expect(values == [[0x68, 0x69], [0x68, 0x69, 0x21]])
            try await time.clock.sleep(for: .seconds(1))
            #expect(await phone.unreadValues.isEmpty)
            try await serving.value
        }
    }

    /// A newcomer's first session: what is written comes back, and each write is printed once.
    @Test func talkGetsAnEcho() async throws {
        let folder = try TestFolder()
        let path = folder["socket"]
        let server = try RunningProgram(["serve", "demo:uart", "--socket", path, "--json"])
        defer { server.signal(SIGKILL) }
        try await waited(for: "it serves") { FileManager.default.fileExists(atPath: path) }
        let client = try await BuiltProgram.run([
            "talk", "unix:\(path)", "notify nordic-uart-tx", "write nordic-uart-rx --text hi",
            "write nordic-uart-rx --text ho --without-response", "wait 2", "--json",
        ])
        #expect(client.status == 0, "\(client.errors)")
        let values = try client.objects().filter { $0["event"] as? String == "notification" }
        #expect(values.map { $0["hex"] as? String } == ["6869", "686f"])
        try await server.printed("disconnected")
        server.signal(SIGINT)
        let written = try await server.outcome().objects().filter { $0["event"] as? String == "written" }
        #expect(written.map { $0["hex"] as? String } == ["6869", "686f"])
    }

    @Test(arguments: [[], ["--json"]]) func aFullDiskEndsItWithAHint(_ options: [String]) async throws {
        let folder = try TestFolder()
        let path = folder["socket"]
        let server = try RunningProgram(
            ["serve", "demo:battery", "--socket", path] + options, output: .file("/dev/full"))
        try await waited(for: "it serves") { FileManager.default.fileExists(atPath: path) }
        _ = try await BuiltProgram.run(["explore", "unix:\(path)"])
        let outcome = try await server.outcome()
        #expect(outcome.status == 74)
        let hint = "Make room there, or write to another disk."
        let end = options.isEmpty ? "\nhint: \(hint)\n" : #""code":"notWritten","status":74}"# + "\n"
        #expect(outcome.errors.hasSuffix(end) && outcome.errors.contains(hint), "\(outcome.errors)")
    }

    @Test func aFileThatIsNoSocketStays() async throws {
        let folder = try TestFolder()
        try Data("precious".utf8).write(to: URL(fileURLWithPath: folder["file"]))
        let outcome = try await BuiltProgram.run(["serve", "demo:battery", "--socket", folder["file"]])
        #expect(
            outcome.status == 64 && outcome.errors.contains("a file that is no socket is there"), "\(outcome.errors)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder["file"])) == Data("precious".utf8))
    }

    @Test func aSocketNeedsItsDirectory() async throws {
        let outcome = try await BuiltProgram.run(["serve", "demo:battery", "--socket", "/nowhere/belt"])
        #expect(outcome.status == 64 && outcome.errors.contains("there is no such directory"), "\(outcome.errors)")
        #expect(outcome.errors.contains("\nhint: Create the directory, or name another path."), "\(outcome.errors)")
    }

    @Test func aDirectoryIsNoSocket() async throws {
        let folder = try TestFolder()
        let outcome = try await BuiltProgram.run(["serve", "demo:battery", "--socket", folder.path])
        #expect(outcome.status == 64 && outcome.errors.contains("it is a directory"), "\(outcome.errors)")
    }

    /// A run in which the central is bonded and subscribes, until it disconnects.
    private static func bondAndSubscribe(
        _ phone: VirtualCentral, in directory: String, _ radio: VirtualRadio, _ time: VirtualTime
    ) async throws {
        try await run(directory, radio, time) {
            try await phone.connect()
            await radio.pair(phone, VirtualSecurity())
            try await time.clock.sleep(for: .seconds(1))
            try await phone.subscribe(to: measurement)
            _ = try await phone.nextValue()
            await phone.disconnect()
        }
    }

    /// A run of the command, which ends after the body.
    private static func run(
        _ directory: String, _ radio: VirtualRadio, _ time: VirtualTime, _ body: () async throws -> Void
    ) async throws {
        let command = try Serve.parse(
            ["demo:heart-rate", "--pairing", "just-works", "--bonds", directory, "--for", "60s", "--json"])
        var configuration = Configuration()
        configuration.security = SecurityConfiguration(bonds: try BondStore(directory: directory))
        let central = Central(configuration, radio: radio)
        let store = BondDirectory(directory).subscriptionStore(of: adapter)
        let device = ServedDevice(.heartRate)
        let serving = time.task {
            try await command.serve(
                device, on: central, ServedRequests(), keepingSubscriptionsIn: store, notingTo: ServedNotes())
        }
        try await body()
        try await serving.value
    }
}
