internal import BLECore
package import BLEProfiles

// Prints captured packets, or the lines of a dialogue, as text.
//
// Every packet is named: the most important information is in its title, the rest in fields, with the response time.
// Damaged, truncated or unknown packets are shown as bytes: printing never fails.
//
// State and its lifetime:
// - incomplete L2CAP frames: in the reassembler, bounded there;
// - per link and direction, the outstanding request, to measure its response time and to decode lists whose layout
//   depends on the request;
// - per link, the attribute types found by discovery, to show names for handles;
// - per controller, the time at which each command was sent;
// - the lines of advertised payloads.
// The state of a link is removed when it ends. Each table belongs to a type of its own; `L2CAPReassembler`,
// `AttributeContext` and `PayloadLines` bound theirs.

/// Prints captured packets in the style of `btmon`: `<` from the host to the controller, `>` the other way.
///
/// Packets must be printed in capture order, because names and times depend on earlier ones.
public struct PacketPrinter: Sendable {
    /// The counts so far.
    public struct Summary: Hashable, Sendable, CustomStringConvertible {
        /// The number of packets printed.
        public var packetCount = 0
        /// The number of ATT requests printed.
        public var requestCount = 0
        /// The number of ATT Error Responses printed.
        public var errorCount = 0
        /// The longest response time of an ATT request, or `nil` if times are not known.
        public var slowestResponse: Duration?

        /// The former name of `slowestResponse`.
        @available(*, deprecated, renamed: "slowestResponse")
        public var slowestReply: Duration? {
            get { slowestResponse }
            set { slowestResponse = newValue }
        }

        /// A line such as "62 packets, 11 requests, 1 error, slowest response 118 ms".
        public var description: String {
            var text = counted(packetCount, "packet")
            if requestCount > 0 { text += ", " + counted(requestCount, "request") }
            if errorCount > 0 { text += ", " + counted(errorCount, "error") }
            if let slowestResponse { text += ", slowest response \(slowestResponse.wholeMilliseconds) ms" }
            return text
        }

        /// Returns the line for a filtered output, such as "41 of 178 packets".
        ///
        /// - Parameter hasAttributes: Pass true if ATT packets were shown.
        package func description(ofShown count: Int, hasAttributes: Bool) -> String {
            let all = counted(packetCount, "packet")
            let packets = count == packetCount ? all : "\(count) of \(all)"
            return hasAttributes ? packets + description.dropFirst(all.count) : packets
        }

        private func counted(_ count: Int, _ noun: String) -> String {
            count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
        }
    }

    /// A link, regardless of direction.
    struct Link: Hashable, Sendable {
        var controller: UInt16
        var connection: UInt16
    }

    /// The counts so far.
    public private(set) var summary = Summary()
    /// True to print neither text nor reports of advertisements; later packets do not depend on them.
    package var leavesOutAdvertisements = false
    var reassembler = L2CAPReassembler()
    var attributes = AttributeContext()
    var sentCommands = SentCommands()
    var payloadLines = PayloadLines()
    let keys: AdvertisementKeys?

    /// Creates a printer.
    public init() {
        keys = nil
    }

    /// Creates a printer that decrypts what sensors advertise, where there is a key.
    package init(keys: AdvertisementKeys?) {
        self.keys = keys
    }

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
        let comment = Self.comment(step.comment, beside: printed.title)
        if !comment.isEmpty {
            // Anybody may have written the file, and a line goes to terminals and logs as it is.
            printed.details.append("# " + AdvertisedName.escaped(comment.unicodeScalars))
        }
        return printed
    }

    /// Returns a comment without the packet's name, which comments often repeat; those of a trace after the time.
    private static func comment(_ comment: String, beside title: String) -> String {
        if title.utf8.starts(with: comment.utf8) { return "" }
        let rest = comment.utf8.dropLast(title.utf8.count)
        guard !title.isEmpty, comment.utf8.suffix(title.utf8.count).elementsEqual(title.utf8), rest.last == 0x20 else {
            return comment
        }
        var end = rest
        while end.last == 0x20 { end = end.dropLast() }
        return String(decoding: end, as: UTF8.self)
    }

    /// Removes the state of a link that has ended.
    mutating func forget(_ link: Link) {
        reassembler.linkEnded(controller: link.controller, connection: link.connection)
        attributes.forget(link)
    }

    // MARK: Counting

    mutating func countRequest() { summary.requestCount &+= 1 }

    mutating func countError() { summary.errorCount &+= 1 }

    mutating func countResponse(after time: Duration) {
        summary.slowestResponse = max(summary.slowestResponse ?? time, time)
    }

    private mutating func describe(
        _ pdu: [UInt8], _ direction: CapturedPacket.Direction, _ printed: inout PrintedPacket
    ) {
        printed.direction = direction
        describeAttribute(pdu, L2CAPDirection(controller: 0, connection: 0, direction: direction), &printed)
    }
}
