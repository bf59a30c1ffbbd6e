// The events of links, pairings and keys. A socket gets those about peers and keys only if CAP_NET_ADMIN was held when
// it was opened.

/// A link has come up.
///
///     0x000B | peer 7 | flags 4 | length 2 | AD structures
///
/// Spec: MGMT_EV_DEVICE_CONNECTED; Bluetooth Management API, Device Connected Event.
package struct ManagementDeviceConnected: Hashable, Sendable {
    package let peer: ManagementPeer
    package let flags: UInt32
    /// The encoded AD structures of the advertisement, if the kernel has seen it.
    package let data: [UInt8]

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_device_connected"
        var reader = ByteReader(parameters)
        guard let peer = reader.managementPeer(), let flags = reader.u32(), let length = reader.u16(),
            let data = reader.array(Int(length))
        else { throw MalformedPacket(format, at: parameters.count, .tooShort) }
        try reader.finish(format)
        self.peer = peer
        self.flags = flags
        self.data = data
    }
}

/// A link has ended.
///
///     0x000C | peer 7 | reason 1
///
/// Spec: MGMT_EV_DEVICE_DISCONNECTED; Bluetooth Management API, Device Disconnected Event.
package struct ManagementDeviceDisconnected: Hashable, Sendable {
    /// The reason that a link has ended.
    package struct Reason: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let unspecified = Reason(rawValue: 0)
        package static let timeout = Reason(rawValue: 1)
        package static let localHost = Reason(rawValue: 2)
        package static let remote = Reason(rawValue: 3)
        /// The peer has lost its key, or has another one.
        package static let authenticationFailure = Reason(rawValue: 4)
        package static let suspend = Reason(rawValue: 5)
    }

    package let peer: ManagementPeer
    package let reason: Reason

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_device_disconnected"
        var reader = ByteReader(parameters)
        guard let peer = reader.managementPeer(), let reason = reader.u8() else {
            throw MalformedPacket(format, at: parameters.count, .tooShort)
        }
        try reader.finish(format)
        self.peer = peer
        self.reason = Reason(rawValue: reason)
    }
}

/// The kernel asks whether to continue a pairing, Just Works too.
///
///     0x000F | peer 7 | hint 1 | number 4
///
/// Spec: MGMT_EV_USER_CONFIRM_REQUEST; Bluetooth Management API, User Confirmation Request Event.
package struct ManagementUserConfirmationRequest: Hashable, Sendable {
    package let peer: ManagementPeer
    /// The number that both sides show, 0 to 999,999; `nil` for Just Works, where there is nothing to compare.
    package let number: UInt32?

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_user_confirm_request"
        var reader = ByteReader(parameters)
        guard let peer = reader.managementPeer(), let hint = reader.u8(), let number = reader.u32() else {
            throw MalformedPacket(format, at: parameters.count, .tooShort)
        }
        try reader.finish(format)
        self.peer = peer
        self.number = hint == 0 ? number : nil
    }
}

/// The kernel asks for the passkey that the peer shows.
///
///     0x0010 | peer 7
///
/// Spec: MGMT_EV_USER_PASSKEY_REQUEST; Bluetooth Management API, User Passkey Request Event.
package struct ManagementUserPasskeyRequest: Hashable, Sendable {
    package let peer: ManagementPeer

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        peer = try ManagementPeer("mgmt_ev_user_passkey_request", parameters)
    }
}

/// A pairing has failed.
///
///     0x0011 | peer 7 | status 1
///
/// Spec: MGMT_EV_AUTH_FAILED; Bluetooth Management API, Authentication Failed Event.
package struct ManagementAuthenticationFailed: Hashable, Sendable {
    package let peer: ManagementPeer
    package let status: ManagementStatus

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_auth_failed"
        var reader = ByteReader(parameters)
        guard let peer = reader.managementPeer(), let status = reader.u8() else {
            throw MalformedPacket(format, at: parameters.count, .tooShort)
        }
        try reader.finish(format)
        self.peer = peer
        self.status = ManagementStatus(rawValue: status)
    }
}

/// Another program has removed the keys of a peer.
///
///     0x0016 | peer 7
///
/// Spec: MGMT_EV_DEVICE_UNPAIRED; Bluetooth Management API, Device Unpaired Event.
package struct ManagementDeviceUnpaired: Hashable, Sendable {
    package let peer: ManagementPeer

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        peer = try ManagementPeer("mgmt_ev_device_unpaired", parameters)
    }
}

/// The passkey that this side has to show.
///
///     0x0017 | peer 7 | passkey 4 | entered digits 1
///
/// Spec: MGMT_EV_PASSKEY_NOTIFY; Bluetooth Management API, Passkey Notify Event.
package struct ManagementPasskeyNotify: Hashable, Sendable {
    package let peer: ManagementPeer
    /// The passkey, 0 to 999,999.
    package let passkey: UInt32
    /// The number of digits that the peer's user has typed.
    package let entered: UInt8

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_passkey_notify"
        var reader = ByteReader(parameters)
        guard let peer = reader.managementPeer(), let passkey = reader.u32(), let entered = reader.u8() else {
            throw MalformedPacket(format, at: parameters.count, .tooShort)
        }
        try reader.finish(format)
        self.peer = peer
        self.passkey = passkey
        self.entered = entered
    }
}

// MARK: - Keys

/// A pairing has made a Long Term Key.
///
///     0x000A | store hint 1 | key 36
///
/// Spec: MGMT_EV_NEW_LONG_TERM_KEY; Bluetooth Management API, New Long Term Key Event.
package struct ManagementNewLongTermKey: Hashable, Sendable {
    /// A Boolean value that indicates whether the key is to be kept: the pairing left a bond,
    /// and the peer distributed its identity.
    package let isForStorage: Bool
    package let key: ManagementLongTermKey

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_new_long_term_key"
        var reader = ByteReader(parameters)
        guard let hint = reader.u8(), let key = reader.longTermKey() else {
            throw MalformedPacket(format, at: parameters.count, .tooShort)
        }
        try reader.finish(format)
        isForStorage = hint != 0
        self.key = key
    }
}

/// A peer has distributed its identity and its Identity Resolving Key.
///
///     0x0018 | store hint 1 | private address 6 | identity 7 | key 16
///
/// Spec: MGMT_EV_NEW_IRK; Bluetooth Management API, New Identity Resolving Key Event.
package struct ManagementNewIdentityResolvingKey: Hashable, Sendable {
    /// A Boolean value that indicates whether the key is to be kept.
    package let isForStorage: Bool
    /// The private address that the peer had on the air; zero if it had its identity address.
    package let privateAddress: BluetoothAddress
    package let key: ManagementIdentityResolvingKey

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_new_irk"
        var reader = ByteReader(parameters)
        guard let hint = reader.u8(), let privateAddress = reader.address(), let peer = reader.managementPeer(),
            let key = reader.secret()
        else { throw MalformedPacket(format, at: parameters.count, .tooShort) }
        try reader.finish(format)
        isForStorage = hint != 0
        self.privateAddress = privateAddress
        self.key = ManagementIdentityResolvingKey(peer: peer, key: key)
    }
}

/// A pairing has made a Connection Signature Resolving Key, by which commands are signed.
///
///     0x0019 | store hint 1 | peer 7 | kind 1 (bit 0: the peer's, bit 1: authenticated) | key 16
///
/// Spec: MGMT_EV_NEW_CSRK; Bluetooth Management API, New Signature Resolving Key Event.
package struct ManagementNewSignatureKey: Hashable, Sendable {
    /// A Boolean value that indicates whether the key is to be kept.
    package let isForStorage: Bool
    package let peer: ManagementPeer
    /// A Boolean value that indicates whether the peer signs with it; this side otherwise.
    package let isRemote: Bool
    package let isAuthenticated: Bool
    package let key: Secret128

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        let format: StaticString = "mgmt_ev_new_csrk"
        var reader = ByteReader(parameters)
        guard let hint = reader.u8(), let peer = reader.managementPeer(), let kind = reader.u8(),
            let key = reader.secret()
        else { throw MalformedPacket(format, at: parameters.count, .tooShort) }
        try reader.finish(format)
        isForStorage = hint != 0
        self.peer = peer
        isRemote = kind & 1 != 0
        isAuthenticated = kind & 2 != 0
        self.key = key
    }
}

extension ManagementPeer {
    /// Decodes parameters that are a peer and nothing else.
    init(_ format: StaticString, _ parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let peer = reader.managementPeer() else {
            throw MalformedPacket(format, at: parameters.count, .tooShort)
        }
        try reader.finish(format)
        self = peer
    }
}
