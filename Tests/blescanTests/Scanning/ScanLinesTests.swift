import BLECore
import BLEProfiles
import Foundation
import Testing

@testable import blescan

/// The lines of a scan, from reports that are listed here: the bytes follow the Core Specification Supplement, A.
@Suite struct ScanLinesTests {
    private let address = BluetoothAddress(rawValue: 0xA4C1_3856_5384)

    private func scanResult(_ payload: String, type: AddressType? = .public, rssi: Int8? = -41) -> ScanResult {
        var table = DeviceTable()
        let report = AdvertisingReport(
            address: type == nil ? nil : address, addressType: type, properties: [.legacy], rssi: rssi,
            data: AirCapture.bytes(payload))
        let outcome = table.record(report, at: .zero)
        return table[outcome?.place ?? 0]
    }

    private func text(_ lines: [[UInt8]]) -> [String] { lines.map { String(decoding: $0, as: UTF8.self) } }

    @Test func everyObjectNamesItsScannerAndItsAdapter() {
        var lines = ScanLines(format: .json, scanner: "attic")
        let time = Duration.milliseconds(1_795_248_000_123)
        let first = text(lines.lines(of: scanResult("020106"), .found, adapter: "hci1", at: time))
        lines.dropped = 7
        let beat = lines.line(
            of: Heartbeat(packets: 9, devices: 2, restarts: 1, uptime: .milliseconds(61_500)), adapter: "hci1", at: time
        )
        let second = text(lines.lines(of: scanResult("020106"), .updated, adapter: "hci1", at: time + .seconds(1)))
        #expect(
            first == [
                #"{"v":1,"t":"2026-11-21T08:00:00.123Z","event":"found","scanner":"attic","adapter":"hci1","seq":1,"dropped":0,"#
                    + #""address":"A4:C1:38:56:53:84","addressType":"public","addressKind":"public","rssi":-41,"connectable":false,"#
                    + #""hex":"020106","flags":6,"structures":[[1,"06"]]}"#
            ])
        #expect(
            beat.map { text([$0]) } == [
                #"{"v":1,"t":"2026-11-21T08:00:00.123Z","event":"heartbeat","scanner":"attic","adapter":"hci1","seq":2,"dropped":7,"#
                    + #""packets":9,"devices":2,"lines":1,"restarts":1,"uptimeSeconds":61}"#
            ])
        #expect(
            second.first?.hasPrefix(
                #"{"v":1,"t":"2026-11-21T08:00:01.123Z","event":"updated","scanner":"attic","adapter":"hci1","seq":3,"dropped":7,"#
            )
                == true)
        #expect(lines.count == 2)
    }

    @Test func anIdentityIsNamedBesideTheAddressOnAir() {
        var table = DeviceTable()
        let onAir = BluetoothAddress(rawValue: 0x7712_FB36_5BCF)
        let report = AdvertisingReport(
            address: onAir, addressType: .random, properties: [.legacy], rssi: -41, data: [2, 1, 6])
        let outcome = table.record(report, of: PeerID(address: address, type: .public), at: .zero)
        let scanResult = table[outcome?.place ?? 0]
        var json = ScanLines(format: .json, scanner: "attic")
        let object = text(json.lines(of: scanResult, .found, adapter: "hci1", at: .zero)).first
        #expect(
            object?.contains(
                #""address":"77:12:FB:36:5B:CF","addressType":"random","addressKind":"private","#
                    + #""identity":"A4:C1:38:56:53:84/public","rssi":-41"#) == true)
        var plain = ScanLines(format: .plain, scanner: "attic")
        let line = text(plain.lines(of: scanResult, .found, adapter: "hci1", at: .zero)).first
        #expect(line?.contains("77:12:FB:36:5B:CF") == true)
        #expect(line?.hasSuffix("  identity=A4:C1:38:56:53:84/public") == true)
        // Theengs follows a device by its address.
        var theengs = ScanLines(format: .theengs, scanner: "attic")
        #expect(
            text(theengs.lines(of: scanResult, .found, adapter: "hci1", at: .zero)) == [
                #"{"id":"A4:C1:38:56:53:84","mac_type":0,"rssi":-41}"#
            ])
    }

    /// A battery, a signal strength and the time since the start are no measurements: beacons send them. Of the
    /// telemetry of Eddystone, only the second has a temperature.
    @Test(arguments: [
        ("1816cdfd8818072240342d5801041701ca0002016107027227", true), ("12161a1884535638c1a4a00a7412730b47060e", true),
        ("020106", false), ("02010603030d180f18", false), ("020a04", false), ("0303aafe0916aafe10ee03616200", false),
        ("1aff4c000215b9407f30f5f8466eaff925556b57fe6d00490001c5", false),
        ("0303aafe1116aafe20000bb880000000000100000064", false), ("0303aafe1116aafe20000bb817800000000100000064", true),
        ("0616d2fc400164", false), ("0916d2fc40016402ca09", true),
    ])
    func onlySensorsHaveLines(_ payload: String, _ isSensor: Bool) {
        var lines = ScanLines(format: .json, scanner: "attic", onlySensors: true)
        let printed = lines.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero)
        #expect(printed.count == (isSensor ? 1 : 0) && lines.count == printed.count)
    }

    /// Also if its first packets have none, and again after it was away.
    @Test func theFirstMeasurementFindsASensor() {
        var lines = ScanLines(format: .json, scanner: "attic", onlySensors: true)
        let (silent, measuring) = (
            scanResult("020106"), scanResult("1816cdfd8818072240342d5801041701ca0002016107027227")
        )
        let heard: [(ScanResult, ScanLines.Event)] = [
            (silent, .found), (measuring, .updated), (measuring, .updated), (silent, .found), (measuring, .updated),
        ]
        let events = heard.map { scanResult, event in
            text(lines.lines(of: scanResult, event, adapter: "hci0", at: .zero)).map { line in
                line.contains("\"event\":\"found\"") ? "found" : "updated"
            }
        }
        #expect(events == [[], ["found"], ["updated"], [], ["found"]])
    }

    /// A device that was away is found again.
    @Test(arguments: [(false, 2), (true, 1)])
    func aDeviceHasOneLineEachTimeItIsFound(_ onlySensors: Bool, _ count: Int) {
        var lines = ScanLines(format: .json, scanner: "attic", each: .device, onlySensors: onlySensors)
        let (silent, measuring) = (
            scanResult("020106"), scanResult("1816cdfd8818072240342d5801041701ca0002016107027227")
        )
        let heard: [(ScanResult, ScanLines.Event)] = [
            (silent, .found), (measuring, .updated), (measuring, .updated), (silent, .found),
        ]
        let printed = heard.flatMap { scanResult, event in
            text(lines.lines(of: scanResult, event, adapter: "hci0", at: .zero))
        }
        #expect(printed.count == count && printed.allSatisfy { $0.contains("\"event\":\"found\"") })
        #expect(lines.count == count)
    }

    /// JSON has the details, by the key `error`.
    @Test(arguments: [
        ("020106", false), ("0201061eff4c", true), ("02010604030d180f", true), ("02010600000000", false),
    ])
    func malformedDataIsMarked(_ payload: String, _ isMalformed: Bool) {
        var plain = ScanLines(format: .plain, scanner: "attic")
        let line = text(plain.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero)).first
        #expect(line?.hasSuffix("  malformed") == isMalformed, "\(line ?? "")")
        var json = ScanLines(format: .json, scanner: "attic")
        let object = text(json.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero)).first
        #expect(object?.contains("\"error\":") == isMalformed)
    }

    @Test func aHeartbeatForPeopleIsAComment() {
        var lines = ScanLines(format: .plain, scanner: "attic")
        let beat = lines.line(
            of: Heartbeat(packets: 0, devices: 0, restarts: 0, uptime: .seconds(30)), adapter: "hci0",
            at: .seconds(1_795_248_000))
        #expect(
            beat.map { text([$0]) } == [
                "# 2026-11-21T08:00:00.000Z  heartbeat  packets=0  devices=0  lines=0  dropped=0  restarts=0  uptime=30s"
            ])
    }

    @Test func theengsGetsALineForEachEntry() {
        var lines = ScanLines(format: .theengs, scanner: "attic")
        // Service data of 0x181A and of 0xFEAA, company 0x0499, a name and a power.
        let payload =
            "0416" + "1a18" + "05" + "0416" + "aafe" + "20" + "04ff" + "9904" + "03" + "0309" + "4f6b" + "020a04"
        #expect(
            text(lines.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero)) == [
                #"{"id":"A4:C1:38:56:53:84","mac_type":0,"rssi":-41,"name":"Ok","servicedatauuid":"181a","servicedata":"05","#
                    + #""manufacturerdata":"990403","txpower":4}"#,
                #"{"id":"A4:C1:38:56:53:84","mac_type":0,"rssi":-41,"name":"Ok","servicedatauuid":"feaa","servicedata":"20","#
                    + #""manufacturerdata":"990403","txpower":4}"#,
            ])
        // Without services, without a name, without a signal strength.
        #expect(
            text(lines.lines(of: scanResult("020106", type: .random, rssi: nil), .found, adapter: "hci0", at: .zero))
                == [
                    #"{"id":"A4:C1:38:56:53:84","mac_type":1}"#
                ])
        // A device without an address cannot be reported, and the reader of the lines would not understand a heartbeat.
        #expect(lines.lines(of: scanResult("020106", type: nil), .found, adapter: "hci0", at: .zero).isEmpty)
        let beat = Heartbeat(packets: 0, devices: 0, restarts: 0, uptime: .zero)
        #expect(lines.line(of: beat, adapter: "hci0", at: .zero) == nil)
        #expect(lines.count == 3)
    }

    /// The signal strength changes all the time, and makes a line only where it is asked for.
    @Test(arguments: [(false, ["-41"]), (true, ["-41", "-42", "-41"])])
    func noRowIsRepeated(_ comparesRSSI: Bool, _ rows: [String]) {
        var lines = ScanLines(
            format: .csv, scanner: "attic", fields: [.rssi], each: .change, comparesRSSI: comparesRSSI)
        let printed = [-41, -41, -42, -42, -41].flatMap { (rssi: Int8) in
            text(lines.lines(of: scanResult("020106", rssi: rssi), .updated, adapter: "hci0", at: .zero))
        }
        #expect(printed == rows)
    }

    @Test(arguments: [LineFormat.plain, .json, .theengs, .csv])
    func aRedactedLineHasNoAddress(_ format: LineFormat) {
        var lines = ScanLines(format: format, scanner: "attic", redaction: AdvertisementRedaction())
        let printed = text(lines.lines(of: scanResult("020106"), .found, adapter: "hci0", at: .zero)).joined()
        #expect(printed.contains("A4:C1:38:00:00:01") && !printed.contains("56:53:84"), "\(printed)")
    }

    @Test func thereAreNoMoreLinesThanWanted() {
        var lines = ScanLines(format: .theengs, scanner: "attic")
        let payload = "0416" + "1a18" + "05" + "0416" + "aafe" + "20"
        #expect(lines.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero, limit: 1).count == 1)
        #expect(lines.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero, limit: 1).isEmpty)
        #expect(lines.lines(of: scanResult(payload), .found, adapter: "hci0", at: .zero, limit: 3).count == 2)
    }
}
