// Turns captured packets, or the lines of a dialogue, into text.
//
// Duties: name every packet; say what a reader looks for first in its title and the rest in fields; tell how long each
// answer took. Bytes that are damaged, shortened or unknown are shown as bytes: printing never fails.
//
// What it remembers, and for how long
// - unfinished L2CAP frames: in the reassembler, bounded there;
// - per link and way, the request that is open, to measure its answer and to read lists whose layout the request decides;
// - per link, the types of the attributes that discovery has named, so that later packets show names for handles;
// - per controller, when each command was sent;
// - the lines of payloads that were advertised.
// All of a link goes when it ends; the tables are bounded by `mostLinks`, `mostAttributes` and `mostPayloads`.

/// Prints captured packets in the manner of `btmon`: `<` from the host to the controller, `>` the other way.
///
/// Packets are to be printed in the order of the capture, because names and times depend on what came before.
public struct PacketPrinter: Sendable {
    /// What was seen so far.
    public struct Summary: Hashable, Sendable, CustomStringConvertible {
        /// How many packets were printed.
        public var packetCount = 0
        /// How many ATT requests were among them.
        public var requestCount = 0
        /// How many ATT Error Responses were among them.
        public var errorCount = 0
        /// The longest time that an ATT request waited for its answer; `nil` when times are not known.
        public var slowestReply: Duration?

        /// A line such as "62 packets, 11 requests, 1 error, slowest reply 118 ms".
        public var description: String {
            var text = counted(packetCount, "packet")
            if requestCount > 0 { text += ", " + counted(requestCount, "request") }
            if errorCount > 0 { text += ", " + counted(errorCount, "error") }
            if let slowestReply { text += ", slowest reply \(slowestReply.wholeMilliseconds) ms" }
            return text
        }

        /// The same where some packets were left out, such as "41 of 178 packets".
        ///
        /// - Parameter hasAttributes: Whether those of ATT were shown.
        package func description(ofShown count: Int, hasAttributes: Bool) -> String {
            let all = counted(packetCount, "packet")
            let packets = count == packetCount ? all : "\(count) of \(all)"
            return hasAttributes ? packets + description.dropFirst(all.count) : packets
        }

        private func counted(_ count: Int, _ noun: String) -> String {
            count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
        }
    }

    /// A link without regard to the way of its packets.
    struct Link: Hashable, Sendable {
        var controller: UInt16
        var connection: UInt16
    }

    struct OpenRequest: Sendable {
        var opcode: ATTOpcode
        /// The type that was asked for, where the answer's layout depends on it.
        var type: BluetoothUUID?
        var timestamp: Duration?
    }

    static let mostLinks = 64
    static let mostAttributes = 4096
    static let mostPayloads = 1024

    /// What was seen so far.
    public internal(set) var summary = Summary()
    /// Whether advertisements get neither text nor reports, for who shows other packets: nothing later depends on them.
    package var leavesOutAdvertisements = false
    var reassembler = L2CAPReassembler()
    var openRequests: [L2CAPDirection: OpenRequest] = [:]
    var attributeTypes: [Link: [AttributeHandle: BluetoothUUID]] = [:]
    var sentCommands: [UInt32: Duration] = [:]
    var payloadLines: [[UInt8]: [String]] = [:]

    /// A printer that has seen nothing.
    public init() {}

    /// Prints the next packet of a capture.
    public mutating func print(_ packet: CapturedPacket) -> PrintedPacket {
        summary.packetCount &+= 1
        var printed = PrintedPacket(
            number: summary.packetCount, direction: packet.direction, layer: .hci, title: "",
            timestamp: packet.timestamp, bytes: packet.bytes)
        switch packet.kind {
        case .command: describeCommand(packet, &printed)
        case .event: describeEvent(packet, &printed)
        case .asynchronousData: describeData(packet, &printed)
        case .synchronousData:
            printed.title = "Synchronous data, \(PacketNames.bytes(packet.bytes.count))"
        case .isochronousData:
            printed.title = "Isochronous data, \(PacketNames.bytes(packet.bytes.count))"
        case .note(let opcode):
            printed.direction = nil
            printed.layer = .note
            describeNote(opcode, packet, &printed)
        }
        if packet.missingByteCount > 0 {
            printed.details.append("the recorder cut off \(PacketNames.bytes(packet.missingByteCount))")
        }
        return printed
    }

    /// Prints the next line of a dialogue, in which `<` is the client.
    public mutating func print(_ step: Dialogue.Step) -> PrintedPacket {
        summary.packetCount &+= 1
        var printed = PrintedPacket(
            number: summary.packetCount, direction: nil, layer: .note, title: "", bytes: [])
        switch step.event {
        case .sent(let pdu): describe(pdu, .sent, &printed)
        case .received(let pdu): describe(pdu, .received, &printed)
        case .wait(let duration): printed.title = "\(duration.wholeMilliseconds) ms pass"
        case .linkLost: printed.title = "The link is lost"
        }
        // Comments often repeat the packet's name for those who read the file.
        if !step.comment.isEmpty, !printed.title.utf8.starts(with: step.comment.utf8) {
            printed.details.append("# " + step.comment)
        }
        return printed
    }

    /// The link has ended: nothing of it means anything any more.
    mutating func forget(_ link: Link) {
        reassembler.linkEnded(controller: link.controller, connection: link.connection)
        attributeTypes[link] = nil
        for direction in [CapturedPacket.Direction.sent, .received] {
            openRequests[
                L2CAPDirection(controller: link.controller, connection: link.connection, direction: direction)] = nil
        }
    }

    private mutating func describe(
        _ pdu: [UInt8], _ direction: CapturedPacket.Direction, _ printed: inout PrintedPacket
    ) {
        printed.direction = direction
        describeAttribute(pdu, L2CAPDirection(controller: 0, connection: 0, direction: direction), &printed)
    }
}
