public import BLECore

extension WriteSigner {
    /// A signer with a connection signature resolving key, as the peer got it when it was bonded.
    ///
    /// - Parameters:
    ///   - key: 16 bytes in the order in which they cross the air: least significant first. Where a key is printed as one
    ///     number, reverse it.
    ///   - counter: 0 for a new key; else what was stored.
    /// - Returns: `nil` for a key of another length.
    ///
    /// Spec: Signature Generation, Core Vol 3 Part H, 2.4.5.
    public init?(key: [UInt8], counter: UInt32) {
        guard key.count == AESCMAC.keyLength else { return nil }
        let number = Array(key.reversed())
        self.init(counter: counter) { message in
            let code = AESCMAC.code(of: message.reversed(), key: number) ?? []
            return code.prefix(Self.codeLength).reversed()
        }
    }
}
