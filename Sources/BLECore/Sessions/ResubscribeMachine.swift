// The decisions about a subscription that lasts over links, after it has failed or ended on one of them.
//
// Duties: decides whether and when to subscribe again, whether to wait for a change of the peer's services or for the
// next link, and when to give up. Only the owner can classify a failure.
//
// Invariants:
// - A characteristic that was subscribed to and has disappeared with its service may come back: it is searched for
//   again at each change of services and on each link, but no more than `missLimit` times in a row. One that never
//   existed ends the subscription.
// - A subscription that fails on a link that is up is retried on it after a pause. Pauses double, up to `longestPause`,
//   until the peer has accepted a subscription or there is another link.
// - The loss of a link is no failure of the subscription: it continues on the next link.
//
// The machine never acts and never reads the time.

/// Keeps a subscription across links, or ends it.
package struct ResubscribeMachine: Hashable, Sendable {
    /// The reason that there is no subscription on the link.
    package enum Failure: Hashable, Sendable {
        /// The peer has no such characteristic.
        case missing
        /// It would recur on the next link.
        case lasting
        /// A later attempt may succeed.
        case passing
    }

    /// The next step.
    package enum Step: Hashable, Sendable {
        /// Subscribe again on this link, after a pause.
        case subscribe(after: Duration)
        /// Subscribe again on this link when the peer has changed its services.
        case awaitServiceChange(isFirst: Bool)
        /// Subscribe again on the next link.
        case awaitLink
        /// The subscription is over.
        case end
    }

    /// The maximum number of searches in a row for a characteristic that has disappeared.
    package static let missLimit = 16
    /// The first pause on a link.
    package static let firstPause = Duration.seconds(1)
    /// The longest pause on a link.
    package static let longestPause = Duration.seconds(30)

    private var wasAccepted = false
    private var misses = 0
    private var pause = Self.firstPause

    /// Creates the state of a subscription that was not made on any link yet.
    package init() {}

    /// A Boolean value that indicates whether a change of services may bring the characteristic back, so that changes
    /// must be observed.
    package var followsServiceChanges: Bool { wasAccepted }

    /// Called when there is a link to subscribe on.
    package mutating func linkUp() {
        pause = Self.firstPause
    }

    /// Called when the peer has accepted the subscription.
    package mutating func accepted() {
        wasAccepted = true
        misses = 0
        pause = Self.firstPause
    }

    /// Called when the subscription has failed or ended.
    ///
    /// - Parameters:
    ///   - wasSubscribed: Whether there was a subscription on this link until now.
    ///   - isLinkUp: Whether the link continues.
    package mutating func failed(_ failure: Failure, wasSubscribed: Bool, isLinkUp: Bool) -> Step {
        guard isLinkUp else { return .awaitLink }
        switch failure {
        case .missing where wasAccepted && misses < Self.missLimit:
            misses += 1
            return .awaitServiceChange(isFirst: misses == 1)
        case .missing, .lasting:
            return .end
        case .passing where wasSubscribed:
            return .subscribe(after: .zero)
        case .passing:
            defer { pause = min(pause * 2, Self.longestPause) }
            return .subscribe(after: pause)
        }
    }
}
