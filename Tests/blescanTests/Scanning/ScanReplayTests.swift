import ArgumentParser
import Foundation
import Testing

@testable import blescan

/// `replay --as-scan`, the lines of a scan without a radio: each form, each filter, each way to reduce the output.
///
/// Fixtures/hci/recording/three_devices.py defines the devices of the recording.
@Suite(.timeLimit(.minutes(10))) struct ScanReplayTests {
    private let kitchen = "00:AA:02:00:00:0B"
    private let belt = "C3:5A:19:0B:7E:21"
    private let beacon = "5B:10:44:9D:2E:F6"

    private func scan(_ arguments: [String]) async throws -> Outcome {
        try await BuiltProgram.run(["replay", Fixtures.threeDevices, "--as-scan"] + arguments)
    }

    private func heard(_ arguments: [String]) async throws -> Set<String> {
        Set(try await scan(arguments + ["--json"]).objects().compactMap { $0["address"] as? String })
    }

    @Test func linesAreAsOnTheGoldenPage() async throws {
        let text = try await Golden.session([
            ["replay", Fixtures.threeDevices, "--as-scan"],
            ["replay", Fixtures.threeDevices, "--as-scan", "--json", "--scanner-id", "attic"],
            ["replay", Fixtures.threeDevices, "--as-scan", "--format", "theengs"],
            ["replay", Fixtures.threeDevices, "--as-scan", "--redact"],
            ["replay", Fixtures.threeDevices, "--as-scan", "--redact", "--json", "--each", "device"],
            ["replay", Fixtures.threeDevices, "--as-scan", "--name", "Nobody"],
        ])
        try Golden.expect(
            text.replacing(Fixtures.threeDevices, with: "three-devices.btsnoop"), matches: "scan-lines.txt")
    }

    @Test func timesAreThoseOfTheRecording() async throws {
        let times = try await scan(["--json"]).objects().compactMap { $0["t"] as? String }
        #expect(times.first == "2026-11-21T08:42:23.239Z")
        #expect(times == times.sorted())
    }

    /// Times for users are in their time zone; those in objects are not.
    @Test func timesAreLocal() async throws {
        func first(_ options: [String], _ zone: String) async throws -> String {
            let command = ["replay", Fixtures.threeDevices, "--as-scan", "--count", "1"] + options
            let outcome = try await BuiltProgram.run(command, environment: ["TZ": zone])
            return outcome.output.split(whereSeparator: { " \n".contains($0) }).first.map(String.init) ?? ""
        }
        #expect(try await first([], "IST-5:30") == "2026-11-21T14:12:23.239+05:30")
        #expect(try await first([], "NST3:30") == "2026-11-21T05:12:23.239-03:30")
        #expect(try await first([], "UTC0") == "2026-11-21T08:42:23.239Z")
        #expect(try await first(["--utc"], "IST-5:30") == "2026-11-21T08:42:23.239Z")
        #expect(try await first(["--json"], "IST-5:30").contains("2026-11-21T08:42:23.239Z"))
    }

    @Test func filtersLeaveOutDevicesThatDoNotMatch() async throws {
        #expect(try await heard([]) == [kitchen, belt, beacon])
        #expect(try await heard(["--service", "heart-rate"]) == [belt])
        #expect(try await heard(["--service", "180f", "--service", "181a"]) == [belt])
        #expect(try await heard(["--name", "Kit"]) == [kitchen])
        #expect(try await heard(["--name", "ITCH"]) == [kitchen])
        #expect(try await heard(["--name", "kitchens"]).isEmpty)
        #expect(try await heard(["--company", "004c"]) == [beacon])
        #expect(try await heard(["--company", "0006", "--company", "004C"]) == [beacon])
        #expect(try await heard(["--address", kitchen, "--address", beacon]) == [kitchen, beacon])
        #expect(try await heard(["--address", kitchen + "/random"]).isEmpty)
        #expect(try await heard(["--address", kitchen.lowercased() + "/public"]) == [kitchen])
        #expect(try await heard(["--min-rssi", "-70"]) == [kitchen, belt])
        #expect(try await heard(["--min-rssi", "-55"]) == [belt])
        // Conditions of different kinds must all hold.
        #expect(try await heard(["--name", "Virtual", "--min-rssi", "-45"]).isEmpty)
        #expect(try await heard(["--name", "Virtual", "--service", "heart-rate"]) == [belt])
    }

    /// With a filter or without one, none can match.
    @Test(arguments: [[], ["--name", "Kit"]])
    func aRecordingWithoutAdvertisementsIsNamedSo(_ filter: [String]) async throws {
        let folder = try TestFolder()
        try "< 0a 0300\n> 0b 01\n".write(toFile: folder["visit.dialogue"], atomically: true, encoding: .utf8)
        let path = folder["visit.dialogue"]
        let outcome = try await BuiltProgram.run(["replay", path, "--as-scan"] + filter)
        #expect(outcome.status == 1 && outcome.output.isEmpty)
        #expect(
            outcome.errors
                == "blescan: \(path) has no advertisements\nhint: `blescan replay \(path)` prints what it has.\n")
    }

    @Test func onlySensorsAreWanted() async throws {
        let folder = try TestFolder()
        var air = AirCapture()
        air.add("02010603030d180f18", from: belt, isRandom: true)
        air.add("1816cdfd8818072240342d5801041701ca0002016107027227", from: kitchen)
        air.add("1aff4c000215b9407f30f5f8466eaff925556b57fe6d00490001c5", from: beacon, isRandom: true)
        try air.write(to: folder["air.btsnoop"])
        let outcome = try await BuiltProgram.run(["replay", folder["air.btsnoop"], "--as-scan", "--sensors"])
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 1 && lines[0].contains(kitchen) && lines[0].contains("27.9 °C"), "\(outcome.output)")
        #expect(try await heard(["--sensors"]).isEmpty, "the fixture has none")
    }

    /// Its first measurement, which need not be in its first packet.
    @Test func aSensorHasOneLineOnRequest() async throws {
        let folder = try TestFolder()
        var air = AirCapture()
        air.add("020106", from: kitchen)
        air.add("1816cdfd8818072240342d5801041701ca0002016107027227", from: kitchen)
        air.add("1816cdfd8818072240342d5801042701ca0002016107027227", from: kitchen)
        air.add("02010603030d180f18", from: belt, isRandom: true)
        try air.write(to: folder["air.btsnoop"])
        let outcome = try await BuiltProgram.run(
            ["replay", folder["air.btsnoop"], "--as-scan", "--sensors", "--each", "device"])
        let lines = outcome.output.split(separator: "\n")
        #expect(outcome.status == 0 && lines.count == 1, "\(outcome.output)\(outcome.errors)")
        #expect(lines.first?.contains(kitchen) == true && lines.first?.contains("27.9 °C") == true)
        #expect(try Scan.parse(["--sensors", "--each", "device"]).filters.sensors)
    }

    /// The second report of the belt has new data, but none in these columns.
    @Test func csvHasALineForEachChangeOfItsColumns() async throws {
        for fields in ["address,name", "address,name,event"] {
            let outcome = try await scan(["--format", "csv", "--fields", fields])
            let rows = outcome.output.split(separator: "\n").dropFirst().map {
                $0.split(separator: ",", omittingEmptySubsequences: false).prefix(2).joined(separator: ",")
            }
            #expect(rows == [kitchen + ",", kitchen + ",Kitchen", belt + ",Virtual HRM", beacon + ","])
        }
    }

    @Test func csvLeavesNothingOutWhereEveryPacketIsWanted() async throws {
        func rows(_ arguments: [String]) async throws -> Int {
            try await scan(["--format", "csv"] + arguments).output.split(separator: "\n").count - 1
        }
        let packets = try await scan(["--json", "--each", "packet"])
        #expect(try await rows(["--fields", "address", "--each", "packet"]) == packets.objects().count)
        #expect(try await rows(["--fields", "address"]) == 3)
        #expect(try await rows(["--fields", "address,rssi"]) == 3, "no signal strength changes")
    }

    @Test func theOptionEachDecidesHowMuchIsReported() async throws {
        func lines(_ arguments: [String]) async throws -> [String] {
            try await scan(["--json", "--address", kitchen] + arguments).objects().compactMap { $0["event"] as? String }
        }
        #expect(try await lines(["--each", "device"]) == ["found"])
        // The scan response with the name follows.
        #expect(try await lines([]) == ["found", "updated"])
        #expect(try await lines(["--each", "change"]) == ["found", "updated"])
        let packets = try await lines(["--each", "packet"])
        #expect(packets.count > 5 && packets.dropFirst().allSatisfy { $0 == "updated" })
        #expect(try await lines(["--each", "packet", "--count", "3"]).count == 3)
    }

    @Test func numbersHaveNoGaps() async throws {
        let objects = try await scan(["--json", "--each", "packet", "--scanner-id", "att\u{7}ic\u{202E}"]).objects()
        #expect(objects.compactMap { $0["seq"] as? Int } == Array(1..<objects.count + 1))
        #expect(objects.allSatisfy { $0["dropped"] as? Int == 0 && $0["adapter"] as? String == "hci0" })
        #expect(objects.allSatisfy { $0["scanner"] as? String == "attic" })
        let named = try await scan(["--json", "--count", "1"]).objects().first?["scanner"] as? String
        #expect(try named == Self.hostName())
    }

    /// Returns the name that the kernel reports.
    private static func hostName() throws -> String {
        try String(contentsOfFile: "/proc/sys/kernel/hostname", encoding: .utf8).trimmingCharacters(in: .newlines)
    }

    /// Standard input may never end.
    @Test func enoughIsEnough() async throws {
        let folder = try TestFolder()
        let script =
            #"{ cat "$1"; exec tail -f /dev/null; } | { "$0" replay - --as-scan --count 1 >"$2"; echo $? >"$3"; kill 0; }"#
        let program = try RunningProgram(
            [
                "setsid", "sh", "-c", script, BuiltProgram.url.path, Fixtures.threeDevices, folder["lines"],
                folder["status"],
            ],
            of: URL(filePath: "/usr/bin/env"))
        _ = try await program.outcome()
        #expect(try String(contentsOfFile: folder["status"], encoding: .utf8) == "0\n")
        #expect(try String(contentsOfFile: folder["lines"], encoding: .utf8).split(separator: "\n").count == 1)
    }

    /// If the locale is not UTF-8, a terminal receives ASCII only; a pipe receives the text unchanged.
    @Test func aTerminalGetsWhatItCanShow() async throws {
        let folder = try TestFolder()
        var capture = AirCapture()
        // A name with a letter beyond ASCII: "Küche".
        capture.add("07094bc3bc636865", from: "A4:C1:38:00:00:01")
        try capture.write(to: folder["air.btsnoop"])
        let arguments = ["replay", folder["air.btsnoop"], "--as-scan", "--color", "never"]
        let terminal = try PseudoTerminal(columns: 200)
        let program = try RunningProgram(arguments, output: .terminal(terminal), environment: ["LC_ALL": "C"])
        #expect(try await program.outcome().status == 0)
        let whole = try await BuiltProgram.run(arguments, environment: ["LC_ALL": "C"]).output
        #expect(whole.contains("Küche"))
        let text = try await terminal.whole()
        #expect(text.contains(whole.ascii))
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
    }

    @Test(arguments: [
        ["--as-scan", "--only", "att"], ["--as-scan", "--check"], ["--as-scan", "--as-fixture", "/tmp/x"],
        ["--as-scan", "--json", "--format", "plain"], ["--as-scan", "--json", "--format", "theengs"],
        ["--as-scan", "--format", "xml"], ["--as-scan", "--scanner-id", "\u{7}"], ["--as-scan", "--count", "0"],
        ["--redact"], ["--name", "Kit"], ["--format", "json"], ["--count", "3"],
    ]) func whatMakesNoSenseTogetherIsRefused(_ arguments: [String]) async throws {
        let outcome = try await BuiltProgram.run(["replay", Fixtures.threeDevices] + arguments)
        #expect(outcome.status == 64)
    }

    @Test(arguments: [
        ["--heartbeat", "soon"], ["--heartbeat", "10ms"], ["--heartbeat", "30s", "--format", "theengs"],
        ["--json", "--format", "plain"], ["--count", "0"], ["--redact", "--record", "/tmp/never.btsnoop"],
    ]) func aScanIsAskedForProperly(_ arguments: [String]) async throws {
        #expect(try await BuiltProgram.run(["scan"] + arguments).status == 64)
    }

    @Test func jsonTwiceIsNoContradiction() async throws {
        let outcome = try await scan(["--json", "--format", "json", "--count", "1"])
        #expect(outcome.status == 0)
        #expect(try outcome.objects().count == 1)
    }

    @Test func aReplayWithoutAMatchEndsWithStatus1() async throws {
        let outcome = try await scan(["--name", "Nobody"])
        #expect(outcome.status == 1)
        #expect(outcome.output.isEmpty)
        let dialogue = Fixtures.folder.appending(path: "att/gar-cl-bv-05-c.dialogue").path
        #expect(try await BuiltProgram.run(["replay", dialogue, "--as-scan"]).status == 1)
    }
}
