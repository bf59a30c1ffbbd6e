internal import BLECore

// The positions of addresses and names in the formats of manufacturers and services. The layouts are described at the
// formats themselves; the text here only lists the fields that identify the device.
//
// A format that is decoded leniently is masked leniently: the fields are found by the bytes that announce them, also in
// data that the decoder would refuse.

/// A part of manufacturer or service data that identifies the device or its owner.
package enum IdentifyingField: Hashable, Sendable {
    /// The six bytes of an address.
    case address(at: Int, isBigEndian: Bool)
    /// Text, or an address of another form, from here to the end.
    case rest(from: Int)

    /// Returns the fields in data of a service. Offsets count from the first byte after the UUID.
    package static func fields(service: UInt16, _ value: Span<UInt8>) -> [IdentifyingField] {
        switch service {
        case 0x181A: ATCThermometer.identifyingFields(in: value)
        case 0xFCD2: BTHome.identifyingFields(in: value)
        case 0xFDCD: [.address(at: 2, isBigEndian: false)]
        case 0xFE95: MiBeacon.identifyingFields(in: value)
        default: []
        }
    }

    /// Returns the fields in a manufacturer's data. Offsets count from the first byte after the company identifier.
    package static func fields(company: UInt16, _ value: Span<UInt8>) -> [IdentifyingField] {
        switch company {
        case 0x0006: MicrosoftBeacon.identifyingFields(in: value)
        // Mopeka's sensors: half of the address, and what follows it.
        case 0x0059: value.count == 10 ? [.rest(from: 5)] : []
        case 0x0499: RuuviTag.identifyingFields(in: value)
        default: []
        }
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
