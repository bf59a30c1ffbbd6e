import BLECore

/// A device on the command line by what it advertises: `name:Thermo*` or `service:heart-rate`.
enum AdvertisedPeer: Hashable, Sendable, CustomStringConvertible {
    case name(NamePattern)
    case service(BluetoothUUID)

    /// Whether a word is meant to be one.
    static func isMeant(by word: String) -> Bool { word.hasPrefix("name:") || word.hasPrefix("service:") }

    /// Parses an argument; `nil` for a peer that is named otherwise.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init?(argument: String) throws(BadValue) {
        if let pattern = argument.dropped(prefix: "name:") {
            self = .name(try NamePattern(pattern))
        } else if let service = argument.dropped(prefix: "service:") {
            do throws(NotAService) {
                self = .service(try ServiceArgument(argument: service).uuid)
            } catch {
                throw BadValue(description: error.description)
            }
        } else {
            return nil
        }
    }

    var description: String {
        switch self {
        case .name(let pattern): "name:\(pattern.text)"
        case .service(let uuid): "service:\(uuid)"
        }
    }

    /// The options of `blescan scan` that show such devices.
    var scanOptions: String {
        switch self {
        // A word that begins with a dash is an option unless an equals sign is before it.
        case .name(let pattern):
            "--name\(pattern.longestPart.hasPrefix("-") ? "=" : " ")\(pattern.longestPart.shellQuoted)"
        case .service(let uuid): "--service \(uuid)"
        }
    }

    /// The conditions of the scan: only devices that accept connections.
    var filter: ScanFilter {
        var filter = ScanFilter()
        filter.connectableOnly = true
        if case .service(let uuid) = self {
            filter.services = [uuid]
            filter.solicitedServices = [uuid]
        }
        return filter
    }

    /// Returns whether a device that passes `filter` is one of these.
    func matches(_ scanResult: ScanResult) -> Bool {
        switch self {
        case .name(let pattern): scanResult.unpaddedName.map { pattern.matches($0) } ?? false
        case .service: true
        }
    }
}

/// A device's whole name, in any case; `*` stands for any text.
struct NamePattern: Hashable, Sendable {
    let text: String
    /// What is between the asterisks, in lower case.
    private let parts: [String]

    /// Parses a pattern.
    ///
    /// - Throws: `BadValue` for one that every name matches.
    init(_ text: String) throws(BadValue) {
        self.text = text
        parts = text.lowercased().split(separator: "*", omittingEmptySubsequences: false).map(String.init)
        guard parts.contains(where: { !$0.isEmpty }) else {
            throw BadValue(description: "name: takes a device's name, or a part of it and an asterisk: 'name:Thermo*'.")
        }
    }

    /// The longest text that every such name contains.
    var longestPart: String {
        let parts: [Substring] = text.split(separator: "*")
        return parts.max { $0.count < $1.count }.map(String.init) ?? text
    }

    /// Returns whether a name is one of these.
    func matches(_ name: String) -> Bool {
        let name = name.lowercased()
        guard parts.count > 1, let first = parts.first, let last = parts.last else { return name == parts.first }
        guard name.utf8.count >= first.utf8.count + last.utf8.count, name.hasPrefix(first), name.hasSuffix(last) else {
            return false
        }
        var rest = name.dropFirst(first.count).dropLast(last.count)
        // The first place of each part leaves the most for the others.
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let place = rest.firstRange(of: part) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }
}

/// The peer of a command: known, or to be searched for.
enum PeerDesignation: Hashable, Sendable {
    case known(PeerArgument)
    case advertised(AdvertisedPeer)

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if let advertised = try AdvertisedPeer(argument: argument) {
            self = .advertised(advertised)
        } else {
            let peer: PeerArgument
            do throws(BadValue) {
                peer = try PeerArgument(argument: argument)
            } catch {
                throw argument.hasPrefix("unix:") ? error : Self.badValue(argument)
            }
            self = .known(peer)
        }
    }

    private static func badValue(_ text: String) -> BadValue {
        if let word = respelled(text) { return BadValue(meant: word.shellQuoted) }
        var near: [String] = []
        if VirtualPeer(named: text) != nil { near.append("demo:" + text) }
        let uuid = BluetoothUUID(written: text)
        if AssignedNumbers.service(named: text) != nil || uuid.flatMap({ AssignedNumbers.serviceName($0) }) != nil {
            near.append("service:" + text)
        }
        guard near.isEmpty else {
            return BadValue(meant: NearNames.list((near + ["name:" + text]).map(\.shellQuoted)))
        }
        if let address = address(meantBy: text) { return BadValue(meant: address.description) }
        if Blescan.isCapture(text) { return BadValue(description: "that is a recording; `blescan replay` reads it.") }
        if text.hasPrefix("/") || text.hasPrefix("./") {
            return BadValue(meant: ("unix:" + text).shellQuoted)
        }
        if AssignedNumbers.characteristic(named: text) != nil
            || uuid.flatMap({ AssignedNumbers.characteristicName($0) }) != nil
        {
            return BadValue(description: "that is an attribute; name the peer that has it before it.")
        }
        if uuid != nil {
            return BadValue(meant: "service:\(text) or name:\(text)", "An attribute comes after its peer.")
        }
        if text.contains(" "), !text.contains(":") {
            return BadValue(meant: ("name:" + text).shellQuoted)
        }
        return BadValue(
            description: "write AA:BB:CC:DD:EE:FF, with /random or /public where the type is known, name:NAME or "
                + "service:UUID, unix:PATH or demo:NAME.")
    }

    /// Returns the peer that a word is but for the case of its letters; `nil` for another word.
    static func respelled(_ text: String) -> String? {
        let lower = text.lowercased()
        for scheme in ["demo:", "unix:", "name:", "service:"] where lower.hasPrefix(scheme) {
            let rest = String(text.dropFirst(scheme.count))
            let word = scheme + (scheme == "demo:" ? rest.lowercased() : rest)
            guard word != text, (try? PeerDesignation(argument: word)) != nil else { return nil }
            return word
        }
        guard let slash = text.lastIndex(of: "/") else { return nil }
        let word = String(text[..<slash]) + text[slash...].lowercased()
        return word != text && PeerID(word) != nil ? word : nil
    }

    /// Returns the address that is written with separators that are not taken.
    private static func address(meantBy text: String) -> BluetoothAddress? {
        let digits = text.filter { !"-_.: ".contains($0) }
        guard digits.utf8.count == 12, digits.allSatisfy(\.isHexDigit) else { return nil }
        return UInt64(digits, radix: 16).map { BluetoothAddress(rawValue: $0) }
    }

    /// Whether an adapter is needed to reach it.
    var isInTheAir: Bool {
        guard case .known(let peer) = self else { return true }
        return peer.isInTheAir
    }

    /// Whether it is a socket in the file system.
    var isSocket: Bool {
        guard case .known(let peer) = self else { return false }
        return peer.isSocket
    }
}
