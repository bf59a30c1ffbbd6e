import BLECore

/// The interpretation of one line of hexadecimal text. Nothing is rejected: the valid part is kept, with a sentence
/// about the rest.
enum DecodedInput: Equatable {
    /// Bare advertising data.
    case payload(AdvertisingData)
    /// An HCI event with its reports, and its defect.
    case event([AdvertisingReport], problem: String?)
    /// Not hexadecimal text; the reason.
    case unreadable(String)
    /// A line that is longer than it may be; how long.
    case tooLong(String)

    /// Whether anything was decoded; a payload is always explained.
    var isDecoded: Bool {
        switch self {
        case .payload: true
        case .event(let reports, _): !reports.isEmpty
        case .unreadable, .tooLong: false
        }
    }

    init(_ line: InputLine) {
        switch line {
        case .whole(let text): self.init(line: text)
        case .tooLong(let length): self = .tooLong(length)
        }
    }

    init(line: String) {
        do throws(Hex.ParsingError) {
            self.init(bytes: try Hex.decode(line))
        } catch {
            switch error {
            case .invalidCharacter(let offset): self = .unreadable("\(line.sign(atByte: offset)) is not a hex digit")
            case .oddNumberOfDigits: self = .unreadable("the last byte has one digit only")
            }
        }
    }

    init(bytes: [UInt8]) {
        if bytes.starts(with: [0x04, 0x3E]) {
            self = Self.event(bytes)
        } else {
            self = .payload(AdvertisingData(bytes))
        }
    }

    private static func event(_ bytes: [UInt8]) -> DecodedInput {
        guard bytes.count >= 4, let length = bytes.dropFirst(2).first, let subevent = bytes.dropFirst(3).first else {
            return .event([], problem: "the event ends before its subevent code")
        }
        let there = bytes.count - 3
        var problems: [String] = []
        if Int(length) != there {
            problems.append("the event states \(Int(length).counted("byte")) of parameters and has \(there)")
        }
        let parameters = Array(bytes.dropFirst(4).prefix(max(0, Int(length) - 1)))
        var reports: [AdvertisingReport] = []
        let losses = AdvertisingReport.parse(
            subevent: subevent, parameters: parameters.span, keepingOversized: true
        ) { reports.append($0) }
        if let losses {
            problems += losses.sentences
        } else {
            problems.append("LE subevent 0x\(Hex.encode([subevent])) carries no advertising reports")
        }
        return .event(reports, problem: problems.isEmpty ? nil : problems.joined(separator: "; "))
    }
}

extension AdvertisingReport.Losses {
    /// The losses, in words.
    var sentences: [String] {
        var result: [String] = []
        if missing > 0 { result.append("\(missing) announced report\(missing == 1 ? " is" : "s are") cut off") }
        if reserved > 0 { result.append("\(reserved) report\(reserved == 1 ? " has" : "s have") a reserved value") }
        if oversized > 0 {
            result.append(
                "\(oversized) legacy report\(oversized == 1 ? " has" : "s have") more than the 31 bytes that fit such a packet"
            )
        }
        if trailingBytes > 0 {
            result.append("\(trailingBytes.counted("byte")) follow\(trailingBytes == 1 ? "s" : "") the last report")
        }
        return result
    }
}

extension String {
    /// Returns the character at this offset of the UTF-8 in quotes, without anything that could control a terminal.
    func sign(atByte offset: Int) -> String {
        let index = utf8.index(startIndex, offsetBy: offset, limitedBy: utf8.endIndex) ?? utf8.endIndex
        return "'\(unicodeScalars[index...].prefix(1).map { String($0).printable }.joined())'"
    }
}
