package import BLECore
internal import CBluetooth
internal import Glibc

/// The progress of a connect.
package enum ConnectProgress: Equatable, Sendable {
    /// Not decided yet; wait for the descriptor to become writable.
    case pending
    /// The link is up.
    case connected
    /// There is no link. The error number is the reason, see `ConnectFailure`.
    case failed(errno: Int32)
}

extension LinkSocket {
    /// The channel of every ATT link without negotiation.
    ///
    /// Spec: ATT bearer, Core Vol 3 Part A, 2.1.
    static let attributeChannel: UInt16 = 4

    /// Starts to connect to `peer` from the adapter with the address `own`.
    ///
    /// The kernel finds the peer by a passive scan of its own until `sendTimeout` is over, unless a link is up
    /// already: then it attaches to that in a few milliseconds. If no adapter has this address the call fails with
    /// `EHOSTUNREACH`. Dropping the socket cancels.
    ///
    /// - Parameter security: The level of security that the link must have before the socket is connected; `nil` for
    ///   none. See `setSecurity(_:of:)`.
    /// - Returns: A socket whose `isConnecting` is `true` if `finishConnect` has to report the outcome.
    package static func connectingL2CAP(
        from own: BluetoothAddress, type ownType: AddressType, to peer: PeerID, sendTimeout: Duration,
        security: SocketSecurity.Level? = nil
    ) throws(SystemCallError) -> LinkSocket {
        try connecting(
            from: socketAddress(own, ownType), to: socketAddress(peer.address, peer.type), receiveMTU: nil,
            sendTimeout: sendTimeout, security: security)
    }

    /// Starts to open a credit-based channel to `peer`, beside the link that is up.
    ///
    /// Without a link the kernel would make one, as for the ATT channel; a caller that needs a channel of a certain
    /// link compares `hciHandle` afterwards. Dropping the socket cancels.
    ///
    /// - Parameters:
    ///   - psm: The LE PSM of the peer's service, 0x0001 to 0x00FF.
    ///   - receiveMTU: The longest packet that the peer may send; it is sent to the peer.
    ///   - security: The level of security that the link must have before the channel is requested; `nil` for none. See
    ///     `setSecurity(_:of:)`.
    /// - Returns: A socket whose `isConnecting` is `true` if `finishConnect` has to report the outcome.
    package static func connectingChannel(
        psm: UInt16, from own: BluetoothAddress, type ownType: AddressType, to peer: PeerID, receiveMTU: UInt16,
        sendTimeout: Duration, security: SocketSecurity.Level? = nil
    ) throws(SystemCallError) -> LinkSocket {
        try connecting(
            from: socketAddress(own, ownType, channel: 0),
            to: socketAddress(peer.address, peer.type, channel: 0, psm: psm), receiveMTU: receiveMTU,
            sendTimeout: sendTimeout, security: security)
    }

    /// Has the kernel send a Security Request to the central of a link to the adapter with the address `own`; does
    /// nothing if the link is encrypted.
    ///
    /// A channel that demands encryption makes it do that, and is given up before it is opened. The same demand of the
    /// link's own socket would take that away until the central has reacted, for good if it refuses; and the management
    /// interface demands nothing of peers that have a bond.
    ///
    /// A link that becomes encrypted right before this is called gets the channel: the kernel sends a request for it at
    /// once. So its PSM is one that no service has; the central refuses the request, and nothing else happens.
    ///
    /// Without a reaction the kernel ends the link 30 s later.
    package static func requestSecurity(
        from own: BluetoothAddress, type ownType: AddressType, to central: PeerID
    ) throws(SystemCallError) {
        _ = try connecting(
            from: socketAddress(own, ownType, channel: 0),
            to: socketAddress(central.address, central.type, channel: 0, psm: Self.unassignedPSM), receiveMTU: nil,
            sendTimeout: .seconds(1), security: .medium)
    }

    /// The last of those that only the Bluetooth SIG assigns, which it has not done.
    ///
    /// Spec: LE_PSM, Core Vol 3 Part A, 4.22.
    private static let unassignedPSM: UInt16 = 0x7F

    private static func connecting(
        from source: sockaddr_l2, to target: sockaddr_l2, receiveMTU: UInt16?, sendTimeout: Duration,
        security: SocketSecurity.Level? = nil
    ) throws(SystemCallError) -> LinkSocket {
        let descriptor = try SystemCallError.check(
            "socket", ble_socket(AF_BLUETOOTH, Int32(SOCK_SEQPACKET.rawValue), BTPROTO_L2CAP))
        var link = LinkSocket(adopting: descriptor)
        var timeout = timeval(sendTimeout)
        try SystemCallError.check(
            "SO_SNDTIMEO",
            unsafe ble_set_option(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, UInt32(MemoryLayout<timeval>.size)))
        let size = UInt32(MemoryLayout<sockaddr_l2>.size)
        var (source, target) = (source, target)
        try SystemCallError.check("bind", unsafe ble_bind(descriptor, &source, size))
        if var receiveMTU {
            // Only a bound socket is known to be one for LE, and only those have these options.
            try SystemCallError.check(
                "BT_RCVMTU", unsafe ble_set_option(descriptor, SOL_BLUETOOTH, BT_RCVMTU, &receiveMTU, 2))
        }
        if let security { try setSecurity(security, of: descriptor) }
        try link.beginConnect(to: &target)
        return link
    }

    /// Connects to a Unix SEQPACKET socket of a stand-in for a peripheral.
    package static func connectedUnix(path: String) throws(SystemCallError) -> LinkSocket {
        let descriptor = try SystemCallError.check(
            "socket", ble_socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0))
        let link = LinkSocket(adopting: descriptor)
        try SystemCallError.check("connect", unsafe path.withCString { unsafe ble_connect_unix(descriptor, $0) })
        return link
    }

    /// Returns an address in the kernel's form, by default on the ATT channel: type 1 is public and 2 random, one more
    /// than in HCI.
    static func socketAddress(
        _ address: BluetoothAddress, _ type: AddressType, channel: UInt16 = attributeChannel, psm: UInt16 = 0
    ) -> sockaddr_l2 {
        var result = sockaddr_l2()
        result.l2_family = sa_family_t(AF_BLUETOOTH)
        result.l2_psm = psm.littleEndian
        result.l2_cid = channel.littleEndian
        result.l2_bdaddr_type = type.space.rawValue + 1
        unsafe withUnsafeMutableBytes(of: &result.l2_bdaddr) { unsafe $0.copyBytes(from: address.littleEndianBytes) }
        return result
    }
}

extension timeval {
    /// A kernel timeout; at least a microsecond, because zero means forever.
    fileprivate init(_ duration: Duration) {
        let microseconds = max(1, duration.saturatedNanoseconds / 1000)
        self.init(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
    }
}
