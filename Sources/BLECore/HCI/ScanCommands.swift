/// Sets the parameters of a legacy scan. Not allowed while a scan is enabled.
///
///     0x200B | active 1 | interval 2 | window 2 | own address type 1 | filter policy 1      reply: status
///
/// Spec: HCI_LE_Set_Scan_Parameters, Core Vol 4 Part E, 7.8.10.
package struct LESetScanParameters: HCICommand {
    /// HCI_LE_Set_Scan_Parameters.
    package static let opcode = HCIOpcode.leSetScanParameters
    /// A Boolean value that indicates whether the scan is active, that is, sends scan requests.
    package let isActive: Bool
    /// The scan interval, in units of 0.625 ms.
    package let interval: UInt16
    /// The scan window, in units of 0.625 ms.
    package let window: UInt16
    /// The own address type for scan requests.
    package let ownAddressType: AddressType

    /// Creates parameters of a scan that accepts every advertiser.
    package init(isActive: Bool, interval: UInt16, window: UInt16, ownAddressType: AddressType = .public) {
        self.isActive = isActive
        self.interval = interval
        self.window = window
        self.ownAddressType = ownAddressType
    }

    /// The five fields; filter policy 0 accepts every advertiser.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 7)
        writer.u8(isActive ? 1 : 0)
        writer.u16(interval)
        writer.u16(window)
        writer.u8(ownAddressType.rawValue)
        writer.u8(0)
        return writer.bytes
    }
}

/// Enables or disables a legacy scan.
///
///     0x200C | enable 1 | filter duplicates 1      reply: status
///
/// Spec: HCI_LE_Set_Scan_Enable, Core Vol 4 Part E, 7.8.11.
package struct LESetScanEnable: HCICommand {
    /// HCI_LE_Set_Scan_Enable.
    package static let opcode = HCIOpcode.leSetScanEnable
    /// A Boolean value that indicates whether to scan.
    package let isEnabled: Bool
    /// A Boolean value that indicates whether the controller filters duplicate reports.
    package let filtersDuplicates: Bool

    /// Creates a command that enables or disables the scan.
    package init(isEnabled: Bool, filtersDuplicates: Bool = false) {
        self.isEnabled = isEnabled
        self.filtersDuplicates = filtersDuplicates
    }

    /// Two flags.
    package var parameters: [UInt8] { [isEnabled ? 1 : 0, filtersDuplicates ? 1 : 0] }
}

/// Sets the parameters of an extended scan. Not allowed while a scan is enabled.
///
///     0x2041 | own address type 1 | filter policy 1 | PHYs 1 | for each PHY: active 1 | interval 2 | window 2
///
/// Spec: HCI_LE_Set_Extended_Scan_Parameters, Core Vol 4 Part E, 7.8.64.
package struct LESetExtendedScanParameters: HCICommand {
    /// HCI_LE_Set_Extended_Scan_Parameters.
    package static let opcode = HCIOpcode.leSetExtendedScanParameters
    /// A Boolean value that indicates whether the scan is active, that is, sends scan requests.
    package let isActive: Bool
    /// The scan interval, in units of 0.625 ms; the same on each PHY.
    package let interval: UInt16
    /// The scan window, in units of 0.625 ms; the same on each PHY.
    package let window: UInt16
    /// The primary PHYs to scan: 1M, Coded or both.
    package let phys: LEPHYs
    /// The own address type for scan requests.
    package let ownAddressType: AddressType

    /// Creates parameters of a scan that accepts every advertiser. PHYs unsuitable for primary advertising are omitted.
    package init(
        isActive: Bool, interval: UInt16, window: UInt16, phys: LEPHYs = .le1M, ownAddressType: AddressType = .public
    ) {
        self.isActive = isActive
        self.interval = interval
        self.window = window
        self.phys = phys.intersection([.le1M, .leCoded])
        self.ownAddressType = ownAddressType
    }

    /// The fixed fields, then one group for each PHY, lowest bit first.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 13)
        writer.u8(ownAddressType.rawValue)
        writer.u8(0)
        writer.u8(phys.rawValue)
        for _ in 0..<phys.rawValue.nonzeroBitCount {
            writer.u8(isActive ? 1 : 0)
            writer.u16(interval)
            writer.u16(window)
        }
        return writer.bytes
    }
}

/// Enables or disables an extended scan.
///
///     0x2042 | enable 1 | filter duplicates 1 | duration 2 | period 2      reply: status
///
/// Spec: HCI_LE_Set_Extended_Scan_Enable, Core Vol 4 Part E, 7.8.65.
package struct LESetExtendedScanEnable: HCICommand {
    /// HCI_LE_Set_Extended_Scan_Enable.
    package static let opcode = HCIOpcode.leSetExtendedScanEnable
    /// A Boolean value that indicates whether to scan.
    package let isEnabled: Bool
    /// A Boolean value that indicates whether the controller filters duplicate reports.
    package let filtersDuplicates: Bool

    /// Creates a command that enables or disables the scan. An enabled scan runs until it is disabled.
    package init(isEnabled: Bool, filtersDuplicates: Bool = false) {
        self.isEnabled = isEnabled
        self.filtersDuplicates = filtersDuplicates
    }

    /// Two flags, then no duration and no period.
    package var parameters: [UInt8] { [isEnabled ? 1 : 0, filtersDuplicates ? 1 : 0, 0, 0, 0, 0] }
}
