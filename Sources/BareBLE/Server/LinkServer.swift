internal import BLECore
internal import BLELinux

// Runs the `GATTServer` of one link.
//
// Duties
// - Writes what the machine sends, and reports to it how that ended.
// - Asks the application, one question at a time, in the order of the packets. A handler that takes too long is
//   cancelled, and the next question follows.
// - Keeps the updates that found no room, in their order, and the tasks that wait for them.
// - Passes on what the client has changed: a subscription after the questions of the packets before it.
//
// Invariants
// - Every update ends exactly once, at the latest with the link.
// - A client that takes nothing has a bounded number of updates waiting; further ones end at once, as `.full`.
// - At most one handler runs for a link. Its result is used if the machine still has the question.
// - Subscriptions and writes of stored values keep their order. A bounded number waits for questions; beyond that they
//   wait no longer.
// - Between a look at the machine and its next action no other code runs: all of it runs on the event loop's thread.

/// The server side of one link.
// Unchecked: only the loop's thread uses it. Its tasks prefer the loop.
final class LinkServer: @unchecked Sendable {
    typealias Handler = @Sendable (GATTServer.Question) async -> GATTServer.HandlerResult

    /// A change that the owner of the services must know.
    enum Event: Sendable {
        /// The client has subscribed to the value at this handle, or its stored subscription is in force again; empty
        /// when it has unsubscribed, and when the link ends.
        case configured(AttributeHandle, GATTDescriptor.ClientConfiguration, isRestored: Bool)
        /// The client has written an attribute that the database keeps, which has this value now.
        case wrote(AttributeHandle, [UInt8])
        /// A Write Command was dropped, because too many are unfinished.
        case dropped(AttributeHandle)
        /// The record of the client is to be stored.
        case store(ClientRecord)
        /// There is room for updates again.
        case ready
        /// The security of the link is about to change.
        case securing
        /// The security of the link has changed.
        case secured
        /// The application has returned no result in time for the attribute at this handle.
        case overdue(AttributeHandle)
    }

    /// An update that waits for room.
    private struct PendingUpdate {
        let number: UInt64
        let handle: AttributeHandle
        let value: [UInt8]
    }

    /// A question that the application has not been asked, or has not replied to.
    private struct Asked {
        let token: GATTServer.Token
        let question: GATTServer.Question
        /// When the machine does without the result.
        let deadline: BootInstant
    }

    /// What waits for the questions before it, in the order of the packets.
    private enum Waiting {
        case question(Asked)
        /// A subscription has changed, or a value was written after such a change.
        case change(Event)
    }

    /// The number of questions and changes beyond which changes are reported before their turn.
    private static let waitingLimit = 128

    private let loop: EventLoop
    private let services: PublishedServices
    private let limits: GATTServer.Limits
    /// Whether a central has made the link.
    private let isInbound: Bool
    private var machine: GATTServer
    private weak var link: ATTLink?
    private var handler: Handler?
    private var report: ((Event) -> Void)?
    private var read: (() -> Void)?
    private var close: ((DisconnectReason) -> Void)?

    /// The values that the client has subscribed to, as the owner knows it.
    private var subscribed: Set<AttributeHandle> = []
    private var waiting: [Waiting] = []
    private var running: (asked: Asked, task: Task<Void, Never>)?
    private var timer = DeadlineTimer()

    /// The tasks that wait for the end of an update, by its number.
    private let updates: Waiters<LocalPeripheral.UpdateOutcome>
    /// The updates that have begun, and whose tasks do not wait for them yet; with their ends.
    private var begun: [UInt64: LocalPeripheral.UpdateOutcome?] = [:]
    private var pending: [PendingUpdate] = []
    private var isSendingPending = false
    private var lastUpdate: UInt64 = 0

    /// The tasks that wait until nothing is unfinished.
    private let settling: Waiters<Void>
    /// Whether the link is about to be handed over: no update is begun any more.
    private var isHandingOver = false

    /// The security of the link, as the machine has it.
    private(set) var security = ClientSecurity.none
    /// When the client was heard last, or had to wait for this side last.
    private(set) var lastHeard: BootInstant

    init(of services: PublishedServices, mtu: UInt16, isInbound: Bool, on loop: EventLoop) {
        self.services = services
        self.isInbound = isInbound
        self.loop = loop
        limits = GATTServer.Limits(mtu: mtu)
        machine = GATTServer(limits: limits)
        updates = Waiters(on: loop)
        settling = Waiters(on: loop)
        lastHeard = loop.now()
    }

    /// The number of bytes that a value for this client may have.
    var maximumUpdateLength: Int { machine.maximumUpdateLength }

    var mtu: UInt16 { machine.mtu }

    var statistics: GATTServer.Statistics { machine.statistics }

    /// The tasks and questions that are unfinished.
    var outstanding: Int { updates.count + waiting.count + (running == nil ? 0 : 1) }

    /// Whether the application has not returned what a request or a command of the client needs.
    var isAsking: Bool { running != nil || !waiting.isEmpty }

    /// The client's configuration of the value at a handle.
    func configuration(of handle: AttributeHandle) -> GATTDescriptor.ClientConfiguration {
        machine.configuration(of: handle, in: services.database)
    }

    /// Sets the handler of questions, and the closure that changes are reported to.
    func onEvents(_ report: @escaping (Event) -> Void, questions handler: @escaping Handler) {
        self.report = report
        self.handler = handler
    }

    /// Begins to serve a link.
    ///
    /// - Parameters:
    ///   - read: Reads what has arrived.
    ///   - close: Ends the link.
    func begin(on link: ATTLink, reading read: @escaping () -> Void, _ close: @escaping (DisconnectReason) -> Void) {
        self.link = link
        self.read = read
        self.close = close
        link.serve(self)
    }
}

// MARK: - From the link

extension LinkServer {
    /// A packet of the client has arrived, of any kind.
    func heard(at now: BootInstant) { lastHeard = now }

    /// Processes a packet of the client.
    func received(_ pdu: [UInt8]) {
        perform(services.serve { machine.received(pdu, in: &$0, at: loop.now()) }, isOfPacket: true)
    }

    /// The kernel has dropped packets of the client, which were not read in time.
    ///
    /// On a link that this program has made, these are usually values, which are counted and missed. There the peer
    /// closes the link if a request of its own was among them.
    func droppedPackets() {
        if isInbound { perform(machine.droppedPackets(in: services.database)) }
    }

    /// The socket has room again.
    func writable() {
        perform(machine.writable(in: services.database))
    }

    func mtuExchanged(_ mtu: UInt16) {
        if mtu != machine.mtu { machine.mtuExchanged(mtu) }
    }

    /// The security of the link has changed; to be called before the next packet is passed on.
    func securityChanged(_ security: ClientSecurity) {
        if self.security != security { lastHeard = loop.now() }
        self.security = security
        report?(.securing)
        perform(machine.securityChanged(security, in: services.database, at: loop.now()))
        report?(.secured)
    }

    /// The client is known; its record is in force once it has encrypted the link with the key of its bond.
    ///
    /// - Parameter isNewBond: Whether the client has got another bond: its sign counters begin again.
    func identified(_ record: ClientRecord, isNewBond: Bool = false) {
        perform(machine.identified(record, isNewBond: isNewBond, in: services.database, at: loop.now()))
    }

    /// The services in `handles` have changed.
    func databaseChanged(_ handles: ClosedRange<AttributeHandle>) {
        // Later the handles may have other characteristics.
        reportChanges()
        // The machine does the same with those that wait for the kernel.
        for update in pending where handles.contains(update.handle) { updateEnded(update.number, .notSubscribed) }
        pending.removeAll { handles.contains($0.handle) }
        perform(machine.databaseChanged(handles, in: services.database, at: loop.now()))
    }

    /// Ends everything with the link.
    func linkLost() {
        reportChanges()
        perform(machine.ended(in: services.database))
        running?.task.cancel()
        running = nil
        waiting = []
        pending = []
        timer.cancel(on: loop)
        link = nil
        // They refer to the owners of the link.
        (read, close) = (nil, nil)
        for number in begun.keys.sorted() { updateEnded(number, .disconnected) }
        updates.resumeAll(.disconnected)
        settling.resumeAll()
    }
}

// MARK: - Handing the link over

extension LinkServer {
    /// Whether no response is due, and no command unfinished.
    var isSettled: Bool { machine.isSettled && !isAsking }

    /// The state of the client; `nil` while a response is due, or a command is unfinished.
    var remains: GATTServer.Remains? { isSettled ? machine.remains : nil }

    /// Begins no update any more, and ends those that wait for room.
    func stopUpdates() {
        isHandingOver = true
        for update in pending { updateEnded(update.number, .disconnected) }
        pending = []
    }

    /// Waits until nothing is unfinished, until the link ends, or until the deadline.
    func settle(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async {
        _ = await settling.wait(until: deadline, interruption: .ignoresCancellation, isolation: isolation) { _ in
            isSettled || link == nil ? () : nil
        }
    }

    /// Continues with a link that the run before has left, once it has begun: reports its subscriptions.
    ///
    /// - Parameters:
    ///   - remains: What that run knew of the client.
    ///   - outline: The services that the client was served from.
    func resume(_ remains: GATTServer.Remains, of outline: ServerOutline) {
        let change = services.database.outline.difference(from: outline)
        machine = GATTServer(
            limits: limits, remains: remains, change: change, in: services.database, at: loop.now())
        perform(machine.resume(in: services.database))
    }
}

// MARK: - The machine's actions

extension LinkServer {
    /// - Parameters:
    ///   - isContinuation: Whether a question continues the packet whose result is known now: it comes before those of
    ///     later packets.
    ///   - isOfPacket: Whether the actions are those of a packet that has arrived.
    private func perform(
        _ actions: [GATTServer.Action], isContinuation: Bool = false, isOfPacket: Bool = false
    ) {
        var actions = actions
        while !actions.isEmpty {
            var next: [GATTServer.Action] = []
            for action in actions {
                switch action {
                case .ask(let token, let question, let deadline):
                    let asked = Asked(token: token, question: question, deadline: deadline)
                    waiting.insert(.question(asked), at: isContinuation ? 0 : waiting.count)
                case .store(let record): report?(.store(record))
                case .configured(let handle, let configuration, let isRestored):
                    // Indications instead of notifications are the same subscription.
                    let isChange =
                        configuration.isEmpty ? subscribed.remove(handle) != nil : subscribed.insert(handle).inserted
                    guard isChange else { continue }
                    let change = Event.configured(handle, configuration, isRestored: isRestored)
                    if isContinuation { report?(change) } else { passOn(change, waits: isOfPacket) }
                case .wrote(let handle, let value):
                    let change = Event.wrote(handle, value)
                    if isContinuation { report?(change) } else { passOn(change, waits: isOfPacket && isChangeWaiting) }
                case .dropped(let handle): report?(.dropped(handle))
                case .notified(let id, let failure):
                    updateEnded(id.rawValue, failure.map { LocalPeripheral.UpdateOutcome($0) } ?? .notified)
                case .finish(let id, let failure):
                    updateEnded(id.rawValue, failure.map { LocalPeripheral.UpdateOutcome($0) } ?? .confirmed)
                case .readyToUpdate: next += sendPending()
                case .send(let pdu): next += write(pdu)
                case .close(let reason): close?(DisconnectReason(reason))
                }
            }
            actions = next
        }
        askNext()
        armTimer()
        if !settling.isEmpty, isSettled { settling.resumeAll() }
    }

    private func write(_ pdu: [UInt8]) -> [GATTServer.Action] {
        guard let link else { return [] }
        switch link.write(pdu) {
        case .sent:
            let before = machine.mtu
            let actions = machine.sent(in: services.database, at: loop.now())
            if machine.mtu != before { link.peerExchanged(machine.mtu) }
            return actions
        case .blocked:
            machine.blocked()
            return []
        case .refused:
            return machine.refused(in: services.database)
        }
    }

    private func armTimer() {
        let deadlines = [machine.nextDeadline, running?.asked.deadline].compactMap(\.self)
        timer.arm(for: deadlines.min(), on: loop) { deadline in
            loop.schedule(at: deadline) { [weak self] in self?.timePassed() }
        }
    }

    private func timePassed() {
        timer.fired()
        let now = loop.now()
        // A client's confirmation counts as in time, however late this process reads it.
        if let deadline = machine.nextDeadline, deadline <= now { read?() }
        if let running, running.asked.deadline <= now {
            running.task.cancel()
            self.running = nil
            report?(.overdue(running.asked.question.handle))
        }
        perform(machine.timePassed(in: services.database, at: now))
    }
}

// MARK: - Questions

extension LinkServer {
    /// Asks the application the next question, and reports the changes before it.
    private func askNext() {
        let now = loop.now()
        while running == nil, !waiting.isEmpty {
            switch waiting.removeFirst() {
            case .change(let change): report?(change)
            case .question(let asked):
                guard asked.deadline > now, let handler else { continue }
                let task = Task(executorPreference: loop) { [weak self] in
                    let result = await handler(asked.question)
                    self?.finished(asked.token, result)
                }
                running = (asked, task)
            }
        }
    }

    private var isChangeWaiting: Bool {
        waiting.contains { one in
            if case .change = one { return true }
            return false
        }
    }

    /// Reports a change, after the questions that came before it if it waits for them.
    private func passOn(_ change: Event, waits: Bool) {
        if waits, running != nil || !waiting.isEmpty, waiting.count < Self.waitingLimit {
            return waiting.append(.change(change))
        }
        reportChanges()
        report?(change)
    }

    /// Reports the changes that wait, before their turn.
    private func reportChanges() {
        let former = waiting
        waiting.removeAll { one in
            if case .change = one { return true }
            return false
        }
        for case .change(let change) in former { report?(change) }
    }

    private func finished(_ token: GATTServer.Token, _ result: GATTServer.HandlerResult) {
        // One that has taken too long ends beside its successor.
        guard let running, running.asked.token == token else { return }
        self.running = nil
        lastHeard = loop.now()
        perform(
            services.serve { machine.finished(token, result, in: &$0, at: loop.now()) }, isContinuation: true)
    }
}

// MARK: - Updates

extension LinkServer {
    /// An update that has begun.
    enum Begun {
        case ended(LocalPeripheral.UpdateOutcome)
        /// `end(of:until:)` waits for its end.
        case goesOn(UInt64)
    }

    /// The number of updates of one client that may wait for room.
    static let pendingLimit = 1024

    /// Begins to send a value: its place among the updates of this client is settled when the call returns.
    func beginUpdate(_ value: [UInt8], of handle: AttributeHandle, whenFull: LocalPeripheral.WhenFull) -> Begun {
        guard !isHandingOver else { return .ended(.disconnected) }
        return begin(makeUpdate(value, of: handle), whenFull)
    }

    /// Begins to send several values: those that the client wants in notifications in as few packets as it can receive,
    /// if there is room, and then the others.
    func beginUpdates(
        _ values: [(handle: AttributeHandle, value: [UInt8])], whenFull: LocalPeripheral.WhenFull
    ) -> [Begun] {
        guard values.count > 1, pending.isEmpty, !isHandingOver else {
            return values.map { beginUpdate($0.value, of: $0.handle, whenFull: whenFull) }
        }
        let updates = values.map { makeUpdate($0.value, of: $0.handle) }
        let (outcomes, actions) = machine.notify(
            updates.map { (id: GATTServer.UpdateID($0.number), handle: $0.handle, value: $0.value) },
            in: services.database)
        perform(actions)
        return zip(updates, outcomes).map { update, outcome in
            switch outcome {
            case .notSubscribed: begin(update, whenFull)
            case .full: wait(update, whenFull)
            default: result(of: update, outcome, whenFull)
            }
        }
    }

    private func begin(_ update: PendingUpdate, _ whenFull: LocalPeripheral.WhenFull) -> Begun {
        if pending.isEmpty {
            let (outcome, actions) = attempt(update)
            perform(actions)
            if outcome != .full { return result(of: update, outcome, whenFull) }
        }
        return wait(update, whenFull)
    }

    private func makeUpdate(_ value: [UInt8], of handle: AttributeHandle) -> PendingUpdate {
        lastUpdate &+= 1
        // The end may come before the task waits for it.
        begun[lastUpdate] = .some(nil)
        return PendingUpdate(number: lastUpdate, handle: handle, value: value)
    }

    /// What became of an update for which the machine had room, once its actions were performed.
    private func result(
        of update: PendingUpdate, _ outcome: GATTServer.UpdateOutcome, _ whenFull: LocalPeripheral.WhenFull
    ) -> Begun {
        if let end = LocalPeripheral.UpdateOutcome(outcome) {
            begun[update.number] = nil
            return .ended(end)
        }
        if case .some(.some(let end)) = begun[update.number] {
            begun[update.number] = nil
            return .ended(end)
        }
        // A notification that was not written waits for the kernel.
        guard outcome == .notified, whenFull == .fail else { return .goesOn(update.number) }
        cancel(update.number)
        return .ended(.full)
    }

    /// Has an update wait for room, if it may.
    private func wait(_ update: PendingUpdate, _ whenFull: LocalPeripheral.WhenFull) -> Begun {
        switch whenFull {
        case .wait: break
        case .fail:
            begun[update.number] = nil
            return .ended(.full)
        case .replace:
            for replaced in pending where replaced.handle == update.handle {
                updateEnded(replaced.number, .replaced)
            }
            pending.removeAll { $0.handle == update.handle }
        }
        guard pending.count < Self.pendingLimit else {
            begun[update.number] = nil
            return .ended(.full)
        }
        pending.append(update)
        return .goesOn(update.number)
    }

    /// Has a value that was not sent yet not sent any more.
    private func cancel(_ number: UInt64) {
        begun[number] = nil
        pending.removeAll { $0.number == number }
        perform(machine.cancelUpdate(GATTServer.UpdateID(number), in: services.database))
    }

    /// Waits for the end of an update: until the value is sent, or confirmed if the client has asked for indications.
    ///
    /// At the deadline, and when the task is cancelled, a value that was not sent is not sent any more.
    func end(
        of number: UInt64, until deadline: BootInstant?, isolation: isolated (any Actor)? = #isolation
    ) async -> LocalPeripheral.UpdateOutcome {
        let end = await updates.wait(as: number, until: deadline, isolation: isolation) { _ in
            takeEnd(of: number)
        }
        // A task that was cancelled before does not wait, and its value may have been sent.
        if let outcome = takeEnd(of: number) { return outcome }
        switch end {
        case .resumed(let outcome): return outcome
        case .timedOut:
            cancel(number)
            return .timedOut
        case .cancelled:
            cancel(number)
            return .cancelled
        }
    }

    /// The end of an update that has come before a task waits for it.
    private func takeEnd(of number: UInt64) -> LocalPeripheral.UpdateOutcome? {
        begun.removeValue(forKey: number) ?? nil
    }

    private func updateEnded(_ number: UInt64, _ outcome: LocalPeripheral.UpdateOutcome) {
        // It ends once: what was sent has been sent, whatever becomes of the link before its task waits.
        guard let end = begun[number] else { return updates.resume(number, outcome) }
        if end == nil { begun[number] = .some(outcome) }
    }

    /// Whether a value would be sent at once; if not, `.ready` follows.
    func hasRoom(for handle: AttributeHandle) -> Bool {
        pending.isEmpty && machine.hasRoom(for: handle, in: services.database)
    }

    /// Sends a value if there is room.
    func tryUpdate(_ value: [UInt8], of handle: AttributeHandle) {
        guard !isHandingOver else { return }
        lastUpdate &+= 1
        let (_, actions) = machine.update(
            value, of: handle, id: GATTServer.UpdateID(lastUpdate), in: services.database)
        perform(actions)
    }

    private func attempt(
        _ update: PendingUpdate
    ) -> (outcome: GATTServer.UpdateOutcome, actions: [GATTServer.Action]) {
        machine.update(
            update.value, of: update.handle, id: GATTServer.UpdateID(update.number), in: services.database)
    }

    /// Sends updates that waited for room, and reports room once none waits.
    private func sendPending() -> [GATTServer.Action] {
        // The actions are performed between two updates, so that each finds the room that is left.
        guard !isSendingPending else { return [] }
        isSendingPending = true
        defer { isSendingPending = false }
        while let update = pending.first {
            let (outcome, actions) = attempt(update)
            if outcome == .full { return actions }
            pending.removeFirst()
            if let end = LocalPeripheral.UpdateOutcome(outcome) { updateEnded(update.number, end) }
            perform(actions)
        }
        report?(.ready)
        return []
    }
}

extension LocalPeripheral.UpdateOutcome {
    /// What became of a value at once; `nil` if that is not known yet.
    fileprivate init?(_ outcome: GATTServer.UpdateOutcome) {
        switch outcome {
        case .notified, .indicated: return nil
        case .notSubscribed: self = .notSubscribed
        case .full: self = .full
        case .tooLong(let limit): self = .tooLong(limit: limit)
        case .insecure: self = .insecure
        case .outOfSync: self = .outOfSync
        case .closed: self = .disconnected
        }
    }

    fileprivate init(_ failure: GATTServer.UpdateFailure) {
        switch failure {
        case .timedOut: self = .timedOut
        case .notSubscribed, .withdrawn: self = .notSubscribed
        case .insecure: self = .insecure
        case .outOfSync: self = .outOfSync
        // The kernel takes packets of the least MTU on each link.
        case .unsendable: self = .tooLong(limit: Int(ATTQueue.defaultMTU) - 3)
        case .closed: self = .disconnected
        }
    }
}
