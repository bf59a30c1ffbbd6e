/// The cyclic redundancy check of Ethernet, zip and PNG, over bytes at rest.
///
/// It finds every error of up to 32 bits in a row. It is no protection against anybody who means harm.
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
