internal import Crypto
internal import CryptoExtras

/// AES-CMAC, the message authentication code that underlies Bluetooth's security functions.
///
/// Spec: AES-CMAC, RFC 4493; Core Vol 3 Part H, 2.2.5.
package enum AESCMAC {
    /// The length of a key, in bytes.
    package static let keyLength = 16

    /// Returns the 16-byte code of `message`, most significant byte first, or `nil` if the key is not 16 bytes long.
    package static func code(of message: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard key.count == keyLength, var code = try? AES.CMAC(key: SymmetricKey(data: key)) else { return nil }
        unsafe message.withUnsafeBytes { unsafe code.update(bufferPointer: $0) }
        return Array(code.finalize())
    }
}
