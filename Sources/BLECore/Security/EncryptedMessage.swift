/// Bytes that a device has encrypted with AES-128 under a key that the user knows, such as a sensor's measurements.
///
/// This module has no cipher: the module BareBLECrypto decrypts it, or any AES.
///
/// Spec: CCM, RFC 3610; counter mode, NIST SP 800-38A, 6.5.
public struct EncryptedMessage: Hashable, Sendable {
    /// The mode of the encryption.
    public enum Mode: Hashable, Sendable {
        /// AES-CCM. The tag, a message authentication code, follows from the key, the nonce, the associated data and
        /// the plain bytes.
        case ccm(nonce: [UInt8], associatedData: [UInt8], tag: [UInt8])
        /// AES in counter mode, from this counter block on. There is nothing that shows whether the key is the right
        /// one.
        case counter(block: [UInt8])
    }

    private let key: Secret128
    /// The mode of the encryption.
    public let mode: Mode
    /// The encrypted bytes.
    public let bytes: [UInt8]

    package init(key: Secret128, _ mode: Mode, _ bytes: [UInt8]) {
        self.key = key
        self.mode = mode
        self.bytes = bytes
    }

    /// Calls `body` with the key: 16 bytes, most significant first, as AES takes them.
    public func withKey<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        key.withBytes(body)
    }
}
