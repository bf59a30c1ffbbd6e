import BLECore
import BLELinux
import BareBLE
import Glibc
import TestSupport
import Testing

/// The events of one scan.
private final class ToldScan: Sendable {
    let isHeard = Lock(false)
    let notices = Lock<[ScanNotice]>([])

    func take(_ delivery: ScanDelivery) {
        switch delivery {
        case .found, .updated: isHeard.withLock { $0 = true }
        case .lost: break
        case .notice(let notice): notices.withLock { $0.append(notice) }
        }
    }
}

/// Faults of the kernel on the sockets of an adapter that is in use.
@Suite(.serialized, .timeLimit(.minutes(10))) struct AdapterSocketFaultTests {
    @Test("no memory for a command", .row("O11"), arguments: [ENOMEM, ENOBUFS]) func noMemoryToSend(errno: Int32)
        async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(.sending, .fail(errno))
        expectHint(await failure { () async throws(BLEError) in try await bench.listen() }, .system, errno)
        try await bench.listen()
        try await bench.visit()
        await bench.end()
    }

    @Test("no memory to receive", .row("O11"), arguments: [ENOMEM, ENOBUFS]) func aLackOfMemoryToReceiveEndsNoScan(
        errno: Int32
    )
        async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.recvmsg), .fail(errno), times: 3)
        try await bench.listen()
        #expect(bench.plan.hits == 3)
        await bench.end()
    }

    /// The scan is notified, once; the adapter is found again by its address, and the scan continues.
    @Test("unplugged while scanning", .row("O01"), arguments: [EPIPE, ENODEV, EBADFD])
    func aScanContinuesAfterItsAdapterWasUnplugged(errno: Int32)
        async throws
    {
        let bench = try await FaultyAdapter()
        let told = ToldScan()
        let plan = bench.plan
        let countAtLoss = Lock<Int?>(nil)
        let scan = try await bench.adapter.subscribe(.balanced) { delivery in
            // Later the adapter is open again, and receives.
            if case .notice(.adapterLost) = delivery { countAtLoss.withLock { $0 = plan.count(.receiving) } }
            told.take(delivery)
        }
        await bench.heard(told.isHeard)
        let before = bench.plan.count(.receiving)
        bench.plan.set(SystemCalls(.recvmsg), .fail(errno))
        await bench.machine.advertise()
        await FaultyLink.until { !told.notices.withLock(\.isEmpty) }
        #expect(try #require(countAtLoss.withLock { $0 }) - before <= 2, "no spin")
        await FaultyLink.until { told.notices.withLock(\.count) == 3 }
        #expect(told.notices.withLock(\.self) == [.adapterLost, .adapterBack, .resumed])
        told.isHeard.withLock { $0 = false }
        await bench.heard(told.isHeard)
        await bench.adapter.unsubscribe(scan)
        await bench.end()
    }

    @Test("gone and back before anybody looked", .row("O01", "O03"))
    func aScanIsNotifiedOfAnAdapterThatWasGoneAndIsBack() async throws {
        let bench = try await FaultyAdapter()
        let told = ToldScan()
        let scan = try await bench.adapter.subscribe(.balanced) { told.take($0) }
        // A connect looks, and finds it in its list under the same address.
        bench.plan.set(SystemCalls(.ioctl), .fail(ENODEV))
        try await bench.visit()
        #expect(bench.plan.hits == 1)
        #expect(told.notices.withLock { $0.prefix(2) } == [.adapterLost, .adapterBack])
        await bench.heard(told.isHeard)
        await bench.adapter.unsubscribe(scan)
        try await bench.listen()
        await bench.end()
    }

    @Test("switched off, and on again", .row("O04"), arguments: [ENETDOWN, EHOSTUNREACH]) func switchedOff(
        errno: Int32
    ) async throws {
        let bench = try await FaultyAdapter()
        try await bench.visit()
        bench.plan.set(.sending, .fail(errno))
        let error = await failure { () async throws(BLEError) in try await bench.visit() }
        expectHint(error, .adapterDown, ENETDOWN)
        #expect(error?.subject == "hci0")
        #expect(bench.plan.hits == 1)
        // The kernel says that it is on.
        try await bench.visit()
        // A scan that was to begin fails as well.
        bench.plan.set(.sending, .fail(errno))
        expectHint(await failure { () async throws(BLEError) in try await bench.listen() }, .adapterDown, ENETDOWN)
        #expect(bench.plan.hits == 2)
        try await bench.listen()
        await bench.end()
    }

    @Test("awake for nothing, beside a controller", .row("O17")) func wakingForNothingDoesNotSpin() async throws {
        let bench = try await FaultyAdapter()
        try await bench.listen()
        let before = bench.plan.count(SystemCalls(.recvmsg))
        bench.plan.set(SystemCalls(.recvmsg), .fail(EAGAIN), times: 5)
        try await bench.visit()
        #expect(bench.plan.count(SystemCalls(.recvmsg)) - before < 100)
        await bench.end()
    }

    /// The socket wakes the loop again and again, and has no packet.
    @Test("an error that reading does not clear, beside a controller", .row("O17"))
    func anErrorThatReadingDoesNotClearIsALoss() async throws {
        let bench = try await FaultyAdapter()
        let told = ToldScan()
        let scan = try await bench.adapter.subscribe(.balanced) { told.take($0) }
        await bench.heard(told.isHeard)
        let before = bench.plan.count(.receiving)
        bench.plan.set(.receiving, .fail(EAGAIN), times: nil)
        bench.plan.set(SystemCalls(.poll), .state(Int32(POLLERR)), times: nil)
        await bench.machine.advertise()
        await FaultyLink.until { !told.notices.withLock(\.isEmpty) || bench.plan.count(.receiving) - before > 100 }
        #expect(bench.plan.count(.receiving) - before <= 8, "no spin")
        #expect(told.notices.withLock(\.first) == .adapterLost)
        bench.plan.clear()
        told.isHeard.withLock { $0 = false }
        await bench.heard(told.isHeard)
        await bench.adapter.unsubscribe(scan)
        await bench.end()
    }

    @Test("an event that is cut", .row("O16"), arguments: [FaultPlan.Effect.length(1_200), .short(2), .short(4)])
    func anEventThatIsCutIsCountedAsMalformed(effect: FaultPlan.Effect) async throws {
        let bench = try await FaultyAdapter()
        let isHeard = Lock(false)
        let scan = try await bench.adapter.subscribe(.balanced) { delivery in
            if case .found = delivery { isHeard.withLock { $0 = true } }
        }
        let before = await bench.adapter.statistics
        bench.plan.set(SystemCalls(.recvmsg), effect)
        await bench.heard(isHeard)
        let after = await bench.adapter.statistics
        #expect(after.malformedEvents == before.malformedEvents + 1)
        await bench.adapter.unsubscribe(scan)
        await bench.end()
    }
}
