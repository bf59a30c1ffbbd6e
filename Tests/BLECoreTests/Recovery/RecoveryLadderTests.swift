import BLECore
import TestSupport
import Testing

@Suite struct RecoveryLadderTests {
    private typealias Action = RecoveryLadder.Action
    private let start = BootInstant(nanoseconds: 9_000_000_000_000)
    private let silence = RecoveryPolicy.Reason.silence(.seconds(90))

    private func silent(_ policy: RecoveryPolicy) -> RecoveryLadder {
        var ladder = RecoveryLadder(policy)
        #expect(
            ladder.silent(for: .seconds(90), at: start) == [.notify(.began(.rescan, because: silence))])
        return ladder
    }

    /// Nothing is wrong, and nothing is due.
    private func expectPeace(_ ladder: borrowing RecoveryLadder) {
        let (isInTrouble, deadline) = (ladder.isInTrouble, ladder.nextDeadline)
        #expect(!isInTrouble && deadline == nil)
    }

    private func began(_ step: RecoveryPolicy.Step) -> [Action] {
        [.notify(.began(step, because: silence)), .perform(step)]
    }

    /// Lets the step that is being judged have no effect.
    private func wait(_ ladder: inout RecoveryLadder, _ now: inout BootInstant) -> [Action] {
        guard let deadline = ladder.nextDeadline else { return [] }
        now = deadline
        return ladder.timePassed(now, isListening: true)
    }

    @Test(.row("W29", "W56")) func aStepWithoutEffectIsFollowedByTheNextOne() {
        var ladder = silent(.usb)
        var now = start
        #expect(wait(&ladder, &now) == began(.eventMasks))
        #expect(now == start + .seconds(15))
        for (step, next) in [(15, RecoveryPolicy.Step.power), (10, .usbPort), (10, .driver)] {
            #expect(ladder.stepFinished(nil, at: now) == [])
            let before = now
            #expect(wait(&ladder, &now) == began(next))
            #expect(now == before + .seconds(step))
        }
        #expect(ladder.stepFinished(nil, at: now) == [])
        // The pause after the first run.
        let run = ladder.runs
        #expect(
            wait(&ladder, &now) == [
                .notify(.exhausted(because: silence, next: .seconds(60)))
            ])
        #expect(run.count == 1)
        #expect(wait(&ladder, &now) == began(.power))
    }

    @Test(arguments: RecoveryPolicy.Step.allCases) func whatComesAfterAStepEndsTheTrouble(step: RecoveryPolicy.Step) {
        var ladder = silent(.usb)
        var now = start
        var actions: [Action] = []
        while actions.last != .perform(step), step != .rescan {
            if step == .radioSwitch, actions.last == .perform(.power) {
                actions = ladder.stepFinished(.blocked, at: now)
                #expect(actions.first == .notify(.failed(.power, .blocked)))
                continue
            }
            _ = ladder.stepFinished(nil, at: now)
            actions = wait(&ladder, &now)
        }
        // What comes while it is being taken proves nothing.
        if step != .rescan {
            #expect(ladder.heard(at: now) == [])
            _ = ladder.stepFinished(nil, at: now)
        }
        #expect(ladder.heard(at: now) == [.notify(.recovered(by: step, after: now - start))])
        expectPeace(ladder)
        #expect(ladder.heard(at: now) == [])
    }

    @Test func noFurtherStepIsTakenThanPermitted() {
        let last: [(RecoveryPolicy, [RecoveryPolicy.Step])] = [
            (.rescan, [.eventMasks]), (.power, [.eventMasks, .power]),
            (.usb, [.eventMasks, .power, .usbPort, .driver]),
        ]
        for (policy, expected) in last {
            var ladder = silent(policy)
            var now = start
            var steps: [RecoveryPolicy.Step] = []
            var isExhausted = false
            while !isExhausted {
                for action in wait(&ladder, &now) {
                    switch action {
                    case .perform(let step):
                        steps.append(step)
                        _ = ladder.stepFinished(nil, at: now)
                    case .notify(.exhausted(_, let next)):
                        isExhausted = true
                        #expect((next == nil) == (policy == .rescan))
                    case .notify, .probe: break
                    }
                }
            }
            #expect(steps == expected)
        }
        var none = RecoveryLadder(.none)
        #expect(none.silent(for: .seconds(90), at: start) == [])
        for _ in 1...5 { #expect(none.commandTimedOut(at: start) == []) }
    }

    /// No report can show that a controller works which begins no scan: an accepted scan does.
    @Test(.row("H14")) func aScanThatIsRefusedLeadsToPowerAndEndsWhenOneIsAccepted() {
        let reason = RecoveryPolicy.Reason.scanRefused(.seconds(121))
        var ladder = RecoveryLadder(.usb)
        #expect(
            ladder.scanRefused(for: .seconds(121), at: start) == [
                .notify(.began(.power, because: reason)), .perform(.power),
            ])
        // What is known is not begun again, and reports are those of other programs' scans.
        #expect(ladder.scanRefused(for: .seconds(151), at: start) == [])
        #expect(ladder.stepFinished(nil, at: start) == [])
        #expect(ladder.heard(at: start) == [])
        #expect(ladder.responded(at: start) == [])
        // While the scan makes way for a connect it is neither refused nor accepted.
        var now = start + .seconds(10)
        #expect(ladder.timePassed(now, isListening: false, makesWay: true) == [])
        now = now + .seconds(10)
        #expect(
            ladder.timePassed(now, isListening: false) == [
                .notify(.began(.usbPort, because: reason)), .perform(.usbPort),
            ])
        _ = ladder.stepFinished(nil, at: now)
        #expect(ladder.scanAccepted(at: now) == [.notify(.recovered(by: .usbPort, after: now - start))])
        expectPeace(ladder)
        #expect(ladder.scanAccepted(at: now) == [])
    }

    @Test(.row("H14")) func noRunForAScanThatIsRefusedBeginsWhileTheScanMakesWay() {
        var ladder = RecoveryLadder(.power)
        _ = ladder.scanRefused(for: .seconds(121), at: start)
        _ = ladder.stepFinished(nil, at: start)
        let now = start + .seconds(10)
        let reason = RecoveryPolicy.Reason.scanRefused(.seconds(121))
        #expect(
            ladder.timePassed(now, isListening: false) == [
                .notify(.exhausted(because: reason, next: .seconds(60)))
            ])
        let due = ladder.nextDeadline ?? now
        #expect(ladder.timePassed(due, isListening: false, makesWay: true) == [])
        #expect(ladder.timePassed(due + .seconds(9), isListening: false) == [])
        #expect(
            ladder.timePassed(due + .seconds(10), isListening: false) == [
                .notify(.began(.power, because: reason)), .perform(.power),
            ])
    }

    @Test(.row("H14")) func aScanThatIsRefusedIsReportedWherePowerIsNotPermitted() {
        let reason = RecoveryPolicy.Reason.scanRefused(.seconds(121))
        var ladder = RecoveryLadder(.rescan)
        #expect(
            ladder.scanRefused(for: .seconds(121), at: start) == [.notify(.exhausted(because: reason, next: nil))])
        #expect(ladder.scanRefused(for: .seconds(151), at: start + .seconds(30)) == [])
        ladder.scanEnded()
        expectPeace(ladder)
        var none = RecoveryLadder(.none)
        #expect(none.scanRefused(for: .seconds(121), at: start) == [])
        expectPeace(none)
    }

    /// To switch it off and on would end the advertisement and the links for nothing.
    @Test(.row("H14", "W66")) func aScanThatIsRefusedWhileItAdvertisesIsReportedWithoutAStep() {
        let reason = RecoveryPolicy.Reason.scanRefusedWhileAdvertising(.seconds(121))
        for policy in [RecoveryPolicy.rescan, .power, .usb] {
            var ladder = RecoveryLadder(policy)
            #expect(
                ladder.scanRefusedWhileAdvertising(for: .seconds(121), at: start) == [
                    .notify(.exhausted(because: reason, next: nil))
                ])
            #expect(ladder.scanRefusedWhileAdvertising(for: .seconds(151), at: start + .seconds(30)) == [])
            let deadline = ladder.nextDeadline
            #expect(deadline == nil)
            let end = start + .seconds(60)
            #expect(ladder.scanAccepted(at: end) == [.notify(.recovered(by: nil, after: .seconds(60)))])
            expectPeace(ladder)
        }
        var none = RecoveryLadder(.none)
        #expect(none.scanRefusedWhileAdvertising(for: .seconds(121), at: start) == [])
        expectPeace(none)
        var ended = RecoveryLadder(.power)
        _ = ended.scanRefusedWhileAdvertising(for: .seconds(121), at: start)
        ended.scanEnded()
        expectPeace(ended)
    }

    /// What goes on without an advertisement is the controller, and a suspicion has a step of its own.
    @Test(.row("H14", "W52", "W66")) func whatIsRefusedWhileItAdvertisesGivesWay() {
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)
        var refusing = RecoveryLadder(.power)
        _ = refusing.scanRefusedWhileAdvertising(for: .seconds(121), at: start)
        #expect(refusing.scanRefused(for: .seconds(122), at: start).last == .perform(.power))
        #expect(refusing.scanRefusedWhileAdvertising(for: .seconds(123), at: start) == [])
        var suspected = RecoveryLadder(.power)
        _ = suspected.scanRefusedWhileAdvertising(for: .seconds(121), at: start)
        #expect(suspected.linkSuspected(to: peer, at: start).last == .perform(.power))
        // A silent one that is scanned with again, and refuses that because it advertises.
        var silentBefore = silent(.power)
        let reason = RecoveryPolicy.Reason.scanRefusedWhileAdvertising(.seconds(121))
        #expect(
            silentBefore.scanRefusedWhileAdvertising(for: .seconds(121), at: start) == [
                .notify(.exhausted(because: reason, next: nil))
            ])
    }

    /// A controller that accepts a scan while it advertises, and hears nothing. A deaf one would hear after the run.
    @Test(.row("W29", "W66")) func silenceWhileItAdvertisesLeadsToOneRun() {
        var ladder = RecoveryLadder(.power)
        ladder.advertisingChanged(true, at: start)
        var now = start + .seconds(90)
        _ = ladder.silent(for: .seconds(90), at: now)
        #expect(wait(&ladder, &now) == began(.eventMasks))
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [.notify(.exhausted(because: silence, next: nil))])
        let deadline = ladder.nextDeadline
        #expect(deadline == nil)
        now = now + .seconds(7200)
        #expect(ladder.silent(for: .seconds(90), at: now) == [.perform(.eventMasks)])
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [])
        // Without an advertisement it is the controller, or the air.
        ladder.advertisingChanged(false, at: now)
        now = now + .seconds(90)
        #expect(ladder.silent(for: .seconds(90), at: now) == [.perform(.eventMasks)])
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
    }

    /// One that was heard while it advertised can do both.
    @Test(.row("W29", "W66")) func silenceOfAControllerThatWasHeardWhileItAdvertisedIsNotExplained() {
        var ladder = RecoveryLadder(.power)
        ladder.advertisingChanged(true, at: start)
        // What is read at once may have been heard before.
        _ = ladder.heard(at: start)
        var awaitsReport = ladder.awaitsReport
        #expect(awaitsReport)
        _ = ladder.heard(at: start + .seconds(1))
        awaitsReport = ladder.awaitsReport
        #expect(!awaitsReport)
        var now = start + .seconds(91)
        _ = ladder.silent(for: .seconds(90), at: now)
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [.notify(.exhausted(because: silence, next: .seconds(60)))])
    }

    /// Links would end half a minute after the machine has woken up, in which it cannot have heard much.
    @Test(.row("O19")) func timeThatWasSleptJudgesNoStep() {
        var ladder = silent(.power)
        var now = start + .seconds(8 * 3600)
        #expect(ladder.timePassed(now, isListening: true) == [])
        let woken = now
        #expect(wait(&ladder, &now) == began(.eventMasks))
        #expect(now == woken + .seconds(15))
        _ = ladder.stepFinished(nil, at: now)
        now = now + .seconds(3600)
        #expect(ladder.timePassed(now, isListening: true) == [])
        let wokenAgain = now
        #expect(wait(&ladder, &now) == began(.power))
        #expect(now == wokenAgain + .seconds(15))
        // Nor does the next run begin at once.
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [.notify(.exhausted(because: silence, next: .seconds(60)))])
        now = (ladder.nextDeadline ?? now) + .seconds(3600)
        #expect(ladder.timePassed(now, isListening: true) == [])
        let wokenLast = now
        #expect(wait(&ladder, &now) == began(.power))
        #expect(now == wokenLast + .seconds(10))
    }

    /// A machine that serves each deadline late would otherwise take no step.
    @Test(.row("O19", "W29")) func stepsAreTakenWhereEachDeadlineIsLate() {
        var ladder = silent(.power)
        var now = start
        var steps: [RecoveryPolicy.Step] = []
        for _ in 1...10 {
            now = (ladder.nextDeadline ?? now) + .seconds(10)
            for case .perform(let step) in ladder.timePassed(now, isListening: true) {
                steps.append(step)
                _ = ladder.stepFinished(nil, at: now)
            }
        }
        #expect(steps.prefix(2) == [.eventMasks, .power])
    }

    /// It would count as the one run that is taken for silence while the controller advertises.
    @Test(.row("W29", "W66")) func aRefusedStepThatNobodyWaitsForIsNoRunWhileItAdvertises() {
        var ladder = RecoveryLadder(.power)
        ladder.advertisingChanged(true, at: start)
        var now = start
        for _ in 1...2 {
            now = now + .seconds(600)
            _ = ladder.silent(for: .seconds(90), at: now)
            #expect(wait(&ladder, &now) == began(.eventMasks))
            _ = ladder.stepFinished(nil, at: now)
            #expect(wait(&ladder, &now) == began(.power))
            ladder.scanEnded()
            _ = ladder.stepFinished(.linksOfOthers(1), at: now)
        }
    }

    /// The next program would wait for the pause of a run that never was.
    @Test(arguments: [
        RecoveryFailure.linksOfOthers(1), .linksInUse(1), .underWay, .refused("12 steps"), .unavailable("no request"),
    ])
    func aRefusedStepThatNobodyWaitsForIsNoRun(failure: RecoveryFailure) {
        var ladder = silent(.power)
        var now = start
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        ladder.scanEnded()
        #expect(ladder.stepFinished(failure, at: now) == [.notify(.failed(.power, failure))])
        let runs = ladder.runs
        #expect(runs.isEmpty)
        expectPeace(ladder)
    }

    /// A silent controller that is scanned with again, and refuses that, cannot be judged by what it reports.
    @Test(.row("H14", "W29")) func stepsForSilenceGiveWayWhereTheScanIsRefused() {
        var ladder = silent(.power)
        let now = start + .seconds(121)
        #expect(ladder.timePassed(start + .seconds(15), isListening: false) == [])
        let reason = RecoveryPolicy.Reason.scanRefused(.seconds(120))
        #expect(
            ladder.scanRefused(for: .seconds(120), at: now) == [
                .notify(.began(.power, because: reason)), .perform(.power),
            ])
        _ = ladder.stepFinished(nil, at: now)
        #expect(ladder.scanAccepted(at: now) == [.notify(.recovered(by: .power, after: .seconds(121)))])
    }

    /// A controller without links after the step has none that nobody knows.
    @Test(.row("W52")) func aLinkThatOnlyTheControllerHasEndsWithPower() {
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)
        let reason = RecoveryPolicy.Reason.suspectedLink(peer)
        for policy in [RecoveryPolicy.none, .rescan] {
            var ladder = RecoveryLadder(policy)
            #expect(ladder.linkSuspected(to: peer, at: start) == [])
            expectPeace(ladder)
        }
        var ladder = RecoveryLadder(.usb)
        #expect(
            ladder.linkSuspected(to: peer, at: start) == [.notify(.began(.power, because: reason)), .perform(.power)])
        #expect(ladder.linkSuspected(to: peer, at: start) == [])
        // Responses and reports prove nothing about it.
        #expect(ladder.responded(at: start) == [] && ladder.heard(at: start) == [])
        let end = start + .seconds(3)
        #expect(ladder.stepFinished(nil, at: end) == [.notify(.recovered(by: .power, after: .seconds(3)))])
        expectPeace(ladder)
        // It is not done again for a peer to which no link has come up since.
        #expect(ladder.linkSuspected(to: peer, at: end) == [])
        #expect(ladder.linkNotSuspected(to: peer, at: end) == [])
        // The second run in a row has to wait.
        #expect(ladder.linkSuspected(to: peer, at: end) == [.notify(.exhausted(because: reason, next: .seconds(60)))])
        #expect(ladder.responded(at: end) == [] && ladder.heard(at: end) == [])
        #expect(ladder.linkNotSuspected(to: peer, at: end) == [.notify(.recovered(by: nil, after: .zero))])
        expectPeace(ladder)
    }

    /// Peers that never come back take nothing away from later ones, and the last ones are known.
    @Test(.row("W52")) func manyPeersThatStayAwayLeaveItWorking() {
        var ladder = RecoveryLadder(.power)
        let peers = (UInt64(1)...100).map {
            PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0000 + $0), type: .random)
        }
        var now = start
        for peer in peers {
            now = now + .seconds(7200)
            #expect(ladder.linkSuspected(to: peer, at: now).last == .perform(.power))
            _ = ladder.stepFinished(nil, at: now)
        }
        now = now + .seconds(7200)
        #expect(ladder.linkSuspected(to: peers[99], at: now) == [])
        #expect(ladder.linkSuspected(to: peers[50], at: now) == [])
    }

    /// After a pause it takes another sign of it.
    @Test(.row("W52")) func aPauseEndsTheSuspicion() {
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)
        var ladder = RecoveryLadder(.power)
        _ = ladder.linkSuspected(to: peer, at: start)
        _ = ladder.stepFinished(.linksInUse(1), at: start)
        #expect(ladder.linkSuspected(to: peer, at: start + .seconds(299)) == [])
        let deadline = ladder.nextDeadline
        #expect(deadline == nil, "nothing is done without a sign")
        #expect(ladder.linkSuspected(to: peer, at: start + .seconds(300)).last == .perform(.power))
    }

    /// What ends its steps otherwise: links that work, and worse trouble.
    @Test(.row("W52")) func aLinkThatOnlyTheControllerHasGivesWay() {
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)
        var silentLater = RecoveryLadder(.power)
        _ = silentLater.linkSuspected(to: peer, at: start)
        #expect(
            silentLater.stepFinished(.linksInUse(2), at: start) == [
                .notify(.failed(.power, .linksInUse(2))),
                .notify(.exhausted(because: .suspectedLink(peer), next: .seconds(300))),
            ])
        let runs = silentLater.runs
        #expect(runs.isEmpty)
        #expect(
            silentLater.silent(for: .seconds(90), at: start) == [.notify(.began(.rescan, because: silence))])
        #expect(silentLater.linkSuspected(to: peer, at: start) == [])

        var deadLater = RecoveryLadder(.power)
        _ = deadLater.linkSuspected(to: peer, at: start)
        _ = deadLater.stepFinished(.linksOfOthers(1), at: start)
        let later = start + .seconds(1)
        _ = deadLater.commandTimedOut(at: later)
        _ = deadLater.commandTimedOut(at: later)
        #expect(
            deadLater.commandTimedOut(at: later) == [
                .notify(.began(.power, because: .commandTimeouts(3))), .perform(.power),
            ])
    }

    /// Pauses of 1, 5 and 30 minutes, and four runs in an hour at most.
    @Test func runsAreRare() {
        var ladder = silent(.power)
        var now = start
        var runs: [BootInstant] = []
        while runs.count < 12 {
            for action in wait(&ladder, &now) {
                guard case .perform(let step) = action else { continue }
                if step == .power { runs.append(now) }
                _ = ladder.stepFinished(nil, at: now)
            }
        }
        #expect(runs[1] - runs[0] >= .seconds(60))
        #expect(runs[2] - runs[1] >= .seconds(300))
        #expect(runs[3] - runs[2] >= .seconds(1800))
        for index in runs.indices.dropLast(4) { #expect(runs[index + 4] - runs[index] >= .seconds(3600)) }
        // An hour in which a run was made begins no new row.
        for index in 3..<11 { #expect(runs[index + 1] - runs[index] >= .seconds(1800)) }
        #expect(runs[1] - runs[0] <= .seconds(70))
    }

    @Test func runsBeforeARestartCount() {
        var ladder = RecoveryLadder(.power)
        ladder.restore(runs: [start + .seconds(-20)])
        _ = ladder.silent(for: .seconds(90), at: start)
        var now = start
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [.notify(.exhausted(because: silence, next: .seconds(60)))])
        #expect(wait(&ladder, &now) == began(.power))
        let runs = ladder.runs
        #expect(runs.count == 2)
    }

    /// Nothing was done, so neither a harsher step nor the pause of a run follows.
    @Test(arguments: [
        RecoveryFailure.linksOfOthers(1), .underWay, .refused("12 steps"), .unavailable("no request"),
    ])
    func aRefusedStepIsNoRun(failure: RecoveryFailure) {
        var ladder = silent(.usb)
        var now = start
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        #expect(
            ladder.stepFinished(failure, at: now) == [
                .notify(.failed(.power, failure)), .notify(.exhausted(because: silence, next: .seconds(300))),
            ])
        let runs = ladder.runs
        #expect(runs.isEmpty)
        // The scan stalls again meanwhile, which does not shorten the pause.
        let refused = now
        now = now + .seconds(90)
        #expect(ladder.silent(for: .seconds(90), at: now) == [.perform(.eventMasks)])
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [])
        #expect(wait(&ladder, &now) == began(.power))
        #expect(now - refused == .seconds(300))
    }

    /// A helper program that hangs would cost as much time again with each further step; it may have taken this one.
    @Test func aStepWithoutAResponseEndsTheRun() {
        var ladder = silent(.usb)
        var now = start
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        let failure = RecoveryFailure.noResponse("no response in 70 s")
        #expect(
            ladder.stepFinished(failure, at: now) == [
                .notify(.failed(.power, failure)), .notify(.exhausted(because: silence, next: .seconds(60))),
            ])
        let runs = ladder.runs
        #expect(runs.count == 1)
        #expect(wait(&ladder, &now) == began(.power))
    }

    /// Where much was heard, silence is noticed sooner, and links are ended no sooner.
    @Test func linksAreEndedAfterTwoMinutes() {
        var ladder = RecoveryLadder(.power)
        _ = ladder.silent(for: .seconds(30), at: start)
        var now = start
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == [])
        let deadline = ladder.nextDeadline
        #expect(deadline == start + .seconds(90))
        #expect(wait(&ladder, &now).last == .perform(.power))
    }

    /// What comes back may be another adapter, and begins from the start.
    @Test func anAdapterThatHasGoneEndsTheTrouble() {
        for policy in [RecoveryPolicy.power, .usb] {
            var ladder = silent(policy)
            var now = start
            _ = wait(&ladder, &now)
            _ = ladder.stepFinished(nil, at: now)
            _ = wait(&ladder, &now)
            #expect(ladder.stepFinished(.adapterGone, at: now) == [.notify(.failed(.power, .adapterGone))])
            expectPeace(ladder)
        }
    }

    /// A wait that nothing bounds would leave the adapter as it is for good.
    @Test func aScanThatStallsAgainDoesNotPutTheNextRunOff() {
        var ladder = silent(.power)
        var now = start
        _ = wait(&ladder, &now)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        _ = ladder.stepFinished(nil, at: now)
        _ = wait(&ladder, &now)
        let first = now
        // The events are switched on again with each stall, without a notice.
        #expect(ladder.silent(for: .seconds(90), at: now + .seconds(50)) == [.perform(.eventMasks)])
        now = now + .seconds(50)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        #expect(now - first <= .seconds(65))
    }

    @Test func threeCommandsWithoutAResponseLeadToPower() {
        var ladder = RecoveryLadder(.power)
        #expect(ladder.commandTimedOut(at: start) == [])
        #expect(ladder.responded(at: start) == [])
        #expect(ladder.commandTimedOut(at: start + .seconds(1)) == [])
        #expect(ladder.commandTimedOut(at: start + .seconds(2)) == [])
        let reason = RecoveryPolicy.Reason.commandTimeouts(3)
        #expect(
            ladder.commandTimedOut(at: start + .seconds(3)) == [
                .notify(.began(.power, because: reason)), .perform(.power),
            ])
        #expect(ladder.stepFinished(nil, at: start + .seconds(4)) == [.probe])
        // Reports are no responses.
        #expect(ladder.heard(at: start + .seconds(5)) == [])
        #expect(
            ladder.responded(at: start + .seconds(5)) == [.notify(.recovered(by: .power, after: .seconds(2)))])
        // Spread over more than half a minute they are no trouble.
        for index in 0..<6 { #expect(ladder.commandTimedOut(at: start + .seconds(100 + 16 * index)) == []) }
    }

    /// An idle program sends nothing by itself, and would switch off a controller that works again.
    @Test(arguments: [RecoveryFailure.linksOfOthers(1), .underWay])
    func aStepForMissingResponsesThatWasRefusedIsFollowedByAProbe(failure: RecoveryFailure) {
        var ladder = RecoveryLadder(.power)
        for _ in 1...3 { _ = ladder.commandTimedOut(at: start) }
        let reason = RecoveryPolicy.Reason.commandTimeouts(3)
        #expect(
            ladder.stepFinished(failure, at: start) == [
                .notify(.failed(.power, failure)), .notify(.exhausted(because: reason, next: .seconds(300))), .probe,
            ])
        #expect(
            ladder.responded(at: start + .seconds(1)) == [.notify(.recovered(by: nil, after: .seconds(1)))])
        expectPeace(ladder)
    }

    /// A ladder whose next run waits for its pause: responses have been missing again soon after a step that has
    /// helped.
    private func waitingForARun() -> RecoveryLadder {
        var ladder = RecoveryLadder(.power)
        for _ in 1...3 { _ = ladder.commandTimedOut(at: start) }
        _ = ladder.stepFinished(nil, at: start)
        _ = ladder.responded(at: start)
        let again = start + .seconds(20)
        for _ in 1...2 { _ = ladder.commandTimedOut(at: again) }
        #expect(
            ladder.commandTimedOut(at: again) == [
                .notify(.exhausted(because: .commandTimeouts(3), next: .seconds(60)))
            ])
        return ladder
    }

    /// A program that was idle during the pause would switch off a controller that responds again.
    @Test(.row("W30")) func aRunForMissingResponsesThatWasPutOffFollowsAFailedProbe() {
        let power: [Action] = [.notify(.began(.power, because: .commandTimeouts(3))), .perform(.power)]
        let due = start + .seconds(80)
        var responding = waitingForARun()
        #expect(responding.timePassed(due, isListening: true) == [.probe])
        #expect(responding.responded(at: due) == [.notify(.recovered(by: nil, after: .seconds(60)))])
        expectPeace(responding)

        var silent = waitingForARun()
        _ = silent.timePassed(due, isListening: true)
        #expect(silent.commandTimedOut(at: due + .seconds(2)) == power)
        // The probe after the step decides about nothing yet.
        #expect(silent.stepFinished(nil, at: due + .seconds(3)) == [.probe])
        #expect(silent.commandTimedOut(at: due + .seconds(5)) == [])

        // It could not be sent, as to an adapter that a step has left off.
        var off = waitingForARun()
        _ = off.timePassed(due, isListening: true)
        #expect(off.timePassed(due + .seconds(4), isListening: true) == [])
        #expect(off.timePassed(due + RecoveryLadder.probeTime, isListening: true) == power)
    }

    /// A controller may begin to respond late after a step.
    @Test(.row("W30")) func eachFurtherStepForMissingResponsesFollowsAFailedProbe() {
        let reason = RecoveryPolicy.Reason.commandTimeouts(3)
        var ladder = RecoveryLadder(.usb)
        for _ in 1...3 { _ = ladder.commandTimedOut(at: start) }
        #expect(ladder.stepFinished(nil, at: start) == [.probe])
        #expect(ladder.commandTimedOut(at: start + .seconds(2)) == [])
        var now = start
        #expect(wait(&ladder, &now) == [.probe])
        #expect(now == start + .seconds(10))
        now = now + .seconds(2)
        #expect(
            ladder.commandTimedOut(at: now) == [.notify(.began(.usbPort, because: reason)), .perform(.usbPort)])
        #expect(ladder.stepFinished(nil, at: now) == [.probe])
        #expect(wait(&ladder, &now) == [.probe])
        #expect(ladder.responded(at: now) == [.notify(.recovered(by: .usbPort, after: .seconds(22)))])
        expectPeace(ladder)

        // No step follows that would need a probe.
        var permitted = RecoveryLadder(.power)
        for _ in 1...3 { _ = permitted.commandTimedOut(at: start) }
        _ = permitted.stepFinished(nil, at: start)
        #expect(wait(&permitted, &now) == [.notify(.exhausted(because: reason, next: .seconds(60)))])
    }

    /// A controller that is dead is reported once, also where nothing against that is permitted.
    @Test(.row("W30")) func commandsWithoutAResponseAreReportedWithoutAStep() {
        var ladder = RecoveryLadder(.rescan)
        for second in 0...1 { #expect(ladder.commandTimedOut(at: start + .seconds(second)) == []) }
        #expect(
            ladder.commandTimedOut(at: start + .seconds(2)) == [
                .notify(.exhausted(because: .commandTimeouts(3), next: nil))
            ])
        let deadline = ladder.nextDeadline
        #expect(deadline == nil)
        #expect(ladder.commandTimedOut(at: start + .seconds(4)) == [])
        // To scan again is of no use for it.
        #expect(ladder.silent(for: .seconds(90), at: start + .seconds(90)) == [])
        #expect(
            ladder.responded(at: start + .seconds(100)) == [.notify(.recovered(by: nil, after: .seconds(98)))])
        expectPeace(ladder)
    }

    @Test func troubleEndsWithItsCause() {
        var ended = silent(.usb)
        ended.scanEnded()
        expectPeace(ended)
        var lost = silent(.usb)
        lost.adapterLost()
        expectPeace(lost)

        // A step that is being taken ends first.
        var during = silent(.usb)
        var now = start
        _ = wait(&during, &now)
        _ = during.stepFinished(nil, at: now)
        #expect(wait(&during, &now) == began(.power))
        during.adapterLost()
        let isInTrouble = during.isInTrouble
        #expect(isInTrouble)
        during.scanEnded()
        #expect(during.stepFinished(.adapterGone, at: now) == [.notify(.failed(.power, .adapterGone))])
        expectPeace(during)
    }

    @Test func noStepIsJudgedWhileTheScanMakesWay() {
        var ladder = silent(.power)
        #expect(ladder.timePassed(start + .seconds(15), isListening: false) == [])
        #expect(ladder.timePassed(start + .seconds(29), isListening: true) == [])
        #expect(ladder.timePassed(start + .seconds(30), isListening: true) == began(.eventMasks))
        // Nor does a run begin.
        var now = start + .seconds(30)
        _ = ladder.stepFinished(nil, at: now)
        #expect(wait(&ladder, &now) == began(.power))
        _ = ladder.stepFinished(nil, at: now)
        _ = wait(&ladder, &now)
        let due = ladder.nextDeadline ?? now
        #expect(ladder.timePassed(due, isListening: false) == [])
        #expect(ladder.timePassed(due + .seconds(10), isListening: true) == began(.power))
    }

    /// The scan has two seconds in twelve: a quiet place must not lead to `power` after a few seconds of listening.
    @Test(.row("W29")) func theTimeInWhichTheScanMakesWayIsNoSilence() {
        var ladder = silent(.power)
        var now = start
        var listened = 0
        var steps: [[Action]] = []
        while steps.count < 2, listened < 100 {
            for _ in 1...2 {
                now = now + .seconds(1)
                listened += 1
                let actions = ladder.timePassed(now, isListening: true)
                guard !actions.isEmpty else { continue }
                steps.append(actions)
                _ = ladder.stepFinished(nil, at: now)
            }
            ladder.scanMakesWay(true, at: now)
            let deadline = ladder.nextDeadline
            #expect(deadline == nil)
            now = now + .seconds(10)
            ladder.scanMakesWay(false, at: now)
        }
        #expect(steps == [began(.eventMasks), began(.power)])
        #expect(listened == 30, "with the 90 s before, these are 120 s")
    }

    @Test func stepsHaveNames() {
        for step in RecoveryPolicy.Step.allCases { #expect(RecoveryPolicy.Step(name: step.name) == step) }
        #expect(RecoveryPolicy.Step(name: "reset") == nil)
        #expect(RecoveryPolicy.Step.allCases.filter(\.endsLinks) == [.power, .radioSwitch, .usbPort, .driver])
    }
}
