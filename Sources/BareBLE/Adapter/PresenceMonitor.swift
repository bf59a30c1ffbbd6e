internal import BLECore
internal import BLELinux
internal import Logging

// Which adapter this is, and how it is: on, off or away.
//
// Duties: recognize the adapter among those of the machine, count its losses, keep the tasks that wait for it and the
// sequences that follow its state, and the two ways to notice a change: the kernel's announcements, and a timer.
// It also keeps the log of the adapter's problems, which names it in each line.
//
// Invariants
// - The adapter is chosen once: by the selector, and afterwards by the address, whatever its number becomes.
// - An observer receives the state as it is first, and then each one that differs from the last.
// - Announcements are read while a task or a sequence follows the adapter, while it has advertising sets, and while
//   centrals with bonds wait for its return.
//   The timer is set once at a time; so is that of the next attempt to switch the adapter on.
// - A look that fails, such as for want of a descriptor, is repeated: what was announced is not announced again.
// - The monitor never looks at the adapter: its owner does, and updates it. `Adapter+Presence` decides what follows.

/// Which adapter this is, how it is, and which tasks and sequences follow that.
final class PresenceMonitor {
    let selector: AdapterSelector
    private(set) var presence = Adapter.Presence.unknown
    private(set) var info: ControllerInfo?
    /// How often the adapter went down or away, or was reset by another program.
    private(set) var losses = 0
    /// Whether another program has reset the controller since the kernel has set it up last.
    private(set) var wasReset = false
    /// Whether an adapter that comes back is to be switched on.
    private(set) var keepsPower = false
    /// Tasks that wait until the adapter is on.
    private var waiters: [UInt64] = []
    /// Those that follow the adapter's states, and the state that was reported last.
    private var observers: [UInt64: StreamBuffer<AdapterState>] = [:]
    private var reported: AdapterState?
    private var lastNumber: UInt64 = 0
    private var timer: TimerID?
    /// The next attempt to switch on an adapter that has come back.
    private var powerTimer: TimerID?
    /// Whether the last look at the adapter has failed, so that its presence is not known.
    private var hasLookFailed = false
    private let deviceEvents = DeviceEvents()
    private var log: AdapterLog

    /// How often a lost or switched-off adapter is looked for, and one in use looked at.
    private static let pause: Duration = .seconds(2)
    /// The pauses after which an adapter that could not be switched on is tried again; they double.
    static let firstPowerPause: Duration = .seconds(2)
    static let longestPowerPause: Duration = .seconds(300)

    init(_ selector: AdapterSelector, logger: Logger) {
        self.selector = selector
        log = AdapterLog(logger)
    }

    /// The adapter's name in messages.
    var name: String { info?.name ?? selector.description }

    /// What a failure is about; `nil` before an adapter has been found, where none was named.
    var subject: String? { info == nil && selector == .first ? nil : name }

    /// Whether this adapter is the one that is used, or would be.
    func matches(_ candidate: ControllerInfo) -> Bool {
        // Once an adapter is in use it stays the one, whatever its number becomes.
        if let address = info?.address, address != .zero { return candidate.address == address }
        return selector.matches(candidate)
    }

    /// Whether a task or a sequence depends on the adapter's presence.
    var isFollowed: Bool { !waiters.isEmpty || !observers.isEmpty }
    var isObserved: Bool { !observers.isEmpty }
    var isTimerSet: Bool { timer != nil }

    func update(_ info: ControllerInfo) { self.info = info }

    func update(_ presence: Adapter.Presence) {
        self.presence = presence
        if presence != .up { wasReset = false }
    }

    func countLoss() { losses += 1 }

    /// Another program has reset the controller.
    func countReset() {
        losses += 1
        wasReset = true
    }

    func keepPower(_ keepsPower: Bool) { self.keepsPower = keepsPower }

    // MARK: Log

    var logger: Logger { log.logger }

    /// Logs the counts of what should not happen, if there is more than was logged and a line is due.
    func reportProblems(_ counts: WarningThrottle.Counts, at now: BootInstant) {
        log.report(counts, of: name, at: now)
    }

    /// Logs once that scans have heard nothing from the beginning.
    func reportSilence() { log.reportSilence(of: name) }

    // MARK: Tasks that wait

    func addWaiter(_ waiter: UInt64) { waiters.append(waiter) }

    func removeWaiter(_ waiter: UInt64) { waiters.removeAll { $0 == waiter } }

    /// The tasks to resume: the adapter is on.
    var waitersToResume: [UInt64] { presence == .up ? waiters : [] }

    // MARK: Observers

    func observe(_ buffer: StreamBuffer<AdapterState>, _ now: AdapterState) -> UInt64 {
        report(now)
        buffer.yield(now)
        reported = now
        lastNumber &+= 1
        observers[lastNumber] = buffer
        return lastNumber
    }

    func stopObserving(_ number: UInt64) { observers[number] = nil }

    /// Reports a state that differs from the one reported last.
    func report(_ state: AdapterState) {
        guard !observers.isEmpty, state != reported else { return }
        reported = state
        for observer in observers.inOrder { observer.yield(state) }
    }

    // MARK: Announcements

    /// Whether something follows the adapter that the kernel does not announce, or has announced before a look that
    /// failed. What it announces is passed on while something follows the adapter, or it serves centrals that depend on
    /// it.
    func followsByLooking(
        _ system: AdapterSystem, on loop: EventLoop, isServing: Bool, changed: @escaping EventLoop.Handler
    ) -> Bool {
        guard isFollowed || isServing else {
            deviceEvents.end(on: loop)
            return false
        }
        return !deviceEvents.begin(system, on: loop, changed: changed) || hasLookFailed
    }

    /// The adapter is looked at.
    func lookBegins() { hasLookFailed = false }

    /// What the kernel has of the adapter could not be read, or the adapter could not be opened.
    func lookFailed() { hasLookFailed = true }

    // MARK: Time

    func startTimer(_ loop: EventLoop, _ handler: @escaping EventLoop.Handler) {
        guard timer == nil else { return }
        timer = loop.schedule(at: loop.now() + Self.pause, handler)
    }

    func stopTimer(_ loop: EventLoop) {
        if let timer { loop.cancel(timer) }
        timer = nil
    }

    func timerFired() { timer = nil }

    /// Sets the time of the next attempt to switch the adapter on, in place of an earlier one.
    func startPowerTimer(_ loop: EventLoop, after pause: Duration, _ handler: @escaping EventLoop.Handler) {
        stopPowerTimer(loop)
        powerTimer = loop.schedule(at: loop.now() + pause, handler)
    }

    func stopPowerTimer(_ loop: EventLoop) {
        if let powerTimer { loop.cancel(powerTimer) }
        powerTimer = nil
    }

    /// Nothing is noticed any more.
    func end(on loop: EventLoop) {
        stopTimer(loop)
        stopPowerTimer(loop)
        deviceEvents.end(on: loop)
    }
}
