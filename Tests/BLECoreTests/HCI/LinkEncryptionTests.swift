import BLECore
import TestSupport
import Testing

/// The encryption of a link by LE Enable Encryption. Events follow Core Vol 4 Part E, 7.7.8 and 7.7.39.
@Suite struct LinkEncryptionTests {
    private let start = BootInstant(nanoseconds: 7_000_000_000)
    private let handle: ConnectionHandle = 0x40

    /// What has come of an encryption: the actions since its begin.
    private final class Run {
        var encryption = LinkEncryption()
        private(set) var ends: [Result<ConnectionHandle, LinkEncryption.Failure>] = []
        private(set) var withdrawals = 0
        private(set) var number: UInt64 = 0

        func begin(_ handle: ConnectionHandle, at now: BootInstant) {
            take(encryption.begin(handle, at: now))
        }

        func accepted() { take(encryption.commandFinished(number, nil)) }

        func refused(_ reason: HCICommandFailure.Reason) {
            take(encryption.commandFinished(number, HCICommandFailure(opcode: .leEnableEncryption, reason: reason)))
        }

        func event(_ hex: String) throws {
            let bytes = try Hex.decode(hex)
            switch try HCIEvent(bytes.span) {
            case .encryptionChange(let change): take(encryption.received(change))
            case .encryptionKeyRefresh(let refresh): take(encryption.received(refresh))
            case .disconnectionComplete(let end): take(encryption.linkEnded(end.handle, end.reason))
            default: Issue.record("\(hex)")
            }
        }

        func take(_ actions: [LinkEncryption.Action]) {
            for action in actions {
                switch action {
                case .send(_, let number): self.number = number
                case .withdraw: withdrawals += 1
                case .finish(let result): ends.append(result)
                }
            }
        }
    }

    @Test(arguments: ["08 04 00 4000 01", "08 04 00 40f0 01", "30 03 00 4000"])
    func theEventOfTheLinkProvesTheEncryption(event: String) throws {
        let run = Run()
        let actions = run.encryption.begin(handle, at: start)
        #expect(actions == [.send(handle, number: 1)])
        let deadline = run.encryption.nextDeadline
        #expect(deadline == start + .seconds(5))
        run.take(run.encryption.commandFinished(1, nil))
        #expect(run.ends.isEmpty, "the controller has accepted it, no more")
        try run.event(event)
        #expect(run.ends == [.success(handle)])
        try run.event(event)
        #expect(run.ends.count == 1)
        let after = run.encryption.nextDeadline
        #expect(after == nil)
    }

    @Test(.row("S19"), arguments: ["08 04 00 4100 01", "30 03 00 4100", "08 04 06 4100 00", "05 04 00 4100 13"])
    func whatIsReportedOfAnotherLinkIsNotMeant(event: String) throws {
        let run = Run()
        run.begin(handle, at: start)
        run.accepted()
        try run.event(event)
        #expect(run.ends.isEmpty)
        try run.event("08 04 00 4000 01")
        #expect(run.ends == [.success(handle)])
    }

    @Test(.row("S19")) func whatIsReportedBeforeTheResponseIsAboutAnotherCommand() throws {
        let run = Run()
        run.begin(handle, at: start)
        // The kernel has encrypted the link for a Security Request: its key may be another one.
        try run.event("08 04 00 4000 01")
        #expect(run.ends.isEmpty)
        run.accepted()
        try run.event("30 03 00 4000")
        #expect(run.ends == [.success(handle)])
    }

    @Test func failuresAreReportedAsTheControllerHasThem() throws {
        let cases: [(event: String, failure: LinkEncryption.Failure)] = [
            ("08 04 06 4000 00", .failed(.keyMissing)), ("08 04 00 4000 00", .failed(nil)),
            ("30 03 25 4000", .failed(.encryptionModeNotAcceptable)), ("05 04 00 4000 3d", .linkLost(.micFailure)),
            ("05 04 00 4000 08", .linkLost(.connectionTimeout)),
        ]
        for (event, failure) in cases {
            let run = Run()
            run.begin(handle, at: start)
            run.accepted()
            try run.event(event)
            #expect(run.ends == [.failure(failure)], "\(event)")
            try run.event("08 04 00 4000 01")
            #expect(run.ends.count == 1, "late")
        }
    }

    @Test func aRefusedCommandEndsIt() {
        for reason: HCICommandFailure.Reason in [.status(.commandDisallowed), .notSent(errno: 1), .timeout] {
            let run = Run()
            run.begin(handle, at: start)
            run.refused(reason)
            let failure = HCICommandFailure(opcode: .leEnableEncryption, reason: reason)
            #expect(run.ends == [.failure(.refused(failure))])
            #expect(run.withdrawals == 0)
        }
    }

    @Test(.row("S19")) func theEndOfTheLinkEndsItInEachPhase() throws {
        let waiting = Run()
        waiting.begin(handle, at: start)
        try waiting.event("05 04 00 4000 13")
        #expect(waiting.ends == [.failure(.linkLost(.remoteUserTerminated))])
        #expect(waiting.withdrawals == 1, "the command was not sent, perhaps")
        // Its end was lost, and there is another link with its handle.
        let reused = Run()
        reused.begin(handle, at: start)
        reused.accepted()
        reused.take(reused.encryption.linkBegan(0x41))
        #expect(reused.ends.isEmpty)
        reused.take(reused.encryption.linkBegan(handle))
        try reused.event("08 04 00 4000 01")
        #expect(reused.ends == [.failure(.linkLost(nil))])
        let gone = Run()
        gone.begin(handle, at: start)
        gone.accepted()
        gone.take(gone.encryption.adapterLost())
        #expect(gone.ends == [.failure(.linkLost(nil))])
        #expect(gone.withdrawals == 0)
    }

    @Test func itEndsAtItsDeadlineOrWhenItIsCancelled() throws {
        let silent = Run()
        silent.begin(handle, at: start)
        silent.accepted()
        silent.take(silent.encryption.timePassed(start + .milliseconds(4_999)))
        #expect(silent.ends.isEmpty)
        silent.take(silent.encryption.timePassed(start + .seconds(5)))
        try silent.event("08 04 00 4000 01")
        #expect(silent.ends == [.failure(.timedOut)])
        let cancelled = Run()
        cancelled.begin(handle, at: start)
        cancelled.take(cancelled.encryption.cancel())
        cancelled.take(cancelled.encryption.cancel())
        #expect(cancelled.ends == [.failure(.cancelled)])
        #expect(cancelled.withdrawals == 1)
    }

    @Test func aLateResponseEndsNoOtherEncryption() throws {
        let run = Run()
        run.begin(handle, at: start)
        let first = run.number
        run.take(run.encryption.cancel())
        run.begin(0x41, at: start)
        run.take(run.encryption.commandFinished(first, nil))
        try run.event("08 04 00 4100 01")
        #expect(run.ends == [.failure(.cancelled)], "its own command has no response yet")
        run.accepted()
        try run.event("08 04 00 4100 01")
        #expect(run.ends == [.failure(.cancelled), .success(0x41)])
    }

    @Test func oneLinkIsEncryptedAtATime() {
        let run = Run()
        run.begin(handle, at: start)
        let actions = run.encryption.begin(0x41, at: start)
        #expect(actions == [.finish(.failure(.busy))])
        run.accepted()
        #expect(run.ends.isEmpty)
    }
}
