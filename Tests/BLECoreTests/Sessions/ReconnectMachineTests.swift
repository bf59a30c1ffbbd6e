import BLECore
import TestSupport
import Testing

@Suite struct ReconnectMachineTests {
    private typealias Action = ReconnectMachine.Action
    private static let start = BootInstant(nanoseconds: 5_000_000_000)
    private let start = Self.start
    private let policy = ReconnectMachine.Verdict.byPolicy(chance: 0)

    private func machine(
        _ policy: ReconnectPolicy = .backoff(initial: .seconds(1), max: .seconds(8), jitter: 0, attempts: 3)
    ) -> ReconnectMachine {
        ReconnectMachine(policy, resetBackoffAfter: .seconds(10), preparation: .seconds(30))
    }

    /// One that has been brought to `ready` at `start`.
    private func readyMachine(
        _ policy: ReconnectPolicy = .backoff(initial: .seconds(1), max: .seconds(8), jitter: 0, attempts: 3)
    ) -> ReconnectMachine {
        var machine = machine(policy)
        _ = machine.want()
        _ = machine.linkUp(at: start)
        _ = machine.prepared(at: start)
        return machine
    }

    @Test func connectsPreparesAndIsReady() {
        var machine = machine()
        #expect(machine.want() == [.report(.connecting(attempt: 1)), .connect])
        #expect(machine.want() == [])
        #expect(machine.linkUp(at: start) == [.report(.connected), .prepare])
        #expect(machine.deadlineNow() == start + .seconds(30))
        #expect(machine.prepared(at: start) == [.report(.ready)])
        // A connection that is ready needs no wake-ups.
        #expect(machine.deadlineNow() == nil)
        #expect(machine.timePassed(start + .seconds(1_000_000)) == [])
        #expect(machine.want() == [])
    }

    @Test func aPausedMachineIgnoresFailuresAndTime() {
        var machine = readyMachine()
        #expect(machine.pause() == [.report(.paused)])
        #expect(machine.pause() == [])
        #expect(machine.failed(.passing, policy, at: start) == [])
        #expect(machine.timePassed(start + .seconds(1_000_000)) == [])
        let isPaused = machine.isPaused
        #expect(isPaused)
        #expect(machine.want() == [.report(.connecting(attempt: 1)), .connect])
        #expect(machine.pause() == [])
        #expect(machine.linkUp(at: start) == [.report(.connected), .prepare])
    }

    @Test func aPolicyWithoutPausesGetsSomeAllTheSame() {
        var machine = machine(.backoff(initial: .zero, max: .zero, jitter: 0))
        _ = machine.want()
        #expect(machine.failed(.passing, policy, at: start) == [.tearDown, .report(.disconnected(.after(.zero)))])
        #expect(machine.timePassed(start) == [.report(.connecting(attempt: 2)), .connect])
        let some = ReconnectMachine.pauseInsteadOfNone
        #expect(machine.failed(.passing, policy, at: start) == [.tearDown, .report(.disconnected(.after(some)))])
        _ = machine.timePassed(start + some)
        let none = ReconnectMachine.Verdict.custom(.seconds(-1))
        #expect(machine.failed(.passing, none, at: start) == [.tearDown, .report(.disconnected(.after(some)))])
    }

    @Test func failedConnectsWaitLongerAndLonger() {
        var machine = machine()
        _ = machine.want()
        #expect(
            machine.failed(.passing, policy, at: start) == [.tearDown, .report(.disconnected(.after(.seconds(1))))])
        #expect(machine.timePassed(start + .milliseconds(999)) == [])
        #expect(machine.timePassed(start + .seconds(1)) == [.report(.connecting(attempt: 2)), .connect])
        let later = start + .seconds(2)
        #expect(
            machine.failed(.passing, policy, at: later) == [.tearDown, .report(.disconnected(.after(.seconds(2))))])
        #expect(machine.timePassed(start + .seconds(4)) == [.report(.connecting(attempt: 3)), .connect])
        #expect(
            machine.failed(.passing, policy, at: later) == [
                .tearDown, .report(.disconnected(.never)), .report(.gaveUp),
            ])
        #expect(machine.deadlineNow() == nil)
        #expect(machine.isEndingNow() == false)
        // And begins again on request.
        #expect(machine.want() == [.report(.connecting(attempt: 1)), .connect])
    }

    @Test(.row("L08")) func onlyAProvenLinkStartsTheCountsOver() {
        var machine = readyMachine()
        let early = start + .seconds(9)
        #expect(machine.failuresNow(early) == 1)
        #expect(
            machine.failed(.passing, policy, at: early) == [.tearDown, .report(.disconnected(.after(.seconds(1))))])
        #expect(machine.timePassed(early + .seconds(1)) == [.report(.connecting(attempt: 2)), .connect])
        _ = machine.linkUp(at: early)
        _ = machine.prepared(at: early)
        let late = early + .seconds(10)
        #expect(machine.failuresNow(late) == 0)
        #expect(machine.failed(.passing, policy, at: late) == [.tearDown, .report(.disconnected(.after(.seconds(1))))])
        #expect(machine.timePassed(late + .seconds(1)) == [.report(.connecting(attempt: 1)), .connect])
        #expect(machine.failed(.passing, policy, at: late) == [.tearDown, .report(.disconnected(.after(.seconds(2))))])
    }

    @Test func neverMeansNever() {
        for kind in [ReconnectMachine.FailureKind.passing, .adapterLost, .final] {
            var machine = readyMachine(.never)
            let actions = machine.failed(kind, policy, at: start + .seconds(100))
            #expect(actions == [.tearDown, .report(.disconnected(.never)), .report(.gaveUp)])
        }
    }

    @Test func whatWillNeverWorkIsNotTriedAgain() {
        var machine = machine(.backoff())
        _ = machine.want()
        #expect(
            machine.failed(.final, policy, at: start) == [.tearDown, .report(.disconnected(.never)), .report(.gaveUp)])
    }

    /// The end of the link may be known before its reason.
    @Test(arguments: [ReconnectMachine.FailureKind.passing, .adapterLost]) func whatIsFinalMayComeLate(
        _ kind: ReconnectMachine.FailureKind
    ) {
        var machine = readyMachine()
        _ = machine.failed(kind, policy, at: start)
        #expect(machine.failed(.passing, policy, at: start) == [])
        #expect(
            machine.failed(.final, policy, at: start) == [.tearDown, .report(.disconnected(.never)), .report(.gaveUp)])
        #expect(machine.deadlineNow() == nil && machine.adapterReturned(at: start) == [])
    }

    @Test func theProgramMayDecide() {
        var machine = machine(.custom)
        _ = machine.want()
        #expect(
            machine.failed(.passing, .custom(.seconds(7)), at: start) == [
                .tearDown, .report(.disconnected(.after(.seconds(7)))),
            ])
        #expect(machine.timePassed(start + .seconds(7)) == [.report(.connecting(attempt: 2)), .connect])
        let least = ReconnectMachine.pauseInsteadOfNone
        #expect(
            machine.failed(.passing, .custom(.seconds(-7)), at: start) == [
                .tearDown, .report(.disconnected(.after(least))),
            ])
        _ = machine.timePassed(start + least)
        #expect(
            machine.failed(.passing, .custom(nil), at: start) == [
                .tearDown, .report(.disconnected(.never)), .report(.gaveUp),
            ])
    }

    @Test func failedWorkOnTheLinkIsAFailedConnect() {
        var machine = machine()
        _ = machine.want()
        _ = machine.linkUp(at: start)
        #expect(
            machine.failed(.passing, policy, at: start) == [.tearDown, .report(.disconnected(.after(.seconds(1))))])
        #expect(machine.prepared(at: start) == [])
    }

    @Test func workOnTheLinkHasALimit() {
        var machine = machine()
        _ = machine.want()
        _ = machine.linkUp(at: start)
        #expect(machine.timePassed(start + .seconds(29)) == [])
        #expect(machine.timePassed(start + .seconds(30)) == [.overdue])
        #expect(machine.timePassed(start + .seconds(31)) == [])
        #expect(
            machine.failed(.passing, policy, at: start) == [.tearDown, .report(.disconnected(.after(.seconds(1))))])
    }

    @Test func anAdapterThatIsAwayCostsNoAttempt() {
        var machine = readyMachine()
        let lost: [Action] = [.tearDown, .report(.disconnected(.whenAdapterReturns)), .awaitAdapter]
        #expect(machine.failed(.adapterLost, policy, at: start + .seconds(60)) == lost)
        #expect(machine.deadlineNow() == nil)
        #expect(machine.timePassed(start + .seconds(1_000_000)) == [])
        let back = start + .seconds(1_000_000)
        #expect(machine.adapterReturned(at: back) == [.report(.connecting(attempt: 1)), .connect])
        // Back, but not for long: the attempts stay, the pauses grow.
        for pause in [1, 2, 4, 8, 16, 30, 30] as [Int64] {
            #expect(machine.failed(.adapterLost, policy, at: back) == lost)
            #expect(machine.adapterReturned(at: back) == [.report(.disconnected(.after(.seconds(pause))))])
            #expect(machine.timePassed(back + .seconds(pause)) == [.report(.connecting(attempt: 1)), .connect])
        }
    }

    @Test func aRequestToConnectEndsAPause() {
        var machine = machine()
        _ = machine.want()
        _ = machine.failed(.passing, policy, at: start)
        #expect(machine.want() == [.report(.connecting(attempt: 1)), .connect])
        _ = machine.failed(.adapterLost, policy, at: start)
        #expect(machine.want() == [.tearDown, .report(.connecting(attempt: 1)), .connect])
        #expect(machine.adapterReturned(at: start) == [])
    }

    enum Stage: CaseIterable {
        case idle, connecting, preparing, ready, waiting, waitingForAdapter, gaveUp, paused
    }

    @Test(arguments: Stage.allCases) func theEndOvertakesEverything(_ stage: Stage) {
        var machine = machine()
        if stage != .idle { _ = machine.want() }
        switch stage {
        case .idle, .connecting: break
        case .preparing: _ = machine.linkUp(at: start)
        case .ready:
            _ = machine.linkUp(at: start)
            _ = machine.prepared(at: start)
        case .waiting: _ = machine.failed(.passing, policy, at: start)
        case .waitingForAdapter: _ = machine.failed(.adapterLost, policy, at: start)
        case .gaveUp: _ = machine.failed(.final, policy, at: start)
        case .paused:
            _ = machine.linkUp(at: start)
            _ = machine.prepared(at: start)
            _ = machine.pause()
        }
        #expect(machine.end() == [.tearDown])
        #expect(machine.deadlineNow() == nil)
        #expect(machine.isEndingNow() == true)
        // Whatever comes late changes nothing.
        #expect(machine.linkUp(at: start) == [])
        #expect(machine.prepared(at: start) == [])
        #expect(machine.failed(.passing, policy, at: start) == [])
        #expect(machine.adapterReturned(at: start) == [])
        #expect(machine.timePassed(start + .seconds(100)) == [])
        #expect(machine.want() == [])
        #expect(machine.end() == [])
        #expect(machine.released() == [.report(.ended)])
        #expect(machine.released() == [])
        #expect(machine.want() == [])
    }

    @Test func whatComesAtTheWrongTimeChangesNothing() {
        var machine = machine()
        #expect(machine.linkUp(at: start) == [])
        #expect(machine.prepared(at: start) == [])
        #expect(machine.failed(.final, policy, at: start) == [])
        #expect(machine.adapterReturned(at: start) == [])
        #expect(machine.released() == [])
        #expect(machine.want() == [.report(.connecting(attempt: 1)), .connect])
        #expect(machine.prepared(at: start) == [])
    }
}

/// What `#expect` cannot ask a noncopyable value by itself.
extension ReconnectMachine {
    fileprivate mutating func deadlineNow() -> BootInstant? { nextDeadline }
    fileprivate mutating func isEndingNow() -> Bool { isEnding }
    fileprivate mutating func failuresNow(_ now: BootInstant) -> Int { failures(at: now) }
}
