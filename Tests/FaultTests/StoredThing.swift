import BLECore
import BareBLE
import Foundation
import TestSupport

/// Something that the library keeps on the disk, in two versions that differ.
///
/// There are four: the state of a daemon, the cache of a peer's services, the bonds of an adapter, and what bonded
/// centrals have configured.
struct StoredThing: Sendable, CustomStringConvertible {
    enum Version: Hashable, Sendable {
        case nothing, old, new
    }

    let description: String
    let file: String
    /// The error of every failed change, if it has one of its own.
    var notChanged: BLEError.Code?
    let bytes: @Sendable (Version) -> [UInt8]
    private let write: @Sendable (String, Version) throws(BLEError) -> Void
    private let read: @Sendable (String) throws(BLEError) -> Version?

    static let all = [state, cache, bonds, clients]

    func path(in folder: Folder) -> String { folder.path + "/" + file }

    /// Writes a file of these bytes, readable by its owner only.
    func put(_ bytes: [UInt8], in folder: Folder) throws {
        try Data(bytes).write(to: URL(filePath: path(in: folder)))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path(in: folder))
    }

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
                return RestorationState.Peer(
                    PeerID(address: address, type: .random),
                    subscriptions: [RestorationState.Subscription(0x2A37, service: 0x180D)])
            })
    }

    private static func open(_ folder: String) throws(BLEError) -> OpenStateStore {
        try StateStore(directory: folder, identifier: "hub").open()
    }

    static let state = StoredThing(
        description: "state", file: "hub.state",
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
        description: "cache", file: "C00000000007-random.gatt",
        bytes: { cache($0).bytes },
        write: { folder, version throws(BLEError) in
            let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)
            try GATTCacheDirectory(folder).save(cache(version), for: peer)
        },
        read: { folder throws(BLEError) in
            guard let cache = try GATTCacheFile(folder + "/C00000000007-random.gatt").load() else { return .nothing }
            return [.old, .new].first { StoredThing.cache($0) == cache }
        })

    // MARK: The bonds of an adapter

    private static let adapter = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    private static func bond(_ version: Version) -> BondRecord {
        let bond = RecordedBonds.first
        return BondRecord(
            identity: bond.identity, name: "\(version)", keys: bond.keys, identityKey: bond.identityKey,
            level: bond.level, method: bond.method, bondedAt: bond.bondedAt)
    }

    private static func openBonds(_ folder: String) throws(BLEError) -> OpenBondStore {
        try BondStore(directory: folder).open(adapter: adapter)
    }

    static let bonds = StoredThing(
        description: "bonds", file: "00AA01000042.bonds", notChanged: .bondNotStored,
        bytes: { BondFile(generation: 1, records: [bond($0)]).bytes },
        write: { folder, version throws(BLEError) in
            let bond = bond(version)
            _ = try openBonds(folder).save(bond, isForStorage: true, replacing: bond.identity)
        },
        read: { folder throws(BLEError) in
            let contents = try openBonds(folder).load()
            if contents.damage != nil { return nil }
            guard let name = contents.records.first?.name else { return .nothing }
            return [.old, .new].first { "\($0)" == name }
        })

    // MARK: What bonded centrals have configured

    private static func clients(_ version: Version) -> ClientTable {
        var table = ClientTable()
        let count: UInt64 = version == .old ? 2 : version == .new ? 30 : 0
        for number in 0..<count {
            var record = ClientRecord(checksum: 7)
            record.configurations = [9: .indications]
            let address = BluetoothAddress(rawValue: 0xC000_0000_0000 + number)
            table.store(record, of: PeerID(address: address, type: .random), bond: number)
        }
        return table
    }

    static let clients = StoredThing(
        description: "clients", file: "hub.clients",
        bytes: { clients($0).bytes },
        write: { folder, version throws(BLEError) in
            let store = StateStore(directory: folder, identifier: "hub")
            try store.openClients().replace(with: clients(version).bytes, during: "save")
        },
        read: { folder throws(BLEError) in
            let store = StateStore(directory: folder, identifier: "hub")
            let loaded = try store.loadClients(from: try store.openClients())
            if loaded.damage != nil { return nil }
            guard let table = loaded.value else { return .nothing }
            return [.old, .new].first { clients($0) == table }
        })
}
