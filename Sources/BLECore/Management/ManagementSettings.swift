/// The settings of an adapter, one bit each.
///
/// Spec: Bluetooth Management API, Read Controller Information Command, Supported_Settings and Current_Settings.
package struct ManagementSettings: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Decodes 4 bytes, as New Settings and the responses of the commands that change settings have them.
    init(decoding parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let value = reader.u32() else {
            throw MalformedPacket("mgmt settings", at: parameters.count, .tooShort)
        }
        try reader.finish("mgmt settings")
        self.init(rawValue: value)
    }

    /// The adapter has power.
    package static let powered = ManagementSettings(rawValue: 1 << 0)
    /// BR/EDR devices may connect.
    package static let connectable = ManagementSettings(rawValue: 1 << 1)
    /// BR/EDR devices connect faster, at a higher power consumption.
    package static let fastConnectable = ManagementSettings(rawValue: 1 << 2)
    /// BR/EDR devices can discover the adapter.
    package static let discoverable = ManagementSettings(rawValue: 1 << 3)
    /// Pairings leave a bond.
    package static let bondable = ManagementSettings(rawValue: 1 << 4)
    /// BR/EDR links are encrypted at once.
    package static let linkSecurity = ManagementSettings(rawValue: 1 << 5)
    /// Secure Simple Pairing.
    package static let secureSimplePairing = ManagementSettings(rawValue: 1 << 6)
    /// BR/EDR.
    package static let classic = ManagementSettings(rawValue: 1 << 7)
    /// High Speed.
    package static let highSpeed = ManagementSettings(rawValue: 1 << 8)
    /// Low Energy.
    package static let lowEnergy = ManagementSettings(rawValue: 1 << 9)
    /// The kernel advertises.
    package static let advertising = ManagementSettings(rawValue: 1 << 10)
    /// Secure Connections.
    package static let secureConnections = ManagementSettings(rawValue: 1 << 11)
    /// The debug keys of the specification are accepted.
    package static let debugKeys = ManagementSettings(rawValue: 1 << 12)
    /// The adapter uses private addresses.
    package static let privacy = ManagementSettings(rawValue: 1 << 13)
    /// The controller needs to be configured before use.
    package static let controllerConfiguration = ManagementSettings(rawValue: 1 << 14)
    /// The adapter uses a static random address.
    package static let staticAddress = ManagementSettings(rawValue: 1 << 15)
    /// The PHYs can be chosen.
    package static let phyConfiguration = ManagementSettings(rawValue: 1 << 16)
    /// Wideband speech.
    package static let widebandSpeech = ManagementSettings(rawValue: 1 << 17)
}
