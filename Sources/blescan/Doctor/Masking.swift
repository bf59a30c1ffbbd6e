import BLECore

/// Removes everything from a text that identifies the machine: addresses, names, the host.
///
/// The same address gets the same number everywhere, so that a reader can still distinguish devices.
struct Masking {
    private var addresses = Aliases<String>()
    private var programs = Aliases<String>()
    private let hostName: String

    /// Programs that every machine has, and that matter to the reader of the report.
    private static let wellKnown: Set<String> = [
        "bluetoothd", "bluetoothctl", "btmgmt", "btmon", "hcitool", "hciconfig", "hcidump", "gatttool", "blescan",
        "python3", "node", "systemd", "dbus-daemon",
    ]

    init(hostName: String) {
        // Half of all machines have this one.
        self.hostName = hostName == "localhost" ? "" : hostName
    }

    /// Returns the facts without the names of other programs.
    mutating func mask(_ facts: SystemFacts) -> SystemFacts {
        var masked = facts
        masked.radio.openers = facts.radio.openers?.map { opener in
            var opener = opener
            opener.program = mask(program: opener.program)
            return opener
        }
        masked.kernelRelease = mask(facts.kernelRelease)
        masked.kernelMessages = facts.kernelMessages?.map { mask(quoted: mask($0)) }
        return masked
    }

    /// Returns a finding without addresses and names.
    mutating func mask(_ finding: Finding) -> Finding {
        Finding(
            level: finding.level, id: finding.id, adapter: finding.adapter, text: mask(finding.text),
            remedy: finding.remedy.map { mask($0) }, fix: finding.fix, status: finding.status)
    }

    /// Returns a text without addresses, home directories and the host's name.
    mutating func mask(_ text: String) -> String {
        var masked = text.replacing(/[0-9A-Fa-f]{2}(?:[:_\-][0-9A-Fa-f]{2}){5}/) { mask(address: String($0.output)) }
        masked = masked.replacing(/\/home\/[^\/\s]+/, with: "/home/(user)")
        guard !hostName.isEmpty else { return masked }
        // A short name may be a part of many words.
        let (isShort, whole) = (hostName.count < 4, masked)
        return whole.replacing(Regex<Substring>(verbatim: hostName).ignoresCase()) { found in
            isShort && Self.isPartOfWord(found.range, of: whole) ? String(found.output) : "(host)"
        }
    }

    /// Returns whether a range is a part of a longer word in ASCII. Letters of other scripts do not count: some have no
    /// blanks between words.
    private static func isPartOfWord(_ range: Range<String.Index>, of text: String) -> Bool {
        func isOfWord(_ character: Character?) -> Bool {
            guard let character else { return false }
            return character.isASCII && (character.isLetter || character.isNumber)
        }
        let part = text[range]
        return isOfWord(part.first) && isOfWord(text[..<range.lowerBound].last)
            || isOfWord(part.last) && isOfWord(text[range.upperBound...].first)
    }

    private mutating func mask(address: String) -> String {
        let address = String(address.uppercased().map { $0 == "_" || $0 == "-" ? ":" : $0 })
        if address == "00:00:00:00:00:00" { return address }
        return "(address \(addresses.number(of: address)))"
    }

    mutating func mask(program: String) -> String {
        if Self.wellKnown.contains(program) { return program }
        return "(program \(programs.number(of: program)))"
    }

    func mask(quoted text: String) -> String {
        text.replacing(/"[^"]*"/, with: "\"(name)\"")
    }
}
