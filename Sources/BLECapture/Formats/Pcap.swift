internal import BLECore

/// The link types of pcap files with HCI traffic.
///
/// Spec: the registry of link-layer header types at tcpdump.org.
enum PcapLinkType: UInt32, Hashable, Sendable {
    /// H4 packets; the direction is derived from the type where possible.
    case h4 = 187
    /// H4 packets after a 4-byte direction, big-endian; 0 means sent.
    case h4WithDirection = 201
    /// Linux monitor: controller 2, opcode 2, both big-endian, packet.
    case linuxMonitor = 254

    func packet(_ bytes: [UInt8], timestamp: Duration) -> CapturedPacket? {
        var reader = ByteReader(bytes.span)
        switch self {
        case .h4:
            guard let type = reader.u8(), let kind = CapturedPacket.kind(ofType: type) else { return nil }
            let direction: CapturedPacket.Direction = kind == .event ? .received : .sent
            return CapturedPacket(direction: direction, kind: kind, bytes: reader.rest(), timestamp: timestamp)
        case .h4WithDirection:
            guard let received = reader.u32BigEndian(), let type = reader.u8(),
                let kind = CapturedPacket.kind(ofType: type)
            else { return nil }
            return CapturedPacket(
                direction: received & 1 == 0 ? .sent : .received, kind: kind, bytes: reader.rest(),
                timestamp: timestamp)
        case .linuxMonitor:
            guard let controller = reader.u16BigEndian(), let opcode = reader.u16BigEndian() else { return nil }
            let (kind, direction) = CapturedPacket.monitored(opcode)
            return CapturedPacket(
                direction: direction, kind: kind, bytes: reader.rest(), timestamp: timestamp, controller: controller)
        }
    }
}

/// The content of the records of a pcap or pcapng file.
enum PcapContent: Hashable, Sendable {
    case host(PcapLinkType)
    case air(AirLinkType)

    /// Returns `nil` for a link type without Bluetooth LE.
    init?(linkType: UInt32) {
        if let host = PcapLinkType(rawValue: linkType) {
            self = .host(host)
        } else if let air = AirLinkType(rawValue: linkType) {
            self = .air(air)
        } else {
            return nil
        }
    }

    /// Decodes the packet of a record that lacks `missing` bytes. Returns `nil` if it is not a packet.
    func packet(_ bytes: [UInt8], missing: Int, timestamp: Duration, _ traffic: inout LinkLayerDecoder)
        -> CapturedPacket?
    {
        switch self {
        case .host(let linkType):
            guard var packet = linkType.packet(bytes, timestamp: timestamp) else { return nil }
            packet.missingByteCount = missing
            return packet
        case .air(let linkType):
            guard let heard = AirPacket(bytes, linkType) else { return nil }
            return traffic.received(heard, at: timestamp)
        }
    }
}

/// Reads the records of a classic pcap file of either byte order.
///
///     magic 4 | version 4 | zone 4 | accuracy 4 | longest 4 | link type 4 | record*
///     record: seconds 4 | micro- or nanoseconds 4 | included length 4 | original length 4 | packet
///
/// Spec: draft-ietf-opsawg-pcap.
struct PcapParser: Sendable {
    private let isBigEndian: Bool
    private let isNanoseconds: Bool
    private var content: PcapContent?
    private var traffic = LinkLayerDecoder()
    private var packetsRead = 0

    /// Creates a parser if `magic`, read little-endian, is that of a pcap file.
    init?(magic: UInt32) {
        switch magic {
        case 0xA1B2_C3D4: (isBigEndian, isNanoseconds) = (false, false)
        case 0xD4C3_B2A1: (isBigEndian, isNanoseconds) = (true, false)
        case 0xA1B2_3C4D: (isBigEndian, isNanoseconds) = (false, true)
        case 0x4D3C_B2A1: (isBigEndian, isNanoseconds) = (true, true)
        default: return nil
        }
    }

    /// Reads the next packet. Returns `nil` if it is not complete yet.
    mutating func next(_ buffer: inout CaptureBuffer) throws(CaptureError) -> CapturedPacket? {
        if content == nil {
            var reader = buffer.reader
            guard reader.skip(20), let number = reader.u32(bigEndian: isBigEndian) else { return nil }
            // The upper bits describe frame check sequences, which do not apply to Bluetooth.
            guard let known = PcapContent(linkType: number & 0xFFFF) else {
                throw .unsupportedDatalink(number & 0xFFFF)
            }
            content = known
            buffer.drop(reader.offset)
        }
        guard let content else { return nil }
        while true {
            var reader = buffer.reader
            guard let seconds = reader.u32(bigEndian: isBigEndian), let fraction = reader.u32(bigEndian: isBigEndian),
                let included = reader.u32(bigEndian: isBigEndian), let original = reader.u32(bigEndian: isBigEndian)
            else { return nil }
            guard included <= BTSnoop.longestRecord else { throw .corruptRecord(packetsRead: packetsRead) }
            guard let bytes = reader.array(Int(included)) else { return nil }
            buffer.drop(reader.offset)
            let part: Duration = isNanoseconds ? .nanoseconds(Int64(fraction)) : .microseconds(Int64(fraction))
            let missing = original > included ? Int(original &- included) : 0
            guard
                let packet = content.packet(
                    bytes, missing: missing, timestamp: .seconds(Int64(seconds)) + part, &traffic)
            else { continue }
            packetsRead &+= 1
            return packet
        }
    }

    /// Handles the end of the file: unread bytes are an incomplete record.
    func finish(_ buffer: CaptureBuffer) throws(CaptureError) {
        if buffer.count > 0 || content == nil { throw .truncated(packetsRead: packetsRead) }
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    mutating func u32(bigEndian: Bool) -> UInt32? {
        bigEndian ? u32BigEndian() : u32()
    }

    @_lifetime(self: copy self)
    mutating func u16(bigEndian: Bool) -> UInt16? {
        bigEndian ? u16BigEndian() : u16()
    }
}

/// Writes a pcap capture with H4 packets and their directions (link type 201).
///
/// The caller writes `header` once, followed by the bytes of each record.
struct PcapWriter: Sendable {
    /// The header: magic of microseconds, version 2.4, no time zone, the longest packet, the link type.
    var header: [UInt8] {
        var writer = ByteWriter()
        writer.u32(0xA1B2_C3D4)
        writer.u16(2)
        writer.u16(4)
        writer.u32(0)
        writer.u32(0)
        writer.u32(0x0004_0000)
        writer.u32(PcapLinkType.h4WithDirection.rawValue)
        return writer.bytes
    }

    /// Encodes one record. Returns `nil` for a note, which this link type cannot represent.
    func record(_ packet: CapturedPacket) -> [UInt8]? {
        guard let type = packet.typeOctet else { return nil }
        let time = packet.timestamp.wholeMicroseconds
        let length = UInt32(clamping: packet.bytes.count + 5)
        var writer = ByteWriter()
        writer.u32(UInt32(truncatingIfNeeded: time / 1_000_000))
        writer.u32(UInt32(truncatingIfNeeded: time % 1_000_000))
        writer.u32(length)
        writer.u32(UInt32(clamping: packet.bytes.count + 5 + max(0, packet.missingByteCount)))
        writer.array([0, 0, 0, packet.direction == .received ? 1 : 0, type])
        writer.array(packet.bytes)
        return writer.bytes
    }
}
