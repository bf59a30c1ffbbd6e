import BLELinux
import BareBLE

/// A command that says what it needs of root's rights: who has more gives up the rest before anything is opened.
protocol ConfinedCommand {
    /// The adapter that this command line uses, if it uses one.
    var radio: AdapterSelector? { get }
    /// Whether an argument names a file.
    var namesFiles: Bool { get }
    /// Whether the peer is a socket in the file system.
    var namesSocket: Bool { get }
    /// Whether the adapter is switched on before anything else, and CAP_NET_ADMIN then given up.
    var switchesAdapterOn: Bool { get }
    /// What the radio asks for at the beginning.
    var forRadio: [Privileges.Capability] { get }
    /// Opens, with all rights, what nobody else may open; nothing in it may be foreign bytes.
    func openWhatRootAloneMay()
}

extension ConfinedCommand {
    var namesSocket: Bool { false }
    var switchesAdapterOn: Bool { true }
    var forRadio: [Privileges.Capability] { [.netRaw, .netAdmin] }
    func openWhatRootAloneMay() {}

    /// Becomes the user who called sudo, doas or pkexec, and gives up all capabilities but those that the radio asks for: CAP_NET_RAW, and until
    /// the adapter is on CAP_NET_ADMIN. Who is not root, but has capabilities, gives them up in the same way.
    ///
    /// To be called while the program has one thread, which the first suspension of its main function ends. The kernel asks for
    /// CAP_NET_RAW at each command to the controller: that one cannot go, or a scan could not be stopped.
    ///
    /// - Throws: `Failure` when root is not allowed to become that user.
    func giveUpRights() throws(Failure) {
        let isRoot = Privileges.isRoot
        guard isRoot || Privileges.current().effective != 0 else { return }
        // The socket may be root's, and its server may ask who has called: root stays root for it.
        let caller = isRoot && !namesSocket ? Privileges.Caller.current : nil
        // Root keeps its ways to files and sockets that the user has named, and that are not root's.
        let forFiles: [Privileges.Capability] =
            caller == nil && (namesFiles || namesSocket) ? [.overrideFileAccess] : []
        openWhatRootAloneMay()
        do throws(SystemCallError) {
            try Privileges.keep(only: (radio == nil ? [] : forRadio) + forFiles, as: caller)
            if let radio, switchesAdapterOn, Privileges.current().has(.netAdmin), isOn(radio) {
                try Privileges.keep(only: [.netRaw] + forFiles)
            }
        } catch {
            // Whoever has given capabilities to a service may forbid it the system calls that give them up.
            guard isRoot else { return }
            guard let caller else {
                throw Failure(message: "could not give up root's rights: \(error).", status: .notPermitted)
            }
            let (tool, variable) = (caller.tool.rawValue, caller.tool.variable)
            throw Failure(
                message:
                    "could not become the user \(caller.user), who called \(tool): \(error). Run it as root without "
                    + "\(tool), or without \(variable): `\(tool) env -u \(variable) blescan …`.", status: .notPermitted)
        }
    }

    /// Switches the adapter on, and answers whether it is. Where it is not, the command has a right to try again, and tells why it
    /// cannot.
    private func isOn(_ radio: AdapterSelector) -> Bool {
        guard let index = (try? Controllers.list())?.first(where: radio.matches)?.index,
            (try? Controllers.powerUp(index)) != nil
        else { return false }
        return (try? Controllers.info(index))?.isUp == true
    }
}

extension Scan: ConfinedCommand {
    var radio: AdapterSelector? { adapter?.selector ?? .first }
    var namesFiles: Bool { recording.record != nil }
}

/// A command that connects to the peer it is given.
protocol ConnectingCommand: ConfinedCommand {
    var peer: PeerArgument { get }
    var options: ConnectionOptions { get }
}

extension ConnectingCommand {
    var radio: AdapterSelector? { peer.isInTheAir ? options.adapter?.selector ?? .first : nil }
    var namesFiles: Bool { options.cache != nil || options.recording.record != nil }
    var namesSocket: Bool { peer.isSocket }
}

extension Explore: ConnectingCommand {}
extension Read: ConnectingCommand {}
extension Notify: ConnectingCommand {}
extension Write: ConnectingCommand {
    var namesFiles: Bool { value.file != nil || options.cache != nil || options.recording.record != nil }
}

/// A command that reads what may come from anybody.
protocol ReadingCommand: ConfinedCommand {
    var file: String? { get }
}

extension ReadingCommand {
    var radio: AdapterSelector? { nil }
    var namesFiles: Bool { file.map { $0 != "-" } ?? false }
}

extension Decode: ReadingCommand {}
extension Replay: ReadingCommand {}

extension Doctor: ConfinedCommand {
    /// A pretended machine has no radio.
    var radio: AdapterSelector? { root == nil ? adapter?.selector ?? .first : nil }
    var namesFiles: Bool { root != nil || recording.record != nil }
    var namesSocket: Bool { connect?.isSocket ?? false }
    /// It changes nothing that is not named.
    var switchesAdapterOn: Bool { false }

    /// Asking and listening take CAP_NET_RAW; switching on and unblocking take CAP_NET_ADMIN.
    var forRadio: [Privileges.Capability] {
        fix.contains(.up) || fix.contains(.rfkill) ? [.netRaw, .netAdmin] : [.netRaw]
    }

    func openWhatRootAloneMay() {
        guard root == nil else { return }
        RootAccess.current.withLock { $0 = RootAccess(unblocking: fix.contains(.rfkill)) }
    }
}
