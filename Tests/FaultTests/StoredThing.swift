import BareBLE
import BareBLETestKit
import Foundation

/// Something that the library keeps on the disk, in two versions that differ.
///
/// There are two: the state of a daemon, and the cache of a peer's services. Bonds will be the third.
struct StoredThing: Sendable, CustomStringConvertible {
    enum Version: Hashable, Sendable {
        case nothing, old, new
    }

    let description: String
    let file: String
    /// The error of a full disk.
    let fullDisk: BLEError.Code
    let bytes: @Sendable (Version) -> [UInt8]
    private let write: @Sendable (String, Version) throws(BLEError) -> Void
    private let read: @Sendable (String) throws(BLEError) -> Version?

    static let all = [state, cache]

    func path(in folder: Folder) -> String { folder.path + "/" + file }

    func save(_ version: Version, in folder: Folder) throws(BLEError) {
        try write(folder.path, version)
    }

    /// The stored version; `nil` if it is neither of them.
    func load(from folder: Folder) throws(BLEError) -> Version? {
        try read(folder.path)
    }

    // MARK: The state of a daemon

    private static func state(_ version: Version) -> RestorationState {
        let count: UInt64 = version == .old ? 3 : version == .new ? 40 : 0
        return RestorationState(
            peers: (0..<count).map { number in
                let address = BluetoothAddress(rawValue: 0xC000_0000_0000 + number)
                return PersistedPeer(
                    PeerID(address: address, type: .random),
                    subscriptions: [PersistedSubscription(0x2A37, service: 0x180D)])
            })
    }

    private static func open(_ folder: String) throws(BLEError) -> OpenStateStore {
        try StateStore(directory: folder, identifier: "hub").open()
    }

    static let state = StoredThing(
        description: "state", file: "hub.state", fullDisk: .diskFull,
        bytes: { state($0).bytes },
        write: { folder, version throws(BLEError) in
            try open(folder).save(state(version))
        },
        read: { folder throws(BLEError) in
            let contents = try open(folder).load()
            if contents.damage != nil { return nil }
            return [.nothing, .old, .new].first { state($0) == contents.state }
        })

    // MARK: The cache of a peer's services

    private static func cache(_ version: Version) -> GATTCache {
        let count: UInt16 = version == .old ? 2 : 30
        let services = (0..<count).map { GATTService(handles: (1 + 5 * $0)...(5 + 5 * $0), uuid: 0x180F) }
        return GATTCache(
            database: GATTDatabase(services: services), coverage: .whole(.full),
            databaseHash: [UInt8](repeating: UInt8(count), count: 16))
    }

    static let cache = StoredThing(
        description: "cache", file: "C00000000007-random.gatt", fullDisk: .system,
        bytes: { cache($0).bytes },
        write: { folder, version throws(BLEError) in
            let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)
            try GATTCacheDirectory(folder).save(cache(version), for: peer)
        },
        read: { folder throws(BLEError) in
            guard let cache = try GATTCacheFile(folder + "/C00000000007-random.gatt").load() else { return .nothing }
            return [.old, .new].first { StoredThing.cache($0) == cache }
        })
}
