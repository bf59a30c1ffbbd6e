import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

/// A kernel that does not watch what the event loop waits for.
@Suite(.serialized, .timeLimit(.minutes(1))) struct WatchingFaultTests {
    // Row O11.
    @Test("the loop cannot watch for room", arguments: [ENOMEM, ENOSPC]) func unwatchable(errno: Int32)
        async throws
    {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(EAGAIN))
        link.plan.set(SystemCalls(.epollControl), .fail(errno), on: link.descriptor)
        try await link.checkUsable()
        #expect(link.plan.hits == 2)
        try await link.checkUsable()
        await link.end()
    }

    // Rows O11, O17.
    @Test("the kernel cannot narrow what it watches for", arguments: [1, 2, 50]) func narrowing(times: Int) async throws
    {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(EAGAIN))
        // Behind the one that asks for room. In the first case it is asked anew at once, in the others a little later.
        link.plan.set(SystemCalls(.epollControl), .fail(ENOMEM), on: link.descriptor, skip: 1, times: times)
        try await link.checkUsable()
        await FaultyLink.until { link.plan.hits == times + 1 }
        try await link.checkUsable()
        await link.end()
    }

    // Rows O11, O17.
    @Test("the kernel does not watch a link any more") func unwatched() async throws {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(EAGAIN))
        link.plan.set(SystemCalls(.epollControl), .fail(ENOSPC), on: link.descriptor, skip: 1, times: nil)
        let error = await failure { () async throws(BLEError) in
            _ = try await link.device.read(FaultyLink.value)
        }
        #expect(error?.code == .disconnected)
        #expect(await link.device.disconnectReason == .other(nil, errorNumber: ENOSPC))
        await link.checkEnded()
    }

    /// Without a peer: how often the loop turns while nothing happens that anybody waits for.
    // Row O17.
    @Test("a descriptor that stays watched for too much keeps the loop asleep", arguments: [1, 2])
    func narrowingKeepsTheLoopAsleep(times: Int) throws {
        let plan = try FaultPlan()
        let loop = plan.joined { EventLoop() }
        let (near, far) = try LinkSocket.pair()
        let socket = LinkSocket(adopting: near)
        var peer = LinkSocket(adopting: far)
        plan.take(near)
        var calls: [String] = []
        func runOn() {
            let before = calls.count
            _ = loop.schedule(at: loop.now() + .milliseconds(20)) { calls.append("time") }
            plan.joined { loop.run { calls.count > before } }
        }
        loop.onReadable(near) { loop.letGo(near) }
        loop.onWritable(near) { calls.append("writable") }
        plan.set(SystemCalls(.epollControl), .fail(ENOMEM), on: near, times: times)
        // With two failures nothing is watched, and whose descriptor it is knows.
        #expect(loop.onWritable(near, nil)?.errno == (times == 1 ? nil : ENOMEM))
        #expect(loop.watchedCount == 2 - times)
        let before = plan.count(SystemCalls(.epollWait))
        runOn()
        #expect(calls == ["time"])
        #expect(plan.count(SystemCalls(.epollWait)) - before < 10)
        // What is still watched is told.
        let outcome = peer.send([1])
        #expect(outcome == .sent)
        if times == 1 { plan.joined { loop.run { loop.watchedCount == 0 } } }
        loop.letGo(socket.descriptor)
    }

    // Row O12.
    @Test("the loop cannot watch a new link", arguments: [ENOMEM, ENOSPC]) func unwatchableFromTheStart(
        errno: Int32
    ) async throws {
        let link = try await FaultyLink()
        let other = VirtualPeripheral(FaultyLink.device)
        let descriptor = try await other.connect()
        link.plan.take(descriptor)
        link.plan.set(SystemCalls(.epollControl), .fail(errno), on: descriptor)
        let error = await failure { () async throws(BLEError) in
            _ = try await FaultyLink.central(link.loop).attach(descriptor: descriptor)
        }
        #expect(error?.code == .system)
        #expect(error?.errorNumber == errno)
        #expect(error?.hint != nil)
        await FaultyLink.until { await !other.isConnected }
        try await link.checkUsable()
        await link.end()
    }
}
