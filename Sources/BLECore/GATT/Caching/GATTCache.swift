/// What was found out about a peer, to be kept until the next connection.
///
/// With it a reconnect costs one request instead of a discovery: the peer's Database Hash is read, and while it is the
/// same, the database is too. It belongs to one peer: two peers with equal databases have equal hashes, so never look
/// one up by its hash.
///
/// `bytes` is a form to store. Its reading side believes nothing: a file that was cut, changed or made up is refused.
///
/// Spec: Attribute Caching, Core Vol 3 Part G, 2.5.2 and 7.3.
public struct GATTCache: Hashable, Sendable {
    /// How many bytes a Database Hash has.
    public static let hashLength = 16
    /// How many bytes `bytes` has at most.
    public static let byteLimit = 1 << 18

    /// What the peer offers, as far as `coverage` says.
    public var database: GATTDatabase
    /// How much of it was looked at.
    public var coverage: DiscoveryCoverage
    /// The Database Hash as the peer sent it; `nil` when it has none, or was not asked. One that has not `hashLength`
    /// bytes is none, and is not stored.
    public var databaseHash: [UInt8]?

    /// Puts together what is to be kept.
    public init(database: GATTDatabase, coverage: DiscoveryCoverage, databaseHash: [UInt8]? = nil) {
        self.database = database
        self.coverage = coverage
        self.databaseHash = databaseHash
    }
}
