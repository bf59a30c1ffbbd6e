internal import BLECore
internal import BLELinux
internal import Logging

// The subscriptions of a session, which last over its links. On each link a task subscribes and passes the values into
// the buffer of the subscription's sequence. If that fails, `ResubscribeMachine` decides what follows.
//
// Duties: keep the subscriptions in their order, begin each on a link, pass its values on, and end it: with the
// session, by a failure that would recur on every link, or where no task consumes its values.
//
// Invariants
// - One task passes values on for a subscription at a time. The one of an earlier link is cancelled before.
// - Every entry of a buffer has the number of its link, so that what belongs to an earlier one is recognized.
// - Values that were dropped on the way are reported before the next one, and with the end.
// - A subscription is looked for again only after the peer has announced changed services, or on the next link.

/// The subscriptions of one session, in the order in which they were made.
struct StandingSubscriptions {
    private var entries: [UInt64: StandingSubscription] = [:]
    private var lastNumber: UInt64 = 0

    /// The numbers of all subscriptions, in their order.
    var numbers: [UInt64] { entries.keys.sorted() }

    /// The tasks that pass on the values of the current link.
    var pumps: [Task<Void, Never>] { entries.inOrder.compactMap(\.pump) }

    subscript(_ number: UInt64) -> StandingSubscription? { entries[number] }

    mutating func makeNumber() -> UInt64 {
        lastNumber &+= 1
        return lastNumber
    }

    mutating func add(_ subscription: StandingSubscription) -> UInt64 {
        let number = makeNumber()
        entries[number] = subscription
        return number
    }

    mutating func remove(_ number: UInt64) -> StandingSubscription? {
        entries.removeValue(forKey: number)
    }

    /// Begins a subscription on a link; `ended` is called if no later link will continue it.
    mutating func begin(
        _ number: UInt64, on link: Peripheral, _ epoch: UInt64, ended: @escaping @Sendable (UInt64) async -> Void
    ) {
        guard let subscription = entries[number] else { return }
        subscription.pump?.cancel()
        entries[number]?.pump = Task.detached(executorPreference: link.loop) {
            let end = await subscription.run(on: link, epoch)
            guard case .over(let failure) = end else { return }
            subscription.buffer.finish(failure)
            await ended(number)
        }
    }

    /// Marks in all of them that the link of `epoch` was lost.
    func interrupt(_ error: BLEError, _ epoch: UInt64) {
        for subscription in entries.inOrder { subscription.buffer.yield(.interrupted(error, epoch)) }
    }

    /// Ends all of them: with the session's final error, or without an error.
    mutating func finish(_ failure: BLEError?) {
        for subscription in entries.inOrder {
            subscription.pump?.cancel()
            subscription.buffer.finish(failure)
        }
        entries = [:]
    }
}

/// A subscription that the session makes on each link.
struct StandingSubscription: Sendable {
    typealias Buffer = StreamBuffer<Entry>

    /// An entry of the buffer, with its link.
    enum Entry: Sendable {
        case began(UInt64)
        case value(ReceivedValue, UInt64)
        case interrupted(BLEError, UInt64)

        var epoch: UInt64 {
            switch self {
            case .began(let epoch), .value(_, let epoch), .interrupted(_, let epoch): epoch
            }
        }
    }

    /// The source of its values.
    enum Source {
        case characteristic(CharacteristicReference)
        /// All values that the peer sends, for any subscriber.
        case everything
    }

    /// The end of the subscription on one link.
    enum End {
        /// The next link continues it.
        case untilNextLink
        /// No link will: the peer refuses for good, or no task consumes the values.
        case over(BLEError?)
    }

    let options: SubscribeOptions
    let buffer: Buffer
    fileprivate var pump: Task<Void, Never>?
    private let source: Source
    private let machine = Lock(ResubscribeMachine())

    init(to source: Source, of peer: String, _ options: SubscribeOptions) {
        self.source = source
        self.options = options
        buffer = Buffer(of: peer, capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy)
    }

    var reference: CharacteristicReference? {
        if case .characteristic(let reference) = source { reference } else { nil }
    }

    /// Stops passing on the values of the current link.
    func cancel() { pump?.cancel() }

    /// Returns when the task of the current link has ended, which must be cancelled before.
    func ended() async { await pump?.value }
}

// MARK: - Link by link

extension StandingSubscription {
    /// The codes of failures, of the peer or of this program, that would recur on the next link.
    private static let lastingCodes: Set<BLEError.Code> = [
        .refusedByPeer, .insufficientSecurity, .notSupported, .attributeNotFound, .ambiguous, .invalidArgument,
        .valuesLost, .replaced,
    ]

    /// Passes on the values of one link until it ends; a change of the peer's services is an interruption too.
    fileprivate func run(on link: Peripheral, _ epoch: UInt64) async -> End {
        machine.withLock { $0.linkUp() }
        var changes: ServiceChangeSequence.AsyncIterator?
        while true {
            // This precedes the search, so that no change is missed in between. Those from before are no reason to
            // search again: they may have waited for as long as there was a subscription.
            if machine.withLock({ $0.followsServiceChanges }) {
                changes = await link.announcedServiceChanges().makeAsyncIterator()
            }
            var begun: ValueSequence?
            var reportedLosses = 0
            /// Returns the number of values dropped after the last one that came.
            func losses() -> Int { (begun?.droppedInTotal ?? 0) - reportedLosses }
            do throws(BLEError) {
                let sequence = try await subscribe(on: link)
                var values = sequence.makeAsyncIterator()
                begun = sequence
                machine.withLock { $0.accepted() }
                // A policy that ends the stream has stored the reason in it.
                guard buffer.yield(.began(epoch)) else { return .over(nil) }
                while let value = try await values.next() {
                    reportedLosses += value.droppedBefore
                    let goesOn = buffer.yield(
                        .value(value, epoch), bytes: value.bytes.count, after: value.droppedBefore)
                    guard goesOn else { return .over(nil) }
                }
                if Task.isCancelled {
                    // Here, and not when the sequence is released, so that a task that waits for this end knows that
                    // the peer has been informed.
                    try? await sequence.unsubscribe()
                    return .untilNextLink
                }
                let error = await link.endError(during: "continue a subscription", isReplaced: true)
                return buffer.yield(.interrupted(error, epoch), after: losses()) ? .untilNextLink : .over(nil)
            } catch {
                if Task.isCancelled { return .untilNextLink }
                let isLinkUp = await link.isConnected
                let step = machine.withLock {
                    $0.failed(kind(of: error), wasSubscribed: begun != nil, isLinkUp: isLinkUp)
                }
                switch step {
                case .awaitServiceChange(let isFirst):
                    if isFirst { logMissing(on: link) }
                    guard (try? await changes?.next()) != nil else { return .untilNextLink }
                case .end:
                    buffer.lost(losses())
                    return .over(error)
                case .awaitLink:
                    guard begun != nil else { return .untilNextLink }
                    // The session makes the next link, so that no hint asks for it.
                    var mark = error
                    if error.code == .disconnected, !isLinkUp {
                        mark = await link.endError(during: error.operation, isReplaced: true)
                    }
                    return buffer.yield(.interrupted(mark, epoch), after: losses()) ? .untilNextLink : .over(nil)
                case .subscribe(let pause):
                    guard begun == nil || buffer.yield(.interrupted(error, epoch), after: losses()) else {
                        return .over(nil)
                    }
                    guard pause > .zero else { continue }
                    let waited: Void? = try? await CentralClock(loop: link.loop).sleep(for: pause)
                    if waited == nil { return .untilNextLink }
                }
            }
        }
    }

    private func subscribe(on link: Peripheral) async throws(BLEError) -> ValueSequence {
        switch source {
        case .characteristic(let reference): return try await link.subscribe(to: reference, options)
        case .everything:
            return await link.notifications(
                capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy)
        }
    }

    private func kind(of error: BLEError) -> ResubscribeMachine.Failure {
        if error.code == .attributeNotFound, reference != nil { return .missing }
        // A characteristic from a database that has changed since does not exist in the new one.
        if case .characteristic(.characteristic) = source, error.code == .servicesChanged { return .lasting }
        return Self.lastingCodes.contains(error.code) ? .lasting : .passing
    }

    private func logMissing(on link: Peripheral) {
        guard let reference else { return }
        link.logger.notice(
            "a characteristic is gone until its service returns",
            metadata: ["peer": "\(link.name)", "characteristic": "\(reference)"])
    }
}
