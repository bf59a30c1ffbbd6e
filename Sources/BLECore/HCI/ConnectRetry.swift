// What one connect does next: which step follows which, which failures are retried, how often, and after which pause.
//
// Duties: every decision of a connect that is not the controller's. The owner performs the step that is returned, and
// reports how it ended. `Initiator` makes the single attempt.
//
// Invariants:
// - A connect with a time-out has one turn; one without has turns of 10 s until it succeeds, is cancelled or fails for
//   another reason than that the peer was not heard.
// - Scans and advertisements have their time between two such turns, also those of two connects: each would have its
//   pause in the turn of the other. The first turn of a connect begins at once, as does one to a peer that was heard.
// - In a turn, four attempts are made, with pauses: a link that broke down before it was usable is likely to succeed
//   the next time, and rarely at once.
// - A link that came up and to which no socket could be attached is disconnected before the next attempt, which would
//   otherwise find it.
// - A bonded peer with private addresses may have changed its address since it was heard. It is initiated to for a
//   limited time, twice as long each time, and then listened for again.
// - A request of the peer that came ahead of its link was dropped by the kernel, and the peer ends the link 30 s later.
//   Such a link is disconnected and made again: once in a connect, because it may happen each time, and only where the
//   time allows it (row W44).
// - The keys that the kernel did not have are loaded again once.
// - Another program (bluetoothd) may be handed the channel of each link that comes up by command: nobody else can have
//   it on a new link. Then the kernel connects: its socket has the channel from the start.
// - A link that was there, and whose channel another socket has, is tried again after a pause: the kernel still lists a
//   link for some time after the controller has reported its end.

/// Decides the next step of a connect.
package struct ConnectRetry: ~Copyable {
    /// The reason that no socket is attached to a link, as far as it matters here.
    package enum AttachFailure: Hashable, Sendable {
        /// Another socket is connected or connecting to the peer.
        case busy
        /// The link came up and broke down at once.
        case notEstablished
        case timedOut
        case cancelled
        case adapterDown
        case other

        /// Whether the next attempt may well succeed.
        fileprivate var isTransient: Bool {
            switch self {
            case .busy, .notEstablished: true
            case .timedOut, .cancelled, .adapterDown, .other: false
            }
        }
    }

    /// The next step of a connect.
    package enum Step: Hashable, Sendable {
        /// Initiate a connection unless there is a link to the peer, and call `initiated` or `notInitiated`.
        case initiate
        /// Attach a socket to the link by `until`, and call `notAttached` if that fails.
        case attach(ConnectionHandle?, until: BootInstant)
        /// Disconnect the link, wait for its end, and call `disconnected`.
        case disconnect(ConnectionHandle)
        /// Have the kernel connect, beside a scan where `scanning`, and call `kernelFailed` if that fails.
        case connectByKernel(scanning: Bool)
        /// Wait, then call `paused`.
        case pause(until: BootInstant)
        /// End the connect with the failure that was reported last.
        case fail
        /// As `fail`, but the peer was not heard: call `nextTurn`.
        case peerNotHeard
        /// As `peerNotHeard`: the time was over before the first attempt.
        case tooLate
        /// End the connect: another program was handed the channel of each link.
        case failChannelTaken
    }

    /// The step after a turn in which the peer was not heard.
    package enum Turn: Hashable, Sendable {
        case none
        /// Another one, once the peer was heard again: it may use another address by now.
        case listen
        /// Another one, after that time if there is one: running scans listen meanwhile, and advertisements are on air.
        case next(after: BootInstant?)
    }

    private enum State {
        case resting
        case initiating
        case attaching(ConnectionHandle?)
        case disconnecting(AttachFailure)
        /// As `disconnecting`, to make the link again.
        case repeating
        case pausing
        case byKernel(scanning: Bool)
    }

    private let limit: BootInstant?
    private var state = State.resting
    private var attempt = 1
    private var addressTimeout = Self.firstAddressTimeout
    private var hasReloadedKeys = false
    private var hasRepeated = false
    /// Whether scans and advertisements have their time before the next turn.
    private var mayRest = false
    /// When the turn ends.
    package private(set) var deadline: BootInstant

    /// A connect that is to succeed by `limit`, if there is one.
    package init(until limit: BootInstant?, at now: BootInstant) {
        self.limit = limit
        deadline = limit ?? now + Self.turnTime
    }

    /// The number of the attempt in this turn, from 1.
    package var attemptNumber: Int { attempt }

    // MARK: Turns

    /// The connect has its turn now.
    package mutating func beginTurn(at now: BootInstant) {
        deadline = limit ?? now + Self.turnTime
        attempt = 1
    }

    /// The peer was not heard in this turn.
    ///
    /// - Parameters:
    ///   - mayChangeAddress: Whether it is a bonded peer that may use private addresses.
    ///   - isShared: Whether there are scans or advertisements, which pause during a turn.
    ///   - now: The present time.
    package mutating func nextTurn(mayChangeAddress: Bool, isShared: Bool, at now: BootInstant) -> Turn {
        mayRest = false
        if mayChangeAddress, limit.map({ now < $0 }) ?? true {
            // Or it advertises rarely.
            addressTimeout = min(addressTimeout * 2, Self.longestAddressTimeout)
            return .listen
        }
        guard limit == nil else { return .none }
        mayRest = true
        return .next(after: isShared ? now + Self.restTime : nil)
    }

    /// Returns until when the turn that was taken has to wait; `nil` if it begins at once.
    ///
    /// - Parameters:
    ///   - unheard: When the last turn, of any connect, has ended in which the peer was not heard.
    ///   - isShared: Whether there are scans or advertisements, which pause during a turn.
    ///   - now: The present time.
    package func rest(after unheard: BootInstant?, isShared: Bool, at now: BootInstant) -> BootInstant? {
        guard mayRest, isShared, let unheard else { return nil }
        let end = unheard + Self.restTime
        return now < end ? end : nil
    }

    /// The kernel did not have the keys: whether there is another turn, before which they are loaded again.
    package mutating func keysMissing() -> Bool {
        defer { hasReloadedKeys = true }
        return !hasReloadedKeys
    }

    // MARK: Attempts

    /// The time at which an attempt ends at the latest.
    package func attemptDeadline(mayChangeAddress: Bool, at now: BootInstant) -> BootInstant {
        mayChangeAddress ? min(deadline, now + addressTimeout) : deadline
    }

    /// The adapter is ready for the first attempt of the turn.
    package mutating func begin(mayCommand: Bool, at now: BootInstant) -> Step {
        guard mayCommand else { return connectByKernel(scanning: false) }
        guard now < deadline else { return .tooLate }
        return initiate()
    }

    /// The link is up.
    ///
    /// - Parameter hasLostRequest: Whether a request of the peer came ahead of it.
    package mutating func initiated(
        _ handle: ConnectionHandle, hasLostRequest: Bool = false, at now: BootInstant
    ) -> Step {
        guard hasLostRequest, !hasRepeated, now + Self.repetitionTime <= deadline else {
            return attach(handle, at: now)
        }
        hasRepeated = true
        state = .repeating
        return .disconnect(handle)
    }

    /// There is no new link: the attempt failed, or there was no need for one.
    package mutating func notInitiated(_ failure: Initiator.Failure?, hasLink: Bool, at now: BootInstant) -> Step {
        let isLast = attempt >= Self.attempts
        // Where the kernel has the link, only this program has missed that it came up.
        if failure == .endUnreported(.timedOut) { return hasLink ? attach(nil, at: now) : .peerNotHeard }
        switch failure?.status {
        case nil where failure == nil, .connectionAlreadyExists?: break
        case .connectionFailedToBeEstablished? where !isLast && now < deadline: return pause(at: now)
        // The controller has ended the attempt because it advertises, for the kernel or another program (row W39).
        case .advertisingTimeout? where !isLast && now < deadline: return pause(at: now)
        default: return failure == .timedOut ? .peerNotHeard : .fail
        }
        if isLast || hasLink { return attach(nil, at: now) }
        attempt += 1
        return initiate()
    }

    /// No socket could be attached; `end` is the controller's reason where the link is over.
    package mutating func notAttached(_ failure: AttachFailure, end: HCIStatus?, at now: BootInstant) -> Step {
        guard case .attaching(let handle) = state else { return .fail }
        if let handle, end == nil {
            state = .disconnecting(failure)
            return .disconnect(handle)
        }
        let mayRetry = failure.isTransient || end == .connectionFailedToBeEstablished
        return retry(failure, mayRetry, isChannelTaken: handle != nil && failure == .busy, at: now)
    }

    /// The link without a socket has ended, or was waited for long enough.
    package mutating func disconnected(at now: BootInstant) -> Step {
        switch state {
        case .repeating: now < deadline ? initiate() : .peerNotHeard
        case .disconnecting(let failure):
            retry(failure, failure.isTransient, isChannelTaken: failure == .busy, at: now)
        case .resting, .initiating, .attaching, .pausing, .byKernel: .fail
        }
    }

    /// The kernel could not connect.
    package mutating func kernelFailed(_ failure: AttachFailure, at now: BootInstant) -> Step {
        guard case .byKernel(let scanning) = state else { return .fail }
        if failure.isTransient, attempt < Self.kernelAttempts, now < deadline {
            defer { attempt += 1 }
            return .pause(until: now + Self.kernelPause * attempt)
        }
        if scanning { return failure == .cancelled || failure == .adapterDown ? .fail : .failChannelTaken }
        return failure == .timedOut ? .peerNotHeard : .fail
    }

    /// The pause is over.
    package mutating func paused() -> Step {
        switch state {
        case .pausing: initiate()
        case .byKernel(let scanning): .connectByKernel(scanning: scanning)
        case .resting, .initiating, .attaching, .disconnecting, .repeating: .fail
        }
    }

    private mutating func retry(
        _ failure: AttachFailure, _ mayRetry: Bool, isChannelTaken: Bool, at now: BootInstant
    ) -> Step {
        guard mayRetry, now < deadline else { return failure == .timedOut ? .peerNotHeard : .fail }
        if isChannelTaken {
            attempt = 1
            return connectByKernel(scanning: true)
        }
        return attempt < Self.attempts ? pause(at: now) : .fail
    }

    private mutating func pause(at now: BootInstant) -> Step {
        state = .pausing
        defer { attempt += 1 }
        return .pause(until: now + Self.firstPause * (1 << (attempt - 1)))
    }

    private mutating func initiate() -> Step {
        state = .initiating
        return .initiate
    }

    private mutating func attach(_ handle: ConnectionHandle?, at now: BootInstant) -> Step {
        state = .attaching(handle)
        return .attach(handle, until: max(deadline, now + Self.attachTimeout))
    }

    private mutating func connectByKernel(scanning: Bool) -> Step {
        state = .byKernel(scanning: scanning)
        return .connectByKernel(scanning: scanning)
    }

    /// The number of attempts in a turn.
    package static let attempts = 4
    /// The pause before the second attempt; each further one is twice as long.
    package static let firstPause: Duration = .milliseconds(250)
    /// The number of times that the kernel is asked.
    package static let kernelAttempts = 3
    /// The time that attaching to a link that is up may take: the kernel drops an unattached one after this time.
    package static let attachTimeout: Duration = .seconds(2)
    /// The pause before the kernel is asked again; each further one is this much longer.
    package static let kernelPause: Duration = .milliseconds(200)
    /// The time that must be left to make a link again.
    package static let repetitionTime: Duration = .seconds(3)
    /// The time for which a private address is initiated to before the peer is listened for again;
    /// each time twice as long.
    package static let firstAddressTimeout: Duration = .seconds(5)
    /// A connect without a timeout has any number of turns.
    private static let longestAddressTimeout: Duration = .seconds(160)
    /// The time for which a connect without a time-out has the adapter before others have their turn.
    package static let turnTime: Duration = .seconds(10)
    /// The time for which running scans listen, and advertisements are on air, between two such turns.
    package static let restTime: Duration = .seconds(2)
}
