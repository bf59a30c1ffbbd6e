internal import BLECore
internal import BLELinux

// What a local peripheral reports to its listeners.
//
// Invariants
// - Events are reported in the order in which they happen, and a subscription after the handlers of the writes that
//   came before it have returned. Each listener has a bounded buffer of its own.
// - A listener is added when the property is read, so that what happens before the iteration is not lost.
// - After `finish()` every sequence ends, also one that begins later.
// - The receiver is called where an event is reported, with no lock held: before the next question to the application.

/// The events of a local peripheral, and when its centrals have room for updates.
final class ServerEvents: Sendable {
    private let broadcaster = EventBroadcaster<LocalPeripheral.Event>(capacity: 256)
    private let room = EventBroadcaster<Void>(capacity: 1)
    private let receiver = Lock<(@Sendable (LocalPeripheral.Event) -> Void)?>(nil)

    /// What happens from now on.
    var all: LocalPeripheralEventSequence { broadcaster.events(losses: .before { .dropped($0) }) }

    /// When an update may find room: at once, and each time that a central has room again.
    var readyToUpdate: ReadyToUpdateSequence { room.events(losses: .none, beginningWith: ()) }

    /// Sets the closure that each event is passed to as well, until `finish()`.
    func forward(to receiver: @escaping @Sendable (LocalPeripheral.Event) -> Void) {
        self.receiver.withLock { $0 = receiver }
    }

    func report(_ event: LocalPeripheral.Event) {
        broadcaster.report(event)
        receiver.withLock { $0 }?(event)
    }

    /// Reports what a client has changed in a characteristic; of other attributes, and of links, nothing.
    ///
    /// - Parameter central: The client as it is now, for which a report may have no use.
    func report(
        _ event: LinkServer.Event, in services: PublishedServices, by central: @autoclosure () -> ConnectedCentral
    ) {
        switch event {
        case .ready: room.report(())
        case .securing, .secured, .store, .overdue: break
        case .configured(let handle, let configuration, let isRestored):
            guard let characteristic = services.characteristic(at: handle), characteristic.id == handle else { return }
            report(
                configuration.isEmpty
                    ? .unsubscribed(central(), characteristic)
                    : .subscribed(central(), characteristic, isRestored: isRestored))
        case .wrote(let handle, let value):
            guard let characteristic = services.characteristic(at: handle) else { return }
            let descriptor = handle == characteristic.id ? nil : services.database[handle]?.type
            report(
                .written(
                    LocalPeripheral.WrittenValue(
                        central: central(), characteristic: characteristic, descriptor: descriptor, handle: handle,
                        value: value)))
        case .dropped(let handle):
            guard let characteristic = services.characteristic(at: handle) else { return }
            report(.writeDropped(central(), characteristic))
        }
    }

    /// Ends the sequences of all listeners, after what waits in them.
    func finish() {
        broadcaster.finish()
        room.finish()
        receiver.withLock { $0 = nil }
    }
}
