internal import BLECore

extension PacketNames {
    /// Returns the name of a command with its number, including commands that BareBLE never sends.
    ///
    /// Spec: Core Vol 4 Part E, 7.
    static func command(_ opcode: UInt16) -> String {
        if HCIOpcode(rawValue: opcode).name != nil { return HCIOpcode(rawValue: opcode).description }
        let name: String =
            switch opcode {
            case 0x0401: "Inquiry"
            case 0x0402: "Inquiry Cancel"
            case 0x0405: "Create Connection"
            case 0x0419: "Remote Name Request"
            case 0x041B: "Read Remote Supported Features"
            case 0x0C01: "Set Event Mask"
            case 0x0C05: "Set Event Filter"
            case 0x0C13: "Write Local Name"
            case 0x0C14: "Read Local Name"
            case 0x0C18: "Write Page Timeout"
            case 0x0C1A: "Write Scan Enable"
            case 0x0C23: "Read Class of Device"
            case 0x0C24: "Write Class of Device"
            case 0x0C25: "Read Voice Setting"
            case 0x0C33: "Host Buffer Size"
            case 0x0C45: "Write Inquiry Mode"
            case 0x0C52: "Write Extended Inquiry Response"
            case 0x0C56: "Write Simple Pairing Mode"
            case 0x0C63: "Set Event Mask Page 2"
            case 0x0C6C: "Read LE Host Support"
            case 0x1003: "Read Local Supported Features"
            case 0x1004: "Read Local Extended Features"
            case 0x1005: "Read Buffer Size"
            case 0x100B: "Read Local Supported Codecs"
            case 0x2001: "LE Set Event Mask"
            case 0x2002: "LE Read Buffer Size"
            case 0x2005: "LE Set Random Address"
            case 0x2006: "LE Set Advertising Parameters"
            case 0x2007: "LE Read Advertising Channel TX Power"
            case 0x2008: "LE Set Advertising Data"
            case 0x2009: "LE Set Scan Response Data"
            case 0x200A: "LE Set Advertising Enable"
            case 0x200F: "LE Read Filter Accept List Size"
            case 0x2010: "LE Clear Filter Accept List"
            case 0x2011: "LE Add Device To Filter Accept List"
            case 0x2012: "LE Remove Device From Filter Accept List"
            case 0x2017: "LE Encrypt"
            case 0x2018: "LE Rand"
            case 0x2019: "LE Enable Encryption"
            case 0x201A: "LE Long Term Key Request Reply"
            case 0x201B: "LE Long Term Key Request Negative Reply"
            case 0x201C: "LE Read Supported States"
            case 0x2020: "LE Remote Connection Parameter Request Reply"
            case 0x2023: "LE Read Suggested Default Data Length"
            case 0x2024: "LE Write Suggested Default Data Length"
            case 0x2027: "LE Add Device To Resolving List"
            case 0x2028: "LE Remove Device From Resolving List"
            case 0x2029: "LE Clear Resolving List"
            case 0x202A: "LE Read Resolving List Size"
            case 0x202D: "LE Set Address Resolution Enable"
            case 0x202E: "LE Set Resolvable Private Address Timeout"
            case 0x202F: "LE Read Maximum Data Length"
            case 0x2031: "LE Set Default PHY"
            case 0x2035: "LE Set Advertising Set Random Address"
            case 0x2036: "LE Set Extended Advertising Parameters"
            case 0x2037: "LE Set Extended Advertising Data"
            case 0x2038: "LE Set Extended Scan Response Data"
            case 0x2039: "LE Set Extended Advertising Enable"
            case 0x203A: "LE Read Maximum Advertising Data Length"
            case 0x203B: "LE Read Number of Supported Advertising Sets"
            case 0x203C: "LE Remove Advertising Set"
            case 0x203D: "LE Clear Advertising Sets"
            case 0x204A: "LE Read Periodic Advertiser List Size"
            case 0x204B: "LE Read Transmit Power"
            case 0x204E: "LE Set Privacy Mode"
            case 0x2060: "LE Read Buffer Size V2"
            case 0xFC00...0xFFFF: "Vendor command"
            default: "Command"
            }
        return "\(name) (\(hex(opcode)))"
    }

    /// Returns the name of an event with its code, or of an LE event with its subevent code.
    ///
    /// Spec: Core Vol 4 Part E, 7.7.
    static func event(_ code: UInt8, _ subevent: UInt8?) -> String {
        if code == 0x3E, let subevent { return "\(lowEnergy(subevent)) (0x3e \(hex(subevent)))" }
        let name: String =
            switch code {
            case 0x01: "Inquiry Complete"
            case 0x02: "Inquiry Result"
            case 0x03: "Connection Complete"
            case 0x04: "Connection Request"
            case 0x05: "Disconnection Complete"
            case 0x06: "Authentication Complete"
            case 0x07: "Remote Name Request Complete"
            case 0x08, 0x59: "Encryption Change"
            case 0x0B: "Read Remote Supported Features Complete"
            case 0x0C: "Read Remote Version Information Complete"
            case 0x0E: "Command Complete"
            case 0x0F: "Command Status"
            case 0x10: "Hardware Error"
            case 0x12: "Role Change"
            case 0x13: "Number of Completed Packets"
            case 0x1B: "Max Slots Change"
            case 0x22: "Inquiry Result with RSSI"
            case 0x2F: "Extended Inquiry Result"
            case 0x30: "Encryption Key Refresh Complete"
            case 0xFF: "Vendor event"
            default: "Event"
            }
        return "\(name) (\(hex(code)))"
    }

    private static func lowEnergy(_ subevent: UInt8) -> String {
        switch subevent {
        case 0x01: "LE Connection Complete"
        case 0x02: "LE Advertising Report"
        case 0x03: "LE Connection Update Complete"
        case 0x04: "LE Read Remote Features Complete"
        case 0x05: "LE Long Term Key Request"
        case 0x06: "LE Remote Connection Parameter Request"
        case 0x07: "LE Data Length Change"
        case 0x08: "LE Read Local P-256 Public Key Complete"
        case 0x09: "LE Generate DHKey Complete"
        case 0x0A: "LE Enhanced Connection Complete"
        case 0x0B: "LE Directed Advertising Report"
        case 0x0C: "LE PHY Update Complete"
        case 0x0D: "LE Extended Advertising Report"
        case 0x11: "LE Scan Timeout"
        case 0x12: "LE Advertising Set Terminated"
        case 0x13: "LE Scan Request Received"
        case 0x14: "LE Channel Selection Algorithm"
        case 0x29: "LE Enhanced Connection Complete V2"
        default: "LE event"
        }
    }
}
