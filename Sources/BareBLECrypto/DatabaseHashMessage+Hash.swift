public import BLECore

extension DatabaseHashMessage {
    /// The Database Hash: 16 octets, most significant first, as the code is computed and most peers send it.
    ///
    /// Spec: Database Hash, Core Vol 3 Part G, 7.3.1.
    public var hash: [UInt8] {
        AESCMAC.code(of: bytes, key: [UInt8](repeating: 0, count: AESCMAC.keyLength)) ?? []
    }
}

extension GATTCache {
    /// Whether the stored hash is that of the stored database: a cache that somebody put together by hand, or that a fault
    /// has mixed up, shows here before a peer is asked.
    ///
    /// Peers differ in the order of the octets on air; either order counts. Where a peer broke rules while it was
    /// discovered, what it hashes need not be what it showed: nothing is said of such a database.
    ///
    /// - Parameter extendedProperties: The values of the descriptors of the type 0x2900, by their handles.
    /// - Returns: `nil` when it cannot be told: there is no hash, not everything was discovered, it has
    ///   quirks, or a value of the type 0x2900 is missing.
    public func hashAgrees(extendedProperties: [AttributeHandle: [UInt8]] = [:]) -> Bool? {
        guard let databaseHash, coverage == .whole(.full), database.quirks.isEmpty,
            let message = DatabaseHashMessage(database, extendedProperties: extendedProperties)
        else { return nil }
        let hash = message.hash
        return databaseHash == hash || databaseHash == Array(hash.reversed())
    }
}
