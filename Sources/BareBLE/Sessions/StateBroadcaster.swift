internal import BLELinux

/// Reports the state, the events and the security of a session to its listeners.
///
/// State and listeners change together, so a new listener always receives the current state first and then each change
/// exactly once.
final class StateBroadcaster: Sendable {
    /// The number of events that wait for one listener.
    static let capacity = 64

    private struct State {
        var state = Session.State.connecting(attempt: 1)
        var listeners: [UInt64: StreamBuffer<Session.Event>] = [:]
        var lastNumber: UInt64 = 0
    }

    private let content = Lock(State())
    /// Reports links that become encrypted. It is not a case of `Session.Event`: programs switch over all its cases.
    private let security = EventBroadcaster<LinkSecurity>(capacity: StateBroadcaster.capacity)

    var state: Session.State { content.withLock { $0.state } }

    /// Reports an event, if there is one, and sets the state, if it changes.
    func report(_ event: Session.Event?, _ state: Session.State?) {
        content.withLock { content in
            if let state { content.state = state }
            for listener in content.listeners.inOrder {
                if let event { listener.yield(event) }
                if state == .ended { listener.finish() }
            }
        }
        if state == .ended { security.finish() }
    }

    /// Reports the security of a link that has become encrypted.
    func report(_ security: LinkSecurity) { self.security.report(security) }

    /// Returns the security of the links that become encrypted from now on, in a sequence that keeps `session` alive.
    func securityChanges(keeping session: Session) -> LinkSecuritySequence {
        security.events(losses: .none, keeping: session)
    }

    /// Returns a buffer that begins with the state of `session`, and its number for `removeListener`.
    func addListener(to session: String) -> (buffer: StreamBuffer<Session.Event>, number: UInt64) {
        let buffer = StreamBuffer<Session.Event>(of: session, capacity: Self.capacity, policy: .dropOldest)
        let number = content.withLock { content in
            content.lastNumber &+= 1
            if let event = Session.Event(content.state) { buffer.yield(event) }
            if content.state == .ended {
                buffer.finish()
            } else {
                content.listeners[content.lastNumber] = buffer
            }
            return content.lastNumber
        }
        return (buffer, number)
    }

    func removeListener(_ number: UInt64) {
        content.withLock { $0.listeners[number] = nil }
    }
}
