internal import BLECore

/// A sensor that uses the open BTHome format, version 2.
///
///     service 0xFCD2 | version 3 bits, on events only 1 bit, encrypted 1 bit | object 1 | value … | object 1 | value …
///
/// Objects are sorted by number, so that a reader can stop at the first unknown one.
/// Spec: bthome.io, format v2.
enum BTHome {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let information = value.u8(), information >> 5 == 2 else { return nil }
        if information & 1 != 0 { return DecodedAdvertisement(.btHome, "BTHome", isEncrypted: true) }
        var list = FieldList()
        while let identifier = value.u8() {
            guard let object = BTHomeObject(identifier) else { break }
            guard let field = object.field(&value) else { return nil }
            list.add(numbered: field)
        }
        return DecodedAdvertisement(.btHome, "BTHome", list.fields)
    }
}
