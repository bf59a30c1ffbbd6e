internal import BareBLE

/// The identifiers of devices: UUIDs that contain the address, so that they need no store and hold on every machine.
///
/// The layout is that of version 8, for custom data: octets 0 to 5, 9 and the free bits of 6 and 8 are a tag; octet 7
/// is the type of the address; octets 10 to 15 are the address, the most significant one first.
///
/// Spec: UUID Version 8, RFC 9562, 5.8.
enum PeerIdentifier {
    private static let tag: (head: UInt64, octet8: UInt64, octet9: UInt64) = (0x4241_5245_424C_80, 0x80, 0x45)

    /// Returns the identifier of a device.
    static func uuid(of peer: PeerID) -> UUID {
        let high = tag.head << 8 | UInt64(peer.type.rawValue)
        let low = tag.octet8 << 56 | tag.octet9 << 48 | peer.address.rawValue
        // 36 characters that `dashed` has just made are a UUID.
        return UUID(uuidString: BluetoothUUID(high: high, low: low).dashed) ?? UUID()
    }

    /// Returns the device that has an identifier; `nil` for a UUID that no device has.
    static func peer(of uuid: UUID) -> PeerID? {
        guard let value = BluetoothUUID(uuid.uuidString), value.high >> 8 == tag.head,
            value.low >> 48 == tag.octet8 << 8 | tag.octet9,
            let type = AddressType(rawValue: UInt8(value.high & 0xFF)), type == type.space
        else { return nil }
        return PeerID(address: BluetoothAddress(rawValue: value.low), type: type)
    }
}
