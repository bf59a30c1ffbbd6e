import BLECore
import TestSupport
import Testing

@Suite struct SubscriptionsTests {
    typealias ID = Subscriptions.ID

    private let rate = GATTCharacteristic(
        declarationHandle: 2, valueHandle: 3, endHandle: 4, properties: .notify, uuid: 0x2A37)
    private let both = GATTCharacteristic(
        declarationHandle: 6, valueHandle: 7, endHandle: 8, properties: [.notify, .indicate], uuid: 0x2A35)
    private let rateCCCD = GATTDescriptor(handle: 4, uuid: .clientCharacteristicConfiguration)
    private let bothCCCD = GATTDescriptor(handle: 8, uuid: .clientCharacteristicConfiguration)

    private let on: Subscriptions.Action = .write(handle: 4, value: [1, 0], valueHandle: 3)
    private let off: Subscriptions.Action = .write(handle: 4, value: [0, 0], valueHandle: 3)
    private let refused = OperationFailure.gatt(
        .att(request: .writeRequest, handle: 4, code: .insufficientAuthentication))

    private func subscribed(_ ids: ID...) -> Subscriptions {
        var subscriptions = Subscriptions()
        for id in ids { _ = subscriptions.subscribe(id, to: rate, cccd: rateCCCD) }
        _ = subscriptions.configured(3, .success(()))
        return subscriptions
    }

    @Test func firstOneSwitchesOnAndLastOneOff() {
        var subscriptions = Subscriptions()
        var actions = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        #expect(actions == [on])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.began(ID(1), .notification)])
        actions = subscriptions.subscribe(ID(2), to: rate, cccd: rateCCCD)
        #expect(actions == [.began(ID(2), .notification)])
        actions = subscriptions.unsubscribe(ID(1))
        #expect(actions == [])
        actions = subscriptions.unsubscribe(ID(2))
        #expect(actions == [off])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [])
        let handles = subscriptions.valueHandles
        #expect(handles == [])
    }

    /// The lost first notification of another stack: a peer sends a value ahead of its response.
    @Test(.row("G24")) func valuesAheadOfTheResponseAreDelivered() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        let early = subscriptions.recipients(of: 3)
        #expect(early == [ID(1)])
    }

    /// After the subscription ended, values are for nobody.
    @Test(.row("G24")) func valuesAfterTheEndHaveNoRecipients() {
        var subscriptions = subscribed(ID(1))
        _ = subscriptions.unsubscribe(ID(1))
        let late = subscriptions.recipients(of: 3)
        #expect(late == [])
        let unknown = subscriptions.recipients(of: 99)
        #expect(unknown == [])
    }

    /// The peer sends values until it has responded to the write, whatever its response.
    @Test(.row("G24"), arguments: [true, false])
    func valuesBeforeTheResponseAreForTheOneThatLeaves(agreed: Bool) {
        var subscriptions = subscribed(ID(1))
        var actions = subscriptions.leave(ID(1))
        #expect(actions == [off])
        var (recipients, isWanted) = (subscriptions.recipients(of: 3), subscriptions.isWanted(3))
        #expect(recipients == [ID(1)] && !isWanted)
        actions = subscriptions.configured(3, agreed ? .success(()) : .failure(refused))
        #expect(actions == [.left(ID(1))])
        (recipients, isWanted) = (subscriptions.recipients(of: 3), subscriptions.isWanted(3))
        #expect(recipients == [] && !isWanted)
        actions = subscriptions.leave(ID(1))
        #expect(actions == [.left(ID(1))])
    }

    /// The peer is not asked to stop, so there is no response.
    @Test func oneThatLeavesOthersHasLeftAtOnce() {
        var subscriptions = subscribed(ID(1), ID(2))
        var actions = subscriptions.leave(ID(1))
        #expect(actions == [.left(ID(1))])
        var recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [ID(2)])
        // Nor is it while the value is switched on.
        subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(3), to: rate, cccd: rateCCCD)
        actions = subscriptions.leave(ID(3))
        #expect(actions == [.left(ID(3))])
        recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [off])
    }

    /// The new one gets values from its beginning, the one that leaves until the response to the first write.
    @Test func joiningOneThatLeavesSwitchesOnAgain() {
        var subscriptions = subscribed(ID(1))
        _ = subscriptions.leave(ID(1))
        var actions = subscriptions.subscribe(ID(2), to: rate, cccd: rateCCCD)
        #expect(actions == [])
        var recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [ID(1), ID(2)])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.left(ID(1)), on])
        recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [ID(2)])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.began(ID(2), .notification)])
    }

    @Test func oneThatLeavesEndsWithTheLinkTheServicesOrByItself() {
        var subscriptions = subscribed(ID(1))
        _ = subscriptions.leave(ID(1))
        var ended = subscriptions.linkLost()
        #expect(ended == [ID(1)])
        subscriptions = subscribed(ID(1))
        _ = subscriptions.leave(ID(1))
        ended = subscriptions.servicesChanged(in: 1...5)
        #expect(ended == [ID(1)])
        var actions = subscriptions.configured(3, .success(()))
        #expect(actions == [])
        subscriptions = subscribed(ID(1))
        _ = subscriptions.leave(ID(1))
        actions = subscriptions.unsubscribe(ID(1))
        #expect(actions == [])
        let recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [])
    }

    @Test func everySubscriberGetsEveryValueInOrder() {
        let subscriptions = subscribed(ID(5), ID(2), ID(9))
        let recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [ID(5), ID(2), ID(9)])
    }

    @Test func aSecondOneWaitsForTheSameWrite() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        var actions = subscriptions.subscribe(ID(2), to: rate, cccd: rateCCCD)
        #expect(actions == [])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.began(ID(1), .notification), .began(ID(2), .notification)])
    }

    @Test func aRefusalFailsAllAndLeavesNothing() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        _ = subscriptions.subscribe(ID(2), to: rate, cccd: rateCCCD)
        var actions = subscriptions.configured(3, .failure(refused))
        #expect(actions == [.failed(ID(1), refused), .failed(ID(2), refused)])
        actions = subscriptions.subscribe(ID(3), to: rate, cccd: rateCCCD)
        #expect(actions == [on])
    }

    @Test func leavingWhileSwitchingOnSwitchesOffAfterwards() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        var actions = subscriptions.unsubscribe(ID(1))
        #expect(actions == [])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [off])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [])
    }

    @Test func comingBackWhileSwitchingOnKeepsWhatWasWritten() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: both, cccd: bothCCCD)
        _ = subscriptions.unsubscribe(ID(1))
        var actions = subscriptions.subscribe(ID(2), to: both, cccd: bothCCCD, preferring: .indication)
        #expect(actions == [])
        actions = subscriptions.configured(7, .success(()))
        #expect(actions == [.began(ID(2), .notification)])
    }

    @Test(arguments: [true, false])
    func joiningWhileSwitchingOffSwitchesOnAgain(agreed: Bool) {
        var subscriptions = subscribed(ID(1))
        _ = subscriptions.unsubscribe(ID(1))
        var actions = subscriptions.subscribe(ID(2), to: rate, cccd: rateCCCD)
        #expect(actions == [])
        actions = subscriptions.configured(3, agreed ? .success(()) : .failure(refused))
        #expect(actions == [on])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.began(ID(2), .notification)])
    }

    @Test func notificationsArePreferredUnlessAsked() {
        var subscriptions = Subscriptions()
        var actions = subscriptions.subscribe(ID(1), to: both, cccd: bothCCCD)
        #expect(actions == [.write(handle: 8, value: [1, 0], valueHandle: 7)])
        subscriptions = Subscriptions()
        actions = subscriptions.subscribe(ID(1), to: both, cccd: bothCCCD, preferring: .indication)
        #expect(actions == [.write(handle: 8, value: [2, 0], valueHandle: 7)])
        // What the peer does not offer cannot be preferred.
        actions = subscriptions.subscribe(ID(2), to: rate, cccd: rateCCCD, preferring: .indication)
        #expect(actions == [on])
    }

    /// Nothing to write to.
    @Test(.row("G14")) func withoutConfigurationItFails() {
        var subscriptions = Subscriptions()
        let actions = subscriptions.subscribe(ID(1), to: rate, cccd: nil)
        #expect(actions == [.failed(ID(1), .gatt(.noCCCD(valueHandle: 3)))])
    }

    /// A configuration that was concluded and turns out not to exist.
    @Test func aWrongConclusionIsNoCCCD() {
        var subscriptions = Subscriptions()
        let inferred = GATTDescriptor(handle: 4, uuid: .clientCharacteristicConfiguration, isInferred: true)
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: inferred)
        let failure = OperationFailure.gatt(.att(request: .writeRequest, handle: 4, code: .invalidHandle))
        let actions = subscriptions.configured(3, .failure(failure))
        #expect(actions == [.failed(ID(1), .gatt(.noCCCD(valueHandle: 3)))])
    }

    @Test func linkLossForgetsEverything() {
        var subscriptions = subscribed(ID(4), ID(1))
        _ = subscriptions.subscribe(ID(3), to: both, cccd: bothCCCD)
        let ids = subscriptions.linkLost()
        #expect(ids == [ID(1), ID(3), ID(4)])
        let actions = subscriptions.configured(7, .success(()))
        #expect(actions == [])
    }

    // MARK: Changed services

    /// What is there now is something else: nothing is written, and the next subscriber starts again.
    @Test func changedServicesEndSubscriptions() {
        var subscriptions = subscribed(ID(1), ID(2))
        _ = subscriptions.subscribe(ID(3), to: both, cccd: bothCCCD)
        _ = subscriptions.configured(7, .success(()))
        var ended = subscriptions.servicesChanged(in: 10...20)
        #expect(ended == [])
        ended = subscriptions.servicesChanged(in: 1...5)
        #expect(ended == [ID(1), ID(2)])
        let handles = subscriptions.valueHandles
        #expect(handles == [7])
        let actions = subscriptions.subscribe(ID(4), to: rate, cccd: rateCCCD)
        #expect(actions == [on])
    }

    /// The response to a write from before the change is not taken for that to one after it.
    @Test func aWriteUnderWayIsWaitedFor() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        let ended = subscriptions.servicesChanged(in: 1...5)
        #expect(ended == [ID(1)])
        let moved = GATTDescriptor(handle: 5, uuid: .clientCharacteristicConfiguration)
        var actions = subscriptions.subscribe(ID(2), to: rate, cccd: moved)
        #expect(actions == [])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.write(handle: 5, value: [1, 0], valueHandle: 3)])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [.began(ID(2), .notification)])
    }

    @Test func afterAChangeAWriteThatWasNotSentIsNotDue() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        var isDue = subscriptions.isSwitchingOn(3, by: 4)
        #expect(isDue)
        isDue = subscriptions.isSwitchingOn(3, by: 5)
        #expect(!isDue)
        _ = subscriptions.servicesChanged(in: 1...5)
        isDue = subscriptions.isSwitchingOn(3, by: 4)
        #expect(!isDue)
    }

    /// The handle of the former configuration may belong to any attribute now.
    @Test func aValueWithoutConfigurationDoesNotGetThatOfItsPredecessor() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: rateCCCD)
        _ = subscriptions.servicesChanged(in: 1...5)
        var actions = subscriptions.subscribe(ID(2), to: rate, cccd: nil)
        #expect(actions == [.failed(ID(2), .gatt(.noCCCD(valueHandle: 3)))])
        actions = subscriptions.configured(3, .success(()))
        #expect(actions == [])
    }
}
