public import BLECore

/// What a scan tells.
public enum ScanEvent: Hashable, Sendable {
    /// A device that matches was heard for the first time, or again after it was lost.
    case found(Sighting)
    /// A device that was found says something else, or its turn has come by the scan's rule for repetitions.
    case updated(Sighting)
    /// A device that was found has been silent for as long as the scan asked for, while the radio listened; or there are so
    /// many others that it had to make room.
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

    /// Devices that are left out; to be changed while the scan runs.
    public private(set) var excluded = ExcludedPeers()

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

    /// The same scan with a set of devices to leave out that outlives it, or that several scans share.
    public func excluding(_ peers: ExcludedPeers) -> ScanSequence {
        var sequence = self
        sequence.excluded = peers
        return sequence
    }

    /// Begins a scan of its own, with its first `next()`.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(sequence: self)
    }

    /// Walks over what is heard.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private enum State {
            case fresh
            case running(ScanLease, StreamBuffer<ScanEvent>)
            case over
        }

        private let sequence: ScanSequence
        private var state = State.fresh
        private var batch: [StreamBuffer<ScanEvent>.Entry] = []
        private var position = 0
        private var reportsDrop = true

        init(sequence: ScanSequence) {
            self.sequence = sequence
        }

        /// The next event; `nil` when the scan's duration is over or the task is cancelled, and then for good.
        ///
        /// - Throws: From the first call `BLEError` with `.notPermitted` without CAP_NET_RAW, `.noAdapter`, `.adapterDown`,
        ///   `.blocked`, `.busy` when another program holds the scanner, `.unsupported`.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ScanEvent? {
            guard let buffer = try await begin() else { return nil }
            while true {
                if position == batch.count {
                    batch = try await buffer.nextBatch()
                    position = 0
                    guard !batch.isEmpty else {
                        await stop()
                        return nil
                    }
                }
                let entry = batch[position]
                if entry.droppedBefore > 0, reportsDrop {
                    reportsDrop = false
                    return .dropped(entry.droppedBefore)
                }
                reportsDrop = true
                position += 1
                if !isExcluded(entry.element) { return entry.element }
            }
        }

        /// Ends the scan, and waits until the radio no longer scans, if no other scan wants it to.
        mutating func stop() async {
            if case .running(let lease, _) = state { await lease.stop() }
            state = .over
        }

        private mutating func begin() async throws(BLEError) -> StreamBuffer<ScanEvent>? {
            switch state {
            case .over: return nil
            case .running(_, let buffer): return buffer
            case .fresh: break
            }
            let buffer = StreamBuffer<ScanEvent>(capacity: sequence.capacity, policy: .dropOldest)
            do {
                let lease = try await sequence.central.beginScan(sequence, into: buffer)
                state = .running(lease, buffer)
                return buffer
            } catch  where error.code == .cancelled {
                state = .over
                return nil
            }
        }

        private func isExcluded(_ event: ScanEvent) -> Bool {
            switch event {
            case .found(let sighting), .updated(let sighting), .lost(let sighting):
                guard let peer = sighting.peer else { return false }
                return sequence.excluded.contains(peer)
            case .dropped, .paused, .resumed:
                return false
            }
        }
    }
}
