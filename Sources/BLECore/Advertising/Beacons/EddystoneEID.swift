/// Names a beacon, to holders of its key only.
///
///     30 | power 1 | identifier 8
public struct EddystoneEID: Hashable, Sendable {
    /// The signal strength in dBm at no distance; at one metre it is 41 less.
    public let txPower: Int8
    /// Changes every few minutes, 8 bytes.
    public let identifier: [UInt8]

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let identifier = value.array(8) else { return nil }
        self.txPower = power
        self.identifier = identifier
    }
}
