public import BLECore
internal import BLELinux

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

    /// How many bytes of payload wait for the consumer at most, for each event that may: what old kinds of advertisements need, and more.
    private static let payloadLength = 256

    /// Devices that are left out; to be changed while the scan runs.
    public private(set) var excluded = ExcludedPeers()

    /// A scan that has begun already, for the first iterator.
    var begun: BegunScan?
    private var isLasting = false
    private let running = RunningScans()
    /// Who is told what happens to the scan without ending it.
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

    /// The same scan with a set of devices to leave out that outlives it, or that several scans share.
    public func excluding(_ peers: ExcludedPeers) -> ScanSequence {
        var sequence = self
        sequence.excluded = peers
        return sequence
    }

    /// The same scan, wanted also after a restart of the program: `Central.restore(_:from:holding:handlers:)` begins it again.
    ///
    /// It is wanted from the first `next()` until `stop()` or `Central.forgetScan()`, as a subscription is until it is unsubscribed. Leaving
    /// the loop stops the radio and no more: `break`, an error thrown in its body, a cancelled task and the end of the process are no reason
    /// to forget the scan. There is one such scan, the one begun last. Where there is no `Configuration.stateStore` it is a scan like any
    /// other.
    public func lasting() -> ScanSequence {
        var sequence = self
        sequence.isLasting = true
        return sequence
    }

    /// Ends every loop over this sequence and the copies made of it, and waits until the radio no longer scans for them. A scan that is
    /// `lasting()` is forgotten: the next start does not begin it.
    public func stop() async {
        if let (lease, _) = begun?.take() { await lease.stop() }
        await running.stop()
        if let wanted { await central.forget(wanted) }
    }

    /// The same scan with somebody who is told what happens to it without ending it, on the event loop.
    package func noticing(_ notice: @Sendable @escaping (ScanNotice) -> Void) -> ScanSequence {
        var sequence = self
        sequence.noticed = notice
        return sequence
    }

    private var byteLimit: Int {
        let (bytes, isTooMuch) = capacity.multipliedReportingOverflow(by: Self.payloadLength)
        return isTooMuch ? .max : bytes
    }

    /// Begins to scan before anybody iterates.
    func beginNow() async throws(BLEError) -> BegunScan.Running {
        let buffer = StreamBuffer<ScanEvent>(
            of: central.configuration.adapter.description, capacity: capacity, byteLimit: byteLimit,
            policy: .dropOldest,
            countingDropsIn: central.adapter.droppedEvents)
        return (try await central.beginScan(self, into: buffer), buffer)
    }

    /// Begins a scan of its own, with its first `next()`.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(sequence: self)
    }

    /// What is kept of it for the next start.
    private var wanted: WantedScan? {
        isLasting && duration == nil ? WantedScan(settings, lostAfter: lostAfter) : nil
    }

    private func mark() async -> LastingScan? {
        guard let wanted else { return nil }
        return await central.keep(wanted)
    }

    /// Walks over what is heard.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private enum State {
            case fresh
            case running(ScanLease, LastingScan?)
            case over
        }

        private let sequence: ScanSequence
        private var state = State.fresh
        private var walk: StreamWalk<ScanEvent>?
        private var reportsDrop = true

        init(sequence: ScanSequence) {
            self.sequence = sequence
        }

        /// The next event; `nil` when the scan's duration is over or the task is cancelled, and then for good.
        ///
        /// - Throws: From the first call `BLEError` with `.notPermitted` without CAP_NET_RAW, `.noAdapter`, `.adapterDown`,
        ///   `.blocked`, `.busy` when another program holds the scanner, `.unsupported`, `.timedOut` when the controller does not answer.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ScanEvent? {
            try await begin()
            while true {
                guard let entry = try await walk?.peek() else {
                    await stop()
                    return nil
                }
                if entry.droppedBefore > 0, reportsDrop {
                    reportsDrop = false
                    return .dropped(entry.droppedBefore)
                }
                reportsDrop = true
                walk?.pass()
                if !isExcluded(entry.element) { return entry.element }
            }
        }

        /// Ends the scan, and waits until the radio no longer scans, if no other scan wants it to.
        package mutating func stop() async {
            if case .running(let lease, _) = state { await lease.stop() }
            state = .over
            walk = nil
        }

        private mutating func begin() async throws(BLEError) {
            guard case .fresh = state else { return }
            do {
                let (lease, buffer): BegunScan.Running
                if let running = sequence.begun?.take() {
                    (lease, buffer) = running
                } else {
                    (lease, buffer) = try await sequence.beginNow()
                }
                let mark = await sequence.mark()
                sequence.running.add(lease, mark)
                state = .running(lease, mark)
                walk = StreamWalk(buffer)
            } catch  where error.code == .cancelled {
                state = .over
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

/// A scan that has begun and waits for whoever iterates.
final class BegunScan: Sendable {
    typealias Running = (lease: ScanLease, buffer: StreamBuffer<ScanEvent>)

    private let running: Lock<Running?>

    init(_ running: Running) {
        self.running = Lock(running)
    }

    /// The scan; `nil` for all but the first.
    func take() -> Running? { running.withLock { $0.take() } }
}
