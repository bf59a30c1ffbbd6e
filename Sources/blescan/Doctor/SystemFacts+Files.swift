import BLECore
import BLELinux
import BareBLE

extension SystemFacts {
    /// Reads the kernel's files; `root` is the prefix of all their names, and `access` was opened before privileges
    /// were dropped.
    ///
    /// - Parameter directory: The directory of the bonds, in place of the usual one of the user.
    init(root: String, bonds directory: String? = nil, access: RootAccess? = nil) {
        kernelRelease = SystemFiles.text(root + "/proc/sys/kernel/osrelease") ?? "unknown"
        hostName = SystemFiles.text(root + "/proc/sys/kernel/hostname") ?? ""
        hasBluetooth =
            SystemFiles.names(in: root + "/sys/module").contains("bluetooth")
            || SystemFiles.names(in: root + "/sys/class").contains("bluetooth")
        container = Self.container(root)
        hasOwnNetwork = access?.hasOwnNetwork ?? Self.hasOwnNetwork(root: root)
        let status = SystemFiles.text(root + "/proc/self/status") ?? ""
        hasFilter = status.split(separator: "\n").contains { $0.hasPrefix("Seccomp:") && $0.hasSuffix("2") }
        privileges = access?.privileges ?? Privileges.current(root: root + "/proc/self")
        switches = RadioSwitch.bluetooth(root: root + "/sys/class/rfkill")
        daemon = SystemFiles.names(in: root + "/proc").compactMap(Int.init).sorted().first { number in
            SystemFiles.text("\(root)/proc/\(number)/comm") == "bluetoothd"
        }
        // The first line is the heading.
        let links = SystemFiles.text(root + "/proc/net/l2cap") ?? ""
        hasLinkSockets = links.split(separator: "\n").count > 1
        let channels = access.map { $0.channels?.text } ?? SystemFiles.text(root + Controllers.channelsPath)
        pairingAddresses = channels.flatMap(Controllers.pairingAddresses(inChannels:))
        bonds =
            if let directory {
                BondFacts(directory, root: "", adapters: (try? Controllers.list()) ?? [])
            } else {
                (root.isEmpty ? BondDirectory.usual() : BondDirectory.ofRoot).flatMap {
                    BondFacts($0, root: root, adapters: root.isEmpty ? (try? Controllers.list()) ?? [] : [])
                }
            }
        let keyFiles = access.map { $0.keyFiles } ?? KernelKeyFile.all(root: root)
        if !keyFiles.isEmpty {
            keyOwners = Dictionary(keyFiles.map { ($0.adapter, $0.owners) }, uniquingKeysWith: { first, _ in first })
        }
        wirelessInterfaces = Self.wirelessInterfaces(root + "/sys/class/net")
        let log = access?.kernelLog ?? KernelLog(root + "/dev/kmsg")
        kernelMessages = log?.messages { KernelTrouble($0) != nil || ControllerLog.isIdentity($0) }
        let adapters = root + "/sys/class/bluetooth"
        for name in SystemFiles.names(in: adapters) {
            usbDevices[name] = USBDevice(adapter: "\(adapters)/\(name)")
            if CodedPHYDefect.isKnown(of: name, root: root) { codedPHYDefects.insert(name) }
        }
        // It ends with a zero byte.
        board = SystemFiles.text(root + "/proc/device-tree/model").map { String($0.prefix { $0 != "\0" }) }
    }

    /// Returns whether the network namespace is not the initial one; `nil` without permission to see that.
    static func hasOwnNetwork(root: String) -> Bool? {
        guard let own = SystemFiles.destination(ofLink: root + "/proc/self/ns/net"),
            let first = SystemFiles.destination(ofLink: root + "/proc/1/ns/net")
        else { return nil }
        return own != first
    }

    private static func container(_ root: String) -> String? {
        if SystemFiles.text(root + "/.dockerenv") != nil { return "Docker" }
        if SystemFiles.text(root + "/run/.containerenv") != nil { return "Podman" }
        if let name = SystemFiles.text(root + "/run/systemd/container"), !name.isEmpty { return name }
        let groups = SystemFiles.text(root + "/proc/1/cgroup") ?? ""
        let signs = [("docker", "Docker"), ("kubepods", "Kubernetes"), ("libpod", "Podman"), ("/lxc", "LXC")]
        return signs.first { groups.contains($0.0) }?.1
    }

    private static func wirelessInterfaces(_ folder: String) -> [WirelessInterface] {
        SystemFiles.names(in: folder).compactMap { name in
            let parts = SystemFiles.names(in: "\(folder)/\(name)")
            guard parts.contains("wireless") || parts.contains("phy80211") else { return nil }
            let driver = SystemFiles.destination(ofLink: "\(folder)/\(name)/device/driver")
            return WirelessInterface(
                name: name, isUp: SystemFiles.text("\(folder)/\(name)/operstate") == "up",
                driver: driver?.split(separator: "/").last.map(String.init))
        }
    }
}

extension BondFacts {
    /// Reads a directory of bonds; `nil` if there is none. Its name in the findings is without `root`.
    ///
    /// - Parameter adapters: The adapters of this machine, if they are known: bonds may be for other hardware than the
    ///   adapter with their address is.
    init?(_ directory: String, root: String, adapters: [ControllerInfo] = []) {
        guard SystemFiles.isFolder(root + directory) else { return nil }
        self.init(directory: directory)
        do throws(BLEError) {
            let store = try BondStore(directory: root + directory)
            CoreDumps.exclude()
            movedFiles = try store.namesOfMovedFiles()
            for stored in try store.all() {
                if let reason = stored.damage?.reason { damage.append("the bonds of \(stored.adapter): \(reason)") }
                bonds += stored.bonds.map {
                    Bond(
                        peer: $0.peer, adapter: $0.adapter, isRejected: $0.rejectedSince != nil,
                        hasPrivateAddresses: $0.resolvesPrivateAddresses)
                }
                let hardware = adapters.first { $0.address == stored.adapter }.map {
                    AdapterHardware.identifier(of: $0, root: root)
                }
                for omission in BondRules.keyLists(of: stored.records, adapter: hardware).omissions {
                    // No link of this side uses the keys for the other role, and an absent adapter is no other one.
                    if omission.part == .peripheralKey || hardware == nil && omission.reason == .otherAdapter {
                        continue
                    }
                    faults.append(
                        Fault(
                            peer: omission.identity, isOfAddresses: omission.part == .identityKey,
                            reason: omission.reason.description))
                }
            }
        } catch {
            failure = error.reason
            remedy = error.hint?.replacing(root + directory, with: directory)
        }
    }
}

/// The kernel's list of the long term keys of one adapter, in debugfs, which only root may read.
struct KernelKeyFile: Sendable {
    let adapter: String
    private let file: SystemFile

    /// Opens the lists of all adapters, as far as this process may.
    static func all(root: String) -> [KernelKeyFile] {
        let folder = root + "/sys/kernel/debug/bluetooth"
        return SystemFiles.names(in: folder).compactMap { name in
            guard name.hasPrefix("hci") else { return nil }
            return SystemFile("\(folder)/\(name)/long_term_keys").map { KernelKeyFile(adapter: name, file: $0) }
        }
    }

    /// The peers with a key. The keys themselves, which are in the same lines, are not kept.
    var owners: Set<BluetoothAddress> {
        Set(
            (file.text ?? "").split(separator: "\n").compactMap { line in
                line.split(separator: " ").first.flatMap { BluetoothAddress(String($0)) }
            })
    }
}
