// The identities of bonded devices under the private addresses that they use on air.
//
// Duties: own the identity resolving keys; find the key that a resolvable private address was made with; remember what
// was found, so that a report from a known address costs one lookup and not one encryption for each key.
//
// Invariants:
// - Keys of zeros are never used, nor keys of identities that are private addresses themselves.
// - An address that more than one identity could have made belongs to none: devices with cloned firmware share a key,
//   and the wrong one of them may be a stranger's. A key that several identities share is tried once.
// - Results are remembered for the addresses seen first most recently: at most `capacity` that belong to an identity,
//   and as many that do not. The latter cannot displace the former, whatever is on air.
// - Other keys empty the memory. The same ones do not: bonds change often without a change of their keys, and a crowd
//   of addresses would have to be examined again each time.
// - Reports make it compute at most `hashesPerSecond`, so that a flood of new addresses cannot occupy the event loop of
//   a program with many bonds. An address beyond that belongs to nobody for now; it is counted, and not remembered.
// - Without keys nothing is computed and nothing remembered.
//
// The hash needs AES, which BLECore does not have; the owner provides it with the keys.

/// Finds the identities of devices with resolvable private addresses.
///
/// Spec: Resolvable private address resolution, Core Vol 6 Part B, 1.3.2.3.
package struct AddressResolver: ~Copyable {
    /// Returns the hash of a message, 24 bits; any greater number matches no address.
    package typealias Hash = @Sendable (AddressHashMessage) -> UInt32

    /// Whose address it is.
    package enum Resolution: Hashable, Sendable {
        /// The device with this identity address.
        case identity(PeerID)
        /// More than one identity could have made it.
        case ambiguous
        /// No key fits.
        case unknown
    }

    /// Counts of addresses; one that is remembered is not counted again.
    package struct Counts: Hashable, Sendable {
        /// The addresses of known identities.
        package fileprivate(set) var resolved = 0
        /// The addresses that more than one identity could have made.
        package fileprivate(set) var ambiguous = 0
        /// The addresses that no key fits.
        package fileprivate(set) var unknown = 0
        /// The reports whose address was not examined, because there were too many new ones.
        package fileprivate(set) var deferred = 0
        /// The hashes that were computed.
        package fileprivate(set) var hashes = 0
    }

    private struct Key {
        let secret: Secret128
        /// The identity; `ambiguous` for a key that several share.
        let owner: Resolution
    }

    private var keys: [Key] = []
    /// The owners of the keys that one identity has.
    private var identities: Set<PeerID> = []
    private var hash: Hash?
    private var results: [BluetoothAddress: Resolution] = [:]
    private var resolved: RecentAddresses
    private var others: RecentAddresses
    /// The hashes that were computed for reports in the second that began at `second`.
    private var spent = 0
    private var second: BootInstant?
    package private(set) var counts = Counts()

    /// The maximum number of remembered addresses of each sort.
    package static let capacity = DeviceTable.capacity
    /// The maximum number of hashes for reports in a second; at least one address is always examined.
    package static let hashesPerSecond = 100_000

    package init(capacity: Int = AddressResolver.capacity) {
        resolved = RecentAddresses(capacity: capacity)
        others = RecentAddresses(capacity: capacity)
    }

    /// A Boolean value that indicates whether there are no keys, so that no address is resolved.
    package var isEmpty: Bool { keys.isEmpty }

    /// Returns whether the identity has a key that no other has.
    package func resolves(_ identity: PeerID) -> Bool { identities.contains(identity) }

    /// The number of remembered addresses.
    package var rememberedCount: Int { results.count }

    /// Replaces all keys, and empties the memory unless they are the same.
    ///
    /// - Parameters:
    ///   - identityKeys: The keys, by identity address.
    ///   - hash: The random address hash function `ah`, the same in each call. Without it no address is resolved.
    package mutating func setKeys(_ identityKeys: [PeerID: Secret128], _ hash: Hash?) {
        self.hash = hash
        var owners: [Secret128: Resolution] = [:]
        if hash != nil {
            for (identity, secret) in identityKeys where Self.isUsable(secret, of: identity) {
                owners[secret] = owners[secret] == nil ? .identity(identity) : .ambiguous
            }
        }
        if owners.count == keys.count, keys.allSatisfy({ owners[$0.secret] == $0.owner }) { return }
        keys = owners.map { Key(secret: $0.key, owner: $0.value) }
        identities = []
        for key in keys { if case .identity(let identity) = key.owner { identities.insert(identity) } }
        results = [:]
        resolved.removeAll()
        others.removeAll()
    }

    /// Returns the identity of the device that uses an address; `nil` for every address that is not resolvable, of a
    /// stranger, or ambiguous.
    package mutating func identity(of peer: PeerID) -> PeerID? {
        guard case .identity(let identity) = resolution(of: peer) else { return nil }
        return identity
    }

    /// Returns the identity of the device that a report came from. While there are too many new addresses, those have
    /// none.
    package mutating func identity(ofReportFrom peer: PeerID, at now: BootInstant) -> PeerID? {
        guard !isEmpty, peer.kind == .resolvablePrivate else { return nil }
        if results[peer.address] == nil {
            guard mayExamine(at: now) else {
                counts.deferred &+= 1
                return nil
            }
            spent += keys.count
        }
        return identity(of: peer)
    }

    /// Returns whose address it is.
    package mutating func resolution(of peer: PeerID) -> Resolution {
        guard let hash, !isEmpty, peer.kind == .resolvablePrivate else { return .unknown }
        if let known = results[peer.address] { return known }
        let result = find(peer.address, hash)
        remember(peer.address, result)
        return result
    }

    private mutating func mayExamine(at now: BootInstant) -> Bool {
        if second.map({ now - $0 >= .seconds(1) }) ?? true {
            second = now
            spent = 0
        }
        return spent == 0 || spent + keys.count <= Self.hashesPerSecond
    }

    private mutating func find(_ address: BluetoothAddress, _ hash: Hash) -> Resolution {
        let random = UInt32(truncatingIfNeeded: address.rawValue >> 24)
        let expected = UInt32(truncatingIfNeeded: address.rawValue & 0xFF_FFFF)
        var result = Resolution.unknown
        // All of them: the hash is short enough for two keys to fit.
        for key in keys where hash(AddressHashMessage(key: key.secret, random: random)) == expected {
            result = result == .unknown ? key.owner : .ambiguous
        }
        counts.hashes &+= keys.count
        return result
    }

    private mutating func remember(_ address: BluetoothAddress, _ result: Resolution) {
        let displaced: BluetoothAddress?
        switch result {
        case .identity:
            counts.resolved &+= 1
            displaced = resolved.insert(address)
        case .ambiguous:
            counts.ambiguous &+= 1
            displaced = others.insert(address)
        case .unknown:
            counts.unknown &+= 1
            displaced = others.insert(address)
        }
        if let displaced { results[displaced] = nil }
        results[address] = result
    }

    private static func isUsable(_ secret: Secret128, of identity: PeerID) -> Bool {
        guard secret != .zero else { return false }
        return switch identity.kind {
        case .public, .static: true
        case .resolvablePrivate, .nonResolvablePrivate, .reserved: false
        }
    }
}

/// A bounded list of different addresses; a full one drops the address inserted first, in constant time.
private struct RecentAddresses {
    private var addresses: [BluetoothAddress] = []
    /// The place of the one inserted first, in a full list.
    private var oldest = 0
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    /// Inserts an address; returns the one that was dropped for it.
    mutating func insert(_ address: BluetoothAddress) -> BluetoothAddress? {
        guard addresses.count >= capacity else {
            addresses.append(address)
            return nil
        }
        let dropped = addresses[oldest]
        addresses[oldest] = address
        oldest = (oldest + 1) % capacity
        return dropped
    }

    mutating func removeAll() {
        addresses = []
        oldest = 0
    }
}
