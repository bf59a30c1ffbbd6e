public import BLECore
internal import BLELinux

/// A peer has changed its services, and what it has now is known.
public struct ServiceChange: Hashable, Sendable {
    /// The handles whose meaning has changed, in whole services.
    public let handles: ClosedRange<AttributeHandle>
    /// The services that were known at these handles before, as they were: those that went, and those that may have changed. A
    /// service that is in `services` as well is as it was.
    public let formerServices: [GATTService]
    /// The services that are known at these handles now, in the order of handles. Where the program has looked for single
    /// services, those are found again when a call names them, and are not here.
    public let services: [GATTService]
}

/// The changes of one peer's services, in the order in which they became known.
///
/// It has one buffer: use it from one task. At most 16 changes wait; when there are more, the oldest goes, which does no
/// harm as long as the observer looks at the database and not at the number of changes.
public struct ServiceChangeSequence: AsyncSequence, Sendable {
    /// What the sequence consists of.
    public typealias Element = ServiceChange
    /// What it can end with.
    public typealias Failure = BLEError

    let lease: ServiceChangeLease

    /// Walks over the changes.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: lease)
    }

    /// Walks over the changes.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let lease: ServiceChangeLease
        private var walk: StreamWalk<ServiceChange>

        init(lease: ServiceChangeLease) {
            self.lease = lease
            walk = StreamWalk(lease.buffer)
        }

        /// The next change; `nil` when this program has ended the link or the task is cancelled.
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

/// Keeps an observer's buffer in its peripheral: its last owner going away takes it out.
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
