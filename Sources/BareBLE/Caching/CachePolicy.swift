package import BLECore

/// The cache policy of a link, combined from the options of the central and of the connection.
package struct CachePolicy: Sendable {
    var cache: GATTCache?
    var validation = CacheValidation.required
    var observesServiceChanges = true
    /// Loads the peer's cache; it may block.
    package var load: (@Sendable () -> GATTCache?)?
    /// Stores the cache; `nil` does not.
    package var store: (@Sendable (GATTCache) async -> Void)?

    package init(_ options: ConnectOptions) {
        cache = options.cache
        validation = options.validation
        observesServiceChanges = options.observesServiceChanges
    }

    /// Whether the database outlives the link, so that subscribing to Service Changed is worthwhile.
    var isCaching: Bool { cache != nil || store != nil }
}
