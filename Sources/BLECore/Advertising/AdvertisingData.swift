// The payload of an advertisement: a sequence of structures, each a length octet, a type octet and the value.
//
// Handling of malformed payloads, rows A01 to A10 of the reliability catalogue:
// - A zero length octet ends the significant part. Zeros after it are padding; anything else is reported.
// - A structure that runs past the end is dropped with everything after it; earlier structures are kept.
// - The first 256 structures are kept, the rest are only counted. Every walk is linear in the number of bytes.
// - A value that does not fit its type stays a raw structure; its typed view is `nil` (or a list omits it).
// - First wins: if a type that may occur once occurs twice, the typed view is the first occurrence that fits. Lists
//   join all occurrences in payload order.

/// The payload of an advertisement, scan response or encrypted data element, with typed views computed on demand.
///
/// This type only wraps the bytes: creating one costs nothing, and each view walks the bytes on access.
///
/// Spec: Core Vol 3 Part C, 11; Core Specification Supplement, Part A.
public struct AdvertisingData: Hashable, Sendable {
    let payload: CompactBytes

    /// The payload as received. Each access makes a copy; the views make none.
    public var bytes: [UInt8] { payload.array }

    /// Creates a payload from any bytes.
    public init(_ bytes: [UInt8]) {
        payload = CompactBytes(bytes)
    }

    init(_ payload: CompactBytes) {
        self.payload = payload
    }

    /// One structure with a copy of its value.
    public struct Structure: Hashable, Sendable {
        /// The type of the value.
        public let type: AdvertisingDataType
        /// The value without the length and type octets.
        public let value: [UInt8]

        /// Creates a structure.
        public init(type: AdvertisingDataType, value: [UInt8]) {
            self.type = type
            self.value = value
        }
    }

    /// Encodes a payload from structures. Bytes of a value beyond 254 are dropped.
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

    /// The maximum number of structures that are kept per payload.
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

    /// Visits at most `structureLimit` structures in payload order, without copying or allocating.
    public func forEachStructure(_ visit: (AdvertisingDataType, Span<UInt8>) -> Void) {
        payload.withSpan { span in
            var walk = Walk(span)
            while let structure = walk.next() { visit(structure.type, structure.value.unread) }
        }
    }

    /// A violation of the payload format.
    public enum Defect: Hashable, Sendable, CustomStringConvertible {
        /// The structure at `offset` declares `missing` bytes more than the payload holds.
        case overrun(offset: Int, missing: Int)
        /// The zero length octet at `offset` ends the payload, but nonzero bytes follow.
        case dataAfterEnd(offset: Int)
        /// `omitted` structures beyond `structureLimit` were skipped.
        case tooManyStructures(omitted: Int)
        /// The list of UUIDs at `offset` ends with `extra` bytes that do not form a UUID.
        case partialUUID(offset: Int, extra: Int)

        /// The defect and its position, as text.
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

    /// All defects of the payload, in payload order; empty if it is well formed.
    public var defects: [Defect] {
        var found: [Defect] = []
        return payload.withSpan { span in
            var walk = Walk(span)
            while let structure = walk.next() {
                guard let size = structure.type.uuidListElementSize else { continue }
                let extra = structure.value.remaining % size
                if extra > 0 { found.append(.partialUUID(offset: structure.offset, extra: extra)) }
            }
            if walk.omitted > 0 { found.append(.tooManyStructures(omitted: walk.omitted)) }
            if let ending = walk.ending { found.append(ending) }
            return found
        }
    }

    /// Returns the result of `read` for the first structure of `type` for which it is not `nil`.
    package func first<Value>(_ type: AdvertisingDataType, _ read: (inout ByteReader) -> Value?) -> Value? {
        payload.withSpan { span in
            var walk = Walk(span)
            while var structure = walk.next() {
                if structure.type == type, let value = read(&structure.value) { return value }
            }
            return nil
        }
    }

    /// Calls `read` with the value of every structure of `type`.
    package func forEach(_ type: AdvertisingDataType, _ read: (inout ByteReader) -> Void) {
        payload.withSpan { span in
            var walk = Walk(span)
            while var structure = walk.next() {
                if structure.type == type { read(&structure.value) }
            }
        }
    }

    /// A structure that borrows its value from the payload.
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

    /// Iterates over the structures and records how the payload ended.
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
                count &+= 1
                if count <= AdvertisingData.structureLimit {
                    return StructureView(type: AdvertisingDataType(rawValue: type), offset: offset, value: part)
                }
                omitted &+= 1
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
