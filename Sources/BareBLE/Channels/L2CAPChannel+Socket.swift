internal import BLECore
internal import BLELinux
internal import Glibc
internal import Logging

extension L2CAPChannel {
    /// The time that the link has to report its end after a channel has reported its own.
    private static let linkEndTime: Duration = .seconds(3)

    // MARK: Receiving

    /// Starts or resumes reading the socket.
    func startReading() -> SystemCallError? {
        guard let descriptor = socket?.descriptor, !isEnding else { return nil }
        isPaused = false
        return loop.onReadable(descriptor) { [weak self] in
            self?.assumeIsolated { $0.readable() }
        }
    }

    private func readable() {
        for _ in 0..<Self.packetsPerTurn {
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
            received.append(Array(inbound.prefix(count)))
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
    func nextBatch() async throws(BLEError) -> [[UInt8]] {
        while true {
            if !received.isEmpty {
                var batch: [[UInt8]] = []
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

    // MARK: Sending

    /// Has a packet wait for room; returns what its sender gets at once, if it does.
    func enqueue(_ packet: [UInt8], _ sender: UInt64) -> Result<Void, BLEError>? {
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
    func awaitRoom() {
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

    private func resumeFirst(_ result: Result<Void, BLEError>) {
        senders.resume(outbound.removeFirst().sender, result)
    }

    func failSenders() {
        outbound = []
        senders.resumeAll(.failure(endError(during: "send")))
    }

    // MARK: The end

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
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
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
    func finish(_ end: End) {
        guard self.end == nil else { return }
        self.end = isClosing ? .closed : end
        if let timer { loop.cancel(timer) }
        timer = nil
        if let descriptor = socket?.descriptor { loop.letGo(descriptor) }
        socket = nil
        if case .link(let reason) = self.end, !reason.isIntended { failure = endError(during: "receive") }
        failSenders()
        consumer.resumeAll()
        closers.resumeAll()
        let (peripheral, number) = (peripheral, number)
        peripheral.assumeIsolated { $0.channelEnded(number) }
    }
}
