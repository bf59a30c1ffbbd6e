/// Reads the records of a file of Apple's PacketLogger, which has no header.
///
///     record: length 4 | seconds 4 | microseconds 4 | type 1 | packet          the length counts what is behind it
///
/// The byte order is big-endian in older files and little-endian in newer ones. What the system notes between the packets is told as the
/// notes of Linux's monitor are.
struct PacketLoggerParser: Sendable {
    /// How many bytes it takes to tell such a file by.
    static let longestMagic = 13
    /// What a first record can count: a header and its type at least.
    private static let lengths: Range<UInt32> = 9..<0x1_0000

    private let isBigEndian: Bool
    private var packetsRead = 0

    /// A parser if the file begins with a record of that kind.
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

    /// Whether a file may begin with this length, read in the one byte order or the other. No text does.
    static func isPossible(length: UInt32) -> Bool {
        lengths.contains(length) || lengths.contains(length.byteSwapped)
    }

    /// The next packet; `nil` when it has not arrived in whole.
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

    /// The file has ended: whatever waits is the beginning of a record that never came.
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

    /// Packets, and behind them what the link managers say and what the system notes.
    private static func isKnown(_ type: UInt8) -> Bool {
        switch type {
        case 0x00...0x03, 0x08...0x0B, 0xF7...0xFE: true
        default: false
        }
    }
}
