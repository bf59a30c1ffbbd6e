public import BLECore

/// An AltBeacon, the open proximity beacon of Radius Networks. Any company may send one.
///
///     company 2 | BE AC | identifier 20 | power 1 | reserved 1        all big-endian
///
/// Spec: AltBeacon Protocol Specification 1.0, Advertisement.
public struct AltBeacon: Hashable, Sendable {
    /// The beacon identifier, 20 bytes: by convention 16 for the organization, 2 for a group and 2 for the beacon.
    public let identifier: [UInt8]
    /// The expected signal strength at one metre, in dBm.
    public let measuredPower: Int8
    /// The manufacturer-reserved byte.
    public let reserved: UInt8

    /// Reads the data after the company identifier.
    init?(_ value: inout ByteReader) {
        guard value.bigEndian16() == 0xBEAC, let identifier = value.array(20), let power = value.i8(),
            let reserved = value.u8(), value.isAtEnd
        else { return nil }
        self.identifier = identifier
        measuredPower = power
        self.reserved = reserved
    }

    var meaning: DecodedAdvertisement {
        let bytes = identifier.span
        var reader = ByteReader(bytes)
        var fields: [ValueField] = []
        if let high = reader.u64(), let low = reader.u64(), let group = reader.bigEndian16(),
            let beacon = reader.bigEndian16()
        {
            let uuid = BluetoothUUID(high: high.byteSwapped, low: low.byteSwapped)
            fields += [
                ValueField("uuid", .text(uuid.dashed), showsName: false), .number("major", group),
                .number("minor", beacon),
            ]
        }
        fields.append(.number("power at 1 m", measuredPower, "dBm").ofSender)
        return DecodedAdvertisement(.altBeacon, "AltBeacon", fields)
    }
}

extension AdvertisingData {
    /// The payload as an AltBeacon of any company.
    public var altBeacon: AltBeacon? {
        first(.manufacturerSpecificData) { value in
            guard value.skip(2) else { return nil }
            return AltBeacon(&value)
        }
    }
}
