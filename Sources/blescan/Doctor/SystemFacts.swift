import BLECore
import BLELinux

/// What was found out about this machine, before anything is judged.
struct SystemFacts: Hashable, Sendable {
    /// The kernel's release, such as `6.12.57-amd64`.
    var kernelRelease = ""
    /// For the report, from which it is taken out.
    var hostName = ""
    /// Whether the kernel has Bluetooth, whoever may use it.
    var hasBluetooth = false
    /// Whose container this is, such as `Docker`; `nil` outside of one.
    var container: String?
    /// Whether the network is another one than the first process's; `nil` where that may not be seen.
    var hasOwnNetwork: Bool?
    /// Whether a filter of system calls is set on this process.
    var hasFilter = false
    var privileges = Privileges(effective: 0)
    var switches: [RadioSwitch] = []
    /// The process of bluetoothd.
    var daemon: Int?
    /// Whether any program has a link's socket open, be it to connect.
    var hasLinkSockets = false
    var wirelessInterfaces: [WirelessInterface] = []
    /// The kernel's messages about Bluetooth; `nil` where they may not be read.
    var kernelMessages: [String]?
    var radio = RadioFacts()
    /// What came of `--connect`.
    var connection: ConnectionFacts?
}

/// A Wi-Fi interface.
struct WirelessInterface: Hashable, Sendable {
    let name: String
    let isUp: Bool
    /// The kernel's driver for it, such as `brcmfmac`.
    let driver: String?
}

/// How a connection went.
struct ConnectionFacts: Hashable, Sendable {
    let peer: String
    /// Milliseconds until the peer was heard; none where nobody had to look for it.
    var searching: Int64?
    /// Milliseconds from then until the link could be used, its MTU included.
    var connecting: Int64?
    /// Milliseconds for finding out what the peer has.
    var discovering: Int64?
    var mtu = 0
    var requests = 0
    var attributes = 0
    /// Whether the peer has a Database Hash, by which a reconnect is cheap.
    var hasHash = false
    /// Packets that answered nothing.
    var strays = 0
    var failure: String?
    var status = ExitStatus.done
}
