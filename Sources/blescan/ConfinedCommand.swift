import BLELinux
import BareBLE

/// A command that can use the radio: who is root for that alone gives up the rest before anything is opened.
protocol RadioCommand {
    /// The adapter that this command line uses, if it uses one.
    var radio: AdapterSelector? { get }
    /// Whether an option names a file.
    var namesFiles: Bool { get }
}

extension RadioCommand {
    /// Becomes the user who called sudo, and keeps CAP_NET_RAW and CAP_NET_ADMIN; the latter only until the adapter is on.
    ///
    /// To be called while the program has one thread, which the first suspension of its main function ends. The kernel asks for
    /// CAP_NET_RAW at each command to the controller: that one cannot go, or a scan could not be stopped.
    ///
    /// - Throws: `Failure` when the process is not allowed to become that user.
    func giveUpRights() throws(Failure) {
        guard let radio, Privileges.isRoot else { return }
        let caller = Privileges.Caller.ofSudo
        // Root keeps its ways to files that the user has named, and that are not root's.
        let forFiles: [Privileges.Capability] = caller == nil && namesFiles ? [.overrideFileAccess] : []
        do throws(SystemCallError) {
            try Privileges.keep(only: [.netRaw, .netAdmin] + forFiles, as: caller)
            if isOn(radio) { try Privileges.keep(only: [.netRaw] + forFiles) }
        } catch {
            let user = caller.map { "become the user \($0.user), who called sudo" } ?? "give up root's rights"
            throw Failure(
                message: "could not \(user): \(error). Run it as root without sudo, or without SUDO_UID: "
                    + "`sudo env -u SUDO_UID blescan …`.", status: .notPermitted)
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

extension Scan: RadioCommand {
    var radio: AdapterSelector? { adapter?.selector ?? .first }
    var namesFiles: Bool { recording.record != nil }
}

/// A command that connects to the peer it is given.
protocol ConnectingCommand: RadioCommand {
    var peer: PeerArgument { get }
    var options: ConnectionOptions { get }
}

extension ConnectingCommand {
    var radio: AdapterSelector? { peer.isInTheAir ? options.adapter?.selector ?? .first : nil }
    var namesFiles: Bool { options.cache != nil || options.recording.record != nil }
}

extension Explore: ConnectingCommand {}
extension Read: ConnectingCommand {}
extension Notify: ConnectingCommand {}
extension Write: ConnectingCommand {
    var namesFiles: Bool { value.file != nil || options.cache != nil || options.recording.record != nil }
}
