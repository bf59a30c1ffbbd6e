// The bytes of a channel between its streams, which threads of the program use, and the loop.
//
// Invariants
// - At most `capacity` bytes wait in each direction, or one packet that is longer. If the program does not read, the
//   channel is not read either, and the peer runs out of credits; if the peer grants no credits, the output stream has
//   no room.
// - Each direction ends once, with or without an error, after the bytes that came before.
// - The end of the channel ends both directions.
// - A channel whose streams are closed sends what was written as long as the peer takes a packet every 2 s, for a
//   minute at most: neither a slow peer nor a silent one keeps the descriptor for good.

internal import BLELinux
internal import BareBLE

/// The bytes of a channel in both directions.
final class ChannelPipe: Sendable {
    /// What a stream finds out about its direction.
    enum End {
        case none
        case atEnd
        case failed(any Error)
    }

    private struct State {
        var received: [UInt8] = []
        var inputEnd = End.none
        var sending: [UInt8] = []
        var outputEnd = End.none
        var openStreams: Set<Side> = [.input, .output]
        /// The reader, while there is no room for what it has.
        var reader: CheckedContinuation<Void, Never>?
        /// The writer, while it has nothing to send.
        var writer: CheckedContinuation<Void, Never>?
        /// The task of the writer. It has at most one packet, of bytes that are in `sending` no more.
        var sender: Task<Void, Never>?
        var isClosed = false

        func hasRoom(for packet: [UInt8]) -> Bool {
            received.isEmpty || received.count + packet.count <= ChannelPipe.capacity
        }
    }

    /// What is left when the pipe closes.
    private struct Closing {
        /// The bytes that wait to be sent.
        let rest: [UInt8]
        let sender: Task<Void, Never>?
        /// The reader and the writer, if they wait.
        let waiting: [CheckedContinuation<Void, Never>]
    }

    enum Side: Hashable { case input, output }

    private static let capacity = 64 * 1_024
    /// The number of bytes that are sent as one packet at most, also if the peer accepts more.
    private static let longestPacket = 8 * 1_024
    /// The longest time that the peer may take no packet once both streams are closed.
    private static let closingTime: Duration = .seconds(2)
    /// The longest time for sending all that was written before.
    private static let longestClosing: Duration = .seconds(60)

    private let channel: L2CAPChannel
    private let loop: EventLoop
    private let state = Lock(State())

    init(_ channel: L2CAPChannel, loop: EventLoop) {
        self.channel = channel
        self.loop = loop
    }

    deinit { close() }

    /// Begins to move bytes. The streams are informed as long as they live.
    func start(_ input: StreamEvents, _ output: StreamEvents) {
        Task(executorPreference: loop) { [weak self, channel, weak input, weak output] in
            var packets = channel.packets.makeAsyncIterator()
            do throws(BLEError) {
                while let packet = try await packets.next() {
                    guard await self?.receive(packet) == true else { return }
                    input?.signal(.hasBytesAvailable)
                }
                self?.end(.atEnd, input, output)
            } catch {
                self?.end(.failed(error.translated), input, output)
            }
        }
        let sender = Task(executorPreference: loop) { [weak self, channel, weak output] in
            while let packet = await self?.nextPacket(of: min(channel.sendMTU, Self.longestPacket)) {
                do throws(BLEError) {
                    try await channel.send(packet)
                    output?.signal(.hasSpaceAvailable)
                } catch {
                    self?.end(output: .failed(error.translated), output)
                    return
                }
            }
        }
        state.withLock { $0.sender = sender }
    }

    // MARK: On the loop

    /// Adds a packet when there is room; returns `false` if the channel is closed.
    private func receive(_ packet: [UInt8]) async -> Bool {
        while true {
            let isReceived = state.withLock { state -> Bool? in
                if state.isClosed { return false }
                guard state.hasRoom(for: packet) else { return nil }
                state.received += packet
                return true
            }
            if let isReceived { return isReceived }
            // What is read next need not be enough.
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    guard !state.isClosed, !state.hasRoom(for: packet) else { return false }
                    state.reader = continuation
                    return true
                }
                if !isWaiting { continuation.resume() }
            }
        }
    }

    /// Returns the next bytes to send, when there are any; `nil` when the channel is closed.
    private func nextPacket(of mtu: Int) async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let isWaiting = state.withLock { state in
                guard state.sending.isEmpty, !state.isClosed else { return false }
                state.writer = continuation
                return true
            }
            if !isWaiting { continuation.resume() }
        }
        return state.withLock { state in
            guard !state.sending.isEmpty else { return nil }
            let packet = Array(state.sending.prefix(mtu))
            state.sending.removeFirst(packet.count)
            return packet
        }
    }

    /// The channel has ended, in both directions.
    private func end(_ end: End, _ input: StreamEvents?, _ output: StreamEvents?) {
        state.withLock { $0.inputEnd = end }
        // After the bytes that have come: if there are any, the stream signals the end when it has been read to it.
        input?.signalEnd(inputEnd)
        self.end(output: end, output)
    }

    private func end(output end: End, _ events: StreamEvents?) {
        let isFirst = state.withLock { state in
            guard case .none = state.outputEnd else { return false }
            state.outputEnd = end
            return true
        }
        if isFirst { events?.signalEnd(end) }
    }

    // MARK: On the program's threads

    var bytesAvailable: Int { state.withLock { $0.received.count } }

    var inputEnd: End { state.withLock { $0.received.isEmpty ? $0.inputEnd : .none } }

    var outputEnd: End { state.withLock { $0.outputEnd } }

    var room: Int {
        state.withLock { state in
            guard case .none = state.outputEnd else { return 0 }
            return Self.capacity - state.sending.count
        }
    }

    /// Takes at most `count` of the bytes that have come.
    func take(_ count: Int) -> [UInt8] {
        let (bytes, reader) = state.withLock { state in
            let bytes = Array(state.received.prefix(max(0, count)))
            state.received.removeFirst(bytes.count)
            return (bytes, state.reader.take())
        }
        reader?.resume()
        return bytes
    }

    /// Adds bytes to those to be sent; returns the number for which there was room.
    func put(_ bytes: some Collection<UInt8>) -> Int {
        let (count, writer) = state.withLock { state -> (Int, CheckedContinuation<Void, Never>?) in
            guard case .none = state.outputEnd, !state.isClosed else { return (0, nil) }
            let part = bytes.prefix(Self.capacity - state.sending.count)
            state.sending += part
            return (part.count, state.sending.isEmpty ? nil : state.writer.take())
        }
        writer?.resume()
        return count
    }

    /// Closes one stream. The channel closes with the second one, after what was written has been sent, or when the
    /// peer has taken nothing for 2 s.
    func close(_ side: Side) {
        let isLast = state.withLock { state in
            state.openStreams.remove(side)
            return state.openStreams.isEmpty
        }
        if isLast { close() }
    }

    private func close() {
        let closing = state.withLock { state -> Closing? in
            // Streams that were closed go away later, and the pipe goes last: the rest is still being sent then.
            if state.isClosed { return nil }
            state.isClosed = true
            defer { state.sending = [] }
            return Closing(
                rest: state.sending, sender: state.sender,
                waiting: [state.reader.take(), state.writer.take()].compactMap(\.self))
        }
        guard let closing else { return }
        for continuation in closing.waiting { continuation.resume() }
        Task(executorPreference: loop) { [channel, loop] in
            let limit = Self.close(channel, after: Self.longestClosing, on: loop)
            let firstLimit = Self.close(channel, after: Self.closingTime, on: loop)
            // The bytes of its packet come before the rest.
            await closing.sender?.value
            firstLimit.cancel()
            var rest = closing.rest[...]
            while !rest.isEmpty {
                let packet = Array(rest.prefix(min(channel.sendMTU, Self.longestPacket)))
                rest = rest.dropFirst(packet.count)
                do throws(BLEError) {
                    try await channel.send(packet, timeout: Self.closingTime)
                } catch {
                    break
                }
            }
            limit.cancel()
            await channel.close()
        }
    }

    /// Closes a channel after a time, unless the task is cancelled before. What waits to be sent fails.
    private static func close(_ channel: L2CAPChannel, after time: Duration, on loop: EventLoop) -> Task<Void, Never> {
        Task(executorPreference: loop) {
            let isOver = (try? await CentralClock(loop: loop).sleep(for: time)) != nil
            if isOver { await channel.close() }
        }
    }
}
