/// The discovered database of a peer, kept until the next connection.
///
/// With it a reconnect costs one request instead of a discovery: the peer's Database Hash is read, and while it is
/// unchanged, the database is too. A cache belongs to one peer: two peers with equal databases have equal hashes, so
/// never look a cache up by its hash.
///
/// `bytes` is a form to store. Decoding validates everything: a truncated, changed or forged file is rejected.
///
/// Spec: Attribute Caching, Core Vol 3 Part G, 2.5.2 and 7.3.
public struct GATTCache: Hashable, Sendable {
    /// The length of a Database Hash, in bytes.
    public static let hashLength = 16
    /// The maximum length of `bytes`.
    public static let byteLimit = 1 << 18

    /// The known database, as far as `coverage` indicates.
    public var database: GATTDatabase
    /// The part of the database that was discovered.
    public var coverage: GATTDatabase.Coverage
    /// The Database Hash as the peer sent it; `nil` if it has none, or it was not read. A hash that does not have
    /// `hashLength` bytes is not stored.
    public var databaseHash: [UInt8]?

    /// Creates a cache.
    public init(database: GATTDatabase, coverage: GATTDatabase.Coverage, databaseHash: [UInt8]? = nil) {
        self.database = database
        self.coverage = coverage
        self.databaseHash = databaseHash
    }
}
