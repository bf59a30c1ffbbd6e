internal import BLECore

extension Dialogue {
    /// Parses the text of a `.dialogue` file.
    ///
    /// - Throws: `ParsingError` with the number of the first invalid line.
    public init(_ text: String) throws(ParsingError) {
        headers = []
        steps = []
        var number = 0
        for line in text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false) {
            number &+= 1
            try read(Self.trimmed(line), line: number)
        }
    }

    /// The dialogue as the text of a `.dialogue` file.
    public var text: String {
        var text = ""
        for header in headers { text += "\(header.name): \(Self.inOneLine(header.value))\n" }
        if !headers.isEmpty { text += "\n" }
        for step in steps {
            let line =
                switch step.event {
                case .sent(let pdu): "< \(Self.spaced(pdu))"
                case .received(let pdu): "> \(Self.spaced(pdu))"
                case .wait(let duration): "! wait \(duration.wholeMicroseconds / 1000) ms"
                case .linkLost: "! link lost"
                }
            text += step.comment.isEmpty ? "\(line)\n" : "\(line)    # \(Self.inOneLine(step.comment))\n"
        }
        return text
    }

    /// A header and a comment end with their line, and the name of a peer or a file in it may have several.
    private static func inOneLine(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }

    private mutating func read(_ line: Substring.UTF8View, line number: Int) throws(ParsingError) {
        guard let first = line.first else { return }
        let hash = line.firstIndex(of: 0x23) ?? line.endIndex
        let comment = Self.string(line[hash...].dropFirst())
        let body = Self.trimmed(line[..<hash].dropFirst())
        switch first {
        case 0x23:
            return
        case 0x3C:
            steps.append(Step(.sent(try Self.bytes(body, line: number)), comment: comment, line: number))
        case 0x3E:
            steps.append(Step(.received(try Self.bytes(body, line: number)), comment: comment, line: number))
        case 0x21:
            guard let event = Self.directive(body) else { throw ParsingError(line: number, reason: .unknownDirective) }
            steps.append(Step(event, comment: comment, line: number))
        default:
            guard let colon = line.firstIndex(of: 0x3A) else { throw ParsingError(line: number, reason: .unknownLine) }
            guard steps.isEmpty else { throw ParsingError(line: number, reason: .headerBelowSteps) }
            let header = Header(Self.string(line[..<colon]), Self.string(line[colon...].dropFirst()))
            if header.name.utf8.elementsEqual("mtu".utf8), !(Int(header.value).map { (23...65535) ~= $0 } ?? false) {
                throw ParsingError(line: number, reason: .invalidMTU)
            }
            headers.append(header)
        }
    }

    private static func bytes(_ text: Substring.UTF8View, line: Int) throws(ParsingError) -> [UInt8] {
        guard let bytes = try? Hex.decode(Substring(text)) else {
            throw ParsingError(line: line, reason: .notHexadecimal)
        }
        guard !bytes.isEmpty else { throw ParsingError(line: line, reason: .emptyPDU) }
        return bytes
    }

    private static func directive(_ text: Substring.UTF8View) -> Event? {
        let words = text.split(separator: 0x20).map { string($0) }
        if words == ["link", "lost"] { return .linkLost }
        guard words.count == 3, words.first == "wait", words.last == "ms",
            let count = words.dropFirst().first.flatMap({ Int64($0) }), (0...86_400_000) ~= count
        else { return nil }
        return .wait(.milliseconds(count))
    }

    /// Separates the opcode, so that a following handle is easier to see.
    private static func spaced(_ pdu: [UInt8]) -> String {
        let rest = pdu.dropFirst()
        return rest.isEmpty ? Hex.encode(pdu) : Hex.encode(pdu.prefix(1)) + " " + Hex.encode(rest)
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        var text = text
        while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
        while let last = text.last, last == 0x20 || last == 0x09 || last == 0x0D { text = text.dropLast() }
        return text
    }

    private static func string(_ text: Substring.UTF8View) -> String {
        String(Substring(trimmed(text)))
    }
}
