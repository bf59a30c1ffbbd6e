import BLECore
import BLELinux
import BareBLETestKit

/// A GATT server on one end of a socketpair, on the peers' thread; it keeps no transcript, so that a million links
/// leave nothing behind.
actor ServedPeer {
    /// A service of which everything is known by handle: a value at 3 that is notified, one at 6 that can be read and
    /// written.
    static let device = VirtualDevice(
        name: "Load",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, .notify),
                    VirtualCharacteristic(0xFFF2, [.read, .write], value: [1, 2, 3, 4]),
                ])
        ])

    private var server: AttributeServer
    private var link: PeerLink?
    private var responds = true

    init(_ device: VirtualDevice = ServedPeer.device) {
        server = AttributeServer(device)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe EventLoop.peers.asUnownedSerialExecutor()
    }

    /// Opens a link; the client's end belongs to the caller. An earlier one is let go of.
    func connect() throws -> Int32 {
        disconnect()
        let (link, other) = try PeerLink.open(on: .peers)
        self.link = link
        link.start(
            packet: { [weak self] pdu in
                self?.assumeIsolated { peer in
                    guard peer.responds else { return }
                    for response in peer.server.received(pdu) { peer.link?.send(response) }
                }
            },
            ended: { [weak self] in self?.assumeIsolated { $0.disconnect() } })
        return other
    }

    func disconnect() {
        link?.close()
        link = nil
        server.disconnected()
    }

    /// From now on the peer reads requests, and says nothing to them.
    func stopResponding() {
        responds = false
    }

    func send(_ pdu: [UInt8]) {
        link?.send(pdu)
    }
}

/// Repeats an action on the peers' thread, at a constant average pace: missed steps are repeated later.
actor Pacer {
    private static let pause: Duration = .milliseconds(5)

    private let rate: Int
    private let count: Int
    private let act: @Sendable (Int) -> Void
    private var done = 0
    private var began = BootInstant(nanoseconds: 0)
    private var waiter: CheckedContinuation<Void, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe EventLoop.peers.asUnownedSerialExecutor()
    }

    /// `act` is called `count` times, `rate` times a second, with the number from 0.
    init(rate: Int, count: Int, _ act: @Sendable @escaping (Int) -> Void) {
        self.rate = rate
        self.count = count
        self.act = act
    }

    /// Returns when it was called so often; how long that took.
    func run() async -> Duration {
        began = EventLoop.peers.now()
        await withCheckedContinuation { waiter in
            self.waiter = waiter
            step()
        }
        return EventLoop.peers.now() - began
    }

    private func step() {
        let now = EventLoop.peers.now()
        let due = min(count, Int((now - began) / .microseconds(1) * Double(rate) / 1_000_000) + 1)
        while done < due {
            act(done)
            done += 1
        }
        guard done < count else {
            waiter.take()?.resume()
            return
        }
        _ = EventLoop.peers.schedule(at: now + Self.pause) { self.assumeIsolated { $0.step() } }
    }
}
