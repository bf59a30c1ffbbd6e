internal import BLECore

/// SwitchBot devices: their model and battery level and, for most, their measurements.
///
///     service 0xFD3D or 0x0D00 | model 1 | state 1 | battery 1 | …
///     company 0x0969 | address 6 | sequence 1 | state 1 | climate 3 | …           in addition, from newer thermometers
///
/// Spec: the project OpenWonderLabs/SwitchBotAPI-BLE, a page for each device.
enum SwitchBot {
    static func decode(_ value: inout ByteReader, in whole: AdvertisingData) -> DecodedAdvertisement? {
        guard let model = value.u8(), let name = name(of: model & 0x7F) else { return nil }
        var list = FieldList()
        let state = value.u8()
        let battery = value.u8()
        switch model & 0x7F {
        case 0x48: addBot(state, to: &list)
        case 0x44, 0x64: addContact(state, &value, to: &list)
        case 0x53, 0x73: addMotion(state, &value, to: &list)
        case 0x43, 0x63: addCurtain(&value, to: &list)
        case 0x54, 0x74, 0x49, 0x69, 0x57, 0x77, 0x34, 0x35: addClimate(&value, whole, to: &list)
        default: break
        }
        if let battery, battery & 0x7F <= 100, hasBattery(model & 0x7F) {
            list.ofSender { $0.measured("battery", battery & 0x7F, "%") }
        }
        return DecodedAdvertisement(.switchBot, "SwitchBot \(name)", list.fields)
    }

    private static func addBot(_ state: UInt8?, to list: inout FieldList) {
        guard let state else { return }
        // A bot in press mode is neither on nor off.
        list.add("switch", word: state & 0x80 == 0 ? nil : state & 0x40 == 0 ? "on" : "off")
    }

    private static func addContact(_ state: UInt8?, _ value: inout ByteReader, to list: inout FieldList) {
        guard let state, let contact = value.u8() else { return }
        list.add("contact", word: contact & 0x06 == 0 ? "closed" : "open")
        list.add("motion", flag: state & 0x40 != 0)
        list.add("light", flag: contact & 0x01 != 0)
    }

    private static func addMotion(_ state: UInt8?, _ value: inout ByteReader, to list: inout FieldList) {
        guard let state, value.skip(2), let last = value.u8() else { return }
        list.add("motion", flag: state & 0x40 != 0)
        list.add("light", flag: last & 0x02 != 0)
    }

    private static func addCurtain(_ value: inout ByteReader, to list: inout FieldList) {
        guard let position = value.u8(), let light = value.u8() else { return }
        list.measured("closed", min(position & 0x7F, 100), "%")
        list.add("moving", flag: position & 0x80 != 0)
        list.measured("light level", light >> 4)
    }

    /// Tenths in the lower half of the first byte, sign and whole degrees in the second, humidity in the third.
    private static func addClimate(_ value: inout ByteReader, _ whole: AdvertisingData, to list: inout FieldList) {
        let extra = whole.withManufacturerData(of: 0x0969) { maker -> [UInt8]? in
            guard maker.skip(8) else { return nil }
            return maker.array(3)
        }
        guard let bytes = extra ?? value.array(3) else { return }
        var climate = ByteReader(bytes.span)
        guard let tenths = climate.u8(), let degrees = climate.u8(), let humidity = climate.u8() else { return }
        let size = Int16(degrees & 0x7F) * 10 + Int16(tenths & 0x0F)
        list.measured("temperature", degrees & 0x80 == 0 ? 0 - size : size, exponent: -1, "°C")
        list.measured("humidity", humidity & 0x7F, "%")
    }

    private static func hasBattery(_ model: UInt8) -> Bool {
        switch model {
        case 0x48, 0x44, 0x64, 0x53, 0x73, 0x43, 0x63, 0x54, 0x74, 0x49, 0x69, 0x57, 0x77, 0x34, 0x35, 0x58, 0x78: true
        default: false
        }
    }

    /// Uppercase and lowercase codes are the same model; one of the two indicates a device in pairing mode.
    private static func name(of model: UInt8) -> String? {
        switch model {
        case 0x48: "Bot"
        case 0x44, 0x64: "Contact Sensor"
        case 0x53, 0x73: "Motion Sensor"
        case 0x43, 0x63: "Curtain"
        case 0x5B, 0x7B: "Curtain 3"
        case 0x54, 0x74: "Meter"
        case 0x49, 0x69: "Meter Plus"
        case 0x57, 0x77: "Outdoor Meter"
        case 0x34: "Meter Pro"
        case 0x35: "Meter Pro CO2"
        case 0x47, 0x67, 0x4A, 0x6A: "Plug Mini"
        case 0x55, 0x75: "Color Bulb"
        case 0x52, 0x72: "Light Strip"
        case 0x51, 0x71: "Ceiling Light"
        case 0x45, 0x65: "Humidifier"
        case 0x4F, 0x6F: "Lock"
        case 0x58, 0x78: "Blind Tilt"
        case 0x59, 0x79: "Keypad"
        case 0x56, 0x76: "Hub 2"
        case 0x42, 0x62: "Remote"
        default: nil
        }
    }
}
