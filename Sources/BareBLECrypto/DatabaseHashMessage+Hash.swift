public import BLECore

extension DatabaseHashMessage {
    /// The Database Hash: 16 octets, most significant first, as computed and as most peers send it.
    ///
    /// Spec: Database Hash, Core Vol 3 Part G, 7.3.1.
    public var hash: [UInt8] {
        AESCMAC.code(of: bytes, key: [UInt8](repeating: 0, count: AESCMAC.keyLength)) ?? []
    }
}

extension GATTCache {
    /// Returns whether the stored hash matches the stored database. This detects an edited or corrupted cache before
    /// the peer is contacted.
    ///
    /// Peers differ in the octet order on air; either order matches. For a peer that violated the protocol during
    /// discovery, no result is returned, because its hash may cover another database than it presented.
    ///
    /// - Parameter extendedProperties: The values of the descriptors of type 0x2900, by handle.
    /// - Returns: `nil` if there is no hash, discovery was incomplete, the database has quirks, or a value of a
    ///   descriptor of type 0x2900 is missing.
    public func hashAgrees(extendedProperties: [AttributeHandle: [UInt8]] = [:]) -> Bool? {
        guard let databaseHash, coverage == .whole(.full), database.quirks.isEmpty,
            let message = DatabaseHashMessage(database, extendedProperties: extendedProperties)
        else { return nil }
        let hash = message.hash
        return databaseHash == hash || databaseHash == Array(hash.reversed())
    }
}
