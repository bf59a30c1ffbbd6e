package import BLECore
internal import CBluetooth
internal import Glibc

/// The endpoint of a descriptor that was passed to this process.
package enum LinkEndpoint: Hashable, Sendable {
    /// The ATT channel of a radio link.
    case radio(own: BluetoothAddress, peer: PeerID)
    /// A SEQPACKET socket of this machine, which stands in for one.
    case local
}

extension LinkSocket {
    /// Returns whether `descriptor` is open.
    package static func isOpen(_ descriptor: Int32) -> Bool {
        descriptor >= 0 && fcntl(descriptor, F_GETFD) >= 0
    }

    /// Returns whether `descriptor` stays open in a program that this one executes.
    package static func livesAcrossExec(_ descriptor: Int32) -> Bool {
        let flags = fcntl(descriptor, F_GETFD)
        return flags >= 0 && flags & FD_CLOEXEC == 0
    }

    /// Sets whether `descriptor` stays open in a program that this one executes.
    package static func setLivesAcrossExec(_ lives: Bool, _ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, lives ? 0 : FD_CLOEXEC)
    }

    /// Returns the endpoint of a socket that another owner connected.
    ///
    /// - Throws: `SystemCallError`, with `EPROTOTYPE` for a socket that carries no ATT packets, and `ENOTCONN` for one
    ///   without a link.
    package func endpoint() throws(SystemCallError) -> LinkEndpoint {
        guard try option(SO_TYPE) == Int32(SOCK_SEQPACKET.rawValue) else { throw .wrongKind("SO_TYPE") }
        if isHungUp { throw SystemCallError(call: "getpeername", errno: ENOTCONN) }
        switch try option(SO_DOMAIN) {
        case AF_UNIX:
            try SystemCallError.check("getpeername", ble_peer_name(descriptor))
            return .local
        case AF_BLUETOOTH:
            guard try option(SO_PROTOCOL) == BTPROTO_L2CAP else { throw .wrongKind("SO_PROTOCOL") }
            let size = UInt32(MemoryLayout<sockaddr_l2>.size)
            var (own, peer) = (sockaddr_l2(), sockaddr_l2())
            try SystemCallError.check("getsockname", unsafe ble_own_address(descriptor, &own, size))
            try SystemCallError.check("getpeername", unsafe ble_peer_address(descriptor, &peer, size))
            guard UInt16(littleEndian: peer.l2_cid) == Self.attributeChannel, (1...2).contains(peer.l2_bdaddr_type)
            else { throw .wrongKind("getpeername") }
            let type: AddressType = peer.l2_bdaddr_type == 1 ? .public : .random
            return .radio(own: Self.address(own), peer: PeerID(address: Self.address(peer), type: type))
        default:
            throw .wrongKind("SO_DOMAIN")
        }
    }

    private func option(_ name: Int32) throws(SystemCallError) -> Int32 {
        var value: Int32 = 0
        try SystemCallError.check("getsockopt", unsafe ble_get_option(descriptor, SOL_SOCKET, name, &value, 4))
        return value
    }

    static func address(_ name: sockaddr_l2) -> BluetoothAddress {
        var name = name
        let bytes = unsafe withUnsafeBytes(of: &name.l2_bdaddr) { unsafe Array($0) }
        return BluetoothAddress(rawValue: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) })
    }
}

extension SystemCallError {
    fileprivate static func wrongKind(_ call: String) -> SystemCallError {
        SystemCallError(call: call, errno: EPROTOTYPE)
    }
}
