/// Sets how a legacy scan listens. Only while no scan runs.
///
///     0x200B | active 1 | interval 2 | window 2 | own address type 1 | filter policy 1      reply: status
///
/// Spec: HCI_LE_Set_Scan_Parameters, Core Vol 4 Part E, 7.8.10.
public struct LESetScanParameters: HCICommand {
    /// HCI_LE_Set_Scan_Parameters.
    public static let opcode = HCIOpcode.leSetScanParameters
    /// Whether scan responses are asked for.
    public let isActive: Bool
    /// From one window's start to the next, in units of 0.625 ms.
    public let interval: UInt16
    /// How long to listen each time, in units of 0.625 ms.
    public let window: UInt16
    /// Whose address goes into scan requests.
    public let ownAddressType: AddressType

    /// A scan that takes every advertiser.
    public init(isActive: Bool, interval: UInt16, window: UInt16, ownAddressType: AddressType = .public) {
        self.isActive = isActive
        self.interval = interval
        self.window = window
        self.ownAddressType = ownAddressType
    }

    /// The five fields; the filter policy is 0, every advertiser.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 7)
        writer.u8(isActive ? 1 : 0)
        writer.u16(interval)
        writer.u16(window)
        writer.u8(ownAddressType.rawValue)
        writer.u8(0)
        return writer.bytes
    }
}

/// Starts or ends a legacy scan.
///
///     0x200C | enable 1 | filter duplicates 1      reply: status
///
/// Spec: HCI_LE_Set_Scan_Enable, Core Vol 4 Part E, 7.8.11.
public struct LESetScanEnable: HCICommand {
    /// HCI_LE_Set_Scan_Enable.
    public static let opcode = HCIOpcode.leSetScanEnable
    /// Whether to scan.
    public let isEnabled: Bool
    /// Whether the controller reports each advertiser only once.
    public let filtersDuplicates: Bool

    /// Starts or ends the scan.
    public init(isEnabled: Bool, filtersDuplicates: Bool = false) {
        self.isEnabled = isEnabled
        self.filtersDuplicates = filtersDuplicates
    }

    /// Two flags.
    public var parameters: [UInt8] { [isEnabled ? 1 : 0, filtersDuplicates ? 1 : 0] }
}

/// Sets how an extended scan listens. Only while no scan runs.
///
///     0x2041 | own address type 1 | filter policy 1 | PHYs 1 | for each PHY: active 1 | interval 2 | window 2
///
/// Spec: HCI_LE_Set_Extended_Scan_Parameters, Core Vol 4 Part E, 7.8.64.
public struct LESetExtendedScanParameters: HCICommand {
    /// HCI_LE_Set_Extended_Scan_Parameters.
    public static let opcode = HCIOpcode.leSetExtendedScanParameters
    /// Whether scan responses are asked for.
    public let isActive: Bool
    /// From one window's start to the next, in units of 0.625 ms; the same on each PHY.
    public let interval: UInt16
    /// How long to listen each time, in units of 0.625 ms; the same on each PHY.
    public let window: UInt16
    /// The primary PHYs to listen on: 1M, coded or both.
    public let phys: LEPHYs
    /// Whose address goes into scan requests.
    public let ownAddressType: AddressType

    /// A scan that takes every advertiser. PHYs that primary advertising cannot use are left out.
    public init(
        isActive: Bool, interval: UInt16, window: UInt16, phys: LEPHYs = .le1M, ownAddressType: AddressType = .public
    ) {
        self.isActive = isActive
        self.interval = interval
        self.window = window
        self.phys = phys.intersection([.le1M, .coded])
        self.ownAddressType = ownAddressType
    }

    /// The fixed fields, then one group for each PHY, lowest bit first.
    public var parameters: [UInt8] {
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

/// Starts or ends an extended scan.
///
///     0x2042 | enable 1 | filter duplicates 1 | duration 2 | period 2      reply: status
///
/// Spec: HCI_LE_Set_Extended_Scan_Enable, Core Vol 4 Part E, 7.8.65.
public struct LESetExtendedScanEnable: HCICommand {
    /// HCI_LE_Set_Extended_Scan_Enable.
    public static let opcode = HCIOpcode.leSetExtendedScanEnable
    /// Whether to scan.
    public let isEnabled: Bool
    /// Whether the controller reports each advertiser only once.
    public let filtersDuplicates: Bool

    /// Starts or ends the scan; a started one goes on until it is ended.
    public init(isEnabled: Bool, filtersDuplicates: Bool = false) {
        self.isEnabled = isEnabled
        self.filtersDuplicates = filtersDuplicates
    }

    /// Two flags, then no duration and no period.
    public var parameters: [UInt8] { [isEnabled ? 1 : 0, filtersDuplicates ? 1 : 0, 0, 0, 0, 0] }
}
