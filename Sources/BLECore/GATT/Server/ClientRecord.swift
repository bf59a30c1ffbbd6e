/// The state of a bonded client that a server keeps over links.
///
/// It is in force only on a link that the client has encrypted with the key of its bond.
///
/// Spec: Core Vol 3 Part G, 2.5.2.1, 3.3.3.3, 7.1 and 7.2; the sign counter: Core Vol 3 Part C, 10.4.2.
package struct ClientRecord: Hashable, Sendable {
    /// The maximum number of configurations; more are not stored.
    package static let configurationLimit = 4_096

    /// The client configurations that are not 0, by their handles.
    package var configurations: [AttributeHandle: GATTDescriptor.ClientConfiguration] = [:]
    /// The octet of Client Supported Features.
    package var features: UInt8 = 0
    /// A Boolean value that indicates whether the client knows the services.
    package var isAware = true
    /// The handles of changes that the client has not confirmed.
    package var pendingChange: ClosedRange<AttributeHandle>?
    /// The lowest sign counter that a signed write of the client may have.
    package var signCounter: UInt32 = 0
    /// The checksum of the database that the client was served from.
    package var checksum: UInt32

    /// Creates the record of a client that is served from a database for the first time.
    package init(checksum: UInt32) {
        self.checksum = checksum
    }

    /// Records a change of services while the client is away.
    package mutating func databaseChanged(_ handles: ClosedRange<AttributeHandle>, checksum: UInt32) {
        isAware = false
        pendingChange = pendingChange.merged(with: handles)
        configurations = configurations.filter { !handles.contains($0.key) }
        self.checksum = checksum
    }
}

extension ClosedRange<AttributeHandle>? {
    /// The smallest range that contains both.
    package func merged(with other: ClosedRange<AttributeHandle>?) -> ClosedRange<AttributeHandle>? {
        guard let self, let other else { return self ?? other }
        return min(self.lowerBound, other.lowerBound)...max(self.upperBound, other.upperBound)
    }
}

/// The layout of a record inside its frame (`FileEnvelope`, "BLEK"). Numbers are little-endian:
///
///     checksum of the database 4 | features 1 | aware 1 | sign counter 4
///     pending change: first handle 2 (0: none), last handle 2
///     configurations 2, each: handle 2, bits 2; by handle
private enum Layout {
    static let form = FileEnvelope(
        "client record", signature: [0x42, 0x4C, 0x45, 0x4B], version: 1,
        limit: 16 + 4 * ClientRecord.configurationLimit)
}

extension ClientRecord {
    /// The encoded form to store.
    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.u32(checksum)
        writer.u8(features)
        writer.u8(isAware ? 1 : 0)
        writer.u32(signCounter)
        writer.u16(pendingChange?.lowerBound ?? 0)
        writer.u16(pendingChange?.upperBound ?? 0)
        let kept = configurations.sorted { $0.key < $1.key }.prefix(Self.configurationLimit)
        writer.u16(UInt16(clamping: kept.count))
        for (handle, configuration) in kept {
            writer.u16(handle)
            writer.u16(configuration.rawValue)
        }
        return Layout.form.enclose(writer.bytes)
    }

    /// Decodes the form.
    ///
    /// - Throws: `MalformedPacket`.
    package init(bytes: [UInt8]) throws(MalformedPacket) {
        let end = try Layout.form.check(bytes)
        var reader = ByteReader(bytes.span)
        _ = reader.skip(FileEnvelope.headerLength)
        guard let checksum = reader.u32(), let features = reader.u8() else {
            throw .stored(Layout.form, at: reader.offset, .tooShort)
        }
        self.init(checksum: checksum)
        self.features = features
        isAware = try reader.storedFlag("awareness", in: Layout.form)
        let start = reader.offset
        guard let counter = reader.u32(), let first = reader.u16(), let last = reader.u16(), let count = reader.u16()
        else { throw .stored(Layout.form, at: start, .tooShort) }
        signCounter = counter
        guard first <= last, first > 0 || last == 0 else {
            throw .stored(Layout.form, at: start + 4, .invalidField("pending change"))
        }
        pendingChange = first == 0 ? nil : first...last
        guard Int(count) <= Self.configurationLimit else {
            throw .stored(Layout.form, at: start + 8, .invalidField("number of configurations"))
        }
        var previous: AttributeHandle = 0
        for _ in 0..<count {
            let place = reader.offset
            guard let handle = reader.u16(), let bits = reader.u16() else {
                throw .stored(Layout.form, at: place, .tooShort)
            }
            guard handle > previous, bits > 0 else {
                throw .stored(Layout.form, at: place, .invalidField("configuration"))
            }
            configurations[handle] = GATTDescriptor.ClientConfiguration(rawValue: bits)
            previous = handle
        }
        guard reader.offset == end else {
            throw .stored(Layout.form, at: reader.offset, .trailingBytes(end - reader.offset))
        }
    }
}
