internal import BLECore

/// A device of Qingping, under its own service.
///
///     service 0xFDCD | state 1 | product 1 | address 6 | field 1 | length 1 | value … | field 1 | length 1 | value …
///
/// Bit 6 of the state indicates an event. Spec: none; reverse engineered by the projects ble_monitor and pvvx/TLB2Z.
enum Qingping {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        guard let state = value.u8(), let product = value.u8(), value.skip(6) else { return nil }
        var list = FieldList()
        while let field = value.u8() {
            guard let length = value.u8(), var content = value.take(Int(length)) else { return nil }
            add(field, &content, isEvent: state & 0x40 != 0, to: &list)
        }
        let title = "Qingping " + (name(of: product) ?? "0x" + Hex.encode([product]))
        return DecodedAdvertisement(.qingping, title, list.fields)
    }

    private static func add(_ field: UInt8, _ value: inout ByteReader, isEvent: Bool, to list: inout FieldList) {
        switch (field, value.remaining) {
        case (0x01, 4):
            guard let temperature = value.i16(), let humidity = value.u16() else { return }
            list.add(numbered: .scaled("temperature", temperature, exponent: -1, "°C"))
            list.add(numbered: .scaled("humidity", humidity, exponent: -1, "%"))
        case (0x02, 1):
            guard let battery = value.u8() else { return }
            // Without a battery it has external power.
            if battery <= 100 { list.add(numbered: .number("battery", battery, "%").ofSender) }
        case (0x04, 1):
            guard let door = value.u8() else { return }
            let words = ["open", "closed", "left open"]
            list.add(numbered: ValueField("door", .text(words.dropFirst(Int(door)).first ?? "state \(door)")))
        case (0x07, 2):
            guard let pressure = value.u16() else { return }
            list.add(numbered: .scaled("pressure", pressure, exponent: -1, "hPa"))
        case (0x08, 4):
            guard let motion = value.u8(), let light = value.u24() else { return }
            list.add(numbered: ValueField("motion", .flag(motion != 0)))
            // In events these bytes are no measurement.
            if !isEvent { list.add(numbered: .number("illuminance", light, "lx")) }
        case (0x09, 4):
            guard let light = value.u32() else { return }
            list.add(numbered: .number("illuminance", light, "lx"))
        case (0x11, 1):
            guard let light = value.u8() else { return }
            list.add(numbered: ValueField("light", .flag(light != 0)))
        case (0x12, 4):
            guard let small = value.u16(), let large = value.u16() else { return }
            list.add(numbered: .number("pm2.5", small, "µg/m³"))
            list.add(numbered: .number("pm10", large, "µg/m³"))
        case (0x13, 2):
            guard let carbonDioxide = value.u16() else { return }
            list.add(numbered: .number("carbon dioxide", carbonDioxide, "ppm"))
        case (0x15, 2):
            guard let index = value.u16() else { return }
            list.add(numbered: .number("voc index", index))
        case (0x19, 1):
            guard let noise = value.u8() else { return }
            list.add(numbered: .number("noise", noise, "dB"))
        default: break
        }
    }

    private static func name(of product: UInt8) -> String? {
        switch product {
        case 0x01, 0x07, 0x16: "CGG1"
        case 0x04: "CGH1"
        case 0x09: "CGP1W"
        case 0x0C: "CGD1"
        case 0x0E, 0x24: "CGDN1"
        case 0x0F: "CGM1"
        case 0x10: "CGDK2"
        case 0x12: "CGPR1"
        case 0x15: "CGF1W"
        case 0x18, 0x26: "CGP23W"
        case 0x1E: "CGC1"
        case 0x33, 0x5D: "CGP22C"
        case 0x4F: "CGG3"
        case 0x52, 0x62: "CGR1PC"
        default: nil
        }
    }
}
