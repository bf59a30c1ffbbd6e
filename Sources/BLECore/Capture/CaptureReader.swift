/// Reads the packets of a capture file in btsnoop, pcap, pcapng or Apple's PacketLogger format, fed piece by piece.
///
/// What a sniffer heard in the air is told as hosts would have had it from their controllers: advertisements as reports to
/// one that scans, links with their data, as long as that is in clear, as to the host of the link's central.
///
/// The caller appends chunks of any size as it reads the file and takes packets until there is none; memory stays at
/// the size of a chunk and one record. At the end of the file `finish()` tells whether it ended between two records.
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

    /// A reader at the beginning of a file.
    public init() {}

    /// Takes the next bytes of the file.
    public mutating func append(_ chunk: [UInt8]) {
        buffer.append(chunk)
    }

    /// The next packet; `nil` when more of the file is needed for it.
    ///
    /// - Throws: `CaptureError` when the file is no capture of this kind or is damaged; the next call throws again.
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

    /// Says that the file has ended.
    ///
    /// - Throws: `.truncated` when it ended inside a record, `.notACapture` when it was too short to be a capture.
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
