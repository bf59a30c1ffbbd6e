public import BLECore

// The keys and the cipher are the caller's: this module opens no files and no sockets, and has no cipher.
//
// What a key opens is only as trustworthy as an advertisement can be. A recorded advertisement that is sent again is
// decrypted again: the counters of the formats are shown and not compared, because a scan that starts now cannot know
// the last one.

/// The keys of sensors that encrypt what they advertise: BTHome, MiBeacon and Victron's instant readout.
///
/// ```swift
/// var keys = AdvertisementKeys { $0.plaintext }  // import BareBLECrypto
/// keys.set(key, for: address)
/// for decoded in device.decoded(with: keys) { print(decoded) }
/// ```
///
/// Decryption does not authenticate: a recorded advertisement can be sent again, and the counters of the formats are
/// not checked.
public struct AdvertisementKeys: Sendable {
    /// The length of a key, in bytes.
    public static let keyLength = Secret128.length

    private let cipher: @Sendable (EncryptedMessage) -> [UInt8]?
    private var keys: [BluetoothAddress: Secret128] = [:]

    /// Creates a collection without keys.
    ///
    /// - Parameter cipher: Returns the plain bytes of a message, or `nil` if its authentication code does not fit.
    ///   `{ $0.plaintext }` with the module BareBLECrypto.
    public init(cipher: @Sendable @escaping (EncryptedMessage) -> [UInt8]?) {
        self.cipher = cipher
    }

    /// Sets the key of the device with this address.
    ///
    /// - Returns: `false` if the key is not 16 bytes long; nothing changes then.
    @discardableResult
    public mutating func set(_ key: [UInt8], for address: BluetoothAddress) -> Bool {
        guard let secret = Secret128(key.span) else { return false }
        keys[address] = secret
        return true
    }

    /// The number of devices that there is a key for.
    public var count: Int { keys.count }

    /// Returns whether there is a key for the device with this address.
    public func hasKey(for address: BluetoothAddress) -> Bool { keys[address] != nil }

    /// The result of decrypting.
    enum Opening {
        /// There is no key for the device, or this format or version is not decrypted.
        case noKey
        case wrongKey
        case opened([UInt8])
    }

    /// Decrypts a message of the first of `senders` that there is a key for. If the sender is unknown, each key is
    /// tried, and one that fits counts if it is the only one. For Victron a key fits if its first byte does, which is
    /// so for one of 256 keys of other devices.
    fileprivate func open(
        from senders: [BluetoothAddress], _ message: (BluetoothAddress, Secret128) -> EncryptedMessage?
    ) -> Opening {
        if senders.isEmpty {
            var found: [UInt8]?
            for (address, key) in keys {
                guard let message = message(address, key), let plain = cipher(message) else { continue }
                if found != nil { return .noKey }
                found = plain
            }
            return found.map { .opened($0) } ?? .noKey
        }
        for address in senders {
            guard let key = keys[address] else { continue }
            guard let message = message(address, key), let plain = cipher(message) else { return .wrongKey }
            return .opened(plain)
        }
        return .noKey
    }
}

/// The keys, and the addresses under which the sender of an advertisement is known.
struct SenderKeys {
    let keys: AdvertisementKeys
    let senders: [BluetoothAddress]

    /// Decrypts a message.
    ///
    /// - Parameters:
    ///   - sender: The address in the advertisement itself, which counts more than that on air.
    ///   - message: Makes the message for an address and a key; `nil` if the key is not the right one.
    func open(
        as sender: BluetoothAddress? = nil, _ message: (BluetoothAddress, Secret128) -> EncryptedMessage?
    ) -> AdvertisementKeys.Opening {
        let inside = sender.map { [$0] } ?? []
        return keys.open(from: inside + senders.filter { $0 != sender }) { address, key in
            message(sender ?? address, key)
        }
    }
}

extension SenderKeys? {
    func open(
        as sender: BluetoothAddress? = nil, _ message: (BluetoothAddress, Secret128) -> EncryptedMessage?
    ) -> AdvertisementKeys.Opening {
        self?.open(as: sender, message) ?? .noKey
    }
}

extension AdvertisingData {
    /// Returns the decoded manufacturer and service data, decrypted where there is a key.
    ///
    /// - Parameters:
    ///   - keys: The keys of devices.
    ///   - sender: The address of the device that sent it. If `nil`, every key is tried on data without an address.
    public func decoded(with keys: AdvertisementKeys, from sender: BluetoothAddress?) -> [DecodedAdvertisement] {
        decoded(SenderKeys(keys: keys, senders: sender.map { [$0] } ?? []))
    }

    /// Decodes one structure of this payload, and decrypts it if there is a key.
    ///
    /// Returns `nil` if its format is unknown or its bytes do not fit it.
    public func decoded(
        _ structure: Structure, with keys: AdvertisementKeys, from sender: BluetoothAddress?
    ) -> DecodedAdvertisement? {
        var value = ByteReader(structure.value.span)
        let keys = SenderKeys(keys: keys, senders: sender.map { [$0] } ?? [])
        return DecodedAdvertisement.of(structure.type, &value, in: self, keys)
    }
}

extension ScanResult {
    /// Returns the decoded manufacturer and service data, decrypted where there is a key for the device's address or
    /// for its identity.
    public func decoded(with keys: AdvertisementKeys) -> [DecodedAdvertisement] {
        payload.decoded(
            SenderKeys(keys: keys, senders: [peer?.address, identity?.address].compactMap(\.self)))
    }
}
