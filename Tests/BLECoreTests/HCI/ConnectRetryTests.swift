import BLECore
import TestSupport
import Testing

@Suite struct ConnectRetryTests {
    private let start = BootInstant(nanoseconds: 7_000_000_000)
    private let handle: ConnectionHandle = 0x40

    private func retry(for time: Duration? = .seconds(10)) -> ConnectRetry {
        ConnectRetry(until: time.map { start + $0 }, at: start)
    }

    /// The second from which on the steps begin.
    private func later(_ seconds: Int) -> BootInstant { start + .seconds(seconds) }

    /// Where only this program has missed the beginning of a link, the kernel has it.
    @Test(.row("W52")) func aLinkWhoseBeginningWasMissedIsAttachedTo() {
        for hasLink in [true, false] {
            var retry = ConnectRetry(until: start + .seconds(10), at: start)
            _ = retry.begin(mayCommand: true, at: start)
            let step = retry.notInitiated(.endUnreported(.timedOut), hasLink: hasLink, at: start)
            #expect(step == (hasLink ? .attach(nil, until: start + .seconds(10)) : .peerNotHeard))
        }
    }

    @Test func aLinkIsInitiatedAndASocketAttachedToIt() {
        var retry = retry()
        #expect(retry.begin(mayCommand: true, at: start) == .initiate)
        #expect(retry.initiated(handle, at: later(1)) == .attach(handle, until: later(10)))
        var late = self.retry()
        _ = late.begin(mayCommand: true, at: start)
        #expect(late.initiated(handle, at: later(9)) == .attach(handle, until: later(11)), "2 s at least")
    }

    @Test func aLinkThatIsThereIsAttachedTo() {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        #expect(retry.notInitiated(nil, hasLink: true, at: start) == .attach(nil, until: later(10)))

        // It went meanwhile: initiate again, in the last attempt ask the kernel.
        var gone = self.retry()
        _ = gone.begin(mayCommand: true, at: start)
        #expect(gone.notInitiated(.failed(.connectionAlreadyExists), hasLink: false, at: start) == .initiate)
        #expect(gone.notInitiated(nil, hasLink: false, at: start) == .initiate)
        #expect(gone.notInitiated(nil, hasLink: false, at: start) == .initiate)
        #expect(gone.notInitiated(nil, hasLink: false, at: start) == .attach(nil, until: later(10)))
    }

    @Test(.row("W41", "L03")) func aLinkThatIsNotEstablishedIsRetriedThreeTimesWithGrowingPauses() {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        let failure = Initiator.Failure.failed(.connectionFailedToBeEstablished)
        for pause: Duration in [.milliseconds(250), .milliseconds(500), .seconds(1)] {
            #expect(retry.notInitiated(failure, hasLink: false, at: start) == .pause(until: start + pause))
            #expect(retry.paused() == .initiate)
        }
        #expect(retry.notInitiated(failure, hasLink: false, at: start) == .fail)

        var late = self.retry()
        _ = late.begin(mayCommand: true, at: start)
        #expect(late.notInitiated(failure, hasLink: false, at: later(10)) == .fail, "the time is over")
    }

    /// The kernel's first procedure on the link, the exchange of features, ends with that status: its socket fails with
    /// ENOSYS, and the controller may have the link still.
    @Test(.row("W41")) func aLinkThatFailsAtItsFeaturesIsRetriedToo() {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        for pause: Duration in [.milliseconds(250), .milliseconds(500), .seconds(1)] {
            _ = retry.initiated(0x40, at: start)
            #expect(retry.notAttached(.notEstablished, end: nil, at: start) == .disconnect(0x40))
            #expect(retry.disconnected(at: start) == .pause(until: start + pause))
            #expect(retry.paused() == .initiate)
        }
        _ = retry.initiated(0x40, at: start)
        #expect(retry.notAttached(.notEstablished, end: .connectionFailedToBeEstablished, at: start) == .fail)
    }

    /// Its peer waits for a response to what the kernel has dropped, and would end the link after 30 s.
    @Test(.row("W44")) func aLinkThatLostARequestIsMadeAgainOnce() {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        #expect(retry.initiated(handle, hasLostRequest: true, at: later(1)) == .disconnect(handle))
        #expect(retry.disconnected(at: later(2)) == .initiate)
        #expect(retry.attemptNumber == 1, "it has not failed")
        #expect(retry.initiated(handle, hasLostRequest: true, at: later(3)) == .attach(handle, until: later(10)))
        // Also in a later turn.
        retry.beginTurn(at: later(4))
        _ = retry.begin(mayCommand: true, at: later(4))
        #expect(retry.initiated(handle, hasLostRequest: true, at: later(5)) == .attach(handle, until: later(10)))

        var late = self.retry()
        _ = late.begin(mayCommand: true, at: start)
        #expect(late.initiated(handle, hasLostRequest: true, at: later(8)) == .attach(handle, until: later(10)))

        var slow = self.retry()
        _ = slow.begin(mayCommand: true, at: start)
        #expect(slow.initiated(handle, hasLostRequest: true, at: later(7)) == .disconnect(handle))
        #expect(slow.disconnected(at: later(10)) == .peerNotHeard)
    }

    @Test(arguments: [
        (Initiator.Failure.busy, ConnectRetry.Step.fail), (.cancelled, .fail), (.adapterLost, .fail),
        (.timedOut, .peerNotHeard), (.cancelUnconfirmed(.timedOut), .fail), (.failed(.connectionLimitExceeded), .fail),
        (.refused(HCICommandFailure(opcode: .leCreateConnection, reason: .timeout)), .fail),
    ])
    func otherFailuresEndTheConnect(failure: Initiator.Failure, step: ConnectRetry.Step) {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        #expect(retry.notInitiated(failure, hasLink: false, at: start) == step)
    }

    @Test func aLinkWithoutASocketIsDisconnectedBeforeTheNextAttempt() {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        _ = retry.initiated(handle, at: start)
        #expect(retry.notAttached(.notEstablished, end: nil, at: start) == .disconnect(handle))
        #expect(retry.disconnected(at: start) == .pause(until: start + .milliseconds(250)))
        #expect(retry.paused() == .initiate)
        _ = retry.initiated(handle, at: start)
        #expect(
            retry.notAttached(.other, end: .connectionFailedToBeEstablished, at: start)
                == .pause(until: start + .milliseconds(500)))
        #expect(retry.paused() == .initiate)
        _ = retry.initiated(handle, at: start)
        #expect(
            retry.notAttached(.notEstablished, end: .connectionTimeout, at: start)
                == .pause(until: start + .seconds(1)))
        #expect(retry.paused() == .initiate)
        _ = retry.initiated(handle, at: start)
        #expect(retry.notAttached(.notEstablished, end: .connectionTimeout, at: start) == .fail)

        var final = self.retry()
        _ = final.begin(mayCommand: true, at: start)
        _ = final.initiated(handle, at: start)
        #expect(final.notAttached(.other, end: nil, at: start) == .disconnect(handle))
        #expect(final.disconnected(at: start) == .fail)
    }

    @Test(.row("O14")) func afterATakenChannelTheKernelConnects() {
        for (failure, step) in [(.adapterDown, .fail), (.timedOut, .failChannelTaken)]
            as [(ConnectRetry.AttachFailure, ConnectRetry.Step)]
        {
            var retry = retry()
            _ = retry.begin(mayCommand: true, at: start)
            _ = retry.initiated(handle, at: start)
            #expect(retry.notAttached(.busy, end: nil, at: start) == .disconnect(handle))
            #expect(retry.disconnected(at: start) == .connectByKernel(scanning: true))
            #expect(retry.kernelFailed(.busy, at: start) == .pause(until: start + .milliseconds(200)))
            #expect(retry.paused() == .connectByKernel(scanning: true))
            #expect(retry.kernelFailed(failure, at: start) == step)
        }
    }

    @Test(.row("O14")) func aLinkThatWasThereAndIsBusyIsTriedAgainAfterPauses() {
        var retry = retry()
        _ = retry.begin(mayCommand: true, at: start)
        for pause: Duration in [.milliseconds(250), .milliseconds(500), .seconds(1)] {
            _ = retry.notInitiated(nil, hasLink: true, at: start)
            #expect(retry.notAttached(.busy, end: nil, at: start) == .pause(until: start + pause))
            #expect(retry.paused() == .initiate)
        }
        _ = retry.notInitiated(nil, hasLink: true, at: start)
        #expect(retry.notAttached(.busy, end: nil, at: start) == .fail)
    }

    @Test(.row("O14")) func theKernelIsAskedThreeTimesWithGrowingPauses() {
        var retry = retry()
        #expect(retry.begin(mayCommand: false, at: start) == .connectByKernel(scanning: false))
        #expect(retry.kernelFailed(.busy, at: start) == .pause(until: start + .milliseconds(200)))
        #expect(retry.paused() == .connectByKernel(scanning: false))
        #expect(retry.kernelFailed(.notEstablished, at: start) == .pause(until: start + .milliseconds(400)))
        #expect(retry.kernelFailed(.busy, at: start) == .fail)

        var silent = self.retry()
        _ = silent.begin(mayCommand: false, at: start)
        #expect(silent.kernelFailed(.timedOut, at: later(10)) == .peerNotHeard)
    }

    @Test func nothingIsRetriedAfterTheDeadline() {
        var retry = retry()
        #expect(retry.begin(mayCommand: true, at: later(10)) == .tooLate)
        var late = self.retry()
        _ = late.begin(mayCommand: true, at: start)
        _ = late.initiated(handle, at: later(10))
        #expect(late.notAttached(.busy, end: .connectionTimeout, at: later(10)) == .fail)
        var kernel = self.retry()
        _ = kernel.begin(mayCommand: false, at: start)
        #expect(kernel.kernelFailed(.busy, at: later(10)) == .fail)
    }

    @Test(.row("L07")) func onlyAConnectWithoutATimeoutHasMoreTurns() {
        var limited = retry()
        #expect(limited.nextTurn(mayChangeAddress: false, isShared: true, at: start) == .none)
        var endless = retry(for: nil)
        #expect(endless.deadline == later(10))
        #expect(
            endless.nextTurn(mayChangeAddress: false, isShared: false, at: later(10)) == .next(after: nil))
        #expect(
            endless.nextTurn(mayChangeAddress: false, isShared: true, at: later(10)) == .next(after: later(12)),
            "scans listen meanwhile")
        endless.beginTurn(at: later(12))
        #expect(endless.deadline == later(22))
        #expect(endless.attemptNumber == 1)
    }

    /// Each would have its pause in the turn of the other, and scans and advertisements would have none.
    @Test func connectsThatTakeTurnsRestBetweenThem() {
        var endless = retry(for: nil)
        #expect(endless.rest(after: start, isShared: true, at: start) == nil, "the first turn begins at once")
        _ = endless.nextTurn(mayChangeAddress: false, isShared: true, at: later(10))
        #expect(endless.rest(after: later(20), isShared: true, at: later(21)) == later(22))
        #expect(endless.rest(after: later(20), isShared: true, at: later(22)) == nil, "it has rested")
        #expect(endless.rest(after: later(20), isShared: false, at: later(21)) == nil)
        #expect(endless.rest(after: nil, isShared: true, at: later(21)) == nil)
        _ = endless.nextTurn(mayChangeAddress: true, isShared: true, at: later(32))
        #expect(endless.rest(after: later(32), isShared: true, at: later(32)) == nil, "the peer was heard meanwhile")

        var limited = retry()
        _ = limited.nextTurn(mayChangeAddress: false, isShared: true, at: start)
        #expect(limited.rest(after: start, isShared: true, at: start) == nil)
    }

    @Test func aPrivateAddressIsInitiatedToTwiceAsLongEachTime() {
        var retry = retry(for: .seconds(30))
        #expect(retry.attemptDeadline(mayChangeAddress: false, at: start) == later(30))
        #expect(retry.attemptDeadline(mayChangeAddress: true, at: start) == later(5))
        #expect(retry.nextTurn(mayChangeAddress: true, isShared: false, at: later(5)) == .listen)
        retry.beginTurn(at: later(6))
        #expect(retry.attemptDeadline(mayChangeAddress: true, at: later(6)) == later(16))
        #expect(retry.nextTurn(mayChangeAddress: true, isShared: false, at: later(16)) == .listen)
        #expect(retry.attemptDeadline(mayChangeAddress: true, at: later(17)) == later(30), "the connect's own limit")
        #expect(retry.nextTurn(mayChangeAddress: true, isShared: false, at: later(30)) == .none)

        var endless = self.retry(for: nil)
        #expect(endless.nextTurn(mayChangeAddress: true, isShared: true, at: later(99)) == .listen)
    }

    /// A peer that is heard over and over, and never accepts a connection.
    @Test(.row("L07")) func aConnectWithoutATimeoutHasAnyNumberOfTurns() {
        var retry = retry(for: nil)
        for turn in 1...1_000 {
            #expect(retry.nextTurn(mayChangeAddress: true, isShared: false, at: later(turn * 600)) == .listen)
            retry.beginTurn(at: later(turn * 600))
        }
        #expect(retry.attemptDeadline(mayChangeAddress: true, at: later(600_000)) == later(600_010), "the turn's end")
    }

    @Test func keysThatTheKernelDidNotHaveAreLoadedAgainOnce() {
        var retry = retry()
        #expect(retry.keysMissing() == true)
        retry.beginTurn(at: later(1))
        #expect(retry.keysMissing() == false)
    }
}
