package import BLECore
internal import Foundation

/// The records of vectors/advertising. Its README says where they come from and which parsers gave the expectations.
package enum AdvertisingVectors {
    package struct Expectation: Decodable {
        package let flags: UInt8?
        package let localName: String?
        package let txPower: Int8?
        package let serviceUUIDs: [String]?
        package let serviceData: [String: String]?
        package let manufacturerData: [String: String]?

        package enum CodingKeys: String, CodingKey {
            case flags
            case localName = "local_name"
            case txPower = "tx_power"
            case serviceUUIDs = "service_uuids"
            case serviceData = "service_data"
            case manufacturerData = "manufacturer_data"
        }
    }

    package struct Structure: Decodable, Equatable {
        package let type: UInt8
        package let value: String

        package init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            type = try list.decode(UInt8.self)
            value = try list.decode(String.self)
        }

        package init(_ structure: AdvertisingData.Structure) {
            type = structure.type.rawValue
            value = Hex.encode(structure.value)
        }
    }

    package struct Report: Decodable {
        package let eventType: UInt16
        package let addressType: UInt8
        package let address: String
        package let rssi: Int8?
        package let data: String
        package let primaryPHY: UInt8?
        package let secondaryPHY: UInt8?
        package let sid: UInt8?
        package let txPower: Int8?
        package let periodicInterval: UInt16?
        package let expect: Expectation?
        package let structures: [Structure]?
        package let undecided: [String]?

        package enum CodingKeys: String, CodingKey {
            case address, rssi, data, sid, expect, structures, undecided
            case eventType = "event_type"
            case addressType = "address_type"
            case primaryPHY = "primary_phy"
            case secondaryPHY = "secondary_phy"
            case txPower = "tx_power"
            case periodicInterval = "periodic_interval"
        }
    }

    package struct Event: Decodable {
        package let id: String?
        package let hex: String
        package let reports: [Report]?
    }

    package struct Payload: Decodable {
        package let id: String
        package let hex: String
        package let expect: Expectation
        package let structures: [Structure]
        package let undecided: [String]?
    }

    package static func events() throws -> [Event] {
        try SharedVectors.lines("advertising/hci_events_capture.jsonl", as: Event.self)
            + SharedVectors.lines("advertising/hci_events_tests.jsonl", as: Event.self)
            + JSONDecoder().decode([Event].self, from: SharedVectors.data("advertising/multi_report_events.json"))
    }

    package static func payloads() throws -> [Payload] {
        try SharedVectors.lines("advertising/ad_payloads.jsonl", as: Payload.self)
    }

    /// The reports of a whole H4 packet `04 3E length subevent …`; `nil` when it is no such packet.
    package static func parse(_ packet: [UInt8]) -> AdvertisingReport.Batch? {
        guard packet.count >= 4, packet[0] == 0x04, packet[1] == 0x3E else { return nil }
        return AdvertisingReport.parse(subevent: packet[3], parameters: packet.span.extracting(droppingFirst: 4))
    }

    /// As `parse`, with the legacy reports that hold more than they can.
    package static func parseKeepingOversized(_ packet: [UInt8]) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        _ = AdvertisingReport.parse(
            subevent: packet[3], parameters: packet.span.extracting(droppingFirst: 4), keepingOversized: true
        ) { reports.append($0) }
        return reports
    }
}
