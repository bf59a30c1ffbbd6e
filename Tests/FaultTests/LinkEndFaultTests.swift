import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

/// The ways in which the kernel ends a link, and when it reports the end.
@Suite(.serialized, .timeLimit(.minutes(10))) struct LinkEndFaultTests {
    /// Every waiting call fails once, then `disconnected()` returns; the reason is the kernel's.
    @Test(
        "the end, by its reason", .row("O13", "L04"),
        arguments: [
            (ETIMEDOUT, "supervisionTimeout"), (ECONNRESET, "byPeer(nil)"), (ECONNABORTED, "adapterLost"),
            (ENOTCONN, "other(nil, errorNumber: Optional(107))"), (ENOSYS, "other(nil, errorNumber: Optional(38))"),
            (EPIPE, "byPeer(nil)"), (EIO, "other(nil, errorNumber: Optional(5))"),
            (EACCES, "authentication"), (EBADE, "key"), (EPERM, "other(nil, errorNumber: Optional(1))"),
        ])
    func theEndHasTheReasonOfItsError(errno: Int32, reason: String) async throws {
        let link = try await FaultyLink()
        let device = link.device
        let values = try await device.subscribe(to: FaultyLink.value)
        await link.peripheral.stopResponding()
        async let end = device.disconnected()
        let received = await link.peripheral.receivedCount
        let before = link.plan.count(.receiving)
        let errors = await withTaskGroup(of: BLEError?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    await failure { () async throws(BLEError) in _ = try await device.read(FaultyLink.value) }
                }
            }
            await FaultyLink.until { await link.peripheral.receivedCount > received }
            link.plan.set(.receiving, .fail(errno), on: link.descriptor)
            // Something to wake for, which the kernel does not give out.
            await link.peripheral.send(raw: [0x1B])
            return await group.reduce(into: [BLEError?]()) { $0.append($1) }
        }
        #expect(errors.count == 20)
        #expect(errors.allSatisfy { $0?.code == .disconnected && $0?.hint != nil })
        let told = try #require(await end)
        let text = Self.reflected(told)
        #expect(text.hasPrefix(reason), "\(text)")
        var walk = values.makeAsyncIterator()
        await #expect(throws: BLEError(.disconnected, during: "", because: "")) { try await walk.next() }
        #expect(link.plan.count(.receiving) - before <= 4, "no spin")
        await link.checkEnded()
    }

    private static func reflected(_ reason: DisconnectReason) -> String {
        switch reason {
        case .supervisionTimeout: "supervisionTimeout"
        case .byPeer(nil): "byPeer(nil)"
        case .adapterLost: "adapterLost"
        case .other(.authenticationFailure, _): "authentication"
        case .other(.keyMissing, _): "key"
        case .other(nil, let number): "other(nil, errorNumber: \(String(describing: number)))"
        default: "\(reason)"
        }
    }

    @Test("the end is found by sending", .row("O13"), arguments: [ECONNRESET, ETIMEDOUT, ECONNABORTED, EBADE])
    func endedWhileSending(errno: Int32) async throws {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(errno))
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .disconnected)
        #expect(await link.device.disconnectReason == DisconnectReason(errno: errno, status: nil))
        await link.checkEnded()
    }

    @Test("the peer closes while packets wait; no signal", .row("O13")) func brokenPipe() async throws {
        let link = try await FaultyLink()
        // As long as the peer is there; a sent packet may get a response.
        link.plan.set(.sending, .fail(EAGAIN), times: 100_000)
        let device = link.device
        async let first = failure { () async throws(BLEError) in _ = try await device.read(FaultyLink.value) }
        async let second = failure { () async throws(BLEError) in try await device.write([1], to: FaultyLink.writable) }
        await link.peripheral.disconnect()
        #expect(await [first, second].map(\.?.code) == [.disconnected, .disconnected])
        await link.checkEnded()
    }

    @Test("data and the end in one wake", .row("L05")) func dataAndEnd() async throws {
        let link = try await FaultyLink()
        let values = try await link.device.subscribe(to: FaultyLink.value)
        // Both are there before the loop looks.
        link.plan.set(SystemCalls(.epollWait), .fail(EINTR), times: 2_000)
        for number in 0..<20 as Range<UInt8> { try await link.peripheral.notify(FaultyLink.valueUUID, [number]) }
        await link.peripheral.disconnect()
        var received: [UInt8] = []
        do throws(BLEError) {
            for try await value in values { received += value.bytes }
            Issue.record("the stream ended as if it had been asked to")
        } catch {
            #expect(error.code == .disconnected)
        }
        #expect(received == Array(0..<20))
        #expect(await link.device.disconnectReason == .byPeer(nil))
        await link.checkEnded()
    }

    /// The kernel looks for a packet, then for the end: both may come in between, and the first look returns none.
    @Test("the last packet and the end come between the kernel's two looks", .row("T10")) func endInBetween() throws {
        let plan = try FaultPlan()
        let (near, far) = try LinkSocket.pair()
        plan.take(far)
        var receiver = LinkSocket(adopting: far)
        do {
            var sender = LinkSocket(adopting: near)
            #expect(sender.send([1, 2]) == .sent)
        }
        plan.set(SystemCalls(.recvmsg), .returning(0), on: far)
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(receiver.receive(into: &buffer) == .packet(count: 2, length: 2))
        #expect(receiver.receive(into: &buffer) == .ended(errno: 0))
        #expect(plan.hits == 1)
    }

    @Test("the reason is reported before the data", .row("L05"), arguments: [ECONNRESET, ETIMEDOUT])
    func reasonBeforeData(
        errno: Int32
    ) async throws {
        let link = try await FaultyLink()
        let values = try await link.device.subscribe(to: FaultyLink.value)
        link.plan.set(.receiving, .fail(errno), on: link.descriptor)
        try await link.peripheral.notify(FaultyLink.valueUUID, [42])
        var received: [UInt8] = []
        do throws(BLEError) {
            for try await value in values { received += value.bytes }
        } catch {
            #expect(error.code == .disconnected)
        }
        #expect(received == [42])
        #expect(await link.device.disconnectReason == DisconnectReason(errno: errno, status: nil))
        await link.checkEnded()
    }
}
