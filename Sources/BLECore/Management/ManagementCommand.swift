/// The code of a command to the kernel's management interface.
///
/// Spec: Bluetooth Management API, Commands.
package struct ManagementCommandCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Read Controller Information.
    package static let readControllerInformation = ManagementCommandCode(rawValue: 0x0004)
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
