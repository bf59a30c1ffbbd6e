internal import BLECore
package import BLELinux

/// The peer's end of a socketpair: packets in to a handler, packets out in order, whatever room the kernel has.
///
/// To be used on its loop only; the actor that owns it lives there, and closes it before it goes.
package final class PeerLink {
    private let loop: EventLoop
    private var socket: LinkSocket
    private var outgoing: [[UInt8]] = []
    private var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
    private var isClosed = false
    /// Whether nothing crosses the link for now; what is sent waits.
    private var isHeld = false
    /// Whether the kernel's buffer is full; what is sent waits until the loop says that there is room.
    private var isAwaitingRoom = false
    private var handler: (() -> Void)?

    private init(loop: EventLoop, socket: consuming LinkSocket) {
        self.loop = loop
        self.socket = socket
    }

    /// The link at this end, connected or connecting, whatever has arrived on it so far.
    package convenience init(adopting descriptor: Int32, on loop: EventLoop) {
        self.init(loop: loop, socket: LinkSocket(adopting: descriptor))
        while case .packet = socket.receive(into: &buffer) {}
    }

    /// Opens a link; the other end's descriptor belongs to the caller.
    package static func open(on loop: EventLoop) throws(TestLinkError) -> (link: PeerLink, other: Int32) {
        do throws(SystemCallError) {
            let (ours, other) = try LinkSocket.pair()
            return (PeerLink(loop: loop, socket: LinkSocket(adopting: ours)), other)
        } catch {
            throw .noSocketPair(errno: error.errno)
        }
    }

    /// Calls `packet` for each packet, in order, and `ended` once when the other end is gone.
    package func start(packet: @escaping ([UInt8]) -> Void, ended: @escaping () -> Void) {
        let handler = { [weak self] in
            // A handler may close the link, and the last reference to it may go with that.
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

    /// Lets nothing cross the link until `release`: the peer is out of reach.
    package func hold() {
        guard !isClosed else { return }
        isHeld = true
        isAwaitingRoom = false
        loop.letGo(socket.descriptor)
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
        loop.letGo(socket.descriptor)
        socket.shutdown()
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
        // Where the kernel does not watch the descriptor, the next packet tries again.
        isAwaitingRoom = failure == nil
    }
}

extension EventLoop {
    /// The thread on which all peers of the test kit live: never the one of the code under test.
    package static let peers: EventLoop = {
        let loop = EventLoop()
        loop.start()
        return loop
    }()
}
