import BLECore
import Foundation
import TestSupport
import Testing

/// Real advertisements against what independent parsers (bluetooth-data-tools, Bumble, tshark) make of them.
///
/// Every difference is explained by the specification: `differences` has the reason,
/// Docs/maintainers/advertising-differences.md the same list for readers.
@Suite(.enabled(if: SharedVectors.available(for: "AdvertisingVectorTests")))
struct AdvertisingVectorTests {
    /// Record and field to the reason. A record that agrees must not be listed.
    private static let oversized = "a legacy packet holds 31 bytes of data: Core Vol 6 Part B, 2.3.1"

    static let differences: [String: String] = [
        "s00044 tx_power": "Tx Power Level is one octet: Core Specification Supplement, Part A, 1.5",
        "s00117 report": oversized,
        "s00133 report": oversized,
        "s00150 report": oversized,
        "s00183 report": oversized,
        "s01793 report": oversized,
        "s01824 report": oversized,
        "s01825 report": oversized,
        "s01827 report": oversized,
        "s01829 report": oversized,
        "s01830 report": oversized,
        "s01831 report": oversized,
        "s01832 report": oversized,
        "s01833 report": oversized,
        "s01834 report": oversized,
        "s01838 report": oversized,
        "s01868 report": oversized,
    ]

    @Test func recordedEventsReadAsOtherParsersReadThem() throws {
        var seen = 0
        for event in try AdvertisingVectors.events() {
            let packet = try Hex.decode(event.hex)
            let batch = try #require(AdvertisingVectors.parse(packet), "\(event.hex)")
            guard let expected = event.reports else {
                #expect(batch.reports.isEmpty && batch.losses.missing > 0, "\(event.id ?? event.hex)")
                continue
            }
            if let id = event.id, Self.differences[id + " report"] != nil {
                #expect(batch.reports.isEmpty && batch.losses.oversized == expected.count, "\(id)")
                let kept = AdvertisingVectors.parseKeepingOversized(packet)
                #expect(kept.map { Hex.encode($0.data) } == expected.map(\.data), "\(id)")
                continue
            }
            #expect(batch.reports.count == expected.count, "\(event.id ?? event.hex) \(batch.losses)")
            #expect(batch.losses.isEmpty)
            for (report, wanted) in zip(batch.reports, expected) {
                seen += 1
                compare(report, wanted, "\(event.id ?? event.hex)")
                if let expect = wanted.expect {
                    compare(report.advertisingData, expect, wanted.undecided ?? [], event.id ?? "")
                    compare(AdvertisedFields(report), expect, wanted.undecided ?? [], event.id ?? "")
                }
                if let structures = wanted.structures {
                    #expect(report.advertisingData.structures.map(AdvertisingVectors.Structure.init) == structures)
                }
            }
        }
        #expect(seen > 3000)
    }

    @Test func recordedAdvertisementsReadAsOtherParsersReadThem() throws {
        for record in try AdvertisingVectors.payloads() {
            let data = AdvertisingData(try Hex.decode(record.hex))
            compare(data, record.expect, record.undecided ?? [], record.id)
            let report = AdvertisingReport(address: nil, addressType: nil, data: data.bytes)
            compare(AdvertisedFields(report), record.expect, record.undecided ?? [], record.id)
            #expect(data.structures.map(AdvertisingVectors.Structure.init) == record.structures, "\(record.id)")
        }
    }

    private func compare(_ report: AdvertisingReport, _ wanted: AdvertisingVectors.Report, _ id: Comment) {
        #expect(report.eventType == wanted.eventType, id)
        #expect(report.address?.description == wanted.address, id)
        #expect(report.addressType?.rawValue == wanted.addressType, id)
        #expect((report.rssi ?? 127) == (wanted.rssi ?? 127), id)
        #expect(Hex.encode(report.data) == wanted.data, id)
        guard wanted.primaryPHY != nil else { return }
        #expect(report.primaryPHY.rawValue == wanted.primaryPHY, id)
        #expect((report.secondaryPHY?.rawValue ?? 0) == wanted.secondaryPHY, id)
        #expect((report.sid ?? 255) == wanted.sid, id)
        #expect((report.txPower ?? 127) == wanted.txPower, id)
        #expect((report.periodicInterval ?? 0) == wanted.periodicInterval, id)
    }

    private func compare(
        _ data: AdvertisingData, _ wanted: AdvertisingVectors.Expectation, _ undecided: [String], _ id: String
    ) {
        check(id, "flags", data.flags?.rawValue, wanted.flags)
        check(id, "local_name", data.name?.text, wanted.localName)
        check(id, "tx_power", data.txPowerLevel, wanted.txPower)
        if !undecided.contains("service_uuids") {
            check(id, "service_uuids", data.serviceUUIDs.map(\.dashed), wanted.serviceUUIDs)
        }
        let services = Dictionary(data.serviceData.map { ($0.service.dashed, Hex.encode($0.data)) }) { first, _ in first
        }
        check(id, "service_data", services, wanted.serviceData)
        let makers = Dictionary(data.manufacturerData.map { (company($0.company), Hex.encode($0.data)) }) { first, _ in
            first
        }
        check(id, "manufacturer_data", makers, wanted.manufacturerData)
    }

    /// The fields that one walk finds, against the same parsers.
    private func compare(
        _ fields: AdvertisedFields, _ wanted: AdvertisingVectors.Expectation, _ undecided: [String], _ id: String
    ) {
        check(id, "local_name", fields.name?.text, wanted.localName)
        check(id, "tx_power", fields.txPowerLevel, wanted.txPower)
        let found = Found(fields)
        if !undecided.contains("service_uuids") {
            check(id, "service_uuids", found.services.map(\.dashed), wanted.serviceUUIDs)
        }
        let services = Dictionary(found.serviceData.map { ($0.service.dashed, Hex.encode($0.data)) }) { first, _ in
            first
        }
        check(id, "service_data", services, wanted.serviceData)
        let makers = Dictionary(found.manufacturerData.map { (company($0.company), Hex.encode($0.data)) }) {
            first, _ in first
        }
        check(id, "manufacturer_data", makers, wanted.manufacturerData)
    }

    private func company(_ id: UInt16) -> String {
        Hex.encode([UInt8(id >> 8), UInt8(id & 0xFF)])
    }

    private func check<Value: Equatable>(_ id: String, _ field: String, _ ours: Value?, _ theirs: Value?) {
        let listed = Self.differences["\(id) \(field)"] != nil
        #expect(
            (ours == theirs) != listed,
            "\(id) \(field): ours \(String(describing: ours)), theirs \(String(describing: theirs))")
    }
}
