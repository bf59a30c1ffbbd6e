internal import BLECore
internal import BLELinux
internal import Glibc

// One open channel beside a link's attributes. The kernel handles credits, segmentation and reassembly; a packet here
// is a whole SDU. What is left is to wait: for room before sending, for packets, for the end.
//
// Duties
// - Packets are sent in the order of the calls, and a call returns when the kernel has taken its packet whole.
// - What has been read is bounded: at `capacity` packets reading pauses, the kernel's buffer fills, it grants no more
//   credits, and the peer has to wait. Nothing is dropped.
// - Every caller is resumed exactly once, also at the end of the channel or of the link.
// - What arrived before the end is delivered before the end is reported.
//
// Invariants
// - All state belongs to the event loop's thread; a readable descriptor enters the actor without a hop.
// - `socket` is nil exactly when `end` is set; that closes the descriptor, once. Nobody reads or writes after that.
// - A packet in `outbound` is sent only while its sender waits, and is discarded when it gives up; only the first one
//   is offered to the kernel, which takes it whole or not at all.
// - `isEnding` is set once the socket has reported its end: it is not read again while the link is checked.
// - The channel keeps a reference to its link; the link has none to the channel.

/// A connection-oriented channel to a peer: whole packets in both directions, in order, with flow control.
///
/// `Peripheral.openChannel(psm:_:)` creates one, and a `ChannelListener` delivers those that centrals open. It lives
/// until `close()`, until the peer closes it or the link ends, or until the last reference to it and to its packets
/// goes away.
///
/// Spec: LE credit based flow control mode, Core Vol 3 Part A, 10.1.
public actor L2CAPChannel {
    /// The reason that a channel ended.
    enum End: Hashable {
        case closed
        case closedByPeer
        case link(DisconnectReason)
    }

    /// The number of packets that may wait for room.
    private static let senderLimit = 64
    /// The time that a closing channel waits for the peer to take what was sent.
    private static let closeTimeout: Duration = .seconds(2)
    /// The time that the link has to report its end after a channel has reported its own.
    private static let linkEndTime: Duration = .seconds(3)

    /// The PSM of the peer's service; of this program's listener if the peer has opened the channel.
    public nonisolated let psm: UInt16
    /// The longest packet that the peer may send, in bytes.
    public nonisolated let receiveMTU: Int
    /// The longest packet that the peer accepts, in bytes.
    public nonisolated let sendMTU: Int

    nonisolated let name: String
    nonisolated let number: UInt64
    nonisolated let loop: EventLoop
    private let peripheral: Peripheral
    private let capacity: Int

    private var socket: LinkSocket?
    private(set) var end: End?
    private var isEnding = false
    private var inbound: [UInt8]
    private var received: [StreamEntry<[UInt8]>] = []
    private var isPaused = false
    /// The task that waits for packets; one at most.
    private let consumer: Waiters<Void>
    /// The error that the packets end with; delivered once.
    private var failure: BLEError?

    /// Packets that wait for room, by the numbers of their senders.
    private var outbound: [(sender: UInt64, packet: [UInt8])] = []
    /// The number of packets that are kept until there is room.
    package var waitingPackets: Int { outbound.count }
    private let senders: Waiters<Result<Void, BLEError>>
    private var isClosing = false
    private let closers: Waiters<Void>
    private var timer: TimerID?

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside
        // this actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    init(
        socket: consuming LinkSocket, psm: UInt16, number: UInt64, _ options: Options, peripheral: Peripheral
    ) {
        self.psm = psm
        self.number = number
        receiveMTU = options.mtu
        // A stand-in has no limit but that of a packet.
        sendMTU = Int(socket.sendMTU() ?? .max)
        name = peripheral.name
        loop = peripheral.loop
        consumer = Waiters(on: loop)
        senders = Waiters(on: loop)
        closers = Waiters(on: loop)
        capacity = options.capacity
        inbound = [UInt8](repeating: 0, count: options.mtu)
        self.peripheral = peripheral
        self.socket = consume socket
    }

    isolated deinit {
        if let timer { loop.cancel(timer) }
        if let descriptor = socket?.descriptor { loop.unregister(descriptor) }
    }
}

extension L2CAPChannel {
    /// A Boolean value that indicates whether the channel is open.
    public var isOpen: Bool { end == nil && !isClosing && !isEnding }

    /// The packets from the peer, in order and without loss. Reading begins when the channel opens.
    public nonisolated var packets: PacketSequence {
        BLESequence { [self] in
            BLESequence<[UInt8]>.AsyncIterator { () async throws(BLEError) in try await self.nextBatch() }
        }
    }

    /// Sends one packet, when its turn comes and there is room.
    ///
    /// Awaiting the call is the flow control: it returns when the kernel has taken the packet, which it does as long
    /// as the peer grants credits. The peer may not have received it by then. A packet is sent whole or not at all;
    /// after a cancellation or a timeout it was not sent.
    ///
    /// - Parameters:
    ///   - packet: 1 to `sendMTU` bytes.
    ///   - timeout: The longest wait for room; `nil` waits for as long as the link lives.
    /// - Throws: `BLEError` with `.tooLong` for a packet over `sendMTU`, `.invalidArgument` for an empty one,
    ///   `.timedOut`, `.queueFull` if 64 packets already wait for room, `.disconnected` after the end of the channel,
    ///   `.cancelled`.
    public func send(_ packet: [UInt8], timeout: Duration? = nil) async throws(BLEError) {
        guard !packet.isEmpty else {
            throw sendError(.invalidArgument, "an empty packet was given", hint: "A packet has at least 1 byte.")
        }
        guard packet.count <= sendMTU else { throw tooLongError(packet.count) }
        switch await senders.wait(until: timeout.map { loop.now() + $0 }, { enqueue(packet, $0) }) {
        case .resumed(let result): try result.get()
        case .timedOut:
            discardAbandoned()
            throw noRoomError()
        case .cancelled:
            discardAbandoned()
            throw cancelledError()
        }
    }

    /// Closes the channel; the link stays up. Packets that the kernel has not taken are discarded.
    ///
    /// Packets that the kernel has taken are still sent: if the peer has granted no credits for them yet, the call
    /// waits for credits, at most 2 s. Waiting calls of `send` fail. Does nothing if the channel is already closed.
    public func close() async {
        guard end == nil else { return }
        isClosing = true
        received = []
        failSenders()
        consumer.resumeAll()
        guard !isEnding, socket?.hasRoom == false else { return finish(.closed) }
        _ = await closers.wait(until: loop.now() + Self.closeTimeout) { _ in
            if end != nil { return () }
            awaitRoom()
            return nil
        }
        finish(.closed)
    }
}

// MARK: - Receiving

extension L2CAPChannel {
    /// Starts or resumes reading the socket.
    func startReading() -> SystemCallError? {
        guard let descriptor = socket?.descriptor, !isEnding else { return nil }
        isPaused = false
        return loop.onReadable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.readable() }
        }
    }

    private func readable() {
        for _ in 0..<EventLoop.packetsPerTurn {
            guard isEnding || isClosing || received.count < capacity else { return pauseReading() }
            guard readOne() else { return }
        }
    }

    /// Reads the next packet, or the end; returns whether there may be more.
    private func readOne() -> Bool {
        guard !isEnding, let input = socket?.receive(into: &inbound) else { return false }
        switch input {
        case .packet(let count, _):
            guard !isClosing else { return true }
            received.append(StreamEntry(Array(inbound.prefix(count))))
            consumer.resumeAll()
            return true
        case .wouldBlock:
            return false
        case .ended(let errno):
            socketEnded(errno)
            return false
        }
    }

    /// Resumes after a pause, as soon as the kernel watches the socket again.
    private func readAgain() {
        guard end == nil, startReading() != nil else { return }
        later { if !$0.isPaused { $0.readAgain() } }
    }

    private func pauseReading() {
        guard let descriptor = socket?.descriptor else { return }
        isPaused = true
        loop.onReadable(descriptor, nil)
    }

    /// Returns the packets that have arrived, as soon as there are any; empty after the last one or the cancellation
    /// of the task.
    func nextBatch() async throws(BLEError) -> [StreamEntry<[UInt8]>] {
        while true {
            if !received.isEmpty {
                var batch: [StreamEntry<[UInt8]>] = []
                swap(&batch, &received)
                if isPaused { readAgain() }
                return batch
            }
            if end != nil || isClosing {
                guard let failure = failure.take() else { return [] }
                throw failure
            }
            if Task.isCancelled { return [] }
            guard consumer.isEmpty else {
                throw BLEError(
                    .busy, subject: name, during: "wait for a packet",
                    because: "another task is already waiting for it",
                    hint: "Read a channel's packets in one task.")
            }
            _ = await consumer.wait { _ in
                // Other jobs may have run since the looks above, among them another consumer's.
                !received.isEmpty || end != nil || isClosing || consumer.count > 1 ? () : nil
            }
        }
    }
}

// MARK: - Sending

extension L2CAPChannel {
    /// Has a packet wait for room; returns what its sender gets at once, if it does.
    private func enqueue(_ packet: [UInt8], _ sender: UInt64) -> Result<Void, BLEError>? {
        guard end == nil, !isClosing else { return .failure(endError(during: "send")) }
        guard senders.count <= Self.senderLimit else {
            return .failure(
                sendError(
                    .queueFull, "\(Self.senderLimit) packets wait for room already",
                    hint: "Await the earlier ones first."))
        }
        outbound.append((sender, packet))
        if senders.count == 1 { flush() }
        return nil
    }

    /// Hands packets to the kernel while it takes them.
    private func flush() {
        while !isEnding, let first = nextPacket(), let outcome = socket?.send(first) {
            switch outcome {
            case .sent:
                resumeFirst(.success(()))
            case .wouldBlock:
                return awaitRoom()
            case .failed(EMSGSIZE):
                resumeFirst(.failure(tooLongError(first.count)))
            case .failed:
                // The reader finds the reason of the end, after what the peer sent before. If the kernel was only
                // short of memory, the packet is tried again a little later.
                if socket?.isHungUp == true { readToTheEnd() }
                return flushLater()
            }
        }
    }

    /// Resumes the senders that wait for room when there is some, or when the channel ends.
    private func awaitRoom() {
        guard let descriptor = socket?.descriptor, !isEnding else { return }
        let failure = loop.onWritable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.writable() }
        }
        // The kernel may refuse to watch it while reading is paused: tried again a little later.
        if failure != nil { later { $0.writable() } }
    }

    private func writable() {
        guard let descriptor = socket?.descriptor else { return }
        loop.onWritable(descriptor, nil)
        if isClosing { return finish(.closed) }
        flush()
    }

    private func flushLater() {
        guard end == nil, !isEnding else { return }
        later { $0.flush() }
    }

    private func later(_ body: @escaping @Sendable (isolated L2CAPChannel) -> Void) {
        _ = loop.schedule(at: loop.now() + .milliseconds(20)) { [weak self] in
            self?.assumeIsolated { body($0) }
        }
    }

    /// The packet whose turn it is. One whose sender has given up is never sent.
    private func nextPacket() -> [UInt8]? {
        while let first = outbound.first {
            if senders.contains(first.sender) { return first.packet }
            outbound.removeFirst()
        }
        return nil
    }

    /// Discards the packets whose senders have given up, also those after one that still waits: a peer that grants no
    /// credits must not make the queue longer.
    private func discardAbandoned() {
        outbound.removeAll { !senders.contains($0.sender) }
    }

    private func resumeFirst(_ result: Result<Void, BLEError>) {
        senders.resume(outbound.removeFirst().sender, result)
    }

    private func failSenders() {
        outbound = []
        senders.resumeAll(.failure(endError(during: "send")))
    }
}

// MARK: - The end

extension L2CAPChannel {
    /// Called when the link under the channel has ended, with its reason.
    func linkEnded(_ reason: DisconnectReason) {
        guard end == nil else { return }
        readToTheEnd()
        finish(.link(reason))
    }

    /// Reads the packets that the kernel still has, at most what its buffer holds.
    private func readToTheEnd() {
        while readOne() {}
    }

    /// The socket has ended. It does not report whether only the channel has, or the link as well.
    private func socketEnded(_ errno: Int32) {
        isEnding = true
        // A caller that closes it does not need the reason.
        if isClosing { return finish(.closed) }
        if let descriptor = socket?.descriptor { loop.unregister(descriptor) }
        Task(executorPreference: loop) {
            if await self.peripheral.isLinkUp() {
                await self.finish(.closedByPeer)
            } else {
                await self.awaitLinkEnd(errno)
            }
        }
    }

    /// The link reports the reason in a moment; otherwise the kernel's is used.
    private func awaitLinkEnd(_ errno: Int32) {
        guard end == nil else { return }
        let reason = DisconnectReason(errno: errno, status: nil)
        if let timer { loop.cancel(timer) }
        timer = loop.schedule(at: loop.now() + Self.linkEndTime) { [weak self] in
            self?.assumeIsolated { $0.finish(.link(reason)) }
        }
    }

    /// Ends the channel, once: closes its socket and resumes every waiting task.
    private func finish(_ end: End) {
        guard self.end == nil else { return }
        self.end = isClosing ? .closed : end
        if let timer { loop.cancel(timer) }
        timer = nil
        if let descriptor = socket?.descriptor { loop.unregister(descriptor) }
        socket = nil
        if case .link(let reason) = self.end, !reason.isIntended { failure = endError(during: "receive") }
        failSenders()
        consumer.resumeAll()
        closers.resumeAll()
        let (peripheral, number) = (peripheral, number)
        peripheral.assumeIsolated { $0.channelEnded(number) }
    }
}

/// The packets of a channel, in the order in which the peer sent them.
///
/// A channel has one sequence: use it from one task. It ends after the last packet when either side closes the
/// channel; when the link is lost it throws `BLEError` with `.disconnected`, once. It throws `.busy` while another task
/// waits for a packet of this channel. A slow consumer loses nothing: reading pauses, and the peer runs out of credits
/// until the consumer continues.
public typealias PacketSequence = BLESequence<[UInt8]>
