internal import BLECore
internal import BLELinux

// Owns the subscriptions of one link: the listeners of each value, the calls that collect values, and the values
// without a listener.
//
// Duties
// - Passes each value to its listeners, in the order of their subscriptions, and counts values without a subscription.
// - Resumes every call that waits for a subscription to begin, and every call that collects values, exactly once.
// - Holds the values of subscriptions of the link's last owner until a caller takes them.
// - Passes what a bonded peer has sent before the first subscription to that subscription.
// - Returns the configuration descriptors (CCCD) that must be written. The peripheral writes them, and reports each
//   result by `configured`.
//
// Invariants
// - A listener exists for every tap and for every subscriber of the machine, also one that leaves, except the library's
//   own once it has begun, and for nothing else.
// - A collector is in `collectors` from the beginning of its call to the end; its listener may end earlier.
// - A call that waits is known by the number of its waiter, in its listener or in its collector.
// - Only the peripheral uses it, on its event loop. The peripheral reports what the deadlines and the cancellation of
//   waiting tasks mean.

/// The consumer of one subscription.
struct Listener {
    /// A sequence, or a call that collects values.
    enum Destination {
        case stream(StreamBuffer<ReceivedValue>)
        case collector
    }

    let handle: AttributeHandle
    let destination: Destination
    /// The access that others have to the value; `nil` for a listener that shares with all, whatever they allow.
    var sharing: SubscribeOptions.Sharing?
    /// The number of the call that waits for the subscription to begin; `nil` once it has. The write to the peer has no
    /// deadline of its own, because several calls share it.
    var pending: UInt64?
    /// What the peer had sent before the subscription: it is put back if the caller never gets the sequence. `nil` if
    /// another sequence is the first.
    var earlyValues: [EarlyValues.Entry]?
}

/// The reason that a subscription did not begin.
enum SubscribeFailure: Error {
    case operation(OperationFailure)
    /// Another subscription has exclusive access to the characteristic, or this one requested it and is not the only
    /// one.
    case taken
    /// Another subscription has already replaced this one.
    case replaced
}

/// The subscriptions of one link.
final class SubscriptionHub {
    typealias ID = Subscriptions.ID
    typealias SubscribeResult = Result<Void, SubscribeFailure>
    typealias CollectorResult = Result<ResponseCollector.Outcome, BLEError>

    /// A configuration descriptor that must be written; `configured` takes the result.
    struct CCCDWrite: Sendable {
        let handle: AttributeHandle
        let value: [UInt8]
        let valueHandle: AttributeHandle

        var isDisabling: Bool { value == Subscriptions.cccdDisabled }
    }

    /// The values that came for a subscription of the link's last owner.
    struct HeldValues {
        let id: ID
        let uuid: BluetoothUUID?
        let buffer: StreamBuffer<ReceivedValue>
    }

    /// A call that collects values, with the number of its task once that waits.
    private struct RunningCollector {
        /// The operation's name in messages.
        let operation: String
        var collector: ResponseCollector
        /// The operation that writes the request, in its last attempt.
        var request: OperationID?
        var waiter: UInt64?
        /// The error that ended the collection from outside.
        var failure: BLEError?

        var result: CollectorResult? {
            if let failure { return .failure(failure) }
            return collector.outcome.map { .success($0) }
        }
    }

    /// The library's own subscriber; those of the application are numbered from 1.
    static let ownSubscriber = ID(0)

    private let subject: String
    private let loop: EventLoop
    /// Counts the values that the buffers of all subscriptions have dropped.
    private let drops = DropCounter()
    private var machine = Subscriptions()
    private var lastNumber: UInt64 = 0
    private var listeners: [ID: Listener] = [:]
    /// The listeners that receive every value, with or without a subscription.
    private var taps: [ID] = []
    private var held: [AttributeHandle: HeldValues] = [:]
    private var collectors: [ID: RunningCollector] = [:]
    private let subscribeWaiters: Waiters<SubscribeResult>
    private let collectorWaiters: Waiters<CollectorResult>
    private var timer = DeadlineTimer()
    private var unsolicitedCount = 0
    private var early = EarlyValues()

    init(of subject: String, on loop: EventLoop) {
        self.subject = subject
        self.loop = loop
        subscribeWaiters = Waiters(on: loop)
        collectorWaiters = Waiters(on: loop)
    }

    /// The number of subscriptions that have not ended.
    var outstanding: Int { listeners.count }

    /// Writes the counters of this object into `statistics`.
    func count(in statistics: inout ATTStatistics) {
        statistics.unsolicitedNotifications = unsolicitedCount
        statistics.droppedValues = drops.count
    }

    /// The values that are enabled in the peer, by handle.
    var active: [Subscriptions.Active] { machine.active }

    /// Whether the value at `handle` has a subscriber.
    func isWanted(_ handle: AttributeHandle) -> Bool { machine.isWanted(handle) }

    /// Whether the library itself is subscribed to the value at `handle`: the peer announces changes of services there.
    func isOwn(_ handle: AttributeHandle) -> Bool { machine.recipients(of: handle).contains(Self.ownSubscriber) }

    /// Whether a subscription uses the descriptor at `handle`.
    func ownsConfiguration(at handle: AttributeHandle) -> Bool { machine.ownsConfiguration(at: handle) }
}

// MARK: - Subscribing

extension SubscriptionHub {
    /// Returns the number of a new subscriber.
    func nextID() -> ID {
        lastNumber &+= 1
        return ID(lastNumber)
    }

    /// Returns a buffer for the values of subscriptions.
    func makeBuffer(_ options: SubscribeOptions) -> StreamBuffer<ReceivedValue> {
        StreamBuffer(
            of: subject, capacity: options.capacity, byteLimit: options.byteLimit, policy: options.policy,
            countingDropsIn: drops)
    }

    /// Makes `buffer` a listener to all values.
    func addTap(_ buffer: StreamBuffer<ReceivedValue>) -> ID {
        let id = nextID()
        listeners[id] = Listener(handle: 0, destination: .stream(buffer), sharing: nil)
        taps.append(id)
        return id
    }

    /// Waits until a subscription has begun or failed. `begin` adds the subscriber, or returns the result if it must
    /// not be added.
    func waitForSubscription(
        until deadline: BootInstant?, interruption: WaitInterruption,
        isolation: isolated (any Actor)? = #isolation, _ begin: (UInt64) -> SubscribeResult?
    ) async -> SubscribeResult {
        switch await subscribeWaiters.wait(
            until: deadline, interruption: interruption, isolation: isolation, begin)
        {
        case .resumed(let result): result
        case .timedOut: .failure(.operation(.timedOut))
        case .cancelled: .failure(.operation(.cancelled))
        }
    }

    /// Adds `id` as a subscriber; the task with the number `pending` is resumed when the subscription has begun or
    /// failed.
    func subscribe(
        _ id: ID, to characteristic: GATTCharacteristic, by cccd: GATTDescriptor?, preferring kind: Subscriptions.Kind,
        into destination: Listener.Destination, sharing: SubscribeOptions.Sharing?, _ pending: UInt64
    ) -> [CCCDWrite] {
        let handle = characteristic.valueHandle
        let others = others(at: handle)
        if mustNotShare(sharing, with: others) {
            subscribeWaiters.resume(pending, .failure(.taken))
            return []
        }
        listeners[id] = Listener(handle: handle, destination: destination, sharing: sharing, pending: pending)
        if case .stream(let buffer) = destination {
            listeners[id]?.earlyValues = passEarlyValues(of: handle, to: buffer, of: id)
        }
        var writes = perform(machine.subscribe(id, to: characteristic, cccd: cccd, preferring: kind))
        // This follows the new subscription, so that the peer need not stop in between.
        if sharing == .replacing {
            for other in others { writes += replace(other) }
        }
        return writes
    }

    /// Reports that the peer has responded to a write, or that no response will come.
    func configured(_ valueHandle: AttributeHandle, _ result: Result<Void, OperationFailure>) -> [CCCDWrite] {
        perform(machine.configured(valueHandle, result))
    }

    /// Whether a write that enables values is still to be made.
    func isDue(_ write: CCCDWrite) -> Bool { machine.isSwitchingOn(write.valueHandle, by: write.handle) }

    /// Removes a subscriber for which the task with this number waits; does nothing if it no longer does.
    func giveUp(_ id: ID, _ pending: UInt64, _ failure: OperationFailure) -> [CCCDWrite] {
        listeners[id]?.pending == pending ? giveUp(id, failure) : []
    }

    /// Removes a subscriber whose subscription has not begun.
    private func giveUp(_ id: ID, _ failure: OperationFailure) -> [CCCDWrite] {
        resumePending(id, .failure(.operation(failure)))
        return withdraw(id)
    }

    /// Removes a subscriber whose sequence the caller never gets: what the peer had sent before is for the next one.
    func withdraw(_ id: ID) -> [CCCDWrite] {
        putEarlyValuesBack(id)
        return stopListening(id)
    }

    /// Removes all subscribers whose subscriptions have not begun.
    func cancelPending() -> [CCCDWrite] {
        let pending = listeners.filter { $0.value.pending != nil }.keys.sorted { $0.number < $1.number }
        return pending.flatMap { giveUp($0, .cancelled) }
    }

    /// Removes a subscriber; does nothing if its subscription has ended.
    func stopListening(_ id: ID) -> [CCCDWrite] {
        // A peer may send before its response, and a policy may have ended the sequence with that. Its caller gets it,
        // with the values that fitted and the error.
        resumePending(id, .success(()))
        guard listeners.removeValue(forKey: id) != nil else { return [] }
        taps.removeAll { $0 == id }
        return perform(machine.unsubscribe(id))
    }

    /// Removes a subscriber when the peer has responded, if it is to disable the values: those that come before are for
    /// it too. Does nothing if its subscription has ended.
    func stopListeningAfterResponse(_ id: ID) -> [CCCDWrite] {
        guard let listener = listeners[id], listener.pending == nil, !taps.contains(id) else {
            return stopListening(id)
        }
        // Others may have the value for themselves from now on.
        listeners[id]?.sharing = nil
        return perform(machine.leave(id))
    }

    /// Reports that the library's own subscription has begun or failed. Its values need no listener: the peripheral
    /// always reads them.
    func ownSubscriptionBegan() {
        listeners[Self.ownSubscriber] = nil
    }

    /// Ends the subscriptions to values in `range`, where the services have changed; nothing is written.
    ///
    /// - Returns: Whether the library's own subscription was among them.
    func servicesChanged(in range: ClosedRange<AttributeHandle>, endingWith error: BLEError) -> Bool {
        let ids = machine.servicesChanged(in: range)
        unsolicitedCount += early.drop(in: range)
        for id in ids { endListener(id, .operation(.servicesChanged), with: error) }
        return ids.contains(Self.ownSubscriber)
    }

    /// Ends everything: the link is lost.
    ///
    /// - Returns: The buffers whose sequences must be ended.
    func linkLost() -> [StreamBuffer<ReceivedValue>] {
        let ids = machine.linkLost() + taps
        for id in ids { resumePending(id, .failure(.operation(.linkLost))) }
        let buffers = ids.compactMap { id -> StreamBuffer<ReceivedValue>? in
            if case .stream(let buffer)? = listeners[id]?.destination { buffer } else { nil }
        }
        listeners = [:]
        taps = []
        unsolicitedCount += early.drop(in: 0...0xFFFF)
        return buffers
    }

    private func perform(_ actions: [Subscriptions.Action]) -> [CCCDWrite] {
        var writes: [CCCDWrite] = []
        var failed: [ID] = []
        for action in actions {
            switch action {
            case .write(let handle, let value, let valueHandle):
                writes.append(CCCDWrite(handle: handle, value: value, valueHandle: valueHandle))
            case .began(let id, _):
                resumePending(id, .success(()))
            case .failed(let id, let failure):
                resumePending(id, .failure(.operation(failure)))
                failed.append(id)
            case .left(let id):
                listeners[id] = nil
            }
        }
        // The first one last: it has the early values, which are for the next sequence once none of the others is left.
        for id in failed.reversed() {
            putEarlyValuesBack(id)
            listeners[id] = nil
        }
        return writes
    }

    private func resumePending(_ id: ID, _ result: SubscribeResult) {
        guard let pending = listeners[id]?.pending else { return }
        listeners[id]?.pending = nil
        subscribeWaiters.resume(pending, result)
    }

    /// Ends one sequence or collection, and the call that waits for it to begin.
    private func endListener(_ id: ID, _ failure: SubscribeFailure, with error: BLEError) {
        guard let listener = listeners[id] else { return }
        switch listener.destination {
        case .stream(let buffer): buffer.finish(error)
        case .collector: interruptCollector(id, with: error)
        }
        resumePending(id, .failure(failure))
        listeners[id] = nil
    }
}

// MARK: - Sharing

extension SubscriptionHub {
    /// The listeners to a value that restrict its sharing.
    private func others(at handle: AttributeHandle) -> [ID] {
        listeners.filter { $0.value.handle == handle && $0.value.sharing != nil }.keys
            .sorted { $0.number < $1.number }
    }

    private func mustNotShare(_ sharing: SubscribeOptions.Sharing?, with others: [ID]) -> Bool {
        switch sharing {
        case nil, .replacing?: false
        case .exclusive?: !others.isEmpty
        case .shared?: others.contains { listeners[$0]?.sharing == .exclusive }
        }
    }

    /// Ends a subscription that another one replaces.
    private func replace(_ id: ID) -> [CCCDWrite] {
        let error = BLEError(SubscribeFailure.replaced, subject: subject, during: "continue a subscription")
        endListener(id, .replaced, with: error)
        return perform(machine.unsubscribe(id))
    }
}

// MARK: - Values

extension SubscriptionHub {
    /// Passes a value to all its listeners, and counts it if there is none.
    ///
    /// - Parameter isOwn: Whether the library itself uses the value.
    /// - Returns: The subscribers whose sequences have ended here, by their policy.
    func received(_ value: ReceivedValue, isOwn: Bool) -> [ID] {
        var ended: [ID] = []
        let recipients = machine.recipients(of: value.handle)
        for id in recipients {
            switch listeners[id]?.destination {
            case .stream(let buffer)?:
                if !buffer.yield(value, bytes: value.bytes.count) { ended.append(id) }
            case .collector?: collect(value, for: id)
            case nil: break
            }
        }
        for id in taps {
            guard case .stream(let buffer)? = listeners[id]?.destination else { continue }
            if !buffer.yield(value, bytes: value.bytes.count) { ended.append(id) }
        }
        if !isOwn, taps.isEmpty, recipients.isEmpty { unsolicitedCount += early.keep(value) }
        return ended
    }

    /// The link is encrypted with the key of a bond: the peer may send before it is asked to.
    func keepEarlyValues() { early.begin() }

    /// Passes on what the peer has sent before the first subscription, unless an attempt of the same subscriber has.
    private func passEarlyValues(
        of handle: AttributeHandle, to buffer: StreamBuffer<ReceivedValue>, of id: ID
    ) -> [EarlyValues.Entry]? {
        guard let taken = early.take(handle, for: id, at: loop.now()) else { return nil }
        unsolicitedCount += taken.dropped
        for entry in taken.entries where !entry.receivers.contains(id) {
            guard buffer.yield(entry.value, bytes: entry.value.bytes.count) else { break }
        }
        return taken.entries.map { EarlyValues.Entry(value: $0.value, receivers: $0.receivers.union([id])) }
    }

    private func putEarlyValuesBack(_ id: ID) {
        guard let listener = listeners[id], let taken = listener.earlyValues else { return }
        listeners[id]?.earlyValues = nil
        guard let next = others(at: listener.handle).first(where: { $0 != id }) else {
            unsolicitedCount += early.putBack(taken, of: listener.handle)
            return
        }
        // Another sequence has got the later ones. If it does not begin either, the one after it is the first.
        unsolicitedCount += taken.count
        listeners[next]?.earlyValues = []
    }
}

// MARK: - Collectors

extension SubscriptionHub {
    /// Whether any call collects values.
    var isCollecting: Bool { !collectors.isEmpty }

    func beginCollecting(_ id: ID, _ collector: ResponseCollector, in context: CallContext) {
        collectors[id] = RunningCollector(operation: context.operation, collector: collector)
    }

    /// Ends the subscription of a call that collected values.
    func endCollecting(_ id: ID) -> [CCCDWrite] {
        collectors[id] = nil
        if collectors.isEmpty { timer.cancel(on: loop) }
        return stopListening(id)
    }

    /// Returns the collector of a call; `nil` if it has ended.
    func collector(_ id: ID) -> ResponseCollector? { collectors[id]?.collector }

    /// Records that `operation` writes the request of a call.
    func requestBegan(_ operation: OperationID, for id: ID) {
        collectors[id]?.request = operation
    }

    /// Returns the call whose request `operation` writes.
    func collector(for operation: OperationID?) -> ID? {
        guard let operation else { return nil }
        return collectors.first { $0.value.request == operation }?.key
    }

    /// Reports that a packet of a call's request has been written, or that none will be.
    func requestWritten(for id: ID) {
        collectors[id]?.collector.asked()
    }

    /// Reports that the peer has confirmed the request of a call.
    func requestConfirmed(for id: ID, at now: BootInstant) {
        collectors[id]?.collector.confirmed(at: now)
    }

    /// Waits until a collection is complete, or has been ended from outside; `nil` if the task was cancelled before.
    /// `begin` calls `awaitCollector`, or returns the result.
    func waitForCollector(
        interruption: WaitInterruption, isolation: isolated (any Actor)? = #isolation,
        _ begin: (UInt64) -> CollectorResult?
    ) async -> CollectorResult? {
        let end = await collectorWaiters.wait(interruption: interruption, isolation: isolation, begin)
        if case .resumed(let result) = end { return result }
        return nil
    }

    /// Makes the task with this number wait for the collection. Returns its result, if it is complete.
    func awaitCollector(_ id: ID, _ waiter: UInt64) -> CollectorResult? {
        if let result = collectors[id]?.result { return result }
        collectors[id]?.waiter = waiter
        return nil
    }

    /// Ends the collection of a call from outside.
    func interruptCollector(_ id: ID, with error: BLEError) {
        guard let running = collectors[id], running.result == nil else { return }
        collectors[id]?.failure = error
        resumeCollector(id)
    }

    /// Ends the collections of all calls; `error` returns the error for an operation.
    func interruptCollectors(_ error: (String) -> BLEError) {
        for (id, running) in collectors.sorted(by: { $0.key.number < $1.key.number }) {
            interruptCollector(id, with: error(running.operation))
        }
    }

    /// Makes sure that `timePassed` is called at the next deadline of a waiting call.
    func armTimer(_ schedule: (BootInstant) -> TimerID) {
        let deadlines = collectors.values.compactMap { $0.waiter == nil ? nil : $0.collector.nextDeadline }
        timer.arm(for: deadlines.min(), on: loop, schedule)
    }

    func timePassed(_ now: BootInstant) {
        timer.fired()
        for id in collectors.keys.sorted(by: { $0.number < $1.number }) where collectors[id]?.waiter != nil {
            collectors[id]?.collector.timePassed(now)
            resumeCollector(id)
        }
    }

    private func collect(_ value: ReceivedValue, for id: ID) {
        collectors[id]?.collector.received(value.bytes, at: value.time)
        resumeCollector(id)
    }

    private func resumeCollector(_ id: ID) {
        guard let running = collectors[id], let waiter = running.waiter, let result = running.result else { return }
        collectors[id]?.waiter = nil
        collectorWaiters.resume(waiter, result)
    }
}

// MARK: - Subscriptions of the last owner

extension SubscriptionHub {
    /// The held subscriptions that no caller has taken yet, by handle.
    var heldValues: [(handle: AttributeHandle, uuid: BluetoothUUID?)] {
        held.sorted { $0.key < $1.key }.map { ($0.key, $0.value.uuid) }
    }

    /// Resumes a subscription that is enabled in the peer.
    func resume(_ value: LinkState.Subscription, holding options: SubscribeOptions) {
        var ids = value.isOwn ? [Self.ownSubscriber] : []
        if value.isWanted {
            let id = nextID()
            let buffer = makeBuffer(options)
            listeners[id] = Listener(handle: value.valueHandle, destination: .stream(buffer), sharing: .shared)
            held[value.valueHandle] = HeldValues(id: id, uuid: value.uuid, buffer: buffer)
            ids.append(id)
        }
        machine.resume(
            Subscriptions.Active(
                valueHandle: value.valueHandle, configuration: value.configuration, kind: value.kind, subscribers: ids))
    }

    /// Takes the values of a held subscription, even if it has ended.
    func takeHeld(_ handle: AttributeHandle) -> HeldValues? {
        held.removeValue(forKey: handle)
    }

    /// Takes the values of a held subscription for the next subscriber, unless it has ended, or other subscriptions do
    /// not allow it.
    func takeHeldIfListening(_ handle: AttributeHandle, sharing: SubscribeOptions.Sharing) -> HeldValues? {
        guard let values = held[handle], listeners[values.id] != nil else { return nil }
        let others = others(at: handle).filter { $0 != values.id }
        if mustNotShare(sharing, with: others) { return nil }
        listeners[values.id]?.sharing = sharing
        if sharing == .replacing {
            // Nothing is written: the held subscription needs the values.
            for other in others { _ = replace(other) }
        }
        return takeHeld(handle)
    }
}
