import BLECore
import Foundation
import TestSupport
import Testing

/// Blocks of advertising and inquiry data with the outcome that BlueZ's unit tests assert.
@Suite(.enabled(if: SharedVectors.available(for: "ExtendedInquiryVectorTests")))
struct ExtendedInquiryVectorTests {
    struct Case: Decodable {
        struct Outcome: Decodable {
            let flags: UInt8?
            let name: String?
            let isComplete: Bool?
            let txPower: Int8?
            let services: [String]?

            enum CodingKeys: String, CodingKey {
                case flags
                case name = "local_name"
                case isComplete = "name_complete"
                case txPower = "tx_power"
                case services = "service_uuids"
            }
        }

        let `case`: String
        let hex: String
        let expect: Outcome
    }

    /// Case and field to the reason; Docs/maintainers/advertising-differences.md has the same list.
    static let differences: [String: String] = [
        "invalid_utf8_name name": "the bytes are kept and each bad sequence becomes U+FFFD; BlueZ cuts the name there"
    ]

    @Test func recordedResponsesReadAsBlueZReadsThem() throws {
        let cases = try JSONDecoder().decode([Case].self, from: SharedVectors.data("advertising/eir_bluez.json"))
        for record in cases {
            let data = AdvertisingData(try Hex.decode(record.hex))
            check(record.case, "flags", data.flags?.rawValue ?? 0, record.expect.flags ?? 0)
            check(record.case, "name", data.name?.text, record.expect.name)
            check(record.case, "complete", data.localName != nil, record.expect.isComplete ?? false)
            check(record.case, "txPower", data.txPowerLevel, record.expect.txPower)
            check(record.case, "services", data.serviceUUIDs.map(\.dashed), record.expect.services ?? [])
        }
    }

    private func check<Value: Equatable>(_ name: String, _ field: String, _ ours: Value, _ theirs: Value) {
        let listed = Self.differences["\(name) \(field)"] != nil
        #expect((ours == theirs) != listed, "\(name) \(field): ours \(ours), theirs \(theirs)")
    }
}
