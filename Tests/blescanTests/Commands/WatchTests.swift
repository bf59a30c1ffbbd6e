import Testing

@testable import blescan

/// `blescan watch` without a peer, which shows the sensors on air; and the options that need one.
@Suite struct WatchTests {
    @Test func withoutAPeerItScansForSensors() throws {
        let watch = try Watch.parse(["--for", "5s", "--count", "3", "--format", "csv", "--adapter", "hci1"])
        let scan = try watch.sensorScan()
        #expect(scan.filters.sensors && scan.lines.format == .csv && !scan.json)
        #expect(scan.duration?.duration == .seconds(5) && scan.lines.count == 3 && scan.adapter != nil)
        #expect(try Watch.parse(["--json"]).sensorScan().json)
        #expect(try !Watch.parse(["--format", "plain"]).sensorScan().json)
    }

    @Test func itHasTheRightsOfAScanOnlyWithoutAPeer() throws {
        #expect(try Watch.parse([]).radio != nil)
        #expect(try Watch.parse(["AA:BB:CC:DD:EE:FF", "2a19"]).radio != nil)
        #expect(try Watch.parse(["demo:battery", "2a19"]).radio == nil)
        #expect(try Watch.parse(["unix:/nowhere", "2a19"]).namesSocket)
    }

    @Test(arguments: [
        (["demo:battery"], "what to read, such as battery-level"), (["--plot"], "--plot is for the values of a peer"),
        (["--every", "1s"], "--every is for the values of a peer"),
        (["--hex-only"], "--hex-only is for the values of a peer"),
        (["--timeout", "1s"], "--timeout is for the values of a peer"),
    ])
    func optionsOfValuesNeedAPeer(_ arguments: [String], _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["watch"] + arguments)
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
    }
}
