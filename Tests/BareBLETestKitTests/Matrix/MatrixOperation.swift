import BLECore
import BareBLE
import BareBLETestKit

/// Something that takes several packets, at each of which it may be interrupted.
enum MatrixOperation: String, CaseIterable, Sendable {
    case connect, mtu, discover, read, longRead, write, writeCommand, longWrite, subscribe, streaming, exclusively,
        onReady, request, assemble, drain, reconnect, restore

    /// What it is done with: a short value, a long one, and one that is sent without a request.
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
                    VirtualCharacteristic(0xFFF9, .writeWithoutResponse),
                ]),
        ])

    /// Whether it makes the link itself.
    var connects: Bool {
        switch self {
        case .connect, .mtu, .onReady, .reconnect, .restore: true
        default: false
        }
    }

    /// Whether it switches values off again when it has what it wants.
    var tidiesUp: Bool { self == .request || self == .assemble || self == .drain }

    var options: ConnectOptions { ConnectOptions(mtu: self == .mtu ? 517 : 23, observesServiceChanges: false) }

    /// A task that ended without an error, and without what it wanted, was cancelled.
    struct EndedEarly: Error {}

    /// Does it over `link`, and calls `done` at the moment in which nothing can go wrong any more.
    func run(_ central: Central, _ peer: PeerID, _ link: Peripheral?, done: () -> Void) async throws -> Peripheral? {
        switch self {
        case .onReady: return try await makeReady(central, peer, done: done)
        case .reconnect: return try await connectTwice(central, peer, done: done)
        case .restore: return try await restore(central, done: done)
        default: break
        }
        guard let link else {
            let made = try await central.connect(peer, options)
            done()
            return made
        }
        switch self {
        case .connect, .mtu, .onReady, .reconnect, .restore: break
        case .discover: try await link.discover(ignoringCache: true)
        case .read: _ = try await link.read(0xFFF1)
        case .longRead: _ = try await link.read(0xFFF2)
        case .write: try await link.write([2], to: 0xFFF1)
        case .writeCommand:
            for value in 1...3 as ClosedRange<UInt8> {
                try await link.write([value], to: 0xFFF9, .withoutResponse)
                // Nothing shows that it has arrived. What lies unread where a socket is closed would be another kind of
                // end.
                try? await central.clock.sleep(for: .milliseconds(1))
            }
            _ = try await link.read(0xFFF1)
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

    /// A session that loses its link and makes another one. It does not try for long.
    private func connectTwice(_ central: Central, _ peer: PeerID, done: () -> Void) async throws -> Peripheral? {
        let session = try await central.session(
            with: peer,
            Session.Options(
                connect: options, reconnect: .backoff(initial: .seconds(1), jitter: 0, attempts: 2),
                resetBackoffAfter: .zero)
        )
        do {
            let first = try await session.ready(within: .seconds(60))
            await first.disconnect()
            let second = try await session.ready(within: .seconds(60))
            _ = try await second.read(0xFFF1)
            done()
        } catch {
            await session.disconnect()
            throw error
        }
        await session.disconnect()
        return nil
    }

    /// What is wanted before a restart: a session that does not try twice, and a subscription.
    static func state(_ peer: PeerID) -> RestorationState {
        RestorationState(peers: [
            RestorationState.Peer(
                peer, reconnect: .never, mtu: 23, observesServiceChanges: false,
                subscriptions: [RestorationState.Subscription(0xFFF3)])
        ])
    }

    /// A restart: until the restored subscription has brought a value.
    private func restore(_ central: Central, done: () -> Void) async throws -> Peripheral? {
        let restoration = try await central.restore(from: ServiceEnvironment(variables: [:], processID: 1))
        do {
            for subscription in restoration.subscriptions {
                _ = try await subscription.session.ready(within: .seconds(60))
                try await firstValue(of: subscription.adopt())
            }
            done()
        } catch {
            await central.suspend()
            throw error
        }
        await central.suspend()
        return nil
    }

    private func firstValue(of values: SessionValueSequence<ReceivedValue>) async throws {
        for try await element in values {
            switch element {
            case .began: continue
            case .value: return
            case .interrupted(let error): throw error
            }
        }
        throw EndedEarly()
    }

    /// A session whose link is made ready by a handshake; it does not try twice.
    private func makeReady(_ central: Central, _ peer: PeerID, done: () -> Void) async throws -> Peripheral? {
        let session = try await central.session(
            with: peer, Session.Options(connect: options, reconnect: .never),
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
    case disconnect
    /// The same, and what it sends last arrives after the report of the end.
    case lateResponse
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
        case .disconnect, .lateResponse: return [.disconnected, .connectFailed]
        case .outOfRange: return [.disconnected, .timedOut]
        case .powerOff, .adapterReset, .unplug:
            return [.disconnected, .adapterDown, .noAdapter, .connectFailed, .timedOut]
        case .cancel, .cancelWhileReading: return [.cancelled]
        }
    }

    /// Why the link says that it ended.
    var reason: DisconnectReason? {
        switch self {
        case .disconnect, .lateResponse: .byPeer(.remoteUserTerminated)
        case .outOfRange: .supervisionTimeout
        case .powerOff, .adapterReset, .unplug: .adapterLost
        case .cancel, .cancelWhileReading: nil
        }
    }
}
