import BLECore
import BareBLE
import BareBLETestKit

/// Something that takes several packets, at each of which it may be interrupted.
enum MatrixOperation: String, CaseIterable, Sendable {
    case connect, mtu, discover, read, longRead, write, longWrite, subscribe, streaming, exclusively, onReady, request,
        assemble, drain

    /// What it is done with: a short value, a long one, and one that is sent unasked.
    static let device = VirtualDevice(
        name: "Matrix",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.read, .write], value: [1]),
                    VirtualCharacteristic(0xFFF2, [.read, .write], value: [UInt8](repeating: 7, count: 100)),
                    VirtualCharacteristic(
                        0xFFF3, .notify, plan: NotifyPlan([[1], [2]], every: .milliseconds(100), count: 6)),
                ]),
            VirtualService(0xFFF4, [VirtualCharacteristic(0xFFF5, .read, value: [5])]),
            VirtualService(
                0xFFF6,
                [
                    VirtualCharacteristic(0xFFF7, .write, onWrite: .echo(0xFFF8)),
                    VirtualCharacteristic(0xFFF8, .notify),
                ]),
        ])

    /// Whether it makes the link itself.
    var connects: Bool { self == .connect || self == .mtu || self == .onReady }

    /// Whether it switches values off again when it has what it wants.
    var tidiesUp: Bool { self == .request || self == .assemble || self == .drain }

    var options: ConnectOptions { ConnectOptions(mtu: self == .mtu ? 517 : 23, observesServiceChanges: false) }

    /// A task that ended without an error, and without what it wanted, was cancelled.
    struct EndedEarly: Error {}

    /// Does it over `link`, and calls `done` at the moment in which nothing can go wrong any more.
    func run(_ central: Central, _ peer: PeerID, _ link: Peripheral?, done: () -> Void) async throws -> Peripheral? {
        if self == .onReady { return try await makeReady(central, peer, done: done) }
        guard let link else {
            let made = try await central.connect(peer, options)
            done()
            return made
        }
        switch self {
        case .connect, .mtu, .onReady: break
        case .discover: try await link.discover(afresh: true)
        case .read: _ = try await link.read(0xFFF1)
        case .longRead: _ = try await link.read(0xFFF2)
        case .write: try await link.write([2], to: 0xFFF1)
        case .longWrite: try await link.write([UInt8](repeating: 9, count: 60), to: 0xFFF2)
        case .subscribe:
            let values = try await link.subscribe(to: 0xFFF3)
            done()
            try? await values.unsubscribe()
        case .streaming:
            var count = 0
            for try await _ in try await link.subscribe(to: 0xFFF3) {
                count += 1
                if count == 5 {
                    done()
                    break
                }
            }
            if count < 5 { throw EndedEarly() }
        case .request:
            _ = try await link.request([1, 2], to: 0xFFF7, replyOn: 0xFFF8)
        case .assemble:
            _ = try await link.request([1], to: 0xFFF7, assembling: 0xFFF3, .length(3))
        case .drain:
            _ = try await link.drain(0xFFF3, quietFor: .seconds(1))
        case .exclusively:
            try await link.exclusively { link in
                try await link.write([3], to: 0xFFF1)
                _ = try await link.read(0xFFF1)
            }
        }
        done()
        return nil
    }

    /// A session whose link is made ready by a handshake; it does not try twice.
    private func makeReady(_ central: Central, _ peer: PeerID, done: () -> Void) async throws -> Peripheral? {
        let session = try await central.session(
            with: peer, SessionOptions(connect: options, reconnect: .never),
            onReady: { link in
                try await link.write([4], to: 0xFFF1)
                _ = try await link.read(0xFFF1)
            })
        do {
            _ = try await session.ready(within: .seconds(60))
            done()
        } catch {
            await session.disconnect()
            throw error
        }
        await session.disconnect()
        return nil
    }
}

/// What happens in the middle of it.
enum MatrixLoss: String, CaseIterable, Sendable {
    /// The peer ends the link.
    case hangUp
    /// The same, and what it sends last arrives behind the news of the end.
    case lateAnswer
    /// The peer is not heard any more.
    case outOfRange
    case powerOff, adapterReset, unplug
    /// The task is cancelled when the packet was sent.
    case cancel
    /// The task is cancelled while the packet is being read.
    case cancelWhileReading

    var isCancellation: Bool { self == .cancel || self == .cancelWhileReading }

    /// The codes that a call on a link may end with, or one that makes a link.
    func codes(_ operation: MatrixOperation) -> [BLEError.Code] {
        if isCancellation { return [.cancelled] }
        guard operation.connects else { return [.disconnected] }
        switch self {
        case .hangUp, .lateAnswer: return [.disconnected, .connectFailed]
        case .outOfRange: return [.disconnected, .timedOut]
        case .powerOff, .adapterReset, .unplug:
            return [.disconnected, .adapterDown, .noAdapter, .connectFailed, .timedOut]
        case .cancel, .cancelWhileReading: return [.cancelled]
        }
    }

    /// Why the link says that it ended.
    var reason: DisconnectReason? {
        switch self {
        case .hangUp, .lateAnswer: .byPeer(.remoteUserTerminated)
        case .outOfRange: .supervisionTimeout
        case .powerOff, .adapterReset, .unplug: .adapterLost
        case .cancel, .cancelWhileReading: nil
        }
    }
}
