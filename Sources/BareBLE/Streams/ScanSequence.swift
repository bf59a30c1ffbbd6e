public import BLECore
internal import BLELinux

/// What a scan tells.
public enum ScanEvent: Hashable, Sendable {
    /// A device that matches was heard for the first time, or again after it was lost.
    case found(Sighting)
    /// A device that was found says something else, or its turn has come by the scan's rule for repetitions.
    case updated(Sighting)
    /// A device that was found has been silent for as long as the scan asked for.
    case lost(Sighting)
    /// So many events were dropped here, because they came faster than they were taken.
    case dropped(Int)
    /// The adapter went down or away; the scan goes on by itself when it is back.
    case paused
    /// The adapter is back, and the scan goes on.
    case resumed
}

/// The devices that a scan hears, as long as somebody iterates.
///
/// The scan begins with the first `next()` and stops when the iterator goes away; each iterator is a scan of its own, and
/// several of them share the radio. Events wait in a bounded buffer; what does not fit is dropped, oldest first, and
/// `.dropped` says how many. Trouble after the beginning does not end the sequence: the scan is set up again by itself.
public struct ScanSequence: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public typealias Element = ScanEvent
    /// What it can end with.
    public typealias Failure = BLEError

    let central: Central
    let settings: ScanSettings
    let lostAfter: Duration?
    let duration: Duration?
    let capacity: Int

    /// Begins a scan of its own, with its first `next()`.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(sequence: self)
    }

    /// Walks over what is heard.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let sequence: ScanSequence
        private var lease: ScanLease?
        private var batch: [StreamBuffer<ScanEvent>.Entry] = []
        private var position = 0
        private var reportsDrop = true

        init(sequence: ScanSequence) {
            self.sequence = sequence
        }

        /// The next event; `nil` when the scan's duration is over or the task is cancelled.
        ///
        /// - Throws: From the first call `BLEError` with `.notPermitted` without CAP_NET_RAW, `.noAdapter`, `.adapterDown`,
        ///   `.blocked`, `.busy` when another program holds the scanner, `.unsupported`.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ScanEvent? {
            let lease: ScanLease
            do {
                lease = try await begin()
            } catch  where error.code == .cancelled {
                return nil
            }
            if position == batch.count {
                batch = try await lease.buffer.nextBatch()
                position = 0
            }
            guard position < batch.count else { return nil }
            let entry = batch[position]
            if entry.droppedBefore > 0, reportsDrop {
                reportsDrop = false
                return .dropped(entry.droppedBefore)
            }
            reportsDrop = true
            position += 1
            return entry.element
        }

        private mutating func begin() async throws(BLEError) -> ScanLease {
            if let lease { return lease }
            let buffer = StreamBuffer<ScanEvent>(capacity: sequence.capacity, policy: .dropOldest)
            let lease = try await sequence.central.beginScan(sequence, into: buffer)
            self.lease = lease
            return lease
        }
    }
}

/// Keeps a scan going: its last owner going away stops it.
final class ScanLease: Sendable {
    let buffer: StreamBuffer<ScanEvent>
    private let id: ScanID
    private let adapter: Adapter
    /// Ends the scan after its duration.
    private let timer: TimerID?

    init(id: ScanID, buffer: StreamBuffer<ScanEvent>, adapter: Adapter, timer: TimerID?) {
        self.id = id
        self.buffer = buffer
        self.adapter = adapter
        self.timer = timer
    }

    deinit {
        buffer.finish()
        let (adapter, id, timer) = (adapter, id, timer)
        Task(executorPreference: adapter.loop) {
            if let timer { adapter.loop.cancel(timer) }
            await adapter.unsubscribe(id)
        }
    }
}
