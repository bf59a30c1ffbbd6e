import BLELinux

/// The access that only root has, taken at the start of `doctor`, before it drops root's privileges.
///
/// The kernel checks these privileges when a file is opened. The log is read later, with few privileges left.
struct RootAccess: Sendable {
    /// The access of this process; `nil` if there were no privileges to drop.
    static let current = Lock<RootAccess?>(nil)

    /// The privileges at the start of the process.
    let privileges: Privileges
    /// Whether the network namespace is not the initial one: only root may read that link.
    let hasOwnNetwork: Bool?
    let kernelLog: KernelLog?
    /// The kernel's list of channels, which changes when an adapter is switched on.
    let channels: SystemFile?
    /// The kernel's lists of keys.
    let keyFiles: [KernelKeyFile]
    /// The switches of the radios, if they are to be changed.
    let switches: RadioSwitches?

    init(unblocking: Bool) {
        privileges = Privileges.current()
        hasOwnNetwork = SystemFacts.hasOwnNetwork(root: "")
        kernelLog = KernelLog()
        channels = SystemFile(Controllers.channelsPath)
        keyFiles = KernelKeyFile.all(root: "")
        switches = unblocking ? RadioSwitches() : nil
    }
}
