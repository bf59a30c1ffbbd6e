internal import BLECore

extension BTHomeObject {
    /// Returns the object for a measured quantity of air, ground, water or electricity.
    static func measured(_ identifier: UInt8) -> Self? {
        switch identifier {
        case 0x01: .ofSender(.number("battery", ValueScale(byteCount: 1, unit: "%")))
        case 0x02: .number("temperature", ValueScale(byteCount: 2, isSigned: true, exponent: -2, unit: "°C"))
        case 0x03: .number("humidity", ValueScale(byteCount: 2, exponent: -2, unit: "%"))
        case 0x04: .number("pressure", ValueScale(byteCount: 3, exponent: -2, unit: "hPa"))
        case 0x05: .number("illuminance", ValueScale(byteCount: 3, exponent: -2, unit: "lx"))
        case 0x06: .number("mass", ValueScale(byteCount: 2, exponent: -2, unit: "kg"))
        case 0x07: .number("mass", ValueScale(byteCount: 2, exponent: -2, unit: "lb"))
        case 0x08: .number("dew point", ValueScale(byteCount: 2, isSigned: true, exponent: -2, unit: "°C"))
        case 0x0A: .number("energy", ValueScale(byteCount: 3, exponent: -3, unit: "kWh"))
        case 0x0B: .number("power", ValueScale(byteCount: 3, exponent: -2, unit: "W"))
        case 0x0C: .number("voltage", ValueScale(byteCount: 2, exponent: -3, unit: "V"))
        case 0x0D: .number("pm2.5", ValueScale(byteCount: 2, unit: "µg/m³"))
        case 0x0E: .number("pm10", ValueScale(byteCount: 2, unit: "µg/m³"))
        case 0x12: .number("carbon dioxide", ValueScale(byteCount: 2, unit: "ppm"))
        case 0x13: .number("organic compounds", ValueScale(byteCount: 2, unit: "µg/m³"))
        case 0x14: .number("moisture", ValueScale(byteCount: 2, exponent: -2, unit: "%"))
        case 0x2E: .number("humidity", ValueScale(byteCount: 1, unit: "%"))
        case 0x2F: .number("moisture", ValueScale(byteCount: 1, unit: "%"))
        case 0x43: .number("current", ValueScale(byteCount: 2, exponent: -3, unit: "A"))
        case 0x45: .number("temperature", ValueScale(byteCount: 2, isSigned: true, exponent: -1, unit: "°C"))
        case 0x46: .number("uv index", ValueScale(byteCount: 1, exponent: -1, unit: ""))
        case 0x47: .number("volume", ValueScale(byteCount: 2, exponent: -1, unit: "L"))
        case 0x48: .number("volume", ValueScale(byteCount: 2, unit: "mL"))
        case 0x49: .number("flow rate", ValueScale(byteCount: 2, exponent: -3, unit: "m³/h"))
        case 0x4A: .number("voltage", ValueScale(byteCount: 2, exponent: -1, unit: "V"))
        case 0x4B: .number("gas", ValueScale(byteCount: 3, exponent: -3, unit: "m³"))
        case 0x4C: .number("gas", ValueScale(byteCount: 4, exponent: -3, unit: "m³"))
        case 0x4D: .number("energy", ValueScale(byteCount: 4, exponent: -3, unit: "kWh"))
        case 0x4E: .number("volume", ValueScale(byteCount: 4, exponent: -3, unit: "L"))
        case 0x4F: .number("water", ValueScale(byteCount: 4, exponent: -3, unit: "L"))
        case 0x55: .number("stored volume", ValueScale(byteCount: 4, exponent: -3, unit: "L"))
        case 0x56: .number("conductivity", ValueScale(byteCount: 2, unit: "µS/cm"))
        case 0x57: .number("temperature", ValueScale(byteCount: 1, isSigned: true, unit: "°C"))
        case 0x58:
            .number("temperature", ValueScale(byteCount: 1, isSigned: true, multiplier: 35, exponent: -2, unit: "°C"))
        case 0x5C: .number("power", ValueScale(byteCount: 4, isSigned: true, exponent: -2, unit: "W"))
        case 0x5D: .number("current", ValueScale(byteCount: 2, isSigned: true, exponent: -3, unit: "A"))
        case 0x5F: .number("precipitation", ValueScale(byteCount: 2, exponent: -1, unit: "mm"))
        default: nil
        }
    }

    /// Returns the object for a count, a motion value or device information.
    static func counted(_ identifier: UInt8) -> Self? {
        switch identifier {
        case 0x00: .number("packet id", ValueScale(byteCount: 1, unit: ""))
        case 0x09: .number("count", ValueScale(byteCount: 1, unit: ""))
        case 0x3D: .number("count", ValueScale(byteCount: 2, unit: ""))
        case 0x3E: .number("count", ValueScale(byteCount: 4, unit: ""))
        case 0x3F: .number("rotation", ValueScale(byteCount: 2, isSigned: true, exponent: -1, unit: "°"))
        case 0x40: .number("distance", ValueScale(byteCount: 2, unit: "mm"))
        case 0x41: .number("distance", ValueScale(byteCount: 2, exponent: -1, unit: "m"))
        case 0x42: .number("duration", ValueScale(byteCount: 3, exponent: -3, unit: "s"))
        case 0x44: .number("speed", ValueScale(byteCount: 2, exponent: -2, unit: "m/s"))
        case 0x50: .number("timestamp", ValueScale(byteCount: 4, unit: "s"))
        case 0x51: .number("acceleration", ValueScale(byteCount: 2, exponent: -3, unit: "m/s²"))
        case 0x52: .number("gyroscope", ValueScale(byteCount: 2, exponent: -3, unit: "°/s"))
        case 0x59: .number("count", ValueScale(byteCount: 1, isSigned: true, unit: ""))
        case 0x5A: .number("count", ValueScale(byteCount: 2, isSigned: true, unit: ""))
        case 0x5B: .number("count", ValueScale(byteCount: 4, isSigned: true, unit: ""))
        case 0x5E: .number("direction", ValueScale(byteCount: 2, exponent: -2, unit: "°"))
        case 0x60: .number("channel", ValueScale(byteCount: 1, unit: ""))
        case 0x61: .number("rotational speed", ValueScale(byteCount: 2, unit: "rpm"))
        case 0x62: .number("speed", ValueScale(byteCount: 4, isSigned: true, exponent: -6, unit: "m/s"))
        case 0x63: .number("acceleration", ValueScale(byteCount: 4, isSigned: true, exponent: -6, unit: "m/s²"))
        case 0xF0: .number("device type", ValueScale(byteCount: 2, unit: ""))
        case 0xF1: .number("firmware", ValueScale(byteCount: 4, unit: ""))
        case 0xF2: .number("firmware", ValueScale(byteCount: 3, unit: ""))
        default: nil
        }
    }

    /// Returns the object for a binary sensor.
    static func binary(_ identifier: UInt8) -> Self? {
        switch identifier {
        case 0x0F: .flag("on")
        case 0x10: .flag("power")
        case 0x11: .word("opening", "open", "closed")
        case 0x15: .flag("low battery")
        case 0x16: .flag("charging")
        case 0x17: .flag("carbon monoxide")
        case 0x18: .flag("cold")
        case 0x19: .flag("connection")
        case 0x1A: .word("door", "open", "closed")
        case 0x1B: .word("garage door", "open", "closed")
        case 0x1C: .flag("gas leak")
        case 0x1D: .flag("heat")
        case 0x1E: .flag("light")
        case 0x1F: .word("lock", "unlocked", "locked")
        case 0x20: .flag("wetness")
        case 0x21: .flag("motion")
        case 0x22: .flag("moving")
        case 0x23: .flag("occupancy")
        case 0x24: .word("plug", "in", "out")
        case 0x25: .flag("presence")
        case 0x26: .flag("problem")
        case 0x27: .flag("running")
        case 0x28: .word("safety", "safe", "not safe")
        case 0x29: .flag("smoke")
        case 0x2A: .flag("sound")
        case 0x2B: .flag("tampering")
        case 0x2C: .flag("vibration")
        case 0x2D: .word("window", "open", "closed")
        default: nil
        }
    }
}
