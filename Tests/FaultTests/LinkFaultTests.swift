import BLECore
import BLELinux
import BareBLETestKit
import Glibc
import TestSupport
import Testing

@testable import BareBLE

/// Faults of the kernel on the socket of a link that is up.
@Suite(.serialized, .timeLimit(.minutes(10))) struct LinkFaultTests {
    // MARK: Interrupted, delayed, out of memory

    @Test("each call is interrupted", .row("O09")) func anInterruptedCallIsRepeated() async throws {
        let link = try await FaultyLink()
        let kinds = SystemCalls(.recvmsg, .recv, .send, .poll, .epollWait, .read, .write, .close)
        link.plan.set(kinds, .interrupt, times: nil)
        try await link.device.discover(level: .full)
        try await link.checkUsable()
        try await link.device.write([1, 2, 3], to: FaultyLink.writable)
        #expect(try await link.peripheral.value(FaultyLink.writableUUID) == [1, 2, 3])
        let values = try await link.device.subscribe(to: FaultyLink.value)
        var walk = values.makeAsyncIterator()
        try await link.peripheral.notify(FaultyLink.valueUUID, [7])
        #expect(try await walk.next()?.bytes == [7])
        // The deadline is what it was.
        await link.peripheral.stopResponding()
        let late = await failure { () async throws(BLEError) in
            _ = try await link.device.read(FaultyLink.value, timeout: .milliseconds(50))
        }
        #expect(late?.code == .timedOut)
        #expect(link.plan.hits > 20)
        await link.end()
    }

    @Test("a full buffer keeps the order, and nothing spins", .row("O10"), arguments: [1, 5, 40]) func fullBuffer(
        times: Int
    ) async throws {
        let link = try await FaultyLink()
        try await link.device.discover(level: .full)
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
            // The peer's transcript is from the client's side: what the client sent.
            guard case .sent(let pdu) = step.event, pdu.first == 0x52 else { return nil }
            return Array(pdu.dropFirst(3))
        }
    }

    @Test("no memory to send", .row("O11"), arguments: [ENOMEM, ENOBUFS]) func noMemoryToSend(errno: Int32) async throws
    {
        let link = try await FaultyLink()
        let before = link.plan.count(.sending)
        link.plan.set(.sending, .fail(errno), times: 2)
        try await link.checkUsable()
        #expect(link.plan.hits == 2)
        #expect(link.plan.count(.sending) - before == 3, "tried again after pauses")
        await link.end()
    }

    @Test("no memory to receive", .row("O11"), arguments: [ENOMEM, ENOBUFS]) func aLackOfMemoryToReceiveEndsNoLink(
        errno: Int32
    )
        async throws
    {
        let link = try await FaultyLink()
        link.plan.set(.receiving, .fail(errno), on: link.descriptor, times: 3)
        try await link.checkUsable()
        #expect(link.plan.hits == 3)
        try await link.checkUsable()
        await link.end()
    }

    @Test("no memory for good", .row("O11"), arguments: [ENOMEM, ENOBUFS]) func aLastingLackOfMemoryEndsTheLink(
        errno: Int32
    )
        async throws
    {
        let link = try await FaultyLink()
        link.plan.set(.receiving, .fail(errno), on: link.descriptor, times: nil)
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .disconnected)
        #expect(error?.errorNumber == errno)
        #expect(error?.hint != nil)
        #expect(link.plan.hits < 10, "no spin")
        await link.checkEnded()
    }

    @Test("a packet that the kernel refuses", .row("O11"), arguments: [EMSGSIZE, EINVAL])
    func aPacketThatTheKernelRefusesFailsItsCall(errno: Int32)
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

    @Test("no sending while the kernel pairs", .row("T27")) func nothingIsSentWhileTheKernelPairs() async throws {
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

    // MARK: Packets

    @Test("an empty packet is not the end", .row("T10")) func anEmptyPacketIsNotTheEnd() async throws {
        let link = try await FaultyLink()
        let before = await link.device.statistics.emptyPackets
        // Nothing is taken out: what is there comes with the next call.
        link.plan.set(SystemCalls(.recvmsg), .returning(0), on: link.descriptor, times: 2)
        try await link.checkUsable()
        #expect(await link.device.statistics.emptyPackets == before + 2)
        try await link.checkUsable()
        await link.end()
    }

    @Test("a packet that is cut", .row("O16")) func aPacketThatIsCutIsCountedAndDropped() async throws {
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

    @Test("a packet that is too short", .row("O16"), arguments: [1, 2] as [Int32])
    func aPacketThatIsTooShortIsCountedAndDropped(count: Int32) async throws {
        let link = try await FaultyLink()
        let values = try await link.device.subscribe(to: FaultyLink.value)
        link.plan.set(SystemCalls(.recvmsg), .short(count), on: link.descriptor)
        try await link.peripheral.notify(FaultyLink.valueUUID, [1])
        try await link.peripheral.notify(FaultyLink.valueUUID, [2])
        var walk = values.makeAsyncIterator()
        #expect(try await walk.next()?.bytes == [2])
        #expect(await link.device.statistics.truncatedValues == 1)
        try await link.checkUsable()
        await link.end()
    }

    @Test("awake for nothing", .row("O17")) func wakingForNothingDoesNotSpin() async throws {
        let link = try await FaultyLink()
        let before = link.plan.count(.receiving)
        link.plan.set(.receiving, .fail(EAGAIN), on: link.descriptor, times: 5)
        try await link.checkUsable()
        #expect(link.plan.count(.receiving) - before <= 8)
        await link.end()
    }

    @Test("an error that reading does not clear", .row("O17")) func anErrorThatReadingDoesNotClearEndsTheLink()
        async throws
    {
        let link = try await FaultyLink()
        await link.peripheral.stopResponding()
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

    // MARK: Losses

    /// The kernel takes 672 bytes, and says nothing of what it does not take.
    @Test("a value that is too long for the kernel", .row("L02")) func aValueThatTheKernelDoesNotTakeIsLost()
        async throws
    {
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

    @Test("a response that is too long for the kernel", .row("L02", "T06"))
    func aResponseThatTheKernelDoesNotTakeEndsTheLink() async throws {
        let link = try await FaultyLink(responseTime: .milliseconds(500))
        link.plan.set(SystemCalls(.recvmsg), .lose, on: link.descriptor)
        let error = await failure { () async throws(BLEError) in _ = try await link.device.read(FaultyLink.value) }
        #expect(error?.code == .disconnected)
        #expect(link.plan.hits == 1)
        #expect(await link.device.disconnectReason == .attTimeout)
        await link.checkEnded()
    }

    @Test(
        "packets of a central were dropped: its link closes with that reason, one that this program has made stays",
        .row("P36"))
    func kernelDropsRequests() async throws {
        let plan = try FaultPlan()
        let loop = plan.joined { EventLoop() }
        loop.start()
        await plan.join(loop)
        let central = FaultyLink.central(loop)
        let local = LocalPeripheral(on: central)
        try await local.publish(LocalService(0xFFF0, []))
        var events = local.events.makeAsyncIterator()

        let (ours, theirs) = try LinkSocket.pair()
        plan.take(ours)
        // To the library it is a Bluetooth socket, which is to report losses.
        plan.set(SystemCalls(.getsockopt), .returning(0), on: ours, times: nil)
        try await local.attach(descriptor: ours)
        var other = LinkSocket(adopting: theirs)
        plan.set(SystemCalls(.recvmsg), .drops(3), on: ours)
        #expect(other.send([0x02, 0x17, 0x00]) == .sent)
        var reasons: [DisconnectReason] = []
        while reasons.isEmpty, let event = try await events.next() {
            if case .disconnected(_, let reason) = event { reasons.append(reason) }
        }
        #expect(reasons == [.protocolViolation("the client sent packets faster than they could be read")])
        #expect(await local.centrals.isEmpty)
        plan.clear()

        let peripheral = VirtualPeripheral(FaultyLink.device)
        let descriptor = try await peripheral.connect()
        plan.take(descriptor)
        plan.set(SystemCalls(.getsockopt), .returning(0), on: descriptor)
        let device = try await central.attach(descriptor: descriptor)
        await local.serve(device)
        #expect(await local.centrals.count == 1)
        plan.set(SystemCalls(.recvmsg), .drops(3), on: descriptor)
        #expect(try await device.read(FaultyLink.value) == [64])
        #expect(await device.statistics.droppedByKernel == 3)
        #expect(await device.isConnected)
        await device.disconnect()
        await local.stop()
        await plan.leave(loop)
        await loop.end()
    }

    @Test("the kernel reports packets that it dropped", .row("L06")) func kernelDrops() async throws {
        let plan = try FaultPlan()
        let loop = plan.joined { EventLoop() }
        loop.start()
        await plan.join(loop)
        let peripheral = VirtualPeripheral(FaultyLink.device)
        let descriptor = try await peripheral.connect()
        plan.take(descriptor)
        // To the library it is a Bluetooth socket, which is to report losses.
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
