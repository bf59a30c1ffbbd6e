internal import BLECore
internal import BLELinux

/// The sockets of programs that listen on the ATT channels of a virtual radio's adapters,
/// and the links that wait there.
///
/// Of several sockets on one adapter, the newest one gets each new link. Only the radio uses it, on its event loop.
final class RadioListeners {
    /// A link that waits to be accepted.
    struct WaitingLink {
        let name: VirtualManagement.LinkName
        let peer: PeerID
        /// The program's end.
        let end: FarEnd
        let fate: Lock<Int32?>
    }

    private struct Listener {
        let number: UInt64
        let address: BluetoothAddress
        /// Announces links to the program; the program's end is its listening socket.
        let announcements: PeerLink
        /// The links that were not accepted yet, in their order.
        var waiting: [WaitingLink] = []
    }

    /// The oldest one first.
    private var listeners: [Listener] = []

    func add(_ number: UInt64, _ address: BluetoothAddress, _ announcements: PeerLink) {
        listeners.append(Listener(number: number, address: address, announcements: announcements))
    }

    /// Removes a socket. The ends of links that were not accepted close, and the kernel ends the links a little later.
    func remove(_ number: UInt64) {
        listeners.removeAll { $0.number == number }
    }

    func isListening(on address: BluetoothAddress) -> Bool {
        listeners.contains { $0.address == address }
    }

    /// Hands a link to the newest socket that listens on the adapter with this address.
    ///
    /// - Returns: Whether there is such a socket.
    @discardableResult
    func handOn(_ link: WaitingLink, on address: BluetoothAddress) -> Bool {
        guard let index = listeners.lastIndex(where: { $0.address == address }) else { return false }
        listeners[index].waiting.append(link)
        listeners[index].announcements.send([0])
        return true
    }

    /// Returns the next link that a listening socket accepts; `nil` if the one that was announced has ended.
    func next(of number: UInt64) -> WaitingLink? {
        guard let index = listeners.firstIndex(where: { $0.number == number }), !listeners[index].waiting.isEmpty
        else { return nil }
        return listeners[index].waiting.removeFirst()
    }

    /// A link has ended: nobody accepts it any more.
    func withdraw(_ name: VirtualManagement.LinkName) {
        for index in listeners.indices { listeners[index].waiting.removeAll { $0.name == name } }
    }

    func close() {
        for listener in listeners { listener.announcements.close() }
    }
}
