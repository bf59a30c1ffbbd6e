import BLECore
import TestSupport
import Testing

/// The packets follow the layouts of the kernel's `mgmt.h`.
@Suite struct AdvertisingAddressResetTests {
    private let start = BootInstant(nanoseconds: 5_000_000_000)
    /// A connectable instance without an interval of its own, and its removal.
    private let addFour = "54000000120004010000000000000000000000000000007f"
    private let addThree = "54000000120003010000000000000000000000000000007f"
    private let read = "3d0000000000"
    private let removeFour = "3f000000010004"

    @Test func anInstanceIsAddedWithoutDataAndRemoved() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        #expect(run.sent == [addFour] && run.usedNumbers == [4])
        run.respond()
        #expect(run.sent == [addFour, removeFour] && run.ends.isEmpty)
        run.respond()
        #expect(run.sent.count == 2 && run.ends == [nil])
        #expect(run.isResting && run.nextDeadline == nil && run.usedNumbers.isEmpty)
    }

    @Test func nothingIsSentBeforeItIsToBeKeptAndAfterwards() {
        let run = ResetRun(at: start)
        run.reset.received(.advertisingAdded(1))
        run.reset.randomInstanceAdded()
        run.reset.eventsMissed()
        run.begin()
        #expect(run.sent.isEmpty && run.nextDeadline == nil)
        #expect(run.keep())
        run.reset.release()
        run.begin()
        run.reset.received(.advertisingAdded(1))
        run.begin()
        #expect(run.sent.isEmpty && run.isResting)
    }

    /// What was added is removed all the same.
    @Test func anInstanceIsRemovedAlsoWhereTheAddressIsNotKeptAnyMore() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.reset.release()
        run.respond()
        run.respond()
        #expect(run.sent == [addFour, removeFour] && run.isResting)
    }

    /// A task that waits for the address waits for the run that follows.
    @Test func theEndOfARunThatBeganBeforeTheAddressWasToBeKeptAgainIsNotReported() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.respond()
        run.reset.release()
        #expect(run.keep())
        run.respond()
        #expect(run.ends.isEmpty && !run.isResting)
        run.begin()
        run.respond()
        run.respond()
        #expect(run.sent == [addFour, removeFour, addFour, removeFour])
        #expect(run.ends == [nil] && run.isResting)
    }

    /// The run that follows ends with the read.
    @Test func instancesThatCannotBeReadAfterAFormerRunEndTheNextOne() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.respond()
        run.fail(.status(.busy))
        run.reset.release()
        #expect(run.keep())
        run.reset.eventsMissed()
        run.advance(.milliseconds(500))
        run.respond()
        #expect(run.ends.isEmpty && !run.isResting)
        run.begin()
        #expect(run.sent == [addFour, removeFour, removeFour, read])
        run.failToRead(.timeout)
        #expect(run.ends.count == 1 && run.isResting)
    }

    /// Without sets, the kernel reads the address from the commands; the instance would take the only set.
    @Test(arguments: [(0x1F07F, 5), (0x1FFFF, 1)] as [(UInt32, UInt8)])
    func withoutAdvertisingSetsOrWithOneNothingIsSent(_ flags: UInt32, _ maximum: UInt8) {
        let run = ResetRun(flags: flags, maximum: maximum, at: start)
        #expect(!run.keep())
        run.reset.received(.advertisingAdded(1))
        run.begin()
        #expect(run.sent.isEmpty && run.isResting)
    }

    @Test func numbersThatAreInUseAreLeftAlone() {
        let run = ResetRun(at: start)
        #expect(run.keep(instances: [1, 4]))
        run.begin(avoiding: [3])
        #expect(run.usedNumbers == [2])
        let full = ResetRun(at: start)
        #expect(full.keep(instances: [1, 2, 4]))
        full.begin(avoiding: [3])
        #expect(full.sent.isEmpty && full.ends == [.noFreeInstance(limit: 4)])
    }

    /// The kernel lists no number that is greater than that of the instances. Adding it would replace the instance.
    @Test func aNumberThatWasSeenAddedIsNotUsedWhereTheKernelDoesNotListIt() {
        let run = ResetRun(at: start)
        run.reset.received(.advertisingAdded(4))
        #expect(run.isResting && run.keep())
        run.begin()
        #expect(run.sent == [addThree])
    }

    /// The kernel lists what is not greater than the number of instances, of which those listed are a part.
    @Test func aNumberThatTheKernelWouldListIsFree() {
        let run = ResetRun(at: start)
        for number in 1...2 as ClosedRange<UInt8> { run.reset.received(.advertisingAdded(number)) }
        #expect(run.keep(instances: [3, 4]))
        run.begin()
        #expect(run.usedNumbers == [2])
        let empty = ResetRun(at: start)
        empty.reset.received(.advertisingAdded(1))
        #expect(empty.keep())
        empty.begin(avoiding: [2, 3, 4])
        #expect(empty.usedNumbers == [1])
    }

    /// No event reports that.
    @Test func aNumberThatThisProgramHasRemovedIsFree() {
        let run = ResetRun(at: start)
        run.reset.received(.advertisingAdded(4))
        run.reset.removedByThisProgram(4)
        #expect(run.isResting && run.keep())
        run.begin()
        #expect(run.sent == [addFour])
    }

    @Test func whatTheKernelDoesNotListMayBeInUseWhereItIsGreaterThanTheirNumber() {
        let run = ResetRun(at: start)
        for number in 1...4 as ClosedRange<UInt8> { run.reset.received(.advertisingAdded(number)) }
        #expect(run.reset.unlisted(by: run.features([])) == [2, 3, 4])
        #expect(run.reset.unlisted(by: run.features([1, 4])) == [3])
        #expect(run.reset.unlisted(by: run.features([1, 2, 3, 4])).isEmpty)
    }

    @Test func whatOtherProgramsAddAndRemoveCausesAnotherRunAfterAPause() {
        let run = ResetRun(at: start)
        run.finishFirst(of: [2])
        for event in [ManagementEvent.Content.advertisingAdded(1), .advertisingRemoved(1), .advertisingRemoved(2)] {
            run.reset.received(event)
            run.begin()
            #expect(run.sent.isEmpty, "not at once")
            #expect(run.nextDeadline == run.now + AdvertisingAddressReset.pause)
            run.advance(AdvertisingAddressReset.pause)
            run.begin()
            run.respond()
            run.respond()
            #expect(run.takeSent() == [addFour, removeFour], "\(event)")
        }
    }

    /// Otherwise two programs that do this would cause each other's runs without end.
    @Test func theRemovalOfAnInstanceThatWasNeverAddedCausesNothing() {
        let run = ResetRun(at: start)
        run.finishFirst()
        run.reset.received(.advertisingRemoved(3))
        #expect(run.isResting)
    }

    @Test func anInstanceOfThisProgramWithARandomAddressCausesAnotherRun() {
        let run = ResetRun(at: start)
        run.finishFirst()
        run.reset.randomInstanceAdded()
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        #expect(run.sent == [addFour])
    }

    @Test func aCommandForWhichTheKernelIsBusyIsSentAgain() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.status(.busy))
        #expect(run.ends.isEmpty && run.usedNumbers == [4])
        run.advance(.milliseconds(500))
        #expect(run.sent == [addFour, addFour])
        run.respond()
        run.fail(.status(.busy))
        run.advance(.milliseconds(500))
        run.respond()
        #expect(run.sent == [addFour, addFour, removeFour, removeFour] && run.ends == [nil])
    }

    /// The kernel is busy where another program adds an instance.
    @Test func aNumberThatAnotherProgramHasTakenWhileTheKernelWasBusyIsNotUsed() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.status(.busy))
        run.reset.received(.advertisingAdded(4))
        run.advance(.milliseconds(500))
        run.begin()
        #expect(run.sent == [addFour, addThree] && run.usedNumbers == [3])
    }

    @Test func afterMissedEventsACommandThatWaitsIsNotSentBeforeTheInstancesAreRead() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.status(.busy))
        run.reset.eventsMissed()
        run.advance(.milliseconds(500))
        run.begin()
        #expect(run.sent == [addFour, read])
        run.found([1, 4])
        run.begin()
        #expect(run.sent == [addFour, read, addThree])
    }

    @Test func anInstanceForWhichTheKernelWasBusyIsNotAddedWhereTheAddressIsNotKeptAnyMore() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.status(.busy))
        run.reset.release()
        run.advance(.milliseconds(500))
        #expect(run.sent == [addFour] && run.isResting && run.usedNumbers.isEmpty)
    }

    @Test func afterSomeTriesBusyIsAFailure() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        for _ in 1...3 {
            run.fail(.status(.busy))
            run.advance(.seconds(2))
        }
        run.fail(.status(.busy))
        #expect(run.sent.count == 4 && run.ends.count == 1)
    }

    /// The kernel may be off, or have too many links for another set.
    @Test func aRunThatWasRefusedIsRepeatedAfterTheEndOfALinkOrAChangeOfThePower() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.status(.rejected))
        let failure = ManagementCommandFailure(
            code: .addExtendedAdvertisingParameters, reason: .status(.rejected))
        #expect(run.ends == [.command(failure)] && run.isResting)
        run.reset.received(.newSettings([.powered]))
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        run.respond()
        run.respond()
        #expect(run.ends == [.command(failure), nil])
        run.reset.received(.newSettings([.powered]))
        #expect(run.isResting, "once it has succeeded")
    }

    /// The kernel may have added it.
    @Test func withoutAResponseTheInstanceIsRemoved() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.timeout)
        run.fail(.status(.invalidParameters))
        #expect(run.sent == [addFour, removeFour] && run.ends == [nil])
    }

    @Test func afterTheLossOfTheSocketTheAddressIsNotKnown() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.fail(.socketLost)
        #expect(run.ends.count == 1 && !run.isResting && run.nextDeadline != nil)
        run.advance(.milliseconds(500))
        run.begin()
        #expect(run.sent == [addFour, removeFour], "the kernel may have it")
        run.respond()
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        #expect(run.sent == [addFour, removeFour, addFour])
    }

    @Test func anInstanceIsRemovedAfterTheLossOfTheSocketAlsoWhereTheAddressIsNotKeptAnyMore() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.reset.release()
        run.fail(.socketLost)
        #expect(run.usedNumbers == [4] && !run.isResting)
        run.advance(.milliseconds(500))
        run.respond()
        #expect(run.sent == [addFour, removeFour] && run.isResting && run.nextDeadline == nil)
    }

    @Test func aSocketThatCannotBeOpenedEndsTheTriesToRemove() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.reset.release()
        for _ in 1...3 {
            run.fail(.socketLost)
            run.advance(.seconds(2))
        }
        run.fail(.socketLost)
        #expect(run.sent.count == 4 && run.isResting && run.nextDeadline == nil)
    }

    /// Another program may have added one meanwhile, which must not be replaced.
    @Test func afterMissedEventsTheInstancesAreReadBeforeOneIsAdded() {
        let run = ResetRun(at: start)
        run.finishFirst()
        run.reset.eventsMissed()
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        #expect(run.sent == [read] && !run.isResting && run.nextDeadline == nil)
        run.found([4])
        run.begin()
        run.respond()
        run.respond()
        #expect(run.sent.starts(with: [read, addThree]) && run.ends == [nil, nil] && run.isResting)
        _ = run.takeSent()
        run.reset.received(.advertisingRemoved(4))
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        #expect(run.sent == [addFour], "its removal counts, and they are not read again")
    }

    @Test func instancesThatCannotBeReadAreReadAgainAfterAnEventOrOnceTheSocketIsOpen() {
        let run = ResetRun(at: start)
        run.finishFirst()
        run.reset.eventsMissed()
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        run.failToRead(.socketLost)
        #expect(run.ends.count == 2 && !run.isResting && run.nextDeadline != nil)
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        run.failToRead(.timeout)
        #expect(run.ends.count == 3 && run.isResting)
        run.reset.received(.newSettings([.powered]))
        run.advance(.seconds(30))
        run.begin()
        #expect(run.sent == [read, read, read])
    }

    @Test func instancesThatAreReadAfterTheAddressIsNotKeptAnyMoreCauseNothing() {
        let run = ResetRun(at: start)
        run.finishFirst()
        run.reset.eventsMissed()
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        run.reset.release()
        run.found([4])
        run.begin()
        #expect(run.sent == [read] && run.isResting && run.nextDeadline == nil)
    }

    /// No event reports that this program has removed one of its own.
    @Test func theNumberOfAnInstanceOfThisProgramIsFreeAfterThat() {
        let run = ResetRun(at: start)
        #expect(run.keep(instances: [4], own: [4]))
        run.begin(avoiding: [4])
        run.respond()
        run.respond()
        run.reset.received(.advertisingAdded(1))
        run.advance(AdvertisingAddressReset.pause)
        run.begin()
        #expect(run.sent.first == addThree && run.sent.last == addFour)
    }

    @Test func theKernelForgetsTheAddressOfAnAdapterThatIsUnplugged() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.adapterGone()
        run.fail(.adapterLost)
        #expect(run.ends == [nil] && run.isResting)
    }

    /// When it is back, the number may be another program's.
    @Test func aCommandThatWaitsIsNotSentAfterTheAdapterWasUnplugged() {
        let run = ResetRun(at: start)
        #expect(run.keep())
        run.begin()
        run.respond()
        run.fail(.status(.busy))
        run.adapterGone()
        #expect(run.ends == [nil] && run.isResting && run.usedNumbers.isEmpty)
        run.advance(.seconds(2))
        #expect(run.sent == [addFour, removeFour])
    }
}

/// A run of the machine.
private final class ResetRun {
    var reset = AdvertisingAddressReset()
    private let flags: UInt32
    private let maximum: UInt8
    private(set) var now: BootInstant
    private(set) var sent: [String] = []
    private(set) var ends: [AdvertisingAddressReset.Failure?] = []
    private var out: ManagementCommandCode?

    var isResting: Bool { reset.isResting }
    var nextDeadline: BootInstant? { reset.nextDeadline }
    var usedNumbers: Set<UInt8> { reset.usedNumbers }

    /// - Parameter flags: Those of a kernel and a controller with sets.
    init(flags: UInt32 = 0x1FFFF, maximum: UInt8 = 4, at now: BootInstant) {
        self.flags = flags
        self.maximum = maximum
        self.now = now
    }

    func keep(instances: [UInt8] = [], own: Set<UInt8> = []) -> Bool {
        reset.keep(on: features(instances), own: own, at: now)
    }

    /// The instances are read.
    func found(_ instances: [UInt8]) { perform(reset.featuresRead(.success(features(instances)), at: now)) }

    func failToRead(_ reason: ManagementCommandFailure.Reason) {
        let failure = ManagementCommandFailure(code: .readAdvertisingFeatures, reason: reason)
        perform(reset.featuresRead(.failure(failure), at: now))
    }

    func features(_ instances: [UInt8]) -> ManagementAdvertisingFeatures {
        InstanceRun.features(flags: flags, maximum: maximum, instances: instances)
    }

    func begin(avoiding used: Set<UInt8> = []) { perform(reset.begin(avoiding: used, at: now)) }

    /// Keeps the address, has the first run end, and forgets what was sent.
    func finishFirst(of instances: [UInt8] = []) {
        #expect(keep(instances: instances))
        begin()
        respond()
        respond()
        #expect(ends == [nil])
        _ = takeSent()
    }

    func takeSent() -> [String] {
        defer { sent = [] }
        return sent
    }

    func adapterGone() { perform(reset.adapterGone(at: now)) }

    func respond() {
        guard out != nil else { return }
        out = nil
        perform(reset.commandFinished(nil, at: now))
    }

    func fail(_ reason: ManagementCommandFailure.Reason) {
        guard let code = out else { return }
        out = nil
        perform(reset.commandFinished(ManagementCommandFailure(code: code, reason: reason), at: now))
    }

    func advance(_ duration: Duration) {
        now = now + duration
        perform(reset.timePassed(now))
    }

    private func perform(_ actions: [AdvertisingAddressReset.Action]) {
        for action in actions {
            switch action {
            case .send(.add(let command)):
                out = .addExtendedAdvertisingParameters
                sent.append(Hex.encode(command.packet(adapter: 0).bytes))
            case .send(.remove(let command)):
                out = .removeAdvertising
                sent.append(Hex.encode(command.packet(adapter: 0).bytes))
            case .readFeatures:
                sent.append(Hex.encode(ManagementReadAdvertisingFeatures().packet(adapter: 0).bytes))
            case .finish(let failure): ends.append(failure)
            }
        }
    }
}
