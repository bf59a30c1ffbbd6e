/// A peer as the management interface names it.
///
///     address 6 | type 1 (0 BR/EDR, 1 LE public, 2 LE random)
///
/// Spec: `struct mgmt_addr_info` of the Linux kernel.
package struct ManagementPeer: Hashable, Sendable {
    /// The address.
    package let address: BluetoothAddress
    /// The type of the address, as encoded.
    package let rawType: UInt8

    /// Names an LE peer.
    package init(_ peer: PeerID) {
        address = peer.address
        rawType = peer.type == .public ? Self.publicAddress : Self.randomAddress
    }

    /// Names a peer of any kind, as encoded.
    package init(address: BluetoothAddress, rawType: UInt8) {
        self.address = address
        self.rawType = rawType
    }

    /// The LE peer; `nil` for one of BR/EDR, or of a type that later kernels add.
    package var id: PeerID? {
        switch rawType {
        case Self.publicAddress: PeerID(address: address, type: .public)
        case Self.randomAddress: PeerID(address: address, type: .random)
        default: nil
        }
    }

    private static let publicAddress: UInt8 = 1
    private static let randomAddress: UInt8 = 2
}

extension ByteReader {
    /// Reads an address and its type.
    @_lifetime(self: copy self)
    package mutating func managementPeer() -> ManagementPeer? {
        guard remaining >= 7, let address = address(), let type = u8() else { return nil }
        return ManagementPeer(address: address, rawType: type)
    }
}

extension ByteWriter {
    package mutating func managementPeer(_ peer: ManagementPeer) {
        u48(peer.address.rawValue)
        u8(peer.rawType)
    }
}
