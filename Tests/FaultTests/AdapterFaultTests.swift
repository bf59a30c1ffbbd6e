import BLECore
import BLELinux
import BareBLE
import Glibc
import Testing

/// What one scan was told.
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

/// L03, O01, O04, O05, O11, O12, O14, O15, O30, H14, H15: what the kernel does to the sockets of an adapter, and to a connect.
@Suite(.serialized, .timeLimit(.minutes(1))) struct AdapterFaultTests {
    private func failures(
        _ bench: FaultyAdapter
    ) async -> [BLEError?] {
        [
            await failure { () async throws(BLEError) in try await bench.visit() },
            await failure { () async throws(BLEError) in try await bench.listen() },
        ]
    }

    private func expect(_ error: BLEError?, _ code: BLEError.Code, _ errno: Int32?) {
        #expect(error?.code == code, "\(String(describing: error))")
        #expect(error?.errorNumber == errno)
        #expect(error?.hint != nil)
    }

    @Test("scans, connects and lets go without any fault") func nothingFails() async throws {
        let bench = try await FaultyAdapter()
        try await bench.listen()
        try await bench.visit()
        try await bench.listen()
        #expect(await bench.machine.linkCount == 1)
        await bench.end()
    }

    // MARK: Opening

    // Row O30.
    @Test("no Bluetooth", arguments: [EAFNOSUPPORT, EPROTONOSUPPORT]) func noBluetooth(errno: Int32) async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.socket), .fail(errno), times: nil)
        for error in await failures(bench) { expect(error, .unsupported, errno) }
        #expect(bench.plan.count(SystemCalls(.socket)) == 2, "nobody insists")
        await bench.end()
    }

    // Rows O12, O11.
    @Test(
        "no descriptor or no memory for a socket", arguments: [EMFILE, ENFILE, ENOMEM, ENOBUFS], [0, 1, 2])
    func noDescriptor(errno: Int32, skip: Int) async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.socket), .fail(errno), skip: skip)
        expect(await failure { () async throws(BLEError) in try await bench.visit() }, .system, errno)
        // There are some again.
        try await bench.visit()
        try await bench.listen()
        await bench.end()
    }

    // Row O12.
    @Test("no descriptor for the link's socket", arguments: [EMFILE, ENFILE, ENOMEM]) func noDescriptorToConnect(
        errno: Int32
    ) async throws {
        let bench = try await FaultyAdapter()
        try await bench.visit()
        // Behind a look at the adapter, and one at its links.
        bench.plan.set(SystemCalls(.socket), .fail(errno), skip: 2)
        expect(await failure { () async throws(BLEError) in try await bench.visit() }, .system, errno)
        #expect(bench.plan.hits == 1)
        try await bench.visit()
        await bench.end()
    }

    // Row O12.
    @Test("no descriptor for a Unix socket") func noDescriptorForUnixSocket() async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.socket), .fail(EMFILE))
        let error = await failure { () async throws(BLEError) in
            _ = try await bench.central.connect(toSocket: "/nonexistent/socket")
        }
        expect(error, .system, EMFILE)
        await bench.end()
    }

    // Row O15.
    @Test("not permitted to bind", arguments: [EPERM, EACCES]) func notPermittedToBind(errno: Int32) async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.bind), .fail(errno), times: 2)
        for error in await failures(bench) {
            expect(error, .notPermitted, errno)
            #expect(error?.reason.contains("CAP_NET_") == true)
        }
        try await bench.listen()
        await bench.end()
    }

    // Row O15.
    @Test("not permitted to send a command") func notPermittedToSend() async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(.sending, .fail(EPERM))
        let error = await failure { () async throws(BLEError) in try await bench.listen() }
        expect(error, .notPermitted, EPERM)
        #expect(error?.reason.contains("CAP_NET_RAW") == true)
        try await bench.listen()
        await bench.end()
    }

    // Rows O04, O05.
    @Test(
        "switched off, blocked or in other hands",
        arguments: [
            (ENETDOWN, BLEError.Code.adapterDown), (ERFKILL, .blocked), (ENODEV, .noAdapter), (EBUSY, .busy),
            (EADDRNOTAVAIL, .adapterDown), (EIO, .system),
        ]) func openingFails(errno: Int32, code: BLEError.Code) async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.bind), .fail(errno))
        let error = await failure { () async throws(BLEError) in try await bench.listen() }
        expect(error, code, errno)
        #expect(error?.subject == "hci0")
        try await bench.listen()
        await bench.end()
    }

    // Rows O05, O14, O09.
    @Test("switching an adapter on") func power() throws {
        let plan = try FaultPlan()
        plan.pretendBluetooth(PretendedMachine.address.rawValue)
        let table: [(Int32, LocalFailure?)] = [
            (ERFKILL, .blocked), (ENODEV, .adapterGone), (EPERM, .notPermitted(.netAdmin)), (ETIMEDOUT, .noAnswer),
            (EBUSY, .inUse), (EADDRNOTAVAIL, .noAddress), (EALREADY, nil), (EINTR, nil),
        ]
        for (errno, meaning) in table {
            plan.set(SystemCalls(.ioctl), .fail(errno))
            let failure = plan.joined { () -> SystemCallError? in
                do throws(SystemCallError) {
                    try Controllers.powerUp(0)
                    return nil
                } catch {
                    return error
                }
            }
            #expect(failure?.meaning == meaning)
            plan.clear()
        }
        #expect(plan.openCount == 0)
    }

    // MARK: Running

    // Row O11.
    @Test("no memory for a command", arguments: [ENOMEM, ENOBUFS]) func noMemoryToSend(errno: Int32) async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(.sending, .fail(errno))
        expect(await failure { () async throws(BLEError) in try await bench.listen() }, .system, errno)
        try await bench.listen()
        try await bench.visit()
        await bench.end()
    }

    // Row O11.
    @Test("no memory to receive", arguments: [ENOMEM, ENOBUFS]) func noMemoryToReceive(errno: Int32) async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.recvmsg), .fail(errno), times: 3)
        try await bench.listen()
        #expect(bench.plan.hits == 3)
        await bench.end()
    }

    /// The scan is told, once; the adapter is found again by its address, and the scan goes on.
    // Row O01.
    @Test("unplugged while scanning", arguments: [EPIPE, ENODEV, EBADFD]) func unplugged(errno: Int32) async throws {
        let bench = try await FaultyAdapter()
        let told = ToldScan()
        let scan = try await bench.adapter.subscribe(.balanced) { told.take($0) }
        await bench.heard(told.isHeard)
        let before = bench.plan.count(.receiving)
        bench.plan.set(SystemCalls(.recvmsg), .fail(errno))
        await bench.machine.advertise()
        await FaultyLink.until { !told.notices.withLock(\.isEmpty) }
        #expect(bench.plan.count(.receiving) - before <= 2, "no spin")
        await FaultyLink.until { told.notices.withLock(\.count) == 3 }
        #expect(told.notices.withLock(\.self) == [.adapterLost, .adapterBack, .resumed])
        told.isHeard.withLock { $0 = false }
        await bench.heard(told.isHeard)
        await bench.adapter.unsubscribe(scan)
        await bench.end()
    }

    // Rows O01, O03.
    @Test("gone and back before anybody looked") func goneAndBack() async throws {
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

    // Row O04.
    @Test("switched off, and on again", arguments: [ENETDOWN, EHOSTUNREACH]) func switchedOff(
        errno: Int32
    ) async throws {
        let bench = try await FaultyAdapter()
        try await bench.visit()
        bench.plan.set(.sending, .fail(errno))
        let error = await failure { () async throws(BLEError) in try await bench.visit() }
        expect(error, .adapterDown, ENETDOWN)
        #expect(error?.subject == "hci0")
        #expect(bench.plan.hits == 1)
        // The kernel says that it is on.
        try await bench.visit()
        // A scan that was to begin fails as well.
        bench.plan.set(.sending, .fail(errno))
        expect(await failure { () async throws(BLEError) in try await bench.listen() }, .adapterDown, ENETDOWN)
        #expect(bench.plan.hits == 2)
        try await bench.listen()
        await bench.end()
    }

    // Row O17.
    @Test("awake for nothing, beside a controller") func spurious() async throws {
        let bench = try await FaultyAdapter()
        try await bench.listen()
        let before = bench.plan.count(SystemCalls(.recvmsg))
        bench.plan.set(SystemCalls(.recvmsg), .fail(EAGAIN), times: 5)
        try await bench.visit()
        #expect(bench.plan.count(SystemCalls(.recvmsg)) - before < 100)
        await bench.end()
    }

    // Row O16.
    @Test("an event that is cut", arguments: [FaultPlan.Effect.length(1_200), .short(2), .short(4)])
    func cut(effect: FaultPlan.Effect) async throws {
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

    // MARK: Connecting

    /// A number of the kernel's, what it is called, and how often the library tries.
    // Rows L03, O14.
    @Test(
        "a connect that fails",
        arguments: [
            (EBUSY, BLEError.Code.busy, 3), (EALREADY, .busy, 3), (EISCONN, .busy, 1), (ENOSYS, .connectFailed, 3),
            (ECONNREFUSED, .lowEnergyOff, 1), (EHOSTUNREACH, .adapterDown, 1), (ENETDOWN, .adapterDown, 1),
            (EINVAL, .invalidArgument, 1), (EMLINK, .busy, 1), (EOPNOTSUPP, .notSupported, 1),
            (ECONNABORTED, .adapterDown, 1), (ENOMEM, .system, 1), (EIO, .connectFailed, 1),
        ])
    func connecting(errno: Int32, code: BLEError.Code, attempts: Int) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        bench.plan.set(SystemCalls(.connect), .fail(errno), times: 3)
        expect(await failure { () async throws(BLEError) in try await bench.visit() }, code, errno)
        #expect(bench.plan.count(SystemCalls(.connect)) == attempts)
        bench.plan.clear()
        try await bench.visit()
        await bench.end()
    }

    // Row O14.
    @Test("somebody else's connect is just ending", arguments: [true, false]) func busyOnce(mayCommand: Bool)
        async throws
    {
        let bench = try await FaultyAdapter(mayCommand: mayCommand)
        bench.plan.set(SystemCalls(.connect), .fail(EBUSY))
        try await bench.visit()
        #expect(bench.plan.hits == 1)
        await bench.end()
    }

    // Rows O14, O09.
    @Test("a connect that is under way, or interrupted", arguments: [EINPROGRESS, EINTR])
    func underWay(errno: Int32) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        bench.plan.pretendSlowConnect()
        bench.plan.set(SystemCalls(.connect), .fail(errno))
        try await bench.visit()
        await bench.end()
    }

    /// What the kernel says when it is over.
    // Row O14.
    @Test(
        "a connect that fails later",
        arguments: [
            (EBUSY, BLEError.Code.busy), (EHOSTUNREACH, .adapterDown), (ECONNABORTED, .adapterDown),
            (ENOSYS, .connectFailed),
        ])
    func failsLater(errno: Int32, code: BLEError.Code) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        bench.plan.pretendSlowConnect()
        bench.plan.set(SystemCalls(.getsockopt), .returning(errno), times: nil)
        expect(await failure { () async throws(BLEError) in try await bench.visit() }, code, errno)
        await bench.end()
    }
}
