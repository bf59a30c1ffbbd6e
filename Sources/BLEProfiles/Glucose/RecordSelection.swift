public import BLECore

/// A selection of a device's records.
public enum RecordSelection: GATTWritable, Hashable, Sendable {
    /// All records.
    case all
    /// The first record.
    case first
    /// The last record.
    case last
    /// The records in this range of sequence numbers, inclusive; `nil` leaves an end open.
    case sequenceNumbers(from: UInt16?, through: UInt16?)
    /// The records in this range of user-facing times, inclusive; `nil` leaves an end open.
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
