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

/// A live scan that prints, on a simulated radio: its output if nothing is received, and if its output is not read.
@Suite(.timeLimit(.minutes(10))) struct ScanReportTests {
    /// A pipe; the test decides when its content is read.
    private final class Reader: Sendable {
        let reading: Int32
        let writing: Int32
        private let isOpen = Lock((reading: true, writing: true))

        init() {
            var ends: [Int32] = [-1, -1]
            _ = unsafe pipe(&ends)
            (reading, writing) = (ends[0], ends[1])
        }

        deinit {
            leave()
            disconnect()
        }

        /// Whether a writer would have to wait.
        var isFull: Bool {
            var state = pollfd(fd: writing, events: Int16(POLLOUT), revents: 0)
            return unsafe poll(&state, 1, 0) == 0
        }

        func leave() { if isOpen.withLock({ exchange(&$0.reading) }) { close(reading) } }
        func disconnect() { if isOpen.withLock({ exchange(&$0.writing) }) { close(writing) } }

        private func exchange(_ flag: inout Bool) -> Bool {
            defer { flag = false }
            return flag
        }

        /// Returns everything that the pipe holds now.
        func objects() throws -> [[String: Any]] {
            _ = fcntl(reading, F_SETFL, O_NONBLOCK)
            var data: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while case let count = unsafe read(reading, &buffer, buffer.count), count > 0 {
                data += buffer.prefix(count)
            }
            return try data.split(separator: 0x0A).compactMap {
                try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any]
            }
        }
    }

    private final class Notes: Sendable {
        private let lines = Lock<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func take(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private func report(
        _ central: Central, to output: LineOutput, _ notes: Notes, each verbosity: Verbosity = .device,
        limit: Int? = nil, recovery: RecoveryChoice? = nil
    ) -> ScanReport {
        ScanReport(
            central, adapter: "hci0",
            lines: ScanLines(format: .json, scanner: "attic", each: verbosity), limit: limit,
            recovery: recovery, to: output, note: notes.take)
    }

    @Test func theHeartContinuesBeatingInSilence() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let central = Central(radio: VirtualRadio(time: time))
            let report = report(central, to: LineOutput(reader.writing), notes)
            let end = try await report.run(
                central.scan(.any, .balanced, duration: .seconds(200)), heartbeat: .seconds(30))
            #expect(end == ScanEnd(reason: .timeIsOver, heard: 0))
        }
        let beats = try reader.objects()
        #expect(beats.map { $0["event"] as? String } == Array(repeating: "heartbeat", count: 6))
        #expect(beats.map { $0["uptimeSeconds"] as? Int } == [30, 60, 90, 120, 150, 180])
        #expect(beats.map { $0["seq"] as? Int } == [1, 2, 3, 4, 5, 6])
        #expect(
            beats.allSatisfy { $0["packets"] as? Int == 0 && $0["devices"] as? Int == 0 && $0["lines"] as? Int == 0 })
        // After 90 s of silence the library restarts the scan. The third and the last beat come at the time of a
        // restart, in either order.
        let restarts = beats.compactMap { $0["restarts"] as? Int }
        #expect(restarts == restarts.sorted())
        #expect(restarts.prefix(2) == [0, 0] && restarts.dropFirst(3).prefix(2) == [1, 1])
        #expect((1...2).contains(restarts.last ?? 0))
        #expect(notes.all.first == "hci0 has heard nothing for 90 s; the scan was started again")
    }

    /// Where much was heard in the last minutes, silence is noticed sooner.
    @Test func theTimeOfASilenceIsNamed() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let report = report(central, to: LineOutput(reader.writing), notes)
            let leaving = time.task {
                try await time.clock.sleep(for: .seconds(700))
                await radio.remove(belt)
            }
            _ = try await report.run(
                central.scan(.any, .balanced, duration: .seconds(755)), heartbeat: nil)
            try await leaving.value
        }
        #expect(notes.all == ["hci0 has heard nothing for 30 s; the scan was started again"])
    }

    private func recovering(_ policy: RecoveryPolicy, _ radio: VirtualRadio) async -> Central {
        await radio.setPersonality(.raspberryPiGoneDeaf)
        await radio.setPermissions([.commands, .administration])
        await radio.add(.heartRate)
        var configuration = Configuration()
        configuration.recovery = policy
        return Central(configuration, radio: radio)
    }

    /// The scan goes on while a step has the adapter off.
    @Test(.row("W29")) func eachStepOfRecoveryIsALineAndAnObject() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let central = await recovering(.power, VirtualRadio(time: time))
            let report = report(central, to: LineOutput(reader.writing), notes, recovery: .power)
            // Long enough for one run of steps, and too short for a second one.
            let end = try await report.run(
                central.scan(.any, .balanced, duration: .seconds(200)), heartbeat: nil)
            #expect(end.reason == .timeIsOver)
        }
        let steps = notes.all.filter { $0.hasPrefix("hci0: recovery step ") }
        #expect(
            steps == [
                "hci0: recovery step event-masks begins, because nothing was heard for 90 s",
                "hci0: recovery step power begins, because nothing was heard for 90 s",
            ])
        #expect(notes.all.contains("hci0 has heard nothing for 90 s; the scan was started again"))
        #expect(notes.all.contains("hci0 went down or away; the scan continues when it is back"))
        #expect(notes.all.contains("hci0 is back; the scan continues"))
        #expect(notes.all.contains { $0.hasPrefix("hci0 works again after recovery step power, ") })
        let events = try reader.objects().filter { ($0["event"] as? String)?.hasPrefix("recover") == true }
        #expect(
            events.compactMap { $0["event"] as? String } == [
                "recoveryBegan", "recoveryBegan", "recoveryBegan", "recovered",
            ])
        #expect(events.compactMap { $0["step"] as? String } == ["rescan", "event-masks", "power", "power"])
        #expect(events.prefix(3).allSatisfy { $0["because"] as? String == "silence" })
        #expect(events.prefix(3).allSatisfy { $0["silenceSeconds"] as? Int == 90 })
        #expect(events.allSatisfy { $0["v"] as? Int == 1 && $0["adapter"] as? String == "hci0" })
    }

    /// What was not asked for is not printed, so that readers of the lines meet no new ones.
    @Test func withoutTheOptionStepsAreNotReported() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let central = await recovering(.rescan, VirtualRadio(time: time))
            let report = report(central, to: LineOutput(reader.writing), notes)
            _ = try await report.run(
                central.scan(.any, .balanced, duration: .seconds(150)), heartbeat: nil)
        }
        #expect(notes.all == ["hci0 has heard nothing for 90 s; the scan was started again"])
        #expect(try reader.objects().compactMap { $0["event"] as? String } == ["found"])
    }

    /// Nothing is done, and nothing is claimed to have been done.
    @Test func silenceAloneIsReportedWhereNothingIsToBeDone() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let central = await recovering(.none, VirtualRadio(time: time))
            let report = report(central, to: LineOutput(reader.writing), notes, recovery: .nothing)
            _ = try await report.run(
                central.scan(.any, .balanced, duration: .seconds(150)), heartbeat: .seconds(140))
        }
        #expect(notes.all == ["hci0 has heard nothing for 90 s"])
        let beats = try reader.objects().filter { $0["event"] as? String == "heartbeat" }
        #expect(beats.map { $0["restarts"] as? Int } == [0])
    }

    /// A step that would end links of this program is for programs that wait for the adapter.
    @Test(arguments: [nil, .rescan, .power] as [RecoveryChoice?])
    func anAdapterThatIsSwitchedOffEndsTheScanUnlessItMayReturn(choice: RecoveryChoice?) async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let report = report(central, to: LineOutput(reader.writing), notes, recovery: choice)
            let switching = time.task {
                try await time.clock.sleep(for: .seconds(10))
                await radio.powerOff()
            }
            do {
                let end = try await report.run(
                    central.scan(.any, .balanced, duration: .seconds(60)), heartbeat: nil)
                #expect(choice == .power && end.reason == .timeIsOver)
            } catch let failure as Failure {
                #expect(choice != .power && failure.status == .noAdapter)
            }
            try await switching.value
        }
    }

    /// Tables and lines for users have none: they read standard error.
    @Test func eventsOfRecoveryHaveALineForUsersAndAnObjectForPrograms() throws {
        let silence = RecoveryPolicy.Reason.silence(.seconds(90))
        let lines: [(RecoveryEvent, String)] = [
            (
                .exhausted(because: silence, next: .seconds(60)),
                "hci0: no permitted recovery step has helped: nothing was heard for 90 s; the next run begins in 60 s"
            ),
            (
                .exhausted(because: .scanRefused(.seconds(121)), next: nil),
                "hci0: no permitted recovery step has helped: the controller has refused to scan for 121 s; "
                    + "permit more by --recover, or unplug the adapter and plug it in again"
            ),
            (
                .exhausted(because: .scanRefusedWhileAdvertising(.seconds(121)), next: nil),
                "hci0 cannot scan while it advertises: the controller has refused that for 121 s; "
                    + "end the advertisements, or use another adapter"
            ),
            (
                .began(.power, because: .commandTimeouts(3)),
                "hci0: recovery step power begins, because 3 commands had no response"
            ),
            (
                .recovered(by: nil, after: .seconds(31)),
                "hci0 works again by itself, 31 s after the trouble was noticed"
            ),
            (.dropped(2), "hci0: 2 events of recovery dropped"),
        ]
        for (event, line) in lines { #expect(event.line("hci0") == line) }
        let event = RecoveryEvent.exhausted(because: .scanRefused(.seconds(121)), next: nil)
        var objects = ScanLines(format: .json, scanner: "attic")
        let line = objects.line(of: event, adapter: "hci0", at: .zero)
        let bytes = try #require(line)
        let object = String(decoding: bytes, as: UTF8.self)
        #expect(
            object.hasSuffix(
                #""event":"recoveryExhausted","scanner":"attic","adapter":"hci0","seq":1,"dropped":0,"#
                    + #""because":"scanRefused","refusedSeconds":121,"nextSeconds":null}"#))
        for format in [LineFormat.plain, .csv, .theengs] {
            var others = ScanLines(format: format, scanner: "attic")
            let other = others.line(of: event, adapter: "hci0", at: .zero)
            #expect(other == nil)
        }
    }

    @Test func theOptionHasTheNamesOfTheLibrary() throws {
        let names = RecoveryChoice.allCases.map(\.rawValue)
        #expect(names == ["none", "rescan", "power", "usb"])
        let limits: [RecoveryPolicy.Limit] = [.none, .rescan, .power, .usb]
        #expect(RecoveryChoice.allCases.map(\.policy.limit) == limits)
        // A step that switches the adapter on needs the right to do it at any time.
        #expect(try Scan.parse(["--recover", "power"]).keptForRadio == [.netRaw, .netAdmin])
        #expect(try Scan.parse(["--recover", "rescan"]).keptForRadio == [.netRaw])
        #expect(try Scan.parse([]).keptForRadio == [.netRaw])
        #expect(throws: (any Error).self) { _ = try Scan.parse(["--recover", "reset"]) }
    }

    @Test func theHeartCountsWhatIsHeard() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            await radio.add(.battery)
            let central = Central(radio: radio)
            let report = report(central, to: LineOutput(reader.writing), notes)
            let leaving = time.task {
                try await time.clock.sleep(for: .seconds(15))
                await radio.remove(belt)
            }
            let end = try await report.run(
                central.scan(.any, .balanced, duration: .seconds(35)), heartbeat: .seconds(10))
            #expect(end == ScanEnd(reason: .timeIsOver, heard: 2))
            try await leaving.value
        }
        let objects = try reader.objects()
        let beats = objects.filter { $0["event"] as? String == "heartbeat" }
        #expect(objects.filter { $0["event"] as? String == "found" }.count == 2)
        #expect(beats.map { $0["devices"] as? Int } == [2, 2, 1])
        #expect(beats.allSatisfy { $0["lines"] as? Int == 2 && $0["restarts"] as? Int == 0 })
        let packets = beats.compactMap { $0["packets"] as? Int }
        #expect(packets.count == 3 && packets == packets.sorted() && (packets.first ?? 0) > 10)
        #expect(objects.compactMap { $0["seq"] as? Int } == Array(1..<objects.count + 1))
        #expect(notes.all.isEmpty)
    }

    /// A scan that ends before its time does not report that nothing was received.
    @Test(arguments: [true, false]) func aScanThatEndsEarlyDoesNotReportSilence(_ isReaderGone: Bool) async throws {
        signal(SIGPIPE, SIG_IGN)
        let (reader, notes) = (Reader(), Notes())
        if isReaderGone { reader.leave() }
        try await VirtualTime.run { time in
            let central = Central(radio: VirtualRadio(time: time))
            let report = report(central, to: LineOutput(reader.writing), notes)
            let task = time.task {
                try await report.run(
                    central.scan(.any, .balanced, duration: .seconds(60)), heartbeat: .seconds(10))
            }
            try await time.clock.sleep(for: .seconds(15))
            if !isReaderGone { task.cancel() }
            #expect(try await task.value == ScanEnd(reason: .nothingIsWanted, heard: 0))
        }
    }

    @Test func enoughIsEnough() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            let central = Central(radio: radio)
            let report = report(central, to: LineOutput(reader.writing), notes, each: .packet, limit: 3)
            let scan = central.scan(.any, .balanced.duplicates(.all))
            let end = try await report.run(scan, heartbeat: .seconds(60))
            #expect(end == ScanEnd(reason: .nothingIsWanted, heard: 3))
            // After this the program ends; a scan that it has not switched off stays on.
            #expect(await !radio.isScanning())
        }
        #expect(try reader.objects().count == 3)
    }

    @Test func timesAreThoseOfHearing() {
        let now = TimeOfDay.time(of: .zero, now: .zero)
        let before = TimeOfDay.time(of: .zero, now: BootInstant(nanoseconds: 5_000_000_000))
        #expect((now - before - .seconds(5) < .seconds(30)) && (now - before > .seconds(4)))
    }

    // MARK: Readers that are slow, or gone

    /// Many devices that advertise every millisecond, and a scan that prints each packet; `body` is called when the
    /// output is no longer read and the pipe is full.
    private func flood(
        _ reader: Reader, _ notes: Notes,
        _ body: (Central, Task<ScanEnd, any Error>, LineOutput) async throws -> Void
    ) async throws {
        let radio = VirtualRadio()
        for _ in 0..<10 {
            let peripheral = await radio.add(.heartRate)
            await radio.advertise(peripheral, VirtualAdvertisement([2, 1, 6], interval: .milliseconds(1)))
        }
        let central = Central(radio: radio)
        let output = LineOutput(reader.writing)
        let report = report(central, to: output, notes, each: .packet)
        let task = Task {
            try await withTaskCancellationHandler {
                try await report.run(
                    central.scan(.any, .balanced.duplicates(.all), capacity: 32), heartbeat: nil)
            } onCancel: {
                output.giveUp()
            }
        }
        try await waited(for: "the pipe is full") { reader.isFull }
        try await body(central, task, output)
    }

    private func heard(_ central: Central) async -> Int { await central.scanStatistics(since: .zero).reports }

    @Test func theRadioDoesNotWaitForAReader() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await flood(reader, notes) { central, task, _ in
            // Many more than the pipe and the buffer hold are received all the same.
            let begin = await heard(central)
            while await heard(central) < begin + 2000 { try await central.clock.sleep(for: .milliseconds(5)) }
            var objects = try reader.objects()
            var dropped = 0
            while dropped <= 1500 {
                objects += try reader.objects()
                dropped = objects.last?["dropped"] as? Int ?? 0
                try await central.clock.sleep(for: .milliseconds(1))
            }
            // The printed lines have no gaps; the dropped ones are counted, which are nearly all that arrived
            // meanwhile.
            #expect(objects.compactMap { $0["seq"] as? Int } == Array(1..<objects.count + 1))
            task.cancel()
            reader.leave()
            _ = try await task.value
        }
        #expect(notes.all.first?.contains("because the reader is too slow") == true)
        #expect(notes.all.count < 5, "a flood of drops is no flood of words")
    }

    @Test func anEndNeedsNoReader() async throws {
        let (reader, notes) = (Reader(), Notes())
        try await flood(reader, notes) { _, task, _ in
            task.cancel()
            let end = try await task.value
            #expect(end.reason == .nothingIsWanted && end.heard > 10)
        }
    }

    @Test func aReaderThatLeavesEndsTheScan() async throws {
        // The program does this first.
        signal(SIGPIPE, SIG_IGN)
        let (reader, notes) = (Reader(), Notes())
        try await flood(reader, notes) { _, task, _ in
            reader.leave()
            let end = try await task.value
            #expect(end.reason == .nothingIsWanted && end.heard > 10)
        }
    }
}
