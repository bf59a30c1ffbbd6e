import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

/// Each system call of a whole session fails, one at a time, in each way that is plausible for it.
///
/// Whatever fails: no trap, one outcome for each call, an end in time, no descriptor left, and no spin.
@Suite(.serialized, .timeLimit(.minutes(3))) struct EveryCallFailsTests {
    /// The errors of each kind of call, on a machine that is short of resources, a link that ends, an adapter that
    /// goes.
    private static let table: [(SystemCall, [Int32])] = [
        (.recvmsg, [EAGAIN, EINTR, ENOMEM, ENOBUFS, ECONNRESET, ETIMEDOUT, ENOTCONN, ENOSYS, EPIPE, EBADFD, ENODEV]),
        (.recv, [EAGAIN, EINTR, ECONNRESET]),
        (
            .send,
            [EAGAIN, EINTR, ENOMEM, ENOBUFS, EPIPE, ECONNRESET, ENOTCONN, EPERM, EMSGSIZE, EINVAL, ENETDOWN, ENODEV]
        ),
        (.poll, [EINTR, ENOMEM]),
        (.epollControl, [ENOMEM, ENOSPC]),
        (.epollWait, [EINTR]),
        (.read, [EINTR, EAGAIN]),
        (.write, [EINTR]),
        (.close, [EINTR, EIO]),
        (.socket, [EMFILE, ENFILE, ENOMEM, ENOBUFS, EAFNOSUPPORT, EPERM]),
        (.bind, [EPERM, ENODEV, EBUSY, ENETDOWN, ENOMEM]),
        (.connect, [EINTR, EBUSY, EALREADY, ECONNREFUSED, EHOSTUNREACH, ENOMEM, EINPROGRESS]),
        (.getsockopt, [ENOMEM, ENOTCONN]),
        (.setsockopt, [ENOMEM, EPERM]),
        (.getpeername, [ENOTCONN]),
        (.ioctl, [EINTR, ENODEV, ENOMEM, EPERM]),
        (.shutdown, [ENOTCONN]),
    ]

    /// Ends a trial that hangs, and says so.
    private static func bounded(_ what: String, _ body: @Sendable @escaping () async throws -> Void) async {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    try await body()
                } catch {
                    Issue.record("\(what): \(error)")
                }
                return true
            }
            group.addTask {
                try? await Task.sleep(for: .seconds(300))
                return false
            }
            if await group.next() == false, !Task.isCancelled { Issue.record("\(what) hangs") }
            group.cancelAll()
        }
    }

    // MARK: A session over a socketpair

    /// Finds out, reads, writes, listens and ends. Everything has a deadline of its own.
    private static func session(
        _ device: Peripheral, _ peripheral: VirtualPeripheral
    ) async -> [BLEError?] {
        var outcomes: [BLEError?] = []
        outcomes.append(
            await failure { () async throws(BLEError) in _ = try await device.discover(level: .full) })
        outcomes.append(
            await failure { () async throws(BLEError) in
                let value = try await device.read(FaultyLink.value, timeout: .seconds(60))
                #expect(value == [64])
            })
        outcomes.append(
            await failure { () async throws(BLEError) in
                try await device.write([1, 2], to: FaultyLink.writable, timeout: .seconds(60))
            })
        outcomes.append(
            await failure { () async throws(BLEError) in
                try await device.write([3], to: FaultyLink.writable, .withoutResponse, timeout: .seconds(60))
            })
        outcomes.append(
            await failure { () async throws(BLEError) in
                let values = try await device.subscribe(to: FaultyLink.value)
                _ = try? await peripheral.notify(FaultyLink.valueUUID, [5])
                var walk = values.makeAsyncIterator()
                let value = try await walk.next()
                #expect(value?.bytes == [5])
                try await values.unsubscribe()
            })
        return outcomes
    }

    private static func trial(_ bench: SessionBench) async throws -> [BLEError?] {
        let peripheral = VirtualPeripheral(FaultyLink.device)
        let descriptor = try await peripheral.connect()
        bench.plan.take(descriptor)
        let device: Peripheral
        do throws(BLEError) {
            device = try await bench.central.attach(descriptor: descriptor, name: "trial")
        } catch {
            await FaultyLink.until { await !peripheral.isConnected }
            return [error]
        }
        let earlier = await session(device, peripheral)
        let last = await failure { () async throws(BLEError) in
            _ = try await device.read(FaultyLink.value, timeout: .seconds(60))
        }
        let isConnected = await device.isConnected
        async let end = device.disconnected()
        await device.disconnect()
        #expect(await end != nil)
        await FaultyLink.until { await !peripheral.isConnected }
        // A link that is lost fails all that comes after; one that is not, at most the call that was hit.
        let outcomes = earlier + [last]
        if isConnected { #expect(outcomes.count { $0 != nil } <= 1) }
        return outcomes
    }

    private struct SessionBench: Sendable {
        let plan: FaultPlan
        let loop: EventLoop
        let central: Central
        let openBefore: Int
    }

    @Test("every system call of a session fails once", .row("O02", "O09", "O10", "O11", "O12", "O13"))
    func anyCallOfASessionMayFailOnce()
        async throws
    {
        let plan = try FaultPlan()
        let loop = plan.joined { EventLoop() }
        let bench = SessionBench(
            plan: plan, loop: loop, central: FaultyLink.central(loop, .seconds(10)), openBefore: plan.openCount)
        loop.start()
        await plan.join(loop)
        let counted = try await Self.counting(plan) {
            let outcomes = try await Self.trial(bench)
            #expect(outcomes.allSatisfy { $0 == nil })
        }
        var trials = 0
        for (call, errnos) in Self.table where counted[call, default: 0] > 0 {
            for errno in errnos {
                for index in 0..<counted[call, default: 0] {
                    let what = "\(call) \(index) with \(errno)"
                    let before = plan.count()
                    plan.set(SystemCalls(call), .fail(errno), skip: index)
                    await Self.bounded(what) {
                        for case let error? in try await Self.trial(bench) { Self.check(error, what) }
                    }
                    plan.clear()
                    #expect(plan.openCount == bench.openBefore, "\(what)")
                    #expect(plan.count() - before < 50 * counted.values.reduce(0, +), "\(what): a spin")
                    trials += 1
                }
            }
        }
        #expect(trials > 250)
        let last = try await Self.trial(bench)
        #expect(last.allSatisfy { $0 == nil })
        await plan.leave(loop)
        await loop.end()
        #expect(loop.watchedCount == 0)
        #expect(loop.timerCount == 0)
    }

    private static func counting(
        _ plan: FaultPlan, _ body: () async throws -> Void
    ) async throws -> [SystemCall: Int] {
        let before = Dictionary(uniqueKeysWithValues: SystemCall.allCases.map { ($0, plan.count(SystemCalls($0))) })
        try await body()
        return Dictionary(
            uniqueKeysWithValues: SystemCall.allCases.map { ($0, plan.count(SystemCalls($0)) - before[$0, default: 0]) }
        )
    }

    private static func check(_ error: BLEError, _ what: String) {
        #expect(error.hint != nil, "\(what): \(error)")
    }

    // MARK: An adapter

    /// An adapter that is lost while it is scanned with is looked for after seconds, and a scan that cannot be ended is
    /// given up after some; `AdapterFaultTests` waits for the former, and one number does for the latter.
    private static func takesSeconds(_ call: SystemCall, _ errno: Int32) -> Bool {
        switch call {
        case .recvmsg: ![EAGAIN, EINTR, ENOMEM, ENOBUFS].contains(errno)
        case .send: ![EINTR, ENOBUFS].contains(errno)
        default: false
        }
    }

    @Test(
        "every system call of a scan and a connect fails once", .row("O01", "O04", "O09", "O11", "O12", "O14", "O15"),
        arguments: [true, false])
    func anyCallOfAScanAndAConnectMayFailOnce(mayCommand: Bool) async throws {
        // Once without a fault, to count.
        let plain = try await FaultyAdapter(mayCommand: mayCommand)
        let counted = try await Self.counting(plain.plan) {
            if mayCommand { try await plain.listen() }
            try await plain.visit()
        }
        await plain.end()
        var trials = 0
        for (call, errnos) in Self.table where ![.epollWait, .read, .close].contains(call) {
            for errno in errnos where !Self.takesSeconds(call, errno) {
                for index in 0..<counted[call, default: 0] {
                    let what = "\(call) \(index) with \(errno)"
                    let bench = try await FaultyAdapter(mayCommand: mayCommand)
                    bench.plan.set(SystemCalls(call), .fail(errno), skip: index)
                    await Self.bounded(what) {
                        if mayCommand,
                            let error = await failure({ () async throws(BLEError) in try await bench.listen() })
                        {
                            Self.check(error, what)
                        }
                        if let error = await failure({ () async throws(BLEError) in try await bench.visit() }) {
                            Self.check(error, what)
                        }
                        // Whatever it was, it is over.
                        bench.plan.clear()
                        if mayCommand { try await bench.listen() }
                        try await bench.visit()
                    }
                    await bench.end()
                    trials += 1
                }
            }
        }
        #expect(trials > 40)
    }
}
