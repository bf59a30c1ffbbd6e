public import BLECore

extension WriteSigner {
    /// Creates a signer with the connection signature resolving key (CSRK) that the peer received during bonding.
    ///
    /// - Parameters:
    ///   - key: 16 bytes in transmission order, least significant first. Reverse a key that is printed as one number.
    ///   - counter: 0 for a new key, otherwise the stored counter.
    /// - Returns: `nil` if the key is not 16 bytes long.
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
