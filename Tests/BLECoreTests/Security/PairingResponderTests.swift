import BLECore
import TestSupport
import Testing

/// Pairings that a central begins. The kernel's events are by their bytes, as it sends them to the side that responds.
@Suite struct PairingResponderTests {
    // MARK: Permission

    @Test func noQuestionIsAcceptedWithoutPermission() throws {
        let run = ResponderRun()
        #expect(try !run.ask(PairingEvent.confirmation))
        run.allow()
        #expect(run.rests == [.keyboardDisplay] && run.isAllowed)
        run.refuse()
        #expect(run.rests == [.keyboardDisplay, nil] && !run.isAllowed)
        #expect(try !run.ask(PairingEvent.confirmation))
        #expect(run.sent.isEmpty && run.ends.isEmpty)
    }

    @Test func thePermissionEndsByItself() throws {
        let run = ResponderRun()
        run.allow { $0.end = $1 + .seconds(60) }
        #expect(run.nextDeadline == run.now + .seconds(60))
        run.pass(.seconds(59))
        #expect(run.isAllowed && run.endedPermissions == 0)
        run.pass(.seconds(1))
        #expect(!run.isAllowed && run.endedPermissions == 1 && run.rests.last == .some(nil))
        #expect(try !run.ask(PairingEvent.confirmation))
        #expect(run.nextDeadline == nil)
    }

    /// A user who has begun in time may finish.
    @Test func theEndOfThePermissionLetsAPairingFinish() throws {
        let run = ResponderRun()
        run.allow { $0.end = $1 + .seconds(2) }
        try run.begin(PairingEvent.confirmation)
        run.pass(.seconds(2))
        #expect(!run.isAllowed && run.isRunning)
        run.reply(.yes)
        try run.endWell(PairingEvent.justWorksKey)
        #expect(run.outcome?.method == .justWorks)
    }

    /// As the kernel reports the keys by which the sides sign, right before that of the link.
    @Test func theKeysForSignaturesAreDistinguished() throws {
        for (kind, key, isKept) in [
            ("01", "404142434445464748494a4b4c4d4e4f", true), ("03", "404142434445464748494a4b4c4d4e4f", true),
            // With a key of zeros everybody could sign.
            ("01", "00000000000000000000000000000000", false),
        ] {
            let run = ResponderRun()
            run.allow()
            try run.begin(PairingEvent.confirmation)
            run.reply(.yes)
            try run.receive("19000000 1900 01 1122334455c6 02 \(kind) \(key)")
            try run.endWell(PairingEvent.justWorksKey)
            let outcome = try #require(run.outcome)
            #expect((outcome.peerSignatureKey != nil) == isKept && outcome.signatureKey == nil)
        }
    }

    @Test func aRefusalEndsThePairingThatRuns() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.comparison)
        run.refuse()
        #expect(run.sent == [.reject] && run.stopped)
        run.finish(.reject)
        #expect(run.failure == .pairing(.cancelled) && !run.isRunning)
    }

    @Test func aRefusalOfFurtherOnesLetsThePairingThatRunsContinue() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.comparison)
        run.refuse(keepingCurrent: true)
        #expect(run.sent.isEmpty && run.isRunning && !run.isAllowed && run.rests.last == .some(nil))
        run.reply(.yes)
        try run.endWell(PairingEvent.authenticatedKey)
        #expect(run.outcome != nil)
        #expect(try !run.ask(PairingEvent.confirmation))
    }

    // MARK: Success

    @Test(arguments: PairingEvent.questions)
    func eachQuestionIsAskedOnce(
        event: String, question: PairingExchange.Question, reply: PairingExchange.Reply,
        command: PairingExchange.Command?, method: PairingMethod
    ) throws {
        let run = ResponderRun()
        run.allow()
        #expect(try run.ask(event))
        // Not before the lists are loaded.
        #expect(run.begins == 1 && run.takeQuestions().isEmpty)
        run.mayBegin()
        #expect(run.takeQuestions() == [question])
        if command == nil { try run.ask(event) }
        #expect(run.takeQuestions().isEmpty)
        run.reply(reply)
        #expect(run.sent == (command.map { [$0] } ?? []))
        run.reply(reply)
        #expect(run.sent.isEmpty)
        try run.endWell(method == .justWorks ? PairingEvent.justWorksKey : PairingEvent.authenticatedKey)
        #expect(run.outcome?.method == method && run.outcome?.longTermKeys.count == 1)
        #expect(!run.isRunning && run.isAllowed)
    }

    @Test func itIsPairedAfterTheBondIsStored() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        run.encrypt()
        #expect(run.stores == nil)
        try run.receive(PairingEvent.identity)
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(run.readsSecurity && run.stores == nil)
        run.secure()
        #expect(run.stores?.identityResolvingKey != nil && run.ends.isEmpty)
        run.store(true)
        #expect(run.outcome == run.stores)
    }

    /// The keys come at one socket, the encryption at another.
    @Test func theKeysMayComeBeforeTheEncryption() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(!run.readsSecurity)
        run.encrypt()
        #expect(run.readsSecurity)
    }

    /// Without the controller's events the socket alone decides.
    @Test func theSocketDecidesWhereTheEncryptionIsNotReported() throws {
        for level in [UInt8(1), 2] {
            let run = ResponderRun { $0.followsEncryption = false }
            run.allow()
            try run.begin(PairingEvent.confirmation)
            run.reply(.yes)
            try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
            #expect(run.readsSecurity)
            run.secure(level: level)
            #expect((run.stores != nil) == (level == 2))
        }
    }

    /// The event of the management interface has only an address, which an earlier link has had too.
    @Test func theEndByAddressCountsWhereNoneIsReportedByHandle() throws {
        for followsEnd in [true, false] {
            let run = ResponderRun {
                $0.followsEncryption = false
                $0.followsEnd = followsEnd
            }
            run.allow()
            try run.begin(PairingEvent.confirmation)
            let isTaken = try run.receive(PairingEvent.disconnected)
            #expect(isTaken == !followsEnd)
            run.passDeadline()
            let failure: PairingResponder.Failure? = followsEnd ? nil : .pairing(.linkLost)
            #expect(run.failure == failure)
        }
    }

    @Test func legacyPairingLeavesAKeyForEachRole() throws {
        for isTogether in [true, false] {
            let run = ResponderRun()
            run.allow()
            try run.begin(PairingEvent.passkeyNotification)
            run.encrypt()
            try run.receive(PairingEvent.key(RecordedKeys.legacyCentral))
            #expect(!run.readsSecurity)
            if isTogether {
                try run.receive(PairingEvent.key(RecordedKeys.legacyPeripheral))
            } else {
                run.passDeadline()
            }
            #expect(run.readsSecurity)
            run.secure()
            // The central encrypts with the second one.
            #expect(run.stores?.longTermKeys.count == (isTogether ? 2 : nil))
            #expect(isTogether || run.failure == .pairing(.noKey) || run.isRunning)
        }
    }

    @Test func aPrivateCentralIsKnownByItsIdentityAfterwards() throws {
        let run = ResponderRun("62:CC:28:F3:EE:75/random")
        run.allow()
        try run.begin("0f000000 0c00 75eef328cc62 02 01 2a000000")
        run.reply(.yes)
        run.encrypt()
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        run.secure()
        #expect(run.stores?.identity == PeerID("C6:55:44:33:22:11/random"))
        run.store(false)
        #expect(run.sentPeers.last == ManagementPeer(PeerID("C6:55:44:33:22:11/random")!))
    }

    /// The central has the keys too.
    @Test func aCentralThatLeavesWithItsKeysIsBonded() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        run.encrypt()
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        run.endLink()
        #expect(run.stores != nil)
        run.secure(level: nil)
        run.store(true)
        #expect(run.outcome != nil)
    }

    /// The end of the adapter is read where the security of the socket is to be: with the keys, or right after them.
    @Test func aCentralWhoseKeysHaveEncryptedTheLinkIsBondedAlthoughTheAdapterIsLost() throws {
        for isIdentified in [true, false] {
            let run = try ResponderRun.encrypted()
            if isIdentified { try run.receive(PairingEvent.identity) }
            try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
            #expect(run.readsSecurity && run.stores == nil)
            run.loseAdapter()
            #expect(run.stores != nil && run.ends.isEmpty)
            run.secure(level: nil)
            run.store(true)
            #expect(run.outcome != nil && run.ends.count == 1 && run.sent.isEmpty && !run.isRunning)
        }
        // The disk refuses it, and no command is left to send.
        let unstored = try ResponderRun.encrypted()
        try unstored.receive(PairingEvent.key(PairingEvent.justWorksKey))
        unstored.loseAdapter()
        unstored.store(false)
        unstored.loseAdapter()
        #expect(unstored.failure == .pairing(.notStored) && unstored.ends.count == 1)
    }

    /// Keys of an unencrypted link, none, the key of the other role alone, and keys that are worth too little.
    @Test func otherKeysAreNotKeptWhereTheAdapterIsLost() throws {
        let inClear = ResponderRun()
        inClear.allow()
        try inClear.begin(PairingEvent.confirmation)
        inClear.reply(.yes)
        _ = inClear.sent
        try inClear.receive(PairingEvent.key(PairingEvent.justWorksKey))
        let without = try ResponderRun.encrypted()
        let half = try ResponderRun.encrypted()
        try half.receive(PairingEvent.key(RecordedKeys.legacyCentral))
        let ended = try ResponderRun.encrypted()
        ended.endLink()
        let short = try ResponderRun.encrypted()
        try short.receive(PairingEvent.key(PairingEvent.shortKey))
        for run in [inClear, without, half, ended, short] {
            run.loseAdapter()
            #expect(run.failure == .pairing(.adapterLost) && run.stores == nil && run.ends.count == 1)
            #expect(run.sent.isEmpty && !run.isRunning)
        }
    }

    /// The end of the link and the keys are read from two sockets, in any order.
    @Test func aCentralIsBondedWhoseKeysAreReadAfterTheEndOfItsLink() throws {
        let run = try ResponderRun.encrypted()
        run.endLink()
        #expect(run.isRunning && run.stores == nil)
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(run.stores != nil)
        run.store(true)
        #expect(run.outcome != nil && run.sent.isEmpty)
    }

    @Test func keysThatAreReadAfterTheEndOfALinkInClearTextAreWorthNothing() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        run.endLink()
        // The next link of the central is encrypted.
        run.encrypt()
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(run.stores == nil)
        run.passDeadline()
        #expect(run.failure == .pairing(.linkLost) && !run.isRunning)
    }

    /// The permission was withdrawn before the keys were read.
    @Test func aRefusalAfterTheEndOfTheLinkPreventsTheBond() throws {
        let run = try ResponderRun.encrypted()
        run.endLink()
        run.refuse()
        #expect(run.sent == [.removeKeys(disconnects: false)])
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(run.stores == nil)
        run.finish(.removeKeys(disconnects: false))
        #expect(run.failure == .pairing(.cancelled) && run.ends.count == 1 && !run.isRunning)
        let kept = try ResponderRun.encrypted()
        kept.endLink()
        kept.refuse(keepingCurrent: true)
        try kept.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(kept.stores != nil)
    }

    @Test func aCentralThatLeavesWithoutKeysIsNotBonded() throws {
        let run = try ResponderRun.encrypted()
        run.endLink()
        run.passDeadline()
        #expect(run.stores == nil && run.failure == .pairing(.linkLost) && !run.isRunning)
    }

    /// The keys of its former link would have been read before its question.
    @Test func aCentralThatComesBackAtOnceAfterAnEncryptedLinkPairsAgain() throws {
        let run = try ResponderRun.encrypted()
        _ = run.takeQuestions()
        run.endLink()
        #expect(try run.ask(PairingEvent.confirmation))
        #expect(run.ends.count == 1 && run.failure == .pairing(.linkLost))
        #expect(run.begins == 2 && run.isRunning && run.sent.isEmpty && run.refused.isEmpty)
        // The former link's time does not end the new pairing.
        run.pass(.milliseconds(500))
        run.mayBegin()
        #expect(run.takeQuestions() == [.justWorks])
        run.reply(.yes)
        try run.endWell(PairingEvent.justWorksKey)
        #expect(run.ends.count == 2 && run.outcome?.method == .justWorks)
    }

    @Test func aCentralThatComesBackIsRefusedWhileItsFormerPairingIsUndone() throws {
        let run = try ResponderRun.encrypted()
        run.endLink()
        // One of the two keys of legacy pairing, for the other role.
        try run.receive(PairingEvent.key(RecordedKeys.legacyCentral))
        #expect(run.ends.isEmpty && run.sent.isEmpty)
        #expect(try run.ask(PairingEvent.confirmation))
        #expect(run.sent == [.removeKeys(disconnects: false), .reject] && run.refused == [.busy] && run.begins == 1)
        run.finish(.removeKeys(disconnects: false))
        #expect(run.failure == .pairing(.noKey) && run.ends.count == 1 && !run.isRunning)
        try run.begin(PairingEvent.confirmation)
        #expect(run.begins == 2)
    }

    /// The kernel's Authentication Failed may still come, and would be taken for the end of the new pairing.
    @Test func aCentralThatComesBackAfterALinkInClearTextWaitsForTheEndOfItsPairing() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        _ = run.sent
        run.endLink()
        #expect(try run.ask(PairingEvent.confirmation))
        #expect(run.sent == [.reject] && run.begins == 1 && run.ends.isEmpty)
        run.passDeadline()
        #expect(run.failure == .pairing(.linkLost) && !run.isRunning)
    }

    /// Its former pairing was kept, and no other one is to begin.
    @Test func aCentralThatComesBackWithoutPermissionDoesNotPair() throws {
        let run = try ResponderRun.encrypted()
        run.endLink()
        run.refuse(keepingCurrent: true)
        #expect(try run.ask(PairingEvent.confirmation))
        #expect(run.sent == [.reject] && run.begins == 1)
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        #expect(run.stores != nil)
    }

    // MARK: Refusals

    @Test func anotherCentralIsRefusedWhileOnePairs() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.comparison)
        let other = PairingResponder.Client(peer: PeerID("C6:55:44:33:22:12/random")!)
        #expect(try run.ask("0f000000 0c00 1222334455c6 02 01 2a000000", about: other))
        #expect(run.sent == [.reject] && run.refused == [.busy])
        run.reply(.yes)
        try run.endWell(PairingEvent.authenticatedKey)
        #expect(run.outcome != nil)
    }

    @Test func aCentralIsRefusedWhileThisSidePairs() throws {
        let run = ResponderRun()
        run.allow()
        #expect(try run.ask(PairingEvent.passkeyRequest, isBusy: true))
        #expect(run.sent == [.enterNothing] && run.refused == [.busy] && run.begins == 0)
    }

    /// A device that uses the address of a bonded central must not replace its bond.
    @Test func aCentralWithABondIsRefusedUnlessTheApplicationIsAsked() throws {
        let strict = ResponderRun { $0.hasBond = true }
        strict.allow()
        try strict.ask(PairingEvent.confirmation)
        #expect(strict.sent == [.reject] && strict.refused == [.bondExists])
        let asking = ResponderRun { $0.hasBond = true }
        asking.allow { permission, _ in permission.mayReplaceBonds = true }
        try asking.begin(PairingEvent.confirmation)
        #expect(asking.takeQuestions() == [.justWorks] && asking.refused.isEmpty)
        asking.reply(.no)
        #expect(asking.sent == [.reject])
    }

    @Test func whatIsDemandedIsCheckedBeforeAndAfter() throws {
        let run = ResponderRun()
        run.allow { permission, _ in permission.level = .authenticated }
        try run.ask(PairingEvent.confirmation)
        #expect(run.sent == [.reject] && run.refused == [.pairing(.notProtected)])
        let keys: [(key: [UInt8], failure: PairingExchange.Failure)] = [
            (PairingEvent.justWorksKey, .keyTooWeak(.encrypted)), (PairingEvent.shortKey, .keyTooShort(7)),
        ]
        for (key, failure) in keys {
            let run = ResponderRun()
            run.allow { permission, _ in permission.level = .authenticated }
            try run.begin(PairingEvent.comparison)
            run.reply(.yes)
            _ = run.sent
            run.encrypt()
            try run.receive(PairingEvent.key(key))
            run.secure()
            #expect(run.sent == [.removeKeys(disconnects: false)] && run.stores == nil && run.disconnects == 1)
            run.finish(.removeKeys(disconnects: false))
            #expect(run.failure == .pairing(failure))
        }
    }

    /// A central begins again, without anything to compare, while the lists are being loaded.
    @Test func aQuestionThatTakesThePlaceOfOneThatWaitsIsCheckedToo() throws {
        let run = ResponderRun()
        run.allow { permission, _ in permission.level = .authenticated }
        try run.ask(PairingEvent.comparison)
        #expect(run.sent.isEmpty && run.begins == 1)
        try run.ask(PairingEvent.confirmation)
        #expect(run.sent == [.reject])
        run.mayBegin()
        #expect(run.takeQuestions().isEmpty)
        run.finish(.reject)
        #expect(run.failure == .pairing(.notProtected) && run.ends.count == 1 && !run.isRunning)
        // One with something to compare is asked in its place.
        let other = ResponderRun()
        other.allow { permission, _ in permission.level = .authenticated }
        try other.ask(PairingEvent.passkeyRequest)
        try other.ask(PairingEvent.comparison)
        other.mayBegin()
        #expect(other.takeQuestions() == [.compare(123_456)] && other.sent.isEmpty)
    }

    @Test(.row("S09")) func aCentralThatClaimsAnotherBondIsDisconnected() throws {
        let run = ResponderRun("62:CC:28:F3:EE:75/random") { $0.otherBonds = [PeerID("C6:55:44:33:22:11/random")!] }
        run.allow()
        try run.begin("0f000000 0c00 75eef328cc62 02 01 2a000000")
        run.reply(.yes)
        _ = run.sent
        run.encrypt()
        try run.receive("18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        // Nothing of that bond is removed, and no other link under its identity ends.
        #expect(run.sent == [] && run.disconnects == 1)
        #expect(run.failure == .pairing(.identityTaken))
    }

    /// The other one has no bond, so that nothing of this one may stay in the kernel.
    @Test func aCentralThatClaimsToBeAnotherConnectedOneIsDisconnected() throws {
        let run = try ResponderRun.encrypted()
        try run.receive(PairingEvent.key(PairingEvent.justWorksKey))
        // Too early: it would not be looked at again.
        run.claimConnected()
        #expect(run.ends.isEmpty && run.disconnects == 0)
        run.secure()
        #expect(run.stores != nil)
        run.claimConnected()
        #expect(run.sent == [.removeKeys(disconnects: false)] && run.disconnects == 1)
        run.store(true)
        run.finish(.removeKeys(disconnects: false))
        #expect(run.failure == .identityConnected && run.ends.count == 1)
    }

    @Test func threeFailuresInAMinuteAreEnough() throws {
        let run = ResponderRun()
        run.allow()
        for _ in 0..<3 {
            try run.begin(PairingEvent.comparison)
            run.reply(.no)
            run.finish(.reject)
            #expect(run.failure == .pairing(.refusedHere(.compare(123_456))))
            run.pass(.seconds(10))
        }
        _ = run.sent
        try run.ask(PairingEvent.comparison)
        #expect(run.sent == [.reject] && run.refused == [.tooManyFailures])
        let other = PairingResponder.Client(peer: PeerID("C6:55:44:33:22:12/random")!)
        try run.ask("0f000000 0c00 1222334455c6 02 01 2a000000", about: other)
        #expect(run.begins == 4)
        run.refuse()
        run.finish(.reject)
        run.allow()
        // 30 s after the last one the first is a minute ago.
        run.pass(.seconds(30))
        try run.begin(PairingEvent.comparison)
        #expect(run.begins == 5)
    }

    /// Each comes with another address.
    @Test(.row("P17")) func threeCentralsInAMinuteGetAnUnconfirmedBond() throws {
        for isConfirmed in [false, true] {
            let run = ResponderRun()
            run.allow { permission, _ in permission.acceptsUnconfirmed = !isConfirmed }
            for number in 1...4 {
                try run.begin(PairingEvent.confirmation)
                guard number < 4 || isConfirmed else { break }
                run.reply(.yes)
                try run.endWell(PairingEvent.justWorksKey)
                run.pass(.seconds(10))
            }
            #expect(run.refused == (isConfirmed ? [] : [.tooManyUnconfirmed]))
            #expect(run.ends.count == (isConfirmed ? 4 : 3) && run.storedBonds == run.ends.count)
        }
        let run = ResponderRun()
        run.allow { permission, _ in permission.acceptsUnconfirmed = true }
        for _ in 0..<3 {
            try run.begin(PairingEvent.confirmation)
            run.reply(.yes)
            try run.endWell(PairingEvent.justWorksKey)
        }
        // A comparison is confirmed, unless the central begins again without.
        try run.begin(PairingEvent.comparison)
        run.reply(.yes)
        _ = run.sent
        try run.ask(PairingEvent.confirmation)
        #expect(run.sent == [.reject])
        run.finish(.reject)
        #expect(run.failure == .tooManyUnconfirmed)
        // No limit for one that gets a bond again, about which the application is asked.
        let again = ResponderRun { $0.hasBond = true }
        again.allow { permission, _ in (permission.acceptsUnconfirmed, permission.mayReplaceBonds) = (true, true) }
        for _ in 0..<5 {
            try again.begin(PairingEvent.confirmation)
            again.reply(.yes)
            try again.endWell(PairingEvent.justWorksKey)
        }
        #expect(again.ends.count == 5)
        // It counts for a minute.
        run.pass(.seconds(60))
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        try run.endWell(PairingEvent.justWorksKey)
        #expect(run.outcome != nil)
    }

    // MARK: Ends

    /// The kernel has one status for all of them. Wrong passkeys, and refusals, end the link as well,
    /// before or after it.
    @Test(
        arguments: [
            (PairingEvent.confirmation, .yes, .refusedByPeer),
            (PairingEvent.passkeyRequest, .passkey(1), .wrongPasskey),
            // It has not waited for the passkey.
            (PairingEvent.passkeyRequest, nil, .refusedByPeer),
            (PairingEvent.passkeyNotification, nil, .passkeyNotEntered),
            (PairingEvent.passkeyNotification, .yes, .passkeyNotEntered),
            (PairingEvent.comparison, .yes, .numberRejected), (PairingEvent.comparison, nil, .numberRejected),
        ] as [(String, PairingExchange.Reply?, PairingExchange.Failure)])
    func aRejectionByTheCentralIsIdentifiedByItsQuestion(
        event: String, reply: PairingExchange.Reply?, failure: PairingExchange.Failure
    ) throws {
        for isLinkFirst in [true, false] {
            let run = ResponderRun()
            run.allow()
            try run.begin(event)
            if let reply { run.reply(reply) }
            if isLinkFirst { run.endLink() }
            try run.receive(PairingEvent.failed)
            #expect(run.failure == .pairing(failure) && run.ends.count == 1 && !run.isRunning)
        }
    }

    @Test func aPasskeyIsWrongOnlyWhereItDecided() throws {
        // The central has begun again, and nothing was entered since.
        let again = ResponderRun()
        again.allow()
        try again.begin(PairingEvent.passkeyRequest)
        again.reply(.passkey(1))
        try again.ask(PairingEvent.passkeyRequest)
        try again.receive(PairingEvent.failed)
        #expect(again.failure == .pairing(.refusedByPeer))
        // With a wrong one the link is not encrypted.
        let encrypted = ResponderRun()
        encrypted.allow()
        try encrypted.begin(PairingEvent.passkeyRequest)
        encrypted.reply(.passkey(1))
        encrypted.encrypt()
        try encrypted.receive(PairingEvent.failed)
        #expect(encrypted.failure == .pairing(.refusedByPeer))
    }

    @Test func eachEndHasItsReason() throws {
        try check(.pairing(.linkLost), sends: []) { run in
            run.endLink()
            run.passDeadline()
        }
        try check(.pairing(.timedOut(.compare(123_456))), sends: [.reject]) { run in run.passDeadline() }
        // Nobody is asked any more: the pairing is ended with the keys that it may have.
        try check(.pairing(.timedOut(nil)), sends: [.removeKeys(disconnects: false)]) { run in
            run.reply(.yes)
            run.passDeadline()
        }
        try check(.pairing(.adapterLost), sends: []) { run in run.loseAdapter() }
        try check(.pairing(.notEncrypted), sends: [.removeKeys(disconnects: false)], disconnects: 1) { run in
            run.reply(.yes)
            run.encrypt()
            try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
            run.secure(level: 1)
        }
        try check(.pairing(.notStored), sends: [.removeKeys(disconnects: false)], disconnects: 1) { run in
            run.reply(.yes)
            run.encrypt()
            try run.receive(PairingEvent.key(PairingEvent.authenticatedKey))
            run.secure()
            run.store(false)
        }
    }

    /// The kernel gives up after 30 s, and ends the link.
    @Test(.row("S14")) func aQuestionWithoutReplyIsRejectedBeforeTheKernelGivesUp() throws {
        let run = ResponderRun()
        let begin = run.now
        run.allow { permission, _ in permission.timeout = .seconds(120) }
        try run.begin(PairingEvent.comparison)
        #expect(run.nextDeadline == begin + .seconds(25))
        run.passDeadline()
        #expect(run.sent == [.reject])
        run.finish(.reject)
        #expect(run.failure == .pairing(.timedOut(.compare(123_456))) && run.disconnects == 0)
        // With the reply, and where the central's user has to act, it lasts as long as was asked for.
        let other = ResponderRun()
        other.allow { permission, _ in permission.timeout = .seconds(120) }
        try other.begin(PairingEvent.comparison)
        other.pass(.seconds(10))
        other.reply(.yes)
        #expect(other.nextDeadline == begin + .seconds(120))
        try other.ask(PairingEvent.passkeyNotification)
        #expect(other.nextDeadline == begin + .seconds(120))
        // A central that begins again has the time of a new question.
        try other.ask(PairingEvent.comparison)
        #expect(other.nextDeadline == begin + .seconds(35))
    }

    private func check(
        _ failure: PairingResponder.Failure, sends commands: [PairingExchange.Command], disconnects: Int = 0,
        _ body: (ResponderRun) throws -> Void
    ) throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.comparison)
        try body(run)
        #expect(run.sent.filter { $0 != .confirm } == commands, "\(failure)")
        for command in commands { run.finish(command) }
        #expect(run.failure == failure && run.ends.count == 1 && !run.isRunning && run.disconnects == disconnects)
    }

    /// The link stays encrypted.
    @Test func aCentralThatKeepsNoBondsIsNotDisconnected() throws {
        let run = try ResponderRun.encrypted()
        try run.receive("0a000000 2500 00" + Hex.encode(PairingEvent.justWorksKey))
        run.passDeadline()
        run.secure()
        #expect(run.sent == [.removeKeys(disconnects: false)])
        run.finish(.removeKeys(disconnects: false))
        #expect(run.failure == .pairing(.noKey))
    }

    @Test func aPairingThatMayNotBeginIsRejected() throws {
        let run = ResponderRun()
        run.allow()
        try run.ask(PairingEvent.passkeyRequest)
        run.cannotBegin()
        #expect(run.sent == [.enterNothing])
        run.finish(.enterNothing)
        #expect(run.failure == .pairing(.notReady(.cannotPair)))
    }

    /// The kernel's questions name the central alone, whose earlier link may not have ended yet.
    @Test func aPairingThatWaitsIsOnTheLinkOfTheLastQuestion() throws {
        var links = LinkTable()
        let run = ResponderRun()
        run.allow()
        for handle in [0x0040, 0x0041] as [ConnectionHandle] {
            var client = run.client
            client.link = links.register(handle, client.peer)
            try run.ask(PairingEvent.confirmation, about: client)
            #expect(run.link?.handle == handle)
        }
        #expect(run.begins == 1)
        run.cannotBegin()
        for command in run.sent { run.finish(command) }
        #expect(run.link == nil && run.ends.count == 1)
    }

    @Test func eventsOfOthersAreNotThePairings() throws {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.comparison)
        #expect(try !run.receive("11000000 0800 1222334455c6 02 05"))
        #expect(try !run.receive("0a000000 2500 01 1222" + Hex.encode(Array(PairingEvent.justWorksKey.dropFirst(2)))))
        #expect(run.isRunning)
    }

    /// Whatever happens in whatever order, each pairing that has begun ends once.
    @Test func eachPairingEndsOnce() throws {
        for seed in 0..<400 {
            var numbers = SeededNumbers(seed: UInt64(seed))
            let run = ResponderRun()
            run.allow { permission, _ in permission.mayReplaceBonds = true }
            for _ in 0..<60 { try run.step(&numbers) }
            run.settle()
            #expect(!run.isRunning && run.ends.count == run.begins, "seed \(seed)")
            #expect(run.ends.count { if case .success = $0 { true } else { false } } == run.storedBonds, "seed \(seed)")
        }
    }
}

extension PairingEvent {
    static let failed = "11000000 0800 1122334455c6 02 05"
}

/// A machine, and what it has asked for.
private final class ResponderRun {
    private var responder = PairingResponder()
    private(set) var now = BootInstant(nanoseconds: 5_000_000_000)
    private(set) var client: PairingResponder.Client
    private(set) var rests: [IOCapability?] = []
    private(set) var begins = 0
    private(set) var readsSecurity = false
    private(set) var stores: PairingExchange.Outcome?
    private(set) var ends: [Result<PairingExchange.Outcome, PairingResponder.Failure>] = []
    private(set) var refused: [PairingResponder.Failure] = []
    private(set) var endedPermissions = 0
    private(set) var sentPeers: [ManagementPeer] = []
    private(set) var stopped = false
    private(set) var disconnects = 0
    private(set) var storedBonds = 0
    private var commands: [PairingExchange.Command] = []
    private var unfinished: [PairingExchange.Command] = []
    private var questions: [PairingExchange.Question] = []
    private var lastQuestion: UInt64 = 0
    private var isStoring = false

    init(
        _ peer: String = "C6:55:44:33:22:11/random", change: (inout PairingResponder.Client) -> Void = { _ in }
    ) {
        client = PairingResponder.Client(peer: PeerID(peer)!)
        change(&client)
    }

    var isAllowed: Bool { responder.isAllowed }
    var isRunning: Bool { responder.isRunning }
    var link: LinkIdentity? { responder.link }
    var nextDeadline: BootInstant? { responder.nextDeadline }
    var outcome: PairingExchange.Outcome? { try? ends.last?.get() }
    var failure: PairingResponder.Failure? { if case .failure(let failure)? = ends.last { failure } else { nil } }

    /// The commands since the last time.
    var sent: [PairingExchange.Command] {
        defer { commands = [] }
        return commands
    }

    func takeQuestions() -> [PairingExchange.Question] {
        defer { questions = [] }
        return questions
    }

    func allow(_ change: (inout PairingResponder.Permission, BootInstant) -> Void = { _, _ in }) {
        var permission = PairingResponder.Permission(capability: .keyboardDisplay)
        change(&permission, now)
        perform(responder.allow(permission))
    }

    func refuse(keepingCurrent: Bool = false) {
        perform(responder.refuse(keepingCurrent: keepingCurrent, at: now))
    }

    @discardableResult
    func ask(
        _ event: String, about client: PairingResponder.Client? = nil, isBusy: Bool = false
    ) throws -> Bool {
        let content = try ManagementEvent(bytes(event).span).content
        guard let actions = responder.asked(content, about: client ?? self.client, isBusy: isBusy, at: now) else {
            return false
        }
        perform(actions)
        return true
    }

    func begin(_ event: String) throws {
        try ask(event)
        mayBegin()
        _ = commands
    }

    func mayBegin() { perform(responder.mayBegin()) }
    func cannotBegin() { perform(responder.cannotBegin(.cannotPair, at: now)) }

    @discardableResult
    func receive(_ event: String) throws -> Bool {
        guard let actions = responder.received(try ManagementEvent(bytes(event).span).content, at: now) else {
            return false
        }
        perform(actions)
        return true
    }

    /// A central has paired so far that its link is encrypted, and its keys are to come.
    static func encrypted() throws -> ResponderRun {
        let run = ResponderRun()
        run.allow()
        try run.begin(PairingEvent.confirmation)
        run.reply(.yes)
        _ = run.sent
        run.encrypt()
        return run
    }

    func reply(_ reply: PairingExchange.Reply) { perform(responder.replied(reply, to: lastQuestion, at: now)) }
    func encrypt() { perform(responder.encryptionChanged(true, at: now)) }
    func endLink() { perform(responder.linkEnded(at: now)) }

    func secure(level: UInt8? = 2) {
        perform(responder.securityRead(level.map { ($0, 16) }, at: now))
    }

    func store(_ isStored: Bool) {
        if isStoring, isStored { storedBonds += 1 }
        isStoring = false
        perform(responder.stored(isStored, at: now))
    }

    func claimConnected() { perform(responder.identityIsConnected(at: now)) }

    func finish(_ command: PairingExchange.Command) {
        if let index = unfinished.firstIndex(of: command) { unfinished.remove(at: index) }
        perform(responder.commandFinished(command, .success(nil), at: now))
    }

    func loseAdapter() {
        unfinished = []
        perform(responder.adapterLost(at: now))
    }

    func pass(_ time: Duration) {
        now = now + time
        perform(responder.timePassed(now))
    }

    func passDeadline() {
        guard let deadline = responder.nextDeadline else { return }
        now = max(now, deadline)
        perform(responder.timePassed(now))
    }

    /// The keys and the encryption of a pairing that went well.
    func endWell(_ key: [UInt8]) throws {
        encrypt()
        try receive(PairingEvent.key(key))
        secure()
        store(true)
    }

    /// Lets everything end that can.
    func settle() {
        for _ in 0..<8 {
            passDeadline()
            secure()
            store(true)
            while let next = unfinished.first { finish(next) }
        }
    }

    func step(_ numbers: inout SeededNumbers) throws {
        let questions = [
            PairingEvent.confirmation, PairingEvent.comparison, PairingEvent.passkeyRequest,
            PairingEvent.passkeyNotification,
        ]
        switch numbers.next() % 12 {
        case 0, 1: try ask(questions.randomElement(using: &numbers) ?? "", isBusy: numbers.next() % 8 == 0)
        case 2, 3: mayBegin()
        case 4: reply([.yes, .no, .passkey(7)].randomElement(using: &numbers) ?? .no)
        case 5: encrypt()
        case 6: try receive(PairingEvent.key(PairingEvent.authenticatedKey))
        case 7: secure(level: numbers.next() % 3 == 0 ? nil : 2)
        case 8: if isStoring { store(numbers.next() % 2 == 0) }
        case 9: if let command = unfinished.randomElement(using: &numbers) { finish(command) }
        case 10: if numbers.next() % 4 == 0 { try receive(PairingEvent.failed) }
        default:
            switch numbers.next() % 5 {
            case 0: endLink()
            case 1: loseAdapter()
            case 2: pass(.seconds(30))
            case 3: cannotBegin()
            default: try receive(PairingEvent.identity)
            }
        }
    }

    private func perform(_ actions: [PairingResponder.Action]) {
        for action in actions {
            switch action {
            case .rest(let capability): rests.append(capability)
            case .begin: begins += 1
            case .send(let command, let peer):
                commands.append(command)
                unfinished.append(command)
                sentPeers.append(peer)
            case .ask(let question, _, let number):
                questions.append(question)
                #expect(number > lastQuestion)
                lastQuestion = number
            case .refuse(let command, let peer):
                commands.append(command)
                sentPeers.append(peer)
            case .disconnect: disconnects += 1
            case .stopAsking: stopped = true
            case .readSecurity: readsSecurity = true
            case .store(let outcome, _):
                stores = outcome
                isStoring = true
            case .finish(_, let result): ends.append(result)
            case .refused(_, let failure): refused.append(failure)
            case .permissionEnded: endedPermissions += 1
            }
        }
    }
}
