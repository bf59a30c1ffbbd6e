internal import BLECore
internal import BLELinux

// The owner of `RecoveryLadder`: what makes a silent adapter receive again.
//
// Duties: pass to the machine what is heard of the adapter, count its steps, have the times of runs stored, and hold
// the sequences that report them.
//
// Invariants
// - All state belongs to the event loop's thread; the events alone are for any thread.
// - It never acts on the adapter: it returns actions, which `Adapter+Recovering` performs, one step at a time.
// - An adapter that a step has switched off or taken away is switched on when it is back, however late, if it was on.
// - The times of runs, which begin with the first step that ends links, are stored at once: a program that is started
//   again takes no run too early. So is that a step has left the adapter off, until it is on: a program that is ended
//   meanwhile switches it on at its next start.

/// The recovery of an adapter: which step is taken when, and which sequences report it.
// Unchecked: only the loop's thread touches its state.
final class RecoveryCoordinator: @unchecked Sendable {
    /// The pause before an adapter that could not be switched on is tried again.
    private static let firstPowerUpPause: Duration = .seconds(300)
    /// Where the helper program switches it on, the pauses double up to this: it takes few steps in an hour, which the
    /// next run needs.
    private static let longestPowerUpPause: Duration = .seconds(1800)

    /// Receives the times of runs, and whether a step has left the adapter off.
    typealias RunHandler = @Sendable (_ runs: [BootInstant], _ isLeftOff: Bool) -> Void

    let policy: RecoveryPolicy
    let events = EventBroadcaster<RecoveryEvent>(capacity: 64)
    private var ladder: RecoveryLadder
    /// Steps beyond the first that were begun.
    private(set) var stepCount = 0
    private var runHandler: RunHandler?
    /// Whether the adapter was on when a step began, and has not been on since.
    private var isLeftOff = false
    /// What is stored of that: it stays while the adapter is being switched on.
    private var isKeptAsLeftOff = false
    /// When an adapter that could not be switched on is tried again: no step is due, so nothing else would.
    private var powerUpDeadline: BootInstant?
    private var powerUpPause = RecoveryCoordinator.firstPowerUpPause

    init(_ policy: RecoveryPolicy) {
        self.policy = policy
        ladder = RecoveryLadder(policy)
    }

    var nextDeadline: BootInstant? { [ladder.nextDeadline, powerUpDeadline].compactMap(\.self).min() }

    /// Has a handler keep the times of runs, and whether a step has left the adapter off, after each change.
    func onRuns(_ handler: @escaping RunHandler) { runHandler = handler }

    /// Runs before the program was started.
    func restore(runs: [BootInstant]) { ladder.restore(runs: runs) }

    func silent(for time: Duration, at now: BootInstant) -> [RecoveryLadder.Action] {
        note(ladder.silent(for: time, at: now))
    }

    /// Why steps are being taken; `nil` while none are.
    var reason: RecoveryPolicy.Reason? { ladder.reason }

    func linkSuspected(to peer: PeerID, at now: BootInstant) -> [RecoveryLadder.Action] {
        note(ladder.linkSuspected(to: peer, at: now))
    }

    func linkNotSuspected(to peer: PeerID, at now: BootInstant) -> [RecoveryLadder.Action] {
        note(ladder.linkNotSuspected(to: peer, at: now))
    }

    func scanRefused(for time: Duration, at now: BootInstant) -> [RecoveryLadder.Action] {
        note(ladder.scanRefused(for: time, at: now))
    }

    func scanRefusedWhileAdvertising(for time: Duration, at now: BootInstant) -> [RecoveryLadder.Action] {
        note(ladder.scanRefusedWhileAdvertising(for: time, at: now))
    }

    func scanMakesWay(_ makesWay: Bool, at now: BootInstant) { ladder.scanMakesWay(makesWay, at: now) }

    func advertisingChanged(_ isAdvertising: Bool, at now: BootInstant) {
        ladder.advertisingChanged(isAdvertising, at: now)
    }

    func scanAccepted(at now: BootInstant) -> [RecoveryLadder.Action] {
        guard ladder.isInTrouble else { return [] }
        return note(ladder.scanAccepted(at: now))
    }

    func commandTimedOut(at now: BootInstant) -> [RecoveryLadder.Action] { note(ladder.commandTimedOut(at: now)) }

    func responded(at now: BootInstant) -> [RecoveryLadder.Action] { note(ladder.responded(at: now)) }

    func heard(at now: BootInstant) -> [RecoveryLadder.Action] {
        guard ladder.awaitsReport else { return [] }
        return note(ladder.heard(at: now))
    }

    /// Nobody scans any more; returns whether that has ended the trouble, so that no further step is due.
    func scanEnded() -> Bool {
        let wasInTrouble = ladder.isInTrouble
        ladder.scanEnded()
        return wasInTrouble && !ladder.isInTrouble
    }

    func adapterLost() { ladder.adapterLost() }

    /// The adapter was on, and is about to be switched off or taken away.
    func adapterLeftOff() {
        isLeftOff = true
        keepAsLeftOff(true)
    }

    /// The adapter was not switched off after all: another program takes a step, and ends that itself.
    func adapterLeftToOther() {
        isLeftOff = false
        keepAsLeftOff(false)
    }

    /// The adapter could not be switched on again.
    func powerUpFailed(_ failure: RecoveryFailure, byHelper: Bool, at now: BootInstant) {
        isLeftOff = true
        powerUpDeadline = failure == .blocked ? nil : now + powerUpPause
        if byHelper { powerUpPause = min(powerUpPause * 2, Self.longestPowerUpPause) }
    }

    /// The adapter is on.
    func adapterIsUp() {
        isLeftOff = false
        powerUpDeadline = nil
        powerUpPause = Self.firstPowerUpPause
        keepAsLeftOff(false)
    }

    /// Returns a Boolean value that indicates whether the adapter has to be switched on, because a step has left it off
    /// and no further one is due; once, until that has failed.
    func takePowerUp() -> Bool {
        guard isLeftOff, !ladder.isInTrouble else { return false }
        isLeftOff = false
        powerUpDeadline = nil
        return true
    }

    /// Returns a Boolean value that indicates whether an adapter that could not be switched on is to be tried again
    /// now; once.
    func takePowerUpDeadline(_ now: BootInstant) -> Bool {
        guard let deadline = powerUpDeadline, deadline <= now else { return false }
        powerUpDeadline = nil
        return true
    }

    func stepFinished(_ failure: RecoveryFailure?, at now: BootInstant) -> [RecoveryLadder.Action] {
        let runs = ladder.runs
        let actions = note(ladder.stepFinished(failure, at: now))
        // One whose step was refused is none.
        if ladder.runs.count < runs.count { keep() }
        return actions
    }

    func timePassed(_ now: BootInstant, isListening: Bool, makesWay: Bool) -> [RecoveryLadder.Action] {
        note(ladder.timePassed(now, isListening: isListening, makesWay: makesWay))
    }

    private func note(_ actions: [RecoveryLadder.Action]) -> [RecoveryLadder.Action] {
        for action in actions {
            guard case .perform(let step) = action else { continue }
            stepCount += 1
            if step == .power { keep() }
        }
        return actions
    }

    private func keepAsLeftOff(_ isKept: Bool) {
        guard isKept != isKeptAsLeftOff else { return }
        isKeptAsLeftOff = isKept
        keep()
    }

    private func keep() { runHandler?(ladder.runs, isKeptAsLeftOff) }
}
