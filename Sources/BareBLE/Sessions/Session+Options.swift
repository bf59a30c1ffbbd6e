public import BLECore

extension Session {
    /// Options of a session. They are plain values, so that they can be stored.
    public struct Options: Hashable, Sendable {
        /// Options of each link.
        public var connect: ConnectOptions
        /// The policy after a link was lost or could not be made.
        public var reconnect: ReconnectPolicy
        /// The time for which a link must have been ready to count as stable: only then do pauses and attempts start
        /// over.
        public var resetBackoffAfter: Duration
        /// The longest time for `onReady`; `nil` for no limit.
        public var readyTimeout: Duration?

        /// Creates options, with default values for those not given.
        public init(
            connect: ConnectOptions = ConnectOptions(), reconnect: ReconnectPolicy = .backoff(),
            resetBackoffAfter: Duration = .seconds(10), readyTimeout: Duration? = .seconds(30)
        ) {
            self.connect = connect
            self.reconnect = reconnect
            self.resetBackoffAfter = resetBackoffAfter
            self.readyTimeout = readyTimeout
        }
    }
}

extension Session.Options {
    /// The former name of `resetBackoffAfter`.
    @available(*, deprecated, renamed: "resetBackoffAfter")
    public var provenAfter: Duration {
        get { resetBackoffAfter }
        set { resetBackoffAfter = newValue }
    }

    /// The initializer with the former name of `resetBackoffAfter`.
    @available(*, deprecated, renamed: "init(connect:reconnect:resetBackoffAfter:readyTimeout:)")
    public init(
        connect: ConnectOptions = ConnectOptions(), reconnect: ReconnectPolicy = .backoff(), provenAfter: Duration,
        readyTimeout: Duration? = .seconds(30)
    ) {
        self.init(
            connect: connect, reconnect: reconnect, resetBackoffAfter: provenAfter, readyTimeout: readyTimeout)
    }
}

extension Session {
    /// The reason that a session has no link now, and the next attempt.
    public struct Disconnection: Equatable, Sendable {
        /// The failure of the connect, of `onReady`, or of the link, which is `.disconnected`.
        public let error: BLEError
        /// The reason that the link ended; `nil` if it did not end by itself.
        public let reason: DisconnectReason?
        /// The time, on the boot-time clock.
        public let time: BootInstant
        /// The time of the next attempt.
        public let next: NextAttempt

        /// The time of a session's next attempt.
        public enum NextAttempt: Hashable, Sendable {
            /// After this pause.
            case after(Duration)
            /// When the adapter is on again, whatever its number is then.
            case whenAdapterReturns
            /// None by itself.
            case never
        }

        /// The pause before the next attempt; `nil` if there is none.
        public var delay: Duration? {
            if case .after(let delay) = next { delay } else { nil }
        }
    }

    /// The state of a session.
    public enum State: Equatable, Sendable {
        /// A link is being made, with the number of attempts in a row.
        case connecting(attempt: Int)
        /// The link is up, and `onReady` is running.
        case preparing
        /// The link is ready for use.
        case ready
        /// There is no link; the value describes the next attempt.
        case waiting(Disconnection)
        /// There is no link, and none will be made unless `reconnect()` is called.
        case gaveUp(BLEError)
        /// The program has taken the link by `releaseLink()`; `returnLink(_:)` or `reconnect()` resumes.
        case paused
        /// This program is ending the session; with `.afterPendingOperations` calls made before may still be pending.
        case disconnecting
        /// This program has ended the session.
        case ended
    }
}

/// The events of a session's links, in order: first the present state, then each change.
///
/// It begins when `Session.events` is read: events that come before the iteration wait. Each reading of the property
/// has a buffer of its own, so several tasks may listen; an iterator after the first one of a sequence begins at its
/// creation. At most 64 events wait; beyond that the oldest are dropped, and `.missed` counts them. The sequence ends
/// after `.ended`. `next()` throws `BLEError` with `.busy` while another task waits for the next event of this
/// iterator. The sequence is a reference to the session, and keeps it alive.
public typealias ConnectionEventSequence = BLESequence<Session.Event>

/// The former name of `ConnectionEventSequence`.
@available(*, deprecated, renamed: "ConnectionEventSequence")
public typealias ConnectionEvents = ConnectionEventSequence

/// The security of a session's links, from the moment when `Session.securityChanges` was read.
///
/// Changes that come before the iteration wait for the first iterator; a further one of the same sequence begins at its
/// creation. At most 64 wait; beyond that the oldest are dropped, so the last one is always there. The sequence ends
/// when the session has ended. `next()` throws `BLEError` with `.busy` while another task waits for the next change of
/// this iterator. The sequence is a reference to the session, and keeps it alive.
public typealias LinkSecuritySequence = BLESequence<LinkSecurity>

extension Session {
    /// An event of a session.
    public enum Event: Equatable, Sendable {
        /// A link is being made, with the number of attempts in a row.
        case connecting(attempt: Int)
        /// The link is up; `onReady` begins.
        case connected
        /// The link is ready for use.
        case ready
        /// The link was lost, or could not be made.
        case disconnected(Disconnection)
        /// The peer has changed its services at these handles, and they have been rediscovered.
        case servicesChanged(ClosedRange<AttributeHandle>)
        /// No more attempts are made automatically; `reconnect()` starts again.
        case gaveUp(BLEError)
        /// This program has ended the session. The last event.
        case ended
        /// This number of events was dropped because they were not consumed; `Session.state` is the present state.
        case missed(Int)

        /// Creates the event that leads to a state; `nil` for a state that the program itself causes before the
        /// session's end.
        init?(_ state: State) {
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
}

// MARK: - Former names

/// The former name of `Session.Options`.
@available(*, deprecated, renamed: "Session.Options")
public typealias SessionOptions = Session.Options
/// The former name of `Session.Disconnection`.
@available(*, deprecated, renamed: "Session.Disconnection")
public typealias Disconnection = Session.Disconnection
/// The former name of `Session.State`.
@available(*, deprecated, renamed: "Session.State")
public typealias SessionState = Session.State
/// The former name of `Session.Event`.
@available(*, deprecated, renamed: "Session.Event")
public typealias ConnectionEvent = Session.Event
