/// The input of the function that signs a write with the key of a bond: the connection signature resolving key (CSRK)
/// that the peer received in the pairing, and the packet.
///
/// `import BareBLECrypto` adds `code`. A program with an AES-CMAC of its own computes it with the key over the bytes of
/// `packet` in reverse order; the code is the first eight bytes of the result, in reverse order too.
///
/// Its description shows no key.
///
/// Spec: Signature Generation, Core Vol 3 Part H, 2.4.5.
public struct WriteSignatureMessage: Hashable, Sendable {
    private let key: Secret128
    /// The signed write without its code, in the order of transmission: opcode, handle, value, counter.
    public let packet: [UInt8]

    package init(key: Secret128, packet: [UInt8]) {
        self.key = key
        self.packet = packet
    }

    /// Calls `body` with the key: 16 bytes, most significant first, as AES takes them.
    public func withKey<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        key.withBytes { bytes in
            let number: InlineArray<16, UInt8> = InlineArray { index in bytes[15 - index] }
            return body(number.span)
        }
    }
}
