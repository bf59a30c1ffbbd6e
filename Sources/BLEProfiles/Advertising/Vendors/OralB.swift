internal import BLECore

/// An Oral-B toothbrush.
///
///     company 0x00DC | protocol 1 | product 1 | … 1 | state 1 | pressure and buttons 1 | minutes 1 | seconds 1
///                    | mode 1 | sector 1 | sector time 1 | sectors 1
///
/// Spec: none; reverse engineered by the projects bleparser and TheengsDecoder.
enum OralB {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard value.remaining == 11, value.skip(1), let product = value.u8(), value.skip(1), let state = value.u8(),
            let pressure = value.u8(), let minutes = value.u8(), let seconds = value.u8(), let mode = value.u8(),
            seconds < 60
        else { return nil }
        var list = FieldList()
        list.add("state", word: word(forState: state))
        list.measured("brushing time", UInt16(minutes) * 60 + UInt16(seconds), "s")
        let isIO = (0x30...0x36).contains(product)
        list.add(ValueField("mode", .text((isIO ? word(forIOMode: mode) : word(forMode: mode)) ?? "\(mode)")))
        if pressure & 0x80 != 0 { list.add("pressure", word: "pressure too high") }
        return DecodedAdvertisement(.oralB, isIO ? "Oral-B iO" : "Oral-B", list.fields)
    }

    private static func word(forState state: UInt8) -> String {
        switch state {
        case 1: "initializing"
        case 2: "idle"
        case 3: "running"
        case 4: "charging"
        case 5: "setup"
        case 6: "flight menu"
        case 8: "selection menu"
        case 9: "off"
        case 115: "sleeping"
        case 116: "transport"
        default: "state \(state)"
        }
    }

    private static func word(forMode mode: UInt8) -> String? {
        ["off", "daily clean", "sensitive", "massage", "whitening", "deep clean", "tongue cleaning", "turbo"]
            .dropFirst(Int(mode)).first
    }

    private static func word(forIOMode mode: UInt8) -> String? {
        switch mode {
        case 0: "daily clean"
        case 1: "sensitive"
        case 2: "gum care"
        case 3: "whiten"
        case 4: "intense"
        case 5: "super sensitive"
        case 6: "tongue cleaning"
        case 8: "settings"
        case 9: "off"
        case 11: "smart adapt"
        default: nil
        }
    }
}
