public import BLECore

/// An iBeacon, Apple's proximity beacon.
///
///     company 0x004C | 02 15 | proximity UUID 16 | major 2 | minor 2 | power 1        all big-endian
public struct IBeacon: Hashable, Sendable {
    /// The UUID shared by the owner's beacons.
    public let proximityUUID: BluetoothUUID
    /// The group number, for example one per building.
    public let major: UInt16
    /// The beacon's number in its group.
    public let minor: UInt16
    /// The expected signal strength at one metre, in dBm.
    public let measuredPower: Int8

    /// Reads the data after the company identifier.
    init?(_ value: inout ByteReader) {
        guard value.u16() == 0x1502, let high = value.u64(), let low = value.u64(), let major = value.bigEndian16(),
            let minor = value.bigEndian16(), let power = value.i8()
        else { return nil }
        proximityUUID = BluetoothUUID(high: high.byteSwapped, low: low.byteSwapped)
        self.major = major
        self.minor = minor
        measuredPower = power
    }

    var meaning: DecodedAdvertisement {
        DecodedAdvertisement(
            .iBeacon, "iBeacon",
            [
                ValueField("uuid", .text(proximityUUID.dashed), showsName: false), .number("major", major),
                .number("minor", minor), .number("power at 1 m", measuredPower, "dBm").ofSender,
            ])
    }
}

extension AdvertisingData {
    /// The payload as an iBeacon. Bytes that some vendors append are ignored.
    public var iBeacon: IBeacon? {
        withManufacturerData(of: 0x004C) { IBeacon(&$0) }
    }
}
