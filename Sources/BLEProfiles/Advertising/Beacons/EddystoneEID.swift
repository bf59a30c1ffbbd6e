internal import BLECore

/// An Eddystone-EID frame: an ephemeral identifier that only key holders can resolve.
///
///     30 | power 1 | identifier 8
public struct EddystoneEID: Hashable, Sendable {
    /// The transmit power at 0 m, in dBm; the expected signal strength at one metre is 41 dB lower.
    public let txPower: Int8
    /// The identifier, 8 bytes; changes every few minutes.
    public let identifier: [UInt8]

    init?(_ value: inout ByteReader) {
        guard let power = value.i8(), let identifier = value.array(8) else { return nil }
        self.txPower = power
        self.identifier = identifier
    }
}
