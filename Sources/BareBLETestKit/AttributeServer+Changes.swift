public import BLECore

// Services that change while a client is connected, and what the specification makes of a client that has not noticed.

extension AttributeServer {
    /// What a client that asked for robust caching knows of the last change.
    enum Awareness: Sendable {
        case aware
        /// It has not noticed, and has not been told.
        case unaware
        /// It was told by an error; its next request counts as noticing.
        case told
    }

    /// Serves `device` from now on. Values and client configurations in services that stay as they are are kept.
    ///
    /// - Returns: The handles that changed, in whole services of before and now; `nil` when nothing did.
    public mutating func changeServices(to device: VirtualDevice) -> ClosedRange<AttributeHandle>? {
        var table = AttributeTable(device)
        guard let range = self.table.changes(to: table) else { return nil }
        for attribute in self.table.attributes
        where !range.contains(attribute.handle) && attribute.type != AttributeTable.databaseHash {
            table[attribute.handle]?.value = attribute.value
        }
        self.table = table
        becomeUnaware()
        return range
    }

    /// A client that asked for robust caching gets one error Database Out Of Sync, as after a change that it missed.
    public mutating func becomeUnaware() {
        awareness = isCachingRobustly ? .unaware : .aware
    }

    /// Whether the client has written that it handles Database Out Of Sync.
    private var isCachingRobustly: Bool {
        guard let handle = table.valueHandle(of: 0x2B29), let features = table[handle]?.value.first else {
            return false
        }
        return features & 1 != 0
    }

    /// Refuses the first request of a client that has not noticed a change.
    mutating func checkInSync(_ packet: ATTPacket) throws(Refusal) {
        let handle: AttributeHandle
        switch packet {
        case .readRequest(let request): handle = request.handle
        case .readBlobRequest(let request): handle = request.handle
        case .readMultipleRequest(let request): handle = request.handles.first ?? 0
        case .readMultipleVariableRequest(let request): handle = request.handles.first ?? 0
        case .writeRequest(let request): handle = request.handle
        case .prepareWriteRequest(let request): handle = request.handle
        case .readByTypeRequest(let request):
            if request.type == AttributeTable.databaseHash { awareness = .aware }
            return
        default: return
        }
        switch awareness {
        case .aware: return
        case .unaware:
            awareness = .told
            throw Refusal(code: .databaseOutOfSync, handle: handle)
        case .told: awareness = .aware
        }
    }
}

extension AttributeTable {
    static let databaseHash: BluetoothUUID = 0x2B2A

    /// Gives every Database Hash without a value a digest of the declarations.
    mutating func digestDeclarations() {
        let digest = declarationDigest
        for attribute in attributes where attribute.type == Self.databaseHash && attribute.value.isEmpty {
            self[attribute.handle]?.value = digest
        }
    }

    /// Sixteen bytes that change with the declarations. The specification's hash is another one (AES-CMAC); to tell two
    /// tables apart this one does as well.
    private var declarationDigest: [UInt8] {
        var hashes: [UInt64] = [0xCBF2_9CE4_8422_2325, 0x6C62_272E_07BB_0142]
        for attribute in attributes {
            let bytes = attribute.handle.littleEndianBytes + attribute.type.attBytes + attribute.declaration
            for index in hashes.indices {
                for byte in bytes { hashes[index] = (hashes[index] ^ UInt64(byte)) &* 0x100_0000_01B3 }
            }
        }
        return hashes.flatMap { hash in (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * $0)) } }
    }

    /// The handles that differ in another table, in whole services of both.
    func changes(to other: AttributeTable) -> ClosedRange<AttributeHandle>? {
        let handles = Set(attributes.map(\.handle)).union(other.attributes.map(\.handle))
        let changed = handles.filter { handle in
            let (old, new) = (self[handle], other[handle])
            return old?.type != new?.type || old?.declaration != new?.declaration || old?.role != new?.role
        }
        guard var lower = changed.min(), var upper = changed.max() else { return nil }
        for attribute in attributes + other.attributes {
            guard case .group(let end) = attribute.role, attribute.handle <= upper, end >= lower else { continue }
            lower = min(lower, attribute.handle)
            upper = max(upper, end)
        }
        return lower...upper
    }
}

extension ServedAttribute {
    /// The value, where it is one that says what is served.
    fileprivate var declaration: [UInt8] {
        [0x2800, 0x2801, 0x2802, 0x2803].contains(type) ? value : []
    }
}
