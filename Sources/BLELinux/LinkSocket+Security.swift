internal import CBluetooth
internal import Glibc

/// The security of a link as its socket has it.
///
///     level 1 | key size 1
///
/// It is no proof of a key's worth: after a reconnect the level is the one that was requested, and before and after the
/// link is encrypted both fields are meaningless. A link is encrypted if the level is 2 or more and the size 7 or more
/// while it is connected: kernel 6.1 reports the size of a key before it is used, and all of them the requested level
/// after the link's end.
///
/// Spec: `struct bt_security` of the Linux kernel.
package struct SocketSecurity: Hashable, Sendable {
    /// A level of security, as the kernel numbers it.
    package struct Level: RawRepresentable, Hashable, Comparable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// No encryption.
        package static let low = Level(rawValue: 1)
        /// Encryption.
        package static let medium = Level(rawValue: 2)
        /// Encryption with a key that is protected against a man in the middle.
        package static let high = Level(rawValue: 3)
        /// The same with LE Secure Connections and a key of 16 bytes.
        package static let fips = Level(rawValue: 4)

        package static func < (first: Level, second: Level) -> Bool { first.rawValue < second.rawValue }
    }

    package let level: Level
    /// The size of the key in bytes; 0 without encryption.
    package let keySize: UInt8

    package init(level: Level, keySize: UInt8) {
        self.level = level
        self.keySize = keySize
    }
}

extension LinkSocket {
    /// Returns the security of a connected socket.
    package static func security(of descriptor: Int32) throws(SystemCallError) -> SocketSecurity {
        var value = bt_security()
        let size = UInt32(MemoryLayout<bt_security>.size)
        try SystemCallError.check(
            "BT_SECURITY", unsafe ble_get_option(descriptor, SOL_BLUETOOTH, BT_SECURITY, &value, size))
        return SocketSecurity(level: .init(rawValue: value.level), keySize: value.key_size)
    }

    /// Requests a level of security. Before the connect it makes the kernel report the socket as connected once the
    /// link is encrypted with a key that it has; on a connected socket it begins at once.
    ///
    /// A key that is missing, or not worth the level, makes the kernel pair. On a connected socket nothing can be read
    /// or written until that has succeeded; if it fails, the socket is of no more use, and the kernel reports nothing.
    ///
    /// - Throws: `SystemCallError`, with `EINVAL` on a connected socket whose link has the level already, or whose
    ///   adapter has no Security Manager, because it was not powered on under management.
    package static func setSecurity(
        _ level: SocketSecurity.Level, of descriptor: Int32
    ) throws(SystemCallError) {
        var value = bt_security(level: level.rawValue, key_size: 0)
        let size = UInt32(MemoryLayout<bt_security>.size)
        try SystemCallError.check(
            "BT_SECURITY", unsafe ble_set_option(descriptor, SOL_BLUETOOTH, BT_SECURITY, &value, size))
    }

    /// Returns the level of security that the kernel wants for a channel, also while it is being opened; `nil` if that
    /// is no channel.
    ///
    /// It is the one that was requested, until the peer refuses the channel for lack of security (LE Credit Based
    /// Connection Response, result 0x0005 or 0x0008): then it is one more than the link has, and the kernel reports the
    /// refusal nowhere else. `BT_SECURITY` returns the level of the link.
    ///
    /// Source: `l2cap_le_connect_rsp` in net/bluetooth/l2cap_core.c, `l2cap_sock_getsockopt_old` in l2cap_sock.c.
    package static func wantedLevel(of descriptor: Int32) -> SocketSecurity.Level? {
        var mode: UInt32 = 0
        guard unsafe ble_get_option(descriptor, SOL_L2CAP, L2CAP_LM, &mode, 4) >= 0 else { return nil }
        if mode & UInt32(L2CAP_LM_SECURE) != 0 { return .high }
        return mode & UInt32(L2CAP_LM_ENCRYPT) != 0 ? .medium : .low
    }

    /// The security of the link.
    package func securityLevel() throws(SystemCallError) -> SocketSecurity {
        try Self.security(of: descriptor)
    }

    /// Requests a level of security; see `setSecurity(_:of:)`.
    package mutating func setSecurityLevel(_ level: SocketSecurity.Level) throws(SystemCallError) {
        try Self.setSecurity(level, of: descriptor)
    }
}
