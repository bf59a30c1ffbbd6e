import BLECore
import BLEProfiles
import TestSupport
import Testing

/// How much of what real devices advertise has a meaning. The tags come from those who collected the recordings, and
/// were given by company, service and length alone.
@Suite(.enabled(if: SharedVectors.available(for: "DecodedAdvertisementVectorTests")))
struct DecodedAdvertisementVectorTests {
    struct Record: Decodable {
        struct Report: Decodable {
            let data: String
        }

        let id: String
        let hex: String
        let tags: [String]
        let reports: [Report]?
        let expect: AdvertisingVectors.Expectation?

        var payloads: [String] { reports.map { $0.map(\.data) } ?? (expect == nil ? [] : [hex]) }
    }

    private static func records() throws -> [Record] {
        try ["capture", "tests"].flatMap {
            try SharedVectors.lines("advertising/hci_events_\($0).jsonl", as: Record.self)
        } + SharedVectors.lines("advertising/ad_payloads.jsonl", as: Record.self)
    }

    /// Of all records with the tag, how many say a meaning of the kind. What is missing is explained where it stands.
    @Test func tagsHaveTheirMeanings() throws {
        let expected: [(tag: String, kind: DecodedAdvertisement.Kind, recognised: Int, all: Int)] = [
            ("altbeacon", .altBeacon, 6, 6),
            ("apple-airplay", .appleContinuity, 157, 157),
            ("apple-airplay-source", .appleContinuity, 3, 3),
            ("apple-airpods", .appleContinuity, 41, 41),
            // The others carry a second message, of headphones.
            ("apple-find-my", .findMy, 64, 68),
            ("apple-handoff", .appleContinuity, 96, 96),
            ("apple-homekit", .appleContinuity, 1, 1),
            ("apple-ibeacon", .iBeacon, 32, 32),
            ("apple-nearby-action", .appleContinuity, 21, 21),
            ("apple-nearby-info", .appleContinuity, 664, 664),
            ("bthome-v2", .btHome, 46, 46),
            ("eddystone-tlm", .eddystone, 1, 1),
            ("eddystone-uid", .eddystone, 2, 2),
            // The other has zeros for its address.
            ("eddystone-url", .eddystone, 12, 13),
            // The others are b-parasites.
            ("environmental-or-atc", .atc, 7, 9),
            // The other is cut off.
            ("exposure-notification", .exposureNotification, 17, 18),
            // The other has a version and nothing else.
            ("google-fast-pair", .fastPair, 314, 315),
            // The others have a name and no data, or data that is not known.
            ("govee", .govee, 114, 119),
            ("govee-or-nokia", .govee, 37, 38),
            // The other is a mouse that Windows offers to pair with.
            ("microsoft", .microsoftCDP, 324, 325),
            // The other has a name only.
            ("ruuvi", .ruuviTag, 61, 62),
            ("samsung-smarttag", .smartTag, 13, 13),
            ("switchbot", .switchBot, 3, 3),
            ("tile", .tile, 4, 4),
            ("xiaomi-mibeacon", .miBeacon, 33, 33),
        ]
        let records = try Self.records()
        for (tag, kind, recognised, all) in expected {
            let tagged = records.filter { $0.tags.contains(tag) }
            let missing = try tagged.filter { record in
                try !record.payloads.contains { payload in
                    AdvertisingData(try Hex.decode(payload)).decoded.contains { $0.kind == kind }
                }
            }
            #expect(
                tagged.count == all && all - missing.count == recognised,
                "\(tag): \(tagged.count - missing.count) of \(tagged.count), not \(missing.prefix(12).map { "\($0.id) \($0.payloads)" })"
            )
        }
    }

    /// Each structure of makers' and services' data once: how many have a meaning, and of which kinds.
    @Test func recordedDataHasTheCountedKinds() throws {
        var counts: [String: Int] = [:]
        var (all, known) = (0, 0)
        var seen: Set<AdvertisingData.Structure> = []
        for payload in try Self.records().flatMap(\.payloads) {
            let data = AdvertisingData(try Hex.decode(payload))
            for structure in data.structures where seen.insert(structure).inserted {
                let alone = AdvertisingData(joining: [structure])
                guard !alone.serviceData.isEmpty || !alone.manufacturerData.isEmpty else { continue }
                all += 1
                guard let meaning = data.decoded(structure) else { continue }
                known += 1
                counts[meaning.kind.rawValue, default: 0] += 1
            }
        }
        let expected: [String: Int] = [
            "altbeacon": 5, "apple-continuity": 865, "atc": 7, "bthome": 46, "eddystone": 14,
            "exposure-notification": 7, "fast-pair": 240, "find-hub": 1, "find-my": 57, "govee": 116, "ibeacon": 23,
            "inkbird": 4, "oral-b": 1, "qingping": 3, "sensorpush": 7,
            "thermopro": 3, "victron": 10, "xiaomi-scale": 5,
            "mibeacon": 33, "microsoft-cdp": 291, "ruuvitag": 61, "smarttag": 13, "swift-pair": 1, "switchbot": 3,
            "tile": 4,
        ]
        #expect(counts == expected)
        #expect((known, all) == (1820, 2815))
    }
}
