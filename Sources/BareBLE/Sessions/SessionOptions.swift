public import BLECore

/// How a session makes its links, and when it makes them anew. Values only, so that they can be stored.
public struct SessionOptions: Hashable, Sendable {
    /// How each link is made.
    public var connect: ConnectOptions
    /// What happens after a link was lost or could not be made.
    public var reconnect: ReconnectPolicy
    /// For how long a link must have been ready to have proven itself: only then do pauses and attempts start over.
    public var provenAfter: Duration
    /// How long `onReady` may take; `nil` for any time.
    public var readyTimeout: Duration?

    /// The defaults, or other values for some of them.
    public init(
        connect: ConnectOptions = ConnectOptions(), reconnect: ReconnectPolicy = .backoff(),
        provenAfter: Duration = .seconds(10), readyTimeout: Duration? = .seconds(30)
    ) {
        self.connect = connect
        self.reconnect = reconnect
        self.provenAfter = provenAfter
        self.readyTimeout = readyTimeout
    }
}

/// Why a session has no link at the moment, and what comes next.
public struct Disconnection: Equatable, Sendable {
    /// What failed: the connect, the work of `onReady`, or the link, which is `.disconnected`.
    public let error: BLEError
    /// Why the link ended; `nil` when it did not end by itself.
    public let reason: DisconnectReason?
    /// When, on the boot-time clock.
    public let time: BootInstant
    /// When the session connects again.
    public let next: NextAttempt

    /// When a session connects again.
    public enum NextAttempt: Hashable, Sendable {
        /// After this pause.
        case after(Duration)
        /// When the adapter is on again, whatever its number is then.
        case whenAdapterReturns
        /// Not by itself.
        case never
    }

    /// The pause before the next attempt, where there is one.
    public var delay: Duration? {
        if case .after(let delay) = next { delay } else { nil }
    }
}

/// How a session is.
public enum SessionState: Equatable, Sendable {
    /// A link is being made, for the so-manyth time in a row.
    case connecting(attempt: Int)
    /// The link is up, and `onReady` is at work on it.
    case preparing
    /// The link may be used.
    case ready
    /// There is no link; the next attempt comes as it says.
    case waiting(Disconnection)
    /// There is no link, and none will be made unless `reconnect()` is called.
    case gaveUp(BLEError)
    /// The link was given to the program by `releaseLink()`; `takeBack(_:)` or `reconnect()` goes on.
    case paused
    /// This program is ending the session; with `.afterQueue` calls made before may still be under way.
    case disconnecting
    /// This program has ended the session.
    case ended
}

/// What happens to a session's links.
public enum ConnectionEvent: Equatable, Sendable {
    /// A link is being made, for the so-manyth time in a row.
    case connecting(attempt: Int)
    /// The link is up; `onReady` begins.
    case connected
    /// The link may be used.
    case ready
    /// The link was lost, or could not be made.
    case disconnected(Disconnection)
    /// The peer has changed its services at these handles, and what it has now is known.
    case servicesChanged(ClosedRange<AttributeHandle>)
    /// No more attempts are made by themselves; `reconnect()` begins anew.
    case gaveUp(BLEError)
    /// This program has ended the session. The last event.
    case ended
    /// So many events found no room because they were not taken; `Session.state` says what is so now.
    case missed(Int)

    /// The event that leads to a state; `nil` for a state that this program brings about by itself, before the session's end.
    init?(_ state: SessionState) {
        switch state {
        case .connecting(let attempt): self = .connecting(attempt: attempt)
        case .preparing: self = .connected
        case .ready: self = .ready
        case .waiting(let disconnection): self = .disconnected(disconnection)
        case .gaveUp(let error): self = .gaveUp(error)
        case .paused, .disconnecting: return nil
        case .ended: self = .ended
        }
    }
}
