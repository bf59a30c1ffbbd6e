package import BLECore
package import BLELinux
package import Logging

// Writes the restoration state after each change.
//
// Duties
// - Gathers changes while the disk is busy: of several versions only the newest is written.
// - Keeps the event loop free: another thread writes.
// - Tolerates disk failures: logs them, exposes them in `status`, and retries after a pause. A later change retries at
//   once. The state in memory is unaffected.
//
// Invariants
// - All state belongs to the event loop's thread.
// - `work` is the only writer. It also writes what changes while it writes.
// - `isDirty`: no one has begun to write the newest change. `status.isPending`: the disk does not have it. While
//   either holds, there is `work` or a timer, until `close`.

extension StateStore {
    /// The status of the file with a daemon's restoration state.
    public struct Status: Equatable, Sendable {
        /// The number of times that the state was written.
        public internal(set) var writes = 0
        /// The number of times that writing it failed.
        public internal(set) var failures = 0
        /// The reason that the disk does not have the current state; `nil` if the last write succeeded. The write is
        /// retried automatically.
        public internal(set) var failure: BLEError?
        /// A Boolean value that indicates whether a change is not on the disk yet.
        public internal(set) var isPending = false
        /// The number of peers that were removed from the state because it was full (`RestorationState.limit`): each
        /// time the one that was added first among those without a session. They were released, or have ended, without
        /// `Session.disconnect(_:)`.
        public internal(set) var forgottenPeers = 0
    }
}

/// The former name of `StateStore.Status`.
@available(*, deprecated, renamed: "StateStore.Status")
public typealias StateStatus = StateStore.Status

package actor StateKeeper {
    package typealias Write = @Sendable (RestorationState) -> Result<Void, BLEError>

    /// The pauses before a failed write is retried; they double.
    static let firstPause = Duration.seconds(10)
    static let longestPause = Duration.seconds(600)

    package nonisolated let loop: EventLoop
    /// The path of the file, for errors.
    private let subject: String
    private let logger: Logger
    private var write: Write?
    private let letGo: @Sendable () -> Void
    private(set) var state: RestorationState
    /// The lasting scans that are being iterated.
    private var lastingScans: [RestorationState.Scan] = []
    package private(set) var status = StateStore.Status()
    private var isFrozen = false
    private var isDirty = false
    private var work: Task<Void, Never>?
    /// The tasks that wait for its end.
    private let waiters: Waiters<Void>
    private var timer: TimerID?
    private var pause = StateKeeper.firstPause

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Creates a keeper for a state that the disk already has, in the file that `subject` names; `write` may block, and
    /// `letGo` is called when nothing is written any more.
    package init(
        holding state: RestorationState, in subject: String, on loop: EventLoop, logger: Logger, write: @escaping Write,
        letGo: @escaping @Sendable () -> Void = {}
    ) {
        self.state = state
        self.subject = subject
        self.loop = loop
        waiters = Waiters(on: loop)
        self.logger = logger
        self.write = write
        self.letGo = letGo
    }

    isolated deinit {
        if let timer { loop.cancel(timer) }
    }

    /// Changes the state, and has it written.
    private func change(_ body: (inout RestorationState) -> Void) {
        guard !isFrozen else { return }
        let before = state
        body(&state)
        guard state != before else { return }
        isDirty = true
        status.isPending = true
        begin()
    }

    /// Fixes the state from now on: what ends later is restored at the next start.
    package func freeze() {
        isFrozen = true
    }

    /// Returns when the current state is on the disk.
    ///
    /// - Throws: `BLEError` with `.timedOut` at the deadline, which ends only the wait; and the error of the write.
    package func flush(until deadline: BootInstant? = nil) async throws(BLEError) {
        while status.isPending, write != nil {
            if let deadline, loop.now() >= deadline {
                throw BLEError(
                    .timedOut, subject: subject, during: "save the state",
                    because: "the disk has not responded in time",
                    hint: "`dmesg` may show what is wrong with it.")
            }
            let failures = status.failures
            begin()
            // A cancelled task waits too: what it wants written is to be on the disk when it returns.
            _ = await waiters.wait(until: deadline, interruption: .ignoresCancellation) { _ in work == nil ? () : nil }
            if let failure = status.failure, status.failures != failures { throw failure }
        }
        guard status.isPending else { return }
        throw status.failure
            ?? BLEError(
                .timedOut, subject: subject, during: "save the state",
                because: "the central was suspended before the disk had responded",
                hint: "`dmesg` may show what is wrong with it.")
    }

    /// Stops writing, and releases the store after the write in progress.
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
        // Detached, so that it does not inherit the task-local values of the caller. It holds the keeper until
        // everything is on the disk, even if the central is gone by then.
        work = Task.detached(executorPreference: loop) { await self.writeAll() }
    }

    private func writeAll() async {
        defer { workEnded() }
        while isDirty, let write {
            isDirty = false
            let state = state
            let result: Result<Void, BLEError>
            do throws(WorkFailure) {
                result = try await loop.offload { write(state) }
            } catch {
                result = .failure(.noRoom(subject: subject, during: "save the state"))
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
        waiters.resumeAll()
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

// MARK: - Changes

extension StateKeeper {
    /// Adds a peer, or replaces its entry.
    package func add(_ peer: RestorationState.Peer) {
        change { state in
            if let index = state.peers.firstIndex(where: { $0.peer == peer.peer }) {
                state.peers[index] = peer
            } else {
                state.peers.append(peer)
            }
        }
    }

    /// Removes the peer that was added first and is not in use, where there is no room for another one: a state that is
    /// too large is never written.
    package func makeRoom(for peer: PeerID, sparing inUse: Set<PeerID>) {
        guard !isFrozen, state.peers.count >= RestorationState.limit, !state.peers.contains(where: { $0.peer == peer }),
            let oldest = state.peers.first(where: { !inUse.contains($0.peer) })?.peer
        else { return }
        forget(oldest)
        status.forgottenPeers += 1
        logger.log(
            level: status.forgottenPeers == 1 ? .warning : .debug,
            "the state is full: the peer that was added first and has no session is forgotten",
            metadata: ["peer": "\(oldest)", "hint": "end sessions by disconnect()"])
    }

    package func forget(_ peer: PeerID) {
        change { state in state.peers.removeAll { $0.peer == peer } }
    }

    func requireBond(of peer: PeerID) {
        change { state in
            guard let index = state.peers.firstIndex(where: { $0.peer == peer }) else { return }
            state.peers[index].requiresBond = true
        }
    }

    func add(_ subscription: RestorationState.Subscription, of peer: PeerID) {
        change { state in
            guard let index = state.peers.firstIndex(where: { $0.peer == peer }),
                !state.peers[index].subscriptions.contains(subscription)
            else { return }
            state.peers[index].subscriptions.append(subscription)
        }
    }

    func forget(_ subscription: RestorationState.Subscription, of peer: PeerID) {
        change { state in
            guard let index = state.peers.firstIndex(where: { $0.peer == peer }) else { return }
            state.peers[index].subscriptions.removeAll { $0 == subscription }
        }
    }

    /// Adds a scan, for one more iterator.
    func add(_ scan: RestorationState.Scan) {
        lastingScans.append(scan)
        change { $0.scan = scan }
    }

    /// Called when an iterator over a scan has ended. Whether on purpose or by a failure is unknown: the scan stays in
    /// the state.
    func left(_ scan: RestorationState.Scan) {
        if let index = lastingScans.firstIndex(of: scan) { lastingScans.remove(at: index) }
    }

    /// Removes a scan, unless the same one is being iterated.
    func forget(_ scan: RestorationState.Scan) {
        guard !lastingScans.contains(scan) else { return }
        // Another one may have replaced it.
        change { if $0.scan == scan { $0.scan = lastingScans.last } }
    }

    /// Wants the adapter with this address, which is the one that is used.
    func use(adapter address: BluetoothAddress) {
        change { $0.adapter = address }
    }

    func forgetScan() {
        change { $0.scan = nil }
    }

    /// Recovery began steps that end links at these times, and has left the adapter off or not.
    func recovered(at runs: [BootInstant], isAdapterLeftOff: Bool, by time: MachineTime) {
        change { $0.setRecoveryRuns(runs, isAdapterLeftOff: isAdapterLeftOff, at: time) }
    }
}
