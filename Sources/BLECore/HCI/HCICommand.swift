/// A command to the controller.
///
/// Encoding: opcode 2, parameter length 1, parameters; little-endian.
///
/// Spec: HCI Command packet, Core Vol 4 Part E, 5.4.1.
package protocol HCICommand: Hashable, Sendable {
    /// The opcode.
    static var opcode: HCIOpcode { get }
    /// The encoded parameters.
    var parameters: [UInt8] { get }
}

extension HCICommand {
    /// The opcode.
    package var opcode: HCIOpcode { Self.opcode }

    /// The complete packet, including the packet type 0x01.
    package var bytes: [UInt8] {
        HCICommandPacket(opcode: opcode, parameters: parameters).bytes
    }
}

/// A command whose Command Complete carries more than a status.
package protocol HCIQuery: HCICommand {
    /// The decoded return parameters.
    associatedtype ReturnParameters: Hashable, Sendable

    /// Decodes the return parameters after the status.
    ///
    /// - Throws: `MalformedPacket` if the bytes do not match the layout exactly.
    static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> ReturnParameters
}

/// Any command as opcode and parameters, for queues, printers and servers that need not interpret it.
///
/// The parameters may contain a key: they are overwritten when no copy of the packet is left.
package struct HCICommandPacket: Hashable, Sendable {
    /// The opcode.
    package let opcode: HCIOpcode
    private let content: SecretBytes

    /// Creates a command packet; parameters beyond 255 bytes are truncated.
    package init(opcode: HCIOpcode, parameters: consuming [UInt8]) {
        self.opcode = opcode
        content = SecretBytes(parameters.count <= 255 ? parameters : [UInt8](parameters.prefix(255)))
    }

    /// The encoded parameters.
    package var parameters: [UInt8] { content.bytes }

    /// Creates a type-erased command.
    package init(_ command: some HCICommand) {
        self.init(opcode: command.opcode, parameters: command.parameters)
    }

    /// Decodes a command from the bytes after the packet type.
    ///
    /// - Throws: `MalformedPacket` if the length byte does not match the number of bytes.
    package init(_ packet: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(packet)
        guard let opcode = reader.u16(), let length = reader.u8(), let parameters = reader.array(Int(length)) else {
            throw MalformedPacket("HCI command", at: packet.count, .tooShort)
        }
        try reader.finish("HCI command")
        self.init(opcode: HCIOpcode(rawValue: opcode), parameters: parameters)
    }

    /// The complete packet, including the packet type 0x01.
    package var bytes: [UInt8] {
        // Reserved in full, so that no shorter copy is left in memory.
        var writer = ByteWriter(reserving: content.count + 4)
        writer.u8(HCIPacketType.command.rawValue)
        writer.u16(opcode.rawValue)
        writer.u8(UInt8(truncatingIfNeeded: content.count))
        writer.array(content.bytes)
        return writer.bytes
    }
}

extension HCICommandPacket {
    /// Overwrites the keys in a command of any program with zeros, for traces.
    ///
    /// - Parameter packet: The command after the packet type.
    package static func blankKeys(in packet: inout [UInt8]) {
        var reader = ByteReader(packet.span)
        guard let opcode = reader.u16(), let offset = offsetOfKeys(HCIOpcode(rawValue: opcode)) else { return }
        // Opcode and length come first.
        for index in packet.indices.dropFirst(3 + offset) { packet[index] = 0 }
    }

    /// Where the keys begin in the parameters of a command that has some; they are at its end.
    ///
    /// Spec: Core Vol 4 Part E, 7.1 (the replies to requests), 7.3.9, 7.8.22, 7.8.24, 7.8.25, 7.8.38,
    /// 7.8.103 and 7.8.106.
    private static func offsetOfKeys(_ opcode: HCIOpcode) -> Int? {
        switch opcode {
        case .leEnableEncryption: 12
        // The replies to Link Key Request, PIN Code Request, User Passkey Request, and Remote OOB
        // (Extended) Data Request.
        case HCIOpcode(rawValue: 0x040B), HCIOpcode(rawValue: 0x040D), HCIOpcode(rawValue: 0x042E),
            HCIOpcode(rawValue: 0x0430), HCIOpcode(rawValue: 0x0445):
            6
        // Write Stored Link Key, LE Encrypt.
        case HCIOpcode(rawValue: 0x0C11): 1
        case HCIOpcode(rawValue: 0x2017): 0
        // LE Long Term Key Request Reply, LE Add Device To Resolving List.
        case HCIOpcode(rawValue: 0x201A): 2
        case HCIOpcode(rawValue: 0x2027): 7
        // LE Create BIG, LE BIG Create Sync.
        case HCIOpcode(rawValue: 0x2068): 15
        case HCIOpcode(rawValue: 0x206B): 4
        default: nil
        }
    }
}
