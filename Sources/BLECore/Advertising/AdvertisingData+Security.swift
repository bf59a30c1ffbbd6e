// Keys and key material, mostly for out-of-band exchange, and encrypted data.

extension AdvertisingData {
    /// The temporary key of legacy pairing, 16 bytes.
    public var securityManagerTKValue: [UInt8]? { value(of: .securityManagerTKValue, count: 16) }

    /// The flags of a device whose data was exchanged out of band.
    public var outOfBandFlags: OutOfBandFlags? {
        first(.securityManagerOutOfBandFlags) {
            $0.remaining == 1 ? $0.u8().map(OutOfBandFlags.init(rawValue:)) : nil
        }
    }

    /// The confirmation value of LE Secure Connections, 16 bytes.
    public var secureConnectionsConfirmation: [UInt8]? { value(of: .secureConnectionsConfirmation, count: 16) }
    /// The random value of LE Secure Connections, 16 bytes.
    public var secureConnectionsRandom: [UInt8]? { value(of: .secureConnectionsRandom, count: 16) }
    /// The hash C-192 of Secure Simple Pairing, 16 bytes.
    public var simplePairingHashC192: [UInt8]? { value(of: .simplePairingHashC192, count: 16) }
    /// The randomizer R-192 of Secure Simple Pairing, 16 bytes.
    public var simplePairingRandomizerR192: [UInt8]? { value(of: .simplePairingRandomizerR192, count: 16) }
    /// The hash C-256 of Secure Simple Pairing, 16 bytes.
    public var simplePairingHashC256: [UInt8]? { value(of: .simplePairingHashC256, count: 16) }
    /// The randomizer R-256 of Secure Simple Pairing, 16 bytes.
    public var simplePairingRandomizerR256: [UInt8]? { value(of: .simplePairingRandomizerR256, count: 16) }
    /// The code that decrypts an encrypted broadcast, 16 bytes.
    public var broadcastCode: [UInt8]? { value(of: .broadcastCode, count: 16) }

    /// The identifier by which members of a coordinated set recognize each other.
    public var resolvableSetIdentifier: ResolvableSetIdentifier? {
        first(.resolvableSetIdentifier) { value in
            guard value.remaining == 6, let hash = value.u24(), let random = value.u24() else { return nil }
            return ResolvableSetIdentifier(hash: hash, random: random)
        }
    }

    /// The encrypted structures, readable only with the key.
    public var encryptedData: EncryptedData? {
        first(.encryptedAdvertisingData) { value in
            guard let randomizer = value.array(5), let payload = value.array(value.remaining - 4) else { return nil }
            return EncryptedData(randomizer: randomizer, payload: payload, messageCheck: value.rest())
        }
    }

    /// The flags of a device whose data was exchanged out of band.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.7.
    public struct OutOfBandFlags: OptionSet, Hashable, Sendable {
        /// The raw bits.
        public let rawValue: UInt8

        /// Creates flags from raw bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Pairing data is present.
        public static let dataPresent = OutOfBandFlags(rawValue: 0x01)
        /// The host supports LE.
        public static let leSupported = OutOfBandFlags(rawValue: 0x02)
        /// The host supports LE and BR/EDR simultaneously.
        public static let simultaneousHost = OutOfBandFlags(rawValue: 0x04)
        /// The address is random.
        public static let randomAddress = OutOfBandFlags(rawValue: 0x08)
    }

    /// The identifier by which members of a coordinated set recognize each other.
    ///
    /// Spec: Coordinated Set Identification Service, 3.1.
    public struct ResolvableSetIdentifier: Hashable, Sendable {
        /// A 24-bit hash of the set's key and `random`.
        public let hash: UInt32
        /// The 24 random bits.
        public let random: UInt32
    }

    /// Encrypted advertising structures, readable only with the key.
    ///
    ///     randomizer 5 | payload | message check 4
    ///
    /// Spec: Core Specification Supplement, Part A, 1.23.
    public struct EncryptedData: Hashable, Sendable {
        /// The per-encryption randomizer.
        public let randomizer: [UInt8]
        /// The encrypted structures. Once decrypted, they parse as `AdvertisingData`.
        public let payload: [UInt8]
        /// The message integrity check (MIC).
        public let messageCheck: [UInt8]
    }
}

// MARK: - Former names

/// The former name of `AdvertisingData.OutOfBandFlags`.
@available(*, deprecated, renamed: "AdvertisingData.OutOfBandFlags")
public typealias OutOfBandFlags = AdvertisingData.OutOfBandFlags
/// The former name of `AdvertisingData.ResolvableSetIdentifier`.
@available(*, deprecated, renamed: "AdvertisingData.ResolvableSetIdentifier")
public typealias ResolvableSetIdentifier = AdvertisingData.ResolvableSetIdentifier
/// The former name of `AdvertisingData.EncryptedData`.
@available(*, deprecated, renamed: "AdvertisingData.EncryptedData")
public typealias EncryptedAdvertisingData = AdvertisingData.EncryptedData
