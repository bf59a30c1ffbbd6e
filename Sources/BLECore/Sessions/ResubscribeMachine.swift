// A subscription that lasts over links, and what follows when it has failed or ended on one of them.
//
// Duties: say whether to subscribe again, and when; whether to wait for a change of the peer's services, or for the next link;
// and when to give up. What kind of failure an error is, only the owner knows.
//
// Invariants:
// - A characteristic that was subscribed to and has gone with its service may come back: it is looked for again at each change of
//   services and on each link, but no more than `missLimit` times in a row. One that was never there ends the subscription.
// - What fails on a link that is up is tried again on it after a pause. Pauses double, up to `longestPause`, until the peer has
//   accepted a subscription or there is another link.
// - A link that is lost is no failure of the subscription: the next link goes on.
//
// The machine never acts and never asks for the time.

/// Keeps a subscription wanted on each link, or ends it.
package struct ResubscribeMachine: Hashable, Sendable {
    /// Why there is no subscription on the link, or none any more.
    package enum Failure: Hashable, Sendable {
        /// The peer has no such characteristic.
        case missing
        /// It would be the same on the next link.
        case lasting
        /// It may go better another time.
        case passing
    }

    /// What to do now.
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

    /// How often in a row a characteristic that has gone is looked for.
    package static let missLimit = 16
    /// The first pause on a link.
    package static let firstPause = Duration.seconds(1)
    /// The longest pause on a link.
    package static let longestPause = Duration.seconds(30)

    private var wasAccepted = false
    private var misses = 0
    private var pause = Self.firstPause

    /// A subscription that was not made on any link yet.
    package init() {}

    /// Whether a change of services may bring the characteristic back, so that changes are to be followed.
    package var followsServiceChanges: Bool { wasAccepted }

    /// There is a link to subscribe on.
    package mutating func linkUp() {
        pause = Self.firstPause
    }

    /// The peer has accepted the subscription.
    package mutating func accepted() {
        wasAccepted = true
        misses = 0
        pause = Self.firstPause
    }

    /// There is no subscription, or none any more.
    ///
    /// - Parameters:
    ///   - wasSubscribed: Whether there was one on this link until now.
    ///   - isLinkUp: Whether the link goes on.
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
