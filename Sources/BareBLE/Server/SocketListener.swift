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
    /// - Parameter readable: Called when `accept` must be, until it returns `nil`.
    func begin(at path: String, readable: @escaping EventLoop.Handler) throws(SystemCallError) {
        let listening = try ListeningSocket.unix(path: path)
        if let failure = loop.onReadable(listening.descriptor, readable) { throw failure }
        end()
        socket = consume listening
    }

    /// Returns the descriptor of the next link, which is the caller's from now on; `nil` if none waits.
    func accept() throws(SystemCallError) -> Int32? {
        guard let link = try socket?.accept() else { return nil }
        return link.take().release()
    }

    func end() {
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
        socket = nil
    }
}
