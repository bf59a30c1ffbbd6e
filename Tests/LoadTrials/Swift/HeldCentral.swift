import BLECore
import BLELinux
import BareBLETestKit

/// A central at the far end of a socketpair, on the peers' thread. It stops reading on request, as one does whose air
/// is held, and checks that notifications come in the order of their numbers.
actor HeldCentral {
    private let descriptor: Int32
    private var socket: LinkSocket
    private var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
    private var response: CheckedContinuation<[UInt8], Never>?
    private var expected: (count: Int, waiter: CheckedContinuation<Void, Never>)?
    /// The notifications that have come.
    private(set) var count = 0
    /// The first notification that came in another place than its own.
    private(set) var misplaced: Int?
    private var isEnded = false

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe EventLoop.peers.asUnownedSerialExecutor()
    }

    /// Takes over the descriptor.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        socket = LinkSocket(adopting: descriptor)
    }

    /// Reads from now on.
    func read() {
        EventLoop.peers.onReadable(descriptor) { [weak self] in self?.assumeIsolated { $0.readable() } }
    }

    /// Reads nothing until the next call of `read()`.
    func hold() {
        EventLoop.peers.onReadable(descriptor, nil)
    }

    func close() {
        EventLoop.peers.unregister(descriptor)
        socket.shutdown()
    }

    /// Sends a request, and returns the response; an empty one if the link has ended.
    func request(_ pdu: [UInt8]) async -> [UInt8] {
        guard socket.send(pdu) == .sent else { return [] }
        return await withCheckedContinuation { response = $0 }
    }

    /// Waits until that many notifications have come in all, or the link has ended.
    func receives(_ wanted: Int) async {
        guard count < wanted, !isEnded else { return }
        await withCheckedContinuation { expected = (wanted, $0) }
    }

    private func readable() {
        while true {
            switch socket.receive(into: &buffer) {
            case .packet(let length, _): received(buffer.prefix(length))
            case .wouldBlock: return
            case .ended:
                isEnded = true
                EventLoop.peers.unregister(descriptor)
                response.take()?.resume(returning: [])
                expected.take()?.waiter.resume()
                return
            }
        }
    }

    private func received(_ pdu: ArraySlice<UInt8>) {
        guard pdu.first == 0x1B else {
            response.take()?.resume(returning: Array(pdu))
            return
        }
        let number = pdu.dropFirst(3).prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        if number != count, misplaced == nil { misplaced = number }
        count += 1
        if let expected, count >= expected.count {
            self.expected = nil
            expected.waiter.resume()
        }
    }
}
