// The commands that change the settings of an adapter. All but Set Privacy may be sent with the power on or off.

/// A command that returns the settings of the adapter after the change.
package protocol ManagementSettingCommand: ManagementCommand where Response == ManagementSettings {}

extension ManagementSettingCommand {
    /// Decodes 4 bytes: the current settings.
    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementSettings {
        try ManagementSettings(decoding: returned)
    }
}

/// Switches the power of an adapter.
///
///     0x0005 | powered 1             reply: current settings 4
///
/// Spec: MGMT_OP_SET_POWERED; Bluetooth Management API, Set Powered Command.
package struct ManagementSetPowered: ManagementSettingCommand {
    package static let code = ManagementCommandCode.setPowered
    package let isOn: Bool
    package var parameters: [UInt8] { [isOn ? 1 : 0] }

    package init(_ isOn: Bool) {
        self.isOn = isOn
    }
}

/// Decides whether pairings leave a bond.
///
///     0x0009 | bondable 1            reply: current settings 4
///
/// Spec: MGMT_OP_SET_BONDABLE; Bluetooth Management API, Set Bondable Command.
package struct ManagementSetBondable: ManagementSettingCommand {
    package static let code = ManagementCommandCode.setBondable
    package let isOn: Bool
    package var parameters: [UInt8] { [isOn ? 1 : 0] }

    package init(_ isOn: Bool) {
        self.isOn = isOn
    }
}

/// Switches Secure Simple Pairing of BR/EDR, which Secure Connections depends on where BR/EDR is on.
///
///     0x000B | enabled 1             reply: current settings 4
///
/// Spec: MGMT_OP_SET_SSP; Bluetooth Management API, Set Secure Simple Pairing Command.
package struct ManagementSetSecureSimplePairing: ManagementSettingCommand {
    package static let code = ManagementCommandCode.setSecureSimplePairing
    package let isOn: Bool
    package var parameters: [UInt8] { [isOn ? 1 : 0] }

    package init(_ isOn: Bool) {
        self.isOn = isOn
    }
}

/// Switches Low Energy.
///
///     0x000D | enabled 1             reply: current settings 4
///
/// Spec: MGMT_OP_SET_LE; Bluetooth Management API, Set Low Energy Command.
package struct ManagementSetLowEnergy: ManagementSettingCommand {
    package static let code = ManagementCommandCode.setLowEnergy
    package let isOn: Bool
    package var parameters: [UInt8] { [isOn ? 1 : 0] }

    package init(_ isOn: Bool) {
        self.isOn = isOn
    }
}

/// Switches Secure Connections. The interface's third mode, "only", is not offered: kernels 6.1 to 7.2 drop every LE
/// encryption in it.
///
///     0x002D | mode 1                reply: current settings 4
///
/// Spec: MGMT_OP_SET_SECURE_CONN; Bluetooth Management API, Set Secure Connections Command.
package struct ManagementSetSecureConnections: ManagementSettingCommand {
    package static let code = ManagementCommandCode.setSecureConnections
    package let isOn: Bool
    package var parameters: [UInt8] { [isOn ? 1 : 0] }

    package init(_ isOn: Bool) {
        self.isOn = isOn
    }
}

/// Decides whether the adapter uses private addresses of its own. It is refused while the power is on.
///
///     0x002F | mode 1 | key 16       reply: current settings 4
///
/// Spec: MGMT_OP_SET_PRIVACY; Bluetooth Management API, Set Privacy Command.
package struct ManagementSetPrivacy: ManagementSettingCommand {
    package static let code = ManagementCommandCode.setPrivacy
    /// The adapter's own Identity Resolving Key; `nil` switches privacy off.
    package let key: Secret128?

    package init(_ key: Secret128?) {
        self.key = key
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 17)
        writer.u8(key == nil ? 0 : 1)
        writer.secret(key ?? .zero)
        return writer.bytes
    }
}

/// The input and output that a device has while it is paired, as encoded by the management interface and by Pairing
/// Request.
///
/// Spec: Core Vol 3 Part H, 3.5.1, IO Capability.
package enum IOCapability: UInt8, Hashable, Sendable, CaseIterable {
    case displayOnly = 0
    case displayYesNo = 1
    case keyboardOnly = 2
    case noInputNoOutput = 3
    case keyboardDisplay = 4
}

/// Sets the IO capability for pairings that are not begun by Pair Device. It takes effect with the next link.
///
///     0x0018 | capability 1          reply: -
///
/// Spec: MGMT_OP_SET_IO_CAPABILITY; Bluetooth Management API, Set IO Capability Command.
package struct ManagementSetIOCapability: ManagementCommand {
    package static let code = ManagementCommandCode.setIOCapability
    package let capability: IOCapability
    package var parameters: [UInt8] { [capability.rawValue] }

    package init(_ capability: IOCapability) {
        self.capability = capability
    }

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementNoParameters {
        try ManagementNoParameters("mgmt_cp_set_io_capability", returned)
    }
}
