import BLECore
import TestSupport
import Testing

/// The sequences that kernels 6.1, 6.12 and 7.2 showed with Bumble as the peer: events by their bytes,
/// commands by name.
@Suite struct PairingExchangeTests {
    // MARK: Success

    @Test func justWorksIsConfirmedAndStored() throws {
        let run = PairingRun()
        run.begin()
        #expect(run.sent == [.setBondable(true)])
        run.finish(.setBondable(true))
        #expect(run.sent == [.pair])
        try run.receive(PairingEvent.confirmation)
        #expect(run.takeQuestions() == [.justWorks])
        run.reply(.yes)
        #expect(run.sent == [.confirm])
        run.finish(.confirm)
        run.encrypt()
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        run.finish(.pair)
        #expect(run.readsSecurity)
        run.secure()
        let outcome = try #require(run.stores)
        #expect(outcome.identity == run.peer && outcome.method == .justWorks && outcome.level == .encrypted)
        #expect(outcome.keySize == 16 && outcome.longTermKeys.count == 1 && outcome.identityResolvingKey == nil)
        #expect(run.sent == [.setBondable(false)] && run.result == nil)
        run.store(true)
        #expect(run.result == .success(outcome))
    }

    @Test(arguments: PairingEvent.questions)
    func eachQuestionIsAskedOnce(
        event: String, question: PairingExchange.Question, reply: PairingExchange.Reply,
        command: PairingExchange.Command?, method: PairingMethod
    ) throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive(event)
        try run.receive(event)
        #expect(run.takeQuestions() == [question])
        run.reply(reply)
        #expect(run.sent == (command.map { [$0] } ?? []))
        run.reply(reply)
        #expect(run.sent.isEmpty)
        try run.endWell()
        #expect(run.stores?.method == method)
    }

    @Test func theKernelReportsInAnyOrder() throws {
        let steps: [(PairingRun) throws -> Void] = [
            { $0.encrypt() }, { try $0.receive(PairingEvent.identity) },
            { try $0.receive(PairingEvent.key(PairingEvent.authenticatedKey)) },
            { $0.finish(.pair, returning: $0.peer) },
        ]
        // The identity comes before the key and the end of Pair Device, at the same socket.
        for order in permutations(of: Array(steps.indices)) where order.last != 1 {
            let run = PairingRun()
            run.beginPairing()
            for step in order {
                #expect(!run.readsSecurity)
                try steps[step](run)
            }
            #expect(run.readsSecurity)
            run.secure()
            #expect(run.stores?.identityResolvingKey != nil, "\(order)")
        }
    }

    @Test func aPrivatePeerIsKnownByItsIdentityAfterwards() throws {
        let run = PairingRun(peer: "62:CC:28:F3:EE:75/random")
        run.beginPairing()
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        run.encrypt()
        run.finish(.pair, returning: PeerID("C6:55:44:33:22:11/random"))
        run.secure()
        #expect(run.stores?.identity == PeerID("C6:55:44:33:22:11/random"))
        #expect(run.stores?.identityResolvingKey?.peer.id == PeerID("C6:55:44:33:22:11/random"))
        run.store(false)
        #expect(run.sentPeers == [ManagementPeer(PeerID("C6:55:44:33:22:11/random")!)])
    }

    @Test func legacyPairingLeavesTwoKeys() throws {
        let run = PairingRun { $0.level = .authenticated }
        run.beginPairing()
        try run.receive(PairingEvent.passkeyRequest)
        run.reply(.passkey(0))
        run.encrypt()
        try run.receive(PairingEvent.key(RecordedKeys.legacyPeripheral))
        try run.receive(PairingEvent.key(RecordedKeys.legacyCentral))
        run.finish(.pair)
        run.secure()
        let outcome = try #require(run.stores)
        #expect(outcome.level == .authenticated && outcome.longTermKeys.map(\.isCentral) == [false, true])
    }

    @Test func aKeyForTheOtherRoleAloneIsAwaited() throws {
        let run = PairingRun()
        run.beginPairing()
        run.encrypt()
        try run.receive(PairingEvent.key(RecordedKeys.legacyPeripheral))
        run.finish(.pair)
        #expect(!run.readsSecurity)
        try run.receive(PairingEvent.key(RecordedKeys.legacyCentral))
        #expect(run.readsSecurity)
    }

    @Test func outOfBandDataAreForThisPairingOnly() throws {
        let values = PairingExchange.OutOfBandValues(
            confirmation: Secret128([UInt8](repeating: 1, count: 16).span)!,
            random: Secret128([UInt8](repeating: 2, count: 16).span)!)
        for isGood in [true, false] {
            let run = PairingRun { $0.outOfBand = values }
            run.begin()
            _ = run.sent
            run.finish(.setBondable(true))
            #expect(run.sent == [.addOutOfBandData(values)])
            run.finish(.addOutOfBandData(values))
            #expect(run.sent == [.pair])
            if isGood {
                try run.endWell()
                #expect(run.stores?.method == .outOfBand)
                _ = run.sent
                run.store(true)
            } else {
                run.finish(.pair, failing: .authenticationFailed)
                #expect(run.sent == [.removeKeys(disconnects: false)])
                run.finish(.removeKeys(disconnects: false))
            }
            #expect(run.sent == [.clearOutOfBandData])
            run.finish(.clearOutOfBandData)
            #expect(run.sent == (isGood ? [] : [.setBondable(false)]))
        }
    }

    // MARK: Keys that the kernel has

    @Test func aKeyIsReplacedOnDemand() {
        let run = PairingRun { $0.replacedBond = $0.peer }
        run.begin()
        _ = run.sent
        run.finish(.setBondable(true))
        #expect(run.sent == [.removeKeys(disconnects: false)])
        run.finish(.removeKeys(disconnects: false), failing: .notPaired)
        #expect(run.sent == [.pair])
        run.finish(.pair, failing: .alreadyPaired)
        run.leave()
        #expect(run.result == .failure(.command(.pairDevice, .alreadyPaired)))
    }

    @Test func aKeyThatIsNoBondIsRemovedOnce() throws {
        let run = PairingRun()
        run.beginPairing()
        run.finish(.pair, failing: .alreadyPaired)
        #expect(run.sent == [.removeKeys(disconnects: false)])
        run.finish(.removeKeys(disconnects: false))
        #expect(run.sent == [.pair])
        try run.endWell()
        #expect(run.stores != nil)
    }

    /// The peer has sent the identity of another bond before the kernel refuses because of a key.
    @Test(.row("S08")) func aKeyOfAnotherBondIsNotRemoved() throws {
        let other = PeerID("C6:55:44:33:22:11/random")!
        let run = PairingRun(peer: "62:CC:28:F3:EE:75/random") { $0.otherBonds = [other] }
        run.beginPairing()
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        run.finish(.pair, failing: .alreadyPaired)
        #expect(run.sent.allSatisfy { $0.code != .unpairDevice })
        run.leave()
        #expect(run.sent.allSatisfy { $0.code != .unpairDevice })
        #expect(run.result == .failure(.command(.pairDevice, .alreadyPaired)))
    }

    /// A pairing that is repeated before Pair Device ends.
    @Test func theLastKeyOfEachRoleCounts() throws {
        let run = PairingRun()
        run.beginPairing()
        for _ in 0..<100 {
            try run.receive(PairingEvent.key(RecordedKeys.legacyPeripheral))
            try run.receive(PairingEvent.key(RecordedKeys.legacyCentral))
        }
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        try run.receive(PairingEvent.key(RecordedKeys.legacyPeripheral))
        run.encrypt()
        run.finish(.pair)
        run.secure()
        #expect(run.stores?.longTermKeys.map(\.isCentral) == [true, false])
    }

    @Test func aBondIsNotReplacedUnasked() {
        let run = PairingRun { $0.hasBond = true }
        run.beginPairing()
        run.finish(.pair, failing: .alreadyPaired)
        run.leave()
        #expect(run.result == .failure(.command(.pairDevice, .alreadyPaired)))
        #expect(!run.sent.contains(.removeKeys(disconnects: false)))
    }

    @Test func anEncryptedLinkIsLeftAlone() {
        let run = PairingRun { $0.replacedBond = $0.peer }
        run.begin(level: 2, keySize: 16)
        #expect(run.sent.isEmpty && run.result == .failure(.alreadyEncrypted))
    }

    /// The kernel succeeds at once, and does nothing, where it has no Security Manager for the adapter.
    @Test func successWithoutEncryptionIsNone() {
        let run = PairingRun()
        run.beginPairing()
        run.finish(.pair)
        run.passDeadline()
        run.leave()
        #expect(run.result == .failure(.notEncrypted))
    }

    @Test(.row("S09")) func theIdentityOfAnotherBondIsNotTaken() throws {
        let run = PairingRun(peer: "62:CC:28:F3:EE:75/random") {
            $0.otherBonds = [PeerID("C6:55:44:33:22:11/random")!]
        }
        run.beginPairing()
        run.encrypt()
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        run.finish(.pair, returning: PeerID("C6:55:44:33:22:11/random"))
        #expect(run.sent == [.disconnect])
        run.finish(.disconnect)
        #expect(run.sent.last == .setBondable(false))
        run.leave()
        #expect(run.result == .failure(.identityTaken))
    }

    /// Without a link, Pair Device has the kernel look for the peer.
    @Test func aPairingWhoseLinkIsGoneIsCancelled() {
        let run = PairingRun()
        run.beginPairing()
        run.interrupt(.link)
        #expect(run.sent.isEmpty)
        run.passDeadline()
        #expect(run.sent == [.cancelPairing])
        run.finish(.pair, failing: .cancelled)
        run.leave()
        #expect(run.result == .failure(.linkLost))
    }

    /// The kernel has the link of a bonded peer under its identity; on the air it uses a private address.
    @Test func aBondedPrivatePeerIsPairedByItsIdentity() throws {
        let onAir = try #require(PeerID("62:CC:28:F3:EE:75/random"))
        let run = PairingRun {
            $0.onAir = onAir
            $0.hasBond = true
            $0.replacedBond = $0.peer
        }
        run.begin()
        run.finish(.setBondable(true))
        #expect(run.sent.last == .removeKeys(disconnects: false) && run.sentPeers == [ManagementPeer(run.peer)])
        run.finish(.removeKeys(disconnects: false))
        #expect(run.sent == [.pair] && run.sentPeers == [ManagementPeer(run.peer)])
        try run.receive(PairingEvent.passkeyRequest)
        run.reply(.passkey(1))
        // By either name the kernel may report the new key, which names the address on the air.
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        try run.endWell()
        #expect(run.stores?.identity == run.peer && run.stores?.identityResolvingKey != nil)
    }

    /// The kernel has the link under the private address. A load of the lists after it came up has given the kernel the
    /// keys of the bond, for which it refuses Pair Device.
    @Test func theKeysOfAReplacedBondAreRemovedByItsIdentityToo() throws {
        let identity = try #require(PeerID("C6:55:44:33:22:11/random"))
        let run = PairingRun(peer: "62:CC:28:F3:EE:75/random") {
            $0.onAir = identity
            $0.hasBond = true
            $0.replacedBond = identity
        }
        run.begin()
        run.finish(.setBondable(true))
        #expect(run.sent.last == .removeKeys(disconnects: false) && run.sentPeers == [ManagementPeer(run.peer)])
        run.finish(.removeKeys(disconnects: false), failing: .notPaired)
        #expect(run.sent == [.removeReplacedBond] && run.sentPeers == [ManagementPeer(identity)])
        run.finish(.removeReplacedBond)
        #expect(run.sent == [.pair] && run.sentPeers == [ManagementPeer(run.peer)])
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        run.encrypt()
        run.finish(.pair, returning: identity)
        run.secure()
        #expect(run.stores?.identity == identity && run.stores?.identityResolvingKey != nil)
    }

    /// Somebody else's pairing with the peer may be under way when this one begins.
    @Test func keysFromBeforePairDeviceAreAnotherPairings() throws {
        let run = PairingRun()
        run.begin()
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        run.finish(.setBondable(true))
        try run.receive(PairingEvent.identity)
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        run.finish(.pair, failing: .alreadyPaired)
        run.finish(.removeKeys(disconnects: false))
        _ = run.sent
        try run.endWell()
        let outcome = try #require(run.stores)
        #expect(outcome.longTermKeys == [RecordedBonds.secureConnections] && outcome.identityResolvingKey == nil)
    }

    /// The kernel's hint is that of each key.
    @Test(.row("S10")) func keysThatAreNotForStorageAreNotStored() throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive("18000000 1e00 00 000000000000 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        for kind in ["00", "01"] {
            try run.receive("19000000 1900 00 1122334455c6 02 \(kind) 404142434445464748494a4b4c4d4e4f")
        }
        try run.endWell()
        let outcome = try #require(run.stores)
        #expect(outcome.identityResolvingKey == nil && outcome.signatureKey == nil && outcome.peerSignatureKey == nil)
    }

    @Test func aLateReplyIsNotTakenForAnotherQuestion() throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive(PairingEvent.confirmation)
        let first = run.lastQuestion
        try run.receive(PairingEvent.comparison)
        #expect(run.takeQuestions() == [.justWorks, .compare(123_456)])
        run.reply(.yes, to: first)
        #expect(run.sent.isEmpty)
        run.reply(.yes)
        #expect(run.sent == [.confirm])
        // Nor does the next exchange use a number again.
        var next = PairingExchange(after: run.lastQuestion)
        _ = next.begin(PairingExchange.Demand(peer: run.peer, capability: .keyboardDisplay, deadline: run.now))
        #expect(next.lastQuestion == run.lastQuestion)
    }

    /// The owner then knows that peers may still bond.
    @Test func whatIsLeftBondableIsKnown() throws {
        for isRefused in [true, false] {
            let run = PairingRun()
            #expect(!run.mayBeBondable)
            run.begin()
            #expect(run.mayBeBondable)
            run.finish(.setBondable(true))
            run.finish(.pair, failing: .busy)
            if isRefused { run.finish(.setBondable(false), failing: .busy) } else { run.finish(.setBondable(false)) }
            #expect(run.result == .failure(.command(.pairDevice, .busy)) && run.mayBeBondable == isRefused)
        }
    }

    // MARK: Refusals

    @Test func withoutProtectionNothingIsPaired() throws {
        for level in [BondRecord.Level.authenticated, .secureConnections] {
            let run = PairingRun { $0.level = level }
            run.beginPairing()
            try run.receive(PairingEvent.confirmation)
            #expect(run.takeQuestions().isEmpty && run.sent == [.reject])
            run.finish(.pair, failing: .authenticationFailed)
            run.leave()
            #expect(run.result == .failure(.notProtected) && !run.hasDisconnected)
        }
    }

    @Test(
        arguments: [
            (PairingEvent.confirmation, .justWorks, .no, .reject),
            (PairingEvent.comparison, .compare(123_456), .no, .reject),
            (PairingEvent.passkeyRequest, .enter, .no, .enterNothing),
            (PairingEvent.passkeyNotification, .show(123_456), .no, .enterNothing),
            // Replies that do not fit the question.
            (PairingEvent.passkeyRequest, .enter, .passkey(1_000_000), .enterNothing),
            (PairingEvent.passkeyRequest, .enter, .yes, .enterNothing),
            (PairingEvent.comparison, .compare(123_456), .passkey(123_456), .reject),
        ] as [(String, PairingExchange.Question, PairingExchange.Reply, PairingExchange.Command)])
    func aRejectionByTheAgentKeepsTheLink(
        event: String, question: PairingExchange.Question, reply: PairingExchange.Reply,
        command: PairingExchange.Command
    ) throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive(event)
        run.reply(reply)
        #expect(run.sent == [command])
        run.finish(.pair, failing: .authenticationFailed)
        run.leave()
        #expect(run.result == .failure(.refusedHere(question)) && !run.hasDisconnected)
    }

    /// The kernel has one status for all of them.
    @Test(
        arguments: [
            (nil, nil, .refusedByPeer), (PairingEvent.confirmation, .yes, .refusedByPeer),
            (PairingEvent.passkeyRequest, .passkey(1), .wrongPasskey),
            // It has not waited for the passkey.
            (PairingEvent.passkeyRequest, nil, .refusedByPeer),
            (PairingEvent.passkeyNotification, nil, .passkeyNotEntered),
            (PairingEvent.passkeyNotification, .yes, .passkeyNotEntered),
            (PairingEvent.comparison, .yes, .numberRejected), (PairingEvent.comparison, nil, .numberRejected),
        ] as [(String?, PairingExchange.Reply?, PairingExchange.Failure)])
    func aRejectionByThePeerEndsTheLinkAndIsIdentifiedByItsQuestion(
        event: String?, reply: PairingExchange.Reply?, failure: PairingExchange.Failure
    ) throws {
        for isSeenFirst in [true, false] {
            let run = PairingRun()
            run.beginPairing()
            if let event { try run.receive(event) }
            if let reply { run.reply(reply) }
            if isSeenFirst { run.interrupt(.link) }
            run.finish(.pair, failing: .authenticationFailed)
            run.leave()
            #expect(run.result == .failure(failure) && failure.isRefusalByPeer)
        }
    }

    @Test(
        arguments: [
            (.timeout, .timedOut(nil)), (.disconnected, .linkLost), (.notConnected, .linkLost), (.failed, .linkLost),
            (.busy, .command(.pairDevice, .busy)), (.notPowered, .command(.pairDevice, .notPowered)),
            (.permissionDenied, .command(.pairDevice, .permissionDenied)),
        ] as [(ManagementStatus, PairingExchange.Failure)])
    func eachStatusHasItsFailure(status: ManagementStatus, failure: PairingExchange.Failure) {
        let run = PairingRun()
        run.beginPairing()
        run.finish(.pair, failing: status)
        run.leave()
        #expect(run.result == .failure(failure))
    }

    @Test func withoutRightsNothingIsSentToThePeer() {
        let run = PairingRun()
        run.begin()
        _ = run.sent
        run.finish(.setBondable(true), failing: .permissionDenied)
        #expect(run.sent == [.setBondable(false)])
        run.finish(.setBondable(false), failing: .permissionDenied)
        #expect(run.result == .failure(.command(.setBondable, .permissionDenied)))
    }

    // MARK: Keys that are not good enough

    @Test(
        arguments: [
            (PairingEvent.justWorksKey, .authenticated, .keyTooWeak(.encrypted)),
            (RecordedKeys.legacyCentral, .secureConnections, .keyTooWeak(.authenticated)),
            (PairingEvent.debugKey, .encrypted, .keyTooWeak(nil)),
            (PairingEvent.shortKey, .encrypted, .keyTooShort(7)),
        ] as [([UInt8], BondRecord.Level, PairingExchange.Failure)])
    func aKeyBelowTheDemandIsRemovedAndTheLinkDropped(
        key: [UInt8], level: BondRecord.Level, failure: PairingExchange.Failure
    ) throws {
        let run = PairingRun { $0.level = level }
        run.beginPairing()
        run.encrypt()
        try run.receive(PairingEvent.key(key))
        run.finish(.pair)
        run.secure()
        #expect(run.stores == nil)
        run.leave()
        #expect(run.result == .failure(failure) && run.hasDisconnected)
    }

    @Test(.row("S17")) func theSocketMustBeEncrypted() throws {
        for (level, keySize, failure) in [(1, 16, .notEncrypted), (2, 0, .notEncrypted), (nil, 0, .linkLost)]
            as [(UInt8?, UInt8, PairingExchange.Failure)]
        {
            let run = PairingRun()
            run.beginPairing()
            run.encrypt()
            try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
            run.finish(.pair)
            run.secure(level: level, keySize: keySize)
            run.leave()
            #expect(run.result == .failure(failure) && run.hasDisconnected)
        }
    }

    @Test func keysAreAwaitedForASecond() throws {
        let run = PairingRun()
        run.beginPairing()
        run.encrypt()
        run.finish(.pair)
        #expect(run.deadline == run.now + .seconds(1))
        run.passDeadline()
        run.secure()
        run.leave()
        #expect(run.result == .failure(.noKey) && !run.hasDisconnected)
    }

    @Test func encryptionIsAwaitedForASecond() throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        run.finish(.pair)
        run.passDeadline()
        run.leave()
        #expect(run.result == .failure(.notEncrypted) && run.hasDisconnected)
    }

    /// Without Encryption Change, which only a raw socket reports, the socket's level alone decides.
    @Test func encryptionMayBeUnreported() throws {
        let run = PairingRun { $0.followsEncryption = false }
        run.beginPairing()
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        run.finish(.pair)
        #expect(run.readsSecurity)
    }

    @Test func aPrivatePeerWithoutIdentityStaysEncryptedAndHasNoBond() throws {
        let run = PairingRun(peer: "62:CC:28:F3:EE:75/random")
        run.beginPairing()
        run.encrypt()
        try run.receive(
            "0a000000 2500 00 75eef328cc62 02 03 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e")
        run.finish(.pair)
        run.passDeadline()
        run.secure()
        run.leave()
        #expect(run.result == .failure(.noIdentity) && !run.hasDisconnected)
    }

    @Test func aBondThatIsNotStoredIsUndone() throws {
        let run = PairingRun()
        run.beginPairing()
        try run.endWell()
        _ = run.sent
        run.store(false)
        #expect(run.sent == [.removeKeys(disconnects: true)])
        run.finish(.removeKeys(disconnects: true))
        run.finish(.setBondable(false))
        #expect(run.result == .failure(.notStored))
    }

    // MARK: Ends from outside

    @Test(.row("S14")) func theDeadlineRejectsAnOpenQuestion() throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive(PairingEvent.comparison)
        run.passDeadline()
        #expect(run.sent == [.reject])
        run.finish(.pair, failing: .authenticationFailed)
        run.leave()
        #expect(run.result == .failure(.timedOut(.compare(123_456))) && !run.hasDisconnected)
    }

    /// The kernel gives up after 30 s, and ends the link.
    @Test(.row("S14")) func aQuestionWithoutReplyIsRejectedBeforeTheKernelGivesUp() throws {
        let begin = BootInstant(nanoseconds: 5_000_000_000)
        let run = PairingRun { $0.deadline = begin + .seconds(120) }
        run.beginPairing()
        #expect(run.deadline == begin + .seconds(120))
        try run.receive(PairingEvent.comparison)
        #expect(run.deadline == begin + .seconds(25))
        run.passDeadline()
        #expect(run.sent == [.reject])
        run.finish(.pair, failing: .authenticationFailed)
        run.leave()
        #expect(run.result == .failure(.timedOut(.compare(123_456))) && !run.hasDisconnected)
        // With the reply, and where the peer's user has to act, it lasts as long as was asked for.
        let other = PairingRun { $0.deadline = begin + .seconds(120) }
        other.beginPairing()
        try other.receive(PairingEvent.comparison)
        other.reply(.yes)
        #expect(other.deadline == begin + .seconds(120))
        try other.receive(PairingEvent.passkeyNotification)
        #expect(other.deadline == begin + .seconds(120))
    }

    @Test(.row("S12")) func theDeadlineCancelsWhereThePeerIsSilent() {
        let run = PairingRun()
        run.beginPairing()
        run.passDeadline()
        #expect(run.sent == [.cancelPairing])
        run.finish(.pair, failing: .cancelled)
        run.leave()
        #expect(run.result == .failure(.timedOut(nil)))
    }

    @Test func aKernelThatDoesNotEndThePairingIsLeft() throws {
        let run = PairingRun()
        run.beginPairing()
        try run.receive(PairingEvent.passkeyRequest)
        run.cancel()
        #expect(run.sent == [.enterNothing])
        run.passDeadline()
        #expect(run.sent == [.cancelPairing])
        run.passDeadline()
        run.leave()
        #expect(run.result == .failure(.cancelled))
    }

    @Test func questionsAfterTheEndAreRejected() throws {
        let run = PairingRun()
        run.beginPairing()
        run.cancel()
        _ = run.sent
        try run.receive(PairingEvent.confirmation)
        #expect(run.sent == [.reject] && run.takeQuestions().isEmpty)
        run.reply(.yes)
        #expect(run.sent.isEmpty)
    }

    @Test func aSuccessAfterTheCancelIsUndone() throws {
        let run = PairingRun()
        run.beginPairing()
        run.encrypt()
        try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        run.cancel()
        run.finish(.pair)
        #expect(run.stores == nil)
        run.leave()
        #expect(run.result == .failure(.cancelled) && run.hasDisconnected)
    }

    /// From each state: what ends it, and with which failure.
    @Test(.row("S15"), arguments: 0..<5, Interruption.allCases)
    func eachStateEndsOnce(steps: Int, interruption: Interruption) throws {
        let run = PairingRun()
        run.begin()
        if steps > 0 { run.finish(.setBondable(true)) }
        if steps > 1 { try run.receive(PairingEvent.passkeyRequest) }
        if steps > 2 { run.finish(.pair) }
        if steps > 3 {
            run.encrypt()
            try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
        }
        _ = run.sent
        run.interrupt(interruption)
        for _ in 0..<2 { run.passDeadline() }
        run.finish(.setBondable(true))
        run.leave()
        let failure: PairingExchange.Failure =
            switch interruption {
            case .cancel: .cancelled
            case .link: .linkLost
            case .adapter: .adapterLost
            }
        #expect(run.results == [.failure(failure)])
        run.interrupt(interruption)
        #expect(run.results.count == 1 && !run.isRunning)
    }

    @Test func aStoredBondIsNotUndone() throws {
        for interruption in Interruption.allCases {
            let run = PairingRun()
            run.beginPairing()
            try run.endWell()
            run.interrupt(interruption)
            run.store(true)
            run.leave()
            #expect(run.results.count == 1)
            #expect(throws: Never.self) { try run.result?.get() }
        }
    }

    // MARK: Others

    @Test func otherPeersAreNotThisExchanges() throws {
        let run = PairingRun()
        run.beginPairing()
        for event in [
            "0f000000 0c00 060504030201 01 01 00000000", "10000000 0700 060504030201 01",
            "17000000 0c00 060504030201 01 40e20100 00", "0c000000 0800 060504030201 01 04",
            "0a000000 2500 01 060504030201 01 03 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e",
        ] {
            #expect(try !run.receive(event))
        }
        #expect(run.takeQuestions().isEmpty && run.sent.isEmpty)
    }

    @Test func questionsOfOtherPairingsAreRejected() throws {
        for (event, code) in [
            (PairingEvent.confirmation, 0x1D), (PairingEvent.comparison, 0x1D), (PairingEvent.passkeyRequest, 0x1F),
            (PairingEvent.passkeyNotification, 0x1F),
        ] as [(String, UInt8)] {
            let refusal = try #require(PairingExchange.refusal(of: ManagementEvent(bytes(event).span).content))
            let packet = refusal.command.packet(refusal.peer, .noInputNoOutput, adapter: 0)
            #expect(packet.bytes == [code] + bytes("00 0000 0700 1122334455c6 02"))
        }
        let other = try ManagementEvent(bytes(PairingEvent.disconnected).span).content
        #expect(PairingExchange.refusal(of: other) == nil)
    }

    /// By the layouts of the kernel's `mgmt.h`.
    @Test(
        arguments: [
            (.setBondable(true), "09000000 0100 01"),
            (.removeKeys(disconnects: true), "1b000000 0800 1122334455c6 02 01"),
            (.removeReplacedBond, "1b000000 0800 1122334455c6 02 00"),
            (.clearOutOfBandData, "22000000 0700 00000000000000"), (.pair, "19000000 0800 1122334455c6 02 04"),
            (.cancelPairing, "1a000000 0700 1122334455c6 02"), (.confirm, "1c000000 0700 1122334455c6 02"),
            (.enter(123_456), "1e000000 0b00 1122334455c6 02 40e20100"),
        ] as [(PairingExchange.Command, String)])
    func commandsHaveTheKernelsLayout(command: PairingExchange.Command, expected: String) {
        let peer = ManagementPeer(PeerID("C6:55:44:33:22:11/random")!)
        let packet = command.packet(peer, .keyboardDisplay, adapter: 0)
        #expect(packet.bytes == bytes(expected) && packet.code == command.code.rawValue)
    }

    /// Whatever comes in whatever order: one end, bondable off before it, and nothing stored after a failure.
    @Test func anyOrderEndsOnce() throws {
        for seed in 0..<2_000 {
            var numbers = SeededNumbers(seed: UInt64(seed))
            let run = PairingRun { $0.outOfBand = nil }
            run.begin()
            for _ in 0..<40 { try run.step(&numbers) }
            run.adapterIsLost(numbers.next() % 2 == 0)
            for _ in 0..<4 { run.passDeadline() }
            run.answerAll()
            run.secure()
            run.store(true)
            run.answerAll()
            for _ in 0..<4 { run.passDeadline() }
            run.secure()
            run.answerAll()
            run.store(true)
            run.answerAll()
            #expect(run.results.count == 1 && !run.isRunning, "seed \(seed): \(run.results)")
            if !run.isLost { #expect(!run.isBondable, "seed \(seed)") }
            if case .success? = run.result { #expect(run.hasStored, "seed \(seed)") }
        }
    }
}

/// Events of the management interface, by the layouts of the kernel's `mgmt.h`, with recorded keys.
enum PairingEvent {
    /// The kernel's question, what the agent is asked, its reply, the command, and the method.
    static let questions:
        [(String, PairingExchange.Question, PairingExchange.Reply, PairingExchange.Command?, PairingMethod)] = [
            (confirmation, .justWorks, .yes, .confirm, .justWorks),
            (comparison, .compare(0x0001_E240), .yes, .confirm, .numericComparison),
            (passkeyRequest, .enter, .passkey(123_456), .enter(123_456), .passkeyTyped),
            (passkeyNotification, .show(123_456), .yes, nil, .passkeyShown),
        ]
    static let confirmation = "0f000000 0c00 1122334455c6 02 01 2a000000"
    static let comparison = "0f000000 0c00 1122334455c6 02 00 40e20100"
    static let passkeyRequest = "10000000 0700 1122334455c6 02"
    static let passkeyNotification = "17000000 0c00 1122334455c6 02 40e20100 00"
    static let disconnected = "0c000000 0800 1122334455c6 02 03"
    /// The address on the air was the identity.
    static let identity = "18000000 1e00 01 000000000000 1122334455c6 02 000102030405060708090a0b0c0d0e0f"
    static let authenticatedKey = RecordedKeys.secureConnections
    static let justWorksKey = changed(at: 7, to: 2)
    static let debugKey = changed(at: 7, to: 4)
    static let shortKey = changed(at: 9, to: 7)

    static func key(_ key: [UInt8]) -> String { "0a000000 2500 01" + Hex.encode(key) }

    private static func changed(at index: Int, to byte: UInt8) -> [UInt8] {
        var key = RecordedKeys.secureConnections
        key[index] = byte
        return key
    }
}

/// What ends an exchange from outside.
enum Interruption: CaseIterable { case cancel, link, adapter }

/// An exchange, and what it has asked for.
private final class PairingRun {
    let peer: PeerID
    private(set) var now = BootInstant(nanoseconds: 5_000_000_000)
    private(set) var readsSecurity = false
    private(set) var stores: PairingExchange.Outcome?
    private(set) var results: [Result<PairingExchange.Outcome, PairingExchange.Failure>] = []
    private(set) var sentPeers: [ManagementPeer] = []
    private(set) var hasDisconnected = false
    private(set) var hasStored = false
    private(set) var isLost = false
    private(set) var isBondable = false
    private var exchange = PairingExchange()
    private var demand: PairingExchange.Demand
    private var commands: [PairingExchange.Command] = []
    private var unfinished: [PairingExchange.Command] = []
    private var questions: [PairingExchange.Question] = []
    /// The number of the last question.
    private(set) var lastQuestion: UInt64 = 0

    init(peer: String = "C6:55:44:33:22:11/random", _ change: (inout PairingExchange.Demand) -> Void = { _ in }) {
        self.peer = PeerID(peer)!
        demand = PairingExchange.Demand(
            peer: self.peer, capability: .keyboardDisplay,
            deadline: BootInstant(nanoseconds: 5_000_000_000) + .seconds(25))
        change(&demand)
    }

    var result: Result<PairingExchange.Outcome, PairingExchange.Failure>? { results.last }
    var isRunning: Bool { exchange.isRunning }
    var mayBeBondable: Bool { exchange.mayBeBondable }
    var deadline: BootInstant? { exchange.nextDeadline }

    /// The commands since the last time.
    var sent: [PairingExchange.Command] {
        defer { commands = [] }
        return commands
    }

    func takeQuestions() -> [PairingExchange.Question] {
        defer { questions = [] }
        return questions
    }

    /// Begins on a link that is not encrypted.
    func begin() {
        perform(exchange.begin(demand))
        perform(exchange.securityRead((1, 0)))
        readsSecurity = false
    }

    /// Begins on a link with this security.
    func begin(level: UInt8, keySize: UInt8) {
        perform(exchange.begin(demand))
        perform(exchange.securityRead((level, keySize)))
    }

    func beginPairing() {
        begin()
        while let next = unfinished.first, next != .pair { finish(next) }
        _ = sent
    }

    func finish(_ command: PairingExchange.Command, returning peer: PeerID? = nil) {
        end(command, .success(ManagementPeer(peer ?? self.peer)))
    }

    func finish(_ command: PairingExchange.Command, failing status: ManagementStatus) { end(command, .failure(status)) }

    /// The keys and the end of a pairing that went well, up to what has to be stored.
    func endWell() throws {
        encrypt()
        try receive(PairingEvent.key(PairingEvent.authenticatedKey))
        finish(.pair)
        secure()
    }

    /// Finishes the commands with which the exchange ends.
    func leave() { answerAll() }

    func answerAll() {
        while let next = unfinished.first { end(next, next == .pair ? .failure(.cancelled) : .success(nil)) }
    }

    @discardableResult
    func receive(_ event: String) throws -> Bool {
        guard let actions = exchange.received(try ManagementEvent(bytes(event).span).content, at: now) else {
            return false
        }
        perform(actions)
        return true
    }

    /// Replies to the last question, or to another one.
    func reply(_ reply: PairingExchange.Reply, to number: UInt64? = nil) {
        perform(exchange.replied(reply, to: number ?? lastQuestion, at: now))
    }
    func encrypt() { perform(exchange.encryptionChanged(true)) }

    /// The socket has this security; what is sent before the bond is stored succeeds.
    func secure(level: UInt8? = 2, keySize: UInt8 = 16) {
        perform(exchange.securityRead(level.map { ($0, keySize) }))
        if unfinished.last == .setBondable(false) { finish(.setBondable(false)) }
    }
    func cancel() { perform(exchange.cancel(at: now)) }

    func store(_ isStored: Bool) {
        hasStored = hasStored || (isStored && stores != nil)
        perform(exchange.stored(isStored))
    }

    func passDeadline() {
        guard let deadline = exchange.nextDeadline else { return }
        now = max(now, deadline)
        perform(exchange.timePassed(now))
    }

    func interrupt(_ interruption: Interruption) {
        switch interruption {
        case .cancel: cancel()
        case .link: perform(exchange.linkEnded(at: now))
        case .adapter: adapterIsLost(true)
        }
    }

    func adapterIsLost(_ isLost: Bool) {
        guard isLost else { return }
        self.isLost = true
        unfinished = []
        perform(exchange.adapterLost())
    }

    /// One input at random.
    func step(_ numbers: inout SeededNumbers) throws {
        let statuses: [ManagementStatus] = [.authenticationFailed, .alreadyPaired, .timeout, .disconnected, .busy]
        switch numbers.next() % 14 {
        case 0, 1, 2:
            guard let command = unfinished.randomElement(using: &numbers) else { return }
            if numbers.next() % 4 == 0 {
                finish(command, failing: statuses.randomElement(using: &numbers) ?? .failed)
            } else {
                finish(command)
            }
        case 3: encrypt()
        case 4: try receive(PairingEvent.key(PairingEvent.authenticatedKey))
        case 5: try receive(PairingEvent.identity)
        case 6: try receive([PairingEvent.confirmation, PairingEvent.comparison].randomElement(using: &numbers) ?? "")
        case 7:
            try receive(
                [PairingEvent.passkeyRequest, PairingEvent.passkeyNotification].randomElement(using: &numbers) ?? "")
        case 8: reply([.yes, .no, .passkey(7)].randomElement(using: &numbers) ?? .no)
        case 9: secure(level: numbers.next() % 3 == 0 ? nil : 2)
        case 10: store(numbers.next() % 2 == 0)
        case 11: if numbers.next() % 8 == 0 { passDeadline() }
        case 12: if numbers.next() % 8 == 0 { cancel() }
        default: if numbers.next() % 8 == 0 { interrupt(.link) }
        }
    }

    private func end(_ command: PairingExchange.Command, _ end: PairingExchange.CommandEnd) {
        if let index = unfinished.firstIndex(of: command) { unfinished.remove(at: index) }
        perform(exchange.commandFinished(command, end, at: now))
    }

    private func perform(_ actions: [PairingExchange.Action]) {
        for action in actions {
            switch action {
            case .send(let command, let peer):
                commands.append(command)
                unfinished.append(command)
                sentPeers = [peer]
                if case .setBondable(let isOn) = command { isBondable = isOn }
                if command == .removeKeys(disconnects: true) { hasDisconnected = true }
            case .ask(let question, let number):
                questions.append(question)
                #expect(number > lastQuestion)
                lastQuestion = number
            case .readSecurity: readsSecurity = true
            case .store(let outcome): stores = outcome
            case .finish(let result): results.append(result)
            }
        }
    }
}

private func permutations(of items: [Int]) -> [[Int]] {
    guard !items.isEmpty else { return [[]] }
    return items.flatMap { first in permutations(of: items.filter { $0 != first }).map { [first] + $0 } }
}
