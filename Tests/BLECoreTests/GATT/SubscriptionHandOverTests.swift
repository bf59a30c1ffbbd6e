import BLECore
import Testing

/// Subscriptions that outlive the program: what is on is reported, and resumed without a packet to the peer.
@Suite struct SubscriptionHandOverTests {
    typealias ID = Subscriptions.ID

    private let cccd = GATTDescriptor(handle: 4, uuid: .clientCharacteristicConfiguration)
    private let rate = GATTCharacteristic(
        declarationHandle: 2, valueHandle: 3, endHandle: 4, properties: .notify, uuid: 0x2A37)

    /// The value at 7, that at 3 with two subscribers, and one at 11 that is just being switched on.
    private func running() -> Subscriptions {
        var subscriptions = Subscriptions()
        for (handle, ids) in [(7, [ID(1)]), (3, [ID(2), ID(3)]), (11, [ID(4)])] as [(AttributeHandle, [ID])] {
            let characteristic = GATTCharacteristic(
                declarationHandle: handle - 1, valueHandle: handle, endHandle: handle + 1, properties: .indicate,
                uuid: 0x2A05)
            let cccd = GATTDescriptor(handle: handle + 1, uuid: .clientCharacteristicConfiguration)
            for id in ids { _ = subscriptions.subscribe(id, to: characteristic, cccd: cccd) }
            if handle != 11 { _ = subscriptions.configured(handle, .success(())) }
        }
        return subscriptions
    }

    @Test func onlyWhatIsOnIsHandedOver() {
        let subscriptions = running()
        let active = subscriptions.active
        #expect(active.map(\.valueHandle) == [3, 7])
        #expect(active.map(\.configuration.handle) == [4, 8])
        #expect(active.map(\.kind) == [.indication, .indication])
        #expect(active.map(\.subscribers) == [[ID(2), ID(3)], [ID(1)]])
    }

    @Test func whatIsTakenUpAgainIsOnAtOnce() {
        var subscriptions = Subscriptions()
        subscriptions.resume(
            .init(valueHandle: 3, configuration: cccd, kind: .notification, subscribers: [ID(1)]))
        let recipients = subscriptions.recipients(of: 3)
        #expect(recipients == [ID(1)])
        // Nothing is written for the second one, and one write ends it all.
        #expect(perform(&subscriptions) { $0.subscribe(ID(2), to: rate, cccd: cccd) } == [.began(ID(2), .notification)])
        #expect(perform(&subscriptions) { $0.unsubscribe(ID(1)) } == [])
        #expect(
            perform(&subscriptions) { $0.unsubscribe(ID(2)) }
                == [.write(handle: 4, value: [0, 0], valueHandle: 3)])
        // Somebody who has left already leaves nothing more.
        #expect(perform(&subscriptions) { $0.unsubscribe(ID(2)) } == [])
    }

    @Test func aSubscriptionWithoutSubscribersIsNotResumed() {
        var subscriptions = Subscriptions()
        subscriptions.resume(.init(valueHandle: 3, configuration: cccd, kind: .notification, subscribers: []))
        let (active, isWanted) = (subscriptions.active, subscriptions.isWanted(3))
        #expect(active == [] && !isWanted)
    }

    /// A configuration is kept for a subscriber from its call to the response to the write that switches it off.
    @Test func aConfigurationHasOneOwner() {
        var subscriptions = Subscriptions()
        _ = subscriptions.subscribe(ID(1), to: rate, cccd: cccd)
        var (isWanted, isOwned) = (subscriptions.isWanted(3), subscriptions.ownsConfiguration(at: 4))
        #expect(isWanted && isOwned)
        (isWanted, isOwned) = (subscriptions.isWanted(4), subscriptions.ownsConfiguration(at: 3))
        #expect(!isWanted && !isOwned)
        _ = subscriptions.configured(3, .success(()))
        _ = subscriptions.unsubscribe(ID(1))
        (isWanted, isOwned) = (subscriptions.isWanted(3), subscriptions.ownsConfiguration(at: 4))
        #expect(!isWanted && isOwned)
        _ = subscriptions.configured(3, .success(()))
        isOwned = subscriptions.ownsConfiguration(at: 4)
        #expect(!isOwned)
    }

    /// Macros cannot call what mutates.
    private func perform(
        _ subscriptions: inout Subscriptions, _ change: (inout Subscriptions) -> [Subscriptions.Action]
    ) -> [Subscriptions.Action] {
        change(&subscriptions)
    }
}
