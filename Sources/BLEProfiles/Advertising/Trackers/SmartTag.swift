internal import BLECore

/// A Samsung SmartTag.
///
///     service 0xFD5A | version, state 1 | age 3 | privacy identifier 8 | flags 1 | reserved 3 | signature 4
///
/// Spec: "Privacy Analysis of Samsung's Crowd-Sourced Bluetooth Location Tracking System" (Yu et al., 2022), 3.3.
enum SmartTag {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.remaining == 20, let first = value.u8(), value.skip(3), let identifier = value.array(8) else {
            return nil
        }
        var list = FieldList()
        list.add("state", word: word(forState: first & 0x07))
        list.add("identifier", word: Hex.encode(identifier))
        return DecodedAdvertisement(.smartTag, "SmartTag", list.fields)
    }

    private static func word(forState code: UInt8) -> String? {
        switch code {
        case 1: "away from its owner for minutes"
        case 2: "away from its owner"
        case 3: "away from its owner for a day"
        case 4...6: "near its owner"
        default: nil
        }
    }
}
