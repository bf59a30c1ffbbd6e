internal import BLECore

// Duties
// - Remembers the last failure of a session, for its state, its log and its errors.
// - Classifies the failures for the `ReconnectMachine`.
// - Asks the program about the next attempt, if it decides that.

/// The reason that a session has no link, or had none last.
struct SessionFailure: Sendable {
    let error: BLEError
    /// The reason that the link ended; `nil` if there was none.
    let reason: DisconnectReason?
    let time: BootInstant

    /// Returns this failure with the next attempt.
    func disconnection(_ next: ReconnectMachine.Next) -> Session.Disconnection {
        let next: Session.Disconnection.NextAttempt =
            switch next {
            case .after(let pause): .after(pause)
            case .whenAdapterReturns: .whenAdapterReturns
            case .never: .never
            }
        return Session.Disconnection(error: error, reason: reason, time: time, next: next)
    }
}

/// The failures of a session, and what decides after each.
struct SessionFailures {
    /// The last one; `nil` before the first.
    private(set) var last: SessionFailure?
    private var handlers: Session.Handlers
    /// Whether the session waits for an adapter that is off or absent.
    private let waitsForAdapter: Bool

    init(_ handlers: Session.Handlers, waitsForAdapter: Bool) {
        self.handlers = handlers
        self.waitsForAdapter = waitsForAdapter
    }

    /// Sets the closure that decides the pause before the next attempt.
    mutating func decide(
        by decide: (@Sendable (Session.Disconnection, _ failures: Int) -> Duration?)?, includingExpectedEnds: Bool
    ) {
        handlers.decide = decide
        handlers.includesExpectedEnds = includingExpectedEnds
    }

    /// A connect, the preparation of a link or a link has failed.
    mutating func failed(_ error: BLEError, _ reason: DisconnectReason?, at now: BootInstant) {
        last = SessionFailure(error: error, reason: reason, time: now)
    }

    /// Returns the decision about the attempt after the last failure.
    ///
    /// It is not mutating: the program's closure must not run inside an access that excludes others.
    ///
    /// - Parameter failures: The number of connects that have failed in a row.
    func verdict(
        _ kind: ReconnectMachine.FailureKind, failures: @autoclosure () -> Int
    ) -> ReconnectMachine.Verdict {
        guard kind == .passing, let last, let decide = handlers.decide else {
            return .byPolicy(chance: handlers.chance())
        }
        return .custom(decide(last.disconnection(.never), failures()))
    }

    /// Calls the program's closure for the end of the session that the program has requested, if it wants that.
    func reportExpectedEnd(_ error: BLEError, at now: BootInstant) {
        guard handlers.includesExpectedEnds else { return }
        _ = handlers.decide?(Session.Disconnection(error: error, reason: .requested, time: now, next: .never), 0)
    }

    /// Returns the last failure with the next attempt, or `error` if nothing has failed.
    func disconnection(
        _ next: ReconnectMachine.Next, or error: BLEError, at now: BootInstant
    ) -> Session.Disconnection {
        (last ?? SessionFailure(error: error, reason: nil, time: now)).disconnection(next)
    }
}

// MARK: - Kinds

extension SessionFailures {
    /// The codes of failures that would recur at each attempt, and of those that must not be hidden by attempts: a
    /// device that rejects a bond's key may be another one, and one that gets wrong passkeys may lock all others out.
    private static let finalCodes: Set<BLEError.Code> = [
        .unsupported, .notPermitted, .invalidArgument, .notSupported, .bondRejected, .keyTooShort, .notBonded,
        .bondNotStored, .unusableState, .adapterMismatch, .wrongPasskey,
    ]
    /// The codes that report that the adapter is off or absent.
    private static let adapterCodes: Set<BLEError.Code> = [.noAdapter, .adapterDown, .blocked]

    /// Returns the kind of a failure.
    func kind(of error: BLEError) -> ReconnectMachine.FailureKind {
        if waitsForAdapter, Self.adapterCodes.contains(error.code) { return .adapterLost }
        // A user who refuses is not asked again; a peer may be put into its pairing mode.
        if error.code == .pairingRefused, error.origin != .peer { return .final }
        // The bond is there: a link that does not use it, such as one that a central has just made, will end.
        if error.code == .notBonded, error.origin == .peer { return .passing }
        return Self.finalCodes.contains(error.code) ? .final : .passing
    }

    /// Returns the kind of the end of a link.
    func kind(ofEnd reason: DisconnectReason) -> ReconnectMachine.FailureKind {
        reason == .adapterLost && waitsForAdapter ? .adapterLost : .passing
    }
}
