import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

/// A kernel that does not watch what the event loop waits for.
@Suite(.serialized, .timeLimit(.minutes(10))) struct WatchingFaultTests {
    /// Mainline's `ep_modify` returns 0 for every descriptor that is watched, so the system under test does too.
    @Test("what a descriptor is watched for changes without a failure", .row("O17"))
    func whatIsWatchedForChangesWithoutAFailure() throws {
        let plan = try FaultPlan()
        let loop = plan.joined { EventLoop() }
        let (near, far) = try LinkSocket.pair()
        let socket = LinkSocket(adopting: near)
        var peer = LinkSocket(adopting: far)
        plan.take(near)
        var calls: [String] = []
        plan.set(SystemCalls(.epollControl), .fail(ENOMEM), on: near, times: nil)
        #expect(loop.onReadable(near) { calls.append("refused") }?.errno == ENOMEM)
        #expect(loop.watchedCount == 0)
        plan.clear()
        #expect(loop.onReadable(near) { loop.unregister(near) } == nil)
        plan.set(SystemCalls(.epollControl), .fail(ENOMEM), on: near, times: nil)
        #expect(loop.onWritable(near) { calls.append("writable") } == nil)
        #expect(loop.onWritable(near, nil) == nil)
        #expect(loop.watchedCount == 1)
        let before = plan.count(SystemCalls(.epollWait))
        _ = loop.schedule(at: loop.now() + .milliseconds(20)) { calls.append("time") }
        plan.joined { loop.run { !calls.isEmpty } }
        // A descriptor without a waiter does not wake the loop.
        #expect(calls == ["time"])
        #expect(plan.count(SystemCalls(.epollWait)) - before < 10)
        let outcome = peer.send([1])
        #expect(outcome == .sent)
        plan.joined { loop.run { loop.watchedCount == 0 } }
        loop.unregister(socket.descriptor)
    }

    @Test("the loop cannot watch a new link", .row("O12"), arguments: [ENOMEM, ENOSPC]) func unwatchableFromTheStart(
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
