/// How a cache from an earlier link becomes what is known of the peer.
public enum CacheValidation: Hashable, Sendable {
    /// The peer's Database Hash is read, one request, and must be the cache's. A peer without one is discovered again.
    case required
    /// The same, but a peer that has no Database Hash, and had none, is believed not to have changed until an answer shows
    /// that it has.
    case whenPossible
    /// Nothing is asked: the link is bonded, and the peer was told to announce changes (Service Changed), also those that
    /// happen while it is not connected.
    case skipped
}
