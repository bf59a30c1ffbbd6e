import BLECore
import Testing

@Suite struct ConnectionLifeTests {
    private typealias Action = ConnectionLife.Action
    private static let start = BootInstant(nanoseconds: 5_000_000_000)
    private let start = Self.start
    private let policy = ConnectionLife.Verdict.byPolicy(chance: 0)

    private func life(
        _ policy: ReconnectPolicy = .backoff(initial: .seconds(1), max: .seconds(8), jitter: 0, attempts: 3)
    ) -> ConnectionLife {
        ConnectionLife(policy, provenAfter: .seconds(10), preparation: .seconds(30))
    }

    /// One that has been brought to `ready` at `start`.
    private func readyLife(
        _ policy: ReconnectPolicy = .backoff(initial: .seconds(1), max: .seconds(8), jitter: 0, attempts: 3)
    ) -> ConnectionLife {
        var life = life(policy)
        _ = life.want()
        _ = life.linkUp(at: start)
        _ = life.prepared(at: start)
        return life
    }

    @Test func connectsPreparesAndIsReady() {
        var life = life()
        #expect(life.want() == [.tell(.connecting(attempt: 1)), .connect])
        #expect(life.want() == [])
        #expect(life.linkUp(at: start) == [.tell(.connected), .prepare])
        #expect(life.deadlineNow() == start + .seconds(30))
        #expect(life.prepared(at: start) == [.tell(.ready)])
        // A connection that is ready needs no wake-ups.
        #expect(life.deadlineNow() == nil)
        #expect(life.timePassed(start + .seconds(1_000_000)) == [])
        #expect(life.want() == [])
    }

    @Test func aLinkThatWasTakenIsNobodysLoss() {
        var life = readyLife()
        #expect(life.pause() == [.tell(.paused)])
        #expect(life.pause() == [])
        #expect(life.failed(.passing, policy, at: start) == [])
        #expect(life.timePassed(start + .seconds(1_000_000)) == [])
        let isPaused = life.isPaused
        #expect(isPaused)
        #expect(life.want() == [.tell(.connecting(attempt: 1)), .connect])
        #expect(life.pause() == [])
        #expect(life.linkUp(at: start) == [.tell(.connected), .prepare])
    }

    @Test func aPolicyWithoutPausesGetsSomeAllTheSame() {
        var life = life(.backoff(initial: .zero, max: .zero, jitter: 0))
        _ = life.want()
        #expect(life.failed(.passing, policy, at: start) == [.letGo, .tell(.disconnected(.after(.zero)))])
        #expect(life.timePassed(start) == [.tell(.connecting(attempt: 2)), .connect])
        let some = ConnectionLife.pauseInsteadOfNone
        #expect(life.failed(.passing, policy, at: start) == [.letGo, .tell(.disconnected(.after(some)))])
        _ = life.timePassed(start + some)
        let none = ConnectionLife.Verdict.custom(.seconds(-1))
        #expect(life.failed(.passing, none, at: start) == [.letGo, .tell(.disconnected(.after(some)))])
    }

    @Test func failedConnectsWaitLongerAndLonger() {
        var life = life()
        _ = life.want()
        #expect(life.failed(.passing, policy, at: start) == [.letGo, .tell(.disconnected(.after(.seconds(1))))])
        #expect(life.timePassed(start + .milliseconds(999)) == [])
        #expect(life.timePassed(start + .seconds(1)) == [.tell(.connecting(attempt: 2)), .connect])
        let later = start + .seconds(2)
        #expect(life.failed(.passing, policy, at: later) == [.letGo, .tell(.disconnected(.after(.seconds(2))))])
        #expect(life.timePassed(start + .seconds(4)) == [.tell(.connecting(attempt: 3)), .connect])
        #expect(
            life.failed(.passing, policy, at: later) == [.letGo, .tell(.disconnected(.never)), .tell(.gaveUp)])
        #expect(life.deadlineNow() == nil)
        #expect(life.isEndingNow() == false)
        // And begins again on request.
        #expect(life.want() == [.tell(.connecting(attempt: 1)), .connect])
    }

    // Row L08.
    @Test func onlyAProvenLinkStartsTheCountsOver() {
        var life = readyLife()
        let early = start + .seconds(9)
        #expect(life.failuresNow(early) == 1)
        #expect(life.failed(.passing, policy, at: early) == [.letGo, .tell(.disconnected(.after(.seconds(1))))])
        #expect(life.timePassed(early + .seconds(1)) == [.tell(.connecting(attempt: 2)), .connect])
        _ = life.linkUp(at: early)
        _ = life.prepared(at: early)
        let late = early + .seconds(10)
        #expect(life.failuresNow(late) == 0)
        #expect(life.failed(.passing, policy, at: late) == [.letGo, .tell(.disconnected(.after(.seconds(1))))])
        #expect(life.timePassed(late + .seconds(1)) == [.tell(.connecting(attempt: 1)), .connect])
        #expect(life.failed(.passing, policy, at: late) == [.letGo, .tell(.disconnected(.after(.seconds(2))))])
    }

    @Test func neverMeansNever() {
        for setback in [ConnectionLife.Setback.passing, .adapterLost, .final] {
            var life = readyLife(.never)
            let actions = life.failed(setback, policy, at: start + .seconds(100))
            #expect(actions == [.letGo, .tell(.disconnected(.never)), .tell(.gaveUp)])
        }
    }

    @Test func whatWillNeverWorkIsNotTriedAgain() {
        var life = life(.backoff())
        _ = life.want()
        #expect(
            life.failed(.final, policy, at: start) == [.letGo, .tell(.disconnected(.never)), .tell(.gaveUp)])
    }

    @Test func theProgramMayDecide() {
        var life = life(.custom)
        _ = life.want()
        #expect(
            life.failed(.passing, .custom(.seconds(7)), at: start) == [
                .letGo, .tell(.disconnected(.after(.seconds(7)))),
            ])
        #expect(life.timePassed(start + .seconds(7)) == [.tell(.connecting(attempt: 2)), .connect])
        let least = ConnectionLife.pauseInsteadOfNone
        #expect(
            life.failed(.passing, .custom(.seconds(-7)), at: start) == [.letGo, .tell(.disconnected(.after(least)))])
        _ = life.timePassed(start + least)
        #expect(
            life.failed(.passing, .custom(nil), at: start) == [
                .letGo, .tell(.disconnected(.never)), .tell(.gaveUp),
            ])
    }

    @Test func failedWorkOnTheLinkIsAFailedConnect() {
        var life = life()
        _ = life.want()
        _ = life.linkUp(at: start)
        #expect(life.failed(.passing, policy, at: start) == [.letGo, .tell(.disconnected(.after(.seconds(1))))])
        #expect(life.prepared(at: start) == [])
    }

    @Test func workOnTheLinkHasALimit() {
        var life = life()
        _ = life.want()
        _ = life.linkUp(at: start)
        #expect(life.timePassed(start + .seconds(29)) == [])
        #expect(life.timePassed(start + .seconds(30)) == [.overdue])
        #expect(life.timePassed(start + .seconds(31)) == [])
        #expect(life.failed(.passing, policy, at: start) == [.letGo, .tell(.disconnected(.after(.seconds(1))))])
    }

    @Test func anAdapterThatIsAwayCostsNoAttempt() {
        var life = readyLife()
        let lost: [Action] = [.letGo, .tell(.disconnected(.whenAdapterReturns)), .awaitAdapter]
        #expect(life.failed(.adapterLost, policy, at: start + .seconds(60)) == lost)
        #expect(life.deadlineNow() == nil)
        #expect(life.timePassed(start + .seconds(1_000_000)) == [])
        let back = start + .seconds(1_000_000)
        #expect(life.adapterReturned(at: back) == [.tell(.connecting(attempt: 1)), .connect])
        // Back, but not for long: the attempts stay, the pauses grow.
        for pause in [1, 2, 4, 8, 16, 30, 30] as [Int64] {
            #expect(life.failed(.adapterLost, policy, at: back) == lost)
            #expect(life.adapterReturned(at: back) == [.tell(.disconnected(.after(.seconds(pause))))])
            #expect(life.timePassed(back + .seconds(pause)) == [.tell(.connecting(attempt: 1)), .connect])
        }
    }

    @Test func aWishOvertakesAPause() {
        var life = life()
        _ = life.want()
        _ = life.failed(.passing, policy, at: start)
        #expect(life.want() == [.tell(.connecting(attempt: 1)), .connect])
        _ = life.failed(.adapterLost, policy, at: start)
        #expect(life.want() == [.letGo, .tell(.connecting(attempt: 1)), .connect])
        #expect(life.adapterReturned(at: start) == [])
    }

    enum Stage: CaseIterable {
        case idle, connecting, preparing, ready, waiting, waitingForAdapter, gaveUp, paused
    }

    @Test(arguments: Stage.allCases) func theEndOvertakesEverything(_ stage: Stage) {
        var life = life()
        if stage != .idle { _ = life.want() }
        switch stage {
        case .idle, .connecting: break
        case .preparing: _ = life.linkUp(at: start)
        case .ready:
            _ = life.linkUp(at: start)
            _ = life.prepared(at: start)
        case .waiting: _ = life.failed(.passing, policy, at: start)
        case .waitingForAdapter: _ = life.failed(.adapterLost, policy, at: start)
        case .gaveUp: _ = life.failed(.final, policy, at: start)
        case .paused:
            _ = life.linkUp(at: start)
            _ = life.prepared(at: start)
            _ = life.pause()
        }
        #expect(life.end() == [.letGo])
        #expect(life.deadlineNow() == nil)
        #expect(life.isEndingNow() == true)
        // Whatever comes late changes nothing.
        #expect(life.linkUp(at: start) == [])
        #expect(life.prepared(at: start) == [])
        #expect(life.failed(.passing, policy, at: start) == [])
        #expect(life.adapterReturned(at: start) == [])
        #expect(life.timePassed(start + .seconds(100)) == [])
        #expect(life.want() == [])
        #expect(life.end() == [])
        #expect(life.released() == [.tell(.ended)])
        #expect(life.released() == [])
        #expect(life.want() == [])
    }

    @Test func whatComesAtTheWrongTimeChangesNothing() {
        var life = life()
        #expect(life.linkUp(at: start) == [])
        #expect(life.prepared(at: start) == [])
        #expect(life.failed(.final, policy, at: start) == [])
        #expect(life.adapterReturned(at: start) == [])
        #expect(life.released() == [])
        #expect(life.want() == [.tell(.connecting(attempt: 1)), .connect])
        #expect(life.prepared(at: start) == [])
    }
}

/// What `#expect` cannot ask a noncopyable value by itself.
extension ConnectionLife {
    fileprivate mutating func deadlineNow() -> BootInstant? { nextDeadline }
    fileprivate mutating func isEndingNow() -> Bool { isEnding }
    fileprivate mutating func failuresNow(_ now: BootInstant) -> Int { failures(at: now) }
}
