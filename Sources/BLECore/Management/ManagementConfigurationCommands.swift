// Controllers that the kernel does not switch on before something is set, mostly an address. They have an index, but
// the other commands do not know it.

// MARK: - Read Unconfigured Controller Index List

/// Reads the indices of the adapters that are not configured.
///
///     0x0036 | -                     reply: count 2 | index 2 each
///
/// Spec: MGMT_OP_READ_UNCONF_INDEX_LIST; Bluetooth Management API, Read Unconfigured Controller Index List Command.
package struct ManagementReadUnconfiguredIndexList: ManagementCommand {
    package static let code = ManagementCommandCode.readUnconfiguredIndexList
    package var parameters: [UInt8] { [] }

    package init() {}

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> [UInt16] {
        var reader = ByteReader(returned)
        guard let count = reader.u16() else {
            throw MalformedPacket("mgmt_rp_read_unconf_index_list", at: returned.count, .tooShort)
        }
        var indices: [UInt16] = []
        for _ in 0..<count {
            guard let index = reader.u16() else {
                throw MalformedPacket("mgmt_rp_read_unconf_index_list", at: returned.count, .tooShort)
            }
            indices.append(index)
        }
        try reader.finish("mgmt_rp_read_unconf_index_list")
        return indices
    }
}

// MARK: - Read Controller Configuration Information

/// Reads what an adapter lacks before the kernel switches it on. It changes nothing, and any user may send it.
///
///     0x0037 | -                     reply: company 2 | supported options 4 | missing options 4
///
/// Spec: MGMT_OP_READ_CONFIG_INFO; Bluetooth Management API, Read Controller Configuration Information Command.
package struct ManagementReadConfigurationInformation: ManagementCommand {
    package static let code = ManagementCommandCode.readConfigurationInformation
    package var parameters: [UInt8] { [] }

    package init() {}

    package static func response(
        from returned: Span<UInt8>
    ) throws(MalformedPacket) -> ManagementConfigurationInformation {
        var reader = ByteReader(returned)
        guard let company = reader.u16(), let supported = reader.u32(), let missing = reader.u32() else {
            throw MalformedPacket("mgmt_rp_read_config_info", at: returned.count, .tooShort)
        }
        try reader.finish("mgmt_rp_read_config_info")
        return ManagementConfigurationInformation(
            company: company, supported: ManagementConfigurationOptions(rawValue: supported),
            missing: ManagementConfigurationOptions(rawValue: missing))
    }
}

/// The options that can be set for an adapter before it is switched on, and those that have to be.
///
/// Spec: `struct mgmt_rp_read_config_info` of the Linux kernel.
package struct ManagementConfigurationInformation: Hashable, Sendable {
    /// The manufacturer's company identifier.
    package let company: UInt16
    /// The options that can be set.
    package let supported: ManagementConfigurationOptions
    /// The options that have to be set still.
    package let missing: ManagementConfigurationOptions
}

/// The parts of an adapter's configuration, one bit each.
///
/// Spec: Bluetooth Management API, Read Controller Configuration Information Command, Supported_Options.
package struct ManagementConfigurationOptions: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// A program of the manufacturer configures the adapter.
    package static let external = ManagementConfigurationOptions(rawValue: 1 << 0)
    /// The public address.
    package static let publicAddress = ManagementConfigurationOptions(rawValue: 1 << 1)
}
