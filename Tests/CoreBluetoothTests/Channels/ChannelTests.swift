import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import Testing

/// The streams of channels, over a socketpair whose far end echoes.
@Suite(.timeLimit(.minutes(10))) struct ChannelTests {
    private static let size = 1 << 20

    /// A channel beside a link, in real time, because run loops follow no other.
    private struct Line {
        let link: Peripheral
        let channel: CBL2CAPChannel
        /// The peer's end of the channel.
        let far: L2CAPChannel

        init() async throws {
            let central = Central()
            let device = VirtualPeripheral(.battery)
            link = try await central.attach(descriptor: device.connect())
            let (ours, theirs) = try LinkSocket.pair()
            // The socketpair has no MTU of its own, so the far end takes what the streams send at most.
            let options = L2CAPChannel.Options(mtu: 8_192)
            let channel = try await link.attachChannel(descriptor: ours, psm: 0x80, options)
            far = try await link.attachChannel(descriptor: theirs, psm: 0x80, options)
            let peer = CBPeer(peer: PeerID(address: BluetoothAddress(rawValue: 1), type: .public))
            self.channel = CBL2CAPChannel(channel, to: peer, loop: central.loop)
        }
    }

    @Test func scheduledStreamsEcho() async throws {
        let line = try await Line()
        let echo = Task { for try await packet in line.far.packets { try await line.far.send(packet) } }
        let echoed = await onThread { StreamWalk(line.channel, size: Self.size).run() }
        #expect(echoed == StreamWalk.bytes(Self.size))
        #expect(line.channel.psm == 0x80)
        #expect(String(format: "<%@>", line.channel) == "<\(line.channel)>")
        await line.link.disconnect()
        _ = await echo.result
    }

    @Test func polledStreamsEcho() async throws {
        let line = try await Line()
        let echo = Task { for try await packet in line.far.packets { try await line.far.send(packet) } }
        let echoed = await onThread {
            let (input, output) = (line.channel.inputStream!, line.channel.outputStream!)
            input.open()
            output.open()
            let sent = StreamWalk.bytes(Self.size)
            var (position, received) = (0, [UInt8]())
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while received.count < sent.count, input.streamStatus == .open {
                if position < sent.count, output.hasSpaceAvailable {
                    position += write(sent[position...], to: output)
                }
                if input.hasBytesAvailable {
                    let count = unsafe input.read(&buffer, maxLength: buffer.count)
                    received += buffer.prefix(count)
                }
                sched_yield()
            }
            return received
        }
        #expect(echoed == StreamWalk.bytes(Self.size))
        await line.link.disconnect()
        _ = await echo.result
    }

    @Test func aChannelClosesWithItsStreams() async throws {
        let line = try await Line()
        line.channel.inputStream.open()
        line.channel.outputStream.open()
        line.channel.inputStream.close()
        #expect(line.channel.outputStream.streamStatus == .open)
        line.channel.outputStream.close()
        for try await _ in line.far.packets {}
        #expect(line.channel.inputStream.streamStatus == .closed)
        await line.link.disconnect()
    }

    @Test func theEndOfTheChannelIsTheEndOfBothStreams() async throws {
        let line = try await Line()
        await line.far.close()
        let (input, output) = await onThread { StreamWalk(line.channel, size: 0).runToEnd() }
        #expect(input.count { $0 == .endEncountered } == 1)
        #expect(output.count { $0 == .endEncountered } == 1)
        #expect(line.channel.outputStream.streamStatus == .atEnd)
        #expect(!line.channel.outputStream.hasSpaceAvailable)
        await line.link.disconnect()
    }

    @Test func aScheduledStreamIsOpenWithItsEvent() async throws {
        let line = try await Line()
        let states = await onThread { OpeningWalk(line.channel.outputStream).run() }
        #expect(states == [.opening, .open])
        // Without a run loop there is no event to wait for.
        line.channel.inputStream.open()
        #expect(line.channel.inputStream.streamStatus == .open)
        await line.link.disconnect()
    }

    /// It may run later, or never again.
    @Test(arguments: [true, false]) func aStreamDeliversNothingWhereItWasRemoved(runsLater: Bool) async throws {
        let line = try await Line()
        let (former, events) = await onThread { MovingWalk(line.channel.outputStream).run(runningFormer: runsLater) }
        #expect(former.isEmpty)
        #expect(events.first == .openCompleted)
        await line.link.disconnect()
    }

    /// There is room for bytes as soon as the stream is open, so both events come together.
    @Test(arguments: [true, false]) func aDelegateThatLeavesItsStreamReceivesNoOtherEvent(removes: Bool) async throws {
        let line = try await Line()
        let (before, after) = await onThread { LeavingWalk(line.channel.outputStream, removes: removes).run() }
        #expect(before == [.openCompleted])
        // What waited is delivered where the stream is scheduled next.
        #expect(after == (removes ? [.openCompleted, .hasSpaceAvailable] : [.openCompleted]))
        await line.link.disconnect()
    }

    @Test func theEndComesOnceAndAfterTheBytes() async throws {
        let line = try await Line()
        line.channel.inputStream.open()
        try await line.far.send(StreamWalk.bytes(2_000))
        await line.far.close()
        // The loop has read the channel to its end before it reads this response.
        _ = try await line.link.readAll(0x2A19, limit: 1)
        let (input, _) = await onThread { StreamWalk(line.channel, size: 0, chunk: 512).runToEnd() }
        #expect(
            input.filter { $0 != .openCompleted } == [
                .hasBytesAvailable, .hasBytesAvailable, .hasBytesAvailable, .hasBytesAvailable, .endEncountered,
            ])
        await line.link.disconnect()
    }

    /// The peer takes nothing until the program has closed the streams.
    @Test func whatWasWrittenIsSentAlthoughTheStreamsAreClosed() async throws {
        try await VirtualTime.run { time in
            let line = try await FullLine(time)
            let channel = line.channel()
            for stream in [channel.inputStream, channel.outputStream] as [Stream?] { stream?.open() }
            #expect(write([7, 8, 9], to: channel.outputStream) == 3)
            // The loop has taken the bytes out of the stream.
            await time.settle()
            for stream in [channel.inputStream, channel.outputStream] as [Stream?] { stream?.close() }
            await time.settle()
            var received: [UInt8] = []
            for try await packet in line.far.packets { received += packet }
            #expect(received.count == line.sent + 3)
            #expect(received.suffix(3) == [7, 8, 9])
            await line.link.disconnect()
        }
    }

    /// How a program ends the use of a channel.
    enum Leaving: CaseIterable {
        case closing, dropping, closingAndDropping
    }

    /// The peer takes a packet each 0.9 s: each one in time, and all of them later than one may be.
    @Test(arguments: Leaving.allCases)
    func whatASlowPeerStillTakesIsSentAlthoughTheProgramHasLeft(_ leaving: Leaving) async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let device = VirtualPeripheral(.battery, time: time)
            let link = try await central.attach(descriptor: device.connect())
            let (ours, theirs) = try LinkSocket.pair()
            // The kernel keeps one packet.
            var size: Int32 = 8_192
            #expect(unsafe setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, 4) == 0)
            let near = try await link.attachChannel(descriptor: ours, psm: 0x80)
            let options = L2CAPChannel.Options(mtu: 8_192, capacity: 1)
            let far = try await link.attachChannel(descriptor: theirs, psm: 0x80, options)
            let peer = CBPeer(peer: PeerID(address: BluetoothAddress(rawValue: 1), type: .public))
            let sent = StreamWalk.bytes(60_000)
            var kept: CBL2CAPChannel?
            do {
                let channel = CBL2CAPChannel(near, to: peer, loop: central.loop)
                for stream in [channel.inputStream, channel.outputStream] as [Stream?] { stream?.open() }
                #expect(write(sent[...], to: channel.outputStream) == sent.count)
                if leaving != .dropping {
                    for stream in [channel.inputStream, channel.outputStream] as [Stream?] { stream?.close() }
                }
                if leaving == .closing { kept = channel }
            }
            var received: [UInt8] = []
            for try await packet in far.packets {
                received += packet
                try await time.clock.sleep(for: .milliseconds(900))
            }
            #expect(received == sent)
            _ = kept
            await link.disconnect()
        }
    }

    @Test func aPeerThatTakesNothingKeepsNoChannelOpen() async throws {
        try await VirtualTime.run { time in
            let line = try await FullLine(time)
            do {
                let channel = line.channel()
                channel.outputStream.open()
                #expect(write([UInt8](repeating: 7, count: 60_000)[...], to: channel.outputStream) == 60_000)
            }
            try await time.clock.sleep(for: .seconds(3))
            #expect(await !line.near.isOpen)
            await line.link.disconnect()
        }
    }

    /// A channel beside a link, in virtual time, whose peer takes no more packets.
    private struct FullLine {
        let link: Peripheral
        let near: L2CAPChannel
        let far: L2CAPChannel
        let loop: EventLoop
        /// The number of bytes that are on their way.
        var sent = 0

        init(_ time: VirtualTime) async throws {
            let central = Central(time: time)
            let device = VirtualPeripheral(.battery, time: time)
            loop = central.loop
            link = try await central.attach(descriptor: device.connect())
            let (ours, theirs) = try LinkSocket.pair()
            near = try await link.attachChannel(descriptor: ours, psm: 0x80)
            far = try await link.attachChannel(descriptor: theirs, psm: 0x80)
            while true {
                do throws(BLEError) {
                    try await near.send([1], timeout: .milliseconds(100))
                    sent += 1
                } catch {
                    #expect(error.code == .timedOut)
                    return
                }
            }
        }

        func channel() -> CBL2CAPChannel {
            let peer = CBPeer(peer: PeerID(address: BluetoothAddress(rawValue: 1), type: .public))
            return CBL2CAPChannel(near, to: peer, loop: loop)
        }
    }

    @Test func aDeviceAcceptsAChannelOrClosesItAtOnce() async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(.battery)
            await device.setReaction(toChannels: 0x80, .accept)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen 128 nil")
            let channel = try #require(recorder.channels.first)
            let far = try #require(await device.nextChannel())
            for stream in [channel.inputStream, channel.outputStream] as [Stream?] { stream?.open() }
            #expect(write([1, 2, 3], to: channel.outputStream) == 3)
            #expect(await far.nextPacket() == [1, 2, 3])
            await far.send([4])
            await bench.time.settle()
            #expect(channel.inputStream.hasBytesAvailable)
            await device.setReaction(toChannels: 0x80, .close)
            peripheral.openL2CAPChannel(0x80)
            try await recorder.wait(for: "didOpen 0 CB 0")
            #expect(recorder.channels.count == 1)
            #expect(peripheral.state == .connected)
        }
    }

    /// Reads of one byte: each makes room, but not for a packet.
    @Test func whatWaitsToBeReadIsBounded() async throws {
        let line = try await Line()
        let sent = Lock(0)
        let sender = Task {
            while true {
                try await line.far.send([UInt8](repeating: 7, count: 8_192))
                sent.withLock { $0 += 1 }
            }
        }
        let input = line.channel.inputStream!
        input.open()
        var count = 0
        var byte: UInt8 = 0
        while count < 1_000 {
            // The loop has taken what it can before it reads this response.
            _ = try await line.link.readAll(0x2A19, limit: 1)
            if input.hasBytesAvailable { count += unsafe input.read(&byte, maxLength: 1) }
        }
        // In the pipe, in the channel and in the kernel.
        #expect(sent.withLock { $0 } < 300)
        await line.link.disconnect()
        _ = await sender.result
    }
}

/// Writes what the stream has room for; returns the number of bytes.
private func write(_ bytes: ArraySlice<UInt8>, to stream: OutputStream) -> Int {
    unsafe bytes.withUnsafeBufferPointer { buffer in
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe stream.write(start, maxLength: buffer.count)
    }
}

/// Runs `body` on a thread with a run loop of its own.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// A program that writes and reads by the events of its streams.
private final class StreamWalk: NSObject, StreamDelegate {
    private let channel: CBL2CAPChannel
    private let sent: [UInt8]
    /// The number of bytes that one event reads.
    private let chunk: Int
    private var position = 0
    private var received: [UInt8] = []
    private var (inputEvents, outputEvents): ([Stream.Event], [Stream.Event]) = ([], [])
    private var isOver: Bool { Self.haveEnded(inputEvents) }

    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

    init(_ channel: CBL2CAPChannel, size: Int, chunk: Int = 1_000) {
        self.channel = channel
        self.chunk = chunk
        sent = Self.bytes(size)
    }

    private static func haveEnded(_ events: [Stream.Event]) -> Bool {
        events.contains(.endEncountered) || events.contains(.errorOccurred)
    }

    private func open() {
        for stream in [channel.inputStream, channel.outputStream] as [Stream?] {
            stream?.delegate = self
            stream?.schedule(in: .current, forMode: .default)
            stream?.open()
        }
    }

    func run() -> [UInt8] {
        open()
        while received.count < sent.count, !isOver {
            _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 10))
        }
        return received
    }

    /// Runs until both streams have ended, and returns their events.
    func runToEnd() -> (input: [Stream.Event], output: [Stream.Event]) {
        open()
        while !isOver || !Self.haveEnded(outputEvents) {
            _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 10))
        }
        // A read at the end brings no other event.
        var byte: UInt8 = 0
        _ = unsafe channel.inputStream.read(&byte, maxLength: 1)
        _ = RunLoop.current.run(mode: .default, before: Date())
        return (inputEvents, outputEvents)
    }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        if aStream === channel.inputStream { inputEvents.append(eventCode) } else { outputEvents.append(eventCode) }
        if eventCode == .hasBytesAvailable {
            var buffer = [UInt8](repeating: 0, count: chunk)
            let count = unsafe channel.inputStream.read(&buffer, maxLength: buffer.count)
            received += buffer.prefix(max(0, count))
        }
        if eventCode == .hasSpaceAvailable, position < sent.count {
            position += write(sent[position...], to: channel.outputStream)
        }
    }
}

/// Opens a scheduled stream, and keeps its status after the call and with the event.
private final class OpeningWalk: NSObject, StreamDelegate {
    private let stream: OutputStream
    private var states: [Stream.Status] = []

    init(_ stream: OutputStream) {
        self.stream = stream
    }

    func run() -> [Stream.Status] {
        stream.delegate = self
        stream.schedule(in: .current, forMode: .default)
        stream.open()
        states.append(stream.streamStatus)
        while states.count < 2, RunLoop.current.run(mode: .default, before: .distantFuture) {}
        return states
    }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        if eventCode == .openCompleted { states.append(aStream.streamStatus) }
    }
}

/// Opens a stream that is scheduled in one mode of its run loop, and moves it to another one.
private final class MovingWalk: NSObject, StreamDelegate {
    private let stream: OutputStream
    private var events: [Stream.Event] = []

    init(_ stream: OutputStream) {
        self.stream = stream
    }

    /// Returns the events in the former mode, and all events.
    func run(runningFormer: Bool) -> (former: [Stream.Event], all: [Stream.Event]) {
        let mode = RunLoop.Mode(rawValue: "former")
        stream.delegate = self
        stream.schedule(in: .current, forMode: mode)
        stream.open()
        stream.remove(from: .current, forMode: mode)
        stream.schedule(in: .current, forMode: .default)
        // It returns after the timer of the former delivery, the last one of that mode.
        if runningFormer { _ = RunLoop.current.run(mode: mode, before: .distantFuture) }
        let former = events
        while events.isEmpty, RunLoop.current.run(mode: .default, before: .distantFuture) {}
        return (former, events)
    }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) { events.append(eventCode) }
}

/// Removes its stream from the run loop, or is its delegate no more, with the first event.
private final class LeavingWalk: NSObject, StreamDelegate {
    private let stream: OutputStream
    private let removes: Bool
    private var events: [Stream.Event] = []

    init(_ stream: OutputStream, removes: Bool) {
        self.stream = stream
        self.removes = removes
    }

    /// Returns the events until then, and all events after the stream was scheduled again.
    func run() -> (before: [Stream.Event], after: [Stream.Event]) {
        stream.delegate = self
        stream.schedule(in: .current, forMode: .default)
        stream.open()
        while events.isEmpty, RunLoop.current.run(mode: .default, before: .distantFuture) {}
        let before = events
        guard removes else { return (before, before) }
        stream.schedule(in: .current, forMode: .default)
        while events.count < 2, RunLoop.current.run(mode: .default, before: .distantFuture) {}
        return (before, events)
    }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        events.append(eventCode)
        guard events.count == 1 else { return }
        if removes { aStream.remove(from: .current, forMode: .default) } else { aStream.delegate = nil }
    }
}
