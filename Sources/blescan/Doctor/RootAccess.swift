import BLELinux

/// What only root may open or see, taken at the start of `doctor`, before it gives up root's rights.
///
/// The kernel asks for these rights when a file is opened. What is in the log is read later, with hardly any rights left.
struct RootAccess: Sendable {
    /// That of this process; `nil` where it had nothing to give up.
    static let current = Lock<RootAccess?>(nil)

    /// What the process was started with.
    let privileges: Privileges
    /// Whether the network is another one than the first process's: its link may be followed by root alone.
    let hasOwnNetwork: Bool?
    let kernelLog: KernelLog?
    /// The switches of the radios, where they are to be thrown.
    let switches: RadioSwitches?

    init(unblocking: Bool) {
        privileges = Privileges.current()
        hasOwnNetwork = SystemFacts.hasOwnNetwork(root: "")
        kernelLog = KernelLog()
        switches = unblocking ? RadioSwitches() : nil
    }
}
