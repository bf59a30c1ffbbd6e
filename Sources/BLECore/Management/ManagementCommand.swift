/// The code of a command to the kernel's management interface.
///
/// Spec: Bluetooth Management API, Commands.
package struct ManagementCommandCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Read Management Version Information.
    package static let readVersion = ManagementCommandCode(rawValue: 0x0001)
    /// Read Controller Information.
    package static let readControllerInformation = ManagementCommandCode(rawValue: 0x0004)
    /// Set Powered.
    package static let setPowered = ManagementCommandCode(rawValue: 0x0005)
    /// Set Bondable.
    package static let setBondable = ManagementCommandCode(rawValue: 0x0009)
    /// Set Secure Simple Pairing.
    package static let setSecureSimplePairing = ManagementCommandCode(rawValue: 0x000B)
    /// Set Low Energy.
    package static let setLowEnergy = ManagementCommandCode(rawValue: 0x000D)
    /// Load Long Term Keys.
    package static let loadLongTermKeys = ManagementCommandCode(rawValue: 0x0013)
    /// Disconnect.
    package static let disconnect = ManagementCommandCode(rawValue: 0x0014)
    /// Get Connections.
    package static let getConnections = ManagementCommandCode(rawValue: 0x0015)
    /// Set IO Capability.
    package static let setIOCapability = ManagementCommandCode(rawValue: 0x0018)
    /// Pair Device.
    package static let pairDevice = ManagementCommandCode(rawValue: 0x0019)
    /// Cancel Pair Device.
    package static let cancelPairDevice = ManagementCommandCode(rawValue: 0x001A)
    /// Unpair Device.
    package static let unpairDevice = ManagementCommandCode(rawValue: 0x001B)
    /// User Confirmation Reply.
    package static let userConfirmationReply = ManagementCommandCode(rawValue: 0x001C)
    /// User Confirmation Negative Reply.
    package static let userConfirmationNegativeReply = ManagementCommandCode(rawValue: 0x001D)
    /// User Passkey Reply.
    package static let userPasskeyReply = ManagementCommandCode(rawValue: 0x001E)
    /// User Passkey Negative Reply.
    package static let userPasskeyNegativeReply = ManagementCommandCode(rawValue: 0x001F)
    /// Add Remote Out Of Band Data.
    package static let addRemoteOutOfBandData = ManagementCommandCode(rawValue: 0x0021)
    /// Remove Remote Out Of Band Data.
    package static let removeRemoteOutOfBandData = ManagementCommandCode(rawValue: 0x0022)
    /// Set Secure Connections.
    package static let setSecureConnections = ManagementCommandCode(rawValue: 0x002D)
    /// Set Privacy.
    package static let setPrivacy = ManagementCommandCode(rawValue: 0x002F)
    /// Load Identity Resolving Keys.
    package static let loadIdentityResolvingKeys = ManagementCommandCode(rawValue: 0x0030)
    /// Read Unconfigured Controller Index List.
    package static let readUnconfiguredIndexList = ManagementCommandCode(rawValue: 0x0036)
    /// Read Controller Configuration Information.
    package static let readConfigurationInformation = ManagementCommandCode(rawValue: 0x0037)
    /// Read Local Out Of Band Extended Data.
    package static let readLocalOutOfBandData = ManagementCommandCode(rawValue: 0x003B)
    /// Read Advertising Features.
    package static let readAdvertisingFeatures = ManagementCommandCode(rawValue: 0x003D)
    /// Remove Advertising.
    package static let removeAdvertising = ManagementCommandCode(rawValue: 0x003F)
    /// Set Blocked Keys.
    package static let setBlockedKeys = ManagementCommandCode(rawValue: 0x0046)
    /// Read Controller Capabilities.
    package static let readControllerCapabilities = ManagementCommandCode(rawValue: 0x0048)
    /// Add Extended Advertising Parameters.
    package static let addExtendedAdvertisingParameters = ManagementCommandCode(rawValue: 0x0054)
    /// Add Extended Advertising Data.
    package static let addExtendedAdvertisingData = ManagementCommandCode(rawValue: 0x0055)
}

/// A command to the kernel's management interface.
package protocol ManagementCommand: Hashable, Sendable {
    /// The decoded return parameters.
    associatedtype Response: Hashable, Sendable

    /// The code.
    static var code: ManagementCommandCode { get }
    /// The encoded parameters.
    var parameters: [UInt8] { get }

    /// Decodes the return parameters, which follow the status of Command Complete.
    ///
    /// - Throws: `MalformedPacket` if the bytes do not match the layout exactly.
    static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> Response
}

extension ManagementCommand {
    /// Returns the packet that carries the command to the adapter with this index, or to the interface itself for
    /// `nil`.
    package func packet(adapter: UInt16?) -> ManagementPacket {
        ManagementPacket(code: Self.code.rawValue, adapter: adapter, parameters: parameters)
    }
}

/// The response to a command that returns nothing.
package struct ManagementNoParameters: Hashable, Sendable {
    init(_ format: StaticString, _ returned: Span<UInt8>) throws(MalformedPacket) {
        if !returned.isEmpty { throw MalformedPacket(format, at: 0, .trailingBytes(returned.count)) }
    }
}

// MARK: - Read Management Version Information

/// Reads the version of the interface, which grows with each command that a kernel adds.
///
///     0x0001 | -                     reply: version 1 | revision 2
///
/// Spec: MGMT_OP_READ_VERSION; Bluetooth Management API, Read Management Version Information Command.
package struct ManagementReadVersion: ManagementCommand {
    /// The version of the interface.
    package struct Version: Hashable, Sendable {
        package let version: UInt8
        package let revision: UInt16
    }

    package static let code = ManagementCommandCode.readVersion
    package var parameters: [UInt8] { [] }

    package init() {}

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> Version {
        var reader = ByteReader(returned)
        guard let version = reader.u8(), let revision = reader.u16() else {
            throw MalformedPacket("mgmt_rp_read_version", at: returned.count, .tooShort)
        }
        try reader.finish("mgmt_rp_read_version")
        return Version(version: version, revision: revision)
    }
}

// MARK: - Read Controller Information

/// Reads the information and the settings of an adapter.
///
///     0x0004 | -                     reply: ManagementControllerInformation
///
/// It changes no setting, and any user may send it. The first command that names the adapter puts it under management,
/// as `btmgmt` and bluetoothd do when they start.
///
/// Spec: MGMT_OP_READ_INFO; Bluetooth Management API, Read Controller Information Command.
package struct ManagementReadControllerInformation: ManagementCommand {
    package static let code = ManagementCommandCode.readControllerInformation
    package var parameters: [UInt8] { [] }

    package init() {}

    /// Decodes 280 bytes: address 6, HCI version 1, company 2, supported settings 4, current settings 4, class of
    /// device 3, name 249, short name 11.
    package static func response(
        from returned: Span<UInt8>
    ) throws(MalformedPacket) -> ManagementControllerInformation {
        var reader = ByteReader(returned)
        guard let address = reader.address(), let version = reader.u8(), let company = reader.u16(),
            let supported = reader.u32(), let current = reader.u32(), let deviceClass = reader.u24(),
            let name = reader.terminatedText(249), let shortName = reader.terminatedText(11)
        else { throw MalformedPacket("mgmt_rp_read_info", at: returned.count, .tooShort) }
        try reader.finish("mgmt_rp_read_info")
        return ManagementControllerInformation(
            address: address, hciVersion: version, company: company,
            supportedSettings: ManagementSettings(rawValue: supported),
            currentSettings: ManagementSettings(rawValue: current), deviceClass: deviceClass, name: name,
            shortName: shortName)
    }
}

/// The information about an adapter from the management interface.
///
/// Spec: `struct mgmt_rp_read_info` of the Linux kernel.
package struct ManagementControllerInformation: Hashable, Sendable {
    /// The public address, or the static random one in use; zero if the adapter has none.
    package let address: BluetoothAddress
    /// The HCI version; `HCIVersion.specification(of:)` returns its name.
    package let hciVersion: UInt8
    /// The manufacturer's company identifier.
    package let company: UInt16
    /// The settings that the adapter can have.
    package let supportedSettings: ManagementSettings
    /// The settings that are on.
    package let currentSettings: ManagementSettings
    /// The class of device, which BR/EDR announces.
    package let deviceClass: UInt32
    /// The adapter's name.
    package let name: String
    /// The name for advertisements that the complete one does not fit into.
    package let shortName: String
}

extension ByteReader {
    /// Reads a field of `count` bytes that holds text up to its first zero byte.
    @_lifetime(self: copy self)
    mutating func terminatedText(_ count: Int) -> String? {
        guard let field = array(count) else { return nil }
        return String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
    }
}
