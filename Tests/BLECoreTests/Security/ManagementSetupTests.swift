import BLECore
import TestSupport
import Testing

/// The setup of an adapter, packet by packet, by the layouts of the kernel's `mgmt.h` and with the responses that
/// kernels gave.
@Suite struct ManagementSetupTests {
    private let start = BootInstant(nanoseconds: 10_000_000_000)

    // MARK: The sequence

    /// An adapter for LE only that is off: nothing has to be switched off first.
    @Test func anAdapterThatIsOffIsSetUpAndSwitchedOn() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(
            run.sent == [
                "0400 0000 0000", "0d00 0000 0100 01", "2d00 0000 0100 01", "0900 0000 0100 00", "1800 0000 0100 03",
                "load identityResolvingKeys", "load longTermKeys", "0500 0000 0100 01",
            ])
        #expect(run.others == [.listsLoaded(1, nil), .finish(.success(run.result(0x0A01, canPair: true)))])
        #expect(run.setup.isManaged && run.setup.canPair == true)
    }

    @Test func anAdapterThatIsOffMayStayOff() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: false))
        run.play()
        #expect(run.sent.last == "load longTermKeys" && run.sent.count == 7)
        #expect(run.others == [.listsLoaded(1, nil), .finish(.success(run.result(0x0A00, canPair: true)))])
    }

    /// Somebody has switched it on before anything named it to the management interface: the kernel cannot pair.
    @Test func anAdapterThatIsOnIsSwitchedOffAndOnOnce() {
        for powersOn in [false, true] {
            var run = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
            run.begin(ManagementSetup.Plan(powersOn: powersOn))
            run.play()
            #expect(
                run.sent == [
                    "0400 0000 0000", "0500 0000 0100 00", "0d00 0000 0100 01", "2d00 0000 0100 01",
                    "0900 0000 0100 00", "1800 0000 0100 03", "load identityResolvingKeys", "load longTermKeys",
                    "0500 0000 0100 01",
                ])
            let result = run.result(0x0A01, canPair: true, hasCycledPower: true)
            #expect(run.others == [.listsLoaded(1, nil), .finish(.success(result))])
            // It is known from now on.
            run.begin(ManagementSetup.Plan(powersOn: true))
            #expect(run.sent.count == 9 && run.others.last == .finish(.success(run.result(0x0A01, canPair: true))))
        }
    }

    /// Its links would end.
    @Test func thePowerOfAnAdapterMayHaveToStayOn() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
        run.begin(ManagementSetup.Plan(powersOn: true, mayCyclePower: false))
        run.play()
        #expect(!run.sent.contains { $0.hasPrefix("0500") })
        #expect(run.others.last == .finish(.success(run.result(0x0A01, canPair: nil))))
        let count = run.sent.count
        run.begin(ManagementSetup.Plan(powersOn: true, mayCyclePower: false))
        #expect(run.sent.count == count)
        // A link shows that it cannot.
        run.setup.cannotPair()
        #expect(run.setup.canPair == false)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.sent.count { $0 == "0500 0000 0100 00" } == 1)
        #expect(run.others.last == .finish(.success(run.result(0x0A01, canPair: true, hasCycledPower: true))))
    }

    @Test func whatTheOwnerKnowsIsBelieved() {
        var able = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
        able.begin(ManagementSetup.Plan(powersOn: true, canPair: true))
        able.play()
        #expect(!able.sent.contains { $0.hasPrefix("0500") })
        #expect(able.others.last == .finish(.success(able.result(0x0A01, canPair: true))))
        able.begin(ManagementSetup.Plan(powersOn: true, canPair: false))
        able.play()
        #expect(able.sent.count { $0 == "0500 0000 0100 00" } == 1)
    }

    /// With BR/EDR on, the kernel rejects Secure Connections without Secure Simple Pairing.
    @Test func anAdapterWithClassicNeedsSimplePairingFirst() {
        var run = Run(supported: Settings.dualMode, current: 0x0080)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(
            run.sent.prefix(4) == [
                "0400 0000 0000", "0d00 0000 0100 01", "0b00 0000 0100 01", "2d00 0000 0100 01",
            ])
        #expect(run.others.last == .finish(.success(run.result(0x0AC1, canPair: true))))
        // Where it is on already, nothing is sent; BR/EDR is not touched either way.
        var next = Run(supported: Settings.dualMode, current: 0x00C0)
        next.begin(ManagementSetup.Plan(powersOn: true))
        next.play()
        #expect(!next.sent.contains { $0.hasPrefix("0b00") })
    }

    /// "Only" would end every encrypted LE link.
    @Test func secureConnectionsAreNeverTheOnlyOnes() {
        var run = Run(supported: Settings.dualMode, current: 0x0ED1)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.sent.filter { $0.hasPrefix("2d00") } == ["2d00 0000 0100 01"])
        #expect(!run.setup.isPairing && run.setup.isManaged)
    }

    // MARK: Refusals

    @Test(arguments: [0x0C, 0x0B, 0x01] as [UInt8]) func anOlderAdapterHasNoSecureConnections(_ status: UInt8) {
        var run = Run(supported: Settings.dualMode, current: 0x0080)
        run.statuses = [0x0B: [status], 0x2D: [status]]
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.others.last == .finish(.success(run.result(0x0281, canPair: true))))
    }

    /// Each command of the sequence, refused with each status: the setup ends once, and says why.
    @Test(arguments: [0x04, 0x05, 0x0D, 0x2D, 0x09, 0x18, 0x30, 0x13] as [UInt8], 1...0x15 as ClosedRange<UInt8>)
    func everyRefusalIsNamed(_ command: UInt8, _ status: UInt8) {
        let harmless = command == 0x2D && [0x01, 0x0B, 0x0C].contains(status)
        // The power is changed twice: what is refused is the last change.
        for isOn in [false, true] {
            var run = Run(supported: Settings.lowEnergyOnly, current: isOn ? 0x0201 : 0)
            let refusals = [UInt8](repeating: status, count: ManagementSetup.tries)
            run.statuses[command] = command == 0x05 && isOn ? [0] + refusals : refusals
            run.begin(ManagementSetup.Plan(powersOn: true))
            run.play()
            let ends = run.others.compactMap { action -> Result<ManagementSetup.Managed, ManagementSetup.Failure>? in
                if case .finish(let result) = action { result } else { nil }
            }
            #expect(ends.count == 1)
            if harmless {
                #expect(ends.first == .success(run.result(0x0201, canPair: true, hasCycledPower: isOn)))
                continue
            }
            let code = ManagementCommandCode(rawValue: UInt16(command))
            let failure = ManagementCommandFailure(
                code: code, reason: .status(ManagementStatus(rawValue: status)))
            let expected: ManagementSetup.Failure =
                switch status {
                case 0x14: .notPermitted
                case 0x11: .adapterGone
                case 0x12: .blocked
                case _ where command == 0x30:
                    .listRefused(.identityResolvingKeys, ManagementStatus(rawValue: status))
                case _ where command == 0x13: .listRefused(.longTermKeys, ManagementStatus(rawValue: status))
                default: .command(failure)
                }
            #expect(ends.first == .failure(expected))
            #expect(run.setup.isManaged == false)
            // What was switched off is on again, unless that very command was refused.
            if isOn, command != 0x04, command != 0x05 {
                #expect(run.sent.last == "0500 0000 0100 01" && run.settings & 1 == 1)
            }
        }
    }

    @Test func aBusyKernelIsAskedAgain() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.statuses[0x05] = [0x0A, 0x0A]
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.sent.count { $0 == "0500 0000 0100 01" } == 3)
        #expect(run.now == start + .seconds(1))
        #expect(run.others.last == .finish(.success(run.result(0x0A01, canPair: true))))
    }

    @Test func aPowerThatDoesNotChangeIsAFailure() {
        for (current, sticksAt) in [(UInt32(0x0201), UInt32(1)), (0, 0)] {
            var run = Run(supported: Settings.lowEnergyOnly, current: current)
            run.stuckPower = sticksAt
            run.begin(ManagementSetup.Plan(powersOn: true))
            run.play()
            #expect(run.others.last == .finish(.failure(.powerUnchanged)))
        }
    }

    @Test func aPowerThatChangesLateIsSetAgain() {
        // The kernel may take the end of the switch-off for that of the switch-on.
        var run = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
        run.powerChangesUnseen = [2]
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(
            run.sent.filter { $0.hasPrefix("0500") } == ["0500 0000 0100 00", "0500 0000 0100 01", "0500 0000 0100 01"])
        #expect(run.now == start + .milliseconds(500))
        #expect(run.others.last == .finish(.success(run.result(0x0A01, canPair: true, hasCycledPower: true))))
    }

    @Test func anAdapterWithoutLowEnergyIsRefused() {
        var run = Run(supported: 0x1FF, current: 0x81)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.sent.count == 1 && run.others == [.finish(.failure(.noLowEnergy))])
    }

    @Test func malformedResponsesAreFailures() throws {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.respond(0x04, [0, 1, 2])
        guard case .finish(.failure(.command(let failure)))? = run.others.last, case .malformed = failure.reason else {
            Issue.record("\(run.others)")
            return
        }
    }

    @Test func aListThatDoesNotFitIsNamed() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.limit = 1_028
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        let failure = ManagementSetup.Failure.listTooLong(.longTermKeys, limit: 1_028)
        #expect(run.others == [.finish(.failure(failure)), .listsLoaded(1, failure)])
    }

    @Test func aKernelThatDoesNotRespondIsAFailure() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.fail(.readControllerInformation, .timeout)
        let failure = ManagementCommandFailure(code: .readControllerInformation, reason: .timeout)
        #expect(run.others == [.finish(.failure(.command(failure)))])
        // A late response begins nothing.
        run.respond(0x04, [0])
        #expect(run.others.count == 1 && run.sent.count == 1)
    }

    // MARK: Lists

    @Test func listsAreLoadedWholeAndInOrder() {
        var run = Run.managed()
        let number = run.reload()
        #expect(run.sent == ["load identityResolvingKeys"])
        // Requested while one runs: what it has loaded may be older.
        let next = run.reload()
        let same = run.reload()
        #expect(next == number + 1 && same == next)
        run.play()
        #expect(
            run.sent == [
                "load identityResolvingKeys", "load longTermKeys", "load identityResolvingKeys", "load longTermKeys",
            ])
        #expect(run.others == [.listsLoaded(number, nil), .listsLoaded(next, nil)])
    }

    @Test func aRefusedListEndsTheLoadAndNothingElse() {
        var run = Run.managed()
        run.statuses[0x30] = [0x0D]
        let first = run.reload()
        run.play()
        #expect(run.sent == ["load identityResolvingKeys"])
        #expect(run.others == [.listsLoaded(first, .listRefused(.identityResolvingKeys, .invalidParameters))])
        #expect(run.setup.isManaged == true)
        let second = run.reload()
        run.play()
        #expect(run.others.last == .listsLoaded(second, nil))
    }

    @Test func listsOfAnUnmanagedAdapterAreNotLoaded() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        let number = run.reload()
        #expect(run.sent.isEmpty && run.others == [.listsLoaded(number, .notManaged)])
        // The setup that begins serves a load that is requested before its own.
        run.begin(ManagementSetup.Plan(powersOn: true))
        let next = run.reload()
        run.play()
        #expect(run.sent.count { $0.hasPrefix("load") } == 2)
        #expect(run.others.contains(.listsLoaded(next, nil)) && next == number + 1)
    }

    /// The kernel holds references into its lists while keys are distributed.
    @Test func noListIsLoadedWhileAPairingRuns() {
        var run = Run.managed()
        run.pairingBegins()
        #expect(run.others == [.pairingMayBegin] && run.setup.isPairing)
        let number = run.reload()
        #expect(run.sent.isEmpty)
        // Nor after somebody has switched the power off and on.
        run.newSettings(0x0A00)
        run.newSettings(0x0A01)
        #expect(run.sent.isEmpty)
        run.pairingEnds()
        run.play()
        #expect(run.sent == ["load identityResolvingKeys", "load longTermKeys"])
        #expect(run.others == [.pairingMayBegin, .listsLoaded(number, nil)])
    }

    @Test func aPairingWaitsForTheLoad() {
        var run = Run.managed()
        let number = run.reload()
        run.pairingBegins()
        run.pairingBegins()
        #expect(run.others.isEmpty && !run.setup.isPairing)
        run.play()
        #expect(run.others == [.listsLoaded(number, nil), .pairingMayBegin])
        // One that is not to begin any more does not.
        run.pairingEnds()
        run.play()
        _ = run.reload()
        run.pairingBegins()
        run.pairingEnds()
        run.play()
        #expect(run.others.count { $0 == .pairingMayBegin } == 1)
    }

    @Test func aSetupWaitsForThePairing() {
        var run = Run.managed()
        run.pairingBegins()
        run.lose()
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.begin(ManagementSetup.Plan(powersOn: true))
        #expect(run.sent.isEmpty)
        run.pairingEnds()
        run.play()
        #expect(run.sent.first == "0400 0000 0000")
        #expect(run.others.count { if case .finish = $0 { true } else { false } } == 1)
    }

    // MARK: Others

    @Test func listsAreLoadedAgainAfterAnotherProgramHasSwitchedThePower() {
        var run = Run.managed()
        run.newSettings(0x0A00)
        #expect(run.sent.isEmpty && run.setup.isManaged)
        run.newSettings(0x0A01)
        run.play()
        #expect(run.sent == ["load identityResolvingKeys", "load longTermKeys"])
        run.newSettings(0x0A01)
        #expect(run.sent.count == 2, "once")
    }

    @Test func aSetupSwitchesOnAnAdapterThatAnotherProgramHasSwitchedOff() {
        var run = Run.managed()
        run.newSettings(0x0A00)
        run.begin(ManagementSetup.Plan(powersOn: false))
        #expect(run.sent.isEmpty)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.sent.first == "0400 0000 0000" && run.sent.last == "0500 0000 0100 01")
        #expect(run.setup.isManaged == true)
    }

    @Test func anAdapterThatIsMadeBondableIsReported() {
        var run = Run.managed()
        run.newSettings(0x0A11)
        run.newSettings(0x0A11)
        #expect(run.others == [.madeBondable])
        run.newSettings(0x0A01)
        // Within a pairing it is this program's own setting.
        run.pairingBegins()
        run.newSettings(0x0A11)
        run.pairingEnds()
        run.play()
        #expect(run.others == [.madeBondable, .pairingMayBegin, .listsLoaded(2, nil)])
    }

    /// As bluetoothd leaves it; the setup ends that.
    @Test func anAdapterThatIsFoundBondableIsReported() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0x0A11)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.others.first == .wasBondable && run.others.count { $0 == .wasBondable } == 1)
        #expect(run.sent.contains("0900 0000 0100 00"))
    }

    @Test func whatOthersChangeForPairingsIsReported() {
        var run = Run.managed()
        run.newSettings(0x0201)
        run.newSettings(0x0201)
        run.newSettings(0x2A01)
        run.newSettings(0x2A01)
        #expect(run.others == [.secureConnectionsOff, .privacyOn])
    }

    @Test func secureConnectionsAreOnAgainForAPairing() {
        var run = Run.managed()
        run.newSettings(0x0201)
        #expect(run.sent.isEmpty)
        run.pairingBegins()
        #expect(run.sent == ["2d00 0000 0100 01"] && run.others == [.secureConnectionsOff])
        run.play()
        #expect(run.sent.count == 1 && run.others == [.secureConnectionsOff, .pairingMayBegin])
        // There is still legacy pairing.
        var refused = Run.managed()
        refused.newSettings(0x0201)
        refused.statuses[0x2D] = [0x0B]
        refused.pairingBegins()
        refused.play()
        #expect(refused.sent == ["2d00 0000 0100 01"])
        #expect(refused.others == [.secureConnectionsOff, .pairingMayBegin])
    }

    /// The kernel responds to the Pairing Request of a central by itself.
    @Test func secureConnectionsAreOnWhileCentralsMayPair() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        for _ in 0..<3 {
            run.forgetActions()
            run.newSettings(0x0211)
            run.respond()
            #expect(run.sent == ["2d00 0000 0100 01"] && run.others == [.secureConnectionsOff])
        }
        // Two programs do not fight without end.
        run.forgetActions()
        run.newSettings(0x0211)
        #expect(run.sent.isEmpty)
        let begin = run.now
        run.play()
        #expect(run.sent == ["2d00 0000 0100 01"] && run.now == begin + ManagementSetup.clearingTime)
    }

    // MARK: When a pairing may begin

    /// What prevents a pairing, and with which failure.
    @Test func aPairingBeginsOnAnAdapterThatCanPairOnly() {
        var unmanaged = Run(supported: Settings.lowEnergyOnly, current: 0)
        unmanaged.pairingBegins()
        #expect(unmanaged.others == [.pairingRefused(.notManaged)] && !unmanaged.setup.isPairing)

        var unable = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
        unable.begin(ManagementSetup.Plan(powersOn: true, mayCyclePower: false))
        unable.play()
        unable.pairingBegins()
        #expect(unable.others.last == .pairingRefused(.cannotPair))

        var off = Run.managed()
        off.newSettings(0x0A00)
        off.pairingBegins()
        off.play()
        #expect(off.others.last == .pairingRefused(.switchedOff))

        var failing = Run(supported: Settings.lowEnergyOnly, current: 0)
        failing.statuses[0x18] = [0x14]
        failing.begin(ManagementSetup.Plan(powersOn: true))
        failing.pairingBegins()
        failing.play()
        #expect(failing.others == [.finish(.failure(.notPermitted)), .pairingRefused(.notPermitted)])
        // The next one is a new one.
        failing.pairingBegins()
        #expect(failing.others.last == .pairingRefused(.notManaged))
    }

    /// Without the lists, peers are not asked for their identity.
    @Test func aPairingNeedsTheLists() {
        var run = Run.managed()
        run.newSettings(0x0A00)
        run.statuses[0x30] = [0x0D, 0x0D]
        run.newSettings(0x0A01)
        run.play()
        run.pairingBegins()
        run.play()
        #expect(run.others.last == .pairingRefused(.listRefused(.identityResolvingKeys, .invalidParameters)))
        // They are loaded for it.
        run.pairingBegins()
        run.play()
        #expect(run.others.last == .pairingMayBegin)
    }

    /// The kernel may have keys that are no bond's, or lack some: whatever a pairing has come to.
    @Test func afterEachPairingTheListsAreLoaded() {
        var run = Run.managed()
        run.pairingBegins()
        run.pairingEnds()
        run.play()
        #expect(run.sent == ["load identityResolvingKeys", "load longTermKeys"])
        // One that never began has changed nothing.
        run.statuses[0x30] = [0x0D]
        _ = run.reload()
        run.pairingBegins()
        run.pairingEnds()
        run.play()
        #expect(run.sent.count == 3)
    }

    @Test func anAdapterThatIsLeftBondableIsClosed() {
        var run = Run.managed()
        run.pairingBegins()
        run.pairingEnds(isBondable: true)
        #expect(run.sent == ["0900 0000 0100 00"])
        run.play()
        #expect(run.sent == ["0900 0000 0100 00", "load identityResolvingKeys", "load longTermKeys"])
        #expect(!run.others.contains(.madeBondable))
        run.statuses[0x09] = [0x03]
        run.pairingBegins()
        run.pairingEnds(isBondable: true)
        run.play()
        #expect(run.others.contains(.madeBondable) && run.sent.last == "load longTermKeys")
    }

    // MARK: The state of rest

    @Test func centralsMayPairAtRest() {
        var run = Run.managed()
        run.rest(.displayOnly)
        #expect(run.sent == ["0900 0000 0100 01"] && run.others.isEmpty)
        run.play()
        #expect(run.sent == ["0900 0000 0100 01", "1800 0000 0100 00"] && run.others == [.rested(nil)])
        run.rest(.displayOnly)
        #expect(run.sent.count == 2 && run.others == [.rested(nil), .rested(nil)])
        run.rest(nil)
        run.play()
        #expect(run.sent.suffix(2) == ["0900 0000 0100 00", "1800 0000 0100 03"])
        #expect(run.others == [.rested(nil), .rested(nil), .rested(nil)])
    }

    /// The kernel knows nothing of it after it was plugged in again.
    @Test func theStateOfRestOutlivesTheAdapter() {
        var run = Run.managed()
        run.rest(.keyboardOnly)
        run.play()
        run.lose()
        run.forgetActions()
        run.settings = 0x10
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.sent.contains("0900 0000 0100 01") && run.sent.contains("1800 0000 0100 02"))
        // It is bondable as it should be.
        #expect(!run.others.contains(.wasBondable))
        run.newSettings(0x0A01)
        run.newSettings(0x0A11)
        #expect(!run.others.contains(.madeBondable))
    }

    /// The input and output may be other ones too, which the kernel reports to nobody.
    @Test func whatAnotherProgramClearsIsSetAgain() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        run.forgetActions()
        run.newSettings(0x0A01)
        #expect(run.others == [.bondableCleared(isSetAgain: true)])
        run.play()
        #expect(run.sent == ["0900 0000 0100 01", "1800 0000 0100 00"])
        #expect(run.others == [.bondableCleared(isSetAgain: true)])
        // What nobody may do is not set again.
        run.rest(nil)
        run.play()
        run.forgetActions()
        run.newSettings(0x0A11)
        run.newSettings(0x0A01)
        #expect(run.others == [.madeBondable] && run.sent.isEmpty)
    }

    @Test func aSettingIsSetAgainThreeTimesInAMinute() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        run.forgetActions()
        let begin = run.now
        for _ in 0..<3 {
            run.newSettings(0x0A01)
            for _ in 0..<2 { run.respond() }
            #expect(run.sent == ["0900 0000 0100 01", "1800 0000 0100 00"])
            run.forgetActions()
            run.now = run.now + .seconds(10)
        }
        run.newSettings(0x0A01)
        run.newSettings(0x0A11)
        run.newSettings(0x0A01)
        #expect(run.others == [.bondableCleared(isSetAgain: false)] && run.sent.isEmpty)
        // Neither a load of the lists nor a pairing does it earlier.
        _ = run.reload()
        for _ in 0..<2 { run.respond() }
        #expect(run.sent == ["load identityResolvingKeys", "load longTermKeys"])
        #expect(run.setup.nextDeadline == begin + ManagementSetup.clearingTime)
        run.forgetActions()
        run.play()
        #expect(run.sent == ["0900 0000 0100 01", "1800 0000 0100 00"] && run.others.isEmpty)
        #expect(run.now == begin + ManagementSetup.clearingTime && run.setup.nextDeadline == nil)
    }

    /// The owner would take it for done, and no central could pair.
    @Test func aRestThatOthersKeepUndoingFails() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.respond()
        #expect(run.sent == ["0900 0000 0100 01", "1800 0000 0100 00"])
        for round in 0..<4 {
            if round > 0 { run.newSettings(0x0A11) }
            run.newSettings(0x0A01)
        }
        #expect(run.others.last == .bondableCleared(isSetAgain: false))
        run.respond()
        #expect(run.others.last == .rested(.bondableCleared) && run.sent.count == 2)
        // A later one begins at once.
        run.forgetActions()
        run.rest(.displayOnly)
        for _ in 0..<2 { run.respond() }
        #expect(run.sent.first == "0900 0000 0100 01" && run.others.last == .rested(nil))
    }

    @Test func aSettingThatCannotBeSetAgainIsReported() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        run.forgetActions()
        run.statuses[0x09] = [0x0B]
        run.newSettings(0x0A01)
        run.play()
        let failure = ManagementCommandFailure(code: .setBondable, reason: .status(.rejected))
        #expect(run.others == [.bondableCleared(isSetAgain: true), .rested(.command(failure))])
        #expect(run.sent == ["0900 0000 0100 01"])
    }

    /// The pairing itself does not need it any more.
    @Test func aSettingThatIsClearedDuringAPairingIsSetAgainAfterIt() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        run.pairingBegins()
        run.forgetActions()
        run.newSettings(0x0A01)
        #expect(run.sent.isEmpty)
        run.pairingEnds(isBondable: nil)
        run.play()
        #expect(run.sent.prefix(2) == ["0900 0000 0100 01", "1800 0000 0100 00"])
    }

    @Test func theStateOfRestWaitsForAPairing() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        run.pairingBegins()
        run.forgetActions()
        run.rest(nil)
        // A user may need longer for it than the owner waits.
        #expect(run.sent.isEmpty && run.others == [.rested(nil)])
        run.forgetActions()
        run.pairingEnds(isBondable: nil)
        run.play()
        #expect(
            run.sent == [
                "0900 0000 0100 00", "1800 0000 0100 03", "load identityResolvingKeys", "load longTermKeys",
            ])
        #expect(!run.others.contains(.rested(nil)))
    }

    /// A pairing of this side ends with an adapter that is not bondable.
    @Test func centralsMayPairAgainAfterAPairingOfThisSide() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.play()
        run.pairingBegins()
        run.forgetActions()
        run.pairingEnds(isBondable: false)
        run.play()
        #expect(run.sent.first == "0900 0000 0100 01" && run.sent.last == "load longTermKeys")
    }

    @Test func aStateOfRestThatTheKernelRefusesIsTriedOnce() {
        var run = Run.managed()
        run.statuses[0x09] = [0x0B, 0x0B]
        run.rest(.displayOnly)
        run.play()
        _ = run.reload()
        run.play()
        #expect(run.sent == ["0900 0000 0100 01", "load identityResolvingKeys", "load longTermKeys"])
        let failure = ManagementCommandFailure(code: .setBondable, reason: .status(.rejected))
        #expect(run.others.first == .rested(.command(failure)))
        var other = Run(supported: Settings.lowEnergyOnly, current: 0)
        other.rest(.displayOnly)
        #expect(other.others == [.rested(.notManaged)] && other.sent.isEmpty)
    }

    /// A response belongs to what was sent, not to what is wanted since.
    @Test func theStateOfRestMayChangeWhileACommandIsOut() {
        var run = Run.managed()
        run.rest(.displayOnly)
        run.rest(nil)
        run.play()
        #expect(run.sent == ["0900 0000 0100 01", "0900 0000 0100 00"] && run.others == [.rested(nil)])
    }

    // MARK: Power

    /// The kernel has an adapter on for two seconds after it was plugged in, and reports it as off.
    @Test func anAdapterThatWasPluggedInOnlySeemsToBeOff() {
        for isLate in [true, false] {
            var run = Run(supported: Settings.lowEnergyOnly, current: 0, isPluggedIn: true)
            if isLate { run.now = run.now + ManagementSetup.grace }
            run.begin(ManagementSetup.Plan(powersOn: false))
            run.play()
            #expect(run.others.last == .finish(.success(run.result(0x0A00, canPair: isLate ? true : nil))))
            // Somebody switches it on by HCIDEVUP.
            run.newSettings(0x0A01)
            run.begin(ManagementSetup.Plan(powersOn: true))
            run.play()
            #expect(run.sent.count { $0 == "0500 0000 0100 00" } == (isLate ? 0 : 1))
            #expect(run.setup.canPair == true)
        }
        // Set Powered sets everything up.
        var run = Run(supported: Settings.lowEnergyOnly, current: 0, isPluggedIn: true)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.others.last == .finish(.success(run.result(0x0A01, canPair: true))))
    }

    /// The kernel may still execute it.
    @Test func aPowerThatMayBeOffIsSwitchedOnAgain() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
        run.begin(ManagementSetup.Plan(powersOn: false))
        run.respond()
        #expect(run.sent.last == "0500 0000 0100 00")
        run.time(out: .setPowered)
        #expect(run.sent.last == "0500 0000 0100 01")
        run.play()
        let failure = ManagementCommandFailure(code: .setPowered, reason: .timeout)
        #expect(run.others == [.finish(.failure(.command(failure)))])
    }

    @Test func aPowerThatIsOffWhenTheSocketIsLostIsSwitchedOnByTheNextSetup() {
        for isLost in [true, false] {
            var run = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
            run.begin(ManagementSetup.Plan(powersOn: false))
            run.respond()
            run.respond()
            #expect(run.settings & 1 == 0)
            if isLost { run.fail(.setLowEnergy, .socketLost) } else { run.lose() }
            run.forgetPending()
            run.begin(ManagementSetup.Plan(powersOn: false))
            run.play()
            #expect(run.settings & 1 == (isLost ? 1 : 0))
        }
    }

    @Test func aSetupThatRunsServesTheNextOneToo() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: false))
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        #expect(run.others.last == .finish(.success(run.result(0x0A01, canPair: true))))
        // A link has come up meanwhile.
        var linked = Run(supported: Settings.lowEnergyOnly, current: 0x0201)
        linked.begin(ManagementSetup.Plan(powersOn: true))
        linked.begin(ManagementSetup.Plan(powersOn: true, mayCyclePower: false))
        linked.play()
        #expect(!linked.sent.contains("0500 0000 0100 00"))
        #expect(linked.others.last == .finish(.success(linked.result(0x0A01, canPair: nil))))
    }

    @Test func aLostAdapterEndsEverythingOnce() {
        var setup = Run(supported: Settings.lowEnergyOnly, current: 0)
        setup.begin(ManagementSetup.Plan(powersOn: true))
        let number = setup.reload()
        setup.pairingBegins()
        setup.lose()
        setup.lose()
        #expect(
            setup.others == [
                .finish(.failure(.adapterGone)), .listsLoaded(number, .adapterGone), .pairingRefused(.adapterGone),
            ])
        // By the failure of the command, and then by the event.
        var load = Run.managed()
        let next = load.reload()
        load.fail(.loadIdentityResolvingKeys, .adapterLost)
        load.lose()
        #expect(load.others == [.listsLoaded(next, .adapterGone)])
        #expect(!load.setup.isManaged && load.setup.canPair == nil)
        // One with the same number that comes back is a new one.
        load.settings = 0x0201
        load.begin(ManagementSetup.Plan(powersOn: true))
        load.play()
        #expect(load.sent.contains("0500 0000 0100 00"))
    }

    @Test func aLostSocketEndsTheSetup() {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.fail(.readControllerInformation, .socketLost)
        let failure = ManagementCommandFailure(code: .readControllerInformation, reason: .socketLost)
        #expect(run.others == [.finish(.failure(.command(failure)))])
    }

    @Test func theTimeOfNothingPassesWithoutEffect() {
        var run = Run.managed()
        #expect(run.setup.timePassed(start + .seconds(100)) == [])
        let deadline = run.setup.nextDeadline
        #expect(deadline == nil)
    }
}

/// Settings that adapters of the VM report as supported.
private enum Settings {
    /// Powered, bondable, LE, advertising, Secure Connections, debug keys, privacy, static address.
    static let lowEnergyOnly: UInt32 = 0xBE11
    static let dualMode: UInt32 = 0xBEFF
}

/// A setup, and a kernel that carries out what it is sent.
private struct Run: ~Copyable {
    var setup: ManagementSetup
    let supported: UInt32
    var settings: UInt32
    /// The statuses of commands by their codes, once each, before they succeed.
    var statuses: [UInt8: [UInt8]] = [:]
    /// The power that the kernel keeps, whatever a command sets.
    var stuckPower: UInt32?
    /// The numbers of the changes of the power, from 1, whose response shows the power before.
    var powerChangesUnseen: Set<Int> = []
    private var powerChanges = 0
    /// The longest packet; 1,024 keys are stored.
    var limit = 0xFFFF
    var now = BootInstant(nanoseconds: 10_000_000_000)
    /// What was sent: packets as hexadecimal numbers, and loads by their names.
    private(set) var sent: [String] = []
    /// All other actions.
    private(set) var others: [ManagementSetup.Action] = []
    private var pending: [[UInt8]] = []

    /// An adapter that was plugged in long ago, or at this moment.
    init(supported: UInt32, current: UInt32, isPluggedIn: Bool = false) {
        self.supported = supported
        settings = current
        setup = ManagementSetup(adapter: 0, at: isPluggedIn ? now : BootInstant(nanoseconds: 0))
    }

    /// An adapter for LE that was set up, and on.
    static func managed() -> Run {
        var run = Run(supported: Settings.lowEnergyOnly, current: 0)
        run.begin(ManagementSetup.Plan(powersOn: true))
        run.play()
        run.sent = []
        run.others = []
        return run
    }

    func result(_ current: UInt32, canPair: Bool?, hasCycledPower: Bool = false) -> ManagementSetup.Managed {
        ManagementSetup.Managed(
            settings: ManagementSettings(rawValue: current), canPair: canPair, hasCycledPower: hasCycledPower)
    }

    mutating func begin(_ plan: ManagementSetup.Plan) { obey(setup.begin(plan)) }
    mutating func pairingBegins() { obey(setup.pairingBegins()) }
    mutating func rest(_ capability: IOCapability?) { obey(setup.rest(capability)) }
    mutating func pairingEnds(isBondable: Bool? = false) { obey(setup.pairingEnds(isBondable: isBondable)) }

    mutating func reload() -> UInt64 {
        let (number, actions) = setup.reload()
        obey(actions)
        return number
    }

    mutating func newSettings(_ value: UInt32) {
        settings = value
        obey(setup.received(ManagementSettings(rawValue: value), at: now))
    }

    mutating func lose() {
        pending = []
        obey(setup.adapterLost())
    }

    /// Lets the kernel carry out what it was sent, until nothing is left.
    mutating func play() {
        while true {
            if pending.isEmpty {
                guard let deadline = setup.nextDeadline else { return }
                now = deadline
                obey(setup.timePassed(now))
                continue
            }
            carryOut(pending.removeFirst())
        }
    }

    /// Lets the kernel carry out the next command alone.
    mutating func respond() {
        if !pending.isEmpty { carryOut(pending.removeFirst()) }
    }

    /// The next command has no response.
    mutating func time(out code: ManagementCommandCode) {
        pending.removeFirst()
        fail(code, .timeout)
    }

    mutating func forgetPending() { pending = [] }

    mutating func forgetActions() {
        sent = []
        others = []
    }

    private mutating func carryOut(_ packet: [UInt8]) {
        let code = packet[0]
        if var list = statuses[code], !list.isEmpty {
            let status = list.removeFirst()
            statuses[code] = list
            if status != 0 { return respond(code, status: status) }
        }
        let isOn = packet.count > 6 && packet[6] != 0
        switch code {
        case 0x04:
            let numbers = [supported, settings].flatMap { value in (0..<4).map { UInt8(value >> (8 * $0) & 0xFF) } }
            return respond(
                code, [1, 2, 3, 4, 5, 6, 9, 0x0F, 0x00] + numbers + [UInt8](repeating: 0, count: 3 + 249 + 11))
        case 0x05:
            powerChanges += 1
            if !powerChangesUnseen.contains(powerChanges) { set(stuckPower.map { $0 != 0 } ?? isOn, 1 << 0) }
        case 0x09: set(isOn, 1 << 4)
        case 0x0B: set(isOn, 1 << 6)
        case 0x0D: set(isOn, 1 << 9)
        case 0x2D: set(isOn, 1 << 11)
        case 0x13 where limit < 1_024 * 36:
            return fail(.loadLongTermKeys, .tooLong(limit: limit))
        default: return respond(code, [])
        }
        respond(code, (0..<4).map { UInt8(settings >> (8 * $0) & 0xFF) })
    }

    private mutating func set(_ isOn: Bool, _ bit: UInt32) { settings = isOn ? settings | bit : settings & ~bit }

    /// Command Complete with success.
    mutating func respond(_ code: UInt8, _ returned: [UInt8]) {
        let length = returned.count + 3
        let packet = [1, 0, 0, 0, UInt8(length & 0xFF), UInt8(length >> 8), code, 0, 0] + returned
        guard case .commandComplete(let complete)? = try? ManagementEvent(packet.span).content else {
            Issue.record("no response: \(packet)")
            return
        }
        obey(setup.commandFinished(complete.command, .success(complete), at: now))
    }

    private mutating func respond(_ code: UInt8, status: UInt8) {
        fail(ManagementCommandCode(rawValue: UInt16(code)), .status(ManagementStatus(rawValue: status)))
    }

    mutating func fail(_ code: ManagementCommandCode, _ reason: ManagementCommandFailure.Reason) {
        obey(setup.commandFinished(code, .failure(ManagementCommandFailure(code: code, reason: reason)), at: now))
    }

    private mutating func obey(_ actions: [ManagementSetup.Action]) {
        for action in actions {
            switch action {
            case .send(let packet):
                let words = packet.bytes
                sent.append(
                    [words[0..<2], words[2..<4], words[4..<6], words[6...]].map { Hex.encode(Array($0)) }
                        .filter { !$0.isEmpty }.joined(separator: " "))
                pending.append(words)
            case .load(let list):
                sent.append("load \(list)")
                pending.append([list == .identityResolvingKeys ? 0x30 : 0x13, 0, 0, 0, 2, 0, 0, 0])
            default:
                others.append(action)
            }
        }
    }
}
