import BLECore
import BLEProfiles

extension DecodedAdvertisement {
    /// The decoded data on one line; characters that could control the terminal are spelled out.
    var line: String { description.printable }

    /// Whether there is a number with a unit that describes more than the state of the sender itself.
    var hasMeasurement: Bool {
        fields.contains { $0.number != nil && !$0.unit.isEmpty && !$0.isOfSender }
    }

    /// The decoded data as an object: `values` and `units` have the same keys.
    var json: JSONLine {
        let units = fields.filter { !$0.unit.isEmpty }
        return .object([
            "format": .string(kind.rawValue),
            "title": .string(title),
            "encrypted": isEncrypted ? true : nil,
            "wrongKey": encryption == .wrongKey ? true : nil,
            "decrypted": encryption == .decrypted ? true : nil,
            "values": .object(fields.map { JSONLine.Member(key: $0.key, value: $0.json) }),
            "units": units.isEmpty
                ? nil : .object(units.map { JSONLine.Member(key: $0.key, value: .string($0.unit)) }),
        ])
    }
}
