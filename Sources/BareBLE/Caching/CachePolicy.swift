package import BLECore

/// What a link does with caches, put together from the options of the central and of the connection.
package struct CachePolicy: Sendable {
    var cache: GATTCache?
    var validation = CacheValidation.required
    var observesServiceChanges = true
    /// Reads what is kept of the peer; it may block.
    package var load: (@Sendable () -> GATTCache?)?
    /// Where what is known is kept; `nil`: nowhere.
    package var store: (@Sendable (GATTCache) async -> Void)?

    package init(_ options: ConnectOptions) {
        cache = options.cache
        validation = options.validation
        observesServiceChanges = options.observesServiceChanges
    }

    /// Whether what is known here lives on behind the link, so that the peer had better be told.
    var isCaching: Bool { cache != nil || store != nil }
}
