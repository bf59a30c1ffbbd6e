import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct SessionTests {
    @Test func connectsAndIsReady() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready(within: .seconds(20))
        #expect(try await device.read(.batteryLevel).percentage == 87)
        #expect(session.state == .ready)
        await session.disconnect()
        #expect(session.state == .ended)
        #expect(await device.disconnectReason == .requested)
        await #expect(throws: error(.disconnected)) { try await session.ready() }
        await #expect(throws: error(.disconnected)) { try await session.reconnect() }
    }

    @Test func everyEventSequenceBeginsWithTheCurrentState() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let session = try await bench.session()
        var early = session.events.makeAsyncIterator()
        await bench.door.open()
        #expect(try await early.words(upTo: "ready") == ["connecting 1", "connected", "ready"])
        var late = session.events.makeAsyncIterator()
        #expect(try await late.next() == .ready)
        await session.disconnect()
        #expect(try await early.next() == .ended)
        #expect(try await early.next() == nil)
        #expect(try await late.words(upTo: "") == ["ended"])
        var afterEnd = session.events.makeAsyncIterator()
        #expect(try await afterEnd.words(upTo: "") == ["ended"])
    }

    @Test func theEventsBeginWhenThePropertyIsRead() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let session = try await bench.session()
        let events = session.events
        await bench.door.open()
        _ = try await session.ready()
        var iterator = events.makeAsyncIterator()
        #expect(try await iterator.words(upTo: "ready") == ["connecting 1", "connected", "ready"])
        await session.disconnect()
    }

    @Test func aLostLinkIsMadeAgain() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var events = session.events.makeAsyncIterator()
        let first = try await session.ready()
        _ = try await events.words(upTo: "ready")
        await bench.peripheral.disconnect()
        #expect(
            try await events.words(upTo: "ready") == [
                "disconnected disconnected", "connecting 2", "connected", "ready",
            ])
        let second = try await session.ready()
        #expect(first !== second)
        #expect(try await second.read(.batteryLevel).percentage == 87)
        await session.disconnect()
    }

    @Test func theEventHasTheReasonAndTheNextAttempt() async throws {
        let bench = try SessionBench()
        let policy = ReconnectPolicy.backoff(initial: .seconds(3600), max: .seconds(7200), jitter: 0)
        let session = try await bench.session(Session.Options(reconnect: policy))
        var events = session.events.makeAsyncIterator()
        _ = try await session.ready()
        _ = try await events.words(upTo: "ready")
        await bench.peripheral.disconnect()
        guard case .disconnected(let loss)? = try await events.next() else {
            Issue.record("the loss is told")
            return
        }
        #expect(loss.reason == .byPeer(nil))
        #expect(loss.error.hint?.contains("onnect") == false, "the session connects")
        #expect(loss.next == .after(.seconds(3600)) && loss.delay == .seconds(3600))
        #expect(session.state == .waiting(loss))
        // The pause is overtaken by a wish.
        try await session.reconnect()
        _ = try await session.ready()
        await bench.peripheral.disconnect()
        _ = try await events.words(upTo: "disconnected disconnected")
        // And by the end.
        await session.disconnect()
        #expect(session.state == .ended)
    }

    @Test func aRequestToConnectBeginsAgainAfterTheLastAttempt() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        await bench.door.refuse([.timedOut, .connectFailed, .busy])
        let policy = ReconnectPolicy.backoff(initial: .zero, jitter: 0, attempts: 3)
        let session = try await bench.session(Session.Options(reconnect: policy))
        var events = session.events.makeAsyncIterator()
        // Each caller that waits gets the error that ended the last attempt.
        await bench.door.open()
        await #expect(throws: error(.busy)) { try await session.ready() }
        await #expect(throws: error(.busy)) { try await session.ready() }
        let words = try await events.words(upTo: "gaveUp busy")
        #expect(words.suffix(3) == ["connecting 3", "disconnected busy", "gaveUp busy"])
        #expect(session.state == .gaveUp(error(.busy)))
        try await session.reconnect()
        _ = try await session.ready()
        #expect(try await events.words(upTo: "ready") == ["connecting 1", "connected", "ready"])
        await session.disconnect()
    }

    @Test(arguments: [BLEError.Code.notPermitted, .invalidArgument, .unsupported, .notSupported])
    func whatWillNeverWorkIsTriedOnce(_ code: BLEError.Code) async throws {
        let bench = try SessionBench()
        await bench.door.refuse([code])
        let session = try await bench.session()
        await #expect(throws: error(code)) { try await session.ready() }
        #expect(session.state == .gaveUp(error(code)))
        #expect(await bench.door.knocks == 1)
        await session.disconnect()
    }

    @Test func theProgramMayDecide() async throws {
        let bench = try SessionBench()
        await bench.door.refuse([.timedOut, .connectFailed, .timedOut])
        let asked = Lock<[String]>([])
        let session = try await bench.session(
            Session.Options(),
            Session.Handlers(reconnect: { loss, failures in
                asked.withLock { $0.append("\(loss.error.code) \(failures)") }
                return failures < 3 ? .milliseconds(1) : nil
            }))
        #expect(session.options.reconnect == .custom)
        await #expect(throws: error(.timedOut)) { try await session.ready() }
        #expect(asked.withLock { $0 } == ["timedOut 1", "connectFailed 2", "timedOut 3"])
        await session.disconnect()
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(-5), .zero]) func theProgramMayDecideOnAnyPause(
        pause: Duration
    ) async throws {
        let bench = try SessionBench()
        await bench.door.refuse([.timedOut])
        let session = try await bench.session(Session.Options(), Session.Handlers(reconnect: { _, _ in pause }))
        var events = session.events.makeAsyncIterator()
        while let event = try await events.next() {
            if case .disconnected(let loss) = event {
                #expect(loss.next == .after(max(pause, .zero)))
                break
            }
        }
        await session.disconnect()
        #expect(session.state == .ended)
    }

    @Test func aCustomPolicyNeedsAFunction() async throws {
        let bench = try SessionBench()
        await #expect(throws: error(.invalidArgument)) {
            try await bench.session(Session.Options(reconnect: .custom))
        }
        await #expect(throws: error(.invalidArgument)) {
            try await bench.session(Session.Options(connect: ConnectOptions(mtu: 5)))
        }
    }

    @Test func waitingHasALimitAndCanBeCancelled() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let session = try await bench.session()
        await #expect(throws: error(.timedOut)) { try await session.ready(within: .milliseconds(5)) }
        let task = testTask { try await session.ready() }
        task.cancel()
        await #expect(throws: error(.cancelled)) { try await task.value }
        // A caller that stops waiting does not end the connect.
        await bench.door.open()
        _ = try await session.ready()
        #expect(await bench.door.knocks == 1)
        await session.disconnect()
    }

    @Test func disconnectCancelsAConnect() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let session = try await bench.session()
        let waiter = testTask { try await session.ready() }
        while await bench.door.knocks == 0, !Task.isCancelled { await Task.yield() }
        await session.disconnect()
        await #expect(throws: error(.disconnected)) { try await waiter.value }
        await bench.door.open()
        #expect(await bench.peripheral.connectionCount == 0)
    }

    @Test func disconnectCancelsAnMTUExchange() async throws {
        let bench = try SessionBench()
        // A peer that takes the link and says nothing.
        let silent = ScriptedLink()
        let session = try await bench.central.session(
            SessionTarget(name: "silent") { options throws(BLEError) in
                try await bench.central.attach(descriptor: silent.connect(), options)
            })
        await silent.requestArrived()
        await session.disconnect()
        #expect(session.state == .ended)
        #expect(silent.isHungUp)
    }

    @Test func aSessionWithoutReferencesEnds() async throws {
        let bench = try SessionBench()
        var session: Session? = try await bench.session()
        weak let held = session
        _ = try await session?.ready()
        #expect(await bench.peripheral.isConnected)
        session = nil
        while await bench.peripheral.isConnected, !Task.isCancelled { await Task.yield() }
        #expect(held == nil)
    }

    @Test func aListenerHoldsTheSession() async throws {
        let bench = try SessionBench()
        var events: ConnectionEventSequence.AsyncIterator? = try await bench.session().events.makeAsyncIterator()
        #expect(try await events?.words(upTo: "ready").last == "ready")
        #expect(await bench.peripheral.isConnected)
        events = nil
        while await bench.peripheral.isConnected, !Task.isCancelled { await Task.yield() }
    }

    @Test func aListenerToTheSecurityHoldsTheSession() async throws {
        let bench = try SessionBench()
        var session: Session? = try await bench.session()
        weak let held = session
        var changes: LinkSecuritySequence.AsyncIterator? = session?.securityChanges.makeAsyncIterator()
        _ = try await session?.ready()
        session = nil
        #expect(held != nil)
        #expect(await bench.peripheral.isConnected)
        withExtendedLifetime(changes) {}
        changes = nil
        while await bench.peripheral.isConnected, !Task.isCancelled { await Task.yield() }
        #expect(held == nil)
    }

    @Test func eventsThatAreNotTakenAreCounted() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var events = session.events.makeAsyncIterator()
        var witness = session.events.makeAsyncIterator()
        _ = try await witness.words(upTo: "ready")
        for _ in 0..<30 {
            await bench.peripheral.disconnect()
            _ = try await witness.words(upTo: "ready")
        }
        await session.disconnect()
        guard case .missed(let count)? = try await events.next() else {
            Issue.record("the loss is told")
            return
        }
        let words = try await events.words(upTo: "ended")
        #expect(words.count == 64)
        // The beginning, of which up to two events may have come before the listener, thirty times four, and the end.
        #expect(count + 64 >= 30 * 4 + 2 && count + 64 <= 30 * 4 + 5)
    }

    @Test func aSessionUsesLinksOverAUnixSocket() async throws {
        let session = try await Central().session(
            toSocket: "/nonexistent/att.sock", Session.Options(reconnect: .backoff(initial: .zero, attempts: 2)))
        await #expect(throws: error(.connectFailed)) { try await session.ready() }
        await session.disconnect()
    }
}

/// The far end of a link that takes everything and says nothing.
private final class ScriptedLink: Sendable {
    private let far = Lock<LinkSocketBox?>(nil)

    func connect() -> Int32 {
        guard let (ours, theirs) = try? LinkSocket.pair() else { return -1 }
        far.withLock { $0 = LinkSocketBox(LinkSocket(adopting: theirs)) }
        return ours
    }

    var isHungUp: Bool { far.withLock { $0?.isHungUp ?? false } }

    func requestArrived() async {
        while far.withLock({ $0?.hasInput ?? false }) == false, !Task.isCancelled { await Task.yield() }
    }
}

extension LinkSocketBox {
    fileprivate var hasInput: Bool {
        var byte: UInt8 = 0
        return unsafe recv(socket.descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }
}
