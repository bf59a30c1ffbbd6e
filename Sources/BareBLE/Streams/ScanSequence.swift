public import BLECore
internal import BLELinux

// The events of a scan as a sequence, and the scan of each iterator: `ScanRun`.
//
// Duties
// - Starts the scan with the first request for events, or takes over one that runs already (`BegunScan`), and ends it
//   with the iterator, with the last event, with a cancellation, or by `stop()`.
// - Adds a scan that is `lasting()` to the restoration state, and reports its end by `stop()` to the keeper of that
//   state.
//
// Invariants of a `ScanRun`
// - One task at a time starts the scan; another one that asks for events meanwhile gets `.busy`. After a start that has
//   failed, the next request tries again.
// - `.over` is final. A scan whose run has ended while it was starting ends before its first event is delivered.
// - `stop()` and `end()`, if they cancel a start, return after that start, and its scan, have ended.
// - After `end()` the events that wait are still delivered; `stop()` discards them.
// - The lock is never held during an `await`, and a scan is never released inside it.

/// An event of a scan.
public enum ScanEvent: Hashable, Sendable {
    /// A matching device was heard for the first time, or again after it was lost.
    case found(ScanResult)
    /// A known device sends other data, or is due for another report by the scan's rule for repetitions.
    case updated(ScanResult)
    /// A known device was silent for the requested time while the radio listened, or was dropped because there are too
    /// many others.
    case lost(ScanResult)
    /// This number of events was dropped here, because they came faster than they were consumed.
    case dropped(Int)
    /// The adapter went down or away; the scan resumes by itself when it is back.
    case paused
    /// The adapter is back, and the scan has resumed.
    case resumed
}

/// The devices that a scan hears, for as long as it is iterated.
///
/// The scan begins with the first `next()` and stops when the iterator goes away; each iterator is a scan of its own,
/// and several share the radio. Events wait in a bounded buffer; the oldest are dropped if it is full, and `.dropped`
/// reports how many. A failure after the start does not end the sequence: the scan restarts by itself.
///
/// The first `next()` throws `BLEError` with `.notPermitted` without CAP_NET_RAW, `.noAdapter`, `.adapterDown`,
/// `.blocked`, `.busy` if another program is scanning, `.unsupported`, `.timedOut` if the controller does not respond.
/// The sequence ends after the scan's duration, or with the cancellation of the task, and then for good.
public struct ScanSequence: AsyncSequence, Sendable {
    /// The element type: an event of the scan.
    public typealias Element = ScanEvent
    /// The error that the sequence may end with.
    public typealias Failure = BLEError
    /// The iterator over the events.
    public typealias AsyncIterator = BLESequence<ScanEvent>.AsyncIterator

    /// The limit of payload bytes that wait for the consumer, for each event of the capacity: enough for legacy
    /// advertisements, and more.
    private static let payloadLength = 256

    /// The devices that are left out; the set may change while the scan runs.
    public private(set) var excluded = ExcludedPeers()

    /// A scan that is already running, for the first iterator.
    var begun: BegunScan?
    private var isLasting = false
    fileprivate let running = RunningScans()
    /// Called with the events that concern the scan without ending it.
    private(set) var noticed: (@Sendable (ScanNotice) -> Void)?

    let central: Central
    let settings: ScanSettings
    let lostAfter: Duration?
    let duration: Duration?
    let capacity: Int

    init(central: Central, settings: ScanSettings, lostAfter: Duration?, duration: Duration?, capacity: Int) {
        self.central = central
        self.settings = settings
        self.lostAfter = lostAfter
        self.duration = duration
        self.capacity = capacity
    }

    /// Returns the same scan with a set of excluded devices that outlives it, or that several scans share.
    public func excluding(_ peers: ExcludedPeers) -> ScanSequence {
        var sequence = self
        sequence.excluded = peers
        return sequence
    }

    /// Returns the same scan, to be restored after a restart of the program:
    /// `Central.restore(_:from:holding:handlers:)` starts it again.
    ///
    /// The scan is part of the restoration state from the first `next()` until `stop()` or `Central.forgetScan()`, as
    /// a subscription is until it is unsubscribed. Leaving the loop only stops the radio: `break`, an error thrown in
    /// its body, a cancelled task and the end of the process do not remove the scan from that state. There is one such
    /// scan, the one started last. Without a `Configuration.stateStore` it is a scan like any other.
    public func lasting() -> ScanSequence {
        var sequence = self
        sequence.isLasting = true
        return sequence
    }

    /// Ends every loop over this sequence and its copies, also one whose scan is still starting, and waits until the
    /// radio no longer scans for them. A scan that is `lasting()` is removed from the restoration state: the next start
    /// does not begin it. A loop that begins later starts a new scan.
    public func stop() async {
        if let (scan, _) = begun?.take() { await scan.stop() }
        await running.stop()
        if let wanted { await central.forget(wanted) }
    }

    /// Returns the same scan with a closure that is called on the event loop with events that concern the scan without
    /// ending it.
    package func noticing(_ notice: @Sendable @escaping (ScanNotice) -> Void) -> ScanSequence {
        var sequence = self
        sequence.noticed = notice
        return sequence
    }

    private var byteLimit: Int {
        let (bytes, isTooMuch) = capacity.multipliedReportingOverflow(by: Self.payloadLength)
        return isTooMuch ? .max : bytes
    }

    /// Starts the scan before the first iteration.
    func beginNow() async throws(BLEError) -> BegunScan.Running {
        let buffer = StreamBuffer<ScanEvent>(
            of: central.configuration.adapter.description, capacity: capacity, byteLimit: byteLimit,
            policy: .dropOldest,
            countingDropsIn: await central.adapter.droppedEvents)
        return (try await central.beginScan(self, into: buffer), buffer)
    }

    /// Returns an iterator, whose first `next()` starts a scan of its own.
    public func makeAsyncIterator() -> AsyncIterator {
        let (run, excluded) = (ScanRun(self), excluded)
        // A device may be excluded while its results wait.
        return AsyncIterator(from: run, losses: .before { .dropped($0) }) { event in
            switch event {
            case .found(let scanResult), .updated(let scanResult), .lost(let scanResult):
                return !excluded.contains(scanResult)
            case .dropped, .paused, .resumed:
                return true
            }
        } _: { () async throws(BLEError) in
            try await run.nextBatch()
        }
    }

    /// The part of the restoration state for this scan.
    private var wanted: RestorationState.Scan? {
        isLasting && duration == nil ? RestorationState.Scan(settings, lostAfter: lostAfter) : nil
    }

    fileprivate func mark() async -> LastingScan? {
        guard let wanted else { return nil }
        return await central.keep(wanted)
    }
}

extension BLESequence.AsyncIterator where Element == ScanEvent {
    /// Ends the scan, and waits until the radio no longer scans, unless another scan needs it to.
    package mutating func stop() async {
        walk.discard()
        await (source as? ScanRun)?.stop()
    }
}

/// One iterator's scan: it begins with the first request for events, and ends with the iterator.
final class ScanRun: Sendable {
    private typealias Start = Task<Result<StreamBuffer<ScanEvent>?, BLEError>, Never>

    private enum State {
        case fresh
        /// A task starts the scan.
        case beginning(Start)
        case running(ActiveScan, LastingScan?, StreamBuffer<ScanEvent>)
        /// It has ended, or ends as soon as its start does.
        case over
    }

    private let sequence: ScanSequence
    private let state = Lock(State.fresh)

    init(_ sequence: ScanSequence) {
        self.sequence = sequence
    }

    /// Returns the next events; empty after the end of the scan or the cancellation of the task, and then for good.
    func nextBatch() async throws(BLEError) -> [StreamEntry<ScanEvent>] {
        guard let buffer = try await begin() else { return [] }
        let batch = try await buffer.nextBatch()
        if batch.isEmpty { await stop() }
        return batch
    }

    /// Ends the scan, and discards the events that wait.
    func stop() async {
        switch exchange(.over) {
        case .fresh, .over: return
        case .beginning(let start): await Self.cancel(start)
        case .running(let scan, _, _): await scan.stop()
        }
    }

    /// Ends the scan after the events that wait, and reports its end to the keeper of the restoration state. A scan
    /// that is starting ends before its first event.
    func end() async {
        let former = state.withLock { state in
            defer { if case .beginning = state { state = .over } }
            return state
        }
        switch former {
        case .fresh, .over:
            return
        case .beginning(let start):
            await Self.cancel(start)
        case .running(let scan, let mark, _):
            await scan.stop()
            await mark?.end()
        }
    }

    /// Sets the state and returns the former one, whose scan is released outside the lock.
    private func exchange(_ new: State) -> State {
        state.withLock { state in
            defer { state = new }
            return state
        }
    }

    /// Waits until the start has ended, and its scan with it: the state indicates by now that it is not wanted.
    private static func cancel(_ start: Start) async {
        start.cancel()
        _ = await start.value
    }

    private func begin() async throws(BLEError) -> StreamBuffer<ScanEvent>? {
        let (former, start) = state.withLock { state -> (State, Start?) in
            guard case .fresh = state else { return (state, nil) }
            // A task of its own, which `end()` can cancel and wait for.
            let start = Start(executorPreference: sequence.central.loop) { await self.start() }
            state = .beginning(start)
            return (.fresh, start)
        }
        switch former {
        case .running(_, _, let buffer): return buffer
        case .over: return nil
        case .fresh: break
        case .beginning:
            throw BLEError(
                .busy, subject: sequence.central.configuration.adapter.description, during: "scan",
                because: "another task starts this iterator's scan", hint: "Use an iterator from one task.")
        }
        guard let start else { return nil }
        sequence.running.add(self)
        let result = await withTaskCancellationHandler {
            await start.value
        } onCancel: {
            start.cancel()
        }
        return try result.get()
    }

    /// Starts the scan; returns `nil` if it is no longer wanted.
    private func start() async -> Result<StreamBuffer<ScanEvent>?, BLEError> {
        do throws(BLEError) {
            let (scan, buffer): BegunScan.Running
            if let running = sequence.begun?.take() {
                (scan, buffer) = running
            } else {
                (scan, buffer) = try await sequence.beginNow()
            }
            let mark = isBeginning ? await sequence.mark() : nil
            guard leaveBeginning(for: .running(scan, mark, buffer)) else {
                await scan.stop()
                await mark?.end()
                return .success(nil)
            }
            return .success(buffer)
        } catch {
            let isCancelled = error.code == .cancelled
            guard leaveBeginning(for: isCancelled ? .over : .fresh), !isCancelled else { return .success(nil) }
            return .failure(error)
        }
    }

    private var isBeginning: Bool {
        state.withLock { if case .beginning = $0 { true } else { false } }
    }

    /// Sets the state after the start, unless the scan was ended meanwhile; returns whether it did.
    private func leaveBeginning(for new: State) -> Bool {
        state.withLock { state in
            guard case .beginning = state else { return false }
            state = new
            return true
        }
    }
}

/// A scan that has started and waits for its iterator.
final class BegunScan: Sendable {
    typealias Running = (scan: ActiveScan, buffer: StreamBuffer<ScanEvent>)

    private let running: Lock<Running?>

    init(_ running: Running) {
        self.running = Lock(running)
    }

    /// Takes the scan; `nil` for all callers but the first.
    func take() -> Running? { running.withLock { $0.take() } }
}
