/// Which of a device's records are meant.
public enum RecordSelection: GATTWritable, Hashable, Sendable {
    /// All of them.
    case all
    /// The first one.
    case first
    /// The last one.
    case last
    /// Those with these numbers, both ends included; `nil` for an open end.
    case sequenceNumbers(from: UInt16?, through: UInt16?)
    /// Those of these times on the users' clock, both ends included; `nil` for an open end.
    case userFacingTimes(from: GATTDateTime?, through: GATTDateTime?)

    /// Appends the operator and its operand.
    public func write(to writer: inout ByteWriter) {
        switch self {
        case .all: writer.u8(1)
        case .first: writer.u8(5)
        case .last: writer.u8(6)
        case .sequenceNumbers(let from, let through): Self.write(from, through, filter: 1, to: &writer)
        case .userFacingTimes(let from, let through): Self.write(from, through, filter: 2, to: &writer)
        }
    }

    private static func write<Bound: GATTWritable>(
        _ from: Bound?, _ through: Bound?, filter: UInt8, to writer: inout ByteWriter
    ) {
        switch (from, through) {
        case (nil, nil): return writer.u8(1)
        case (nil, _?): writer.u8(2)
        case (_?, nil): writer.u8(3)
        case (_?, _?): writer.u8(4)
        }
        writer.u8(filter)
        writer.write(ifPresent: from)
        writer.write(ifPresent: through)
    }
}
