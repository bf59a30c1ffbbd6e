internal import BLECore

/// Whom a session connects to, and how.
package struct SessionTarget: Sendable {
    /// The peer's name in logs and errors.
    package var name: String
    /// The peer's address; `nil` where there is no radio.
    package var peer: PeerID?
    /// How links are made, and when they are made again; what `Central.session` is given.
    package var options = SessionOptions()
    /// Makes a link.
    package var connect: @Sendable (ConnectOptions) async throws(BLEError) -> Peripheral
    /// Waits until the adapter can be used, and returns whether it can; `nil` where there is none to wait for.
    package var awaitAdapter: (@Sendable () async -> Bool)?

    package init(
        name: String, peer: PeerID? = nil, awaitAdapter: (@Sendable () async -> Bool)? = nil,
        connect: @escaping @Sendable (ConnectOptions) async throws(BLEError) -> Peripheral
    ) {
        self.name = name
        self.peer = peer
        self.connect = connect
        self.awaitAdapter = awaitAdapter
    }
}

/// The closures of a session, which cannot be stored and are passed again after a restart.
public struct SessionHandlers: Sendable {
    /// Asked for the pause before the next attempt, `nil` for none, in place of the policy.
    package var decide: (@Sendable (Disconnection, _ failures: Int) -> Duration?)?
    /// Whether `decide` hears of `Session.disconnect(_:)` too.
    package var includesExpectedEnds = false
    /// Makes each new link ready, before anybody else gets it.
    package var onReady: (@Sendable (Peripheral) async throws -> Void)?
    /// Where random numbers come from.
    package var chance: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }

    /// Creates handlers with the closures of `Central.session(with:_:onReady:reconnect:)`.
    public init(
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil,
        reconnect decide: (@Sendable (Disconnection, _ failures: Int) -> Duration?)? = nil
    ) {
        self.decide = decide
        self.onReady = onReady
    }
}

/// A session, as long as somebody else holds it.
struct WeakSession {
    weak var session: Session?
}
