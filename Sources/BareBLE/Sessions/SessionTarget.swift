internal import BLECore

/// The peer of a session, and the way to connect to it.
package struct SessionTarget: Sendable {
    /// The peer's name in logs and errors.
    package var name: String
    /// The peer's address; `nil` for a link without a radio.
    package var peer: PeerID?
    /// The options that `Central.session` receives.
    package var options = Session.Options()
    /// Makes a link.
    package var connect: @Sendable (ConnectOptions) async throws(BLEError) -> Peripheral
    /// Whether another address is the peer's too; called on the loop.
    var isPeer: @Sendable (PeerID) -> Bool = { _ in false }
    /// Waits until the adapter can be used, and returns whether it can; `nil` if there is no adapter to wait for.
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

extension Session {
    /// The closures of a session, which cannot be stored and are passed again after a restart.
    public struct Handlers: Sendable {
        /// Returns the pause before the next attempt, `nil` for none, in place of the policy.
        package var decide: (@Sendable (Disconnection, _ failures: Int) -> Duration?)?
        /// A Boolean value that indicates whether `decide` is also called for `Session.disconnect(_:)`.
        package var includesExpectedEnds = false
        /// Makes each new link ready, before it is available to others.
        package var onReady: (@Sendable (Peripheral) async throws -> Void)?
        /// The source of random numbers.
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
}

/// The former name of `Session.Handlers`.
@available(*, deprecated, renamed: "Session.Handlers")
public typealias SessionHandlers = Session.Handlers
