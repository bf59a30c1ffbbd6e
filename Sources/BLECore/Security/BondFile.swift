// The bonds of one adapter as text, one a line, so that two versions can be compared and a person can read them:
//
//     BareBLE bonds 1 generation 12
//     C6:55:44:33:22:11/random name=Front%20door level=4 method=passkey-typed io=0 bonded=1790000000 …
//     checksum 0123abcd
//
// A line has these fields in this order, with one space before each:
//
//     IDENTITY [name=TEXT] level=2|3|4 method=METHOD [io=0…4] bonded=SECONDS [encrypted=SECONDS]
//     state=good|rejected:SECONDS generation=N ltk=KEY [ltk=KEY] [irk=KEY | irk=zero|shared|published]
//     [csrk=KEY:COUNTER|-] [peer-csrk=KEY:COUNTER|-] [adapter=TEXT]
//
// An `ltk` is the kernel's entry of 36 bytes, the other keys have 16 bytes, all in the order of the kernel's
// structures. In TEXT, spaces, control characters and `%` are written as `%` and two digits. The checksum is the CRC-32
// of everything before its line.
//
// A wrong checksum means a damaged file: nothing of it is used. In an intact file, a line that is not a bond, or
// repeats one, is set aside alone.

/// The bonds of one adapter, as they are stored.
package struct BondFile: Hashable, Sendable {
    /// The maximum length of a file, in bytes.
    package static let byteLimit = 5 << 18
    /// The maximum number of bonds.
    package static let recordLimit = 1_024

    /// A line that is not a bond. Its text may contain a key.
    package struct DamagedLine: Hashable, Sendable, CustomStringConvertible {
        /// Its number in the file; the first one is 1.
        package let number: Int
        /// The field that has no valid value.
        package let field: String
        fileprivate let bytes: [UInt8]

        package var description: String { "line \(number) (\(field))" }
    }

    /// The version of the list. It grows with each change of a key.
    package var generation: UInt64
    /// The bonds, in the order in which they were stored.
    package var records: [BondRecord]
    /// The lines that were not understood. They are not written again.
    package private(set) var damagedLines: [DamagedLine] = []

    package init(generation: UInt64 = 0, records: [BondRecord] = []) {
        self.generation = generation
        self.records = records
    }

    /// Decodes a file.
    ///
    /// - Throws: `MalformedPacket` for a file that is damaged as a whole, or of another version.
    package init(bytes: [UInt8]) throws(MalformedPacket) {
        guard bytes.count <= Self.byteLimit else { throw Self.malformed(bytes.count, .invalidField("length")) }
        let end = bytes.count - Layout.checksumLength
        guard end > 0 else { throw Self.malformed(bytes.count, .tooShort) }
        let body = bytes.prefix(end)
        guard bytes.suffix(Layout.checksumLength).elementsEqual(Layout.checksum(of: body)), body.last == Layout.newline
        else { throw Self.malformed(end, .invalidField("checksum")) }
        var lines = body.dropLast().split(separator: Layout.newline, omittingEmptySubsequences: false)
        generation = try Self.generation(inHeader: lines.removeFirst())
        guard lines.count <= Self.recordLimit else {
            throw Self.malformed(0, .invalidField("number of bonds"))
        }
        records = []
        var known: Set<PeerID> = []
        for (index, line) in lines.enumerated() {
            do throws(LineReader.Failure) {
                let record = try BondRecord(line: line)
                guard known.insert(record.identity).inserted else { throw LineReader.Failure(field: "identity") }
                records.append(record)
            } catch {
                damagedLines.append(DamagedLine(number: index + 2, field: error.field, bytes: Array(line)))
            }
        }
    }

    private static func generation(inHeader line: ArraySlice<UInt8>) throws(MalformedPacket) -> UInt64 {
        guard line.starts(with: Layout.signature) else { throw malformed(0, .invalidField("signature")) }
        let words = line.dropFirst(Layout.signature.count).split(
            separator: Layout.space, omittingEmptySubsequences: false)
        guard let version = words.first.flatMap(Layout.number) else {
            throw malformed(Layout.signature.count, .invalidField("signature"))
        }
        guard version == Layout.version else {
            throw malformed(Layout.signature.count, .invalidField(Layout.versionField))
        }
        guard words.count == 3, let name = words.dropFirst().first, name.elementsEqual(Layout.generation),
            let generation = words.last.flatMap(Layout.number)
        else { throw malformed(Layout.signature.count, .invalidField("generation")) }
        return generation
    }

    /// Returns true if `error` means that the file is intact but of another version.
    package static func isOtherVersion(_ error: MalformedPacket) -> Bool {
        error.reason == .invalidField(Layout.versionField)
    }

    private static func malformed(_ offset: Int, _ reason: MalformedPacket.Reason) -> MalformedPacket {
        MalformedPacket("bond file", at: offset, reason)
    }

    /// The encoded form. Equal lists of bonds have equal bytes.
    package var bytes: [UInt8] { Self.bytes(generation, records.map { $0.line }) }

    /// A file with the damaged lines alone, as they were.
    package var bytesOfDamaged: [UInt8] { Self.bytes(generation, damagedLines.map { $0.bytes }) }

    /// The peers that the damaged lines begin with.
    package var peersOfDamagedLines: Set<PeerID> { Set(damagedLines.compactMap { Self.peer(of: $0.bytes[...]) }) }

    private static func bytes(_ generation: UInt64, _ lines: consuming [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        // So that growing it leaves no copies of keys.
        bytes.reserveCapacity(lines.reduce(128) { $0 + $1.count + 1 })
        bytes += Layout.signature
        bytes += "\(Layout.version) generation \(generation)\n".utf8
        for index in lines.indices {
            bytes += lines[index]
            bytes.append(Layout.newline)
            lines[index].wipe()
        }
        bytes += Layout.checksum(of: bytes[...])
        return bytes
    }
}

private enum Layout {
    static let signature = Array("BareBLE bonds ".utf8)
    static let version: UInt64 = 1
    static let versionField = "version"
    static let generation = Array("generation".utf8)
    static let newline: UInt8 = 0x0A
    static let space: UInt8 = 0x20
    static let escape: UInt8 = 0x25
    static let checksumName = Array("checksum ".utf8)
    /// Of the last line.
    static let checksumLength = 18

    /// Returns the last line for what is before it.
    static func checksum(of body: ArraySlice<UInt8>) -> [UInt8] {
        let value = CRC32.checksum(body)
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
        return Array("checksum \(Hex.encode(bytes))\n".utf8)
    }

    /// Returns the decimal number, which has no leading zeros; `nil` for anything else.
    static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard !digits.isEmpty, digits.first != 0x30 || digits.count == 1 else { return nil }
        var value: UInt64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            let (shifted, isBeyond) = value.multipliedReportingOverflow(by: 10)
            let (sum, isAlsoBeyond) = shifted.addingReportingOverflow(UInt64(digit &- 0x30))
            guard !isBeyond, !isAlsoBeyond else { return nil }
            value = sum
        }
        return value
    }

    static func isPlain(_ byte: UInt8) -> Bool { byte > space && byte != escape && byte != 0x7F }

    static func escaped(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isPlain(byte) {
                bytes.append(byte)
            } else {
                bytes += [escape, Hex.digit(byte >> 4), Hex.digit(byte & 0x0F)]
            }
        }
        return bytes
    }

    static func unescaped(_ text: ArraySlice<UInt8>, limit: Int) -> String? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == escape else {
                guard isPlain(byte) else { return nil }
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hex.value), let low = rest.popFirst().flatMap(Hex.value) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        guard bytes.count <= limit else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Returns the bytes of hexadecimal digits; `nil` unless there are `count`.
    static func bytes(_ digits: ArraySlice<UInt8>, count: Int) -> [UInt8]? {
        guard digits.count == 2 * count else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        var rest = digits
        while let high = rest.popFirst() {
            guard let high = Hex.value(high), let low = rest.popFirst().flatMap(Hex.value) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    static func secret(_ digits: ArraySlice<UInt8>) -> Secret128? {
        guard var bytes = bytes(digits, count: Secret128.length) else { return nil }
        defer { bytes.wipe() }
        return Secret128(bytes.span)
    }

    static func digits(_ bytes: Span<UInt8>) -> [UInt8] {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * bytes.count)
        for index in 0..<bytes.count {
            digits.append(Hex.digit(bytes[index] >> 4))
            digits.append(Hex.digit(bytes[index] & 0x0F))
        }
        return digits
    }
}

// MARK: - Files that are not used

extension BondFile {
    /// Returns the peers that the lines of a file begin with, also of one that is damaged or of another version: each
    /// of them may have had a bond.
    package static func peers(ofUnused bytes: [UInt8]) -> Set<PeerID> {
        var peers: Set<PeerID> = []
        for line in bytes.split(separator: Layout.newline) {
            if let peer = peer(of: line) { peers.insert(peer) }
        }
        return peers
    }

    /// Returns such a file without the lines of a peer; `nil` if there are none, and no bytes if no bond can be in what
    /// is left. A checksum that was right is right again.
    package static func bytes(ofUnused bytes: [UInt8], without peer: PeerID) -> [UInt8]? {
        let body = bytes.dropLast(Layout.checksumLength)
        let isIntact = bytes.suffix(Layout.checksumLength).elementsEqual(Layout.checksum(of: body))
        let lines = (isIntact ? body : bytes[...]).split(separator: Layout.newline, omittingEmptySubsequences: false)
        var rest: [UInt8] = []
        // So that growing it leaves no copies of keys.
        rest.reserveCapacity(bytes.count)
        var (isFound, hasOthers, isFirst) = (false, false, true)
        for line in lines {
            if self.peer(of: line) == peer {
                isFound = true
                continue
            }
            if !isFirst { rest.append(Layout.newline) }
            isFirst = false
            rest += line
            if !line.isEmpty, !line.starts(with: Layout.signature), !line.starts(with: Layout.checksumName) {
                hasOthers = true
            }
        }
        guard isFound else {
            rest.wipe()
            return nil
        }
        guard hasOthers else { return [] }
        if isIntact { rest += Layout.checksum(of: rest[...]) }
        return rest
    }

    private static func peer(of line: ArraySlice<UInt8>) -> PeerID? {
        var reader = LineReader(line)
        return try? reader.identity()
    }
}

/// Walks over the fields of a line.
private struct LineReader {
    /// The field that has no valid value. The value is not part of it: it may be a key.
    struct Failure: Error {
        let field: String
    }

    private var fields: ArraySlice<ArraySlice<UInt8>>

    init(_ line: ArraySlice<UInt8>) {
        fields = line.split(separator: Layout.space, omittingEmptySubsequences: false)[...]
    }

    mutating func identity() throws(Failure) -> PeerID {
        guard let text = fields.popFirst().flatMap({ String(validating: $0, as: UTF8.self) }),
            let peer = PeerID(text), peer.description == text
        else { throw Failure(field: "identity") }
        return peer
    }

    /// Returns the next field's value if it has that name.
    mutating func value(_ name: String) -> ArraySlice<UInt8>? {
        let start = name.utf8.count + 1
        guard let field = fields.first, field.count >= start, field.starts(with: name.utf8),
            field.dropFirst(start - 1).first == 0x3D
        else { return nil }
        fields = fields.dropFirst()
        return field.dropFirst(start)
    }

    /// Returns the value of a field that may be missing.
    mutating func optional<Value>(
        _ name: String, _ decode: (ArraySlice<UInt8>) -> Value?
    ) throws(Failure) -> Value? {
        guard let bytes = value(name) else { return nil }
        guard let value = decode(bytes) else { throw Failure(field: name) }
        return value
    }

    mutating func required<Value>(_ name: String, _ decode: (ArraySlice<UInt8>) -> Value?) throws(Failure) -> Value {
        guard let value = try optional(name, decode) else { throw Failure(field: name) }
        return value
    }

    func finish() throws(Failure) {
        if !fields.isEmpty { throw Failure(field: "end") }
    }
}

// MARK: - One line

extension BondRecord {
    fileprivate init(line: ArraySlice<UInt8>) throws(LineReader.Failure) {
        var reader = LineReader(line)
        let identity = try reader.identity()
        let name = try reader.optional("name") { Layout.unescaped($0, limit: Self.nameLimit) }
        let level = try reader.required("level") { digits in
            Layout.number(digits).flatMap { UInt8(exactly: $0) }.flatMap { Level(rawValue: $0) }
        }
        let method = try reader.required("method") { word in
            PairingMethod.allCases.first { word.elementsEqual($0.rawValue.utf8) }
        }
        let capability = try reader.optional("io") { digits in
            Layout.number(digits).flatMap { UInt8(exactly: $0) }.flatMap { IOCapability(rawValue: $0) }
        }
        let bondedAt = try reader.required("bonded", Layout.number)
        let lastEncryptedAt = try reader.optional("encrypted", Layout.number)
        let state = try reader.required("state", State.init(stored:))
        let generation = try reader.required("generation", Layout.number)
        var keys = [try reader.required("ltk", Self.longTermKey)]
        if let second = try reader.optional("ltk", Self.longTermKey) { keys.append(second) }
        // A key of another peer is no key of this bond.
        guard keys.allSatisfy({ $0.peer == ManagementPeer(identity) }) else { throw LineReader.Failure(field: "ltk") }
        let identityKey = try reader.optional("irk", IdentityKey.init(stored:))
        let signing = try reader.optional("csrk", Signing.init(stored:))
        let peerSigning = try reader.optional("peer-csrk", Signing.init(stored:))
        let adapterPin = try reader.optional("adapter") { Layout.unescaped($0, limit: Self.adapterPinLimit) }
        try reader.finish()
        self.init(
            identity: identity, name: name, keys: keys, identityKey: identityKey ?? .none, level: level,
            method: method, peerCapability: capability, bondedAt: bondedAt, lastEncryptedAt: lastEncryptedAt,
            state: state, signing: signing, peerSigning: peerSigning, generation: generation, adapterPin: adapterPin)
    }

    private static func longTermKey(_ digits: ArraySlice<UInt8>) -> ManagementLongTermKey? {
        guard var entry = Layout.bytes(digits, count: 36) else { return nil }
        defer { entry.wipe() }
        var reader = ByteReader(entry.span)
        guard let key = reader.longTermKey() else { return nil }
        // Values that have more than one encoding are as they came.
        var again = key.entry
        defer { again.wipe() }
        return again == entry ? key : nil
    }

    fileprivate var line: [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(1_024)
        line += "\(identity)".utf8
        func add(_ name: String, _ value: some Sequence<UInt8>) {
            line.append(Layout.space)
            line += name.utf8
            line.append(0x3D)
            line += value
        }
        if let name { add("name", Layout.escaped(name)) }
        add("level", "\(level.rawValue)".utf8)
        add("method", method.rawValue.utf8)
        if let peerCapability { add("io", "\(peerCapability.rawValue)".utf8) }
        add("bonded", "\(bondedAt)".utf8)
        if let lastEncryptedAt { add("encrypted", "\(lastEncryptedAt)".utf8) }
        add("state", state.stored.utf8)
        add("generation", "\(generation)".utf8)
        for key in keys {
            var entry = key.entry
            var digits = Layout.digits(entry.span)
            add("ltk", digits)
            entry.wipe()
            digits.wipe()
        }
        if var stored = identityKey.stored {
            add("irk", stored)
            stored.wipe()
        }
        for (name, signing) in [("csrk", signing), ("peer-csrk", peerSigning)] {
            guard var stored = signing?.stored else { continue }
            add(name, stored)
            stored.wipe()
        }
        if let adapterPin { add("adapter", Layout.escaped(adapterPin)) }
        return line
    }
}

extension ManagementLongTermKey {
    /// The kernel's entry.
    fileprivate var entry: [UInt8] {
        var writer = ByteWriter(reserving: 36)
        writer.longTermKey(self)
        return writer.bytes
    }
}

extension BondRecord.State {
    private static let rejected = Array("rejected:".utf8)

    fileprivate init?(stored: ArraySlice<UInt8>) {
        if stored.elementsEqual("good".utf8) {
            self = .good
        } else if stored.starts(with: Self.rejected), let since = Layout.number(stored.dropFirst(Self.rejected.count)) {
            self = .rejected(since: since)
        } else {
            return nil
        }
    }

    fileprivate var stored: String {
        switch self {
        case .good: "good"
        case .rejected(let since): "rejected:\(since)"
        }
    }
}

extension BondRecord.IdentityKeyFault {
    fileprivate var word: String {
        switch self {
        case .zero: "zero"
        case .shared: "shared"
        case .published: "published"
        }
    }
}

extension BondRecord.IdentityKey {
    fileprivate init?(stored: ArraySlice<UInt8>) {
        if let key = Layout.secret(stored) {
            self = .key(key)
        } else if let fault = BondRecord.IdentityKeyFault.allCases.first(where: { stored.elementsEqual($0.word.utf8) })
        {
            self = .unusable(fault)
        } else {
            return nil
        }
    }

    /// `nil` for none.
    fileprivate var stored: [UInt8]? {
        switch self {
        case .none: nil
        case .key(let key): key.withBytes { Layout.digits($0) }
        case .unusable(let fault): Array(fault.word.utf8)
        }
    }
}

extension BondRecord.Signing {
    fileprivate init?(stored: ArraySlice<UInt8>) {
        let parts = stored.split(separator: 0x3A, omittingEmptySubsequences: false)
        guard parts.count == 2, let key = parts.first.flatMap(Layout.secret), let last = parts.last else { return nil }
        if last.elementsEqual("-".utf8) {
            self.init(key: key, counter: nil)
        } else {
            guard let counter = Layout.number(last).flatMap({ UInt32(exactly: $0) }) else { return nil }
            self.init(key: key, counter: counter)
        }
    }

    fileprivate var stored: [UInt8] {
        key.withBytes { Layout.digits($0) } + [0x3A] + Array((counter.map { "\($0)" } ?? "-").utf8)
    }
}
