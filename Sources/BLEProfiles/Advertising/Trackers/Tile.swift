internal import BLECore

/// A Tile tracker.
///
///     service 0xFEED or 0xFEEC | 02 | 00 | identifier 8        other contents are not known
///
/// Spec: none; from recordings and the projects AirGuard and TheengsDecoder.
enum Tile {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard !value.isAtEnd else { return nil }
        var list = FieldList()
        if value.remaining == 10, value.u16() == 0x0002, let identifier = value.array(8) {
            list.add("identifier", word: Hex.encode(identifier))
        }
        return DecodedAdvertisement(.tile, "Tile", list.fields)
    }
}
