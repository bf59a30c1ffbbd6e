import BLELinux
import BareBLE

/// A command that declares the privileges it needs; all others are dropped before anything is opened.
protocol ConfinedCommand {
    /// The adapter that this command line uses, if any.
    var radio: AdapterSelector? { get }
    /// Whether an argument names a file.
    var namesFiles: Bool { get }
    /// Whether the peer is a socket in the file system.
    var namesSocket: Bool { get }
    /// Whether the adapter is switched on first, and CAP_NET_ADMIN then dropped.
    var switchesAdapterOn: Bool { get }
    /// The capabilities that the radio requires at the beginning.
    var forRadio: [Privileges.Capability] { get }
    /// Those of them that it requires to the end, once the adapter is on.
    var keptForRadio: [Privileges.Capability] { get }
    /// Opens, with all privileges, what only root may open; it must not contain foreign bytes.
    func openWhatRootAloneMay()
    /// Finds out which bonds the command uses, if any, with the rights of the user alone. Failures are reported later.
    func findBonds() -> BondUse?
}

extension ConfinedCommand {
    var namesSocket: Bool { false }
    var switchesAdapterOn: Bool { true }
    var forRadio: [Privileges.Capability] { [.netRaw, .netAdmin] }
    var keptForRadio: [Privileges.Capability] { [.netRaw] }
    func openWhatRootAloneMay() {}
    func findBonds() -> BondUse? { nil }

    /// Becomes the user who ran sudo, doas or pkexec, and drops all capabilities except those for the radio:
    /// CAP_NET_RAW, and CAP_NET_ADMIN until the adapter is on, and the kernel's management interface open where bonds
    /// are used. A user who is not root, but has capabilities, drops them in the same way.
    ///
    /// Call it while the program has one thread, which ends with the first suspension of its main function. The kernel
    /// checks CAP_NET_RAW at each command to the controller: that one must be kept, or a scan could not be stopped.
    ///
    /// - Throws: `Failure` if root is not allowed to become that user.
    func giveUpRights() throws(Failure) {
        let isRoot = Privileges.isRoot
        guard isRoot || Privileges.current().effective != 0 else { return }
        // The socket may be root's, and its server may check the caller: root stays root for it.
        let caller = isRoot && !namesSocket ? Privileges.Caller.current : nil
        // Root keeps its access to files and sockets that the user has named, and that are not root's.
        let forFiles: [Privileges.Capability] =
            caller == nil && (namesFiles || namesSocket) ? [.overrideFileAccess] : []
        openWhatRootAloneMay()
        do throws(SystemCallError) {
            try Privileges.keep(only: (radio == nil ? [] : forRadio) + forFiles, as: caller)
            if let radio, switchesAdapterOn, Privileges.current().has(.netAdmin) {
                let bonds = findBonds()
                let adapter = bonds?.adapter.map { AdapterSelector.address($0) } ?? radio
                if isOn(adapter), bonds == nil || ManagementAccess.open() {
                    try Privileges.keep(only: keptForRadio + forFiles)
                }
            }
        } catch {
            // A service with capabilities may be denied the system calls that drop them.
            guard isRoot else { return }
            guard let caller else {
                throw Failure(message: "could not drop root's privileges: \(error)", status: .notPermitted)
            }
            let (tool, variable) = (caller.tool.rawValue, caller.tool.variable)
            throw Failure(
                message: "could not become the user \(caller.user), who ran \(tool): \(error)",
                hint: "Run it as root without \(tool), or without \(variable): `\(tool) env -u \(variable) blescan …`.",
                status: .notPermitted)
        }
    }

    /// Switches the adapter on, and returns whether it is. If it is not, the command is permitted to try again, and
    /// reports why it cannot.
    private func isOn(_ radio: AdapterSelector) -> Bool {
        guard let adapter = (try? Central.adapters())?.first(where: { radio.matches($0) }),
            (try? Controllers.powerUp(UInt16(clamping: adapter.index))) != nil
        else { return false }
        return (try? Central.adapters())?.first { $0.index == adapter.index }?.isUp == true
    }
}

extension Scan: ConfinedCommand {
    var radio: AdapterSelector? { adapter?.selector ?? .first }
    var namesFiles: Bool { recording.namesFile || keys.file != nil }
    /// A step of recovery may switch the adapter off and on, at any time.
    var keptForRadio: [Privileges.Capability] {
        recover?.endsLinks == true ? [.netRaw, .netAdmin] : [.netRaw]
    }
}

/// A command that connects to the peer in its arguments.
protocol ConnectingCommand: ConfinedCommand {
    var peer: PeerDesignation { get }
    var connection: ConnectionOptions { get }
    /// Whether the packets of the link go to a file.
    var recordsToFile: Bool { get }
}

extension ConnectingCommand {
    var radio: AdapterSelector? { peer.isInTheAir ? connection.adapter?.selector ?? .first : nil }
    var namesFiles: Bool { connection.cache != nil || recordsToFile }
    var namesSocket: Bool { peer.isSocket }
    func findBonds() -> BondUse? { connection.bonds(with: peer) }
}

extension ConnectionOptions {
    /// Returns the bonds that a link with a peer uses, if any.
    fileprivate func bonds(with peer: PeerDesignation) -> BondUse? {
        guard !ignoresBonds else { return nil }
        return switch peer {
        case .known(let peer): try? BondUse.find(for: peer, link, isPairing: pair).use
        // It may turn out to be one of the devices with a bond.
        case .advertised: try? BondUse.findAny(link)
        }
    }
}

/// A command that prints the results of operations on its peer.
protocol OperatingCommand: ConnectingCommand {
    var options: OperationOptions { get }
}

extension OperatingCommand {
    var connection: ConnectionOptions { options.connection }
    var recordsToFile: Bool { options.output.recording.namesFile }
}

extension Pair: ConfinedCommand {
    var radio: AdapterSelector? { peer.isInTheAir ? link.adapter?.selector ?? .first : nil }
    var namesFiles: Bool { output.recording.namesFile }
    func findBonds() -> BondUse? { try? BondUse.find(for: peer, link, isPairing: true).use }
}

extension Forget: ConfinedCommand {
    var radio: AdapterSelector? { adapter?.selector ?? .first }
    var namesFiles: Bool { false }
    /// The kernel checks CAP_NET_ADMIN where the management interface is opened. That from the start serves the first
    /// bond; each other one, as with another adapter, opens its own.
    var keptForRadio: [Privileges.Capability] {
        let found = (try? targets(in: BondDirectory(bonds))) ?? []
        return found.count > 1 ? [.netRaw, .netAdmin] : [.netRaw]
    }
    func findBonds() -> BondUse? {
        guard let directory = try? BondDirectory(bonds), let target = try? targets(in: directory).first,
            let store = try? directory.store()
        else { return nil }
        return BondUse(store: store, adapter: target.adapter, identity: target.identity)
    }
}

extension Serve: ConfinedCommand {
    var radio: AdapterSelector? { socket == nil ? adapter?.selector ?? .first : nil }
    var namesFiles: Bool { device != "-" && !device.hasPrefix("demo:") }
    /// Root may have been asked for to create the socket where only root may.
    var namesSocket: Bool { socket != nil }

    /// Accepting and serving need none. Advertising needs CAP_NET_RAW. So do bonds: the end of a link of a central that
    /// may not have its key is a command to the controller, and so is proven that it has it.
    var keptForRadio: [Privileges.Capability] { isAdvertising || usesBonds ? [.netRaw] : [] }
    var forRadio: [Privileges.Capability] { keptForRadio + [.netAdmin] }

    func findBonds() -> BondUse? {
        guard usesBonds, let store = try? BondDirectory(bonds).store() else { return nil }
        return BondUse(store: store)
    }
}

extension Advertise: ConfinedCommand {
    var radio: AdapterSelector? { adapter?.selector ?? .first }
    var namesFiles: Bool { false }
    /// The kernel checks CAP_NET_ADMIN where the management interface is opened, which a lost one is again.
    var keptForRadio: [Privileges.Capability] { management ? [.netRaw, .netAdmin] : [.netRaw] }
}

extension Bonds: ConfinedCommand {
    var radio: AdapterSelector? { nil }
    var namesFiles: Bool { false }
}

extension Browse: ConnectingCommand {
    var connection: ConnectionOptions { options }
    var recordsToFile: Bool { record != nil }
}

extension Explore: OperatingCommand {}
extension Talk: OperatingCommand {
    /// Those of later operations, from standard input, are not known yet.
    var namesFiles: Bool {
        file != nil || connection.cache != nil || recordsToFile
            || operation.contains { (try? TalkOperation($0))?.namesFile == true }
    }
}
extension Read: OperatingCommand {}
extension Notify: OperatingCommand {}

extension Watch: ConfinedCommand {
    /// Without a peer it scans.
    var radio: AdapterSelector? {
        peer?.isInTheAir == false ? nil : options.connection.adapter?.selector ?? .first
    }
    var namesFiles: Bool { options.connection.cache != nil || options.output.recording.namesFile }
    var namesSocket: Bool { peer?.isSocket ?? false }
    func findBonds() -> BondUse? { peer.flatMap { options.connection.bonds(with: $0) } }
}

extension Write: OperatingCommand {
    var namesFiles: Bool { value.file != nil || connection.cache != nil || recordsToFile }
}

/// A command that reads input from any source.
protocol ReadingCommand: ConfinedCommand {
    var file: String? { get }
    var keys: KeyOptions { get }
}

extension ReadingCommand {
    var radio: AdapterSelector? { nil }
    var namesFiles: Bool { file.map { $0 != "-" } ?? false || keys.file != nil }
}

extension Decode: ReadingCommand {}
extension Replay: ReadingCommand {}

extension SelfTest: ConfinedCommand {
    /// A virtual adapter has no radio.
    var radio: AdapterSelector? {
        if case .demo? = adapter { return nil }
        return adapter?.selector ?? .first
    }
    var namesFiles: Bool { recording.record != nil || adapter?.isFile == true }
    /// It switches the adapter itself, in the middle.
    var switchesAdapterOn: Bool { false }

    func openWhatRootAloneMay() {
        guard radio != nil else { return }
        RootAccess.current.withLock { $0 = RootAccess(unblocking: false) }
    }
}

extension Doctor: ConfinedCommand {
    /// A simulated machine has no radio.
    var radio: AdapterSelector? { root == nil ? adapter?.selector ?? .first : nil }
    var namesFiles: Bool { root != nil || recording.record != nil }
    var namesSocket: Bool { connect?.isSocket ?? false }
    /// It changes only what is named.
    var switchesAdapterOn: Bool { false }

    /// Queries and listening need CAP_NET_RAW; switching on or off and unblocking need CAP_NET_ADMIN.
    var forRadio: [Privileges.Capability] {
        fix.contains(.up) || fix.contains(.rfkill) || fix.contains(.cycle) ? [.netRaw, .netAdmin] : [.netRaw]
    }

    func openWhatRootAloneMay() {
        guard root == nil else { return }
        RootAccess.current.withLock { $0 = RootAccess(unblocking: fix.contains(.rfkill)) }
    }
}
