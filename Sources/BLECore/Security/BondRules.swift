// Which keys become a bond, which bond may take the place of another one, and which keys the kernel is given.
//
// The kernel reports every key that a pairing makes, whatever it is worth. It skips a Long Term Key that it does not
// like and still reports success, and refuses a whole list for one such Identity Resolving Key. So all of its checks
// are made here first, with more of our own, and what does not pass is reported by name.

/// The reason that a bond is not stored, or that its keys are not loaded.
package enum BondRefusal: Error, Hashable, Sendable {
    /// The kernel reports that the key is not to be stored: the pairing left no bond, or the peer distributed no
    /// identity.
    case notForStorage
    /// The address is neither public nor static random.
    case noIdentity
    /// A key belongs to another identity than the bond.
    case foreignKey
    case noKey
    /// More than two keys, or two that are not one for each role.
    case surplusKeys
    /// The keys serve only links whose Central is the peer.
    case noCentralKey
    /// A debug key, or a kind that the kernel does not load.
    case kind(ManagementLongTermKey.Kind)
    /// Less than 7 or more than 16 bytes.
    case invalidSize(UInt8)
    /// The key is shorter than this side requires.
    case keyTooShort(UInt8, minimum: Int)
    /// The key has bits set beyond its size.
    case longerThanItsSize
    case zeroKey
    /// The key has been published.
    case publishedKey
    /// The level is more than such a key is worth; the kernel would pair again to reach it.
    case levelBeyondKey
    /// There is a bond with this identity, and this pairing is not to replace it.
    case bondExists
    /// The stored bond has a key of a stronger kind.
    case weakerKind
    /// The stored bond has a longer key.
    case weakerSize
    /// The stored bond reached a higher level.
    case weakerLevel
    /// There are as many bonds as can be stored.
    case full
    /// The list of the kernel is full.
    case listIsFull
    /// The bond may be used on another adapter only.
    case otherAdapter
    /// The Identity Resolving Key cannot be used; the bond itself is not affected.
    case identityKey(BondRecord.IdentityKeyFault)
}

package enum BondRules {
    /// The length of key that is required unless the program specifies another one, in bytes.
    package static let minimumKeySize = 16

    // MARK: Storing

    /// Returns the record to store after a pairing.
    ///
    /// An Identity Resolving Key that would match strangers is not part of it; `identityKey` then gives the reason. One
    /// that another bond has too is kept: it is used again when the other bond is forgotten.
    ///
    /// - Parameters:
    ///   - isForStorage: Whether the kernel's store hint is set for each of the keys.
    ///   - replaced: The identity whose bond this pairing may replace, if any.
    /// - Throws: `BondRefusal`.
    package static func accept(
        _ record: BondRecord, isForStorage: Bool, replacing replaced: PeerID? = nil,
        minimumKeySize: Int = minimumKeySize, among bonds: [BondRecord]
    ) throws(BondRefusal) -> BondRecord {
        guard isForStorage else { throw .notForStorage }
        let central = try check(record)
        guard Int(central.size) >= minimumKeySize else {
            throw .keyTooShort(central.size, minimum: minimumKeySize)
        }
        if let former = bonds.first(where: { $0.identity == record.identity }) {
            guard replaced == record.identity else { throw .bondExists }
            try checkReplacement(of: former, by: record)
        } else if bonds.count >= BondFile.recordLimit {
            throw .full
        }
        var record = record
        if case .key(let key) = record.identityKey, let fault = fault(of: key, isShared: false) {
            record.identityKey = .unusable(fault)
        }
        return record
    }

    /// A new pairing is never a way to make a bond weaker.
    private static func checkReplacement(of former: BondRecord, by record: BondRecord) throws(BondRefusal) {
        // A record without such a key would not have been accepted.
        if let old = former.centralKey, let new = record.centralKey {
            guard new.kind.rawValue >= old.kind.rawValue else { throw .weakerKind }
            guard new.size >= old.size else { throw .weakerSize }
        }
        guard record.level >= former.level else { throw .weakerLevel }
    }

    // MARK: Checks of one bond

    /// Returns the key of links whose Central is this side, after all checks that do not depend on other bonds.
    private static func check(_ record: BondRecord) throws(BondRefusal) -> ManagementLongTermKey {
        guard isIdentity(record.identity) else { throw .noIdentity }
        guard !record.keys.isEmpty else { throw .noKey }
        guard record.keys.count <= 2 else { throw .surplusKeys }
        if let first = record.keys.first, let second = record.keys.dropFirst().first {
            let isOneForEachRole = first.isCentral != second.isCentral
            guard isOneForEachRole, !first.kind.isSecureConnections, !second.kind.isSecureConnections else {
                throw .surplusKeys
            }
        }
        for key in record.keys {
            guard key.peer == ManagementPeer(record.identity) else { throw .foreignKey }
            try check(key)
        }
        guard let central = record.centralKey else { throw .noCentralKey }
        guard let highest = central.kind.level, record.level <= highest else { throw .levelBeyondKey }
        return central
    }

    /// The kernel's own checks of an entry in its list are among these.
    private static func check(_ key: ManagementLongTermKey) throws(BondRefusal) {
        guard key.kind.level != nil else { throw .kind(key.kind) }
        guard (7...16).contains(key.size) else { throw .invalidSize(key.size) }
        guard key.key != .zero else { throw .zeroKey }
        guard !isPublished(key.key) else { throw .publishedKey }
        guard key.key.fits(Int(key.size)) else { throw .longerThanItsSize }
    }

    private static func isIdentity(_ peer: PeerID) -> Bool {
        switch peer.kind {
        case .public: peer.address != .zero
        case .static:
            // Neither all ones nor all zeros in the random part (Core Vol 6 Part B, 1.3.2.1).
            peer.address.rawValue != 0xFFFF_FFFF_FFFF && peer.address.rawValue != 0xC000_0000_0000
        case .resolvablePrivate, .nonResolvablePrivate, .reserved: false
        }
    }

    /// The Identity Resolving Keys that more than one of these bonds has.
    package static func sharedIdentityKeys(of bonds: [BondRecord]) -> Set<Secret128> {
        var known: Set<Secret128> = []
        var shared: Set<Secret128> = []
        for bond in bonds {
            guard let key = bond.resolvingKey?.key else { continue }
            if !known.insert(key).inserted { shared.insert(key) }
        }
        return shared
    }

    private static func fault(of key: Secret128, isShared: Bool) -> BondRecord.IdentityKeyFault? {
        if key == .zero { return .zero }
        if isPublished(key) { return .published }
        return isShared ? .shared : nil
    }

    /// The keys that a series of security keys had in common, as `blocked_keys` of bluetoothd has them: one was a Long
    /// Term Key, one an Identity Resolving Key.
    private static let published: [Secret128] = [
        [0xBF, 0x01, 0xFB, 0x9D, 0x4E, 0xF3, 0xBC, 0x36, 0xD8, 0x74, 0xF5, 0x39, 0x41, 0x38, 0x68, 0x4C],
        [0xA5, 0x99, 0xBA, 0xE4, 0xE1, 0x7C, 0xA6, 0x18, 0x22, 0x8E, 0x07, 0x56, 0xB4, 0xE8, 0x5F, 0x01],
    ].compactMap { (bytes: [UInt8]) in Secret128(bytes.span) }

    private static func isPublished(_ key: Secret128) -> Bool { published.contains(key) }

    // MARK: Loading

    /// Returns the key of links whose Central is this side, if it may be used.
    ///
    /// - Parameter adapter: The bus identifier of the adapter, if it is known.
    /// - Throws: `BondRefusal`.
    package static func centralKey(
        of bond: BondRecord, adapter: String? = nil
    ) throws(BondRefusal) -> ManagementLongTermKey {
        guard bond.isFor(adapter: adapter) else { throw .otherAdapter }
        return try check(bond)
    }

    /// The lists of keys of all bonds that the kernel is given.
    package struct KeyLists: Hashable, Sendable {
        /// Something of a bond that the kernel is not given.
        package struct Omission: Hashable, Sendable {
            package enum Part: Hashable, Sendable {
                /// The whole bond: no link to the peer can be encrypted with it.
                case bond
                /// The Identity Resolving Key alone: the kernel does not recognize the peer's private addresses.
                case identityKey
                /// The key for links whose Central is the peer.
                case peripheralKey
            }

            package let identity: PeerID
            package let part: Part
            package let reason: BondRefusal
        }

        /// Loaded first.
        package let identities: ManagementLoadIdentityResolvingKeys
        package let longTermKeys: ManagementLoadLongTermKeys
        /// The bonds of which something is missing, in their order.
        package let omissions: [Omission]
    }

    /// Returns the two lists with the keys of all bonds.
    ///
    /// A bond with a key that the kernel would skip is left out as a whole. If there are more keys than a list holds,
    /// those for links whose Central is the peer are left out first. An Identity Resolving Key of more than one bond is
    /// given for none of them: the kernel would take the first one for each of their private addresses, and a clone's.
    ///
    /// - Parameter adapter: The bus identifier of the adapter, if it is known.
    package static func keyLists(of bonds: [BondRecord], adapter: String? = nil) -> KeyLists {
        var central: [ManagementLongTermKey] = []
        var peripheral: [(owner: PeerID, key: ManagementLongTermKey)] = []
        var identities: [ManagementIdentityResolvingKey] = []
        let shared = sharedIdentityKeys(of: bonds)
        var omissions: [KeyLists.Omission] = []
        for bond in bonds {
            func omit(_ part: KeyLists.Omission.Part, _ reason: BondRefusal) {
                omissions.append(KeyLists.Omission(identity: bond.identity, part: part, reason: reason))
            }
            do throws(BondRefusal) {
                let key = try centralKey(of: bond, adapter: adapter)
                guard central.count < ManagementLoadLongTermKeys.limit else { throw .listIsFull }
                central.append(key)
                for other in bond.keys where other != key { peripheral.append((bond.identity, other)) }
            } catch {
                omit(.bond, error)
                continue
            }
            guard let resolving = bond.resolvingKey else { continue }
            if let fault = fault(of: resolving.key, isShared: shared.contains(resolving.key)) {
                omit(.identityKey, .identityKey(fault))
            } else if identities.count >= ManagementLoadIdentityResolvingKeys.limit {
                omit(.identityKey, .listIsFull)
            } else {
                identities.append(resolving)
            }
        }
        let room = ManagementLoadLongTermKeys.limit - central.count
        for (owner, _) in peripheral.dropFirst(room) {
            omissions.append(KeyLists.Omission(identity: owner, part: .peripheralKey, reason: .listIsFull))
        }
        return KeyLists(
            identities: ManagementLoadIdentityResolvingKeys(identities),
            longTermKeys: ManagementLoadLongTermKeys(central + peripheral.prefix(room).map { $0.key }),
            omissions: omissions)
    }
}

extension BondRefusal: CustomStringConvertible {
    /// The reason, as part of a sentence.
    package var description: String {
        switch self {
        case .notForStorage: "the peer did not bond, or did not send its identity"
        case .noIdentity: "the address is neither public nor static random"
        case .foreignKey: "a key belongs to another identity"
        case .noKey: "there is no key"
        case .surplusKeys: "there are more keys than one for each role"
        case .noCentralKey: "there is no key for links from this side"
        case .kind(.debug): "the key is the debug key of the specification, which everybody knows"
        case .kind(let kind): "there is no key of kind \(kind.rawValue)"
        case .invalidSize(let size): "a key cannot have \(size) bytes"
        case .keyTooShort(let size, let minimum): "the key has \(size) bytes, and \(minimum) are required"
        case .longerThanItsSize: "the key has more bits than its size"
        case .zeroKey: "the key is zero"
        case .publishedKey: "the key has been published"
        case .levelBeyondKey: "the level is more than such a key is worth"
        case .bondExists: "there is a bond with this identity already"
        case .weakerKind: "the stored bond has a key of a stronger kind"
        case .weakerSize: "the stored bond has a longer key"
        case .weakerLevel: "the stored bond has a higher level"
        case .full: "there are \(BondFile.recordLimit) bonds already"
        case .listIsFull: "the kernel's list is full"
        case .otherAdapter: "it was made by other hardware than the adapter is now"
        case .identityKey(.zero): "the key of its private addresses is zero"
        case .identityKey(.shared): "another bond has the same key of private addresses"
        case .identityKey(.published): "the key of its private addresses has been published"
        }
    }
}
