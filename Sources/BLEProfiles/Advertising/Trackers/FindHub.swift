internal import BLECore

/// An item in Google's Find Hub network.
///
///     service 0xFEAA | frame 40, or 41 when it is away from its owner | ephemeral identifier 20 or 32
///                    | hashed flags 1, often missing
///
/// Spec: Find Hub Network Accessory Specification, Advertised frames.
enum FindHub {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let frame = value.u8(), frame == 0x40 || frame == 0x41 else { return nil }
        guard [20, 21, 32, 33].contains(value.remaining) else { return nil }
        guard let identifier = value.array(value.remaining < 32 ? 20 : 32) else { return nil }
        var list = FieldList()
        list.add("identifier", word: Hex.encode(identifier))
        list.add("place", word: frame == 0x41 ? "away from its owner" : nil)
        return DecodedAdvertisement(.findHub, "Find Hub", list.fields)
    }
}
