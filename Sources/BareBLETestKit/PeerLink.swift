internal import BLECore
package import BLELinux

/// The peer's end of a socketpair: delivers received packets to a handler and sends packets in order, with flow
/// control.
///
/// Use it on its loop only. The actor that owns it runs there and closes it before its own deinitialization.
package final class PeerLink {
    private let loop: EventLoop
    private var socket: LinkSocket
    private var outgoing: [[UInt8]] = []
    private var buffer: [UInt8]
    private var isClosed = false
    /// True while the link is held; outgoing packets wait.
    private var isHeld = false
    /// True while the kernel's buffer is full; outgoing packets wait until the loop reports that the socket is
    /// writable.
    private var isAwaitingRoom = false
    private var handler: (() -> Void)?

    private init(loop: EventLoop, socket: consuming LinkSocket, bufferSize: Int = LinkSocket.bufferSize) {
        buffer = [UInt8](repeating: 0, count: bufferSize)
        self.loop = loop
        self.socket = socket
    }

    /// Adopts this end of a link, connected or connecting, with whatever has already arrived.
    package convenience init(
        adopting descriptor: Int32, on loop: EventLoop, bufferSize: Int = LinkSocket.bufferSize
    ) {
        self.init(loop: loop, socket: LinkSocket(adopting: descriptor), bufferSize: bufferSize)
        while case .packet = socket.receive(into: &buffer) {}
    }

    /// Opens a link that receives packets of up to `bufferSize` bytes. The caller owns the descriptor of the other end.
    package static func open(
        on loop: EventLoop, bufferSize: Int = LinkSocket.bufferSize
    ) throws(TestLinkError) -> (link: PeerLink, other: Int32) {
        do throws(SystemCallError) {
            let (ours, other) = try LinkSocket.pair()
            return (PeerLink(loop: loop, socket: LinkSocket(adopting: ours), bufferSize: bufferSize), other)
        } catch {
            throw .noSocketPair(errno: error.errno)
        }
    }

    /// Calls `packet` for each packet, in order, and `ended` once when the other end is closed.
    package func start(packet: @escaping ([UInt8]) -> Void, ended: @escaping () -> Void) {
        let handler = { [weak self] in
            // A handler may close the link and thereby release the last reference to it.
            guard let link = self else { return }
            while !link.isClosed, !link.isHeld {
                switch link.socket.receive(into: &link.buffer) {
                case .packet(let count, _): packet(Array(link.buffer.prefix(count)))
                case .wouldBlock: return
                case .ended:
                    link.close()
                    ended()
                }
            }
        }
        self.handler = handler
        loop.onReadable(socket.descriptor, handler)
    }

    /// Suspends the link in both directions until `release`, as if the peer were out of range.
    package func hold() {
        guard !isClosed else { return }
        isHeld = true
        isAwaitingRoom = false
        loop.unregister(socket.descriptor)
    }

    package func release() {
        guard isHeld, !isClosed else { return }
        isHeld = false
        loop.onReadable(socket.descriptor, handler)
        flush()
    }

    package func send(_ pdu: [UInt8]) {
        outgoing.append(pdu)
        if !isAwaitingRoom { flush() }
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        loop.unregister(socket.descriptor)
        socket.shutdown()
        // Unread packets would make the end a reset, at the time when the last copy of the descriptor is closed.
        while case .packet = socket.receive(into: &buffer, isAwaited: false) {}
    }

    private func flush() {
        while !isClosed, !isHeld, let pdu = outgoing.first {
            switch socket.send(pdu) {
            case .wouldBlock: return awaitRoom()
            case .sent, .failed: outgoing.removeFirst()
            }
        }
    }

    private func awaitRoom() {
        let failure = loop.onWritable(socket.descriptor) { [weak self] in
            guard let link = self, link.isAwaitingRoom else { return }
            link.isAwaitingRoom = false
            link.loop.onWritable(link.socket.descriptor, nil)
            link.flush()
        }
        // If the kernel cannot watch the descriptor, the next packet tries again.
        isAwaitingRoom = failure == nil
    }
}

extension EventLoop {
    /// The thread of all test kit peers, which is never that of the code under test.
    package static let peers: EventLoop = {
        let loop = EventLoop()
        loop.start()
        return loop
    }()
}
