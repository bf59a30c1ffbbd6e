internal import BLECore
internal import BLELinux
internal import Logging

/// The Unix socket on which a local peripheral accepts links.
///
/// Only the peripheral and its end use it.
// Unchecked: only the loop's thread touches it.
final class SocketListener: @unchecked Sendable {
    private let socket: AcceptingSocket

    init(on loop: EventLoop, logger: Logger) {
        socket = AcceptingSocket(on: loop, logger: logger)
    }

    /// Begins to listen, in place of an earlier socket.
    ///
    /// - Parameters:
    ///   - path: The path of the socket.
    ///   - handed: The descriptor of a socket that listens there already, which is the listener's from now on.
    ///   - readable: Called when `accept` must be, until it returns `nil`.
    func begin(
        at path: String, adopting handed: Int32?, readable: @escaping EventLoop.Handler
    ) throws(SystemCallError) {
        let listening =
            if let handed {
                try ListeningSocket(adopting: handed, at: .unix(path))
            } else {
                try ListeningSocket.unix(path: path)
            }
        try socket.begin(listening, at: ["path": "\(path)"], readable: readable)
    }

    /// Returns the descriptor of the next link, which is the caller's from now on; `nil` if none waits, or none can be
    /// accepted now.
    func accept() -> Int32? { socket.nextLink()?.take().release() }

    /// Releases the socket, which still listens; `nil` if there is none.
    func takeSocket() -> Int32? { socket.release() }

    func end() { socket.end() }
}
