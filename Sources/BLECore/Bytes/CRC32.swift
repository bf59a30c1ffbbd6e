/// The CRC-32 of Ethernet, zip and PNG, for stored data.
///
/// It detects every burst error of up to 32 bits. It does not protect against deliberate changes.
package enum CRC32 {
    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        var remainder = UInt32.max
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 {
                remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ 0xEDB8_8320
            }
        }
        return ~remainder
    }
}
