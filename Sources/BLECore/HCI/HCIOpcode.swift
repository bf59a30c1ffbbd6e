/// The opcode of an HCI command: a 6-bit group and a 10-bit command.
///
/// Spec: OpCode, Core Vol 4 Part E, 5.4.1.
package struct HCIOpcode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The raw value; 0x200C is command 0x00C of group 0x08.
    package let rawValue: UInt16

    /// Creates an opcode from its raw value.
    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The opcode group field: 1 link control, 3 controller and baseband, 4 information, 5 status, 8 LE.
    package var group: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 10) }

    /// The opcode command field: the number inside the group.
    package var command: UInt16 { rawValue & 0x03FF }

    /// The name and the number, such as `LE Set Scan Enable (0x200c)`.
    package var description: String {
        let digits = Hex.encode([UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)])
        return "\(name ?? "Command") (0x\(digits))"
    }
}

extension HCIOpcode {
    /// No command: the controller uses it to update the number of commands that the host may send.
    package static let none = HCIOpcode(rawValue: 0x0000)
    /// HCI_Disconnect.
    package static let disconnect = HCIOpcode(rawValue: 0x0406)
    /// HCI_Read_Remote_Version_Information.
    package static let readRemoteVersion = HCIOpcode(rawValue: 0x041D)
    /// HCI_Set_Event_Mask.
    package static let setEventMask = HCIOpcode(rawValue: 0x0C01)
    /// HCI_Reset. BareBLE never sends it: it would disconnect the links of every other program.
    package static let reset = HCIOpcode(rawValue: 0x0C03)
    /// HCI_Write_LE_Host_Support.
    package static let writeLEHostSupport = HCIOpcode(rawValue: 0x0C6D)
    /// HCI_Read_Local_Version_Information.
    package static let readLocalVersion = HCIOpcode(rawValue: 0x1001)
    /// HCI_Read_Local_Supported_Commands.
    package static let readLocalSupportedCommands = HCIOpcode(rawValue: 0x1002)
    /// HCI_Read_BD_ADDR.
    package static let readAddress = HCIOpcode(rawValue: 0x1009)
    /// HCI_Read_RSSI.
    package static let readRSSI = HCIOpcode(rawValue: 0x1405)
    /// HCI_LE_Set_Event_Mask.
    package static let leSetEventMask = HCIOpcode(rawValue: 0x2001)
    /// HCI_LE_Read_Local_Supported_Features.
    package static let leReadLocalFeatures = HCIOpcode(rawValue: 0x2003)
    /// HCI_LE_Set_Random_Address.
    package static let leSetRandomAddress = HCIOpcode(rawValue: 0x2005)
    /// HCI_LE_Set_Advertising_Parameters.
    package static let leSetAdvertisingParameters = HCIOpcode(rawValue: 0x2006)
    /// HCI_LE_Set_Advertising_Data.
    package static let leSetAdvertisingData = HCIOpcode(rawValue: 0x2008)
    /// HCI_LE_Set_Scan_Response_Data.
    package static let leSetScanResponseData = HCIOpcode(rawValue: 0x2009)
    /// HCI_LE_Set_Advertising_Enable.
    package static let leSetAdvertisingEnable = HCIOpcode(rawValue: 0x200A)
    /// HCI_LE_Set_Scan_Parameters.
    package static let leSetScanParameters = HCIOpcode(rawValue: 0x200B)
    /// HCI_LE_Set_Scan_Enable.
    package static let leSetScanEnable = HCIOpcode(rawValue: 0x200C)
    /// HCI_LE_Create_Connection.
    package static let leCreateConnection = HCIOpcode(rawValue: 0x200D)
    /// HCI_LE_Create_Connection_Cancel.
    package static let leCreateConnectionCancel = HCIOpcode(rawValue: 0x200E)
    /// HCI_LE_Connection_Update.
    package static let leConnectionUpdate = HCIOpcode(rawValue: 0x2013)
    /// HCI_LE_Read_Remote_Features.
    package static let leReadRemoteFeatures = HCIOpcode(rawValue: 0x2016)
    /// HCI_LE_Enable_Encryption.
    package static let leEnableEncryption = HCIOpcode(rawValue: 0x2019)
    /// HCI_LE_Set_Data_Length.
    package static let leSetDataLength = HCIOpcode(rawValue: 0x2022)
    /// HCI_LE_Read_PHY.
    package static let leReadPHY = HCIOpcode(rawValue: 0x2030)
    /// HCI_LE_Set_PHY.
    package static let leSetPHY = HCIOpcode(rawValue: 0x2032)
    /// HCI_LE_Set_Default_PHY.
    package static let leSetDefaultPHY = HCIOpcode(rawValue: 0x2031)
    /// HCI_LE_Set_Advertising_Set_Random_Address.
    package static let leSetAdvertisingSetRandomAddress = HCIOpcode(rawValue: 0x2035)
    /// HCI_LE_Set_Extended_Advertising_Parameters.
    package static let leSetExtendedAdvertisingParameters = HCIOpcode(rawValue: 0x2036)
    /// HCI_LE_Set_Extended_Advertising_Data.
    package static let leSetExtendedAdvertisingData = HCIOpcode(rawValue: 0x2037)
    /// HCI_LE_Set_Extended_Scan_Response_Data.
    package static let leSetExtendedScanResponseData = HCIOpcode(rawValue: 0x2038)
    /// HCI_LE_Set_Extended_Advertising_Enable.
    package static let leSetExtendedAdvertisingEnable = HCIOpcode(rawValue: 0x2039)
    /// HCI_LE_Read_Maximum_Advertising_Data_Length.
    package static let leReadMaximumAdvertisingDataLength = HCIOpcode(rawValue: 0x203A)
    /// HCI_LE_Read_Number_of_Supported_Advertising_Sets.
    package static let leReadNumberOfSupportedAdvertisingSets = HCIOpcode(rawValue: 0x203B)
    /// HCI_LE_Remove_Advertising_Set.
    package static let leRemoveAdvertisingSet = HCIOpcode(rawValue: 0x203C)
    /// HCI_LE_Clear_Advertising_Sets. BareBLE never sends it: it would remove the sets of other programs.
    package static let leClearAdvertisingSets = HCIOpcode(rawValue: 0x203D)
    /// HCI_LE_Set_Extended_Scan_Parameters.
    package static let leSetExtendedScanParameters = HCIOpcode(rawValue: 0x2041)
    /// HCI_LE_Set_Extended_Scan_Enable.
    package static let leSetExtendedScanEnable = HCIOpcode(rawValue: 0x2042)
    /// HCI_LE_Extended_Create_Connection.
    package static let leExtendedCreateConnection = HCIOpcode(rawValue: 0x2043)

    /// The specification's name of the command, or `nil` for commands that BareBLE does not send.
    package var name: String? {
        switch self {
        case .none: "No Operation"
        case .disconnect: "Disconnect"
        case .readRemoteVersion: "Read Remote Version Information"
        case .setEventMask: "Set Event Mask"
        case .reset: "Reset"
        case .writeLEHostSupport: "Write LE Host Support"
        case .readLocalVersion: "Read Local Version Information"
        case .readLocalSupportedCommands: "Read Local Supported Commands"
        case .readAddress: "Read BD_ADDR"
        case .readRSSI: "Read RSSI"
        case .leSetEventMask: "LE Set Event Mask"
        case .leReadLocalFeatures: "LE Read Local Supported Features"
        case .leSetRandomAddress: "LE Set Random Address"
        case .leSetAdvertisingParameters: "LE Set Advertising Parameters"
        case .leSetAdvertisingData: "LE Set Advertising Data"
        case .leSetScanResponseData: "LE Set Scan Response Data"
        case .leSetAdvertisingEnable: "LE Set Advertising Enable"
        case .leSetScanParameters: "LE Set Scan Parameters"
        case .leSetScanEnable: "LE Set Scan Enable"
        case .leCreateConnection: "LE Create Connection"
        case .leCreateConnectionCancel: "LE Create Connection Cancel"
        case .leConnectionUpdate: "LE Connection Update"
        case .leReadRemoteFeatures: "LE Read Remote Features"
        case .leEnableEncryption: "LE Enable Encryption"
        case .leSetDataLength: "LE Set Data Length"
        case .leReadPHY: "LE Read PHY"
        case .leSetPHY: "LE Set PHY"
        case .leSetDefaultPHY: "LE Set Default PHY"
        case .leSetAdvertisingSetRandomAddress: "LE Set Advertising Set Random Address"
        case .leSetExtendedAdvertisingParameters: "LE Set Extended Advertising Parameters"
        case .leSetExtendedAdvertisingData: "LE Set Extended Advertising Data"
        case .leSetExtendedScanResponseData: "LE Set Extended Scan Response Data"
        case .leSetExtendedAdvertisingEnable: "LE Set Extended Advertising Enable"
        case .leReadMaximumAdvertisingDataLength: "LE Read Maximum Advertising Data Length"
        case .leReadNumberOfSupportedAdvertisingSets: "LE Read Number of Supported Advertising Sets"
        case .leRemoveAdvertisingSet: "LE Remove Advertising Set"
        case .leClearAdvertisingSets: "LE Clear Advertising Sets"
        case .leSetExtendedScanParameters: "LE Set Extended Scan Parameters"
        case .leSetExtendedScanEnable: "LE Set Extended Scan Enable"
        case .leExtendedCreateConnection: "LE Extended Create Connection"
        default: nil
        }
    }
}
