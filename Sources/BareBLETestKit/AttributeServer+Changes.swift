public import BLECore

// Services that change during a connection, and the specification's rules for a client that is not aware of it.

extension AttributeServer {
    /// The awareness of a client with robust caching of the last change (Core Vol 3 Part G, 2.5.2.1).
    enum Awareness: Sendable {
        case aware
        /// The client has not noticed the change and was not notified.
        case unaware
        /// The client received an error; its next request makes it aware.
        case notified
    }

    /// Serves `device` from now on. Values and client configurations of unchanged services are preserved.
    ///
    /// - Returns: The handle range of the change, in whole services before and after it, or `nil` if nothing changed.
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

    /// The client configurations that are set, by handle.
    var clientConfigurations: [AttributeHandle: [UInt8]] {
        var configurations: [AttributeHandle: [UInt8]] = [:]
        for attribute in table.attributes {
            guard case .clientConfiguration = attribute.role, attribute.value.contains(where: { $0 != 0 }) else {
                continue
            }
            configurations[attribute.handle] = attribute.value
        }
        return configurations
    }

    /// Restores the client configurations of a bonded client, except for those that it has written again.
    mutating func restore(_ configurations: [AttributeHandle: [UInt8]]) {
        for (handle, value) in configurations {
            guard let attribute = table[handle], case .clientConfiguration = attribute.role,
                attribute.value == [0, 0]
            else { continue }
            table[handle]?.value = value
        }
    }

    /// Returns one Database Out Of Sync error to a client with robust caching, as after a change that it missed.
    public mutating func becomeUnaware() {
        awareness = isCachingRobustly ? .unaware : .aware
    }

    /// True if the client has enabled robust caching.
    private var isCachingRobustly: Bool {
        guard let handle = table.valueHandle(of: 0x2B29), let features = table[handle]?.value.first else {
            return false
        }
        return features & 1 != 0
    }

    /// Rejects the first request of a client that is not aware of a change.
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
            awareness = .notified
            throw Refusal(code: .databaseOutOfSync, handle: handle)
        case .notified: awareness = .aware
        }
    }
}

extension AttributeTable {
    static let databaseHash: BluetoothUUID = 0x2B2A

    /// Sets every Database Hash without a value to a digest of the declarations.
    mutating func digestDeclarations() {
        let digest = declarationDigest
        for attribute in attributes where attribute.type == Self.databaseHash && attribute.value.isEmpty {
            self[attribute.handle]?.value = digest
        }
    }

    /// Sixteen bytes that change with the declarations. The specification's hash differs (AES-CMAC), but this digest
    /// also distinguishes two tables.
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

    /// Returns the handle range that differs in another table, in whole services of both.
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
    /// The value of a declaration, otherwise empty.
    fileprivate var declaration: [UInt8] {
        [0x2800, 0x2801, 0x2802, 0x2803].contains(type) ? value : []
    }
}
