internal import BLECore
internal import BLELinux

/// The Unix socket on which a local peripheral accepts links.
///
/// Only the peripheral and its end use it.
// Unchecked: only the loop's thread touches it.
final class SocketListener: @unchecked Sendable {
    private let loop: EventLoop
    private var socket: ListeningSocket?

    init(on loop: EventLoop) {
        self.loop = loop
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
        if let failure = loop.onReadable(listening.descriptor, readable) { throw failure }
        end()
        socket = consume listening
    }

    /// Returns the descriptor of the next link, which is the caller's from now on; `nil` if none waits.
    func accept() throws(SystemCallError) -> Int32? {
        guard let link = try socket?.accept() else { return nil }
        return link.take().release()
    }

    /// Releases the socket, which still listens; `nil` if there is none.
    func takeSocket() -> Int32? {
        guard let listening = socket.take() else { return nil }
        loop.letGo(listening.descriptor)
        return listening.release()
    }

    func end() {
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
        socket = nil
    }
}
