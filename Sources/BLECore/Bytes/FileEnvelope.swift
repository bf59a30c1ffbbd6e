/// The envelope of all data that the library stores; numbers are little-endian:
///
///     signature 4 | version 1 | payload length 4 | payload | CRC-32 of everything before 4
///
/// The envelope is the same in every version, so a reader can distinguish damaged data from data of a newer program.
package struct FileEnvelope: Sendable {
    /// The number of bytes before the payload.
    package static let headerLength = 9
    private static let checksumLength = 4

    /// The format's name in error messages.
    package let name: StaticString
    private let signature: [UInt8]
    private let version: UInt8
    /// The first version that is read.
    private let oldest: UInt8
    private let limit: Int

    /// Creates an envelope with a four-character signature, a version, and a maximum payload length.
    ///
    /// - Parameter oldest: The first version that is read as well; `nil` if no other one is.
    package init(
        _ name: StaticString, signature: [UInt8], version: UInt8, reading oldest: UInt8? = nil, limit: Int
    ) {
        self.name = name
        self.signature = signature
        self.version = version
        self.oldest = oldest ?? version
        self.limit = limit
    }

    /// The maximum length of the enclosed data, in bytes.
    package var byteLimit: Int { limit + Self.headerLength + Self.checksumLength }

    /// Wraps a payload in the envelope.
    ///
    /// - Parameter version: An earlier version that has the payload too; `nil` for the present one.
    package func enclose(_ payload: [UInt8], version: UInt8? = nil) -> [UInt8] {
        var file = ByteWriter(reserving: payload.count + Self.headerLength + Self.checksumLength)
        file.array(signature)
        file.u8(version ?? self.version)
        file.u32(UInt32(truncatingIfNeeded: payload.count))
        file.array(payload)
        file.u32(CRC32.checksum(file.bytes))
        return file.bytes
    }

    /// Returns true if `bytes` begin with the signature, regardless of the rest.
    package func isBeginning(of bytes: [UInt8]) -> Bool {
        bytes.starts(with: signature)
    }

    /// Verifies the envelope and returns the end offset of the payload, which begins at `headerLength`.
    ///
    /// - Throws: `MalformedPacket` that names the signature, the length, the checksum or, if all of these are valid,
    ///   the version.
    package func check(_ bytes: [UInt8]) throws(MalformedPacket) -> Int {
        var header = ByteReader(bytes.span)
        guard let signature = header.array(4) else { throw .stored(self, at: bytes.count, .tooShort) }
        guard signature == self.signature else { throw .stored(self, at: 0, .invalidField("signature")) }
        guard let version = header.u8() else { throw .stored(self, at: bytes.count, .tooShort) }
        guard let length = header.u32().map(Int.init) else { throw .stored(self, at: bytes.count, .tooShort) }
        guard length <= limit else { throw .stored(self, at: 5, .invalidField("length")) }
        guard header.remaining >= length + Self.checksumLength else {
            throw .stored(self, at: bytes.count, .tooShort)
        }
        _ = header.skip(length)
        let checksum = header.u32()
        try header.finish(name)
        let end = Self.headerLength + length
        guard checksum == CRC32.checksum(bytes.prefix(end)) else {
            throw .stored(self, at: end, .invalidField("checksum"))
        }
        guard version >= oldest, version <= self.version else {
            throw .stored(self, at: 4, .invalidField(Self.versionField))
        }
        return end
    }

    private static let versionField = "version"

    /// Returns true if `error` means that the data are intact but of another version.
    package static func isOtherVersion(_ error: MalformedPacket) -> Bool {
        error.reason == .invalidField(versionField)
    }
}

extension MalformedPacket {
    package static func stored(_ form: FileEnvelope, at offset: Int, _ reason: Reason) -> MalformedPacket {
        MalformedPacket(form.name, at: offset, reason)
    }
}

// MARK: - Parts that several formats share

extension ByteWriter {
    /// Appends a UUID as its length, 2 or 16, and its bytes.
    mutating func storedUUID(_ uuid: BluetoothUUID) {
        let bytes = uuid.attBytes
        u8(UInt8(truncatingIfNeeded: bytes.count))
        array(bytes)
    }

    /// Appends text as its length in bytes, at most `limit`, and its UTF-8; longer text is truncated at a character
    /// boundary.
    mutating func storedText(_ text: String, limit: Int = 255) {
        var bytes: [UInt8] = []
        for character in text {
            let next = Array(String(character).utf8)
            guard bytes.count + next.count <= min(limit, 255) else { break }
            bytes += next
        }
        u8(UInt8(truncatingIfNeeded: bytes.count))
        array(bytes)
    }

    /// Appends a peer as its kind (0 for none, 1 for a public address, 2 for a random one) and its 6-byte address.
    mutating func storedPeer(_ peer: PeerID?) {
        guard let peer else { return u8(0) }
        u8(peer.type.space == .public ? 1 : 2)
        u48(peer.address.rawValue)
    }
}

extension ByteReader {
    /// Reads a UUID written by `storedUUID`; returns `nil` if the length is 0.
    @_lifetime(self: copy self)
    mutating func storedUUID(_ field: String, in form: FileEnvelope) throws(MalformedPacket) -> BluetoothUUID? {
        let start = offset
        guard let length = u8() else { throw .stored(form, at: start, .tooShort) }
        guard length > 0 else { return nil }
        guard length == 2 || length == 16 else { throw .stored(form, at: start, .invalidField(field)) }
        guard let uuid = uuid(Int(length)) else { throw .stored(form, at: offset, .tooShort) }
        return uuid
    }

    /// Reads text written by `storedText`. Invalid UTF-8 is rejected: repairing it would make the text longer than
    /// stored.
    @_lifetime(self: copy self)
    mutating func storedText(_ field: String, in form: FileEnvelope) throws(MalformedPacket) -> String {
        let start = offset
        guard let length = u8(), let bytes = array(Int(length)) else { throw .stored(form, at: start, .tooShort) }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .stored(form, at: start, .invalidField(field))
        }
        return text
    }

    @_lifetime(self: copy self)
    mutating func storedPeer(in form: FileEnvelope) throws(MalformedPacket) -> PeerID? {
        let start = offset
        guard let kind = u8() else { throw .stored(form, at: start, .tooShort) }
        guard kind > 0 else { return nil }
        guard kind <= 2 else { throw .stored(form, at: start, .invalidField("kind of address")) }
        guard let address = u48() else { throw .stored(form, at: start, .tooShort) }
        return PeerID(address: BluetoothAddress(rawValue: address), type: kind == 1 ? .public : .random)
    }

    @_lifetime(self: copy self)
    mutating func storedFlag(_ field: String, in form: FileEnvelope) throws(MalformedPacket) -> Bool {
        let start = offset
        guard let value = u8() else { throw .stored(form, at: start, .tooShort) }
        guard value <= 1 else { throw .stored(form, at: start, .invalidField(field)) }
        return value == 1
    }
}

/// The CRC-32 of Ethernet, zip and PNG, for stored data.
///
/// It detects every burst error of up to 32 bits. It does not protect against deliberate changes.
package enum CRC32 {
    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        var remainder = UInt32.max
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 {
                remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ 0xEDB8_8320
            }
        }
        return ~remainder
    }
}
