package import BLECore
package import BLELinux
package import Logging

// Writes what a daemon wants behind each change.
//
// Duties
// - Gathers changes while the disk is busy: of several versions only the newest is written.
// - Keeps the event loop free: writing is work for another thread.
// - Bears a disk that fails: the failure is logged and kept for who asks, and after a pause it tries again. Any later change tries at
//   once. The state in memory goes on.
//
// Invariants
// - All state belongs to the event loop's thread.
// - `work` is the one writer. What changes while it writes is written behind that, by the same one.
// - `isDirty`: nobody has begun to write the newest change. `status.isPending`: the disk does not have it. Where one of them holds
//   there is `work` or a timer, until `close`.

/// How it stands with the file of a daemon's state.
public struct StateStatus: Equatable, Sendable {
    /// How often the state was written.
    public internal(set) var writes = 0
    /// How often it could not be.
    public internal(set) var failures = 0
    /// Why the disk does not have what is wanted now; `nil` when the last attempt went well. It is tried again by itself.
    public internal(set) var failure: BLEError?
    /// Whether something has changed that the disk does not have yet.
    public internal(set) var isPending = false
}

package actor StateKeeper {
    package typealias Write = @Sendable (DaemonState) -> Result<Void, BLEError>

    /// The pauses before a disk that has failed is tried again; they double.
    static let firstPause = Duration.seconds(10)
    static let longestPause = Duration.seconds(600)

    package nonisolated let loop: EventLoop
    private let logger: Logger
    private var write: Write?
    private let letGo: @Sendable () -> Void
    private(set) var state: DaemonState
    /// The scans that somebody iterates over and wants to last.
    private var lastingScans: [WantedScan] = []
    package private(set) var status = StateStatus()
    private var isFrozen = false
    private var isDirty = false
    private var work: Task<Void, Never>?
    /// Who waits for the end of that.
    private var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var lastNumber: UInt64 = 0
    private var timer: TimerID?
    private var pause = StateKeeper.firstPause

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Keeps a state that the disk has already; `write` may block, and `letGo` is called when nothing is written any more.
    package init(
        holding state: DaemonState, on loop: EventLoop, logger: Logger, write: @escaping Write,
        letGo: @escaping @Sendable () -> Void = {}
    ) {
        self.state = state
        self.loop = loop
        self.logger = logger
        self.write = write
        self.letGo = letGo
    }

    isolated deinit {
        if let timer { loop.cancel(timer) }
    }

    /// Changes what is wanted, and has it written.
    func change(_ body: (inout DaemonState) -> Void) {
        guard !isFrozen else { return }
        let before = state
        body(&state)
        guard state != before else { return }
        isDirty = true
        status.isPending = true
        begin()
    }

    /// From now on the state stays as it is: what ends now is wanted at the next start.
    package func freeze() {
        isFrozen = true
    }

    /// Returns when the disk has what is wanted now.
    ///
    /// - Throws: `BLEError` with `.timedOut` at the deadline, which ends nothing but the wait; and what the write failed with.
    package func flush(until deadline: BootInstant? = nil) async throws(BLEError) {
        while status.isPending, write != nil {
            if let deadline, loop.now() >= deadline {
                throw BLEError(
                    .timedOut, during: "save the state", because: "the disk has not answered in time",
                    hint: "`dmesg` may say what is wrong with it.")
            }
            let failures = status.failures
            begin()
            await endOfWork(until: deadline)
            if let failure = status.failure, status.failures != failures { throw failure }
        }
        guard status.isPending else { return }
        throw status.failure
            ?? BLEError(
                .timedOut, during: "save the state", because: "the central was suspended before the disk had answered",
                hint: "`dmesg` may say what is wrong with it.")
    }

    private func endOfWork(until deadline: BootInstant?) async {
        lastNumber &+= 1
        let number = lastNumber
        let timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { $0.waiters.removeValue(forKey: number)?.resume() }
            }
        }
        await withCheckedContinuation { waiter in
            if work == nil { waiter.resume() } else { waiters[number] = waiter }
        }
        if let timer { loop.cancel(timer) }
    }

    /// Writes nothing any more, and lets go of the store: behind what is being written.
    package func close() {
        isFrozen = true
        if let timer { loop.cancel(timer) }
        timer = nil
        write = nil
        if work == nil { letGo() }
    }

    private func begin() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard work == nil, write != nil else { return }
        // Detached: a task-local value of who has changed something has no business in it.
        // It holds the keeper until the disk has everything, also when the central is gone by then.
        work = Task.detached(executorPreference: loop) { await self.writeAll() }
    }

    private func writeAll() async {
        defer { workEnded() }
        while isDirty, let write {
            isDirty = false
            let state = state
            let result: Result<Void, BLEError>
            do throws(WorkFailure) {
                result = try await loop.elsewhere { write(state) }
            } catch {
                result = .failure(.noRoom(during: "save the state"))
            }
            switch result {
            case .success:
                status.writes += 1
                status.failure = nil
                status.isPending = isDirty
                pause = Self.firstPause
            case .failure(let error):
                return failed(error)
            }
        }
    }

    private func workEnded() {
        work = nil
        let ended = waiters.sorted { $0.key < $1.key }
        waiters = [:]
        for (_, waiter) in ended { waiter.resume() }
        if write == nil { letGo() }
    }

    private func failed(_ error: BLEError) {
        isDirty = true
        status.failures += 1
        status.failure = error
        logger.warning("the state could not be written", metadata: ["reason": "\(error)", "again in": "\(pause)"])
        guard write != nil else { return }
        timer = loop.schedule(at: loop.now() + pause) { [weak self] in
            self?.assumeIsolated { keeper in
                keeper.timer = nil
                keeper.begin()
            }
        }
        pause = min(pause * 2, Self.longestPause)
    }
}

// MARK: - What changes

extension StateKeeper {
    /// Wants a peer, in the place of what was wanted of it before.
    package func want(_ peer: WantedPeer) {
        change { state in
            if let index = state.peers.firstIndex(where: { $0.peer == peer.peer }) {
                state.peers[index] = peer
            } else {
                state.peers.append(peer)
            }
        }
    }

    package func forget(_ peer: PeerID) {
        change { state in state.peers.removeAll { $0.peer == peer } }
    }

    func want(_ subscription: WantedSubscription, of peer: PeerID) {
        change { state in
            guard let index = state.peers.firstIndex(where: { $0.peer == peer }),
                !state.peers[index].subscriptions.contains(subscription)
            else { return }
            state.peers[index].subscriptions.append(subscription)
        }
    }

    func forget(_ subscription: WantedSubscription, of peer: PeerID) {
        change { state in
            guard let index = state.peers.firstIndex(where: { $0.peer == peer }) else { return }
            state.peers[index].subscriptions.removeAll { $0 == subscription }
        }
    }

    /// Wants a scan, for one more who iterates over it.
    func want(_ scan: WantedScan) {
        lastingScans.append(scan)
        change { $0.scan = scan }
    }

    /// An iterator over a scan has ended. Whether the program wanted that, or failed, cannot be told: the scan stays wanted.
    func left(_ scan: WantedScan) {
        if let index = lastingScans.firstIndex(of: scan) { lastingScans.remove(at: index) }
    }

    /// Wants a scan no longer, unless somebody iterates over the same one.
    func forget(_ scan: WantedScan) {
        guard !lastingScans.contains(scan) else { return }
        // Another one may have taken its place.
        change { if $0.scan == scan { $0.scan = lastingScans.last } }
    }

    func forgetScan() {
        change { $0.scan = nil }
    }
}
