internal import Crypto
internal import CryptoExtras

/// The message authentication code that Bluetooth's security functions are built on.
///
/// Spec: AES-CMAC, RFC 4493; Core Vol 3 Part H, 2.2.5.
package enum AESCMAC {
    /// The length of a key, in bytes.
    package static let keyLength = 16

    /// The code of `message`, 16 bytes, most significant byte first; `nil` for a key that has not 16 bytes.
    package static func code(of message: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard key.count == keyLength, var code = try? AES.CMAC(key: SymmetricKey(data: key)) else { return nil }
        unsafe message.withUnsafeBytes { unsafe code.update(bufferPointer: $0) }
        return Array(code.finalize())
    }
}
