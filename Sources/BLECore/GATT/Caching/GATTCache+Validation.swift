extension GATTCache {
    /// The validation of a cache from an earlier link.
    public enum Validation: Hashable, Sendable {
        /// The peer's Database Hash is read, with one request, and must equal the cache's. A peer without one is
        /// discovered again.
        case required
        /// The same, but the cache of a peer that has no Database Hash, and had none, is trusted until a response
        /// contradicts it.
        case whenPossible
        /// Nothing is requested: the link is bonded, and the peer was configured to announce changes (Service Changed),
        /// including those that happen while it is not connected.
        case skipped
    }
}

/// The former name of `GATTCache.Validation`.
@available(*, deprecated, renamed: "GATTCache.Validation")
public typealias CacheValidation = GATTCache.Validation
