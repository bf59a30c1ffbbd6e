public import BLECore
internal import Crypto
internal import CryptoExtras

extension EncryptedMessage {
    /// The decrypted bytes; `nil` if the authentication code does not fit the key, or the lengths do not fit the mode.
    ///
    /// `AdvertisementKeys` takes it as `{ $0.plaintext }`.
    public var plaintext: [UInt8]? {
        let key = withKey { key in unsafe key.withUnsafeBytes { unsafe SymmetricKey(data: $0) } }
        switch mode {
        case .counter(let block):
            return Self.counted(bytes, from: block, key)
        case .ccm(let nonce, let associatedData, let tag):
            return opened(nonce, associatedData, tag, key)
        }
    }

    /// Spec: Authenticated Decryption, RFC 3610, 2.5; the formatting of the first block and of the associated data,
    /// 2.2.
    private func opened(
        _ nonce: [UInt8], _ associatedData: [UInt8], _ tag: [UInt8], _ key: SymmetricKey
    ) -> [UInt8]? {
        guard (7...13).contains(nonce.count), (4...16).contains(tag.count), tag.count.isMultiple(of: 2),
            bytes.count <= Int(UInt16.max), associatedData.count < 0xFF00
        else { return nil }
        let lengthSize = 15 - nonce.count
        // The code is encrypted with the first counter, the bytes with those that follow.
        let start = [UInt8(lengthSize - 1)] + nonce + [UInt8](repeating: 0, count: lengthSize)
        let padding = [UInt8](repeating: 0, count: Self.blockLength - tag.count)
        guard let all = Self.counted(tag + padding + bytes, from: start, key) else { return nil }
        let plain = Array(all.dropFirst(Self.blockLength))
        let flags = UInt8((associatedData.isEmpty ? 0 : 0x40) | ((tag.count - 2) / 2) << 3 | (lengthSize - 1))
        var message = [flags] + nonce + [UInt8](repeating: 0, count: lengthSize - 2) + Self.bigEndian(plain.count)
        if !associatedData.isEmpty { message += Self.padded(Self.bigEndian(associatedData.count) + associatedData) }
        message += Self.padded(plain)
        guard let zeros = try? AES._CBC.IV(ivBytes: [UInt8](repeating: 0, count: Self.blockLength)),
            let chain = try? AES._CBC.encrypt(message, using: key, iv: zeros, noPadding: true),
            chain.suffix(Self.blockLength).prefix(tag.count).elementsEqual(all.prefix(tag.count))
        else { return nil }
        return plain
    }

    private static let blockLength = 16

    private static func counted(_ bytes: [UInt8], from block: [UInt8], _ key: SymmetricKey) -> [UInt8]? {
        guard block.count == blockLength, let nonce = try? AES._CTR.Nonce(nonceBytes: block),
            let result = try? AES._CTR.decrypt(bytes, using: key, nonce: nonce)
        else { return nil }
        return Array(result)
    }

    private static func bigEndian(_ count: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
    }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: (blockLength - bytes.count % blockLength) % blockLength)
    }
}
