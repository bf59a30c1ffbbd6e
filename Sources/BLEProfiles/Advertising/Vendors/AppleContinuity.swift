internal import BLECore

/// Continuity messages between Apple devices: a sequence of type, length and value.
///
///     company 0x004C | type 1 | length 1 | message …        repeated
///
/// Apple documents only iBeacon and HomeKit. Spec: "Handoff All Your Privacy" (Martin et al., PoPETs 2019),
/// "Discontinued Privacy" (Celosia and Cunche, PoPETs 2020), and the project furiousMAC/continuity.
enum AppleContinuity {
    static func decode(_ value: inout ByteReader) -> DecodedAdvertisement? {
        var copy = value
        if let beacon = IBeacon(&copy) { return beacon.meaning }
        if let overflow = overflow(value) { return overflow }
        var messages: [ValueField.Content] = []
        var details = FieldList()
        var (isKnown, isFindMy) = (false, false)
        while !value.isAtEnd {
            guard let type = value.u8(), var message = message(type, &value) else { return nil }
            isFindMy = type == 0x12
            isKnown = isKnown || name(of: type) != nil
            messages.append(.text(name(of: type) ?? "0x" + Hex.encode([type])))
            for field in describe(type, &message) where !details.fields.contains(where: { $0.name == field.name }) {
                details.add(field)
            }
        }
        guard isKnown else { return nil }
        if isFindMy, messages.count == 1 { return DecodedAdvertisement(.findMy, "Find My", details.fields) }
        let list = ValueField("messages", .list(messages), showsName: false)
        return DecodedAdvertisement(.appleContinuity, "Apple", [list] + details.fields)
    }

    /// Reads the bytes of one message. For two types, the upper bits of the length have another meaning.
    @_lifetime(copy value)
    @_lifetime(value: copy value)
    private static func message(_ type: UInt8, _ value: inout ByteReader) -> ByteReader? {
        guard let length = value.u8() else { return nil }
        return value.take(Int(type == 0x06 || type == 0x11 ? length & 0x1F : length))
    }

    /// The overflow area: one bit for each service of background apps, without a length.
    private static func overflow(_ value: borrowing ByteReader) -> DecodedAdvertisement? {
        var value = copy value
        guard value.u8() == 0x01, value.remaining == 16 else { return nil }
        let message = ValueField.Content.text("services in the background")
        return DecodedAdvertisement(
            .appleContinuity, "Apple", [ValueField("messages", .list([message]), showsName: false)])
    }

    private static func name(of type: UInt8) -> String? {
        switch type {
        case 0x03: "AirPrint"
        case 0x05: "AirDrop"
        case 0x06: "HomeKit"
        case 0x07: "proximity pairing"
        case 0x08: "Hey Siri"
        case 0x09: "AirPlay target"
        case 0x0A: "AirPlay source"
        case 0x0B: "MagicSwitch"
        case 0x0C: "Handoff"
        case 0x0D: "tethering target"
        case 0x0E: "tethering source"
        case 0x0F: "nearby action"
        case 0x10: "nearby info"
        case 0x11: "HomeKit notification"
        case 0x12: "Find My"
        default: nil
        }
    }

    private static func describe(_ type: UInt8, _ message: inout ByteReader) -> [ValueField] {
        switch type {
        case 0x06: homeKit(&message)
        case 0x07: AirPods.fields(of: &message)
        case 0x0F: nearbyAction(&message)
        case 0x10: nearbyInfo(&message)
        case 0x12: FindMy.fields(of: &message)
        default: []
        }
    }
}
