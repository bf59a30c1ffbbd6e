internal import BLECore

/// A Google Fast Pair device: its model while discoverable, otherwise a filter of the account keys that it is paired
/// with.
///
///     service 0xFE2C | model 3                                       while it is discoverable
///     service 0xFE2C | version, flags 1 | length, type 1 | field …   otherwise; the length is the upper half
///
/// Spec: Google Fast Pair Service, Advertising: discoverable, and not discoverable; Battery Notification.
enum FastPair {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        var list = FieldList()
        if value.remaining == 3 {
            guard let model = value.array(3) else { return nil }
            list.add("pairing", word: "ready to pair")
            list.add("model", text: "0x" + Hex.encode(model))
            return DecodedAdvertisement(.fastPair, "Fast Pair", list.fields)
        }
        guard value.remaining > 1, let version = value.u8(), version == 0 || version == 0x10 else { return nil }
        var hasFilter = false
        while !value.isAtEnd {
            guard let header = value.u8(), var field = value.take(Int(header >> 4)) else { return nil }
            switch header & 0x0F {
            case 0, 2: hasFilter = true
            case 3, 4: addBatteries(&field, to: &list)
            default: continue
            }
        }
        var fields = [
            ValueField("pairing", .text(hasFilter ? "paired with accounts" : "not ready to pair"), showsName: false)
        ]
        fields += list.fields
        return DecodedAdvertisement(.fastPair, "Fast Pair", fields)
    }

    /// One byte each for left, right and case, or one for a single-piece device: charging 1 bit, percent 7 bits; 127 is
    /// unknown.
    private static func addBatteries(_ field: inout ByteReader, to list: inout FieldList) {
        let names = field.remaining == 3 ? ["left battery", "right battery", "case battery"] : ["battery"]
        for name in names where list.fields.allSatisfy({ $0.name != name }) {
            guard let battery = field.u8() else { return }
            let percent = battery & 0x7F
            list.ofSender { $0.measured(name, percent <= 100 ? percent : nil, "%") }
        }
    }
}
