public import BareBLE

/// Whom a daemon talks to, as it is written at the command line.
///
///     C0:00:00:00:00:07/random    an address, and its type where it is not public
///     unix:/run/belt.sock         an ATT server behind a Unix SEQPACKET socket, for trials without a radio
public enum PeerArgument: Hashable, Sendable {
    /// A peer on the air.
    case address(PeerID)
    /// A peer behind a socket at this path.
    case socket(String)

    /// Reads an argument; `nil` when it is neither.
    public init?(_ text: String) {
        if text.hasPrefix("unix:") {
            self = .socket(String(text.dropFirst(5)))
        } else if let peer = PeerID(text) ?? PeerID(text + "/public") {
            self = .address(peer)
        } else {
            return nil
        }
    }

    /// Begins to connect, and keeps the connection; each new link is made ready by `onReady` first.
    public func session(
        of central: Central, _ options: SessionOptions = SessionOptions(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil
    ) async throws(BLEError) -> Session {
        switch self {
        case .address(let peer):
            // After a boot the adapter is off, and where bluetoothd does not run nobody else switches it on.
            try await central.ready(powerOn: true)
            return try await central.session(with: peer, options, onReady: onReady)
        case .socket(let path):
            return try await central.session(toSocket: path, options, onReady: onReady)
        }
    }
}
