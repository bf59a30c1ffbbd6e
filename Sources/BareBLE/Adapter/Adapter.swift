package import BLECore
package import BLELinux
package import Logging

// One adapter in use: its two sockets, and the three machines of the core that drive them (the command queue, the scan
// session, the call to a peer). What happens here is only the meeting of those with descriptors, tasks and time.
//
// Duties
// - Several scans share one radio: the session runs a plan that covers them all, and each has its own gate.
// - Connects take turns. Where commands may be sent, the scan makes way for a connect and goes on after it.
// - The adapter may go down, be reset or be unplugged at any time. What waits then fails once; scans live through it and
//   go on when the adapter is back, which is looked for by its address, because its number may be another one.
// - The reason that the controller gives for the end of a link is kept for who asks.
//
// Invariants
// - All state belongs to the event loop's thread; a readable descriptor enters the actor without a hop.
// - A sleeper is in `sleepers` exactly while its task waits, and is woken exactly once.
// - A machine's actions are performed in the order in which it gives them, after the call that gave them has returned.
// - `sockets` is nil before the first use and while the adapter is gone.
// - While a call may be out that nobody wants any more (`leftCall`), no other one is sent: see `Adapter+LeftCall.swift`.

/// Scans and connects through one adapter of this machine.
package actor Adapter {
    /// How the adapter is.
    package enum Presence: Hashable, Sendable {
        /// Not looked for yet.
        case unknown
        /// On.
        case up
        /// There, but switched off.
        case down
        /// It was there, and is not any more.
        case gone
    }

    /// Who waits for a command.
    enum CommandOwner {
        case scan
        case call
        case leftCall
        case update(LinkUpdate.Key)
        case sleeper(UInt64)
        case nobody
    }

    /// Why a task goes on.
    enum Wake: Sendable {
        case resumed
        case timedOut
        case cancelled
    }

    struct Sleeper {
        let continuation: CheckedContinuation<Wake, Never>
        let timer: TimerID?
    }

    nonisolated let loop: EventLoop
    let selector: AdapterSelector
    let system: AdapterSystem
    let logger: Logger
    let trace: (@Sendable (TracedHCIPacket) -> Void)?

    package internal(set) var presence = Presence.unknown
    var info: ControllerInfo?
    var ownAddressType = AddressType.public
    var mayCommand = false
    var keepsPower = false
    var sockets: AdapterSockets?
    var inbound = [UInt8](repeating: 0, count: HCISocket.bufferSize)

    var queue = HCICommandQueue()
    var owners: [HCICommandQueue.Ticket: CommandOwner] = [:]
    var answers: [UInt64: Result<HCICommandComplete, HCICommandFailure>] = [:]

    var hasExtendedConnect = false
    var isIdentifying = false
    var identificationWaiters: [UInt64] = []
    /// Tasks that wait until the adapter is on.
    var presenceWaiters: [UInt64] = []
    /// Who is told how the adapter is, and what was told last.
    var stateObservers: [UInt64: StreamBuffer<AdapterState>] = [:]
    var toldState: AdapterState?

    var session: ScanSession?
    var listening = ListeningClock()
    /// The scans in the order in which they began, which is the order in which they are told; a few at most.
    var subscriptions: [ScanSubscription] = []
    var startFailures: [UInt64: BLEError] = [:]
    var stopWaiters: [UInt64] = []
    var pauseWaiter: UInt64?
    var isPausedForConnect = false
    var table = DeviceTable()
    var assembler = ReportAssembler()
    var counted = AdapterStatistics()
    var troubleLog = TroubleLog()
    /// Counts what the buffers of scans have dropped.
    let droppedEvents = DropCounter()

    var isTurnTaken = false
    var turnWaiters: [UInt64] = []
    var call: LEConnect?
    var callWaiter: UInt64?
    var callResult: Result<LEConnectionComplete, LEConnect.Failure>?
    /// The call that may be out although nobody wants it.
    var leftCall: LeftCall?
    var links: [ConnectionHandle: UInt64] = [:]
    /// Who is told that a link is gone from the controller, by the link's number.
    var lossHandlers: [UInt64: @Sendable () -> Void] = [:]
    /// Who is at the other end of each link.
    var linkedPeers: [ConnectionHandle: PeerID] = [:]
    var endedLinks: [UInt64: HCIStatus] = [:]
    var lastEnds: [ConnectionHandle: HCIStatus] = [:]
    /// Ends of links that nobody knows, since the call began: the socket that tells ends may be ahead of the one that tells beginnings.
    var earlyEnds: [ConnectionHandle: HCIStatus] = [:]
    var hangUpWaiters: [ConnectionHandle: Set<UInt64>] = [:]
    /// Links that this program has told the controller to end, until they are over.
    var endingLinks: Set<ConnectionHandle> = []
    /// How each link runs, also those of others, as long as their ends are told.
    var linkParameters: [ConnectionHandle: ConnectionParameters] = [:]
    var linkUpdates: [LinkUpdate.Key: LinkUpdate] = [:]
    var updateTurns: [LinkUpdate.Key: [UInt64]] = [:]

    var sleepers: [UInt64: Sleeper] = [:]
    var lastNumber: UInt64 = 0
    var timer: TimerID?
    var presenceTimer: TimerID?
    var lossTimer: TimerID?

    /// The event loop: all of the actor's code runs there.
    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside this
        // actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// An adapter that is looked for with its first use.
    package init(
        _ selector: AdapterSelector, loop: EventLoop, logger: Logger,
        trace: (@Sendable (TracedHCIPacket) -> Void)? = nil, system: AdapterSystem = .kernel
    ) {
        self.selector = selector
        self.loop = loop
        self.logger = logger
        self.trace = trace
        self.system = system
    }

    isolated deinit {
        for timer in [timer, presenceTimer, lossTimer] { if let timer { loop.cancel(timer) } }
        letGoOfSockets()
    }

    /// What messages call the adapter.
    package var name: String { info?.name ?? selector.description }

    /// Whom a failure is about; nobody before an adapter has been found, where none was named.
    var subject: String? { info == nil && selector == .first ? nil : name }

    /// The adapter's address, once it has been found.
    package var address: BluetoothAddress? { info?.address }
}

// MARK: - Waiting

extension Adapter {
    /// Waits until `wake` is called with the number that `begin` is given, until the deadline, or until the task is cancelled.
    func suspend(
        until deadline: BootInstant? = nil, _ begin: (UInt64) -> Void
    ) async -> (wake: Wake, number: UInt64) {
        lastNumber &+= 1
        let number = lastNumber
        let wake = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume(returning: Wake.cancelled) }
                let timer = deadline.map { deadline in
                    loop.schedule(at: deadline) { [weak self] in
                        self?.assumeIsolated { $0.wake(number, .timedOut) }
                    }
                }
                sleepers[number] = Sleeper(continuation: continuation, timer: timer)
                begin(number)
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.cancelled(number) }
        }
        return (wake, number)
    }

    func wake(_ number: UInt64, _ wake: Wake = .resumed) {
        guard let sleeper = sleepers.removeValue(forKey: number) else { return }
        if let timer = sleeper.timer { loop.cancel(timer) }
        sleeper.continuation.resume(returning: wake)
    }

    private func cancelled(_ number: UInt64) {
        // A call that is out has to be taken back first; its end wakes the task.
        guard number == callWaiter else { return wake(number, .cancelled) }
        performCall { $0.cancel(at: $1) }
    }

    /// Sets the one timer to the earliest deadline of the three machines; one that is too early does no harm.
    func armTimer() {
        let scanDeadline = session?.nextDeadline
        let callDeadline = call?.nextDeadline
        guard let deadline = [queue.nextDeadline, scanDeadline, callDeadline].compactMap(\.self).min() else { return }
        if let timer {
            if timer.deadline <= deadline { return }
            loop.cancel(timer)
        }
        timer = loop.schedule(at: deadline) { [weak self] in
            self?.assumeIsolated { $0.timePassed() }
        }
    }

    private func timePassed() {
        timer = nil
        let now = loop.now()
        perform(queue.timePassed(now))
        performSession { $0.timePassed($1) }
        performCall { $0.timePassed($1) }
        armTimer()
    }
}
