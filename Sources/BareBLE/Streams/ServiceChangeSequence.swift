public import BLECore
internal import BLELinux

/// A change of a peer's services, delivered after their new state is known.
public struct ServiceChange: Hashable, Sendable {
    /// The affected handles, in whole services.
    public let handles: ClosedRange<AttributeHandle>
    /// The services that were known at these handles before: those removed, and those that may have changed. A service
    /// that is in `services` too is unchanged.
    public let formerServices: [GATTService]
    /// The services that are known at these handles now, ordered by handle. Where the program has discovered single
    /// services, those are found again when a call names them, and are not listed here.
    public let services: [GATTService]
}

/// The changes of one peer's services, in the order in which they became known.
///
/// The sequence has one buffer: use it from one task. At most 16 changes wait; beyond that the oldest is dropped,
/// which does no harm as long as the observer looks at the database and not at the number of changes.
public struct ServiceChangeSequence: AsyncSequence, Sendable {
    /// The element type: a change of the services.
    public typealias Element = ServiceChange
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    let lease: ServiceChangeLease

    /// Returns an iterator over the changes.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: lease)
    }

    /// An iterator over the changes.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let lease: ServiceChangeLease
        private var walk: StreamWalk<ServiceChange>

        init(lease: ServiceChangeLease) {
            self.lease = lease
            walk = StreamWalk(lease.buffer)
        }

        /// Returns the next change; `nil` after this program has ended the link or the task was cancelled.
        ///
        /// - Throws: `BLEError` with `.disconnected`; `.busy` while another task waits for the next change.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> ServiceChange? {
            guard let entry = try await walk.peek() else { return nil }
            walk.pass()
            return entry.element
        }
    }
}

/// Keeps an observer's buffer registered with its peripheral; the end of the last reference removes it.
final class ServiceChangeLease: Sendable {
    let buffer: StreamBuffer<ServiceChange>
    private let number: UInt64
    private let peripheral: Peripheral

    init(number: UInt64, buffer: StreamBuffer<ServiceChange>, peripheral: Peripheral) {
        self.number = number
        self.buffer = buffer
        self.peripheral = peripheral
    }

    deinit {
        buffer.finish()
        let (peripheral, number) = (peripheral, number)
        Task(executorPreference: peripheral.loop) { await peripheral.removeChangeObserver(number) }
    }
}
