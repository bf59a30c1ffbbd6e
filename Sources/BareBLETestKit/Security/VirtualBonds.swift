package import BLECore

/// A Long Term Key with the numbers that name it to the peer, zero for LE Secure Connections.
package struct VirtualKey: Hashable, Sendable {
    package let rand: UInt64
    package let ediv: UInt16
    package let value: Secret128

    package init(rand: UInt64, ediv: UInt16, value: Secret128) {
        self.rand = rand
        self.ediv = ediv
        self.value = value
    }

    package init(_ key: ManagementLongTermKey) {
        self.init(rand: key.rand, ediv: key.ediv, value: key.key)
    }
}

/// A key that a peripheral keeps for a central.
package struct VirtualBond: Hashable, Sendable {
    package fileprivate(set) var key: VirtualKey
    /// The security of a link that the key encrypts.
    package let security: VirtualLinkSecurity
    /// The record of the client that the server keeps since the last link.
    fileprivate(set) var record: ClientRecord?

    package init(_ key: ManagementLongTermKey, _ security: VirtualLinkSecurity) {
        self.key = VirtualKey(key)
        self.security = security
    }
}

/// The bonds of a peripheral, the one that its link uses, and what its user has seen of pairings.
struct VirtualBonds {
    /// The result of looking up the key of a central.
    enum Lookup {
        /// The security of the link that the key encrypts, and the record of the client,
        /// unless the link has it already.
        case found(VirtualLinkSecurity, ClientRecord?)
        case keyMissing
        case otherKey
    }

    /// By the address of the central.
    private var keys: [BluetoothAddress: VirtualBond] = [:]
    /// The central whose bond the link uses.
    private var current: BluetoothAddress?
    /// The passkey or number of the last pairing.
    private(set) var shownNumber: UInt32?
    /// The number of pairings that have encrypted a link.
    private(set) var pairings = 0
    /// The number of times that a stored key has encrypted a link.
    private(set) var encryptions = 0

    var isEmpty: Bool { keys.isEmpty }

    /// The stored keys, in the order of the addresses of the centrals.
    var stored: [VirtualKey] { keys.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value.key) }

    /// A pairing has encrypted the link, and left a bond or none.
    mutating func paired(with central: BluetoothAddress, _ bond: VirtualBond?) {
        pairings += 1
        guard let bond else { return }
        keys[central] = bond
        current = central
    }

    /// A central encrypts the link with this key.
    mutating func encrypt(with key: VirtualKey, by central: BluetoothAddress) -> Lookup {
        // It looks its key up by Rand and EDIV.
        guard let bond = keys[central], bond.key.rand == key.rand, bond.key.ediv == key.ediv else {
            return .keyMissing
        }
        guard bond.key == key else { return .otherKey }
        encryptions += 1
        // A link that is encrypted already has the record.
        let record = current == central ? nil : bond.record
        current = central
        return .found(bond.security, record)
    }

    mutating func show(_ number: UInt32) {
        shownNumber = number
    }

    mutating func forgetAll() {
        keys = [:]
        current = nil
    }

    /// Replaces the key of each bond with another one.
    mutating func replaceKeys() {
        for (address, bond) in keys {
            let bytes = bond.key.value.withBytes { bytes in (0..<bytes.count).map { ~bytes[$0] } }
            keys[address]?.key = VirtualKey(
                rand: bond.key.rand, ediv: bond.key.ediv, value: Secret128(padding: bytes))
        }
    }

    /// The link has ended: its bond keeps the record of the client.
    mutating func linkEnded(_ record: ClientRecord, keepsConfigurations: Bool) {
        guard let central = current.take() else { return }
        var record = record
        if !keepsConfigurations { record.configurations = [:] }
        keys[central]?.record = record
    }

    /// Records a change of services for the centrals that are away.
    mutating func databaseChanged(
        _ handles: ClosedRange<AttributeHandle>, checksum: UInt32, isAnnounced: Bool
    ) {
        for central in keys.keys {
            let pending = keys[central]?.record?.pendingChange
            keys[central]?.record?.databaseChanged(handles, checksum: checksum)
            if !isAnnounced { keys[central]?.record?.pendingChange = pending }
        }
    }
}

/// The outcome of a central's attempt to encrypt a link with a stored key.
package enum VirtualEncryption: Hashable, Sendable {
    case encrypted
    /// The peripheral has no key.
    case keyMissing
    /// The peripheral has another key: neither side understands the other.
    case otherKey
}
