/// Signs writes on a link without encryption, so that the peer can authenticate them.
///
/// The peer received the key during bonding. It accepts each counter once and only in ascending order, so the signer
/// must outlive the link: the counter with which the next signer begins has to be stored before a signed write is
/// sent. Two copies of a signer use the same counters, of which the peer accepts only the first, and silently drops
/// the second.
///
/// ``reserve(_:)`` does that for many writes at once: a crash loses the remaining reserved counters, and uses none
/// twice.
///
/// The cipher is not part of this module: a function computes the code, such as that of the product `BareBLECrypto`.
///
/// Spec: Core Vol 3 Part H, 2.4.5.
public struct WriteSigner: Sendable {
    /// The length of the authentication code, in bytes.
    public static let codeLength = ATTSignedWriteCommand.signatureLength - 4

    /// The counter of the next signature; `nil` when all have been used, and the key is exhausted.
    public private(set) var counter: UInt32?
    /// The number of counters that may still be used, if some were reserved.
    private var reserved: UInt32?
    private let code: @Sendable ([UInt8]) -> [UInt8]

    /// Creates a signer whose next signature has `counter`.
    ///
    /// - Parameters:
    ///   - counter: 0 for a new key; otherwise the stored one.
    ///   - code: Computes the authentication code of a message. The message is in the order of transmission: opcode,
    ///     handle, value, counter. The specification's function reads it as one number, least significant byte first;
    ///     of the 16 bytes that it returns, the 8 most significant are the code, and they are returned least
    ///     significant first.
    public init(counter: UInt32, code: @escaping @Sendable (_ message: [UInt8]) -> [UInt8]) {
        self.counter = counter
        self.code = code
    }

    /// The number of reserved counters that are left; `nil` if none were ever reserved, and all may be used.
    public var reservedCount: UInt32? { reserved }

    /// Reserves the next `count` counters, and returns the one to store: the next signer begins with it.
    ///
    /// Store it before anything more is signed. From then on `sign` uses only these counters, and returns
    /// `nil` when they are used up, until more are reserved. Counters left from an earlier reservation are among the
    /// next `count`.
    ///
    /// - Returns: The counter; `nil` if none is left beyond the reserved ones: the key then must not be used by
    ///   another signer.
    public mutating func reserve(_ count: UInt32) -> UInt32? {
        guard let counter else {
            reserved = 0
            return nil
        }
        let (next, isBeyond) = counter.addingReportingOverflow(count)
        reserved = count
        return isBeyond ? nil : next
    }

    /// Signs a write and increments the counter.
    ///
    /// - Returns: The signed write; `nil` if all counters, or all reserved ones, have been used, or the function did
    ///   not return a code of 8 bytes.
    package mutating func sign(_ value: [UInt8], for handle: AttributeHandle) -> ATTSignedWriteCommand? {
        guard let counter, reserved != 0 else { return nil }
        var number = ByteWriter(reserving: ATTSignedWriteCommand.signatureLength)
        number.u32(counter)
        // The signature covers the packet without the signature.
        let unsigned = ATTSignedWriteCommand(handle: handle, value: value, signature: number.bytes).bytes
        let code = code(unsigned)
        guard code.count == Self.codeLength else { return nil }
        self.counter = counter == .max ? nil : counter &+ 1
        reserved = reserved.map { $0 &- 1 }
        return ATTSignedWriteCommand(handle: handle, value: value, signature: number.bytes + code)
    }
}
