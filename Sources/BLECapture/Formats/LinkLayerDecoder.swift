internal import BLECore

// Converts packets captured on air into packets between a host and its controller, so that everything that reads
// captures can read them.
//
// Duties: advertisements become the reports of a scanning host, and a link and its data become what the host of the
// link's central would see.
//
// Invariants
// - Any bytes are tolerated: a packet that cannot be read becomes nothing.
// - A link is known by its access address, from its CONNECT_IND or its first data to its LL_TERMINATE_IND, and has one
//   handle. `mostLinks` bounds the table: one more link drops all others.
// - A data packet with the type, the sequence number and the payload of the last one in its direction is a
//   retransmission, and is omitted.
// - Once a link is encrypted, packets that the sniffer could not decrypt are meaningless, and are omitted.
//
// Omitted, because a host would not see it or the sniffer reports too little:
// - scan requests, empty packets, link layer control procedures, and isochronous data;
// - extended advertisements whose address or data are in another packet: chains, periodic trains, anonymous ones;
// - data of links without direction, as in files of link type 251.

/// Converts link layer packets into HCI packets.
struct LinkLayerDecoder: Sendable {
    private struct Link: Sendable {
        var handle: ConnectionHandle
        var isEncrypted = false
        var lastSent: [UInt8] = []
        var lastReceived: [UInt8] = []
    }

    private static let mostLinks = 64
    private static let lastHandle: ConnectionHandle = 0x0EFF
    /// The maximum data of one report, in bytes.
    private static let longestReport = 229

    private var links: [UInt32: Link] = [:]
    private var handle: ConnectionHandle = 0

    /// Returns what the host would have received for this packet, or `nil` if nothing.
    mutating func received(_ heard: AirPacket, at timestamp: Duration) -> CapturedPacket? {
        if heard.accessAddress == AirPacket.advertisingAccessAddress {
            return advertised(heard).map {
                CapturedPacket(direction: .received, kind: .event, bytes: $0, timestamp: timestamp)
            }
        }
        guard let direction = heard.direction else { return nil }
        switch heard.header & 0b11 {
        case 0b01, 0b10:
            guard let data = data(heard, direction) else { return nil }
            return CapturedPacket(direction: direction, kind: .asynchronousData, bytes: data, timestamp: timestamp)
        case 0b11:
            return controlled(heard).map {
                CapturedPacket(direction: .received, kind: .event, bytes: $0, timestamp: timestamp)
            }
        default:
            return nil
        }
    }

    // MARK: Advertising. Spec: Core Vol 6 Part B, 2.3; the reports: Vol 4 Part E, 7.7.65.2 and 7.7.65.13.

    private mutating func advertised(_ heard: AirPacket) -> [UInt8]? {
        switch heard.header & 0x0F {
        case 0x0: Self.report(0, heard)
        case 0x1: Self.report(1, heard)
        case 0x2: Self.report(3, heard)
        case 0x4: Self.report(4, heard)
        case 0x5: connected(heard)
        case 0x6: Self.report(2, heard)
        case 0x7: Self.extendedReport(heard)
        default: nil
        }
    }

    private static func report(_ kind: UInt8, _ heard: AirPacket) -> [UInt8]? {
        var reader = ByteReader(heard.payload.span)
        guard let address = reader.u48() else { return nil }
        // A directed advertisement contains the target address and no data.
        let data = kind == 1 ? [] : reader.rest()
        guard data.count <= 31 else { return nil }
        var event = ByteWriter()
        event.array([0x02, 1, kind, heard.header >> 6 & 1])
        event.u48(address)
        event.u8(UInt8(truncatingIfNeeded: data.count))
        event.array(data)
        event.i8(heard.rssi)
        return meta(event.bytes)
    }

    /// Common Extended Advertising Payload: length and mode 1, a header with the fields that its first octet flags,
    /// then data.
    private static func extendedReport(_ heard: AirPacket) -> [UInt8]? {
        var reader = ByteReader(heard.payload.span)
        guard let lengthAndMode = reader.u8(), var header = reader.take(Int(lengthAndMode & 0x3F)),
            let fields = header.u8(), fields & 1 != 0, let address = header.u48()
        else { return nil }
        var target: UInt64?
        if fields & 1 << 1 != 0 {
            guard let called = header.u48() else { return nil }
            target = called
        }
        if fields & 1 << 2 != 0, !header.skip(1) { return nil }
        var set: UInt8 = 0xFF
        if fields & 1 << 3 != 0 {
            guard let identity = header.u16() else { return nil }
            set = UInt8(truncatingIfNeeded: identity >> 12)
        }
        let data = reader.rest()
        let goesOn = fields & 1 << 4 != 0
        // It only points to an auxiliary packet.
        if goesOn, data.isEmpty { return nil }
        if goesOn, !header.skip(3) { return nil }
        if fields & 1 << 5 != 0, !header.skip(18) { return nil }
        var power: Int8 = 127
        if fields & 1 << 6 != 0 {
            guard let reported = header.i8() else { return nil }
            power = reported
        }
        let kept = Array(data.prefix(longestReport))
        var kind = UInt16(lengthAndMode >> 6)
        if target != nil { kind |= 1 << 2 }
        if goesOn || kept.count < data.count { kind |= 0b10 << 5 }
        var event = ByteWriter()
        event.array([0x0D, 1])
        event.u16(kind)
        event.u8(heard.header >> 6 & 1)
        event.u48(address)
        event.array([1, heard.phy, set])
        event.i8(power)
        event.i8(heard.rssi)
        event.u16(0)
        event.u8(target == nil ? 0 : heard.header >> 7)
        event.u48(target ?? 0)
        event.u8(UInt8(truncatingIfNeeded: kept.count))
        event.array(kept)
        return meta(event.bytes)
    }

    // MARK: Links. Spec: Core Vol 6 Part B, 2.3.3.1 and 2.4.

    /// CONNECT_IND: initiator 6, advertiser 6, access address 4, CRC 3, window 3, interval 2, latency 2, timeout 2 …
    private mutating func connected(_ heard: AirPacket) -> [UInt8]? {
        var reader = ByteReader(heard.payload.span)
        guard reader.skip(6), let peer = reader.u48(), let accessAddress = reader.u32(), reader.skip(6),
            let interval = reader.u16(), let latency = reader.u16(), let timeout = reader.u16(), reader.skip(5),
            let accuracy = reader.u8()
        else { return nil }
        let link = begin(accessAddress)
        var event = ByteWriter()
        event.array([0x01, 0])
        event.u16(link.handle)
        event.array([0, heard.header >> 7])
        event.u48(peer)
        event.u16(interval)
        event.u16(latency)
        event.u16(timeout)
        event.u8(accuracy >> 5)
        return Self.meta(event.bytes)
    }

    private mutating func begin(_ accessAddress: UInt32) -> Link {
        handle = handle < Self.lastHandle ? handle &+ 1 : 0
        if links.count >= Self.mostLinks { links.removeAll() }
        let link = Link(handle: handle)
        links[accessAddress] = link
        return link
    }

    private mutating func data(_ heard: AirPacket, _ direction: CapturedPacket.Direction) -> [UInt8]? {
        var link = links[heard.accessAddress] ?? begin(heard.accessAddress)
        // LLID and sequence number identify a packet; the other header bits may differ in a retransmission.
        let packet = [heard.header & 0b1011] + heard.payload
        let isRepeated: Bool
        switch direction {
        case .sent:
            isRepeated = link.lastSent == packet
            link.lastSent = packet
        case .received:
            isRepeated = link.lastReceived == packet
            link.lastReceived = packet
        }
        links[heard.accessAddress] = link
        guard !isRepeated, !heard.payload.isEmpty, !link.isEncrypted || heard.isDecrypted else { return nil }
        let boundary: UInt16 = heard.header & 0b11 == 0b01 ? 0b01 : direction == .sent ? 0b00 : 0b10
        var data = ByteWriter()
        data.u16(link.handle | boundary << 12)
        data.u16(UInt16(truncatingIfNeeded: heard.payload.count))
        data.array(heard.payload)
        return data.bytes
    }

    private mutating func controlled(_ heard: AirPacket) -> [UInt8]? {
        guard var link = links[heard.accessAddress], !link.isEncrypted || heard.isDecrypted else { return nil }
        var reader = ByteReader(heard.payload.span)
        guard let opcode = reader.u8() else { return nil }
        switch opcode {
        case 0x02:  // LL_TERMINATE_IND
            guard let reason = reader.u8() else { return nil }
            links[heard.accessAddress] = nil
            // The host that disconnects receives another reason than the one that is disconnected.
            let cause = heard.direction == .sent ? HCIStatus.localHostTerminated.rawValue : reason
            return [
                0x05, 4, 0, UInt8(truncatingIfNeeded: link.handle), UInt8(truncatingIfNeeded: link.handle >> 8), cause,
            ]
        case 0x05:  // LL_START_ENC_REQ, the last one without encryption
            link.isEncrypted = true
            links[heard.accessAddress] = link
            return [
                0x08, 4, 0, UInt8(truncatingIfNeeded: link.handle), UInt8(truncatingIfNeeded: link.handle >> 8), 1,
            ]
        default:
            return nil
        }
    }

    private static func meta(_ parameters: [UInt8]) -> [UInt8] {
        [0x3E, UInt8(truncatingIfNeeded: parameters.count)] + parameters
    }
}
