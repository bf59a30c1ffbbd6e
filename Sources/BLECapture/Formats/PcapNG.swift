internal import BLECore

/// Reads the packets of a pcapng file, section by section; other blocks are skipped.
///
///     block: type 4 | total length 4 | body | total length 4          byte order as the section header indicates
///
/// Spec: draft-ietf-opsawg-pcapng, 3 and 4.
struct PcapNGParser: Sendable {
    /// The type of the section header block, identical in both byte orders.
    static let magic: UInt32 = 0x0A0D_0D0A
    /// More interfaces than any recorder describes; further ones are rejected.
    private static let mostInterfaces = 4096

    private struct Interface {
        var number: UInt32
        var content: PcapContent?
        /// The resolution of the interface's timestamps, in ticks per second.
        var ticks: UInt64 = 1_000_000
    }

    private var isBigEndian = false
    private var interfaces: [Interface] = []
    private var traffic = LinkLayerDecoder()
    private var packetsRead = 0
    private var sawSection = false

    /// Reads the next packet. Returns `nil` if it is not complete yet.
    mutating func next(_ buffer: inout CaptureBuffer) throws(CaptureError) -> CapturedPacket? {
        while true {
            guard try setByteOrder(buffer) else { return nil }
            var reader = buffer.reader
            guard let type = reader.u32(bigEndian: isBigEndian), let length = reader.u32(bigEndian: isBigEndian)
            else { return nil }
            guard length >= 12, length % 4 == 0, length <= BTSnoop.longestRecord else {
                throw .corruptRecord(packetsRead: packetsRead)
            }
            guard var body = reader.take(Int(length &- 12)), reader.skip(4) else { return nil }
            let packet = try block(type, &body)
            buffer.drop(Int(length))
            if let packet {
                packetsRead &+= 1
                return packet
            }
        }
    }

    /// Handles the end of the file: unread bytes are an incomplete block.
    func finish(_ buffer: CaptureBuffer) throws(CaptureError) {
        if buffer.count > 0 || !sawSection { throw .truncated(packetsRead: packetsRead) }
    }

    /// Reads the byte order of a section from its header. Returns `false` if the header is not complete yet.
    private mutating func setByteOrder(_ buffer: CaptureBuffer) throws(CaptureError) -> Bool {
        var reader = buffer.reader
        guard let type = reader.u32() else { return false }
        guard type == Self.magic else { return true }
        guard reader.skip(4), let order = reader.u32() else { return false }
        switch order {
        case 0x1A2B_3C4D: isBigEndian = false
        case 0x4D3C_2B1A: isBigEndian = true
        default: throw .corruptRecord(packetsRead: packetsRead)
        }
        return true
    }

    private mutating func block(_ type: UInt32, _ body: inout ByteReader) throws(CaptureError) -> CapturedPacket? {
        switch type {
        case Self.magic:
            interfaces = []
            sawSection = true
            return nil
        case 1:
            guard interfaces.count < Self.mostInterfaces, let interface = interface(&body) else {
                throw .corruptRecord(packetsRead: packetsRead)
            }
            interfaces.append(interface)
            return nil
        case 3:
            guard let original = body.u32(bigEndian: isBigEndian) else {
                throw .corruptRecord(packetsRead: packetsRead)
            }
            return try packet(interface: 0, ticks: 0, included: original, original: original, &body)
        case 6:
            guard let index = body.u32(bigEndian: isBigEndian), let high = body.u32(bigEndian: isBigEndian),
                let low = body.u32(bigEndian: isBigEndian), let included = body.u32(bigEndian: isBigEndian),
                let original = body.u32(bigEndian: isBigEndian)
            else { throw .corruptRecord(packetsRead: packetsRead) }
            let ticks = UInt64(high) << 32 | UInt64(low)
            return try packet(interface: index, ticks: ticks, included: included, original: original, &body)
        default:
            return nil
        }
    }

    private mutating func packet(
        interface index: UInt32, ticks: UInt64, included: UInt32, original: UInt32, _ body: inout ByteReader
    ) throws(CaptureError) -> CapturedPacket? {
        guard let interface = interfaces.dropFirst(Int(index)).first, let bytes = body.array(Int(included)) else {
            throw .corruptRecord(packetsRead: packetsRead)
        }
        guard let content = interface.content else {
            if interfaces.contains(where: { $0.content != nil }) { return nil }
            throw .unsupportedDatalink(interface.number)
        }
        let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: interface.ticks)
        let part = Double(rest) / Double(interface.ticks) * 1e9
        let timestamp = Duration.seconds(Int64(bitPattern: seconds)) + .nanoseconds(Int64(part.rounded()))
        let missing = original > included ? Int(original &- included) : 0
        return content.packet(bytes, missing: missing, timestamp: timestamp, &traffic)
    }

    /// Reads an interface description: link type 2, reserved 2, maximum length 4, options (code 2, length 2, value,
    /// padding to 4).
    private func interface(_ body: inout ByteReader) -> Interface? {
        guard let number = body.u16(bigEndian: isBigEndian), body.skip(6) else { return nil }
        var interface = Interface(number: UInt32(number), content: PcapContent(linkType: UInt32(number)))
        while let code = body.u16(bigEndian: isBigEndian), let length = body.u16(bigEndian: isBigEndian),
            code != 0, let value = body.array(Int(length))
        {
            _ = body.skip(3 &- (Int(length) &+ 3) % 4)
            // The timestamp resolution: a power of ten, or of two if the top bit is set.
            guard code == 9, let exponent = value.first else { continue }
            if exponent & 0x80 != 0 {
                interface.ticks = 1 << UInt64(min(exponent & 0x7F, 62))
            } else {
                interface.ticks = (0..<min(exponent, 18)).reduce(1) { ticks, _ in ticks &* 10 }
            }
        }
        return interface
    }
}
