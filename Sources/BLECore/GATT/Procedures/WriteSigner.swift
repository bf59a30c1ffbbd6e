/// Signs writes that go over a link without encryption, so that the peer knows who made them.
///
/// The peer got the key when it was bonded. It takes each counter once and only upwards, so the signer must outlive the
/// link: store `counter` before the signed write is sent, and begin with it the next time. Two copies of a signer
/// that both sign give out the same numbers, of which the peer takes only the first.
///
/// The cipher is not this module's: the code comes from a function, for instance from the product `BareBLECrypto`.
///
/// Spec: Core Vol 3 Part H, 2.4.5.
public struct WriteSigner: Sendable {
    /// The length of the authentication code, in bytes.
    public static let codeLength = ATTSignedWriteCommand.signatureLength - 4

    /// The number that the next signature carries; `nil` when all have been used, and the key with them.
    public private(set) var counter: UInt32?
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

    /// Signs a write and moves the counter on.
    ///
    /// - Returns: `nil` when all counters have been used, or the function gave no code of 8 bytes.
    public mutating func sign(_ value: [UInt8], for handle: AttributeHandle) -> ATTSignedWriteCommand? {
        guard let counter else { return nil }
        var number = ByteWriter(reserving: ATTSignedWriteCommand.signatureLength)
        number.u32(counter)
        // What is signed is the packet without its signature.
        let unsigned = ATTSignedWriteCommand(handle: handle, value: value, signature: number.bytes).bytes
        let code = code(unsigned)
        guard code.count == Self.codeLength else { return nil }
        self.counter = counter == .max ? nil : counter &+ 1
        return ATTSignedWriteCommand(handle: handle, value: value, signature: number.bytes + code)
    }
}
