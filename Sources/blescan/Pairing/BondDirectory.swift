import BLECore
import BLELinux
import BareBLE
import Glibc

/// The directory of the bonds: the one of `--bonds`, or the usual one of the user.
///
/// Look at it after privileges were dropped: its owner is the user that the program runs as then. A process that
/// opens it has keys in memory from then on, so it gets no core dump.
struct BondDirectory: Sendable {
    /// The usual directory of root.
    static let ofRoot = "/var/lib/bareble/bonds"

    let path: String
    /// Whether a command line names it.
    let isNamed: Bool

    /// A directory that the command line names.
    init(_ path: String) {
        self.init(path: path, isNamed: true)
    }

    /// The usual directory, as `usual()` has returned it.
    init(usual path: String) {
        self.init(path: path, isNamed: false)
    }

    private init(path: String, isNamed: Bool) {
        self.path = path
        self.isNamed = isNamed
    }

    /// - Throws: `Failure` for a user without a home directory.
    init(_ options: BondOptions) throws(Failure) {
        if let named = options.directory {
            self.init(named)
            return
        }
        guard let usual = Self.usual() else {
            throw Failure(
                message: "this user has no home directory for bonds", hint: "Name one with --bonds.", status: .usage)
        }
        self.init(usual: usual)
    }

    /// Returns the usual directory of the user that this process runs as.
    static func usual() -> String? {
        let user = geteuid()
        if user == 0 { return ofRoot }
        // sudo leaves variables of root.
        if Privileges.Caller.current?.user != user {
            if let state = variable("XDG_STATE_HOME") { return state + "/bareble/bonds" }
            if let home = variable("HOME") { return ofUser(home) }
        }
        guard let entry = unsafe getpwuid(user), let home = unsafe entry.pointee.pw_dir else { return nil }
        return ofUser(unsafe String(cString: home))
    }

    private static func ofUser(_ home: String) -> String { home + "/.local/state/bareble/bonds" }

    /// Returns the value of a variable, if it is an absolute path.
    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name).map({ unsafe String(cString: $0) }), value.hasPrefix("/") else {
            return nil
        }
        return value
    }

    var exists: Bool { SystemFiles.isFolder(path) }

    /// Returns the store, and creates the directory if there is none; of the usual one also those that contain it.
    ///
    /// - Throws: `BLEError`.
    func store() throws(BLEError) -> BondStore {
        if !isNamed, !exists {
            var folder = ""
            for part in path.split(separator: "/").dropLast() {
                folder += "/" + part
                // What prevents this is reported for the last one.
                if !SystemFiles.isFolder(folder) { try? StoredFolder.create(folder) }
            }
        }
        CoreDumps.exclude()
        return try BondStore(directory: path)
    }

    /// Returns the place of what bonded centrals have subscribed to, `ADDRESS.clients` in the same directory: a
    /// subscription is worth nothing without the bond that it was made under, and no other adapter has that.
    func subscriptionStore(of adapter: BluetoothAddress) -> StateStore {
        StateStore(directory: path, identifier: String(adapter.description.filter { $0 != ":" }))
    }

    /// Returns what is stored for all adapters; nothing if the directory does not exist.
    ///
    /// - Throws: `BLEError`; `Failure` if the command line names a directory that does not exist.
    func stored() throws -> [StoredBonds] {
        guard exists else {
            guard isNamed else { return [] }
            if SystemFiles.isOther(thanSocket: path) {
                throw Failure(
                    message: "\(path) is not a directory", hint: "Name the directory that has the files of the bonds.",
                    status: .usage)
            }
            throw Failure(
                message: "\(path): no such directory", hint: "`blescan pair` with the same --bonds creates it.",
                status: .usage)
        }
        CoreDumps.exclude()
        return try BondStore(directory: path).all()
    }

    /// Returns the keys by which the private addresses of devices with a bond of `adapter` are recognized, by identity.
    ///
    /// - Throws: As `stored()`.
    func identityKeys(of adapter: BluetoothAddress?) throws -> [PeerID: Secret128] {
        let records = try stored().filter { $0.adapter == adapter }.flatMap(\.records)
        return Dictionary(
            records.compactMap { record in record.resolvingKey.map { (record.identity, $0.key) } },
            uniquingKeysWith: { first, _ in first })
    }
}

/// The bonds that a command uses.
struct BondUse: Sendable {
    let store: BondStore
    /// The adapter that has the bond with the peer.
    var adapter: BluetoothAddress?
    /// The peer's identity, if it is known by the address on the command line.
    var identity: PeerID?
    /// Whether the peer has a bond that cannot be read, and is to be paired again.
    var isLost = false

    /// The bonds that a command uses, and what its user should know of them.
    struct Finding: Sendable {
        var use: BondUse?
        var warnings: [String] = []
    }

    private static let adviceForDamage =
        "The device may have a bond there. Restore the file, pair again with --pair, or connect without encryption with "
        + "--no-bond."

    /// What to do about bonds that were moved aside.
    private static let adviceForMovedBonds =
        "The device may have a bond there: pair again with --pair, or connect without encryption with --no-bond. "
        + adviceAboutMovedFiles

    private static let adviceAboutMovedFiles =
        "If no bond is missing in `blescan bonds`, remove the files that it names."

    /// Finds out whether a command uses bonds: to pair, or because there is one with the peer. Nothing else needs the
    /// kernel's management of the adapter, which takes more rights.
    ///
    /// - Throws: `BLEError`, `Failure`.
    static func find(for peer: PeerArgument, _ options: LinkOptions, isPairing: Bool) throws -> Finding {
        switch peer {
        case .unix:
            guard isPairing else { return Finding() }
            throw Failure(
                message: "\(peer) is a socket and not a device: it cannot be paired with",
                hint: "Name a device by its address, or demo:lock.", status: .usage)
        case .demo(let name):
            guard isPairing || VirtualPeer(named: name)?.isProtected == true else { return Finding() }
            // The virtual device of the next command has other keys, and would refuse a bond with this one.
            return Finding(use: BondUse(store: .inMemory))
        case .address(let address, _):
            let directory = try BondDirectory(options.bonds)
            if isPairing, !directory.exists { return Finding(use: BondUse(store: try directory.store())) }
            return try find(
                address, in: directory, options.adapter?.selector ?? .first, isPairing: isPairing,
                adapters: (try? Central.adapters()) ?? [])
        }
    }

    /// Returns the stored bonds with all peers; `nil` if there are none.
    ///
    /// - Throws: `BLEError`, `Failure`.
    static func findAny(_ options: LinkOptions) throws -> BondUse? {
        let directory = try BondDirectory(options.bonds)
        guard try directory.stored().contains(where: { !$0.records.isEmpty }) else { return nil }
        return BondUse(store: try directory.store())
    }

    /// Finds the bond with an address among those of `adapters` that `selector` selects.
    ///
    /// - Throws: `BLEError` if the bonds of such an adapter cannot be read, or if some of them are damaged or were moved
    ///   aside, and the device has none of the others, unless it is to be paired: nobody knows then whether it has one,
    ///   and its link would not be encrypted.
    static func find(
        _ address: BluetoothAddress, in directory: BondDirectory, _ selector: AdapterSelector, isPairing: Bool,
        adapters: [AdapterDescription]
    ) throws -> Finding {
        let all = try directory.stored()
        let selected = adapters.filter { selector.matches($0) }
        for stored in all where selected.contains(where: { $0.address == stored.adapter }) {
            if let damage = stored.damage, damage.code != .unusableState { throw damage }
        }
        var finding = Finding(warnings: all.compactMap { ($0.damage ?? $0.movedAside)?.description })
        let places = all.filter { $0.hasBond(with: address) }
        let used = selected.lazy
            .compactMap { adapter in places.first { $0.adapter == adapter.address } }.first
        if used == nil, !isPairing {
            let own = all.filter { stored in selected.contains { $0.address == stored.adapter } }
            if let damage = own.lazy.compactMap(\.damage).first { throw damage.with(hint: Self.adviceForDamage) }
            if let moved = own.lazy.compactMap(\.movedAside).first {
                throw moved.with(hint: Self.adviceForMovedBonds)
            }
        }
        if used == nil, let other = places.first {
            finding.warnings.append(
                "the bond with \(address) belongs to the adapter \(other.adapter), which is not used here")
        }
        guard used != nil || isPairing else { return finding }
        finding.use = BondUse(
            store: try directory.store(), adapter: used?.adapter,
            identity: used?.records.first { $0.identity.address == address }?.identity,
            isLost: used == nil
                && all.contains { stored in
                    selected.contains { $0.address == stored.adapter }
                        && stored.lostPeers.contains { $0.address == address }
                })
        return finding
    }

    /// Expects that a device has no bond, because its link would not be encrypted.
    ///
    /// - Parameters:
    ///   - adapter: The adapter that makes the link; `nil` where it is not known.
    ///   - command: What connects to the device by its bond.
    /// - Throws: `Failure` if there is a bond, or may be one; `BLEError` if some bonds cannot be read or were moved aside.
    static func expectNone(
        with address: BluetoothAddress, of adapter: BluetoothAddress?, in directory: BondDirectory,
        otherwise command: EquivalentCommand
    ) throws {
        for stored in try directory.stored() where adapter == nil || stored.adapter == adapter {
            if let damage = stored.damage { throw damage }
            if stored.hasBond(with: address) {
                throw Failure(
                    message: "there is, or may be, a bond with \(address), and the table connects without encryption",
                    hint: "`\(command.text)` uses the bond.", status: .usage)
            }
            if let moved = stored.movedAside {
                let way = "connect without encryption with `\(command.text) --no-bond`. "
                throw moved.with(
                    hint: "The device may have a bond there: pair again with `blescan pair`, or " + way
                        + adviceAboutMovedFiles)
            }
        }
    }
}

extension StoredBonds {
    /// Returns whether there is a bond with the device that uses an address, as far as that can be seen: any private
    /// address may be a bonded device's, if the adapter has bonds with such devices.
    func hasBond(with address: BluetoothAddress) -> Bool {
        if records.contains(where: { $0.identity.address == address }) { return true }
        let kind = PeerID(address: address, type: .random).kind
        return kind == .resolvablePrivate && records.contains { $0.resolvingKey != nil }
    }
}
