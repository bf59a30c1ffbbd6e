/// A command to the controller.
///
/// On the wire: opcode 2, length of the parameters 1, parameters; least significant byte first.
///
/// Spec: HCI Command packet, Core Vol 4 Part E, 5.4.1.
public protocol HCICommand: Hashable, Sendable {
    /// The number of the command.
    static var opcode: HCIOpcode { get }
    /// What follows the length byte.
    var parameters: [UInt8] { get }
}

extension HCICommand {
    /// The number of the command.
    public var opcode: HCIOpcode { Self.opcode }

    /// The whole packet, the packet type 0x01 in front.
    public var bytes: [UInt8] {
        HCICommandPacket(opcode: opcode, parameters: parameters).bytes
    }
}

/// A command whose Command Complete carries more than a status.
public protocol HCIQuery: HCICommand {
    /// What the controller answers.
    associatedtype Answer: Hashable, Sendable

    /// Reads what follows the status in the return parameters.
    ///
    /// - Throws: `MalformedPacket` when the bytes do not fit the answer exactly.
    static func answer(from returned: Span<UInt8>) throws(MalformedPacket) -> Answer
}

/// Any command as opcode and parameters: for queues, printers and servers, which need not know what it asks.
public struct HCICommandPacket: Hashable, Sendable {
    /// The number of the command.
    public let opcode: HCIOpcode
    /// What follows the length byte.
    public let parameters: [UInt8]

    /// A command made of its parts; parameters beyond the 255 bytes that fit are cut off.
    public init(opcode: HCIOpcode, parameters: [UInt8]) {
        self.opcode = opcode
        self.parameters = parameters.count <= 255 ? parameters : [UInt8](parameters.prefix(255))
    }

    /// The same command without its type.
    public init(_ command: some HCICommand) {
        self.init(opcode: command.opcode, parameters: command.parameters)
    }

    /// Reads a command from the bytes behind the packet type.
    ///
    /// - Throws: `MalformedPacket` when the length byte and the bytes disagree.
    public init(_ packet: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(packet)
        guard let opcode = reader.u16(), let length = reader.u8(), let parameters = reader.array(Int(length)) else {
            throw MalformedPacket("HCI command", at: packet.count, .tooShort)
        }
        try reader.finish("HCI command")
        self.init(opcode: HCIOpcode(rawValue: opcode), parameters: parameters)
    }

    /// The whole packet, the packet type 0x01 in front.
    public var bytes: [UInt8] {
        var writer = ByteWriter(reserving: parameters.count + 4)
        writer.u8(HCIPacketType.command.rawValue)
        writer.u16(opcode.rawValue)
        writer.u8(UInt8(truncatingIfNeeded: parameters.count))
        writer.array(parameters)
        return writer.bytes
    }
}
