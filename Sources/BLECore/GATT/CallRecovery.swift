// What is done about the calls of one link that the peer has refused.
//
// Duties
// - Decides which refusals have a recovery action, after which the call is retried as a whole.
// - Allows each kind of action at most once per call, so that no peer can keep a call pending forever.
// - Remembers which security upgrades have succeeded and not helped.
//
// Invariants
// - An upgrade that has not helped for an attribute is not suggested for it again until the services change.
// - A refusal of a handle contradicts only known services that contain it.
//
// The machine never acts. Its owner performs an action, and reports its success to the call's `Attempts`.

/// Decides how a link recovers from refusals.
package struct CallRecovery: ~Copyable {
    /// An action that is taken before a refused call is retried.
    package enum Action: Hashable, Sendable {
        /// Request the application to secure the link.
        case upgradeSecurity(SecurityLevel, for: AttributeHandle)
        /// Rediscover the peer's services.
        case resynchronize(Contradiction)
    }

    /// The way in which a peer shows that the known services are wrong.
    package enum Contradiction: Hashable, Sendable {
        /// It reports that the database is out of sync.
        case outOfSync
        /// It has no attribute where there was one on an earlier link.
        case invalidHandle
    }

    /// The recovery actions that were taken for one call.
    package struct Attempts: Sendable {
        fileprivate var hasUpgraded = false
        fileprivate var hasResynchronized = false

        package init() {}

        /// The action succeeded; the call is retried.
        package mutating func succeeded(_ action: Action) {
            switch action {
            case .upgradeSecurity: hasUpgraded = true
            case .resynchronize: hasResynchronized = true
            }
        }
    }

    private struct Upgrade: Hashable {
        let level: SecurityLevel
        let handle: AttributeHandle
    }

    private var futile: Set<Upgrade> = []

    package init() {}

    /// Returns what may help against a refusal; `nil` if the call fails with it.
    ///
    /// - Parameters:
    ///   - code: The code of the peer's Error Response; `nil` for any other failure.
    ///   - handle: The attribute that the response names.
    ///   - attempts: What has been done for the call.
    ///   - mayUpgrade: Whether the application can secure the link.
    ///   - isFromEarlierLink: Whether an attribute is known from an earlier link alone.
    package mutating func action(
        for code: ATTErrorCode?, at handle: AttributeHandle?, after attempts: Attempts, mayUpgrade: Bool,
        isFromEarlierLink: (AttributeHandle) -> Bool
    ) -> Action? {
        guard let code else { return nil }
        if let level = code.requiredSecurity {
            guard let handle else { return nil }
            let upgrade = Upgrade(level: level, handle: handle)
            if attempts.hasUpgraded { futile.insert(upgrade) }
            return attempts.hasUpgraded || !mayUpgrade || futile.contains(upgrade)
                ? nil : .upgradeSecurity(level, for: handle)
        }
        if attempts.hasResynchronized { return nil }
        switch code {
        case .databaseOutOfSync:
            return .resynchronize(.outOfSync)
        case .invalidHandle:
            guard let handle, isFromEarlierLink(handle) else { return nil }
            return .resynchronize(.invalidHandle)
        default:
            return nil
        }
    }

    /// The peer's services have changed: what has not helped may help now.
    package mutating func servicesChanged() {
        futile = []
    }
}
