internal import BLECore

// The positions of addresses, names and lasting identifiers in the formats of manufacturers and services. The layouts
// are described at the formats themselves; the text here only lists the fields that identify the device.
//
// A format that is decoded leniently is masked leniently: the fields are found by the bytes that announce them, also in
// data that the decoder would refuse. Identifiers that change every few minutes, such as those of Eddystone-EID, are
// not listed.

/// A part of manufacturer or service data that identifies the device or its owner.
package enum IdentifyingField: Hashable, Sendable {
    /// The six bytes of an address.
    case address(at: Int, isBigEndian: Bool)
    /// Text, or an address of another form, from here to the end.
    case rest(from: Int)
    /// Bytes that distinguish a device or its owner for as long as it is not configured again.
    case identifier(at: Int, count: Int)

    /// Returns the fields in data of a service. Offsets count from the first byte after the UUID.
    package static func fields(service: UInt16, _ value: Span<UInt8>) -> [IdentifyingField] {
        switch service {
        case 0x181A: ATCThermometer.identifyingFields(in: value)
        case 0xFCD2: BTHome.identifyingFields(in: value)
        case 0xFEAA: Eddystone.identifyingFields(in: value)
        case 0xFEEC, 0xFEED: Tile.identifyingFields(in: value)
        case 0xFDCD: [.address(at: 2, isBigEndian: false)]
        case 0xFE95: MiBeacon.identifyingFields(in: value)
        default: []
        }
    }

    /// Returns the fields in a manufacturer's data. Offsets count from the first byte after the company identifier.
    package static func fields(company: UInt16, _ value: Span<UInt8>) -> [IdentifyingField] {
        switch company {
        case 0x0006: MicrosoftBeacon.identifyingFields(in: value)
        case 0x004C: AppleContinuity.identifyingFields(in: value)
        // Mopeka's sensors: half of the address, and what follows it.
        case 0x0059: value.count == 10 ? [.rest(from: 5)] : []
        case 0x0499: RuuviTag.identifyingFields(in: value)
        default: AltBeacon.identifyingFields(in: value)
        }
    }
}

extension DecodedAdvertisement.Kind {
    /// Returns a name without what distinguishes a device from others of its model, and with `alias` in its place, by
    /// which data of this format is still recognized.
    ///
    /// `nil` if data of this format needs no name, and for a name by which it would not be recognized.
    func masked(_ name: [UInt8], as alias: String) -> String? {
        switch self {
        case .govee: Govee.masked(name, as: alias)
        // All of them have the same name.
        case .inkbird: Inkbird.isName(name) ? String(decoding: name, as: UTF8.self) : nil
        case .thermoPro: ThermoPro.isName(name) ? "\(ThermoPro.model(in: name) ?? "TP3") \(alias)" : nil
        default: nil
        }
    }
}

extension Govee {
    /// The model is masked too where it is not at its usual place: what looks like one may be part of something else.
    static func masked(_ name: [UInt8], as alias: String) -> String? {
        guard let model = Self.model(in: name),
            ["GV\(model)", "Govee_\(model)", "B5178"].contains(where: { name.starts(with: $0.utf8) })
        else { return nil }
        return "GV\(model)_\(alias)"
    }
}

extension ATCThermometer {
    /// Both forms that are not encrypted begin with the address.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        switch value.count {
        case 13: [.address(at: 0, isBigEndian: true)]
        case 15: [.address(at: 0, isBigEndian: false)]
        default: []
        }
    }
}

extension BTHome {
    /// Bit 1 of the information byte indicates that the address follows, as Home Assistant's parser reads it.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        guard let information = reader.u8(), information & 0x02 != 0 else { return [] }
        return [.address(at: reader.offset, isBigEndian: false)]
    }
}

extension MiBeacon {
    /// The address follows control, product and counter.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        guard let control = reader.u16(), control & 0x10 != 0, reader.skip(3) else { return [] }
        return [.address(at: reader.offset, isBigEndian: false)]
    }
}

extension RuuviTag {
    /// Formats 5 and C5 end with the address.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        return switch reader.u8() {
        case 0x05: [.address(at: 18, isBigEndian: true)]
        case 0xC5: [.address(at: 12, isBigEndian: true)]
        default: []
        }
    }
}

extension MicrosoftBeacon {
    /// Both beacons end with an address, a name or both.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        switch reader.u8() {
        case 0x01:
            guard reader.skip(1), let flags = reader.u8(), flags & 1 != 0, reader.skip(1) else { return [] }
        case 0x03:
            guard reader.skip(2) else { return [] }
        default:
            return []
        }
        return [.rest(from: reader.offset)]
    }
}

extension AltBeacon {
    /// By convention the identifier is one of the organization, one of a group and one of the beacon.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        guard reader.bigEndian16() == 0xBEAC else { return [] }
        return IdentifyingField.proximity(at: reader.offset)
    }
}

extension AppleContinuity {
    /// An iBeacon has three identifiers; HomeKit's messages have the accessory's.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        var fields: [IdentifyingField] = []
        // The overflow area, type 1, has no length, and nothing follows it.
        while let type = reader.u8(), type != 0x01, let first = reader.u8() {
            let place = reader.offset
            let length = Int(type == 0x06 || type == 0x11 ? first & 0x1F : first)
            switch type {
            case 0x02 where length == 0x15: fields += IdentifyingField.proximity(at: place)
            case 0x06:
                fields.append(.identifier(at: place + 1, count: 6))
                // A hash of the identifier.
                if length >= 17 { fields.append(.identifier(at: place + 13, count: 4)) }
            case 0x11: fields.append(.identifier(at: place, count: 6))
            default: break
            }
            guard reader.skip(length) else { break }
        }
        return fields
    }
}

extension IdentifyingField {
    /// Returns the UUID, the group and the number of a proximity beacon.
    static func proximity(at place: Int) -> [IdentifyingField] {
        [
            .identifier(at: place, count: 16), .identifier(at: place + 16, count: 2),
            .identifier(at: place + 18, count: 2),
        ]
    }
}

extension Eddystone {
    /// The frame UID has a namespace and an instance.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        guard reader.u8() == 0x00 else { return [] }
        return [.identifier(at: 2, count: 10), .identifier(at: 12, count: 6)]
    }
}

extension Tile {
    /// The identifier does not change.
    static func identifyingFields(in value: Span<UInt8>) -> [IdentifyingField] {
        var reader = ByteReader(value)
        return reader.u16() == 0x0002 ? [.identifier(at: reader.offset, count: 8)] : []
    }
}
