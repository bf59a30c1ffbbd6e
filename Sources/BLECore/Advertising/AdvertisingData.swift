// The payload of an advertisement: a row of structures, each a length octet, a type octet and the value.
//
// Rules for what goes wrong on air, rows A01 to A10 of the reliability catalogue:
// - A zero length octet ends the significant part. Zeros behind it are padding; anything else is reported.
// - A structure that runs past the end is dropped with everything behind it; the ones before it stand.
// - The first 256 structures are kept, the rest is only counted. Every walk is linear in the number of bytes.
// - A value that does not fit its type stays a raw structure; its typed view is `nil` (or leaves it out of a list).
// - First wins: where a type may occur once and occurs twice, the typed view is the first occurrence that fits. Lists
//   join all occurrences in payload order.

/// The payload of an advertisement, scan response or encrypted data element, with typed views computed on demand.
///
/// It wraps the bytes and nothing else: making one costs nothing, and a view walks the bytes when asked.
///
/// Spec: Core Vol 3 Part C, 11; Core Specification Supplement, Part A.
public struct AdvertisingData: Hashable, Sendable {
    /// The payload as received.
    public let bytes: [UInt8]

    /// Wraps a payload; any bytes are accepted.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// One structure with a copy of its value.
    public struct Structure: Hashable, Sendable {
        /// What the value is.
        public let type: AdvertisingDataType
        /// The value without length and type octets.
        public let value: [UInt8]

        /// A structure with this type and value.
        public init(type: AdvertisingDataType, value: [UInt8]) {
            self.type = type
            self.value = value
        }
    }

    /// A payload of these structures; what of a value does not fit its length octet is left out.
    package init(joining structures: [Structure]) {
        var bytes: [UInt8] = []
        for structure in structures {
            let value = structure.value.prefix(254)
            bytes.append(UInt8(clamping: value.count + 1))
            bytes.append(structure.type.rawValue)
            bytes += value
        }
        self.init(bytes)
    }

    /// How many structures of one payload are kept.
    public static let structureLimit = 256

    /// The structures in payload order, at most `structureLimit`.
    public var structures: [Structure] {
        var result: [Structure] = []
        forEachStructure { type, value in
            var reader = ByteReader(value)
            result.append(Structure(type: type, value: reader.rest()))
        }
        return result
    }

    /// Visits the structures in payload order, at most `structureLimit`, without copying or allocating anything.
    public func forEachStructure(_ visit: (AdvertisingDataType, Span<UInt8>) -> Void) {
        var walk = Walk(bytes.span)
        while let structure = walk.next() { visit(structure.type, structure.value.unread) }
    }

    /// Something about a payload that its format does not allow.
    public enum Defect: Hashable, Sendable, CustomStringConvertible {
        /// The structure at `offset` says that it is `missing` bytes longer than what is there.
        case overrun(offset: Int, missing: Int)
        /// The zero length octet at `offset` ends the payload, and it is not only zeros that follow.
        case dataAfterEnd(offset: Int)
        /// So many structures beyond `structureLimit` were left out.
        case tooManyStructures(omitted: Int)
        /// The list of UUIDs at `offset` ends with `extra` bytes that make no UUID.
        case partialUUID(offset: Int, extra: Int)

        /// A sentence that says where and what.
        public var description: String {
            switch self {
            case .overrun(let offset, let missing):
                "the structure at byte \(offset) is cut off: \(missing == 1 ? "1 byte is" : "\(missing) bytes are") missing"
            case .dataAfterEnd(let offset):
                "the zero length octet at byte \(offset) ends the data, but more follows"
            case .tooManyStructures(let omitted):
                "\(omitted == 1 ? "1 structure" : "\(omitted) structures") beyond the first \(structureLimit) left out"
            case .partialUUID(let offset, let extra):
                "the list of UUIDs at byte \(offset) ends with \(extra == 1 ? "a stray byte" : "\(extra) stray bytes")"
            }
        }
    }

    /// Everything that is wrong with the payload, in payload order; empty for good ones.
    public var defects: [Defect] {
        var found: [Defect] = []
        var walk = Walk(bytes.span)
        while let structure = walk.next() {
            guard let size = structure.type.uuidListElementSize else { continue }
            let extra = structure.value.remaining % size
            if extra > 0 { found.append(.partialUUID(offset: structure.offset, extra: extra)) }
        }
        if walk.omitted > 0 { found.append(.tooManyStructures(omitted: walk.omitted)) }
        if let ending = walk.ending { found.append(ending) }
        return found
    }

    /// Reads the value of the first structure of `type` that `read` accepts.
    package func first<Value>(_ type: AdvertisingDataType, _ read: (inout ByteReader) -> Value?) -> Value? {
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            if structure.type == type, let value = read(&structure.value) { return value }
        }
        return nil
    }

    /// Reads the value of every structure of `type`.
    package func forEach(_ type: AdvertisingDataType, _ read: (inout ByteReader) -> Void) {
        var walk = Walk(bytes.span)
        while var structure = walk.next() {
            if structure.type == type { read(&structure.value) }
        }
    }

    /// One structure in place.
    package struct StructureView: ~Escapable {
        package let type: AdvertisingDataType
        package let offset: Int
        package var value: ByteReader

        @_lifetime(copy value)
        init(type: AdvertisingDataType, offset: Int, value: consuming ByteReader) {
            self.type = type
            self.offset = offset
            self.value = value
        }
    }

    /// Goes from structure to structure and remembers how the payload ended.
    package struct Walk: ~Escapable {
        private var reader: ByteReader
        private var count = 0
        package private(set) var omitted = 0
        package private(set) var ending: Defect?

        @_lifetime(copy bytes)
        package init(_ bytes: Span<UInt8>) {
            reader = ByteReader(bytes)
        }

        @_lifetime(copy self)
        @_lifetime(self: copy self)
        package mutating func next() -> StructureView? {
            while true {
                let offset = reader.offset
                guard let length = reader.u8() else { return nil }
                guard length > 0 else {
                    stopAtZero(offset)
                    return nil
                }
                let left = reader.remaining
                guard var part = reader.take(Int(length)), let type = part.u8() else {
                    ending = .overrun(offset: offset, missing: Int(length) &- left)
                    _ = reader.skip(left)
                    return nil
                }
                count += 1
                if count <= AdvertisingData.structureLimit {
                    return StructureView(type: AdvertisingDataType(rawValue: type), offset: offset, value: part)
                }
                omitted += 1
            }
        }

        @_lifetime(self: copy self)
        private mutating func stopAtZero(_ offset: Int) {
            while let byte = reader.u8() {
                if byte != 0 { ending = .dataAfterEnd(offset: offset) }
            }
        }
    }
}
