// The link of one peripheral object: its calls, its subscriptions, and what is reported of them.
//
// Duties
// - Start the calls in their order. One at a time waits for a result, so that each is reported before the next one, and
//   before the values that the device has sent after its response. Beside it run several writes without response, which
//   BareBLE puts on air in the order in which they were started. A call that takes several requests (discovery,
//   subscribing) runs alone, so that it keeps its place. A channel runs beside all, as the device may take its time.
// - Report each call once, on the delegate's queue; and nothing after the end of the link.
// - Post each value when it arrives, so that it keeps its place among the values of other characteristics and the
//   reports of calls, however long the queue is blocked. Of each subscription a bounded number waits there. What
//   arrives beyond that is dropped, the newest first, and logged: what is in the queue keeps its order.
// - Count what waits, for `canSendWriteWithoutResponse` and for the bound of the queue.
//
// Invariants
// - The phase goes from `waiting` to `up` to `over`; with `reconnects`, from `up` back to `waiting`.
// - Links have numbers, and a call has that of the link which the program knew when it made the call. One that was made
//   before the loss of its link was reported does not go to the next link: its handles are those of the lost one.
// - The flow has a lock of its own, because callers read it on their threads; everything else belongs to the loop.
// - The peripheral object is referred to weakly; it owns this link.

internal import BLELinux
internal import BareBLE
internal import Logging

/// The options of a connection.
struct PeripheralLinkOptions: Sendable {
    var startDelay: Duration = .zero
    /// Whether the link is established again after a loss.
    var reconnects = false
    /// Whether the run before had the connection, and this one has not cancelled it.
    var isRestored = false
}

/// The link of one peripheral object.
actor PeripheralLink {
    /// What a call reports on the delegate's queue.
    typealias Report = @Sendable (CBPeripheral) -> Void

    /// What runs while a call does.
    enum Turn {
        /// Calls of this kind: one that waits for a result, and several writes without response.
        case shared
        /// Nothing that takes requests.
        case alone
        /// Anything: it takes no requests.
        case beside
    }

    /// A call that waits for its turn, or is under way.
    struct Call: Sendable {
        /// The number of the link that was reported when the call was made.
        let link: UInt64
        let cost: CallCost
        let turn: Turn
        /// Makes the call; `nil` if there is nothing to report.
        let run: @Sendable (Peripheral, PeripheralLink) async -> Report?

        /// Whether it runs with others, and has a result.
        var awaitsResult: Bool { turn == .shared && !cost.isCommand }
    }

    private enum Phase {
        case waiting
        case up(Peripheral)
        case over
    }

    private struct Subscription {
        /// The number of the subscription among those of the link.
        let number: UInt64
        let values: ValueSequence
        /// The values on the delegate's queue.
        let posted = PostedValues()
        /// Whether the values are reported; `false` until the subscription itself was.
        var isReported = false
        /// Whether a call ends it: values are reported until the peer has responded.
        var isEnding = false
    }

    /// The number of calls that are under way at once, without those beside them.
    private static let window = 16

    nonisolated let manager: ManagerID
    nonisolated let peer: PeerID
    nonisolated let options: PeripheralLinkOptions
    nonisolated let host: CoreBluetoothHost
    nonisolated let flow = WriteFlow()
    private nonisolated let callbacks: CallbackQueue
    private nonisolated let owner: WeakPeripheral

    private var phase = Phase.waiting
    /// The number of the newest link; 0 before the first one.
    private var lastLink: UInt64 = 0
    private var waiting: [Call] = []
    /// The index of the first waiting call.
    private var next = 0
    private var running = 0
    private var isAloneRunning = false
    /// Whether a call that waits for a result runs, of those that do not run alone.
    private var isAwaitingResult = false
    private var subscriptions: [AttributeHandle: Subscription] = [:]
    private var lastSubscription: UInt64 = 0
    /// The handle of the value that a call subscribes to; `nil` once the peer has changed the services there.
    private var subscribing: AttributeHandle?
    private var observer: Task<Void, Never>?

    /// The event loop of the hub: all of the actor's code runs there.
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the hub through its host, so the reference stays good.
        unsafe host.hub.unownedExecutor
    }

    init(
        _ owner: WeakPeripheral, to peer: PeerID, of manager: ManagerID, on callbacks: CallbackQueue,
        _ options: PeripheralLinkOptions,
        host: CoreBluetoothHost
    ) {
        self.owner = owner
        self.peer = peer
        self.manager = manager
        self.callbacks = callbacks
        self.options = options
        self.host = host
    }

    /// Runs a report on the delegate's queue, if the peripheral object and its manager are still there.
    private nonisolated func post(_ report: @escaping Report) {
        postEnd { if $0.hasManager { report($0) } }
    }

    /// Runs a report as `post` does, and something before it also if they are gone.
    private nonisolated func post(finally: @escaping @Sendable () -> Void, _ report: @escaping Report) {
        callbacks.post { [owner] in
            finally()
            if let peripheral = owner.object, peripheral.hasManager { report(peripheral) }
        }
    }

    /// Runs the report of an end on the delegate's queue. The state of the peripheral object changes also if its
    /// manager is gone.
    private nonisolated func postEnd(_ report: @escaping Report) {
        callbacks.post { [owner] in if let peripheral = owner.object { report(peripheral) } }
    }

    // MARK: Beginning and end

    /// Whether this is the link that is up, as far as was reported here.
    private func isUp(_ peripheral: Peripheral) -> Bool {
        if case .up(let current) = phase { current === peripheral } else { false }
    }

    /// Whether it waits for the link that follows a lost one.
    var isReconnecting: Bool { lastLink > 0 && options.reconnects }

    /// The link is up.
    func begin(_ peripheral: Peripheral, mtu: Int) {
        guard case .waiting = phase else { return }
        phase = .up(peripheral)
        lastLink += 1
        flow.reset()
        // One that is read from now on has a report of its own.
        let name = host.names[peer]
        post { [weak self, number = lastLink] in
            if let self { $0.connected(self, number: number, mtu: mtu, name: name) }
        }
        if name == nil {
            Task(executorPreference: host.hub.loop) { await self.readName(of: peripheral) }
        }
        startCalls()
    }

    /// The link could not be established, for a reason of this machine or of the device.
    func failed(_ error: CBError, isOfThisMachine: Bool) {
        guard close(.over) else { return }
        let time = CFAbsoluteTimeGetCurrent()
        postEnd { [self] in $0.failedToConnect(self, error, isOfThisMachine: isOfThisMachine, at: time) }
    }

    /// The link was ended by this program, or its attempt was cancelled. The report is posted at once, before those of
    /// the next link.
    func end(_ error: CBError?) {
        guard close(.over) else { return }
        let time = CFAbsoluteTimeGetCurrent()
        postEnd { [self] in $0.disconnected(self, error, isReconnecting: false, at: time) }
    }

    /// The link was lost. With `reconnects`, it waits for the next one. The values that came before were posted before.
    func lost(_ error: CBError?) {
        let reconnects = options.reconnects
        guard close(reconnects ? .waiting : .over) else { return }
        let time = CFAbsoluteTimeGetCurrent()
        postEnd { [self] in $0.disconnected(self, error, isReconnecting: reconnects, at: time) }
    }

    /// The link has ended, and there is no callback for it.
    func abandon() {
        guard close(.over) else { return }
        postEnd { [self] in $0.abandoned(self) }
    }

    /// Ends the calls and the subscriptions; returns `false` if that was done before.
    private func close(_ phase: Phase) -> Bool {
        if case .over = self.phase { return false }
        self.phase = phase
        waiting = []
        next = 0
        observer?.cancel()
        observer = nil
        for subscription in subscriptions.values { endLater(subscription) }
        subscriptions = [:]
        flow.reset()
        return true
    }

    private func endLater(_ subscription: Subscription) {
        subscription.posted.close()
        Task(executorPreference: host.hub.loop) { try? await subscription.values.unsubscribe() }
    }

    private func readName(of peripheral: Peripheral) async {
        let reading = try? await peripheral.readAll(0x2A00, limit: 1)
        guard isUp(peripheral) else { return }
        let name = String(decoding: reading?.first?.bytes ?? [], as: UTF8.self)
        if !name.isEmpty {
            host.names[peer] = name
            post { $0.named(name) }
        } else if let name = host.names[peer] {
            // Another manager has found it since the link began.
            post { if $0.name == nil { $0.named(name) } }
        }
    }

    // MARK: Calls

    /// Adds a call after those that were made before. One that was made on another link is dropped.
    func add(_ call: Call) {
        guard case .up = phase else {
            // Its room is given back with that of all others.
            flow.finished(call.cost)
            return
        }
        guard call.link == lastLink else { return giveBack(call.cost) }
        waiting.append(call)
        startCalls()
    }

    private func startCalls() {
        guard case .up(let peripheral) = phase else { return }
        while next < waiting.count, mayStart(waiting[next]) {
            let call = waiting[next]
            next += 1
            if call.turn != .beside { running += 1 }
            if call.turn == .alone { isAloneRunning = true }
            if call.awaitsResult { isAwaitingResult = true }
            Task(executorPreference: host.hub.loop) {
                let report = await call.run(peripheral, self)
                await self.finished(call, report, on: peripheral)
            }
        }
        // Also if some always wait: those that have begun keep their values and attributes.
        if next == waiting.count || (next >= Self.window && next >= waiting.count - next) {
            waiting.removeFirst(next)
            next = 0
        }
    }

    private func mayStart(_ call: Call) -> Bool {
        switch call.turn {
        case .shared: !isAloneRunning && running < Self.window && !(call.awaitsResult && isAwaitingResult)
        case .alone: running == 0
        case .beside: true
        }
    }

    private func finished(_ call: Call, _ report: Report?, on peripheral: Peripheral) {
        if call.turn != .beside { running -= 1 }
        if call.turn == .alone { isAloneRunning = false }
        if call.awaitsResult { isAwaitingResult = false }
        guard isUp(peripheral) else { return startCalls() }
        if let report { post(report) }
        // A call beside others may end before the one that subscribes is reported.
        if call.turn != .beside { reportValues() }
        giveBack(call.cost)
        startCalls()
    }

    private func giveBack(_ cost: CallCost) {
        if flow.finished(cost) { post { [weak self] in if let self { $0.isReadyToWrite(self) } } }
    }

    // MARK: Values

    /// Has the peer send a characteristic's values, which are reported after the call itself.
    ///
    /// - Throws: `BLEError` as `Peripheral.subscribe(to:_:)` does. `.servicesChanged` also if the peer has announced
    ///   that before, and the change was reported meanwhile: the program has no use for the values.
    func subscribe(to characteristic: GATTCharacteristic, on peripheral: Peripheral) async throws(BLEError) {
        let handle = characteristic.valueHandle
        guard subscriptions[handle] == nil else { return }
        subscribing = handle
        let options = SubscribeOptions(capacity: 4_096, byteLimit: 1 << 20)
        let values = try await peripheral.subscribe(to: .characteristic(characteristic), options)
        guard isUp(peripheral) else { return try await values.unsubscribe() }
        guard subscribing == handle else {
            try? await values.unsubscribe()
            throw BLEError(
                .servicesChanged, subject: "\(peer)", during: "subscribe to \(characteristic.uuid)",
                because: "the peer has changed its services meanwhile", hint: "Discover them again.")
        }
        lastSubscription += 1
        subscriptions[handle] = Subscription(number: lastSubscription, values: values)
    }

    /// Reports the values of subscriptions that have been reported themselves.
    private func reportValues() {
        for (handle, subscription) in subscriptions where !subscription.isReported {
            subscriptions[handle]?.isReported = true
            report(subscription, of: handle)
        }
    }

    private func report(_ subscription: Subscription, of handle: AttributeHandle) {
        let (posted, number, logger, peer) = (subscription.posted, subscription.number, host.logger, peer)
        let loop = host.hub.loop
        subscription.values.forward { [weak self] value in
            guard let self else { return }
            guard let value else {
                // The end of the link is reported by the link.
                Task(executorPreference: loop) { await self.ended(number, of: handle) }
                return
            }
            let bytes = value.bytes
            switch posted.begin(bytes.count, after: value.droppedBefore) {
            case .closed: return
            case .full(let isFirst):
                guard isFirst else { return }
                logger.warning(
                    "values are dropped: the delegate's queue is too slow", metadata: ["peer": "\(peer)"])
            case .taken(let dropped):
                if dropped > 0 {
                    logger.warning(
                        "values were dropped: the delegate's queue is too slow",
                        metadata: ["peer": "\(peer)", "count": "\(dropped)"])
                }
                self.post(finally: { posted.finished(bytes.count) }) { $0.received(bytes, from: handle) }
            }
        }
    }

    /// The values have ended, perhaps before the link: a call that enables them again is not to find them enabled. The
    /// end that a call has requested is reported by that call.
    private func ended(_ number: UInt64, of handle: AttributeHandle) {
        guard case .up = phase, let subscription = subscriptions[handle], subscription.number == number,
            !subscription.isEnding
        else { return }
        subscriptions[handle] = nil
        post { $0.valuesEnded(of: handle) }
    }

    /// Has the peer stop sending a characteristic's values. Those that come before its response are reported, before
    /// the call itself.
    ///
    /// - Throws: `BLEError` if the peer refused it or did not respond; the values end in any case. `.disconnected` if
    ///   the link ended before the response.
    func unsubscribe(from characteristic: GATTCharacteristic, on peripheral: Peripheral) async throws(BLEError) {
        let handle = characteristic.valueHandle
        guard let subscription = subscriptions[handle] else { return }
        // It stays here: the end of the link, or a change of the services, ends the reports of its values.
        subscriptions[handle]?.isEnding = true
        defer { if subscriptions[handle]?.number == subscription.number { subscriptions[handle] = nil } }
        do throws(BLEError) {
            try await subscription.values.unsubscribeAfterResponse()
        } catch {
            // With the link, the call has no report of its own.
            if error.code == .disconnected, isUp(peripheral) { post { $0.valuesEnded(of: handle) } }
            throw error
        }
    }

    /// Reports changes of the peer's services from now on, also of a peer that does not agree to announce them.
    func observeServices(of peripheral: Peripheral) {
        guard observer == nil, isUp(peripheral) else { return }
        let changes = peripheral.assumeIsolated { $0.announcedServiceChanges() }
        observer = Task(executorPreference: host.hub.loop) { [weak self] in
            do throws(BLEError) {
                for try await change in changes {
                    guard let self else { return }
                    await self.servicesChanged(change.handles, on: peripheral)
                }
            } catch {
                // The end of the link is reported by the link.
            }
        }
        Task(executorPreference: host.hub.loop) { _ = try? await peripheral.serviceChanges() }
    }

    /// The change may have been read before the end of its link, whose handles are not those of the next one.
    func servicesChanged(_ handles: ClosedRange<AttributeHandle>, on peripheral: Peripheral) {
        guard isUp(peripheral) else { return }
        if let subscribing, handles.contains(subscribing) { self.subscribing = nil }
        for handle in subscriptions.keys where handles.contains(handle) {
            if let subscription = subscriptions.removeValue(forKey: handle) { endLater(subscription) }
        }
        post { $0.servicesChanged(handles) }
    }
}

/// The values of one subscription that are on the delegate's queue.
final class PostedValues: Sendable {
    /// The bounds of what waits there.
    private static let (valueLimit, byteLimit) = (4_096, 1 << 20)

    /// The outcome of a request for room.
    enum Room {
        /// The value has it; this many were dropped right before.
        case taken(after: Int)
        /// There is none. `isFirst` is whether the value before had some.
        case full(isFirst: Bool)
        /// The subscription has ended, so no value is posted any more.
        case closed
    }

    private struct State {
        var values = 0
        var bytes = 0
        /// The number of values that were dropped since one was posted.
        var dropped = 0
        var isClosed = false
    }

    private let state = Lock(State())

    /// Takes room for a value, before which `dropped` were dropped on the way here.
    func begin(_ count: Int, after dropped: Int) -> Room {
        state.withLock { state -> Room in
            guard !state.isClosed else { return .closed }
            guard state.values < Self.valueLimit, state.bytes + count <= Self.byteLimit else {
                defer { state.dropped += dropped + 1 }
                return .full(isFirst: state.dropped == 0)
            }
            state.values += 1
            state.bytes += count
            defer { state.dropped = 0 }
            return .taken(after: state.dropped + dropped)
        }
    }

    /// Gives the room of a value back.
    func finished(_ count: Int) {
        state.withLock { state in
            state.values -= 1
            state.bytes -= count
        }
    }

    /// Has no further value posted.
    func close() { state.withLock { $0.isClosed = true } }
}

/// What a call takes of the bounded queue of a link.
struct CallCost: Sendable {
    let bytes: Int
    let isCommand: Bool
}

/// What waits on a link, and whether commands without response may be sent now.
final class WriteFlow: Sendable {
    /// The bounds of what waits on a link.
    private static let (callLimit, byteLimit) = (4_096, 1 << 20)
    /// The number of commands that may wait before `canSend` is false,
    /// and down to which they must go before it is true.
    private static let (full, low) = (20, 4)

    private struct State {
        var calls = 0
        var bytes = 0
        var commands = 0
        /// Whether the application is notified when there is room.
        var isFull = false
        /// Whether that is on its way.
        var isOpening = false
    }

    private let state = Lock(State())

    /// Whether a command would go on its way at once.
    var canSend: Bool { state.withLock { !$0.isFull } }

    /// The outcome of a request for room.
    enum Room {
        /// There is none.
        case none
        /// The call has it. With `endsSending`, `canSend` is `false` from now on.
        case taken(endsSending: Bool)
    }

    /// Takes room for a call.
    func begin(_ cost: CallCost) -> Room {
        state.withLock { state -> Room in
            guard state.calls < Self.callLimit, state.bytes + cost.bytes <= Self.byteLimit else { return .none }
            state.calls += 1
            state.bytes += cost.bytes
            if cost.isCommand { state.commands += 1 }
            guard !state.isFull, state.commands >= Self.full else { return .taken(endsSending: false) }
            state.isFull = true
            return .taken(endsSending: true)
        }
    }

    /// Gives the room of a call back; returns whether commands may be sent again, by `open` on the delegate's queue.
    @discardableResult
    func finished(_ cost: CallCost) -> Bool {
        state.withLock { state in
            state.calls = max(0, state.calls - 1)
            state.bytes = max(0, state.bytes - cost.bytes)
            if cost.isCommand { state.commands = max(0, state.commands - 1) }
            guard state.isFull, !state.isOpening, state.commands <= Self.low else { return false }
            state.isOpening = true
            return true
        }
    }

    /// Lets commands be sent again, in the block that reports it; returns `false` if others have taken the room, or the
    /// link has ended.
    func open() -> Bool {
        state.withLock { state in
            guard state.isOpening else { return false }
            state.isOpening = false
            state.isFull = state.commands >= Self.full
            return !state.isFull
        }
    }

    /// Forgets everything: the link has ended, or a new one begins.
    func reset() { state.withLock { $0 = State() } }
}

/// A reference to a peripheral object that does not keep it.
// Unchecked: weak references are loaded atomically, and this one is assigned once, before it is shared.
final class WeakPeripheral: @unchecked Sendable {
    weak var object: CBPeripheral?
}
