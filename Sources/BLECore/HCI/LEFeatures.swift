/// A set of PHYs, as encoded in commands.
public struct LEPHYs: OptionSet, Hashable, Sendable {
    /// Bit 0 is 1M, bit 1 is 2M, bit 2 is Coded.
    public let rawValue: UInt8

    /// Creates a set from raw bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// LE 1M: 1 Msym/s.
    public static let le1M = LEPHYs(rawValue: 1 << 0)
    /// LE 2M: 2 Msym/s.
    public static let le2M = LEPHYs(rawValue: 1 << 1)
    /// LE Coded: 1 Msym/s with 2 or 8 symbols per bit.
    public static let leCoded = LEPHYs(rawValue: 1 << 2)

    /// The former name of `leCoded`.
    @available(*, deprecated, renamed: "leCoded")
    public static let coded = leCoded
}

/// The LE features of a controller or a peer, one bit each.
///
/// Spec: FeatureSet, Core Vol 6 Part B, 4.6.
package struct LEFeatures: OptionSet, Hashable, Sendable {
    /// The 64 bits of the first feature page.
    package let rawValue: UInt64

    /// Creates a set of features from raw bits.
    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// LE encryption.
    package static let encryption = LEFeatures(rawValue: 1 << 0)
    /// The Connection Parameters Request procedure.
    package static let connectionParametersRequest = LEFeatures(rawValue: 1 << 1)
    /// LE data packet length extension: packets of more than 27 bytes.
    package static let dataLengthExtension = LEFeatures(rawValue: 1 << 5)
    /// The controller can resolve private addresses.
    package static let addressResolution = LEFeatures(rawValue: 1 << 6)
    /// Scanning that also reports directed advertisements to unresolved addresses.
    package static let extendedScannerFilterPolicies = LEFeatures(rawValue: 1 << 7)
    /// The 2M PHY.
    package static let le2M = LEFeatures(rawValue: 1 << 8)
    /// The Coded PHY.
    package static let coded = LEFeatures(rawValue: 1 << 11)
    /// Extended advertising, and the extended commands for scanning and initiating.
    package static let extendedAdvertising = LEFeatures(rawValue: 1 << 12)
    /// Periodic advertising.
    package static let periodicAdvertising = LEFeatures(rawValue: 1 << 13)
    /// Channel Selection Algorithm #2.
    package static let channelSelectionAlgorithm2 = LEFeatures(rawValue: 1 << 14)
    /// Receiving the synchronization of a periodic advertising train from a peer.
    package static let periodicSyncTransferRecipient = LEFeatures(rawValue: 1 << 25)
    /// Connected isochronous streams, as the central.
    package static let connectedStreamCentral = LEFeatures(rawValue: 1 << 28)
    /// Connected isochronous streams, as the peripheral.
    package static let connectedStreamPeripheral = LEFeatures(rawValue: 1 << 29)
    /// Broadcast isochronous streams.
    package static let isochronousBroadcaster = LEFeatures(rawValue: 1 << 30)
    /// Receiving broadcast isochronous streams.
    package static let synchronizedReceiver = LEFeatures(rawValue: 1 << 31)
    /// Channel Sounding.
    package static let channelSounding = LEFeatures(rawValue: 1 << 46)
    /// More pages of features.
    package static let extendedFeatureSet = LEFeatures(rawValue: 1 << 63)

    /// The PHYs that a device with these features has.
    package var phys: LEPHYs {
        var phys = LEPHYs.le1M
        if contains(.le2M) { phys.insert(.le2M) }
        if contains(.coded) { phys.insert(.leCoded) }
        return phys
    }
}
