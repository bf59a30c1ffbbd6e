import BLECore
import BLELinux

/// The facts about this machine, before any judgement.
struct SystemFacts: Hashable, Sendable {
    /// The kernel's release, such as `6.12.57-amd64`.
    var kernelRelease = ""
    /// For the report, from which it is removed.
    var hostName = ""
    /// Whether the kernel has Bluetooth, even if this process may not use it.
    var hasBluetooth = false
    /// The container, such as `Docker`; `nil` outside of one.
    var container: String?
    /// Whether the network namespace is not the initial one; `nil` without permission to see that.
    var hasOwnNetwork: Bool?
    /// Whether this process has a system call filter.
    var hasFilter = false
    var privileges = Privileges(effective: 0)
    var switches: [RadioSwitch] = []
    /// The process of bluetoothd.
    var daemon: Int?
    /// Whether any program has a link's socket open, even if only to connect.
    var hasLinkSockets = false
    /// The addresses of the adapters that the kernel can pair with; `nil` without permission to see that.
    var pairingAddresses: Set<BluetoothAddress>?
    /// The bonds of this user; `nil` if there is no directory of bonds.
    var bonds: BondFacts?
    /// The addresses of the peers whose long term keys the kernel has, by the name of the adapter; `nil` without
    /// permission to see that.
    var keyOwners: [String: Set<BluetoothAddress>]?
    var wirelessInterfaces: [WirelessInterface] = []
    /// The kernel's messages about failing controllers, and about their identity; `nil` without permission to read
    /// them.
    var kernelMessages: [String]?
    /// The USB devices of the adapters on USB, by the name of the adapter; those without readable files are missing.
    var usbDevices: [String: USBDevice] = [:]
    /// The adapters whose coded PHY the kernel's driver takes for broken, as the identifiers of their devices show.
    var codedPHYDefects: Set<String> = []
    /// The board's name in the device tree, such as `Raspberry Pi 4 Model B Rev 1.1`; `nil` on machines without one.
    var board: String?
    var radio = RadioFacts()
    /// The result of `--connect`.
    var connection: ConnectionFacts?
}

/// The bonds of a user, without keys.
struct BondFacts: Hashable, Sendable {
    struct Bond: Hashable, Sendable {
        let peer: PeerID
        let adapter: BluetoothAddress
        let isRejected: Bool
        /// Whether the peer may be on air with private addresses, which the bond has the key of.
        var hasPrivateAddresses = false
    }

    /// Something of a bond that cannot be used.
    struct Fault: Hashable, Sendable {
        let peer: PeerID
        /// Whether only the peer's private addresses are concerned.
        let isOfAddresses: Bool
        let reason: String
    }

    let directory: String
    var bonds: [Bond] = []
    var faults: [Fault] = []
    /// Why files, or some of their lines, are not used.
    var damage: [String] = []
    /// The files that were moved aside, by their names.
    var movedFiles: [String] = []
    /// Why the directory is not used, and the remedy.
    var failure: String?
    var remedy: String?
}

/// A Wi-Fi interface.
struct WirelessInterface: Hashable, Sendable {
    let name: String
    let isUp: Bool
    /// The kernel's driver for it, such as `brcmfmac`.
    let driver: String?
}

/// The measurements of a connection.
struct ConnectionFacts: Hashable, Sendable {
    let peer: String
    /// Milliseconds until the peer was heard; `nil` if it was not scanned for.
    var searching: Int64?
    /// Milliseconds from then until the link could be used, including the MTU exchange.
    var connecting: Int64?
    /// Milliseconds for the discovery.
    var discovering: Int64?
    var mtu = 0
    var requests = 0
    var attributes = 0
    /// Whether the link was encrypted with the key of a bond before its first byte.
    var isEncrypted = false
    /// Whether the peer has a Database Hash, by which a reconnect is cheap.
    var hasHash = false
    /// The number of unexpected responses.
    var strays = 0
    var failure: String?
    var status = ExitStatus.done
}
