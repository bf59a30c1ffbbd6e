// Whether the peer announces changes of its services (Service Changed), and who asks it to.
//
// Duties
// - The peer is asked after a request of the application, so that it costs the application nothing.
// - One call asks at a time, the library's own or the application's; others wait for its end and look again.
//
// Invariants
// - `.asking` is ended by the call that began it alone. A change of the services meanwhile makes its attempt void.
//
// Spec: Service Changed, Core Vol 3 Part G, 7.1.

/// The library's subscription to Service Changed. A pure value.
package struct ServiceChangedObservation: Sendable {
    private enum State: Equatable {
        case off
        case asking(isVoid: Bool)
        case on
        /// It was on, until a change of the services took that away.
        case lost
    }

    /// Whether the library asks of its own accord at all.
    private let isWanted: Bool
    /// Whether it does so after requests.
    private let asksAfterRequests: Bool
    private var state = State.off
    /// Whether the library's own call for it is being made.
    private var isCallUnderWay = false
    /// Whether the peer is to be asked after the next request.
    package private(set) var isDue = false

    package init(isWanted: Bool, asksAfterRequests: Bool) {
        self.isWanted = isWanted
        self.asksAfterRequests = asksAfterRequests
    }

    package var isOn: Bool { state == .on }

    package var isAsking: Bool {
        if case .asking = state { true } else { false }
    }

    /// Whether the peer must be asked first.
    private var isMissing: Bool { state == .off || state == .lost }

    /// More is known of the peer's database.
    ///
    /// - Parameter mayAnnounce: Whether it is known where the peer announces changes, or not known that it does not.
    package mutating func databaseDidChange(mayAnnounce: Bool) {
        isDue = isWanted && asksAfterRequests && isMissing && (mayAnnounce || state == .lost)
    }

    /// A request has been queued after which the peer may be asked.
    ///
    /// - Returns: Whether the library's own call must be made now; then `callEnded`.
    package mutating func begin() -> Bool {
        isDue = false
        if isCallUnderWay { return false }
        isCallUnderWay = true
        return true
    }

    /// The library's own call has ended.
    package mutating func callEnded() {
        isCallUnderWay = false
    }

    /// Whether an indication from an unknown place is a reason to ask at once, as `begin` does.
    package var isWorthAsking: Bool { isWanted && isMissing }

    /// Whether the peer must be asked at once for the sake of those who observe: they may send nothing after which it could be asked.
    package var isLost: Bool { state == .lost }

    /// The peer has nothing that announces changes.
    package mutating func announcerIsAbsent() {
        if state == .lost { state = .off }
    }

    /// A call begins to ask the peer; `askingEnded` tells its end.
    package mutating func askingBegan() {
        state = .asking(isVoid: false)
        isDue = false
    }

    package mutating func askingEnded(isOn: Bool) {
        state = state == .asking(isVoid: true) ? .lost : isOn ? .on : .off
    }

    /// The services changed, and with them the subscription.
    package mutating func subscriptionLost() {
        state = isAsking ? .asking(isVoid: true) : .lost
    }

    /// The last owner of the link has asked the peer.
    package mutating func resumed() {
        state = .on
    }
}
