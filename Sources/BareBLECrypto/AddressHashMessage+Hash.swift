public import BLECore
internal import Crypto
internal import CryptoExtras

extension AddressHashMessage {
    /// The hash, 24 bits: the lower half of an address that the owner of the key made with this random part.
    ///
    /// `Configuration.addressHash` takes it as `{ $0.hash }`.
    ///
    /// Spec: Random address hash function ah, Core Vol 3 Part H, 2.2.2.
    public var hash: UInt32 {
        let encrypted = withKey { AES128.encrypted(block, key: $0) } ?? []
        // No address has more than 24 bits: this one matches none.
        guard encrypted.count == AES128.blockLength else { return .max }
        return encrypted.suffix(3).reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// AES-128 of one block, the security function `e` that underlies Bluetooth's others.
///
/// Spec: FIPS 197; Core Vol 3 Part H, 2.2.1.
package enum AES128 {
    /// The length of a block and of a key, in bytes.
    package static let blockLength = 16

    /// Returns a block encrypted, both most significant byte first; `nil` if the block or the key is not 16 bytes long.
    package static func encrypted(_ block: [UInt8], key: Span<UInt8>) -> [UInt8]? {
        guard key.count == blockLength else { return nil }
        let key = unsafe key.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
        var block = block
        guard (try? AES.permute(&block, key: key)) != nil else { return nil }
        return block
    }
}
