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

    private init(loop: EventLoop, socket: consuming LinkSocket) {
        self.loop = loop
        self.socket = socket
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
        loop.onReadable(socket.descriptor) { [weak self] in
            // A handler may close the link, and the last reference to it may go with that.
            guard let link = self else { return }
            while !link.isClosed {
                switch link.socket.receive(into: &link.buffer) {
                case .packet(let count, _): packet(Array(link.buffer.prefix(count)))
                case .wouldBlock: return
                case .ended:
                    link.close()
                    ended()
                }
            }
        }
    }

    package func send(_ pdu: [UInt8]) {
        outgoing.append(pdu)
        flush()
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        loop.letGo(socket.descriptor)
        socket.shutdown()
    }

    private func flush() {
        while !isClosed, let pdu = outgoing.first {
            switch socket.send(pdu) {
            case .wouldBlock:
                loop.onWritable(socket.descriptor) { [weak self] in self?.flush() }
                return
            case .sent, .failed:
                outgoing.removeFirst()
            }
        }
        if !isClosed { loop.onWritable(socket.descriptor, nil) }
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
