// The sequences of this library are one family. `BLESequence.AsyncIterator` is the iterator of nearly all of them; a
// sequence with methods of its own, such as `ScanSequence`, is a type that returns this iterator, and one without is a
// name of `BLESequence`. Three parts differ, and are given to the iterator: where the entries come from, how losses are
// reported, and which elements are left out. The two sequences that decode values, and may throw for one of them,
// add that to the same `StreamWalk`.
//
// `next()` is inlinable: for an element that waits already it is an index into a batch, in the caller's own code.

/// Elements that the library delivers in order, such as values, events or packets.
///
/// It is the type of all sequences that have no methods of their own: `AdapterStateSequence`,
/// `AdvertisingStateSequence`, `ConnectionEventSequence`, `DeviceListChangeSequence`, `IncomingChannelSequence`,
/// `LinkSecuritySequence`, `LocalPeripheralEventSequence`, `PacketSequence`, `RSSISequence`, `ReadyToUpdateSequence`,
/// `RecoveryEventSequence`, `SecurityEventSequence` and `ServiceChangeSequence`.
/// What each delivers, and how it ends, is described there. Leaving the loop, and cancelling its task, ends the
/// iteration.
///
/// A sequence of events, such as `LocalPeripheral.events`, has the events from the moment when its property was read,
/// also before it is iterated. They wait in a bounded buffer, for the first iterator; each further iterator of the same
/// sequence has the events from its own creation on. The buffer is released with the sequence. A sequence of states
/// begins with the present one.
public struct BLESequence<Element: Sendable>: AsyncSequence, Sendable {
    /// The error that the sequence may end with.
    public typealias Failure = BLEError

    private let begin: @Sendable () -> AsyncIterator

    /// Creates a sequence whose iterators are made by `begin`.
    init(_ begin: @escaping @Sendable () -> AsyncIterator) {
        self.begin = begin
    }

    /// Creates a sequence of what a buffer holds and receives, for one consumer.
    init(_ buffer: StreamBuffer<Element>, until token: LifetimeToken) {
        self.init { AsyncIterator(buffer, until: token) }
    }

    /// Creates a sequence of events from now on; of an iterator after the first one, from its creation on.
    ///
    /// - Parameters:
    ///   - losses: How dropped events are reported.
    ///   - listen: Adds a listener.
    init(losses: LossReport<Element>, _ listen: @escaping @Sendable () -> StreamListener<Element>) {
        let listeners = SequenceListeners(listen)
        self.init {
            let listener = listeners.next()
            return AsyncIterator(listener.buffer, until: listener.token, losses: losses)
        }
    }

    /// Returns an iterator over the elements.
    public func makeAsyncIterator() -> AsyncIterator { begin() }

    /// An iterator over the elements of a sequence.
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline var walk: StreamWalk<Element>
        @usableFromInline let isIncluded: (@Sendable (Element) -> Bool)?
        private let losses: LossReport<Element>
        /// The owner of the elements, for methods of the iterator's own.
        let source: (any AnyObject & Sendable)?

        /// - Parameters:
        ///   - source: The owner of the elements, for methods of the iterator's own.
        ///   - losses: How elements that were dropped are reported.
        ///   - isIncluded: Returns whether an element is delivered; it is called when its turn has come.
        ///   - fetch: Returns the next entries. What must live as long as the iterator is captured and used here.
        init(
            from source: (any AnyObject & Sendable)? = nil, losses: LossReport<Element> = .none,
            where isIncluded: (@Sendable (Element) -> Bool)? = nil,
            _ fetch: @escaping @Sendable () async throws(BLEError) -> [StreamEntry<Element>]
        ) {
            walk = StreamWalk(fetch)
            self.isIncluded = isIncluded
            self.losses = losses
            self.source = source
        }

        init(_ buffer: StreamBuffer<Element>, until token: LifetimeToken, losses: LossReport<Element> = .none) {
            self.init(losses: losses) { () async throws(BLEError) in
                defer { withExtendedLifetime(token) {} }
                return try await buffer.nextBatch()
            }
        }

        /// Returns the next element, as soon as there is one; `nil` after the end of the sequence or the cancellation
        /// of the task.
        ///
        /// - Throws: The `BLEError` with which the sequence ends, once; `.busy` while another task waits for the next
        ///   element of the same buffer.
        @inlinable
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(BLEError) -> Element? {
            while let entry = try await walk.peek() {
                if entry.droppedBefore > 0, let report = report(entry) { return report }
                walk.pass()
                if let isIncluded, !isIncluded(entry.element) { continue }
                return entry.element
            }
            return nil
        }

        /// Returns the element that reports the losses before an entry, if one does.
        @usableFromInline mutating func report(_ entry: StreamEntry<Element>) -> Element? {
            switch losses {
            case .none:
                return nil
            case .before(let element):
                walk.passLosses()
                return element(entry.droppedBefore)
            case .within(let element):
                walk.pass()
                return element(entry.element, entry.droppedBefore)
            }
        }
    }
}

/// How a sequence reports dropped elements.
enum LossReport<Element: Sendable>: Sendable {
    /// Not at all: the last element is what counts.
    case none
    /// By an element before the next one.
    case before(@Sendable (_ count: Int) -> Element)
    /// In the next element.
    case within(@Sendable (_ next: Element, _ count: Int) -> Element)
}
