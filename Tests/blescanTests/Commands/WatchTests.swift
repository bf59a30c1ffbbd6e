import ArgumentParser
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

    @Test func theSignalIsAValueLikeOthers() throws {
        let watch = try Watch.parse(["AA:BB:CC:DD:EE:FF", "battery-level", "rssi"])
        #expect(watch.attribute.count == 2 && watch.attribute.last == .rssi)
        func line(_ form: OperationOutput.Form, _ label: String? = nil) -> String {
            let output = OperationOutput(peer: "AA:BB:CC:DD:EE:FF", form: form)
            return String(decoding: output.line(ofRSSI: -49, label: label), as: UTF8.self)
        }
        #expect(line(.plain).hasSuffix("  -49 dBm"))
        #expect(line(.plain, "RSSI").hasSuffix("  RSSI  -49 dBm"))
        #expect(line(.json).hasPrefix(#"{"v":1,"t":"20"#))
        #expect(line(.json).hasSuffix(#","peer":"AA:BB:CC:DD:EE:FF","rssi":-49}"#))
        #expect(line(.csv).hasSuffix(",AA:BB:CC:DD:EE:FF,,,RSSI,read,,-49"))
    }

    @Test(arguments: [
        (80, "RSSI  -61 dBm  min -61  mean -55  max -49  █▁"), (20, "RSSI  -61 dBm  █▁"), (12, "RSSI  -61"),
    ])
    func theSignalIsPlotted(_ width: Int, _ line: String) {
        var plots = PlotOutput(look: ScreenLook(isColoured: false, isUnicode: true), in: nil)
        _ = plots.line(ofRSSI: -49, label: "RSSI", in: width)
        let newest = plots.line(ofRSSI: -61, label: "RSSI", in: width)
        #expect(String(decoding: newest, as: UTF8.self) == line)
    }

    @Test(arguments: [
        (["demo:battery"], "what to read, such as battery-level"), (["--plot"], "--plot is for the values of a peer"),
        (["--every", "1s"], "--every is for the values of a peer"),
        (["--hex-only"], "--hex-only is for the values of a peer"),
        (["demo:battery", "2a19", "rssi"], "rssi is measured by an adapter"),
        (["AA:BB:CC:DD:EE:FF", "rssi", "--hex-only"], "rssi has none"),
        (["--mtu", "100"], "--mtu is for the values of a peer"),
        (["--timeout", "1s"], "--timeout is for the values of a peer"),
    ])
    func optionsOfValuesNeedAPeer(_ arguments: [String], _ words: String) async throws {
        let outcome = try await BuiltProgram.run(["watch"] + arguments)
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
    }
}
