package import BLECore

// The peripheral's side of security: its bonds, the security of its link, and what its user sees.

/// A Long Term Key with the numbers that name it to the peer, zero for LE Secure Connections.
package struct VirtualKey: Hashable, Sendable {
    package let rand: UInt64
    package let ediv: UInt16
    package var value: Secret128

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
    package var key: VirtualKey
    /// The security of a link that the key encrypts.
    package var security: VirtualLinkSecurity
    /// What the server remembers of the client since the last link.
    var record: ClientRecord?

    package init(_ key: ManagementLongTermKey, _ security: VirtualLinkSecurity) {
        self.key = VirtualKey(key)
        self.security = security
    }
}

/// The bonds of a peripheral, and the one that its link uses.
struct VirtualBonds {
    /// By the address of the central.
    var keys: [BluetoothAddress: VirtualBond] = [:]
    /// The central whose bond the link uses.
    var current: BluetoothAddress?
    /// The passkey or number of the last pairing.
    var shownNumber: UInt32?
    /// The pairings that have encrypted a link, and the links that a stored key has encrypted.
    var pairings = 0
    var encryptions = 0

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

extension VirtualPeripheral {
    /// How the device pairs; `nil` if it cannot.
    public var security: VirtualSecurity? { device.security }

    /// Changes how the device pairs from now on; `nil` if it no longer can. Bonds are kept.
    public func setSecurity(_ security: VirtualSecurity?) {
        device.security = security
    }

    /// A Boolean value that indicates whether the device keeps the key of a central.
    public var isBonded: Bool { !bonds.keys.isEmpty }

    /// The security of the link.
    public var linkSecurity: VirtualLinkSecurity { server.linkSecurity }

    /// The passkey or the number that the device showed, or its user entered, in the last pairing: at most six digits.
    public var shownNumber: UInt32? { bonds.shownNumber }

    /// The number of pairings that have encrypted a link.
    public var pairingCount: Int { bonds.pairings }

    /// The number of times that the key of a bond has encrypted a link.
    public var encryptionCount: Int { bonds.encryptions }

    /// Removes all bonds, as the device's own "forget" does. The link stays as it is.
    public func forgetBonds() {
        bonds.keys = [:]
        bonds.current = nil
        send(server.secure(server.linkSecurity, isBonded: false))
    }

    /// Replaces the key of each bond with another one, so that no central's key fits any more.
    public func replaceBondKeys() {
        for (address, bond) in bonds.keys {
            let bytes = bond.key.value.withBytes { bytes in (0..<bytes.count).map { ~bytes[$0] } }
            bonds.keys[address]?.key.value = Secret128(padding: bytes)
        }
    }

    /// Sends a Security Request to the central; it has an effect on a virtual radio only.
    public func requestSecurity(_ request: VirtualSecurityRequest = VirtualSecurityRequest()) {
        requestingSecurity?(request)
    }

    /// Sets the security of the link, as if the central had encrypted it: for devices without a virtual radio.
    public func setLinkSecurity(_ security: VirtualLinkSecurity) {
        send(server.secure(security, isBonded: isBonded))
    }

    // MARK: For the radio

    /// A pairing has encrypted the link.
    package func paired(_ security: VirtualLinkSecurity, with central: BluetoothAddress, _ bond: VirtualBond?) {
        bonds.pairings += 1
        if let bond {
            bonds.keys[central] = bond
            bonds.current = central
        }
        send(server.secure(security, isBonded: bond != nil))
    }

    /// A central encrypts the link with this key.
    package func encrypted(with key: VirtualKey, by central: BluetoothAddress) -> VirtualEncryption {
        // It looks its key up by Rand and EDIV.
        guard let bond = bonds.keys[central], bond.key.rand == key.rand, bond.key.ediv == key.ediv else {
            return .keyMissing
        }
        guard bond.key == key else { return .otherKey }
        bonds.encryptions += 1
        // A link that is encrypted already has the record.
        let record = bonds.current == central ? nil : bond.record
        bonds.current = central
        send(server.secure(bond.security, isBonded: true, record: record))
        updatePlans()
        return .encrypted
    }

    package func show(_ number: UInt32) {
        bonds.shownNumber = number
    }

    /// Stores what a bond keeps over links.
    func endSecurity() {
        requestingSecurity = nil
        guard let central = bonds.current.take() else { return }
        var record = server.record
        if device.security?.keepsConfigurations == false { record.configurations = [:] }
        bonds.keys[central]?.record = record
    }
}
