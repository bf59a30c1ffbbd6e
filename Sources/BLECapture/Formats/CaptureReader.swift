internal import BLECore

/// An incremental reader of capture files in btsnoop, pcap, pcapng or Apple's PacketLogger format.
///
/// Packets captured on air are presented as hosts would see them: advertisements as reports to a scanning host, links
/// with their unencrypted data as seen by the host of the link's central.
///
/// The caller appends chunks of any size and reads packets until there are none. Memory is bounded by one chunk and one
/// record. At the end of the file, `finish()` checks that it does not end within a record.
///
///     var reader = CaptureReader()
///     while let chunk = readMore() {
///         reader.append(chunk)
///         while let packet = try reader.next() { … }
///     }
///     try reader.finish()
public struct CaptureReader: Sendable {
    private enum Format {
        case undecided
        case btsnoop(BTSnoopParser)
        case pcap(PcapParser)
        case pcapng(PcapNGParser)
        case packetLogger(PacketLoggerParser)
    }

    private var buffer = CaptureBuffer()
    private var format = Format.undecided

    /// Creates a reader at the beginning of a file.
    public init() {}

    /// Appends the next bytes of the file.
    public mutating func append(_ chunk: [UInt8]) {
        buffer.append(chunk)
    }

    /// Returns the next packet, or `nil` if more of the file is needed.
    ///
    /// - Throws: `CaptureError` if the file is not a supported capture or is damaged; further calls throw again.
    public mutating func next() throws(CaptureError) -> CapturedPacket? {
        if case .undecided = format { format = try decide() }
        switch format {
        case .undecided:
            return nil
        case .btsnoop(var parser):
            defer { format = .btsnoop(parser) }
            return try parser.next(&buffer)
        case .pcap(var parser):
            defer { format = .pcap(parser) }
            return try parser.next(&buffer)
        case .pcapng(var parser):
            defer { format = .pcapng(parser) }
            return try parser.next(&buffer)
        case .packetLogger(var parser):
            defer { format = .packetLogger(parser) }
            return try parser.next(&buffer)
        }
    }

    /// Ends the file.
    ///
    /// - Throws: `.truncated` if the file ends within a record, `.notACapture` if it is too short for a capture.
    public func finish() throws(CaptureError) {
        switch format {
        case .undecided: throw .notACapture
        case .btsnoop(let parser): try parser.finish(buffer)
        case .pcap(let parser): try parser.finish(buffer)
        case .pcapng(let parser): try parser.finish(buffer)
        case .packetLogger(let parser): try parser.finish(buffer)
        }
    }

    private func decide() throws(CaptureError) -> Format {
        var reader = buffer.reader
        guard let magic = reader.array(8) else { return .undecided }
        if magic == BTSnoop.magic { return .btsnoop(BTSnoopParser()) }
        var prefix = ByteReader(magic.span)
        guard let number = prefix.u32() else { return .undecided }
        if let parser = PcapParser(magic: number) { return .pcap(parser) }
        if number == PcapNGParser.magic { return .pcapng(PcapNGParser()) }
        guard PacketLoggerParser.isPossible(length: number) else { throw .notACapture }
        var longer = buffer.reader
        guard let beginning = longer.array(PacketLoggerParser.longestMagic) else { return .undecided }
        guard let parser = PacketLoggerParser(beginning) else { throw .notACapture }
        return .packetLogger(parser)
    }
}
