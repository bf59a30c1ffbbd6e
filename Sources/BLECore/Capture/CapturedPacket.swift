/// One record of a capture: a packet between a host and its Bluetooth controller, with the time it passed.
public struct CapturedPacket: Hashable, Sendable {
    /// Which way a packet went.
    public enum Direction: Hashable, Sendable {
        /// From the host to the controller.
        case sent
        /// From the controller to the host.
        case received
    }

    /// What a record holds.
    ///
    /// Spec: the packet indicators of Core Vol 4 Part A, 2; the others are Linux's monitor opcodes.
    public enum Kind: Hashable, Sendable {
        /// An HCI command: opcode, length, parameters.
        case command
        /// A piece of an L2CAP frame: connection handle and flags, length, bytes.
        case asynchronousData
        /// Audio.
        case synchronousData
        /// An HCI event: code, length, parameters.
        case event
        /// Isochronous data, as LE Audio uses it.
        case isochronousData
        /// Something that Linux's monitor noted beside the packets, such as a controller that appeared; its opcode.
        case note(UInt16)
    }

    /// Which way the packet went.
    public var direction: Direction
    /// What the record holds.
    public var kind: Kind
    /// The packet without the type octet that some captures put in front.
    public var bytes: [UInt8]
    /// The time since 1970-01-01 00:00 UTC, as the recording machine's clock had it.
    public var timestamp: Duration
    /// The index of the controller where the capture tells several apart, else 0.
    public var controller: UInt16
    /// How many bytes the recorder cut off the end of the packet; 0 for a whole one.
    public var missingByteCount: Int

    /// Describes one record.
    public init(
        direction: Direction, kind: Kind, bytes: [UInt8], timestamp: Duration, controller: UInt16 = 0,
        missingByteCount: Int = 0
    ) {
        self.direction = direction
        self.kind = kind
        self.bytes = bytes
        self.timestamp = timestamp
        self.controller = controller
        self.missingByteCount = missingByteCount
    }
}

extension CapturedPacket {
    /// Takes the H4 type octet off the front; `nil` for an empty packet or a type that does not exist.
    static func kind(ofType type: UInt8) -> Kind? {
        switch type {
        case 0x01: .command
        case 0x02: .asynchronousData
        case 0x03: .synchronousData
        case 0x04: .event
        case 0x05: .isochronousData
        default: nil
        }
    }

    /// The H4 type octet; `nil` for a note, which never crosses a transport.
    var typeOctet: UInt8? {
        switch kind {
        case .command: 0x01
        case .asynchronousData: 0x02
        case .synchronousData: 0x03
        case .event: 0x04
        case .isochronousData: 0x05
        case .note: nil
        }
    }

    /// The opcode of a text among the packets of Linux's monitor.
    static let systemNote: UInt16 = 12

    /// What an opcode of Linux's monitor channel stands for.
    static func monitored(_ opcode: UInt16) -> (kind: Kind, direction: Direction) {
        switch opcode {
        case 2: (.command, .sent)
        case 3: (.event, .received)
        case 4: (.asynchronousData, .sent)
        case 5: (.asynchronousData, .received)
        case 6: (.synchronousData, .sent)
        case 7: (.synchronousData, .received)
        case 18: (.isochronousData, .sent)
        case 19: (.isochronousData, .received)
        default: (.note(opcode), .received)
        }
    }
}
