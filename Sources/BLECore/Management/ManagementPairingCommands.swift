// The commands that pair, and that respond to what the kernel asks meanwhile. All return the peer they are about.

/// A command about one peer that returns it.
package protocol ManagementPeerCommand: ManagementCommand where Response == ManagementPeer {
    var peer: ManagementPeer { get }
}

extension ManagementPeerCommand {
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 7)
        writer.managementPeer(peer)
        return writer.bytes
    }

    /// Decodes 7 bytes: the peer, with its identity address as far as it is known by then.
    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> ManagementPeer {
        var reader = ByteReader(returned)
        guard let peer = reader.managementPeer() else {
            throw MalformedPacket("mgmt_addr_info", at: returned.count, .tooShort)
        }
        try reader.finish("mgmt_addr_info")
        return peer
    }
}

/// Pairs with a peer. The response comes when the pairing has ended.
///
///     0x0019 | peer 7 | IO capability 1         reply: peer 7
///
/// Spec: MGMT_OP_PAIR_DEVICE; Bluetooth Management API, Pair Device Command.
package struct ManagementPairDevice: ManagementPeerCommand {
    package static let code = ManagementCommandCode.pairDevice
    package let peer: ManagementPeer
    /// The input and output of this side; it decides the association model together with the peer's.
    package let capability: IOCapability

    package init(_ peer: ManagementPeer, _ capability: IOCapability) {
        self.peer = peer
        self.capability = capability
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 8)
        writer.managementPeer(peer)
        writer.u8(capability.rawValue)
        return writer.bytes
    }
}

/// Cancels Pair Device. The kernel drops the link.
///
///     0x001A | peer 7                           reply: peer 7
///
/// Spec: MGMT_OP_CANCEL_PAIR_DEVICE; Bluetooth Management API, Cancel Pair Device Command.
package struct ManagementCancelPairDevice: ManagementPeerCommand {
    package static let code = ManagementCommandCode.cancelPairDevice
    package let peer: ManagementPeer

    package init(_ peer: ManagementPeer) {
        self.peer = peer
    }
}

/// Removes the keys of a peer from the kernel's lists, and stops its pairing.
///
///     0x001B | peer 7 | disconnects 1           reply: peer 7
///
/// Spec: MGMT_OP_UNPAIR_DEVICE; Bluetooth Management API, Unpair Device Command.
package struct ManagementUnpairDevice: ManagementPeerCommand {
    package static let code = ManagementCommandCode.unpairDevice
    package let peer: ManagementPeer
    /// A Boolean value that indicates whether the link to the peer is dropped too.
    package let disconnects: Bool

    package init(_ peer: ManagementPeer, disconnects: Bool) {
        self.peer = peer
        self.disconnects = disconnects
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 8)
        writer.managementPeer(peer)
        writer.u8(disconnects ? 1 : 0)
        return writer.bytes
    }
}

/// Confirms what User Confirmation Request asked.
///
///     0x001C | peer 7                           reply: peer 7
///
/// Spec: MGMT_OP_USER_CONFIRM_REPLY; Bluetooth Management API, User Confirmation Reply Command.
package struct ManagementUserConfirmationReply: ManagementPeerCommand {
    package static let code = ManagementCommandCode.userConfirmationReply
    package let peer: ManagementPeer

    package init(_ peer: ManagementPeer) {
        self.peer = peer
    }
}

/// Rejects what User Confirmation Request asked: the pairing fails, and the link stays.
///
///     0x001D | peer 7                           reply: peer 7
///
/// Spec: MGMT_OP_USER_CONFIRM_NEG_REPLY; Bluetooth Management API, User Confirmation Negative Reply Command.
package struct ManagementUserConfirmationNegativeReply: ManagementPeerCommand {
    package static let code = ManagementCommandCode.userConfirmationNegativeReply
    package let peer: ManagementPeer

    package init(_ peer: ManagementPeer) {
        self.peer = peer
    }
}

/// Enters the passkey that User Passkey Request asked for.
///
///     0x001E | peer 7 | passkey 4 (0 to 999,999) reply: peer 7
///
/// Spec: MGMT_OP_USER_PASSKEY_REPLY; Bluetooth Management API, User Passkey Reply Command.
package struct ManagementUserPasskeyReply: ManagementPeerCommand {
    package static let code = ManagementCommandCode.userPasskeyReply
    package let peer: ManagementPeer
    package let passkey: UInt32

    package init(_ peer: ManagementPeer, passkey: UInt32) {
        self.peer = peer
        self.passkey = passkey
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 11)
        writer.managementPeer(peer)
        writer.u32(passkey)
        return writer.bytes
    }
}

/// Enters no passkey: the pairing fails, and the link stays. It also stops a pairing that shows one.
///
///     0x001F | peer 7                           reply: peer 7
///
/// Spec: MGMT_OP_USER_PASSKEY_NEG_REPLY; Bluetooth Management API, User Passkey Negative Reply Command.
package struct ManagementUserPasskeyNegativeReply: ManagementPeerCommand {
    package static let code = ManagementCommandCode.userPasskeyNegativeReply
    package let peer: ManagementPeer

    package init(_ peer: ManagementPeer) {
        self.peer = peer
    }
}

/// Gives the kernel what a peer has reported about itself in another way, such as NFC, for the next pairing with it.
///
///     0x0021 | peer 7 | zeros 32 | confirmation 16 | random 16        reply: peer 7
///
/// The first 32 bytes are the values of P-192, which LE does not have.
///
/// Spec: MGMT_OP_ADD_REMOTE_OOB_DATA; Bluetooth Management API, Add Remote Out Of Band Data Command.
package struct ManagementAddRemoteOutOfBandData: ManagementPeerCommand {
    package static let code = ManagementCommandCode.addRemoteOutOfBandData
    package let peer: ManagementPeer
    package let confirmation: Secret128
    package let random: Secret128

    package init(_ peer: ManagementPeer, confirmation: Secret128, random: Secret128) {
        self.peer = peer
        self.confirmation = confirmation
        self.random = random
    }

    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 71)
        writer.managementPeer(peer)
        writer.secret(.zero)
        writer.secret(.zero)
        writer.secret(confirmation)
        writer.secret(random)
        return writer.bytes
    }
}

/// Removes what the kernel was given about peers for out-of-band pairing, of all peers: it refuses to do so for one.
///
///     0x0022 | zeros 7                          reply: zeros 7
///
/// Spec: MGMT_OP_REMOVE_REMOTE_OOB_DATA; Bluetooth Management API, Remove Remote Out Of Band Data Command.
package struct ManagementRemoveRemoteOutOfBandData: ManagementPeerCommand {
    package static let code = ManagementCommandCode.removeRemoteOutOfBandData
    package var peer: ManagementPeer { ManagementPeer(address: .zero, rawType: 0) }

    package init() {}
}

/// Drops the link to a peer.
///
///     0x0014 | peer 7                           reply: peer 7
///
/// Spec: MGMT_OP_DISCONNECT; Bluetooth Management API, Disconnect Command.
package struct ManagementDisconnect: ManagementPeerCommand {
    package static let code = ManagementCommandCode.disconnect
    package let peer: ManagementPeer

    package init(_ peer: ManagementPeer) {
        self.peer = peer
    }
}

/// Reads the peers that are connected, by their identity addresses where those are known.
///
///     0x0015 | -                                reply: count 2 | peers, 7 each
///
/// Spec: MGMT_OP_GET_CONNECTIONS; Bluetooth Management API, Get Connections Command.
package struct ManagementGetConnections: ManagementCommand {
    package static let code = ManagementCommandCode.getConnections
    package var parameters: [UInt8] { [] }

    package init() {}

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> [ManagementPeer] {
        let format: StaticString = "mgmt_rp_get_connections"
        var reader = ByteReader(returned)
        guard let count = reader.u16() else { throw MalformedPacket(format, at: returned.count, .tooShort) }
        var peers: [ManagementPeer] = []
        for _ in 0..<count {
            guard let peer = reader.managementPeer() else {
                throw MalformedPacket(format, at: returned.count, .tooShort)
            }
            peers.append(peer)
        }
        try reader.finish(format)
        return peers
    }
}

/// Reads what the controller can do that no setting reports.
///
///     0x0048 | -                                reply: length 2 | {length 1, type 1, value} each
///
/// Spec: MGMT_OP_READ_CONTROLLER_CAP; Bluetooth Management API, Read Controller Capabilities Command.
package struct ManagementReadControllerCapabilities: ManagementCommand {
    /// The capabilities that are of use here; others are skipped.
    package struct Capabilities: Hashable, Sendable {
        /// The largest size of a key that LE pairing makes, in bytes; `nil` where the kernel does not report it.
        package var maximumKeySize: UInt16?
    }

    package static let code = ManagementCommandCode.readControllerCapabilities
    package var parameters: [UInt8] { [] }

    package init() {}

    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> Capabilities {
        let format: StaticString = "mgmt_rp_read_controller_cap"
        var reader = ByteReader(returned)
        guard let length = reader.u16(), var list = reader.take(Int(length)) else {
            throw MalformedPacket(format, at: returned.count, .tooShort)
        }
        try reader.finish(format)
        var capabilities = Capabilities()
        while let length = list.u8() {
            guard length > 0, var entry = list.take(Int(length)), let type = entry.u8() else {
                throw MalformedPacket(format, at: returned.count, .tooShort)
            }
            if type == Self.maximumLEKeySize { capabilities.maximumKeySize = entry.u16() }
        }
        return capabilities
    }

    private static let maximumLEKeySize: UInt8 = 3
}

/// Reads what this side can report to a peer about itself in another way, such as NFC. Adapters without Secure Simple
/// Pairing, which is part of BR/EDR, refuse it.
///
///     0x003B | types 1 (6: LE)                  reply: types 1 | length 2 | AD structures
///
/// Spec: MGMT_OP_READ_LOCAL_OOB_EXT_DATA; Bluetooth Management API, Read Local Out Of Band Extended Data Command.
package struct ManagementReadLocalOutOfBandData: ManagementCommand {
    package static let code = ManagementCommandCode.readLocalOutOfBandData
    private static let lowEnergy: UInt8 = 0b110
    package var parameters: [UInt8] { [Self.lowEnergy] }

    package init() {}

    /// Returns the encoded AD structures.
    package static func response(from returned: Span<UInt8>) throws(MalformedPacket) -> [UInt8] {
        let format: StaticString = "mgmt_rp_read_local_oob_ext_data"
        var reader = ByteReader(returned)
        guard reader.skip(1), let length = reader.u16(), let structures = reader.array(Int(length)) else {
            throw MalformedPacket(format, at: returned.count, .tooShort)
        }
        try reader.finish(format)
        return structures
    }
}
