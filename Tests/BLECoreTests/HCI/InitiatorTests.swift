import BLECore
import TestSupport
import Testing

@Suite struct InitiatorTests {
    private let start = BootInstant(nanoseconds: 7_000_000_000)
    private let peer = PeerID("60:AA:00:0F:AF:46/random")
    private let create = HCIOpcode.leCreateConnection
    private let cancelPacket = Initiator.Action.send(HCICommandPacket(LECreateConnectionCancel()))

    @Test func anAttemptEndsWithTheCompletionOfItsPeer() throws {
        var connect = Initiator()
        #expect(try connect.begin(attempt(), at: start) == [.send(HCICommandPacket(LECreateConnection(initiation())))])
        #expect(connect.commandFinished(create, nil, at: start) == [])
        #expect(connect.nextDeadlineNow == start + .seconds(10))
        #expect(try connect.received(complete(), at: start) == [.finish(.success(complete()))])
        #expect(connect.nextDeadlineNow == nil)
        #expect(try connect.received(complete(), at: start) == [])
    }

    @Test func usesTheExtendedCommandAlone() throws {
        let attempt = Initiator.Attempt(
            try initiation(), phys: [.le1M, .leCoded], isExtended: true, deadline: start + .seconds(1))
        let packet = HCICommandPacket(LEExtendedCreateConnection(try initiation(), phys: [.le1M, .leCoded]))
        var initiator = Initiator()
        #expect(initiator.begin(attempt, at: start) == [.send(packet)])
    }

    /// What some controllers list and do not have is left out: the coded PHY first, then the extended command.
    @Test(.row("W05")) func aRefusedAttemptIsMadeWithLess() throws {
        let limit = start + .seconds(1)
        var legacy = Initiator.Attempt(try initiation(), isExtended: false, deadline: limit)
        legacy.isSubstitute = true
        var lesser = legacy
        lesser.mayBeDisallowed = true
        let extended = Initiator.Attempt(try initiation(), isExtended: true, deadline: limit)
        let coded = Initiator.Attempt(
            try initiation(), phys: [.le1M, .leCoded], isExtended: true, deadline: limit)
        func refused(_ status: HCIStatus) -> Initiator.Failure {
            .refused(HCICommandFailure(opcode: .leExtendedCreateConnection, reason: .status(status)))
        }
        for status in [HCIStatus.unsupportedFeature, .invalidParameters] {
            #expect(coded.substitute(after: refused(status)) == extended)
            #expect(extended.substitute(after: refused(status)) == lesser)
            #expect(legacy.substitute(after: refused(status)) == nil)
        }
        for attempt in [coded, extended] {
            #expect(attempt.substitute(after: refused(.unknownCommand)) == legacy)
            #expect(attempt.substitute(after: refused(.commandDisallowed)) == nil)
            #expect(attempt.substitute(after: .failed(.invalidParameters)) == nil)
            #expect(attempt.substitute(after: .timedOut) == nil)
        }
    }

    /// Only in place of an extended command that the controller knows does that mean that it keeps to these.
    @Test func aSubstituteThatIsDisallowedIsNotRepeated() throws {
        let disallowed = HCICommandFailure(opcode: create, reason: .status(.commandDisallowed))
        var attempt = try attempt()
        var other = Initiator()
        _ = other.begin(attempt, at: start)
        #expect(other.commandFinished(create, disallowed, at: start) == [])
        attempt.isSubstitute = true
        var unknown = Initiator()
        _ = unknown.begin(attempt, at: start)
        #expect(unknown.commandFinished(create, disallowed, at: start) == [])
        attempt.mayBeDisallowed = true
        var substitute = Initiator()
        _ = substitute.begin(attempt, at: start)
        #expect(substitute.commandFinished(create, disallowed, at: start) == [.finish(.failure(.refused(disallowed)))])
    }

    @Test func theLinkMayBeSeenBeforeTheConfirmation() throws {
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        #expect(try connect.received(complete(), at: start) == [.finish(.success(complete()))])
        #expect(connect.commandFinished(create, nil, at: start) == [])
    }

    @Test func aFailureMayBeSeenBeforeTheConfirmation() throws {
        let failed = Initiator.Action.finish(.failure(.failed(.connectionFailedToBeEstablished)))
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        #expect(try connect.received(complete(status: "3e"), at: start) == [])
        #expect(connect.commandFinished(create, nil, at: start) == [failed])

        // The ends of attempts before this one.
        for (status, peer) in [("02", "46af0f00aa60"), ("3e", "000000000000")] {
            var next = Initiator()
            _ = next.begin(try attempt(), at: start)
            #expect(try next.received(complete(status: status, peer: peer), at: start) == [])
            #expect(next.commandFinished(create, nil, at: start) == [])
            #expect(try next.received(complete(), at: start) == [.finish(.success(complete()))])
        }
    }

    /// Its failure is read before its confirmation, and it is cancelled before or after that: a cancel would be
    /// refused, as if the end had been lost.
    @Test(arguments: [true, false]) func aFailureThatIsReadEarlyEndsACancelledAttempt(isReadFirst: Bool) throws {
        let failed = try complete(status: "3e")
        for outcome in [nil, failure(.timeout)] {
            var connect = Initiator()
            _ = connect.begin(try attempt(), at: start)
            if isReadFirst { #expect(connect.received(failed, at: start) == []) }
            #expect(connect.cancel(at: start) == [.withdraw(create)])
            if !isReadFirst { #expect(connect.received(failed, at: start) == []) }
            #expect(connect.commandFinished(create, outcome, at: start) == [.finish(.failure(.cancelled))])
        }

        // Withdrawn: it was the end of an attempt before this one.
        var withdrawn = Initiator()
        _ = withdrawn.begin(try attempt(), at: start)
        _ = withdrawn.received(failed, at: start)
        _ = withdrawn.timePassed(start + .seconds(10))
        #expect(
            withdrawn.commandFinished(create, failure(.cancelled), at: start + .seconds(10))
                == [.finish(.failure(.refused(failure(.timeout))))])
    }

    @Test func otherLinksAreNotOurs() throws {
        var connect = try pending()
        #expect(try connect.received(complete(peer: "010203040506"), at: start) == [])
        #expect(try connect.received(complete(role: "01"), at: start) == [])
        #expect(try connect.received(complete(status: "3e", peer: "010203040506"), at: start) == [])
        #expect(
            try connect.received(complete(status: "3e"), at: start) == [
                .finish(.failure(.failed(.connectionFailedToBeEstablished)))
            ])
    }

    @Test func aRefusalEndsTheAttempt() throws {
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        let refusal = failure(.status(.invalidParameters))
        #expect(connect.commandFinished(create, refusal, at: start) == [.finish(.failure(.refused(refusal)))])
    }

    @Test(.row("O14")) func anotherProgramsAttemptIsWaitedForUntilTheDeadline() throws {
        var connect = Initiator()
        var now = start
        _ = connect.begin(try attempt(seconds: 1), at: now)
        var waits: [Duration] = []
        while waits.count < 20 {
            #expect(connect.commandFinished(create, failure(.status(.commandDisallowed)), at: now) == [])
            guard let until = connect.nextDeadlineNow else { break }
            waits.append(until - now)
            now = until
            let actions = connect.timePassed(now)
            if actions == [.finish(.failure(.busy))] { break }
            #expect(try actions == [.send(HCICommandPacket(LECreateConnection(initiation())))])
        }
        #expect(waits == [.milliseconds(100), .milliseconds(200), .milliseconds(300), .milliseconds(400)])
        #expect(now == start + .seconds(1))
    }

    @Test(.row("L07")) func theDeadlineCancelsTheAttempt() throws {
        var connect = try pending()
        #expect(connect.timePassed(start + .seconds(9)) == [])
        let late = start + .seconds(10)
        #expect(connect.timePassed(late) == [cancelPacket])
        #expect(connect.commandFinished(.leCreateConnectionCancel, nil, at: late) == [])
        // The shape of FrankHJCuypers_fuut__btsnoop_hci20241230_02:338: status 02, no address.
        #expect(
            try connect.received(complete(status: "02", peer: "000000000000"), at: late) == [
                .finish(.failure(.timedOut))
            ])
    }

    @Test(.row("L07")) func anAttemptCanBeCancelledAtEachStep() throws {
        var idle = Initiator()
        #expect(idle.cancel(at: start) == [])

        var unconfirmed = Initiator()
        _ = unconfirmed.begin(try attempt(), at: start)
        #expect(unconfirmed.cancel(at: start) == [.withdraw(create)])
        #expect(unconfirmed.commandFinished(create, nil, at: start) == [cancelPacket])

        var refused = Initiator()
        _ = refused.begin(try attempt(), at: start)
        _ = refused.cancel(at: start)
        #expect(
            refused.commandFinished(create, failure(.status(.commandDisallowed)), at: start)
                == [.finish(.failure(.cancelled))])

        var turn = Initiator()
        _ = turn.begin(try attempt(), at: start)
        _ = turn.commandFinished(create, failure(.status(.commandDisallowed)), at: start)
        #expect(turn.cancel(at: start) == [.finish(.failure(.cancelled))])

        var pending = try self.pending()
        #expect(pending.cancel(at: start) == [cancelPacket])
        #expect(pending.cancel(at: start) == [])
        #expect(pending.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(try pending.received(complete(status: "02"), at: start) == [.finish(.failure(.cancelled))])
        #expect(pending.cancel(at: start) == [])
    }

    @Test func aLinkThatCameUpAnywayIsDisconnected() throws {
        let disconnect = Initiator.Action.disconnect(0x40, from: try #require(peer))
        var connect = try pending()
        _ = connect.cancel(at: start)
        #expect(connect.commandFinished(.leCreateConnectionCancel, nothingPending, at: start) == [])
        #expect(try connect.received(complete(), at: start) == [disconnect, .finish(.failure(.cancelled))])

        var early = Initiator()
        _ = early.begin(try attempt(), at: start)
        _ = early.cancel(at: start)
        #expect(try early.received(complete(), at: start) == [disconnect, .finish(.failure(.cancelled))])
    }

    @Test func aCompletionThatNeverComesEndsByItself() throws {
        var connect = try pending()
        _ = connect.cancel(at: start)
        _ = connect.commandFinished(.leCreateConnectionCancel, nothingPending, at: start + .seconds(1))
        #expect(connect.nextDeadlineNow == start + .seconds(3))
        #expect(connect.timePassed(start + .seconds(3)) == [.finish(.failure(.endUnreported(.cancelled)))])
    }

    @Test(.row("H13")) func aSilentControllerGetsACancelAndTheAttemptEnds() throws {
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        let silent = failure(.timeout)
        #expect(connect.commandFinished(create, silent, at: start) == [cancelPacket])
        #expect(
            connect.commandFinished(.leCreateConnectionCancel, noResponse, at: start)
                == [.finish(.failure(.cancelUnconfirmed(.refused(silent))))])
    }

    @Test(.row("L07", "H13")) func anAttemptThatIsNotConfirmedIsOver3SecondsAfterItsDeadline() throws {
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        let late = start + .seconds(10)
        #expect(connect.nextDeadlineNow == late)
        #expect(connect.timePassed(late) == [.withdraw(create)])
        _ = connect.cancel(at: late + .seconds(1))
        #expect(connect.nextDeadlineNow == late + .seconds(3))
        #expect(connect.timePassed(late + .seconds(3)) == [.finish(.failure(.cancelUnconfirmed(.timedOut)))])

        // Never sent, or refused: that is what kept it.
        for (reason, end) in [
            (HCICommandFailure.Reason.cancelled, Initiator.Failure.refused(failure(.timeout))),
            (.status(.commandDisallowed), .busy),
            (.status(.invalidParameters), .refused(failure(.status(.invalidParameters)))),
        ] {
            var refused = Initiator()
            _ = refused.begin(try attempt(), at: start)
            _ = refused.timePassed(late)
            #expect(refused.commandFinished(create, failure(reason), at: late) == [.finish(.failure(end))])
        }

        var confirmed = Initiator()
        _ = confirmed.begin(try attempt(), at: start)
        _ = confirmed.timePassed(late)
        #expect(confirmed.commandFinished(create, nil, at: late + .seconds(2)) == [cancelPacket])
        let end = late + .seconds(3)
        #expect(confirmed.nextDeadlineNow == end)
        #expect(confirmed.commandFinished(.leCreateConnectionCancel, nil, at: end) == [])
        #expect(confirmed.nextDeadlineNow == end + .seconds(1), "its end is on its way")

        var silent = Initiator()
        _ = silent.begin(try attempt(), at: start)
        _ = silent.cancel(at: start)
        #expect(silent.commandFinished(create, failure(.timeout), at: start + .seconds(2)) == [cancelPacket])
        #expect(
            silent.timePassed(start + .seconds(3)) == [.finish(.failure(.cancelUnconfirmed(.cancelled)))],
            "a caller that has cancelled gets that")
    }

    @Test(.row("L07", "H13", "W37")) func aCancelWithoutAResponseIsRetriedOnceAndThenReported() throws {
        var connect = try pending()
        let late = start + .seconds(10)
        #expect(connect.timePassed(late) == [cancelPacket])
        let later = late + .seconds(2)
        #expect(connect.commandFinished(.leCreateConnectionCancel, noResponse, at: later) == [cancelPacket])
        // 3 s in all, however many events fail to come.
        let end = late + .seconds(3)
        #expect(connect.nextDeadlineNow == end)
        #expect(connect.timePassed(end) == [.finish(.failure(.cancelUnconfirmed(.timedOut)))])

        var answered = try pending()
        _ = answered.cancel(at: start)
        _ = answered.commandFinished(.leCreateConnectionCancel, noResponse, at: start)
        #expect(answered.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(try answered.received(complete(status: "02"), at: start) == [.finish(.failure(.cancelled))])

        // Many commands were in front of it.
        var queued = try pending()
        _ = queued.cancel(at: start)
        #expect(queued.timePassed(start + .seconds(3)) == [.finish(.failure(.cancelUnconfirmed(.cancelled)))])

        var refused = try pending()
        _ = refused.cancel(at: start)
        let unknown = HCICommandFailure(opcode: .leCreateConnectionCancel, reason: .status(.unknownCommand))
        #expect(
            refused.commandFinished(.leCreateConnectionCancel, unknown, at: start) == [.finish(.failure(.cancelled))])
    }

    @Test(.row("O02", "H15")) func theAdapterMayGoAtAnyStep() throws {
        var idle = Initiator()
        #expect(idle.adapterLost(at: start) == [])
        var calling = Initiator()
        _ = calling.begin(try attempt(), at: start)
        #expect(calling.commandFinished(create, failure(.adapterLost), at: start) == [.finish(.failure(.adapterLost))])
        var pending = try self.pending()
        #expect(pending.adapterLost(at: start) == [.finish(.failure(.adapterLost))])
        var cancelling = try self.pending()
        _ = cancelling.cancel(at: start)
        #expect(cancelling.adapterLost(at: start) == [.finish(.failure(.adapterLost))])
    }

    /// Create Connection was sent after a reset that was read later: the controller begins what has ended here.
    @Test(.row("H15")) func anAttemptThatIsConfirmedAfterTheLossIsCancelled() throws {
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        #expect(connect.adapterLost(at: start) == [.finish(.failure(.adapterLost))])
        #expect(connect.adapterLost(at: start) == [])
        #expect(connect.foreignCompletion(create, .success, at: start) == [cancelPacket])
        #expect(connect.hasPendingCancelNow == true)
        #expect(connect.controllerResponded(.leSetScanEnable) == [], "the cancel waits in the queue")
        #expect(connect.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(try connect.received(complete(status: "02", peer: "000000000000"), at: start) == [])
        #expect(connect.hasPendingCancelNow == false)

        // The next attempt waits in the queue already.
        var next = Initiator()
        let packet = try next.begin(attempt(), at: start)
        _ = next.adapterLost(at: start)
        _ = try next.begin(attempt(), at: start)
        #expect(next.foreignCompletion(create, .success, at: start) == [])
        let refusal = failure(.status(.commandDisallowed))
        #expect(next.commandFinished(create, refusal, at: start) == [cancelPacket])
        #expect(next.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(try next.received(complete(status: "02", peer: "000000000000"), at: start) == [])
        #expect(next.timePassed(start + Initiator.firstBusyPause) == packet)
    }

    @Test(.row("H15")) func theCancelOfAnAttemptBeforeTheLossEndsNoLaterOne() throws {
        // The earlier one ends before the next one is sent.
        var accepted = Initiator()
        _ = accepted.begin(try attempt(), at: start)
        _ = accepted.adapterLost(at: start)
        _ = accepted.begin(try attempt(), at: start)
        #expect(accepted.foreignCompletion(create, .success, at: start) == [])
        #expect(accepted.commandFinished(create, nil, at: start) == [])

        // The next one is cancelled while it waits in the queue.
        var withdrawn = Initiator()
        _ = withdrawn.begin(try attempt(), at: start)
        _ = withdrawn.adapterLost(at: start)
        _ = withdrawn.begin(try attempt(), at: start)
        #expect(withdrawn.foreignCompletion(create, .success, at: start) == [])
        _ = withdrawn.cancel(at: start)
        let end = withdrawn.commandFinished(create, failure(.cancelled), at: start)
        #expect(end == [.finish(.failure(.cancelled)), cancelPacket])
        #expect(withdrawn.hasPendingCancelNow == true)
    }

    @Test(.row("H15")) func aConfirmationLongAfterTheLossIsAnotherPrograms() throws {
        var lost = Initiator()
        _ = lost.begin(try attempt(), at: start)
        _ = lost.adapterLost(at: start)
        #expect(lost.foreignCompletion(create, .success, at: start + HCICommandQueue.commandTimeout) == [])

        // The controller has no room for two.
        var confirmed = Initiator()
        _ = confirmed.begin(try attempt(), at: start)
        _ = confirmed.adapterLost(at: start)
        _ = confirmed.begin(try attempt(), at: start)
        _ = confirmed.commandFinished(create, nil, at: start)
        #expect(confirmed.foreignCompletion(create, .success, at: start) == [])

        // That program's command was seen.
        var seen = Initiator()
        _ = seen.begin(try attempt(), at: start)
        _ = seen.adapterLost(at: start)
        seen.received(HCICommandPacket(LECreateConnection(try initiation())))
        #expect(seen.foreignCompletion(create, .success, at: start) == [])

        // It was confirmed before the loss.
        var pending = try self.pending()
        _ = pending.adapterLost(at: start)
        #expect(pending.foreignCompletion(create, .success, at: start) == [])
    }

    @Test func aDeadlineInThePastSendsNothing() throws {
        var connect = Initiator()
        #expect(try connect.begin(attempt(seconds: 0), at: start) == [.finish(.failure(.timedOut))])
    }

    @Test(.row("L07")) func anUnconfirmedCancelIsSentAgainBeforeTheNextAttempt() throws {
        var connect = try unconfirmed()
        #expect(connect.begin(try attempt(), at: start) == [.finish(.failure(.busy))])
        #expect(connect.hasPendingCancelNow == true)
        #expect(connect.confirmCancel(for: other, until: start + .seconds(10), at: start) == [cancelPacket])
        #expect(connect.nextDeadlineNow == start + .seconds(2))
        #expect(connect.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(connect.nextDeadlineNow == start + .seconds(3), "the end of the attempt is on its way")
        #expect(try connect.received(complete(status: "02", peer: "000000000000"), at: start) == [.cancelConfirmed])
        #expect(connect.hasPendingCancelNow == false)

        var lost = try unconfirmed()
        _ = lost.confirmCancel(for: other, until: start + .seconds(10), at: start)
        _ = lost.commandFinished(.leCreateConnectionCancel, nil, at: start)
        #expect(lost.timePassed(start + .seconds(3)) == [.cancelConfirmed], "the end may have been lost")

        var refused = try unconfirmed()
        _ = refused.confirmCancel(for: other, until: start + .seconds(10), at: start)
        #expect(refused.commandFinished(.leCreateConnectionCancel, nothingPending, at: start) == [.cancelConfirmed])
        #expect(refused.confirmCancel(for: other, until: start + .seconds(10), at: start) == [.cancelConfirmed])
    }

    @Test(.row("L07")) func aCancelThatStaysUnconfirmedFailsTheNextAttempt() throws {
        let withdraw = Initiator.Action.withdraw(.leCreateConnectionCancel)
        var silent = try unconfirmed()
        _ = silent.confirmCancel(for: other, until: start + .seconds(10), at: start)
        #expect(silent.commandFinished(.leCreateConnectionCancel, noResponse, at: start + .seconds(1)) == [])
        #expect(
            silent.timePassed(start + .seconds(2))
                == [withdraw, .finish(.failure(.cancelUnconfirmed(.timedOut)))])
        #expect(silent.hasPendingCancelNow == true)

        var cancelled = try unconfirmed()
        _ = cancelled.confirmCancel(for: other, until: start + .seconds(10), at: start)
        #expect(cancelled.cancel(at: start) == [withdraw, .finish(.failure(.cancelled))])
        #expect(cancelled.hasPendingCancelNow == true)

        var gone = try unconfirmed()
        _ = gone.confirmCancel(for: other, until: start + .seconds(10), at: start)
        #expect(gone.adapterLost(at: start) == [.finish(.failure(.adapterLost))])
        #expect(gone.hasPendingCancelNow == false)
    }

    /// The link came up, or failed, and that was lost: which of both is not known.
    @Test(.row("W52")) func anAttemptThatIsOverWithoutAReportIsNamed() throws {
        for (isRefused, end) in [(true, Initiator.Failure.endUnreported(.cancelled)), (false, .cancelled)] {
            var connect = try pending()
            _ = connect.cancel(at: start)
            #expect(
                connect.commandFinished(.leCreateConnectionCancel, isRefused ? nothingPending : nil, at: start) == [])
            #expect(connect.nextDeadlineNow == start + .seconds(3))
            #expect(connect.timePassed(start + .seconds(3)) == [.finish(.failure(end))])
        }
        // The report may be late; then it is an end like any other.
        var late = try pending()
        _ = late.cancel(at: start)
        _ = late.commandFinished(.leCreateConnectionCancel, nothingPending, at: start)
        #expect(try late.received(complete(status: "3e"), at: start) == [.finish(.failure(.cancelled))])
    }

    @Test(.row("L07")) func anyResponseHasAnUnconfirmedCancelSentAgainOnce() throws {
        var connect = try unconfirmed()
        #expect(connect.controllerResponded(.leCreateConnectionCancel) == [])
        #expect(connect.controllerResponded(.leSetScanEnable) == [cancelPacket])
        #expect(connect.controllerResponded(.leSetScanEnable) == [])
        #expect(connect.commandFinished(.leCreateConnectionCancel, nothingPending, at: start) == [])
        #expect(connect.hasPendingCancelNow == false)
        #expect(connect.controllerResponded(.leSetScanEnable) == [])

        var foreign = try unconfirmed()
        #expect(foreign.foreignCompletion(.leCreateConnectionCancel, .commandDisallowed, at: start) == [])
        #expect(foreign.hasPendingCancelNow == false)
    }

    @Test(.row("L07")) func aLinkOfAnAttemptWhoseCancelWasNotConfirmedIsDisconnectedUnlessItIsWantedNow() throws {
        let disconnect = Initiator.Action.disconnect(0x40, from: try #require(peer))
        var unwanted = try unconfirmed()
        #expect(try unwanted.received(complete(peer: "010203040506"), at: start) == [])
        #expect(try unwanted.received(complete(), at: start) == [disconnect])
        #expect(unwanted.hasPendingCancelNow == false)

        var stranger = try unconfirmed()
        _ = stranger.confirmCancel(for: other, until: start + .seconds(10), at: start)
        #expect(try stranger.received(complete(), at: start) == [.cancelConfirmed, disconnect])

        var wanted = try unconfirmed()
        _ = wanted.confirmCancel(for: try #require(peer), until: start + .seconds(10), at: start)
        #expect(try wanted.received(complete(), at: start) == [.cancelConfirmed])
    }

    /// It may be that program's: a controller that was silent need not have heard of the attempt of this one.
    @Test func aLinkAfterAnotherProgramsCommandIsLeftAloneWhereACancelWasNotConfirmed() throws {
        let foreign = HCICommandPacket(LECreateConnection(try initiation()))
        var connect = try unconfirmed()
        connect.received(foreign)
        #expect(connect.foreignCompletion(create, .success, at: start) == [])
        #expect(try connect.received(complete(), at: start) == [])
        #expect(connect.hasPendingCancelNow == false)

        // The command led to another link.
        let disconnect = Initiator.Action.disconnect(0x40, from: try #require(peer))
        var later = try unconfirmed()
        later.received(foreign)
        #expect(try later.received(complete(peer: "010203040506"), at: start) == [])
        #expect(try later.received(complete(), at: start) == [disconnect])

        // No other command leads to a link.
        var unrelated = try unconfirmed()
        unrelated.received(HCICommandPacket(LECreateConnectionCancel()))
        #expect(try unrelated.received(complete(), at: start) == [disconnect])
    }

    /// A command that was refused leads to no link.
    @Test func aLinkAfterARefusedCommandOfAnotherProgramIsDisconnectedWhereACancelWasNotConfirmed() throws {
        let foreign = HCICommandPacket(LECreateConnection(try initiation()))
        let disconnect = Initiator.Action.disconnect(0x40, from: try #require(peer))
        var connect = try unconfirmed()
        connect.received(foreign)
        #expect(connect.foreignCompletion(create, .commandDisallowed, at: start) == [])
        #expect(try connect.received(complete(), at: start) == [disconnect])

        // One of two was accepted.
        var accepted = try unconfirmed()
        for status in [HCIStatus.success, .commandDisallowed] {
            accepted.received(foreign)
            #expect(accepted.foreignCompletion(create, status, at: start) == [])
        }
        #expect(try accepted.received(complete(), at: start) == [])

        // The refusal may be a late one of this machine's own command.
        var late = Initiator()
        _ = late.begin(try attempt(), at: start)
        _ = late.commandFinished(create, failure(.timeout), at: start)
        _ = late.commandFinished(.leCreateConnectionCancel, noResponse, at: start)
        late.received(foreign)
        #expect(late.foreignCompletion(create, .commandDisallowed, at: start) == [])
        #expect(try late.received(complete(), at: start) == [])
        #expect(late.hasPendingCancelNow == false)

        // So may that after a loss of the adapter.
        var lost = Initiator()
        _ = lost.begin(try attempt(), at: start)
        for _ in 1...2 { _ = lost.adapterLost(at: start) }
        lost.received(foreign)
        for status in [HCIStatus.commandDisallowed, .success] {
            #expect(lost.foreignCompletion(create, status, at: start) == [])
        }
    }

    /// Some controllers do not refuse with Command Disallowed.
    @Test(.row("W38")) func anyRefusalBesideAnotherProgramsAttemptMeansBusy() throws {
        let refusal = HCICommandFailure(opcode: create, reason: .status(.lmpPDUNotAllowed))
        var beside = Initiator()
        #expect(beside.foreignCompletion(.leExtendedCreateConnection, .success, at: start) == [])
        let packet = try beside.begin(attempt(), at: start)
        #expect(beside.commandFinished(create, refusal, at: start) == [])
        #expect(beside.timePassed(start + Initiator.firstBusyPause) == packet)
        // That attempt is over: the next refusal is about this one.
        #expect(beside.commandFinished(create, refusal, at: start) == [])
        #expect(try beside.received(complete(peer: "010203040506"), at: start) == [])
        #expect(beside.timePassed(start + .seconds(1)) == packet)
        #expect(beside.commandFinished(create, refusal, at: start) == [.finish(.failure(.refused(refusal)))])

        // What the controller will say each time.
        for status in [HCIStatus.unknownCommand, .unsupportedFeature, .invalidParameters, .connectionAlreadyExists] {
            let definite = HCICommandFailure(opcode: create, reason: .status(status))
            var refused = Initiator()
            _ = refused.foreignCompletion(.leCreateConnection, .success, at: start)
            _ = try refused.begin(attempt(), at: start)
            #expect(refused.commandFinished(create, definite, at: start) == [.finish(.failure(.refused(definite)))])
        }

        for end in [HCIStatus.success, .commandDisallowed] {
            var alone = Initiator()
            _ = alone.foreignCompletion(.leCreateConnection, .success, at: start)
            _ = alone.foreignCompletion(.leCreateConnectionCancel, end, at: start)
            _ = try alone.begin(attempt(), at: start)
            #expect(alone.commandFinished(create, refusal, at: start) == [.finish(.failure(.refused(refusal)))])
        }
    }

    /// Its end is on the socket of LE events, which may be after that of confirmations.
    @Test(.row("W38")) func theEndOfAnotherProgramsAttemptDoesNotEndTheNextOne() throws {
        let cancelled = try complete(status: "02", peer: "000000000000")
        var next = Initiator()
        _ = next.foreignCompletion(.leCreateConnection, .success, at: start)
        _ = next.foreignCompletion(.leCreateConnectionCancel, .success, at: start)
        _ = try next.begin(attempt(), at: start)
        #expect(next.commandFinished(create, nil, at: start) == [])
        #expect(next.received(cancelled, at: start) == [])
        // Once: another program may cancel this attempt too.
        _ = next.foreignCompletion(.leCreateConnectionCancel, .success, at: start)
        #expect(next.received(cancelled, at: start) == [.finish(.failure(.failed(.unknownConnection)))])
    }

    /// The end is on the socket of LE events, the refusal on that of confirmations.
    @Test(.row("W38"), arguments: [true, false])
    func aRefusalThatIsReadAfterTheEndOfAnotherProgramsAttemptMeansBusy(isCancelled: Bool) throws {
        let refusal = HCICommandFailure(opcode: create, reason: .status(.lmpPDUNotAllowed))
        let end =
            try isCancelled ? complete(status: "02", peer: "000000000000") : complete(peer: "010203040506")
        var initiator = Initiator()
        _ = initiator.foreignCompletion(.leCreateConnection, .success, at: start)
        let packet = try initiator.begin(attempt(), at: start)
        #expect(initiator.received(end, at: start) == [])
        #expect(initiator.commandFinished(create, refusal, at: start) == [])
        if isCancelled { _ = initiator.foreignCompletion(.leCreateConnectionCancel, .success, at: start) }
        #expect(initiator.timePassed(start + Initiator.firstBusyPause) == packet)
        // No other attempt was pending when that was sent.
        #expect(initiator.commandFinished(create, refusal, at: start) == [.finish(.failure(.refused(refusal)))])
    }

    /// Another program's command may reach the controller before this one, and its confirmation be read after this one
    /// was sent.
    @Test(.row("W38")) func anotherProgramsAttemptThatIsConfirmedAfterThisOneWasSentMeansBusy() throws {
        let refusal = HCICommandFailure(opcode: create, reason: .status(.lmpPDUNotAllowed))
        var initiator = Initiator()
        let packet = try initiator.begin(attempt(), at: start)
        _ = initiator.foreignCompletion(.leCreateConnection, .success, at: start)
        #expect(try initiator.received(complete(peer: "010203040506"), at: start) == [])
        #expect(initiator.commandFinished(create, refusal, at: start) == [])
        #expect(initiator.timePassed(start + Initiator.firstBusyPause) == packet)
        // No other attempt was pending when that was sent.
        #expect(initiator.commandFinished(create, refusal, at: start) == [.finish(.failure(.refused(refusal)))])
    }

    /// Otherwise the end of the cancelled attempt would be taken for that of the attempt after it.
    @Test(.row("W38")) func theEndOfAnotherProgramsAttemptIsNotTheEndOfACancelledOne() throws {
        let cancelled = try complete(status: "02", peer: "000000000000")
        var initiator = Initiator()
        _ = initiator.foreignCompletion(.leCreateConnection, .success, at: start)
        _ = initiator.foreignCompletion(.leCreateConnectionCancel, .success, at: start)
        _ = try initiator.begin(attempt(), at: start)
        #expect(initiator.commandFinished(create, nil, at: start) == [])
        #expect(initiator.cancel(at: start) == [cancelPacket])
        #expect(initiator.received(cancelled, at: start) == [])
        #expect(initiator.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(initiator.received(cancelled, at: start) == [.finish(.failure(.cancelled))])
    }

    @Test func connectsTakeTurnsInOrder() {
        var initiator = Initiator()
        #expect(initiator.takeTurn() == true)
        #expect(initiator.takeTurn() == false)
        for waiter: UInt64 in 1...4 { initiator.awaitTurn(waiter) }
        initiator.cancelAwaitingTurn(2)
        let turns = [
            initiator.passTurn { $0 != 1 }, initiator.passTurn { _ in true }, initiator.passTurn { _ in true },
        ]
        #expect(turns == [3, 4, nil], "1 has stopped waiting")
        #expect(initiator.takeTurn() == true)
    }

    private let other = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
    private let nothingPending = HCICommandFailure(
        opcode: .leCreateConnectionCancel, reason: .status(.commandDisallowed))

    /// An initiator whose controller has not confirmed the cancel of the attempt to `peer`.
    private func unconfirmed() throws -> Initiator {
        var connect = try pending()
        _ = connect.cancel(at: start)
        _ = connect.commandFinished(.leCreateConnectionCancel, noResponse, at: start)
        #expect(
            connect.commandFinished(.leCreateConnectionCancel, noResponse, at: start)
                == [.finish(.failure(.cancelUnconfirmed(.cancelled)))])
        return connect
    }

    private let noResponse = HCICommandFailure(opcode: .leCreateConnectionCancel, reason: .timeout)

    private func initiation() throws -> LEInitiation {
        LEInitiation(peer: try #require(peer))
    }

    private func attempt(seconds: Int = 10) throws -> Initiator.Attempt {
        Initiator.Attempt(try initiation(), isExtended: false, deadline: start + .seconds(seconds))
    }

    private func pending() throws -> Initiator {
        var connect = Initiator()
        _ = connect.begin(try attempt(), at: start)
        _ = connect.commandFinished(create, nil, at: start)
        return connect
    }

    private func failure(_ reason: HCICommandFailure.Reason) -> HCICommandFailure {
        HCICommandFailure(opcode: create, reason: reason)
    }

    /// LE Connection Complete by the layout of 7.7.65.1.
    private func complete(
        status: String = "00", peer: String = "46af0f00aa60", role: String = "00"
    ) throws -> LEConnectionComplete {
        let packet = bytes("3e1301" + status + "4000" + role + "01" + peer + "28000000f40100")
        guard case .connectionComplete(let complete) = try HCIEvent(packet.span) else {
            throw MalformedPacket(format: "test", offset: 0, reason: .tooShort)
        }
        return complete
    }
}

extension Initiator {
    // As mutating members, which the test macros can use on a noncopyable value.
    fileprivate var nextDeadlineNow: BootInstant? {
        mutating get { nextDeadline }
    }

    fileprivate var hasPendingCancelNow: Bool {
        mutating get { hasPendingCancel }
    }
}
