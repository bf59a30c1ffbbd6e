internal import BLECore

/// Reads the records of an Apple PacketLogger file, which has no header.
///
///     record: length 4 | seconds 4 | microseconds 4 | type 1 | packet          the length excludes itself
///
/// The byte order is big-endian in older files and little-endian in newer ones. The system's notes between the packets
/// are presented like those of the Linux monitor.
struct PacketLoggerParser: Sendable {
    /// The number of bytes that are needed to recognize the format.
    static let longestMagic = 13
    /// The valid lengths of the first record: at least a header and a type.
    private static let lengths: Range<UInt32> = 9..<0x1_0000

    private let isBigEndian: Bool
    private var packetsRead = 0

    /// Creates a parser if the file begins with a PacketLogger record.
    init?(_ beginning: [UInt8]) {
        for isBigEndian in [true, false] {
            var reader = ByteReader(beginning.span)
            guard let length = reader.u32(bigEndian: isBigEndian), reader.skip(4),
                let microseconds = reader.u32(bigEndian: isBigEndian), let type = reader.u8()
            else { return nil }
            if Self.lengths.contains(length), microseconds < 1_000_000, Self.isKnown(type) {
                self.isBigEndian = isBigEndian
                return
            }
        }
        return nil
    }

    /// Returns true if a file may begin with this length in either byte order. Text files never do.
    static func isPossible(length: UInt32) -> Bool {
        lengths.contains(length) || lengths.contains(length.byteSwapped)
    }

    /// Reads the next packet. Returns `nil` if it is not complete yet.
    mutating func next(_ buffer: inout CaptureBuffer) throws(CaptureError) -> CapturedPacket? {
        while true {
            var reader = buffer.reader
            guard let length = reader.u32(bigEndian: isBigEndian) else { return nil }
            guard (8...BTSnoop.longestRecord).contains(length) else { throw .corruptRecord(packetsRead: packetsRead) }
            guard var record = reader.take(Int(length)) else { return nil }
            let packet = packet(&record)
            buffer.drop(Int(length) &+ 4)
            if let packet {
                packetsRead &+= 1
                return packet
            }
        }
    }

    private func packet(_ record: inout ByteReader) -> CapturedPacket? {
        guard let seconds = record.u32(bigEndian: isBigEndian), let part = record.u32(bigEndian: isBigEndian),
            let type = record.u8(), let (kind, direction) = Self.meaning(type)
        else { return nil }
        let timestamp = Duration.seconds(Int64(seconds)) + .microseconds(Int64(part))
        return CapturedPacket(direction: direction, kind: kind, bytes: record.rest(), timestamp: timestamp)
    }

    /// Handles the end of the file: unread bytes are an incomplete record.
    func finish(_ buffer: CaptureBuffer) throws(CaptureError) {
        if buffer.count > 0 { throw .truncated(packetsRead: packetsRead) }
    }

    private static func meaning(_ type: UInt8) -> (CapturedPacket.Kind, CapturedPacket.Direction)? {
        switch type {
        case 0x00: (.command, .sent)
        case 0x01: (.event, .received)
        case 0x02: (.asynchronousData, .sent)
        case 0x03: (.asynchronousData, .received)
        case 0x08: (.synchronousData, .sent)
        case 0x09: (.synchronousData, .received)
        case 0xF7...0xFE: (.note(CapturedPacket.systemNote), .received)
        default: nil
        }
    }

    /// Packets, plus link manager messages and system notes.
    private static func isKnown(_ type: UInt8) -> Bool {
        switch type {
        case 0x00...0x03, 0x08...0x0B, 0xF7...0xFE: true
        default: false
        }
    }
}
