import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

/// T10, T27, L04, L05, L06, O09, O10, O11, O13, O16, O17: what the kernel does to the socket of a link that is up.
@Suite(.serialized, .timeLimit(.minutes(1))) struct LinkFaultTests {
    // MARK: Interrupted, delayed, out of memory

    // Row O09.
    @Test("each call is interrupted") func interrupted() async throws {
        let link = try await FaultyLink()
        let kinds = SystemCalls(.recvmsg, .recv, .send, .poll, .epollWait, .read, .write, .close)
        link.plan.set(kinds, .interrupt, times: nil)
        try await link.device.discover(.full)
        try await link.checkUsable()
        try await link.device.write([1, 2, 3], to: FaultyLink.writable)
        #expect(try await link.peripheral.value(FaultyLink.writableUUID) == [1, 2, 3])
        let values = try await link.device.subscribe(to: FaultyLink.value)
        var walk = values.makeAsyncIterator()
        try await link.peripheral.notify(FaultyLink.valueUUID, [7])
        #expect(try await walk.next()?.bytes == [7])
        // The deadline is what it was.
        await link.peripheral.stopAnswering()
        let late = await failure { () async throws(BLEError) in
            _ = try await link.device.read(FaultyLink.value, timeout: .milliseconds(50))
        }
        #expect(late?.code == .timedOut)
        #expect(link.plan.hits > 20)
        await link.end()
    }

    // Row O10.
    @Test("a full buffer keeps the order, and nobody spins", arguments: [1, 5, 40]) func fullBuffer(
        times: Int
    ) async throws {
        let link = try await FaultyLink()
        try await link.device.discover(.full)
        let before = link.plan.count(.sending)
        link.plan.set(.sending, .fail(EAGAIN), times: times)
        let received = await link.peripheral.receivedCount
        for number in 0..<10 as Range<UInt8> {
            try await link.device.write([number], to: FaultyLink.writable, .withoutResponse)
        }
        await FaultyLink.until { await link.peripheral.receivedCount >= received + 10 }
        #expect(await Self.commands(link) == (0..<10).map { [$0] })
        #expect(link.plan.count(.sending) - before == 10 + times, "one attempt each time there is room")
        try await link.checkUsable()
        await link.end()
    }

    /// The values of the commands that the peer has got.
    private static func commands(_ link: FaultyLink) async -> [[UInt8]] {
        await link.peripheral.transcript.steps.compactMap { step -> [UInt8]? in
            // The peer's transcript is told from the client's side: what the client sent.
            guard case .sent(let pdu) = step.event, pdu.first == 0x52 else { return nil }
            return Array(pdu.dropFirst(3))
        }
    }

    // Row O11.
    @Test("no memory to send", arguments: [ENOMEM, ENOBUFS]) func noMemoryToSend(errno: Int32) async throws {
        let link = try await FaultyLink()
        let before = link.plan.count(.sending)
        link.plan.set(.sending, .fail(errno), times: 2)
        try await link.checkUsable()
        #expect(link.plan.hits == 2)
        #expect(link.plan.count(.sending) - before == 3, "tried again after pauses")
        await link.end()
    }

    // Row O11.
    @Test("no memory to receive", arguments: [ENOMEM, ENOBUFS]) func noMemoryToReceive(errno: Int32) async throws {
        let link = try await FaultyLink()
        link.plan.set(.receiving, .fail(errno), on: link.descriptor, times: 3)
        try await link.checkUsable()
        #expect(link.plan.hits == 3)
        try await link.checkUsable()
        await link.end()
    }

    // Row O11.
    @Test("no memory for good", arguments: [ENOMEM, ENOBUFS]) func noMemoryForGood(errno: Int32) async throws {
        let link = try await FaultyLink()
        link.plan.set(.receiving, .fail(errno), on: link.descriptor, times: nil)
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .disconnected)
        #expect(error?.errorNumber == errno)
        #expect(error?.hint != nil)
        #expect(link.plan.hits < 10, "no spin")
        await link.checkEnded()
    }

    // Row O11.
    @Test("a packet that the kernel refuses", arguments: [EMSGSIZE, EINVAL]) func refused(errno: Int32)
        async throws
    {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(errno))
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .system)
        #expect(error?.errorNumber == errno)
        #expect(error?.hint != nil)
        #expect(await link.device.statistics.unsendable == 1)
        try await link.checkUsable()
        await link.end()
    }

    // Row T27.
    @Test("no sending while the kernel pairs") func pairing() async throws {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(ENOTCONN), times: 3)
        async let first = link.device.read(FaultyLink.value)
        async let second: Void = link.device.write([9], to: FaultyLink.writable)
        #expect(try await first == [64])
        try await second
        #expect(link.plan.hits == 3)
        try await link.checkUsable()
        await link.end()
    }

    // MARK: The end

    /// Every waiting call fails once, then `disconnected()` returns; the reason is the kernel's.
    // Rows O13, L04.
    @Test(
        "the end, by its reason",
        arguments: [
            (ETIMEDOUT, "supervisionTimeout"), (ECONNRESET, "byPeer(nil)"), (ECONNABORTED, "adapterLost"),
            (ENOTCONN, "other(nil, errorNumber: Optional(107))"), (ENOSYS, "other(nil, errorNumber: Optional(38))"),
            (EPIPE, "byPeer(nil)"), (EIO, "other(nil, errorNumber: Optional(5))"),
            (EACCES, "authentication"), (EBADE, "key"), (EPERM, "other(nil, errorNumber: Optional(1))"),
        ])
    func ended(errno: Int32, reason: String) async throws {
        let link = try await FaultyLink()
        let device = link.device
        let values = try await device.subscribe(to: FaultyLink.value)
        await link.peripheral.stopAnswering()
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

    // Row O13.
    @Test("the end is found by sending", arguments: [ECONNRESET, ETIMEDOUT, ECONNABORTED, EBADE])
    func endedWhileSending(errno: Int32) async throws {
        let link = try await FaultyLink()
        link.plan.set(.sending, .fail(errno))
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .disconnected)
        #expect(await link.device.disconnectReason == DisconnectReason(errno: errno, status: nil))
        await link.checkEnded()
    }

    // Row O13.
    @Test("the peer closes while packets wait; no signal") func brokenPipe() async throws {
        let link = try await FaultyLink()
        // As long as the peer is there; a packet that goes out may be answered.
        link.plan.set(.sending, .fail(EAGAIN), times: 100_000)
        let device = link.device
        async let first = failure { () async throws(BLEError) in _ = try await device.read(FaultyLink.value) }
        async let second = failure { () async throws(BLEError) in try await device.write([1], to: FaultyLink.writable) }
        await link.peripheral.disconnect()
        #expect(await [first, second].map(\.?.code) == [.disconnected, .disconnected])
        await link.checkEnded()
    }

    // Row L05.
    @Test("data and the end in one wake") func dataAndEnd() async throws {
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

    // Row L05.
    @Test("the reason is told before the data", arguments: [ECONNRESET, ETIMEDOUT]) func reasonBeforeData(
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

    // MARK: Packets

    // Row T10.
    @Test("an empty packet is not the end") func empty() async throws {
        let link = try await FaultyLink()
        let before = await link.device.statistics.emptyPackets
        // Nothing is taken out: what is there comes with the next call.
        link.plan.set(SystemCalls(.recvmsg), .returning(0), on: link.descriptor, times: 2)
        try await link.checkUsable()
        #expect(await link.device.statistics.emptyPackets == before + 2)
        try await link.checkUsable()
        await link.end()
    }

    // Row O16.
    @Test("a packet that is cut") func cut() async throws {
        let link = try await FaultyLink()
        let values = try await link.device.subscribe(to: FaultyLink.value)
        link.plan.set(SystemCalls(.recvmsg), .length(1500), on: link.descriptor)
        try await link.peripheral.notify(FaultyLink.valueUUID, [1])
        try await link.peripheral.notify(FaultyLink.valueUUID, [2])
        var walk = values.makeAsyncIterator()
        #expect(try await walk.next()?.bytes == [2])
        #expect(await link.device.statistics.oversizedValues == 1)
        try await link.checkUsable()
        await link.end()
    }

    // Row O16.
    @Test("a packet that is too short", arguments: [1, 2] as [Int32]) func short(count: Int32) async throws {
        let link = try await FaultyLink()
        let values = try await link.device.subscribe(to: FaultyLink.value)
        link.plan.set(SystemCalls(.recvmsg), .short(count), on: link.descriptor)
        try await link.peripheral.notify(FaultyLink.valueUUID, [1])
        try await link.peripheral.notify(FaultyLink.valueUUID, [2])
        var walk = values.makeAsyncIterator()
        #expect(try await walk.next()?.bytes == [2])
        #expect(await link.device.statistics.shortValues == 1)
        try await link.checkUsable()
        await link.end()
    }

    // Row O17.
    @Test("awake for nothing") func spurious() async throws {
        let link = try await FaultyLink()
        let before = link.plan.count(.receiving)
        link.plan.set(.receiving, .fail(EAGAIN), on: link.descriptor, times: 5)
        try await link.checkUsable()
        #expect(link.plan.count(.receiving) - before <= 8)
        await link.end()
    }

    // Row O17.
    @Test("an error that reading does not clear") func errorWithoutData() async throws {
        let link = try await FaultyLink()
        await link.peripheral.stopAnswering()
        let device = link.device
        let received = await link.peripheral.receivedCount
        async let error = failure { () async throws(BLEError) in _ = try await device.read(FaultyLink.value) }
        await FaultyLink.until { await link.peripheral.receivedCount > received }
        let before = link.plan.count(.receiving)
        link.plan.set(.receiving, .fail(EAGAIN), on: link.descriptor, times: nil)
        link.plan.set(SystemCalls(.poll), .state(Int32(POLLERR)), on: link.descriptor, times: nil)
        await link.peripheral.send(raw: [0x1B])
        #expect(await error?.code == .disconnected)
        #expect(await link.device.disconnectReason == .other(nil, errorNumber: ENOTCONN))
        #expect(link.plan.count(.receiving) - before <= 3, "no spin")
        await link.checkEnded()
    }

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

    // MARK: Losses

    /// The kernel takes 672 bytes, and says nothing of what it does not take.
    // Row L02.
    @Test("a value that is too long for the kernel") func tooLongValue() async throws {
        let link = try await FaultyLink()
        let values = try await link.device.subscribe(to: FaultyLink.value)
        let handle = UInt8(truncatingIfNeeded: values.handle)
        link.plan.set(SystemCalls(.recvmsg), .lose, on: link.descriptor)
        await link.peripheral.send(raw: [0x1B, handle, 0] + [UInt8](repeating: 7, count: 670))
        try await link.peripheral.notify(FaultyLink.valueUUID, [2])
        var walk = values.makeAsyncIterator()
        #expect(try await walk.next()?.bytes == [2])
        #expect(link.plan.hits == 1)
        #expect(await link.device.statistics.droppedByKernel == 0)
        try await link.checkUsable()
        await link.end()
    }

    // Rows L02, T06.
    @Test("an answer that is too long for the kernel") func tooLongAnswer() async throws {
        let link = try await FaultyLink(responseTime: .milliseconds(500))
        link.plan.set(SystemCalls(.recvmsg), .lose, on: link.descriptor)
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .disconnected)
        #expect(link.plan.hits == 1)
        #expect(await link.device.disconnectReason == .attTimeout)
        await link.checkEnded()
    }

    // Row L06.
    @Test("the kernel tells of packets that it dropped") func kernelDrops() async throws {
        let plan = try FaultPlan()
        let loop = plan.joined { EventLoop() }
        loop.start()
        await plan.join(loop)
        let peripheral = VirtualPeripheral(FaultyLink.device)
        let descriptor = try await peripheral.connect()
        plan.take(descriptor)
        // To the library it is a Bluetooth socket, which is asked to tell of losses.
        plan.set(SystemCalls(.getsockopt), .returning(0), on: descriptor)
        let device = try await FaultyLink.central(loop).attach(descriptor: descriptor)
        #expect(plan.notes.contains { $0.call == .setsockopt && $0.descriptor == descriptor })
        #expect(try await device.read(FaultyLink.value) == [64])
        #expect(await device.statistics.droppedByKernel == 0)
        plan.set(SystemCalls(.recvmsg), .drops(3), on: descriptor)
        #expect(try await device.read(FaultyLink.value) == [64])
        #expect(await device.statistics.droppedByKernel == 3)
        #expect(try await device.read(FaultyLink.value) == [64])
        #expect(await device.statistics.droppedByKernel == 3)
        plan.set(SystemCalls(.recvmsg), .drops(250), on: descriptor)
        #expect(try await device.read(FaultyLink.value) == [64])
        #expect(await device.statistics.droppedByKernel == 250)
        #expect(await device.isConnected)
        // Nobody else knows of them when the link has been given away.
        _ = try await device.detach()
        #expect(await device.statistics.droppedByKernel == 250)
        await plan.leave(loop)
        await loop.end()
    }
}
