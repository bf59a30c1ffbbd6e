/// Apple's proximity beacon.
///
///     company 0x004C | 02 15 | proximity UUID 16 | major 2 | minor 2 | power 1        all big-endian
public struct IBeacon: Hashable, Sendable {
    /// Names the owner's beacons.
    public let proximityUUID: BluetoothUUID
    /// Groups beacons, such as by building.
    public let major: UInt16
    /// Names a beacon in its group.
    public let minor: UInt16
    /// The signal strength in dBm that a receiver sees at one metre.
    public let measuredPower: Int8

    /// Reads what stands behind the company.
    init?(_ value: inout ByteReader) {
        guard value.u16() == 0x1502, let high = value.u64(), let low = value.u64(), let major = value.bigEndian16(),
            let minor = value.bigEndian16(), let power = value.i8()
        else { return nil }
        proximityUUID = BluetoothUUID(high: high.byteSwapped, low: low.byteSwapped)
        self.major = major
        self.minor = minor
        measuredPower = power
    }

    var meaning: AdvertisementMeaning {
        AdvertisementMeaning(
            .iBeacon, "iBeacon",
            [
                ValueField("uuid", .text(proximityUUID.dashed), showsName: false), .number("major", major),
                .number("minor", minor), .number("power at 1 m", measuredPower, "dBm"),
            ])
    }
}

extension AdvertisingData {
    /// The payload as an iBeacon. Some makers append bytes; they are ignored.
    public var iBeacon: IBeacon? {
        withManufacturerData(of: 0x004C) { IBeacon(&$0) }
    }
}
