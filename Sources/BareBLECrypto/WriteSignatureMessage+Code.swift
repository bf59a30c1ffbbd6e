public import BLECore

extension WriteSignatureMessage {
    /// The authentication code of the packet: 8 bytes, least significant first.
    ///
    /// `Configuration.writeSignature` takes it as `{ $0.code }`.
    ///
    /// Spec: Signature Generation, Core Vol 3 Part H, 2.4.5.
    public var code: [UInt8] {
        withKey { bytes in
            var key: [UInt8] = []
            key.reserveCapacity(bytes.count)
            for index in bytes.indices { key.append(bytes[index]) }
            defer { key.wipe() }
            let code = AESCMAC.code(of: packet.reversed(), key: key) ?? []
            return code.prefix(WriteSigner.codeLength).reversed()
        }
    }
}
