internal import BLECore

/// The btsnoop format, as written by `btmon -w` and Android's developer options.
///
///     "btsnoop" 0 | version 4 | datalink 4 | record*            all numbers big-endian
///     record: original length 4 | included length 4 | flags 4 | drops 4 | microseconds since year 0, 8 | packet
///
/// Spec: RFC 1761, with the datalinks 1001, 1002 and 2001 that Bluetooth tools added.
enum BTSnoop {
    static let magic: [UInt8] = Array("btsnoop\0".utf8)
    static let headerLength = 16
    static let recordHeaderLength = 24
    /// The microseconds from the year 0 to 1970, as all writers of this format count them.
    static let epoch: Int64 = 0x00DC_DDB3_0F2F_8000
    /// The maximum record length; a longer one means that the file is damaged.
    static let longestRecord: UInt32 = 1 << 20
}

/// The encoding of packet type and direction in a btsnoop file.
public enum BTSnoopDatalink: UInt32, Hashable, Sendable {
    /// Bare packets; the record's flags contain type and direction.
    case bare = 1001
    /// Packets with an H4 type octet.
    case h4 = 1002
    /// Linux monitor: several controllers, and notes about them.
    case monitor = 2001
}

/// Reads the records of a btsnoop file from a growing buffer.
struct BTSnoopParser: Sendable {
    private var datalink: BTSnoopDatalink?
    private var packetsRead = 0

    /// Reads the next packet. Returns `nil` if it is not complete yet.
    mutating func next(_ buffer: inout CaptureBuffer) throws(CaptureError) -> CapturedPacket? {
        if datalink == nil {
            var reader = buffer.reader
            guard reader.skip(8), let version = reader.u32BigEndian(), let number = reader.u32BigEndian() else {
                return nil
            }
            guard version == 1 else { throw .unsupportedVersion(version) }
            guard let known = BTSnoopDatalink(rawValue: number) else { throw .unsupportedDatalink(number) }
            datalink = known
            buffer.drop(BTSnoop.headerLength)
        }
        guard let datalink else { return nil }
        while true {
            var reader = buffer.reader
            guard let original = reader.u32BigEndian(), let included = reader.u32BigEndian(),
                let flags = reader.u32BigEndian(), reader.skip(4), let time = reader.u64BigEndian()
            else { return nil }
            guard included <= BTSnoop.longestRecord, included <= original else {
                throw .corruptRecord(packetsRead: packetsRead)
            }
            guard let bytes = reader.array(Int(included)) else { return nil }
            buffer.drop(reader.offset)
            let timestamp = Duration.microseconds(Int64(bitPattern: time) &- BTSnoop.epoch)
            guard var packet = Self.packet(bytes, flags: flags, datalink: datalink, timestamp: timestamp) else {
                continue
            }
            packet.missingByteCount = Int(original &- included)
            packetsRead &+= 1
            return packet
        }
    }

    /// Handles the end of the file: unread bytes are an incomplete record.
    func finish(_ buffer: CaptureBuffer) throws(CaptureError) {
        if buffer.count > 0 || datalink == nil { throw .truncated(packetsRead: packetsRead) }
    }

    private static func packet(
        _ bytes: [UInt8], flags: UInt32, datalink: BTSnoopDatalink, timestamp: Duration
    ) -> CapturedPacket? {
        let received = flags & 1 != 0
        let direction: CapturedPacket.Direction = received ? .received : .sent
        switch datalink {
        case .bare:
            let kind: CapturedPacket.Kind = flags & 2 == 0 ? .asynchronousData : received ? .event : .command
            return CapturedPacket(direction: direction, kind: kind, bytes: bytes, timestamp: timestamp)
        case .h4:
            guard let type = bytes.first, let kind = CapturedPacket.kind(ofType: type) else { return nil }
            return CapturedPacket(
                direction: direction, kind: kind, bytes: Array(bytes.dropFirst()), timestamp: timestamp)
        case .monitor:
            let (kind, direction) = CapturedPacket.monitored(UInt16(truncatingIfNeeded: flags))
            return CapturedPacket(
                direction: direction, kind: kind, bytes: bytes, timestamp: timestamp,
                controller: UInt16(truncatingIfNeeded: flags >> 16))
        }
    }
}

/// Writes a btsnoop file with H4 packets (datalink 1002), which all common tools can read.
///
/// The caller writes `header` once, followed by the bytes of each record.
public struct BTSnoopWriter: Sendable {
    /// Creates a writer. It has no state.
    public init() {}

    /// The file header.
    public var header: [UInt8] {
        BTSnoop.magic + [0, 0, 0, 1] + Self.bigEndian(UInt64(BTSnoopDatalink.h4.rawValue), 4)
    }

    /// Encodes one record. Returns `nil` for a note, which this datalink cannot represent.
    public func record(_ packet: CapturedPacket) -> [UInt8]? {
        guard let type = packet.typeOctet else { return nil }
        let isControl = packet.kind == .command || packet.kind == .event
        let included = UInt64(packet.bytes.count) &+ 1
        let original = included &+ UInt64(max(0, packet.missingByteCount))
        let flags: UInt64 = (packet.direction == .received ? 1 : 0) | (isControl ? 2 : 0)
        let time = packet.timestamp.wholeMicroseconds &+ BTSnoop.epoch
        return Self.bigEndian(original, 4) + Self.bigEndian(included, 4) + Self.bigEndian(flags, 4) + [0, 0, 0, 0]
            + Self.bigEndian(UInt64(bitPattern: time), 8) + [type] + packet.bytes
    }

    private static func bigEndian(_ value: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 &* (count &- 1 &- $0))) }
    }
}

extension Duration {
    /// The duration in whole microseconds; wraps beyond ±292,000 years.
    var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds &* 1_000_000 &+ attoseconds / 1_000_000_000_000
    }
}
