// The announcements of service changes by the peer (Service Changed), and the call that enables them.
//
// Duties
// - They are enabled after a request of the application, so that the application does not wait for it.
// - One call enables them at a time, the library's own or the application's; others wait for its end and check again.
//
// Invariants
// - Only the call that began `.asking` ends it. A change of the services meanwhile invalidates its attempt.
//
// Spec: Service Changed, Core Vol 3 Part G, 7.1.

/// The library's subscription to Service Changed. A pure value.
package struct ServiceChangedObservation: ~Copyable, Sendable {
    private enum State: Equatable {
        case off
        case asking(isVoid: Bool)
        case on
        /// They were enabled, until a change of the services ended the subscription.
        case lost
    }

    /// Whether the library enables announcements without a request of the application.
    private let isWanted: Bool
    /// Whether it does so after requests.
    private let asksAfterRequests: Bool
    private var state = State.off
    /// Whether the library's own call for it is pending.
    private var isCallUnderWay = false
    /// A Boolean value that indicates whether the announcements must be enabled after the next request.
    package private(set) var isDue = false

    package init(isWanted: Bool, asksAfterRequests: Bool) {
        self.isWanted = isWanted
        self.asksAfterRequests = asksAfterRequests
    }

    package var isOn: Bool { state == .on }

    package var isAsking: Bool {
        if case .asking = state { true } else { false }
    }

    /// Whether the announcements must be enabled first.
    private var isMissing: Bool { state == .off || state == .lost }

    /// Called when more of the peer's database is known.
    ///
    /// - Parameter mayAnnounce: Whether the handle of the peer's announcements is known, or it is not known that there
    ///   is none.
    package mutating func databaseDidChange(mayAnnounce: Bool) {
        isDue = isWanted && asksAfterRequests && isMissing && (mayAnnounce || state == .lost)
    }

    /// Called when a request has been queued after which the announcements may be enabled.
    ///
    /// - Returns: Whether the library's own call must be made now; `callEnded` must follow.
    package mutating func begin() -> Bool {
        isDue = false
        if isCallUnderWay { return false }
        isCallUnderWay = true
        return true
    }

    /// Called when the library's own call has ended.
    package mutating func callEnded() {
        isCallUnderWay = false
    }

    /// A Boolean value that indicates whether an indication from an unknown handle is a reason to enable announcements
    /// at once, as `begin` does.
    package var isWorthAsking: Bool { isWanted && isMissing }

    /// A Boolean value that indicates whether the announcements must be enabled at once for the observers, whose tasks
    /// may send no further request.
    package var isLost: Bool { state == .lost }

    /// Called when the peer is known to have no Service Changed characteristic.
    package mutating func announcerIsAbsent() {
        if state == .lost { state = .off }
    }

    /// Called when a call begins to enable announcements; `askingEnded` reports its end.
    package mutating func askingBegan() {
        state = .asking(isVoid: false)
        isDue = false
    }

    package mutating func askingEnded(isOn: Bool) {
        state = state == .asking(isVoid: true) ? .lost : isOn ? .on : .off
    }

    /// Called when a change of the services has ended the subscription.
    package mutating func subscriptionLost() {
        state = isAsking ? .asking(isVoid: true) : .lost
    }

    /// Called when the link's last owner has enabled the announcements.
    package mutating func resumed() {
        state = .on
    }
}
