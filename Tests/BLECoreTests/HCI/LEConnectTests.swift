import BLECore
import Testing

@Suite struct LEConnectTests {
    private let start = BootInstant(nanoseconds: 7_000_000_000)
    private let peer = PeerID("60:AA:00:0F:AF:46/random")
    private let create = HCIOpcode.leCreateConnection
    private let cancelPacket = LEConnect.Action.send(HCICommandPacket(LECreateConnectionCancel()))

    @Test func connects() throws {
        var connect = try call()
        #expect(try connect.begin(at: start) == [.send(HCICommandPacket(LECreateConnection(initiation())))])
        #expect(connect.commandFinished(create, nil, at: start) == [])
        #expect(connect.nextDeadlineNow == start + .seconds(10))
        #expect(try connect.received(complete(), at: start) == [.finish(.success(complete()))])
        #expect(connect.nextDeadlineNow == nil)
        #expect(try connect.received(complete(), at: start) == [])
    }

    @Test func usesTheExtendedCommandAlone() throws {
        var connect = LEConnect(
            LEConnect.Call(try initiation(), phys: [.le1M, .coded], isExtended: true, deadline: start + .seconds(1)))
        let packet = HCICommandPacket(LEExtendedCreateConnection(try initiation(), phys: [.le1M, .coded]))
        #expect(connect.begin(at: start) == [.send(packet)])
    }

    @Test func theLinkMayBeSeenBeforeTheConfirmation() throws {
        var connect = try call()
        _ = connect.begin(at: start)
        #expect(try connect.received(complete(), at: start) == [.finish(.success(complete()))])
        #expect(connect.commandFinished(create, nil, at: start) == [])
    }

    @Test func aFailureMayBeSeenBeforeTheConfirmation() throws {
        let failed = LEConnect.Action.finish(.failure(.failed(.connectionFailedToBeEstablished)))
        var connect = try call()
        _ = connect.begin(at: start)
        #expect(try connect.received(complete(status: "3e"), at: start) == [])
        #expect(connect.commandFinished(create, nil, at: start) == [failed])

        // The ends of calls before this one.
        for (status, peer) in [("02", "46af0f00aa60"), ("3e", "000000000000")] {
            var next = try call()
            _ = next.begin(at: start)
            #expect(try next.received(complete(status: status, peer: peer), at: start) == [])
            #expect(next.commandFinished(create, nil, at: start) == [])
            #expect(try next.received(complete(), at: start) == [.finish(.success(complete()))])
        }
    }

    @Test func otherLinksAreNotOurs() throws {
        var connect = try waiting()
        #expect(try connect.received(complete(peer: "010203040506"), at: start) == [])
        #expect(try connect.received(complete(role: "01"), at: start) == [])
        #expect(try connect.received(complete(status: "3e", peer: "010203040506"), at: start) == [])
        #expect(
            try connect.received(complete(status: "3e"), at: start) == [
                .finish(.failure(.failed(.connectionFailedToBeEstablished)))
            ])
    }

    @Test func aRefusalEndsTheCall() throws {
        var connect = try call()
        _ = connect.begin(at: start)
        let refusal = failure(.status(.invalidParameters))
        #expect(connect.commandFinished(create, refusal, at: start) == [.finish(.failure(.refused(refusal)))])
    }

    // Row O14.
    @Test func somebodyElsesCallIsWaitedForUntilTheDeadline() throws {
        var connect = try call(seconds: 1)
        var now = start
        _ = connect.begin(at: now)
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

    // Row L07.
    @Test func theDeadlineTakesTheCallBack() throws {
        var connect = try waiting()
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

    // Row L07.
    @Test func cancelAtEachStep() throws {
        var idle = try call()
        #expect(idle.cancel(at: start) == [.finish(.failure(.cancelled))])

        var unconfirmed = try call()
        _ = unconfirmed.begin(at: start)
        #expect(unconfirmed.cancel(at: start) == [.withdraw(create)])
        #expect(unconfirmed.commandFinished(create, nil, at: start) == [cancelPacket])

        var refused = try call()
        _ = refused.begin(at: start)
        _ = refused.cancel(at: start)
        #expect(
            refused.commandFinished(create, failure(.status(.commandDisallowed)), at: start)
                == [.finish(.failure(.cancelled))])

        var turn = try call()
        _ = turn.begin(at: start)
        _ = turn.commandFinished(create, failure(.status(.commandDisallowed)), at: start)
        #expect(turn.cancel(at: start) == [.finish(.failure(.cancelled))])

        var waiting = try waiting()
        #expect(waiting.cancel(at: start) == [cancelPacket])
        #expect(waiting.cancel(at: start) == [])
        #expect(waiting.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(try waiting.received(complete(status: "02"), at: start) == [.finish(.failure(.cancelled))])
        #expect(waiting.cancel(at: start) == [])
    }

    @Test func aLinkThatCameUpAnywayIsDisconnected() throws {
        let hangUp = LEConnect.Action.send(HCICommandPacket(HCIDisconnect(handle: 0x40)))
        var connect = try waiting()
        _ = connect.cancel(at: start)
        let nothingPending = HCICommandFailure(
            opcode: .leCreateConnectionCancel, reason: .status(.commandDisallowed))
        #expect(connect.commandFinished(.leCreateConnectionCancel, nothingPending, at: start) == [])
        #expect(try connect.received(complete(), at: start) == [hangUp, .finish(.failure(.cancelled))])

        var early = try call()
        _ = early.begin(at: start)
        _ = early.cancel(at: start)
        #expect(try early.received(complete(), at: start) == [hangUp, .finish(.failure(.cancelled))])
    }

    @Test func aCompletionThatNeverComesEndsByItself() throws {
        var connect = try waiting()
        _ = connect.cancel(at: start)
        let nothingPending = HCICommandFailure(
            opcode: .leCreateConnectionCancel, reason: .status(.commandDisallowed))
        _ = connect.commandFinished(.leCreateConnectionCancel, nothingPending, at: start + .seconds(1))
        #expect(connect.nextDeadlineNow == start + .seconds(3))
        #expect(connect.timePassed(start + .seconds(3)) == [.finish(.failure(.cancelled))])
    }

    @Test func h13ASilentControllerGetsACancelAndTheCallEnds() throws {
        var connect = try call()
        _ = connect.begin(at: start)
        let silent = failure(.timeout)
        #expect(connect.commandFinished(create, silent, at: start) == [cancelPacket])
        #expect(
            connect.commandFinished(.leCreateConnectionCancel, unanswered, at: start)
                == [.finish(.failure(.notTakenBack(.refused(silent))))])
    }

    // Row L07.
    @Test func h13ACallThatIsNotConfirmedIsOver3SecondsBehindItsDeadline() throws {
        var connect = try call()
        _ = connect.begin(at: start)
        let late = start + .seconds(10)
        #expect(connect.nextDeadlineNow == late)
        #expect(connect.timePassed(late) == [.withdraw(create)])
        _ = connect.cancel(at: late + .seconds(1))
        #expect(connect.nextDeadlineNow == late + .seconds(3))
        #expect(connect.timePassed(late + .seconds(3)) == [.finish(.failure(.notTakenBack(.timedOut)))])

        // Never sent, or refused: that is what kept it.
        for (reason, end) in [
            (HCICommandFailure.Reason.cancelled, LEConnect.Failure.refused(failure(.timeout))),
            (.status(.commandDisallowed), .busy),
            (.status(.invalidParameters), .refused(failure(.status(.invalidParameters)))),
        ] {
            var refused = try call()
            _ = refused.begin(at: start)
            _ = refused.timePassed(late)
            #expect(refused.commandFinished(create, failure(reason), at: late) == [.finish(.failure(end))])
        }

        var confirmed = try call()
        _ = confirmed.begin(at: start)
        _ = confirmed.timePassed(late)
        #expect(confirmed.commandFinished(create, nil, at: late + .seconds(2)) == [cancelPacket])
        let end = late + .seconds(3)
        #expect(confirmed.nextDeadlineNow == end)
        #expect(confirmed.commandFinished(.leCreateConnectionCancel, nil, at: end) == [])
        #expect(confirmed.nextDeadlineNow == end + .seconds(1), "its end is on its way")

        var silent = try call()
        _ = silent.begin(at: start)
        _ = silent.cancel(at: start)
        #expect(silent.commandFinished(create, failure(.timeout), at: start + .seconds(2)) == [cancelPacket])
        #expect(
            silent.timePassed(start + .seconds(3)) == [.finish(.failure(.notTakenBack(.cancelled)))],
            "who has cancelled is told that")
    }

    // Row L07.
    @Test func h13ACancelWithoutAnAnswerIsRepeatedOnceAndThenTold() throws {
        var connect = try waiting()
        let late = start + .seconds(10)
        #expect(connect.timePassed(late) == [cancelPacket])
        let later = late + .seconds(2)
        #expect(connect.commandFinished(.leCreateConnectionCancel, unanswered, at: later) == [cancelPacket])
        // 3 s in all, however many answers fail to come.
        let end = late + .seconds(3)
        #expect(connect.nextDeadlineNow == end)
        #expect(connect.timePassed(end) == [.finish(.failure(.notTakenBack(.timedOut)))])

        var answered = try waiting()
        _ = answered.cancel(at: start)
        _ = answered.commandFinished(.leCreateConnectionCancel, unanswered, at: start)
        #expect(answered.commandFinished(.leCreateConnectionCancel, nil, at: start) == [])
        #expect(try answered.received(complete(status: "02"), at: start) == [.finish(.failure(.cancelled))])

        // Many commands were in front of it.
        var queued = try waiting()
        _ = queued.cancel(at: start)
        #expect(queued.timePassed(start + .seconds(3)) == [.finish(.failure(.notTakenBack(.cancelled)))])

        var refused = try waiting()
        _ = refused.cancel(at: start)
        let unknown = HCICommandFailure(opcode: .leCreateConnectionCancel, reason: .status(.unknownCommand))
        #expect(
            refused.commandFinished(.leCreateConnectionCancel, unknown, at: start) == [.finish(.failure(.cancelled))])
    }

    // Row O02.
    @Test func h15TheAdapterMayGoAtAnyStep() throws {
        var idle = try call()
        #expect(idle.adapterLost() == [.finish(.failure(.adapterLost))])
        #expect(idle.adapterLost() == [])
        var calling = try call()
        _ = calling.begin(at: start)
        #expect(calling.commandFinished(create, failure(.adapterLost), at: start) == [.finish(.failure(.adapterLost))])
        var waiting = try waiting()
        #expect(waiting.adapterLost() == [.finish(.failure(.adapterLost))])
        var cancelling = try self.waiting()
        _ = cancelling.cancel(at: start)
        #expect(cancelling.adapterLost() == [.finish(.failure(.adapterLost))])
    }

    @Test func aDeadlineInThePastSendsNothing() throws {
        var connect = try call(seconds: 0)
        #expect(connect.begin(at: start) == [.finish(.failure(.timedOut))])
    }

    private let unanswered = HCICommandFailure(opcode: .leCreateConnectionCancel, reason: .timeout)

    private func initiation() throws -> LEInitiation {
        LEInitiation(peer: try #require(peer))
    }

    private func call(seconds: Int = 10) throws -> LEConnect {
        LEConnect(LEConnect.Call(try initiation(), isExtended: false, deadline: start + .seconds(seconds)))
    }

    private func waiting() throws -> LEConnect {
        var connect = try call()
        _ = connect.begin(at: start)
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

extension LEConnect {
    /// The deadline as a method's result, which the test macros can take from a noncopyable value.
    fileprivate var nextDeadlineNow: BootInstant? {
        mutating get { nextDeadline }
    }
}
