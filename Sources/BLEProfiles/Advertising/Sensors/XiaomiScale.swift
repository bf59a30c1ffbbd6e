internal import BLECore

/// Xiaomi's Mi Smart Scale and Mi Body Composition Scale.
///
///     service 0x181D | state 1 | mass 2 | time 7
///     service 0x181B | unit 1 | state 1 | time 7 | impedance 2 | mass 2
///
/// The mass is in 1/200 kg, or in hundredths of a pound or a jin. Spec: none; reverse engineered by the projects
/// openScale and bleparser.
enum XiaomiScale {
    static func smartScale(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.remaining == 10, let state = value.u8(), let mass = value.u16() else { return nil }
        var list = FieldList()
        add(mass, isPounds: state & 0x01 != 0, isJin: state & 0x10 != 0, to: &list)
        addState(state, to: &list)
        return DecodedAdvertisement(.xiaomiScale, "Mi Smart Scale", list.fields)
    }

    static func bodyCompositionScale(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.remaining == 13, let unit = value.u8(), let state = value.u8(), value.skip(7),
            let impedance = value.u16(), let mass = value.u16()
        else { return nil }
        var list = FieldList()
        add(mass, isPounds: unit & 0x01 != 0, isJin: state & 0x40 != 0, to: &list)
        if state & 0x02 != 0 { list.measured("impedance", impedance, "Ω") }
        addState(state, to: &list)
        return DecodedAdvertisement(.xiaomiScale, "Mi Body Composition Scale", list.fields)
    }

    private static func add(_ mass: UInt16, isPounds: Bool, isJin: Bool, to list: inout FieldList) {
        if isPounds || isJin { return list.measured("mass", mass, exponent: -2, isPounds ? "lb" : "jin") }
        // The last digit is 0 or 5, and only with it the number is exact.
        let isHalf = mass & 1 == 1
        list.measured("mass", isHalf ? UInt32(mass) * 5 : UInt32(mass) / 2, exponent: isHalf ? -3 : -2, "kg")
    }

    private static func addState(_ state: UInt8, to list: inout FieldList) {
        if state & 0x80 != 0 { return list.add("state", word: "removed") }
        list.add("state", word: state & 0x20 != 0 ? "stable" : "measuring")
    }
}
