internal import BLECore

/// An Eddystone-UID frame: a beacon identifier.
///
///     00 | power 1 | namespace 10 | instance 6 | reserved 2, often missing
public struct EddystoneUID: Hashable, Sendable {
    /// The transmit power at 0 m, in dBm; the expected signal strength at one metre is 41 dB lower.
    public let txPower: Int8
    /// The namespace of the owner's beacons, 10 bytes.
    public let namespace: [UInt8]
    /// The beacon's identifier in the namespace, 6 bytes.
    public let instance: [UInt8]

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let namespace = value.array(10), let instance = value.array(6) else { return nil }
        self.txPower = power
        self.namespace = namespace
        self.instance = instance
    }
}
