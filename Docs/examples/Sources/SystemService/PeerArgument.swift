public import BareBLE

/// The peer of a daemon, in the notation of the command line.
///
///     C0:00:00:00:00:07/random    an address, with its type if it is not public
///     unix:/run/belt.sock         an ATT server on a Unix SEQPACKET socket, for tests without a radio
public enum PeerArgument: Hashable, Sendable {
    /// A peer with a Bluetooth address.
    case address(PeerID)
    /// A peer on the socket at this path.
    case socket(String)

    /// Parses an argument; `nil` if it is neither.
    public init?(_ text: String) {
        if text.hasPrefix("unix:") {
            self = .socket(String(text.dropFirst(5)))
        } else if let peer = PeerID(text) ?? PeerID(text + "/public") {
            self = .address(peer)
        } else {
            return nil
        }
    }

    /// Starts a session that keeps the connection; `onReady` prepares each new link first.
    public func session(
        of central: Central, _ options: Session.Options = Session.Options(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil
    ) async throws(BLEError) -> Session {
        switch self {
        case .address(let peer):
            // After a boot the adapter is off, and without bluetoothd no other program switches it on.
            try await central.ready(powerOn: true)
            return try await central.session(with: peer, options, onReady: onReady)
        case .socket(let path):
            return try await central.session(toSocket: path, options, onReady: onReady)
        }
    }
}
