public import BLECore

/// A request to a device that stores records, such as a glucose meter.
///
///     1 report   2 delete   4 count: | operator 1 | filter 1 and its bounds, if any
///     3 abort:                       | 0
///
/// Records arrive as notifications of the characteristic that they belong to; the response comes last.
///
/// Spec: Record Access Control Point (0x2A52), Glucose Service 1.0, 3.4.
public enum RecordAccessControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Requests records.
    case report(RecordSelection)
    /// Deletes records.
    case delete(RecordSelection)
    /// Aborts the operation in progress.
    case abort
    /// Requests the number of records.
    case count(RecordSelection)

    /// Appends the opcode, the operator and the operand.
    public func write(to writer: inout ByteWriter) {
        switch self {
        case .report(let records): Self.write(1, records, to: &writer)
        case .delete(let records): Self.write(2, records, to: &writer)
        case .count(let records): Self.write(4, records, to: &writer)
        case .abort:
            writer.u8(3)
            writer.u8(0)
        }
    }

    private static func write(_ opCode: UInt8, _ records: RecordSelection, to writer: inout ByteWriter) {
        writer.u8(opCode)
        writer.write(records)
    }
}

/// A response of a device that stores records.
///
///     5 | 0 | number 2, from some devices 1 or 4
///     6 | 0 | request 1 | result 1
///
/// Spec: Record Access Control Point (0x2A52), Glucose Service 1.0, 3.4.
public enum RecordAccessControlPointResponse: GATTReadable, Hashable, Sendable {
    /// The number of records.
    case count(Int)
    /// The result of the request with this opcode.
    case ended(request: UInt8, RecordAccessResult)

    /// The specification's name.
    public static var formatName: String { "Record Access Control Point" }

    /// Reads one response.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early or are not a response.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let opCode: UInt8 = try reader.read()
        if try reader.read(UInt8.self) != 0 { throw reader.invalid("operator") }
        switch opCode {
        case 5: self = .count(try Self.number(&reader))
        case 6:
            let request: UInt8 = try reader.read()
            self = .ended(request: request, RecordAccessResult(rawValue: try reader.read()))
        default: throw reader.invalid("op code")
        }
    }

    private static func number(_ reader: inout ByteReader) throws(MalformedPacket) -> Int {
        switch reader.remaining {
        case 1: Int(try reader.read(UInt8.self))
        case 4: Int(clamping: try reader.read(UInt32.self))
        default: Int(try reader.read(UInt16.self))
        }
    }
}

extension RecordAccessControlPointResponse: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        switch self {
        case .count(let number): list.add("records", number)
        case .ended(let request, let result):
            list.add("response to request", request)
            list.add("result", result)
        }
        return list.fields
    }
}

extension CharacteristicKey where Value == RecordAccessControlPointRequest {
    /// Record Access Control Point, 0x2A52, to write requests to.
    public static var recordAccessControlPointRequest: Self { Self(0x2A52) }
}

extension CharacteristicKey where Value == RecordAccessControlPointResponse {
    /// Record Access Control Point, 0x2A52, to subscribe to before a request is written.
    public static var recordAccessControlPointResponse: Self { Self(0x2A52) }
}
