import BLECore
import TestSupport
import Testing

@Suite struct ScanSessionTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000)
    private let plan = ScanPlan(.balanced)
    private static let legacy = ScanSession.Controller(features: [])
    private static let extended = ScanSession.Controller(features: [.extendedAdvertising, .coded])

    private let off = ScanSession.Action.send(HCICommandPacket(LESetScanEnable(isEnabled: false)))
    private let set = ScanSession.Action.send(
        HCICommandPacket(LESetScanParameters(isActive: true, interval: 160, window: 48)))
    private let on = ScanSession.Action.send(HCICommandPacket(LESetScanEnable(isEnabled: true)))

    /// Lets the controller accept what comes before the enable, and refuse that.
    private func refuseEnable(_ session: inout ScanSession, at now: BootInstant) -> [ScanSession.Action] {
        _ = session.commandFinished(nil, at: now)
        _ = session.commandFinished(nil, at: now)
        return session.commandFinished(disallowed, at: now)
    }

    @Test(.row("H14", "W20")) func disablesSetsEnablesOnALegacyController() {
        var session = ScanSession(Self.legacy)
        #expect(session.start(plan, at: start) == [off])
        #expect(session.commandFinished(nil, at: start) == [set])
        #expect(session.commandFinished(nil, at: start) == [on])
        #expect(session.commandFinished(nil, at: start) == [.notify(.started)])
        let scanning = session.isScanning
        #expect(scanning)
    }

    @Test(.row("H14")) func usesOnlyTheExtendedSetWhereThereIsOne() {
        var session = ScanSession(Self.extended)
        let opcodes = opcodes(session.start(ScanPlan(.longRange), at: start), &session)
        #expect(opcodes == [.leSetExtendedScanEnable, .leSetExtendedScanParameters, .leSetExtendedScanEnable])
        var older = ScanSession(ScanSession.Controller(features: [.extendedAdvertising], commands: nil))
        let plan = ScanPlan(.longRange)
        _ = older.start(plan, at: start)
        // Without the coded PHY the scan listens on 1M.
        let parameters = LESetExtendedScanParameters(isActive: true, interval: 320, window: 96, phys: .le1M)
        #expect(older.commandFinished(nil, at: start) == [.send(HCICommandPacket(parameters))])
    }

    @Test(.row("W09")) func disallowedOnOffMeansThatNothingWasOn() {
        var session = ScanSession(Self.legacy)
        _ = session.start(plan, at: start)
        #expect(session.commandFinished(disallowed, at: start) == [set])
        #expect(session.commandFinished(nil, at: start) == [on])
        #expect(session.commandFinished(nil, at: start) == [.notify(.started)])
    }

    /// Two programs that take the scan from each other would otherwise hear nothing for good, and never say so.
    @Test(.row("W29")) func silenceIsNoticedWhileAnotherProgramTakesTheScan() {
        var session = ScanSession(Self.legacy)
        run(&session, session.start(plan, at: start), at: start)
        var now = start
        var stalls: [BootInstant] = []
        while now < start + .seconds(300) {
            now = now + .milliseconds(500)
            // The other one begins its scan again with each of ours.
            let actions = session.timePassed(now)
            if actions.contains(.notify(.stalled(count: stalls.count + 1, after: .seconds(90)))) { stalls.append(now) }
            run(&session, actions, at: now)
            _ = session.foreignCompletion(.leSetScanEnable, .success, at: now)
            let isListening = session.isListening
            #expect(isListening)
        }
        #expect(stalls.count >= 2)
        #expect(stalls.first.map { $0 - start < .seconds(122) } == true)
        // One that is heard is not silent, and one that is refused does something else.
        for isHeard in [true, false] {
            now = now + .seconds(80)
            if isHeard { session.reportSeen(hasData: true, at: now) } else { refuse(&session, at: now) }
            now = now + .seconds(40)
            #expect(!session.timePassed(now).contains { if case .notify(.stalled) = $0 { true } else { false } })
        }
    }

    /// A program that connects again and again, or changes its plan, would otherwise never notice that it hears nothing.
    @Test(.row("W29"), arguments: [true, false]) func silenceIsNoticedWhileTheScanIsInterrupted(isConnect: Bool) {
        var session = running()
        var now = start
        var listened = Duration.zero
        var stalls: [ScanSession.Action] = []
        while stalls.isEmpty, listened < .seconds(200) {
            now = now + .seconds(2)
            listened += .seconds(2)
            let actions = session.timePassed(now)
            stalls = actions.filter { if case .notify(.stalled) = $0 { true } else { false } }
            run(&session, actions, at: now)
            interrupt(&session, isConnect: isConnect, at: &now)
        }
        #expect(stalls == [.notify(.stalled(count: 1, after: .seconds(90)))])
        #expect(listened == .seconds(90))
        // It counts from the beginning after a stall, and after a report.
        #expect(session.nextDeadlineNow == now + .seconds(90))
        now = now + .seconds(80)
        session.reportSeen(hasData: true, at: now)
        interrupt(&session, isConnect: isConnect, at: &now)
        #expect(session.nextDeadlineNow == now + .seconds(90))
        now = now + .seconds(80)
        interrupt(&session, isConnect: isConnect, at: &now)
        #expect(session.nextDeadlineNow == now + .seconds(10))
    }

    /// Ends the scan for a connect of 10 s, or for another plan and back.
    private func interrupt(_ session: inout ScanSession, isConnect: Bool, at now: inout BootInstant) {
        if isConnect {
            run(&session, session.pause(at: now), at: now)
            now = now + .seconds(10)
            run(&session, session.resume(at: now), at: now)
        } else {
            run(&session, session.start(ScanPlan(.passive), at: now), at: now)
            run(&session, session.start(plan, at: now), at: now)
        }
    }

    /// Nor does the silence of a scan that nobody wanted any more count, or a sleep before a connect.
    @Test(.row("O19"), arguments: [true, false]) func silenceCountsOnForTheSameScanAlone(isEnded: Bool) {
        var session = running()
        let now = start + .seconds(isEnded ? 80 : 8 * 3600)
        if isEnded {
            run(&session, session.stop(at: now), at: now)
            run(&session, session.start(plan, at: now), at: now)
        } else {
            run(&session, session.pause(at: now), at: now)
            run(&session, session.resume(at: now), at: now)
        }
        #expect(session.nextDeadlineNow == now + .seconds(90))
    }

    /// Confirms all commands.
    private func run(_ session: inout ScanSession, _ actions: [ScanSession.Action], at now: BootInstant) {
        var actions = actions
        while actions.contains(where: { if case .send = $0 { true } else { false } }) {
            actions = session.commandFinished(nil, at: now)
        }
    }

    /// A controller that is initiating for another program.
    private func refuse(_ session: inout ScanSession, at now: BootInstant) {
        _ = session.timePassed(now)
        for _ in 1...4 { _ = session.commandFinished(disallowed, at: now) }
    }

    /// A controller that does not scan while a link is up.
    @Test(.row("H14", "W02"), arguments: [true, false]) func disallowedOnOnMeansBusy(offSucceeds: Bool) {
        var session = ScanSession(Self.legacy)
        _ = session.start(plan, at: start)
        #expect(session.commandFinished(offSucceeds ? nil : disallowed, at: start) == [set])
        #expect(session.commandFinished(nil, at: start) == [on])
        #expect(session.commandFinished(disallowed, at: start) == [.notify(.scanBusy(retry: .milliseconds(500)))])
        #expect(session.timePassed(start + .milliseconds(500)) == [off])

        // Another program has begun to scan in between.
        var disturbed = ScanSession(Self.legacy)
        _ = disturbed.start(plan, at: start)
        _ = disturbed.commandFinished(nil, at: start)
        _ = disturbed.commandFinished(nil, at: start)
        _ = disturbed.foreignCompletion(.leSetScanEnable, .success, at: start)
        #expect(disturbed.commandFinished(disallowed, at: start) == [.notify(.started)])
    }

    /// A controller that lists the extended commands and does not know them.
    @Test(.row("H14"), arguments: [1, 2]) func unknownExtendedCommandsAreReplacedUntilThePowerIsOff(command: Int) {
        var session = ScanSession(Self.extended)
        _ = session.start(plan, at: start)
        if command == 2 { _ = session.commandFinished(nil, at: start) }
        let opcode: HCIOpcode = command == 1 ? .leSetExtendedScanEnable : .leSetExtendedScanParameters
        let unknown = HCICommandFailure(opcode: opcode, reason: .status(.unknownCommand))
        #expect(session.commandFinished(unknown, at: start) == [off])
        #expect(session.commandFinished(nil, at: start) == [set])
        #expect(session.commandFinished(nil, at: start) == [on])
        #expect(session.commandFinished(nil, at: start) == [.notify(.started)])

        _ = session.adapterDown()
        #expect(opcodes(session.adapterUp(at: start), &session).first == .leSetExtendedScanEnable)
    }

    /// The coded PHY is listed and not accepted, then the extended commands are.
    @Test(.row("W04", "W13"), arguments: [HCIStatus.unsupportedFeature, .invalidParameters])
    func refusedParametersLeaveOutTheCodedPHYThenTheExtendedCommands(status: HCIStatus) {
        let refused = HCICommandFailure(opcode: .leSetExtendedScanParameters, reason: .status(status))
        var session = ScanSession(Self.extended)
        let extendedOff = ScanSession.Action.send(HCICommandPacket(LESetExtendedScanEnable(isEnabled: false)))
        #expect(session.start(ScanPlan(.longRange), at: start) == [extendedOff])
        _ = session.commandFinished(nil, at: start)
        #expect(session.commandFinished(refused, at: start) == [extendedOff])
        let plain = LESetExtendedScanParameters(isActive: true, interval: 320, window: 96, phys: .le1M)
        #expect(session.commandFinished(nil, at: start) == [.send(HCICommandPacket(plain))])
        #expect(session.commandFinished(refused, at: start) == [off])
        _ = session.commandFinished(nil, at: start)
        _ = session.commandFinished(nil, at: start)
        #expect(session.commandFinished(nil, at: start) == [.notify(.started)])

        // Until the adapter is switched off.
        _ = session.adapterDown()
        #expect(session.adapterUp(at: start) == [extendedOff])
        let both = LESetExtendedScanParameters(isActive: true, interval: 320, window: 96, phys: [.le1M, .leCoded])
        #expect(session.commandFinished(nil, at: start) == [.send(HCICommandPacket(both))])
    }

    /// A kernel that uses the legacy commands on a controller that lists the extended ones.
    @Test(.row("W01", "W11")) func theSetThatAnotherProgramUsesIsUsed() {
        var session = ScanSession(Self.extended)
        _ = session.foreignCompletion(.leSetScanEnable, .success, at: start)
        // What else another program does says nothing of scans.
        _ = session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: start)
        _ = session.foreignCompletion(.leSetExtendedScanEnable, .commandDisallowed, at: start)
        _ = session.start(plan, at: start)
        _ = session.commandFinished(disallowed, at: start)
        #expect(session.commandFinished(disallowed, at: start) == [off])
        #expect(session.commandFinished(nil, at: start) == [set])
        #expect(session.commandFinished(nil, at: start) == [on])
        #expect(session.commandFinished(nil, at: start) == [.notify(.started)])

        _ = session.adapterDown()
        #expect(opcodes(session.adapterUp(at: start), &session).first == .leSetExtendedScanEnable)
    }

    /// The program that has used the other set was not seen.
    @Test(.row("W07")) func theOtherSetHasItsTurnWhereEverythingIsRefused() {
        var session = ScanSession(Self.extended)
        var now = start
        _ = session.start(plan, at: now)
        for attempt in 1...7 {
            _ = session.commandFinished(disallowed, at: now)
            _ = session.commandFinished(disallowed, at: now)
            _ = session.commandFinished(disallowed, at: now)
            let actions = session.commandFinished(disallowed, at: now)
            guard attempt < 7 else {
                #expect(actions == [off])
                break
            }
            guard case .notify(.scanBusy(let pause))? = actions.first else {
                Issue.record("the scanner is busy")
                return
            }
            now = now + pause
            _ = session.timePassed(now)
        }
        #expect(session.commandFinished(nil, at: now) == [set])
    }

    @Test(.row("W02")) func aBusyControllerIsTriedAgainWhenALinkEnds() {
        var session = ScanSession(Self.legacy)
        _ = session.start(plan, at: start)
        _ = session.commandFinished(nil, at: start)
        _ = session.commandFinished(nil, at: start)
        #expect(session.linkEnded(at: start) == [])
        #expect(session.commandFinished(disallowed, at: start) == [.notify(.scanBusy(retry: .milliseconds(500)))])
        #expect(session.linkEnded(at: start) == [off])
        // Of a pause for another reason it says nothing.
        let failure = HCICommandFailure(opcode: .leSetScanEnable, reason: .timeout)
        _ = session.commandFinished(failure, at: start)
        #expect(session.linkEnded(at: start) == [])
    }

    @Test(.row("H14")) func disallowedParametersAreTriedTwiceThenBusyWithGrowingPauses() {
        var session = ScanSession(Self.legacy)
        var now = start
        _ = session.start(plan, at: now)
        var pauses: [Duration] = []
        for _ in 0..<9 {
            #expect(session.commandFinished(nil, at: now) == [set])
            #expect(session.commandFinished(disallowed, at: now) == [off])
            #expect(session.commandFinished(nil, at: now) == [set])
            guard case .notify(.scanBusy(let pause)) = session.commandFinished(disallowed, at: now).first else {
                Issue.record("the scanner is busy")
                return
            }
            pauses.append(pause)
            #expect(session.timePassed(now) == [])
            now = now + pause
            #expect(session.timePassed(now) == [off])
        }
        #expect(pauses.prefix(4) == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
        #expect(pauses.last == .seconds(30))
    }

    /// A controller that is not busy but stuck refuses for good.
    @Test(.row("H14")) func aScanThatIsRefusedForTwoMinutesIsReportedAndTriedAtTheLongestPause() {
        var session = ScanSession(Self.legacy)
        var now = start
        #expect(session.start(plan, at: now) == [off])
        var pauses: [Duration] = []
        var refusals: [ScanSession.Action] = []
        for _ in 1...14 {
            #expect(session.commandFinished(nil, at: now) == [set])
            #expect(session.commandFinished(nil, at: now) == [on])
            let actions = session.commandFinished(disallowed, at: now)
            guard case .notify(.scanBusy(let pause))? = actions.first else {
                Issue.record("the scanner is busy")
                return
            }
            pauses.append(pause)
            refusals += actions.dropFirst()
            now = now + pause
            #expect(session.timePassed(now) == [off])
        }
        // The first refusal, and the pauses of 0.5, 1, 2, 4, 8, 16, 30, 30 and 30 s after it.
        let times: [Duration] = [
            .milliseconds(121_500), .milliseconds(151_500), .milliseconds(181_500), .milliseconds(211_500),
            .milliseconds(241_500),
        ]
        let expected = times.map { ScanSession.Action.notify(.refused(for: $0, isNews: $0 == times.first)) }
        #expect(refusals == expected)
        #expect(pauses.suffix(5).allSatisfy { $0 == .seconds(30) })

        // Neither another plan nor a connect makes the attempts frequent again.
        #expect(session.commandFinished(nil, at: now) == [set])
        #expect(session.commandFinished(nil, at: now) == [on])
        _ = session.commandFinished(disallowed, at: now)
        #expect(session.start(ScanPlan(.passive), at: now) == [off])
        _ = session.commandFinished(nil, at: now)
        _ = session.commandFinished(nil, at: now)
        #expect(session.commandFinished(disallowed, at: now).first == .notify(.scanBusy(retry: .seconds(30))))

        // What it accepts ends that.
        now = now + .seconds(30)
        #expect(session.timePassed(now) == [off])
        _ = session.commandFinished(nil, at: now)
        _ = session.commandFinished(nil, at: now)
        #expect(session.commandFinished(nil, at: now) == [.notify(.started)])
        _ = session.rearm()
        _ = session.commandFinished(nil, at: now)
        _ = session.commandFinished(nil, at: now)
        #expect(session.commandFinished(disallowed, at: now).count == 1)
    }

    /// A controller that does not scan beside a link may need a moment after it: no step is taken for that.
    @Test(.row("H14", "W02")) func aRefusalRightAfterALinkIsNotReported() {
        var session = ScanSession(Self.legacy)
        var now = start
        _ = session.start(plan, at: now)
        for _ in 1...9 {
            _ = refuseEnable(&session, at: now)
            now = session.nextDeadline ?? now
            _ = session.timePassed(now)
        }
        var counts = [refuseEnable(&session, at: now).count]
        #expect(session.linkEnded(at: now) == [off])
        counts.append(refuseEnable(&session, at: now).count)
        now = session.nextDeadline ?? now
        _ = session.timePassed(now)
        counts.append(refuseEnable(&session, at: now).count)
        #expect(counts == [2, 1, 2])
    }

    /// A controller that does not scan while it advertises is not stuck: no step is taken for that.
    @Test(.row("H14", "W66"), arguments: [ScanSession.Advertising.thisProgram, .others])
    func refusalsWhileItAdvertisesAreReportedApart(advertising: ScanSession.Advertising) {
        var session = ScanSession(Self.legacy)
        var now = start
        #expect(session.advertisingChanged(advertising, at: now) == [])
        _ = session.start(plan, at: now)
        var refusals: [ScanSession.Action] = []
        for _ in 1...11 {
            refusals += refuseEnable(&session, at: now).dropFirst()
            now = session.nextDeadline ?? now
            _ = session.timePassed(now)
        }
        // The first refusal, and the pauses of 0.5, 1, 2, 4, 8, 16, 30, 30, 30 and 30 s after it.
        let expected: [ScanSession.Action] = [
            .notify(.refusedWhileAdvertising(for: .milliseconds(121_500), isNews: true)),
            .notify(.refusedWhileAdvertising(for: .milliseconds(151_500), isNews: false)),
        ]
        #expect(refusals == expected)
        // What it refuses after that is counted from then on, and soon tried again after advertisements of this program.
        #expect(session.advertisingChanged(.nobody, at: now) == [])
        let pause: Duration = advertising == .thisProgram ? .milliseconds(500) : .seconds(30)
        #expect(refuseEnable(&session, at: now) == [.notify(.scanBusy(retry: pause))])
        let ended = now
        var later: [ScanSession.Action] = []
        while later.isEmpty, now - ended < .seconds(600) {
            now = session.nextDeadline ?? now
            _ = session.timePassed(now)
            later += refuseEnable(&session, at: now).dropFirst()
        }
        #expect(later == [.notify(.refused(for: now - ended, isNews: true))])
        #expect(now - ended >= .seconds(120))
    }

    @Test(.row("W66")) func aScanIsTriedAtOnceWhenThisProgramAdvertisesNoMore() {
        var session = ScanSession(Self.legacy)
        _ = session.advertisingChanged(.thisProgram, at: start)
        _ = session.start(plan, at: start)
        let isHindered = session.isHinderedByAdvertising
        #expect(isHindered)
        #expect(refuseEnable(&session, at: start) == [.notify(.scanBusy(retry: .milliseconds(500)))])
        #expect(session.advertisingChanged(.thisProgram, at: start) == [])
        #expect(session.advertisingChanged(.nobody, at: start) == [off])
        _ = session.commandFinished(nil, at: start)
        _ = session.commandFinished(nil, at: start)
        #expect(session.commandFinished(nil, at: start) == [.notify(.started)])
        // A scan that runs is left alone.
        #expect(session.advertisingChanged(.thisProgram, at: start) == [])
        #expect(session.advertisingChanged(.nobody, at: start) == [])

        // The kernel takes its own off air for moments.
        var beside = ScanSession(Self.legacy)
        _ = beside.advertisingChanged(.others, at: start)
        _ = beside.start(plan, at: start)
        _ = refuseEnable(&beside, at: start)
        #expect(beside.advertisingChanged(.nobody, at: start) == [])
    }

    /// One that has begun a scan while it advertised can do both, and is stuck when it refuses one.
    @Test(.row("H14", "W66"), arguments: [true, false])
    func refusalsAreTheControllersOwnWhereItHasScannedWhileItAdvertised(isCertain: Bool) {
        var session = ScanSession(Self.legacy)
        var now = start
        _ = session.advertisingChanged(.thisProgram, isCertain: isCertain, at: now)
        run(&session, session.start(plan, at: now), at: now)
        #expect(session.rearm() == [off])
        var refusals: [ScanSession.Action] = []
        for _ in 1...10 {
            refusals += refuseEnable(&session, at: now).dropFirst()
            now = session.nextDeadline ?? now
            _ = session.timePassed(now)
        }
        let time: Duration = .milliseconds(121_500)
        // What may have been off air for that moment shows nothing.
        #expect(
            refusals == [
                .notify(
                    isCertain
                        ? .refused(for: time, isNews: true) : .refusedWhileAdvertising(for: time, isNews: true))
            ])
    }

    /// What others advertise may have ended unseen. A report that comes later shows that it has not.
    @Test(.row("H14", "W66"), arguments: [0, 1], [true, false])
    func aReportShowsThatAScanHasBegunWhileOthersAdvertised(seconds: Int, isOnAir: Bool) {
        var session = ScanSession(Self.legacy)
        _ = session.advertisingChanged(.others, areOthersOnAir: true, at: start)
        run(&session, session.start(plan, at: start), at: start)
        if !isOnAir {
            _ = session.advertisingChanged(.nobody, at: start)
            _ = session.advertisingChanged(.others, areOthersOnAir: true, at: start)
        }
        let now = start + .seconds(seconds)
        session.reportSeen(hasData: true, at: now)
        let isHindered = session.isHinderedByAdvertising
        #expect(isHindered == (seconds == 0 || !isOnAir))
    }

    /// A program that advertises now and then leaves no two minutes without an advertisement.
    @Test(.row("H14", "W66")) func refusalsAreCountedOnAfterAnAdvertisement() {
        var session = ScanSession(Self.legacy)
        var now = start
        _ = session.start(plan, at: now)
        var refusals: [ScanSession.Action] = []
        var isAdvertising = false
        var change = start + .seconds(60)
        while refusals.isEmpty, now - start < .seconds(600) {
            refusals += refuseEnable(&session, at: now).dropFirst()
            let due = session.nextDeadline ?? now
            guard change <= due else {
                now = due
                _ = session.timePassed(now)
                continue
            }
            now = change
            change = change + .seconds(60)
            isAdvertising.toggle()
            if session.advertisingChanged(isAdvertising ? .thisProgram : .nobody, at: now).isEmpty {
                now = max(now, due)
                _ = session.timePassed(now)
            }
        }
        guard case .notify(.refused(for: let time, isNews: true))? = refusals.first else {
            Issue.record("it was not reported")
            return
        }
        #expect(time >= .seconds(120) && time < .seconds(240))
    }

    /// It is known, also after a scan that was accepted while nothing was on air.
    @Test(.row("W66")) func thatItDoesNotScanWhileItAdvertisesIsNewsOnce() {
        var session = ScanSession(Self.legacy)
        var now = start
        _ = session.start(plan, at: now)
        var news: [Bool] = []
        for acceptsWhileAdvertising in [false, true, false] {
            _ = session.advertisingChanged(.thisProgram, at: now)
            for _ in 1...10 {
                for action in refuseEnable(&session, at: now) {
                    if case .notify(.refusedWhileAdvertising(_, let isNews)) = action { news.append(isNews) }
                }
                now = session.nextDeadline ?? now
                _ = session.timePassed(now)
            }
            if !acceptsWhileAdvertising { _ = session.advertisingChanged(.nobody, at: now) }
            // Off is out.
            for _ in 1...3 { _ = session.commandFinished(nil, at: now) }
            let isScanning = session.isScanning
            #expect(isScanning)
            _ = session.advertisingChanged(.nobody, at: now)
            _ = session.rearm()
        }
        #expect(news == [true, false, true])
    }

    /// They may have had a reason each, while the scan made way for a connect in between.
    @Test(.row("H14")) func fewRefusalsInALongTimeAreNotReported() {
        var session = ScanSession(Self.legacy)
        var now = start
        _ = session.start(plan, at: now)
        var counts = [refuseEnable(&session, at: now).count]
        #expect(session.pause(at: now) == [off])
        #expect(session.commandFinished(nil, at: now) == [.notify(.paused)])
        now = now + .seconds(200)
        #expect(session.resume(at: now) == [off])
        for _ in 1...4 {
            counts.append(refuseEnable(&session, at: now).count)
            now = session.nextDeadline ?? now
            _ = session.timePassed(now)
        }
        #expect(counts == [1, 1, 1, 1, 2])
    }

    /// Neither does a refusal outlive the power of the adapter, or the scan.
    @Test(.row("H14"), arguments: [true, false]) func aRefusalEndsWithThePowerAndWithTheScan(isPower: Bool) {
        var session = ScanSession(Self.legacy)
        var now = start
        var actions = session.start(plan, at: now)
        for _ in 1...10 {
            actions = refuseEnable(&session, at: now)
            now = session.nextDeadline ?? now
            _ = session.timePassed(now)
        }
        #expect(actions.count == 2)
        if isPower {
            _ = session.adapterDown()
            _ = session.adapterUp(at: now)
        } else {
            // The command that is out has its response.
            _ = session.stop(at: now)
            _ = session.commandFinished(nil, at: now)
            _ = session.start(plan, at: now)
        }
        actions = refuseEnable(&session, at: now)
        #expect(actions.count == 1)
    }

    @Test(.row("H13")) func aSilentControllerIsTriedAgainEverMoreRarely() {
        var session = ScanSession(Self.legacy)
        var now = start
        let failure = HCICommandFailure(opcode: .leSetScanEnable, reason: .timeout)
        var pauses: [Duration] = []
        #expect(session.start(plan, at: now) == [off])
        for _ in 0..<9 {
            guard case .notify(.unable(failure, let pause))? = session.commandFinished(failure, at: now).first else {
                Issue.record("the failure is not told")
                return
            }
            pauses.append(pause)
            #expect(session.timePassed(now + (pause - .nanoseconds(1))) == [])
            now = now + pause
            #expect(session.timePassed(now) == [off])
        }
        #expect(pauses.prefix(4) == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
        #expect(pauses.last == .seconds(30))
        // A response at any time, and the scan continues.
        #expect(session.commandFinished(nil, at: now) == [set])
    }

    @Test(.row("H13")) func aScanWhoseEndWasNotConfirmedIsEndedAgainBeforeAConnect() {
        var session = running()
        #expect(session.stop(at: start) == [off])
        let failure = HCICommandFailure(opcode: .leSetScanEnable, reason: .timeout)
        #expect(session.commandFinished(failure, at: start) == [.notify(.ended)])
        #expect(session.pause(at: start) == [off])
        #expect(session.commandFinished(nil, at: start) == [.notify(.paused)])
        // Now it is known to be off.
        #expect(session.resume(at: start) == [])
        #expect(session.pause(at: start) == [.notify(.paused)])
    }

    @Test(.row("H13")) func aScanWhoseEndWasNotConfirmedIsEndedAgainAfterAPause() {
        var session = running()
        _ = session.stop(at: start)
        let failure = HCICommandFailure(opcode: .leSetScanEnable, reason: .timeout)
        #expect(session.commandFinished(failure, at: start) == [.notify(.ended)])
        #expect(session.timePassed(start + .milliseconds(500)) == [off])
        #expect(session.commandFinished(nil, at: start) == [])
        let isResting = session.isResting
        #expect(isResting)
    }

    @Test(.row("H12")) func aStrangersScanCommandLeadsToAFreshStart() {
        var session = running()
        #expect(session.foreignCompletion(.leSetScanParameters, .success, at: start) == [])
        #expect(session.foreignCompletion(.leSetScanEnable, .commandDisallowed, at: start) == [])
        #expect(
            session.foreignCompletion(.leSetScanEnable, .success, at: start) == [
                .notify(.disturbed(by: .leSetScanEnable))
            ])
        #expect(session.foreignCompletion(.leSetScanEnable, .success, at: start) == [])
        let later = start + .milliseconds(500)
        #expect(session.timePassed(later) == [off])
        #expect(session.commandFinished(nil, at: later) == [set])
        #expect(session.commandFinished(nil, at: later) == [on])
        #expect(session.foreignCompletion(.leSetScanEnable, .success, at: later) == [])
        #expect(session.commandFinished(nil, at: later) == [.notify(.started)])
        // It was disturbed while it was set up: once more, a longer pause later.
        #expect(session.nextDeadlineNow == later + .seconds(1))
    }

    @Test(.row("W26", "H16")) func silenceAndEmptyReportsStall() {
        var session = running()
        session.reportSeen(hasData: true, at: start + .seconds(10))
        session.reportSeen(hasData: false, at: start + .seconds(60))
        #expect(session.nextDeadlineNow == start + .seconds(100))
        #expect(session.timePassed(start + .seconds(90)) == [])
        var now = start + .seconds(100)
        #expect(session.timePassed(now) == [.notify(.stalled(count: 1, after: .seconds(90))), off])
        for _ in 0..<3 { _ = session.commandFinished(nil, at: now) }
        now = now + .seconds(90)
        #expect(session.timePassed(now) == [.notify(.stalled(count: 2, after: .seconds(90))), off])
        for _ in 0..<3 { _ = session.commandFinished(nil, at: now) }
        session.reportSeen(hasData: true, at: now)
        #expect(session.timePassed(now + .seconds(90)) == [.notify(.stalled(count: 1, after: .seconds(90))), off])
    }

    /// What was refused long before the silence makes the pauses after it no longer.
    @Test(.row("H14")) func aSilentScanThatRanForAMinuteIsTriedAgainSoon() {
        var session = ScanSession(Self.legacy)
        _ = session.start(plan, at: start)
        for _ in 1...4 { _ = session.commandFinished(disallowed, at: start) }
        var now = start
        for _ in 1...5 {
            now = now + .seconds(30)
            refuse(&session, at: now)
        }
        now = now + .seconds(30)
        run(&session, session.timePassed(now), at: now)
        let isScanning = session.isScanning
        #expect(isScanning)
        now = now + .seconds(90)
        #expect(session.timePassed(now) == [.notify(.stalled(count: 1, after: .seconds(90))), off])
        for _ in 1...3 { _ = session.commandFinished(disallowed, at: now) }
        #expect(session.commandFinished(disallowed, at: now) == [.notify(.scanBusy(retry: .milliseconds(500)))])
    }

    @Test(.row("W29")) func silenceStallsSoonerWhereMuchWasHeard() {
        var session = running()
        for half in 0...1218 { session.reportSeen(hasData: true, at: start + .milliseconds(500 * half)) }
        let now = start + .seconds(609 + 30)
        #expect(session.nextDeadlineNow == now)
        #expect(session.timePassed(now) == [.notify(.stalled(count: 1, after: .seconds(30))), off])
        // What was heard long ago is no measure.
        for _ in 0..<3 { _ = session.commandFinished(nil, at: now) }
        let later = now + .seconds(1200)
        session.reportSeen(hasData: true, at: later)
        #expect(session.nextDeadlineNow == later + .seconds(90))
    }

    /// A machine that wakes has heard nothing for hours, which shows nothing of the controller.
    @Test(.row("O19"), arguments: [true, false]) func timeThatWasSleptIsNoSilence(rearms: Bool) {
        var session = ScanSession(Self.legacy, rearmsWhenSilent: rearms)
        run(&session, session.start(plan, at: start), at: start)
        let now = start + .seconds(8 * 3600)
        let actions = session.timePassed(now)
        #expect(actions == (rearms ? [off] : []))
        run(&session, actions, at: now)
        #expect(session.nextDeadlineNow == now + .seconds(90))
    }

    /// A machine that serves each deadline late would otherwise never notice silence.
    @Test(.row("H16", "O19")) func timeThatWasSleptIsSilenceWhereEachDeadlineIsLate() {
        var session = ScanSession(Self.legacy)
        run(&session, session.start(plan, at: start), at: start)
        var now = start
        var stalls: [ScanSession.Action] = []
        var looks = 0
        while stalls.isEmpty, looks < 10 {
            looks += 1
            now = (session.nextDeadlineNow ?? now) + .seconds(10)
            let actions = session.timePassed(now)
            stalls += actions.dropLast()
            run(&session, actions, at: now)
        }
        #expect(stalls == [.notify(.stalled(count: 1, after: .seconds(90)))])
        #expect(looks == SleepWatch.limit + 1)
        // One that is heard after it has slept begins to count again.
        session.reportSeen(hasData: true, at: now)
        now = now + .seconds(3600)
        #expect(session.timePassed(now) == [off])
    }

    /// Nor is it silence that another program has disturbed the scan meanwhile.
    @Test(.row("O19")) func timeThatWasSleptWhileTheScanWasDisturbedIsNoSilence() {
        var session = running()
        _ = session.foreignCompletion(.leSetScanEnable, .success, at: start)
        #expect(session.timePassed(start + .seconds(8 * 3600)) == [off])
    }

    @Test func silenceIsOnlyReportedWhereNothingIsToBeDone() {
        var session = ScanSession(Self.legacy, rearmsWhenSilent: false)
        _ = session.start(plan, at: start)
        for _ in 0..<3 { _ = session.commandFinished(nil, at: start) }
        #expect(session.timePassed(start + .seconds(90)) == [.notify(.stalled(count: 1, after: .seconds(90)))])
        #expect(session.nextDeadlineNow == start + .seconds(180))
        #expect(session.rearm() == [off])
    }

    @Test func pausesForAConnectAndResumes() {
        var session = running()
        #expect(session.pause(at: start) == [off])
        #expect(session.commandFinished(disallowed, at: start) == [.notify(.paused)])
        #expect(session.foreignCompletion(.leSetScanEnable, .success, at: start) == [])
        #expect(session.nextDeadlineNow == nil)
        #expect(session.resume(at: start) == [off])
        #expect(session.commandFinished(nil, at: start) == [set])
    }

    /// A pause at each step of the start ends with the scan off and one response.
    @Test(arguments: 0...3) func aPauseIsAcknowledgedOnceAtEachStep(step: Int) {
        var session = ScanSession(Self.legacy)
        var actions = session.start(plan, at: start)
        for _ in 0..<step { actions = session.commandFinished(nil, at: start) }
        actions = session.pause(at: start)
        var told: [ScanSession.Action] = []
        for _ in 0..<4 {
            told += actions.filter { if case .notify = $0 { true } else { false } }
            guard actions.contains(where: { if case .send = $0 { true } else { false } }) || told.isEmpty else { break }
            actions = session.commandFinished(nil, at: start)
        }
        #expect(told == [.notify(.paused)])
        #expect(session.nextDeadlineNow == nil)
    }

    @Test func stopEndsOnceAndAtOnceWhenNothingRuns() {
        var session = running()
        #expect(session.stop(at: start) == [off])
        #expect(session.commandFinished(nil, at: start) == [.notify(.ended)])
        #expect(session.stop(at: start) == [.notify(.ended)])
        var waiting = running()
        _ = waiting.foreignCompletion(.leSetScanEnable, .success, at: start)
        #expect(waiting.stop(at: start) == [off])
        let failure = HCICommandFailure(opcode: .leSetScanEnable, reason: .timeout)
        #expect(waiting.commandFinished(failure, at: start) == [.notify(.ended)])
    }

    @Test func aNewPlanIsSetUpAgain() {
        var session = running()
        #expect(session.start(plan, at: start) == [])
        #expect(session.start(ScanPlan(.passive), at: start) == [off])
        let passive = HCICommandPacket(LESetScanParameters(isActive: false, interval: 160, window: 48))
        #expect(session.commandFinished(nil, at: start) == [.send(passive)])
        // And once more while the first change is under way.
        #expect(session.start(plan, at: start) == [])
        #expect(session.commandFinished(nil, at: start) == [on])
        #expect(session.commandFinished(nil, at: start) == [.notify(.started), off])
        #expect(session.commandFinished(nil, at: start) == [set])
    }

    @Test(.row("H15")) func nothingIsSentWhileTheAdapterIsDown() {
        var session = running()
        #expect(session.adapterDown() == [])
        #expect(session.commandFinished(nil, at: start) == [])
        #expect(session.pause(at: start) == [.notify(.paused)])
        #expect(session.resume(at: start) == [])
        #expect(session.adapterUp(at: start) == [off])
        let lost = HCICommandFailure(opcode: .leSetScanEnable, reason: .adapterLost)
        #expect(session.commandFinished(lost, at: start) == [])
        #expect(session.stop(at: start) == [.notify(.ended)])
        #expect(session.adapterUp(at: start) == [])
    }

    /// Found by fuzzing: a scan that nobody wanted any more was ended on an adapter that had gone.
    @Test func nothingIsSentToAnAdapterThatIsGone() {
        let lost = HCICommandFailure(opcode: .leSetScanParameters, reason: .adapterLost)
        for steps in 0..<3 {
            var session = ScanSession(Self.legacy)
            _ = session.start(plan, at: start)
            for _ in 0..<steps { _ = session.commandFinished(nil, at: start) }
            #expect(session.stop(at: start) == [])
            #expect(session.commandFinished(lost, at: start) == [.notify(.ended)])
        }
    }

    @Test func settingsAreChecked() throws {
        typealias Invalid = ScanSettings.Invalid
        #expect(throws: Invalid.interval) { try ScanSettings(interval: .milliseconds(2)) }
        #expect(throws: Invalid.interval) { try ScanSettings(interval: .seconds(11)) }
        #expect(throws: Invalid.window) { try ScanSettings(window: .milliseconds(1)) }
        #expect(throws: Invalid.windowLongerThanInterval) { try ScanSettings(window: .milliseconds(101)) }
        #expect(throws: Invalid.phys) { try ScanSettings(phys: .le2M) }
        #expect(try ScanSettings() == .balanced)
        #expect(ScanSettings.lowLatency.window == .milliseconds(60))
    }

    @Test func onePlanCoversSeveralScans() throws {
        #expect(ScanPlan(covering: []) == nil)
        let merged = try #require(ScanPlan(covering: [.passive, .longRange, .lowLatency]))
        #expect(merged.isActive && merged.phys == [.le1M, .leCoded])
        #expect(merged.interval == 96 && merged.window == 96)
        #expect(!merged.filtersDuplicates)
    }

    private var disallowed: HCICommandFailure {
        HCICommandFailure(opcode: .leSetScanEnable, reason: .status(.commandDisallowed))
    }

    private func running() -> ScanSession {
        var session = ScanSession(Self.legacy)
        _ = session.start(plan, at: start)
        for _ in 0..<3 { _ = session.commandFinished(nil, at: start) }
        return session
    }

    private func opcodes(_ first: [ScanSession.Action], _ session: inout ScanSession) -> [HCIOpcode] {
        var opcodes: [HCIOpcode] = []
        var actions = first
        while case .send(let packet) = actions.first {
            opcodes.append(packet.opcode)
            actions = session.commandFinished(nil, at: start)
        }
        return opcodes
    }
}

extension ScanSession {
    /// The deadline as a method's result, which the test macros can take from a noncopyable value.
    fileprivate var nextDeadlineNow: BootInstant? {
        mutating get { nextDeadline }
    }
}
