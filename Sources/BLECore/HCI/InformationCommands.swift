/// Reads the versions that the controller implements, and its manufacturer.
///
///     0x1001 | -                     reply: HCIVersion
///
/// Spec: HCI_Read_Local_Version_Information, Core Vol 4 Part E, 7.4.1.
package struct HCIReadLocalVersion: HCIQuery {
    /// HCI_Read_Local_Version_Information.
    package static let opcode = HCIOpcode.readLocalVersion
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}

    /// Decodes the return parameters: HCI version 1, HCI revision 2, LMP version 1, company 2, LMP subversion 2.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> HCIVersion {
        var reader = ByteReader(returned)
        guard let version = reader.u8(), let revision = reader.u16(), let link = reader.u8(),
            let company = reader.u16(), let subversion = reader.u16()
        else { throw MalformedPacket("HCI_Read_Local_Version_Information", at: returned.count, .tooShort) }
        try reader.finish("HCI_Read_Local_Version_Information")
        return HCIVersion(
            hciVersion: version, hciRevision: revision, linkVersion: link, company: company, linkSubversion: subversion)
    }
}

/// The versions that a controller implements, and its manufacturer.
///
/// Spec: HCI_Version and Company_Identifier, Core Vol 4 Part E, 7.4.1.
package struct HCIVersion: Hashable, Sendable {
    /// The HCI version; `specification` is its name.
    package let hciVersion: UInt8
    /// The manufacturer's revision of the HCI implementation.
    package let hciRevision: UInt16
    /// The link layer version.
    package let linkVersion: UInt8
    /// The manufacturer's company identifier.
    package let company: UInt16
    /// The manufacturer's revision of the link layer.
    package let linkSubversion: UInt16

    /// The version of the Core Specification, such as `5.2`, or `nil` for unassigned numbers.
    package var specification: String? { Self.specification(of: hciVersion) }

    /// Returns the Core Specification version that a version number stands for.
    package static func specification(of version: UInt8) -> String? {
        switch version {
        case 0: "1.0b"
        case 1: "1.1"
        case 2: "1.2"
        case 3: "2.0"
        case 4: "2.1"
        case 5: "3.0"
        case 6: "4.0"
        case 7: "4.1"
        case 8: "4.2"
        case 9: "5.0"
        case 10: "5.1"
        case 11: "5.2"
        case 12: "5.3"
        case 13: "5.4"
        case 14: "6.0"
        case 15: "6.1"
        default: nil
        }
    }
}

/// Reads the commands that the controller supports.
///
///     0x1002 | -                     reply: HCISupportedCommands
///
/// Spec: HCI_Read_Local_Supported_Commands, Core Vol 4 Part E, 7.4.2.
package struct HCIReadLocalSupportedCommands: HCIQuery {
    /// HCI_Read_Local_Supported_Commands.
    package static let opcode = HCIOpcode.readLocalSupportedCommands
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}

    /// Decodes the return parameters: a bit field of 64 bytes.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> HCISupportedCommands {
        var reader = ByteReader(returned)
        guard let octets = reader.array(64) else {
            throw MalformedPacket("HCI_Read_Local_Supported_Commands", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_Read_Local_Supported_Commands")
        return HCISupportedCommands(octets: octets)
    }
}

/// The commands that a controller supports, one bit each.
///
/// Spec: Supported_Commands, Core Vol 4 Part E, 6.27.
package struct HCISupportedCommands: Hashable, Sendable {
    /// The bit field as returned by the controller.
    package let octets: [UInt8]

    /// Creates a set from the bit field.
    package init(octets: [UInt8]) {
        self.octets = octets
    }

    /// Returns a Boolean value that indicates whether a bit is set, by the octet and bit numbers of the specification's
    /// table.
    package func contains(octet: Int, bit: Int) -> Bool {
        guard octets.indices.contains(octet), (0..<8).contains(bit) else { return false }
        return octets[octet] & (1 << UInt8(bit)) != 0
    }

    /// LE Set Scan Parameters and LE Set Scan Enable.
    package var hasLegacyScan: Bool { contains(octet: 26, bit: 2) && contains(octet: 26, bit: 3) }
    /// LE Create Connection.
    package var hasLegacyConnect: Bool { contains(octet: 26, bit: 4) }
    /// LE Set Extended Scan Parameters and LE Set Extended Scan Enable.
    package var hasExtendedScan: Bool { contains(octet: 37, bit: 5) && contains(octet: 37, bit: 6) }
    /// LE Set Default PHY.
    package var hasDefaultPHY: Bool { contains(octet: 35, bit: 5) }
    /// LE Extended Create Connection.
    package var hasExtendedConnect: Bool { contains(octet: 37, bit: 7) }
}

/// Reads the controller's public address.
///
///     0x1009 | -                     reply: address 6
///
/// Spec: HCI_Read_BD_ADDR, Core Vol 4 Part E, 7.4.6.
package struct HCIReadAddress: HCIQuery {
    /// HCI_Read_BD_ADDR.
    package static let opcode = HCIOpcode.readAddress
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}

    /// Decodes the return parameters: the address.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> BluetoothAddress {
        var reader = ByteReader(returned)
        guard let address = reader.address() else {
            throw MalformedPacket("HCI_Read_BD_ADDR", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_Read_BD_ADDR")
        return address
    }
}

/// Reads the LE features that the controller supports.
///
///     0x2003 | -                     reply: LEFeatures
///
/// Spec: HCI_LE_Read_Local_Supported_Features, Core Vol 4 Part E, 7.8.3.
package struct LEReadLocalFeatures: HCIQuery {
    /// HCI_LE_Read_Local_Supported_Features.
    package static let opcode = HCIOpcode.leReadLocalFeatures
    /// Empty.
    package var parameters: [UInt8] { [] }

    /// Creates the command.
    package init() {}

    /// Decodes the return parameters: 64 bits.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> LEFeatures {
        var reader = ByteReader(returned)
        guard let bits = reader.u64() else {
            throw MalformedPacket("HCI_LE_Read_Local_Supported_Features", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_LE_Read_Local_Supported_Features")
        return LEFeatures(rawValue: bits)
    }
}

/// Enables or disables LE on a dual-mode adapter. The kernel follows the change.
///
///     0x0C6D | LE 1 | simultaneous 1 (always 0)      reply: status
///
/// Spec: HCI_Write_LE_Host_Support, Core Vol 4 Part E, 7.3.79.
package struct HCIWriteLEHostSupport: HCICommand {
    /// HCI_Write_LE_Host_Support.
    package static let opcode = HCIOpcode.writeLEHostSupport
    /// A Boolean value that indicates whether the host supports LE.
    package let isSupported: Bool

    /// Creates a command that enables or disables LE.
    package init(isSupported: Bool) {
        self.isSupported = isSupported
    }

    /// The LE flag, and the unused second byte.
    package var parameters: [UInt8] { [isSupported ? 1 : 0, 0] }
}
