internal import BLELinux
internal import Logging

// A listening socket on the event loop: that of an adapter's links, of a Unix socket, or of channels.
//
// Duties
// - Calls the owner while something waits at the socket.
// - After a failure, such as for want of descriptors, what waits stays in the kernel's queue, and the socket is
//   readable on. It is not watched for a pause then: otherwise the loop would do nothing else.
// - Logs one warning for each row of failures. It ends when everything that waits is accepted.
//
// Invariants
// - Only the event loop's thread uses it.
// - The socket is owned here until `end` or `release`. A pause that is over then has no effect.

/// Accepts what connects to a listening socket, with a pause after each failure.
// Unchecked: only the loop's thread touches its state.
final class AcceptingSocket: @unchecked Sendable {
    /// The pause after something could not be accepted.
    static let pause: Duration = .milliseconds(100)

    private let loop: EventLoop
    private let logger: Logger
    private var socket: ListeningSocket?
    private var place: Logger.Metadata = [:]
    private var readable: EventLoop.Handler?
    /// The end of the pause, while the socket is not watched.
    private var pauseEnd: TimerID?
    private var isFailing = false

    init(on loop: EventLoop, logger: Logger) {
        self.loop = loop
        self.logger = logger
    }

    /// Whether it accepts.
    var isOpen: Bool { socket != nil }

    /// Begins to accept, in place of an earlier socket.
    ///
    /// - Parameters:
    ///   - listening: The socket.
    ///   - place: Where it listens, for the log.
    ///   - readable: Called on the loop when something waits: `nextLink` or `nextChannel` must be called until it
    ///     returns `nil`.
    func begin(
        _ listening: consuming ListeningSocket, at place: Logger.Metadata, readable: @escaping EventLoop.Handler
    ) throws(SystemCallError) {
        if let failure = loop.onReadable(listening.descriptor, readable) { throw failure }
        end()
        socket = consume listening
        self.place = place
        self.readable = readable
    }

    /// Accepts nothing more.
    func end() {
        if let descriptor = socket?.descriptor { stopWatching(descriptor) }
        socket = nil
    }

    /// Releases the socket, which still listens; `nil` if there is none.
    func release() -> Int32? {
        guard let listening = socket.take() else { return nil }
        stopWatching(listening.descriptor)
        return listening.release()
    }

    private func stopWatching(_ descriptor: Int32) {
        if let pauseEnd { loop.cancel(pauseEnd) }
        (pauseEnd, readable, isFailing) = (nil, nil, false)
        loop.unregister(descriptor)
    }

    /// Accepts the next link; `nil` if none waits, or after a failure.
    func nextLink() -> AcceptedLink? {
        do throws(SystemCallError) {
            if let link = try socket?.accept() { return link }
            isFailing = false
        } catch {
            failed(error, "a link is not accepted, and waits")
        }
        return nil
    }

    /// Accepts the next channel; `nil` if none waits, or after a failure.
    func nextChannel() -> AcceptedChannel? {
        do throws(SystemCallError) {
            if let channel = try socket?.acceptChannel() { return channel }
            isFailing = false
        } catch {
            failed(error, "a channel is not accepted, and waits")
        }
        return nil
    }

    private func failed(_ error: SystemCallError, _ message: Logger.Message) {
        if !isFailing {
            logger.warning(message, metadata: place.merging(["error": "\(error)"]) { $1 })
        }
        isFailing = true
        // The owner may also look during a pause.
        if pauseEnd == nil { takePause() }
    }

    private func takePause() {
        guard let descriptor = socket?.descriptor else { return }
        loop.onReadable(descriptor, nil)
        pauseEnd = loop.schedule(at: loop.now() + Self.pause) { [weak self] in self?.watchAgain() }
    }

    private func watchAgain() {
        pauseEnd = nil
        guard let descriptor = socket?.descriptor, let readable else { return }
        // It may lack memory as well.
        if loop.onReadable(descriptor, readable) != nil { takePause() }
    }
}
