/// Names a beacon.
///
///     00 | power 1 | namespace 10 | instance 6 | reserved 2, often missing
public struct EddystoneUID: Hashable, Sendable {
    /// The signal strength in dBm at no distance; at one metre it is 41 less.
    public let txPower: Int8
    /// Names the owner's beacons, 10 bytes.
    public let namespace: [UInt8]
    /// Names a beacon in the namespace, 6 bytes.
    public let instance: [UInt8]

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let namespace = value.array(10), let instance = value.array(6) else { return nil }
        self.txPower = power
        self.namespace = namespace
        self.instance = instance
    }
}
