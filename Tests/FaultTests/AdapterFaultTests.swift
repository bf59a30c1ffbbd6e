import BLECore
import BLELinux
import BareBLE
import Glibc
import TestSupport
import Testing

/// Faults of the kernel when an adapter's sockets are opened, and in a connect.
@Suite(.serialized, .timeLimit(.minutes(10))) struct AdapterFaultTests {
    private func failures(
        _ bench: FaultyAdapter
    ) async -> [BLEError?] {
        [
            await failure { () async throws(BLEError) in try await bench.visit() },
            await failure { () async throws(BLEError) in try await bench.listen() },
        ]
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

    @Test("no Bluetooth", .row("O30"), arguments: [EAFNOSUPPORT, EPROTONOSUPPORT])
    func aSystemWithoutBluetoothIsUnsupported(errno: Int32)
        async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.socket), .fail(errno), times: nil)
        for error in await failures(bench) { expectHint(error, .unsupported, errno) }
        #expect(bench.plan.count(SystemCalls(.socket)) == 2, "nobody insists")
        await bench.end()
    }

    @Test(
        "no descriptor or no memory for a socket", .row("O12", "O11"), arguments: [EMFILE, ENFILE, ENOMEM, ENOBUFS],
        [0, 1, 2])
    func aMissingDescriptorFailsOneCall(errno: Int32, skip: Int) async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.socket), .fail(errno), skip: skip)
        expectHint(await failure { () async throws(BLEError) in try await bench.visit() }, .system, errno)
        // There are some again.
        try await bench.visit()
        try await bench.listen()
        await bench.end()
    }

    @Test("no descriptor for the link's socket", .row("O12"), arguments: [EMFILE, ENFILE, ENOMEM])
    func aMissingDescriptorFailsAConnect(
        errno: Int32
    ) async throws {
        let bench = try await FaultyAdapter()
        try await bench.visit()
        // After a look at the adapter, and two at its links.
        bench.plan.set(SystemCalls(.socket), .fail(errno), skip: 3)
        expectHint(await failure { () async throws(BLEError) in try await bench.visit() }, .system, errno)
        #expect(bench.plan.hits == 1)
        try await bench.visit()
        await bench.end()
    }

    @Test("no descriptor for a Unix socket", .row("O12")) func aMissingDescriptorFailsAConnectToAUnixSocket()
        async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.socket), .fail(EMFILE))
        let error = await failure { () async throws(BLEError) in
            _ = try await bench.central.connect(toSocket: "/nonexistent/socket")
        }
        expectHint(error, .system, EMFILE)
        await bench.end()
    }

    @Test("not permitted to bind", .row("O15"), arguments: [EPERM, EACCES]) func notPermittedToBind(errno: Int32)
        async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.bind), .fail(errno), times: 2)
        for error in await failures(bench) {
            expectHint(error, .notPermitted, errno)
            #expect(error?.reason.contains("CAP_NET_") == true)
        }
        try await bench.listen()
        await bench.end()
    }

    @Test("not permitted to send a command", .row("O15")) func notPermittedToSend() async throws {
        let bench = try await FaultyAdapter()
        bench.plan.set(.sending, .fail(EPERM))
        let error = await failure { () async throws(BLEError) in try await bench.listen() }
        expectHint(error, .notPermitted, EPERM)
        #expect(error?.reason.contains("CAP_NET_RAW") == true)
        try await bench.listen()
        await bench.end()
    }

    @Test(
        "switched off, blocked or in other hands", .row("O04", "O05", "W58"),
        arguments: [
            (ENETDOWN, BLEError.Code.adapterDown), (ERFKILL, .blocked), (ENODEV, .noAdapter), (EBUSY, .busy),
            (EADDRNOTAVAIL, .adapterDown), (EIO, .system), (EOPNOTSUPP, .system),
        ]) func openingFails(errno: Int32, code: BLEError.Code) async throws
    {
        let bench = try await FaultyAdapter()
        bench.plan.set(SystemCalls(.bind), .fail(errno))
        let error = await failure { () async throws(BLEError) in try await bench.listen() }
        expectHint(error, code, errno)
        expectNoFile(error?.hint)
        #expect(error?.subject == "hci0")
        try await bench.listen()
        await bench.end()
    }

    @Test("switching an adapter on", .row("O05", "O14", "O09")) func switchingAnAdapterOnReportsEachFailure() throws {
        let plan = try FaultPlan()
        plan.pretendBluetooth(PretendedMachine.address.rawValue)
        let table: [(Int32, LocalFailure?)] = [
            (ERFKILL, .blocked), (ENODEV, .adapterGone), (EPERM, .notPermitted(.netAdmin)), (ETIMEDOUT, .noResponse),
            (EBUSY, .inUse), (EADDRNOTAVAIL, .noAddress), (EOPNOTSUPP, .unconfigured), (EIO, .other(errno: EIO)),
            (EALREADY, nil), (EINTR, nil),
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

    // MARK: Connecting

    /// A number of the kernel's, what it is called, and how often the library tries.
    @Test(
        "a connect that fails", .row("L03", "O14"),
        arguments: [
            (EBUSY, BLEError.Code.busy, 3), (EALREADY, .busy, 3), (EISCONN, .busy, 1), (ENOSYS, .connectFailed, 3),
            (ECONNREFUSED, .lowEnergyOff, 1), (EHOSTUNREACH, .adapterDown, 1), (ENETDOWN, .adapterDown, 1),
            (EINVAL, .invalidArgument, 1), (EMLINK, .busy, 1), (EOPNOTSUPP, .notSupported, 1),
            (ECONNABORTED, .adapterDown, 1), (ENOMEM, .system, 1), (EIO, .connectFailed, 1),
        ])
    func aFailedConnectHasTheCodeOfItsCause(errno: Int32, code: BLEError.Code, attempts: Int) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        bench.plan.set(SystemCalls(.connect), .fail(errno), times: 3)
        let error = await failure { () async throws(BLEError) in try await bench.visit() }
        expectHint(error, code, errno)
        expectNoFile(error?.hint)
        #expect(bench.plan.count(SystemCalls(.connect)) == attempts)
        bench.plan.clear()
        try await bench.visit()
        await bench.end()
    }

    @Test("another program's connect is just ending", .row("O14"), arguments: [true, false])
    func aConnectWaitsForAnotherThatIsEnding(
        mayCommand: Bool
    )
        async throws
    {
        let bench = try await FaultyAdapter(mayCommand: mayCommand)
        bench.plan.set(SystemCalls(.connect), .fail(EBUSY))
        try await bench.visit()
        #expect(bench.plan.hits == 1)
        await bench.end()
    }

    @Test("a connect that is under way, or interrupted", .row("O14", "O09"), arguments: [EINPROGRESS, EINTR])
    func aConnectThatIsUnderWayIsAwaited(errno: Int32) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        bench.plan.pretendSlowConnect()
        bench.plan.set(SystemCalls(.connect), .fail(errno))
        try await bench.visit()
        await bench.end()
    }

    /// The kernel's result at its end.
    @Test(
        "a connect that fails later", .row("O14"),
        arguments: [
            (EBUSY, BLEError.Code.busy), (EHOSTUNREACH, .adapterDown), (ECONNABORTED, .adapterDown),
            (ENOSYS, .connectFailed),
        ])
    func aConnectThatFailsLaterHasTheCodeOfItsCause(errno: Int32, code: BLEError.Code) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        bench.plan.pretendSlowConnect()
        bench.plan.set(SystemCalls(.getsockopt), .returning(errno), times: nil)
        expectHint(await failure { () async throws(BLEError) in try await bench.visit() }, code, errno)
        await bench.end()
    }
}
