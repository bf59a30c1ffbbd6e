internal import CBluetooth

/// The Bluetooth operations that the kernel permits this process.
///
/// Access to a peer's attributes needs nothing; scanning, commands and LE events need CAP_NET_RAW; powering and
/// pairing need CAP_NET_ADMIN. Bluetooth checks them in the machine's initial user namespace: those of a container do
/// not count.
package struct Privileges: Hashable, Sendable {
    /// A capability for Bluetooth, or for a file that the user names.
    package enum Capability: UInt64, Hashable, Sendable {
        /// Reading and writing files of every user; not for Bluetooth.
        case overrideFileAccess = 1
        /// Powering adapters, pairing, the management interface.
        case netAdmin = 12
        /// Scanning, LE events, sending commands.
        case netRaw = 13

        /// The kernel's name of the capability.
        package var name: String {
            switch self {
            case .overrideFileAccess: "CAP_DAC_OVERRIDE"
            case .netAdmin: "CAP_NET_ADMIN"
            case .netRaw: "CAP_NET_RAW"
            }
        }
    }

    /// The effective capabilities, a bit each.
    package let effective: UInt64
    /// A Boolean value that indicates whether the process is in the machine's initial user namespace.
    package let isInInitialUserNamespace: Bool

    package init(effective: UInt64, isInInitialUserNamespace: Bool = true) {
        self.effective = effective
        self.isInInitialUserNamespace = isInInitialUserNamespace
    }

    /// Returns the privileges of this process; none if the files cannot be read.
    package static func current(root: String = "/proc/self") -> Privileges {
        Privileges(
            effective: SystemFiles.text("\(root)/status").map(effectiveCapabilities) ?? 0,
            isInInitialUserNamespace: SystemFiles.text("\(root)/uid_map").map(isWholeRange) ?? true)
    }

    /// A Boolean value that indicates whether the program has rights that the user who started it lacks, by a
    /// set-user-ID bit or capabilities of its file. Its environment and its directories are that user's.
    package static var areFromFile: Bool { ble_is_secure_execution() != 0 }

    /// Returns whether the process has a capability that Bluetooth accepts.
    package func has(_ capability: Capability) -> Bool {
        isInInitialUserNamespace && effective & 1 << capability.rawValue != 0
    }

    /// Returns the value of the line `CapEff:`.
    static func effectiveCapabilities(_ status: String) -> UInt64 {
        for line in status.split(separator: "\n") where line.hasPrefix("CapEff:") {
            return UInt64(line.dropFirst(7).filter { !$0.isWhitespace }, radix: 16) ?? 0
        }
        return 0
    }

    /// Returns whether every user identity maps to itself, as only the initial namespace does by itself.
    static func isWholeRange(_ map: String) -> Bool {
        map.split(whereSeparator: \.isWhitespace).map(String.init) == ["0", "0", "4294967295"]
    }
}
