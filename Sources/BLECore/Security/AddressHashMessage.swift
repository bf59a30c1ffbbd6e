/// The input of `ah`, the function by which a bonded device is recognized under a resolvable private address: the
/// device's identity resolving key (IRK), and the random part of the address.
///
/// The hash of both is the other part of the address if the device made it. `import BareBLECrypto` adds `hash`. A
/// program with an AES-128 of its own encrypts `block` with the key; the hash is the last three bytes of the result.
///
/// Its description shows no key.
///
/// Spec: Random address hash function ah, Core Vol 3 Part H, 2.2.2.
public struct AddressHashMessage: Hashable, Sendable {
    private let key: Secret128
    /// The random part of the address, `prand`: its upper 24 bits.
    public let random: UInt32

    package init(key: Secret128, random: UInt32) {
        self.key = key
        self.random = random & 0xFF_FFFF
    }

    /// Calls `body` with the key: 16 bytes, most significant first, as AES takes them.
    public func withKey<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        key.withBytes { bytes in
            let number: InlineArray<16, UInt8> = InlineArray { index in bytes[15 - index] }
            return body(number.span)
        }
    }

    /// The block to encrypt: 13 zeros and the random part, most significant byte first.
    public var block: [UInt8] {
        var block = [UInt8](repeating: 0, count: 13)
        for shift: UInt32 in [16, 8, 0] { block.append(UInt8(truncatingIfNeeded: random >> shift)) }
        return block
    }
}
