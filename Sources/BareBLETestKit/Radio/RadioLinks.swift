internal import BLECore
internal import BLELinux

// The links of all adapters of a virtual radio: the device at the other end, the socket that has or awaits a link, and
// the timer that ends it.
//
// Invariants:
// - A link has one timer at most; `remove` cancels it.
// - Only the radio uses it, on its event loop.

/// A link of an adapter of a virtual radio.
struct RadioLink {
    /// The device at the other end of a link.
    enum Partner {
        case peripheral(VirtualPeripheral)
        case central(VirtualCentral)
    }

    let partner: Partner
    let peer: PeerID
    /// The socket's error at the end, if no event reports it.
    let fate: Lock<Int32?>
    fileprivate(set) var isAttached: Bool
    /// True if the other device was reset and has no state of the link.
    fileprivate(set) var isForgotten = false
    fileprivate(set) var isEncrypted = false
    /// The far end of a socket that waits for the link's encryption.
    fileprivate(set) var waiting: FarEnd?
    /// The timer that ends the link, unless it is cancelled.
    fileprivate var timer: TimerID?

    init(_ partner: Partner, _ peer: PeerID, isAttached: Bool = false, fate: Lock<Int32?> = Lock(nil)) {
        self.partner = partner
        self.peer = peer
        self.isAttached = isAttached
        self.fate = fate
    }

    var peripheral: VirtualPeripheral? {
        if case .peripheral(let peripheral) = partner { peripheral } else { nil }
    }

    var central: VirtualCentral? {
        if case .central(let central) = partner { central } else { nil }
    }

    /// Whether its end is pending.
    var isEnding: Bool { timer != nil }
}

/// The links of a virtual radio.
final class RadioLinks {
    typealias Name = VirtualManagement.LinkName

    private let loop: EventLoop
    private var links: [Name: RadioLink] = [:]
    /// The links of the programs' sockets, by descriptor.
    private var sockets: [Int32: Name] = [:]
    /// The time from a program's command that ends a link to its end; `nil` for none.
    private(set) var disconnectionTime: Duration?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    subscript(_ name: Name) -> RadioLink? { links[name] }

    /// Returns the links of an adapter, in the order of their handles.
    func names(of adapter: UInt16) -> [Name] {
        sorted { name, _ in name.adapter == adapter }
    }

    /// Returns the links of a peripheral, also those that it has forgotten.
    func names(of peripheral: VirtualPeripheral) -> [Name] {
        sorted { _, link in link.peripheral === peripheral }
    }

    /// Returns the links of a central that it has not forgotten.
    func names(of central: VirtualCentral) -> [Name] {
        sorted { _, link in link.central === central && !link.isForgotten }
    }

    private func sorted(_ isWanted: (Name, RadioLink) -> Bool) -> [Name] {
        links.filter { isWanted($0.key, $0.value) }.keys.sorted { ($0.adapter, $0.handle) < ($1.adapter, $1.handle) }
    }

    // MARK: Changes

    func begin(_ name: Name, _ link: RadioLink) {
        links[name] = link
    }

    func setAttached(_ name: Name, _ isAttached: Bool) {
        links[name]?.isAttached = isAttached
    }

    func setEncrypted(_ name: Name, _ isEncrypted: Bool) {
        links[name]?.isEncrypted = isEncrypted
    }

    /// The other device was reset.
    func forget(_ name: Name) {
        links[name]?.isForgotten = true
    }

    /// Keeps the far end of a socket until the link is encrypted.
    func wait(_ name: Name, _ end: FarEnd) {
        links[name]?.waiting = end
    }

    func takeWaiting(_ name: Name) -> FarEnd? {
        links[name]?.waiting.take()
    }

    func setDisconnectionTime(_ time: Duration?) {
        disconnectionTime = time
    }

    /// Removes a link and cancels its timer.
    func remove(_ name: Name) -> RadioLink? {
        keep(name)
        return links.removeValue(forKey: name)
    }

    // MARK: Timers

    /// Calls a handler after `pause`, instead of what was to end the link before.
    func end(_ name: Name, after pause: Duration, _ handler: @escaping EventLoop.Handler) {
        keep(name)
        guard links[name] != nil else { return }
        links[name]?.timer = loop.schedule(at: loop.now() + pause, handler)
    }

    /// Cancels the pending end of a link.
    func keep(_ name: Name) {
        links[name]?.timer.take().map(loop.cancel)
    }

    func cancelTimers() {
        for name in links.keys { keep(name) }
    }

    // MARK: Sockets

    /// A program has the link by this descriptor.
    func connect(_ descriptor: Int32, to name: Name) {
        sockets[descriptor] = name
    }

    func name(ofSocket descriptor: Int32) -> Name? { sockets[descriptor] }
}
