/// What the kernel lets this process do with Bluetooth.
///
/// Talking to a peer's attributes needs nothing; scanning, commands and LE events need CAP_NET_RAW; powering and pairing need
/// CAP_NET_ADMIN. Bluetooth asks for them in the machine's own user namespace: inside a container's they do not count.
package struct Privileges: Hashable, Sendable {
    /// A capability that Bluetooth, or a file that the user names, asks for.
    package enum Capability: UInt64, Hashable, Sendable {
        /// Reading and writing files of every user; nothing of Bluetooth's.
        case overrideFileAccess = 1
        /// Powering adapters, pairing, the management interface.
        case netAdmin = 12
        /// Scanning, LE events, sending commands.
        case netRaw = 13

        /// The kernel's name for it.
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
    /// Whether the process is in the machine's own user namespace.
    package let isInInitialUserNamespace: Bool

    package init(effective: UInt64, isInInitialUserNamespace: Bool = true) {
        self.effective = effective
        self.isInInitialUserNamespace = isInInitialUserNamespace
    }

    /// Reads what this process may do; nothing, when the files cannot be read.
    package static func current(root: String = "/proc/self") -> Privileges {
        Privileges(
            effective: SystemFiles.text("\(root)/status").map(effectiveCapabilities) ?? 0,
            isInInitialUserNamespace: SystemFiles.text("\(root)/uid_map").map(isWholeRange) ?? true)
    }

    /// Whether the process has a capability that Bluetooth accepts.
    package func has(_ capability: Capability) -> Bool {
        isInInitialUserNamespace && effective & 1 << capability.rawValue != 0
    }

    /// The value of the line `CapEff:`.
    static func effectiveCapabilities(_ status: String) -> UInt64 {
        for line in status.split(separator: "\n") where line.hasPrefix("CapEff:") {
            return UInt64(line.dropFirst(7).filter { !$0.isWhitespace }, radix: 16) ?? 0
        }
        return 0
    }

    /// Whether every user identity maps to itself, as only the first namespace does by itself.
    static func isWholeRange(_ map: String) -> Bool {
        map.split(whereSeparator: \.isWhitespace).map(String.init) == ["0", "0", "4294967295"]
    }
}
