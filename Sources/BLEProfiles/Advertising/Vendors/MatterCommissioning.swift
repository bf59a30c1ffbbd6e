internal import BLECore

/// A Matter device that waits to be commissioned.
///
///     service 0xFFF6 | 00 | discriminator 12 bits, version 4 bits | vendor 2 | product 2
///                    | additional data 1 bit, extended 1 bit, …
///
/// A device that does not name its vendor and product has zeros there. Spec: Matter Core Specification 1.3,
/// 5.4.2.5.6, Matter BLE Service Data payload format.
enum MatterCommissioning {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.remaining == 8, value.u8() == 0, let number = value.u16(), number >> 12 == 0,
            let vendor = value.u16(), let product = value.u16()
        else { return nil }
        var list = FieldList()
        list.add("state", word: "to be commissioned")
        list.measured("discriminator", number & 0x0FFF)
        if vendor != 0 { list.add(ValueField("vendor", .text(hex(vendor)))) }
        if product != 0 { list.add(ValueField("product", .text(hex(product)))) }
        return DecodedAdvertisement(.matter, "Matter", list.fields)
    }

    private static func hex(_ number: UInt16) -> String {
        "0x" + Hex.encode([UInt8(number >> 8), UInt8(number & 0xFF)])
    }
}
