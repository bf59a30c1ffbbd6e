import BLECore
import Foundation

/// The records of vectors/advertising. Its README says where they come from and which parsers gave the expectations.
enum AdvertisingVectors {
    struct Expectation: Decodable {
        let flags: UInt8?
        let localName: String?
        let txPower: Int8?
        let serviceUUIDs: [String]?
        let serviceData: [String: String]?
        let manufacturerData: [String: String]?

        enum CodingKeys: String, CodingKey {
            case flags
            case localName = "local_name"
            case txPower = "tx_power"
            case serviceUUIDs = "service_uuids"
            case serviceData = "service_data"
            case manufacturerData = "manufacturer_data"
        }
    }

    struct Structure: Decodable, Equatable {
        let type: UInt8
        let value: String

        init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            type = try list.decode(UInt8.self)
            value = try list.decode(String.self)
        }

        init(_ structure: AdvertisingData.Structure) {
            type = structure.type.rawValue
            value = Hex.encode(structure.value)
        }
    }

    struct Report: Decodable {
        let eventType: UInt16
        let addressType: UInt8
        let address: String
        let rssi: Int8?
        let data: String
        let primaryPHY: UInt8?
        let secondaryPHY: UInt8?
        let sid: UInt8?
        let txPower: Int8?
        let periodicInterval: UInt16?
        let expect: Expectation?
        let structures: [Structure]?
        let undecided: [String]?

        enum CodingKeys: String, CodingKey {
            case address, rssi, data, sid, expect, structures, undecided
            case eventType = "event_type"
            case addressType = "address_type"
            case primaryPHY = "primary_phy"
            case secondaryPHY = "secondary_phy"
            case txPower = "tx_power"
            case periodicInterval = "periodic_interval"
        }
    }

    struct Event: Decodable {
        let id: String?
        let hex: String
        let reports: [Report]?
    }

    struct Payload: Decodable {
        let id: String
        let hex: String
        let expect: Expectation
        let structures: [Structure]
        let undecided: [String]?
    }

    static func events() throws -> [Event] {
        try SharedVectors.lines("advertising/hci_events_capture.jsonl", as: Event.self)
            + SharedVectors.lines("advertising/hci_events_tests.jsonl", as: Event.self)
            + JSONDecoder().decode([Event].self, from: SharedVectors.data("advertising/multi_report_events.json"))
    }

    static func payloads() throws -> [Payload] {
        try SharedVectors.lines("advertising/ad_payloads.jsonl", as: Payload.self)
    }

    /// The reports of a whole H4 packet `04 3E length subevent …`; `nil` when it is no such packet.
    static func parse(_ packet: [UInt8]) -> AdvertisingReport.Batch? {
        guard packet.count >= 4, packet[0] == 0x04, packet[1] == 0x3E else { return nil }
        return AdvertisingReport.parse(subevent: packet[3], parameters: packet.span.extracting(droppingFirst: 4))
    }

    /// As `parse`, with the legacy reports that hold more than they can.
    static func parseKeepingOversized(_ packet: [UInt8]) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        _ = AdvertisingReport.parse(
            subevent: packet[3], parameters: packet.span.extracting(droppingFirst: 4), keepingOversized: true
        ) { reports.append($0) }
        return reports
    }
}
