internal import BLECore

extension PacketPrinter {
    mutating func describeData(_ packet: CapturedPacket, _ printed: inout PrintedPacket) {
        printed.layer = .l2cap
        switch reassembler.received(packet) {
        case .frame(let frame):
            if Self.securityManagerChannels.contains(frame.channel) {
                BlankedKeys.blank(frame.payload, inData: &printed.bytes)
            }
            describeFrame(frame, &printed)
        case .unfinished(let origin):
            BlankedKeys.blank(unfinished: &printed.bytes, of: Self.securityManagerChannels)
            printed.title =
                "Piece of a frame, link \(PacketNames.hex(origin.connection))"
                + ", \(PacketNames.bytes(packet.bytes.count &- 4))"
        case .unusable:
            printed.title = "Data that belongs to no frame, \(PacketNames.bytes(packet.bytes.count))"
            printed.details = PacketNames.dump(packet.bytes)
        }
    }

    /// That of LE links, and that of BR/EDR links.
    private static let securityManagerChannels: Set<UInt16> = [0x0006, 0x0007]

    private mutating func describeFrame(_ frame: L2CAPFrame, _ printed: inout PrintedPacket) {
        switch frame.channel {
        case L2CAPFrame.attributeChannel:
            describeAttribute(frame.payload, frame.origin, &printed)
        case 0x0005:
            printed.title = "L2CAP " + Self.named(frame.payload.first, Self.signal)
            printed.details = PacketNames.dump(frame.payload)
        case let channel where Self.securityManagerChannels.contains(channel):
            var payload = frame.payload
            BlankedKeys.blank(securityManager: &payload)
            printed.title = "Security Manager " + Self.named(payload.first, Self.security)
            printed.details = PacketNames.dump(payload)
        default:
            printed.title =
                "L2CAP channel \(PacketNames.hex(frame.channel)), link \(PacketNames.hex(frame.origin.connection))"
                + ", \(PacketNames.bytes(frame.payload.count))"
            printed.details = PacketNames.dump(frame.payload)
        }
    }

    private static func named(_ code: UInt8?, _ name: (UInt8) -> String?) -> String {
        guard let code else { return "packet without a code" }
        return "\(name(code) ?? "packet") (\(PacketNames.hex(code)))"
    }

    /// Spec: Core Vol 3 Part A, 4; those that LE links use.
    private static func signal(_ code: UInt8) -> String? {
        switch code {
        case 0x01: "Command Reject"
        case 0x06: "Disconnection Request"
        case 0x07: "Disconnection Response"
        case 0x12: "Connection Parameter Update Request"
        case 0x13: "Connection Parameter Update Response"
        case 0x14: "LE Credit Based Connection Request"
        case 0x15: "LE Credit Based Connection Response"
        case 0x16: "Flow Control Credit"
        case 0x17: "Credit Based Connection Request"
        case 0x18: "Credit Based Connection Response"
        case 0x19: "Credit Based Reconfigure Request"
        case 0x1A: "Credit Based Reconfigure Response"
        default: nil
        }
    }

    /// Spec: Core Vol 3 Part H, 3.3.
    private static func security(_ code: UInt8) -> String? {
        switch code {
        case 0x01: "Pairing Request"
        case 0x02: "Pairing Response"
        case 0x03: "Pairing Confirm"
        case 0x04: "Pairing Random"
        case 0x05: "Pairing Failed"
        case 0x06: "Encryption Information"
        case 0x07: "Central Identification"
        case 0x08: "Identity Information"
        case 0x09: "Identity Address Information"
        case 0x0A: "Signing Information"
        case 0x0B: "Security Request"
        case 0x0C: "Pairing Public Key"
        case 0x0D: "Pairing DHKey Check"
        case 0x0E: "Pairing Keypress Notification"
        default: nil
        }
    }

    func describeNote(_ opcode: UInt16, _ packet: CapturedPacket, _ printed: inout PrintedPacket) {
        let name: String? =
            switch opcode {
            case 0: "Controller \(packet.controller) appeared"
            case 1: "Controller \(packet.controller) was removed"
            case 8: "Controller \(packet.controller) was opened"
            case 9: "Controller \(packet.controller) was closed"
            case 10: "Controller \(packet.controller) reports its address"
            case 11: "Vendor diagnostics"
            case 12: "Note"
            case 13: "Log entry"
            case 14: "A management program started"
            case 15: "A management program ended"
            case 16: "Management command"
            case 17: "Management event"
            default: nil
            }
        printed.title = name ?? "Record of type \(opcode)"
        if opcode == 16 || opcode == 17 {
            BlankedKeys.blank(management: &printed.bytes, isCommand: opcode == 16)
        }
        let text = Array(packet.bytes.prefix { $0 != 0 })
        if opcode == 12, let plain = PacketNames.plainText(text) {
            printed.title += ": " + plain
        } else {
            printed.details = PacketNames.dump(printed.bytes)
        }
    }
}
