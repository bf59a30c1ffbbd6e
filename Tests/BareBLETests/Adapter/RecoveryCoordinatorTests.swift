import BLECore
import BLELinux
import Testing

@testable import BareBLE

/// What the owner of the ladder adds to it.
@Suite struct RecoveryCoordinatorTests {
    private let start = BootInstant(nanoseconds: 9_000_000_000_000)

    /// A program that is started again would wait for the pause of a run that never was.
    @Test func aRunWhoseStepWasRefusedIsNotKept() {
        let coordinator = RecoveryCoordinator(.power)
        let kept = Lock<[[BootInstant]]>([])
        coordinator.onRuns { runs, _ in kept.withLock { $0.append(runs) } }
        for _ in 1...2 { _ = coordinator.commandTimedOut(at: start) }
        #expect(coordinator.commandTimedOut(at: start).last == .perform(.power))
        #expect(kept.withLock(\.self) == [[start]])
        _ = coordinator.stepFinished(.linksInUse(1), at: start + .seconds(1))
        #expect(kept.withLock(\.self) == [[start], []])
        // One that was taken stays.
        let later = start + .seconds(301)
        #expect(coordinator.timePassed(later, isListening: true, makesWay: false) == [.probe])
        #expect(coordinator.commandTimedOut(at: later).last == .perform(.power))
        _ = coordinator.stepFinished(nil, at: later)
        #expect(kept.withLock(\.self) == [[start], [], [later]])
    }

    /// A program may be ended between off and on, or while it switches the adapter on.
    @Test func thatTheAdapterIsOffIsKeptUntilItIsOn() {
        let coordinator = RecoveryCoordinator(.power)
        let kept = Lock<[Bool]>([])
        coordinator.onRuns { runs, isLeftOff in kept.withLock { $0.append(isLeftOff) } }
        for _ in 1...3 { _ = coordinator.commandTimedOut(at: start) }
        coordinator.adapterLeftOff()
        #expect(kept.withLock(\.self) == [false, true])
        _ = coordinator.stepFinished(.adapterGone, at: start + .seconds(20))
        #expect(coordinator.takePowerUp())
        #expect(kept.withLock(\.self) == [false, true])
        coordinator.adapterIsUp()
        coordinator.adapterIsUp()
        #expect(kept.withLock(\.self) == [false, true, false])
    }

    /// Short scans one after the other would use up all that the helper program does in an hour.
    @Test func onlyAScanThatEndsTheTroubleHasTheAdapterSwitchedOn() {
        let coordinator = RecoveryCoordinator(.power)
        _ = coordinator.silent(for: .seconds(90), at: start)
        coordinator.adapterLeftOff()
        #expect(coordinator.scanEnded())
        #expect(coordinator.takePowerUp())
        coordinator.powerUpFailed(.failed("HCIDEVUP: Connection timed out (110)"), byHelper: true, at: start)
        #expect(!coordinator.scanEnded())
        #expect(coordinator.nextDeadline == start + .seconds(300))
    }

    /// The helper program takes twelve steps in an hour at most, and those of the next run are among them.
    @Test func anAdapterThatTheHelperCannotSwitchOnIsTriedMoreAndMoreRarely() {
        let coordinator = RecoveryCoordinator(.usb)
        let failure = RecoveryFailure.failed("HCIDEVUP: Connection timed out (110)")
        coordinator.adapterLeftOff()
        var now = start
        for pause in [300, 600, 1200, 1800, 1800] {
            #expect(coordinator.takePowerUp())
            coordinator.powerUpFailed(failure, byHelper: true, at: now)
            #expect(coordinator.nextDeadline == now + .seconds(pause))
            now = now + .seconds(pause)
            #expect(coordinator.takePowerUpDeadline(now))
        }
        // One that was on since begins again.
        coordinator.adapterIsUp()
        for _ in 1...2 {
            coordinator.powerUpFailed(failure, byHelper: false, at: now)
            #expect(coordinator.nextDeadline == now + .seconds(300))
        }
    }
}
