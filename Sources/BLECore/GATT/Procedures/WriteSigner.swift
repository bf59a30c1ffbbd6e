/// Signs writes that go over a link without encryption, so that the peer knows who made them.
///
/// The peer got the key when it was bonded. It takes each counter once and only upwards, so the signer must outlive the
/// link: the number with which the next signer begins has to be stored before a signed write is sent. Two copies of a signer
/// that both sign give out the same numbers, of which the peer takes only the first, and drops the second without a word.
///
/// ``reserve(_:)`` does that for many writes at once: a crash costs the rest of the numbers that were set aside, and uses none twice.
///
/// The cipher is not this module's: the code comes from a function, for instance from the product `BareBLECrypto`.
///
/// Spec: Core Vol 3 Part H, 2.4.5.
public struct WriteSigner: Sendable {
    /// The length of the authentication code, in bytes.
    public static let codeLength = ATTSignedWriteCommand.signatureLength - 4

    /// The number that the next signature carries; `nil` when all have been used, and the key with them.
    public private(set) var counter: UInt32?
    /// How many more numbers may be used, where some were set aside.
    private var reserved: UInt32?
    private let code: @Sendable ([UInt8]) -> [UInt8]

    /// A signer whose next signature carries `counter`.
    ///
    /// - Parameters:
    ///   - counter: 0 for a new key; else what was stored.
    ///   - code: the authentication code of a message. The message comes as it is sent: opcode, handle, value, counter. The
    ///     specification's function reads it as one number, least significant byte first; of the 16 bytes that the function
    ///     gives, the 8 most significant are the code, and they are returned least significant first.
    public init(counter: UInt32, code: @escaping @Sendable (_ message: [UInt8]) -> [UInt8]) {
        self.counter = counter
        self.code = code
    }

    /// How many of the numbers that ``reserve(_:)`` set aside are left; `nil` where none ever were, and all may be used.
    public var reservedCount: UInt32? { reserved }

    /// Sets the next `count` numbers aside, and returns the one to store: with it the next signer begins.
    ///
    /// Store it before anything more is signed. From then on ``sign(_:for:)`` uses these numbers alone, and returns `nil` when they are
    /// used up, until more are set aside. What was left of earlier ones is among the next `count`.
    ///
    /// - Returns: `nil` when no number is left beyond them: the key then must not be used by another signer.
    public mutating func reserve(_ count: UInt32) -> UInt32? {
        guard let counter else {
            reserved = 0
            return nil
        }
        let (next, isBeyond) = counter.addingReportingOverflow(count)
        reserved = count
        return isBeyond ? nil : next
    }

    /// Signs a write and moves the counter on.
    ///
    /// - Returns: `nil` when all counters have been used, or all that were set aside, or the function gave no code of 8 bytes.
    public mutating func sign(_ value: [UInt8], for handle: AttributeHandle) -> ATTSignedWriteCommand? {
        guard let counter, reserved != 0 else { return nil }
        var number = ByteWriter(reserving: ATTSignedWriteCommand.signatureLength)
        number.u32(counter)
        // What is signed is the packet without its signature.
        let unsigned = ATTSignedWriteCommand(handle: handle, value: value, signature: number.bytes).bytes
        let code = code(unsigned)
        guard code.count == Self.codeLength else { return nil }
        self.counter = counter == .max ? nil : counter &+ 1
        reserved = reserved.map { $0 &- 1 }
        return ATTSignedWriteCommand(handle: handle, value: value, signature: number.bytes + code)
    }
}
