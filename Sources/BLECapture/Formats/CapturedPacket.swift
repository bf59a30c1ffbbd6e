internal import BLECore

/// A record of a capture: a packet between a host and its Bluetooth controller, with a timestamp.
public struct CapturedPacket: Hashable, Sendable {
    /// The direction of a packet.
    public enum Direction: Hashable, Sendable {
        /// From the host to the controller.
        case sent
        /// From the controller to the host.
        case received
    }

    /// The type of a packet.
    ///
    /// Spec: the packet indicators of Core Vol 4 Part A, 2; the others are Linux monitor opcodes.
    public enum Kind: Hashable, Sendable {
        /// An HCI command: opcode, length, parameters.
        case command
        /// A fragment of an L2CAP frame: connection handle and flags, length, bytes.
        case asynchronousData
        /// Synchronous (SCO) data.
        case synchronousData
        /// An HCI event: code, length, parameters.
        case event
        /// Isochronous data of LE Audio.
        case isochronousData
        /// A note of the Linux monitor, such as a new controller; with its opcode.
        case note(UInt16)
    }

    /// The direction of the packet.
    public var direction: Direction
    /// The type of the packet.
    public var kind: Kind
    /// The packet without an H4 type octet.
    public var bytes: [UInt8]
    /// The time since 1970-01-01 00:00 UTC, by the recording machine's clock.
    public var timestamp: Duration
    /// The index of the controller, if the capture distinguishes several, otherwise 0.
    public var controller: UInt16
    /// The number of bytes that the recorder cut off; 0 for a complete packet.
    public var missingByteCount: Int

    /// Creates a record.
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
    /// Returns the kind for an H4 type octet, or `nil` for an unknown one.
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

    /// The H4 type octet, or `nil` for a note, which is not part of a transport.
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

    /// The monitor opcode of a text message.
    static let systemNote: UInt16 = 12

    /// Returns the kind and the direction for a monitor opcode.
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
