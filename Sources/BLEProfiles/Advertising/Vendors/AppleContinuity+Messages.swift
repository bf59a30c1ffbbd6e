internal import BLECore

extension AppleContinuity {
    /// A HomeKit accessory.
    ///
    ///     status 1 | device identifier 6 | category 2 | state 2 | configuration 1 | version 1
    ///              | setup hash 4, often missing
    ///
    /// Spec: HomeKit Accessory Protocol, Non-Commercial Version R2, 7.4.2.1.
    static func homeKit(_ message: inout ByteReader) -> [ValueField] {
        guard let status = message.u8(), message.skip(6), let category = message.u16() else { return [] }
        var list = FieldList()
        list.add("pairing", word: status & 1 == 0 ? "paired" : "not paired")
        list.add("category", category)
        return list.fields
    }

    /// A nearby action, such as a device setup.
    ///
    ///     flags 1 | action 1 | …
    static func nearbyAction(_ message: inout ByteReader) -> [ValueField] {
        guard message.skip(1), let action = message.u8(), let word = word(forAction: action) else { return [] }
        var list = FieldList()
        list.add("action", word: word)
        return list.fields
    }

    /// Nearby info: the user's current activity.
    ///
    ///     status in the upper half, activity in the lower half of 1 | flags 1 | …
    static func nearbyInfo(_ message: inout ByteReader) -> [ValueField] {
        guard let first = message.u8(), let word = word(forActivity: first & 0x0F) else { return [] }
        var list = FieldList()
        list.add("activity", word: word)
        return list.fields
    }

    private static func word(forActivity code: UInt8) -> String? {
        switch code {
        case 0x03: "screen off"
        case 0x05: "audio with the screen off"
        case 0x07: "screen on"
        case 0x09: "video"
        case 0x0A: "watch on the wrist"
        case 0x0B: "in use"
        case 0x0D: "driving"
        case 0x0E: "in a call"
        default: nil
        }
    }

    private static func word(forAction code: UInt8) -> String? {
        switch code {
        case 0x01: "Apple TV setup"
        case 0x04: "mobile backup"
        case 0x05: "watch setup"
        case 0x06: "Apple TV pairing"
        case 0x07: "internet relay"
        case 0x08: "Wi-Fi password"
        case 0x09: "iOS setup"
        case 0x0A: "repair"
        case 0x0B: "speaker setup"
        case 0x0C: "Apple Pay"
        case 0x0D: "home audio setup"
        case 0x0E: "developer tools pairing"
        case 0x0F: "answered call"
        case 0x10: "ended call"
        default: nil
        }
    }
}
