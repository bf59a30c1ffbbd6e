package import BLECore

/// The cache policy of a link, combined from the options of the central and of the connection.
package struct CachePolicy: Sendable {
    var cache: GATTCache?
    /// Whether the program gave a cache, which may have been filled on any link.
    let isCacheGiven: Bool
    var validation = GATTCache.Validation.required
    var observesServiceChanges = true
    /// Loads the peer's cache; it may block.
    package var load: (@Sendable () -> GATTCache?)?
    /// Stores the cache, and returns whether that has succeeded; `nil` does not.
    package var store: (@Sendable (GATTCache) async -> Bool)?
    /// The bond with whose key the link is encrypted from its beginning; `nil` if it is not.
    var bond: BondID?
    /// What is remembered of a bonded peer whose link is encrypted.
    var remembered: RememberedClient?
    /// Whether its database may be used without its hash: the program gave no other one, and nothing was discarded that
    /// may have announced a change.
    var mayTrust = false
    /// Remembers a bonded peer for the next link; `nil` does not.
    var remember: (@Sendable (RememberedClient, BondID) -> Void)?

    package init(_ options: ConnectOptions) {
        cache = options.cache
        isCacheGiven = options.cache != nil
        validation = options.validation
        observesServiceChanges = options.observesServiceChanges
    }

    /// Whether the database outlives the link, so that subscribing to Service Changed is worthwhile.
    var isCaching: Bool { cache != nil || store != nil }

    /// Whether what `store` would store is stored already, as long as nothing changes. The last link's write may end
    /// meanwhile.
    var isCacheStored: Bool { remembered?.isCacheStored() ?? true }
}
