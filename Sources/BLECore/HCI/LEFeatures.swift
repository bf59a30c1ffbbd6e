/// A set of PHYs, as commands take it.
public struct LEPHYs: OptionSet, Hashable, Sendable {
    /// Bit 0 is 1M, bit 1 is 2M, bit 2 is coded.
    public let rawValue: UInt8

    /// The set with these bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// One million symbols a second.
    public static let le1M = LEPHYs(rawValue: 1 << 0)
    /// Two million symbols a second.
    public static let le2M = LEPHYs(rawValue: 1 << 1)
    /// One million symbols a second with 2 or 8 symbols a bit.
    public static let coded = LEPHYs(rawValue: 1 << 2)
}

/// What a controller or a peer can do on LE, one bit a feature.
///
/// Spec: FeatureSet, Core Vol 6 Part B, 4.6.
public struct LEFeatures: OptionSet, Hashable, Sendable {
    /// The 64 bits of the first feature page.
    public let rawValue: UInt64

    /// The features with these bits.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Encrypts links.
    public static let encryption = LEFeatures(rawValue: 1 << 0)
    /// Both roles may ask for other connection parameters.
    public static let connectionParametersRequest = LEFeatures(rawValue: 1 << 1)
    /// Packets of more than 27 bytes.
    public static let dataLengthExtension = LEFeatures(rawValue: 1 << 5)
    /// The controller resolves private addresses itself.
    public static let addressResolution = LEFeatures(rawValue: 1 << 6)
    /// The 2M PHY.
    public static let le2M = LEFeatures(rawValue: 1 << 8)
    /// The coded PHY.
    public static let coded = LEFeatures(rawValue: 1 << 11)
    /// Extended advertising, and with it the extended commands for scanning and connecting.
    public static let extendedAdvertising = LEFeatures(rawValue: 1 << 12)
    /// Periodic advertising.
    public static let periodicAdvertising = LEFeatures(rawValue: 1 << 13)
}
