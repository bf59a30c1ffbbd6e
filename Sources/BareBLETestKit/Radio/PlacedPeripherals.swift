internal import BLECore
internal import BLELinux

// The peripherals in the air of a virtual radio, and the times at which they advertise.
//
// Invariants:
// - Their order is that of placement, which is also the order of reception.
// - Advertising events are at multiples of the interval after the peripheral was placed or reset; they also pass while
//   no adapter receives, without a timer.
// - Only the radio uses it, on its event loop.

/// The placed peripherals of a virtual radio.
final class PlacedPeripherals {
    /// A placed peripheral.
    struct Placement {
        let peripheral: VirtualPeripheral
        fileprivate(set) var peer: PeerID
        fileprivate(set) var advertisement: VirtualAdvertisement?
        fileprivate(set) var proximity: VirtualProximity
        /// True if a link prevents advertising.
        fileprivate(set) var isLinked = false
        /// The instant of the first advertising event.
        fileprivate var start: BootInstant
        /// The instant of the next advertising event.
        fileprivate var due: BootInstant
        fileprivate(set) var connectionDelay: Duration = .zero
        /// The statuses of the next connection attempts.
        fileprivate var refusals: [HCIStatus] = []
        /// True while a connection attempt is being completed.
        fileprivate(set) var isConnecting = false

        /// True if it is advertising within range.
        var isHeard: Bool { advertisement != nil && proximity.rssi != nil && !isLinked }
    }

    private let loop: EventLoop
    private var placements: [Placement] = []
    private var timer: TimerID?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    subscript(_ peripheral: VirtualPeripheral) -> Placement? {
        index(of: peripheral).map { placements[$0] }
    }

    private func index(of peripheral: VirtualPeripheral) -> Int? {
        placements.firstIndex { $0.peripheral === peripheral }
    }

    private func change(_ peripheral: VirtualPeripheral, _ change: (inout Placement) -> Void) {
        if let index = index(of: peripheral) { change(&placements[index]) }
    }

    /// True if it is out of range, or not placed.
    func isOutOfRange(_ peripheral: VirtualPeripheral) -> Bool { self[peripheral]?.proximity.rssi == nil }

    // MARK: Changes

    /// Adds a peripheral, or changes the address and the advertisement of one that is placed.
    func place(
        _ peripheral: VirtualPeripheral, as peer: PeerID, _ advertisement: VirtualAdvertisement?,
        _ proximity: VirtualProximity
    ) {
        if index(of: peripheral) == nil {
            let now = loop.now()
            placements.append(
                Placement(
                    peripheral: peripheral, peer: peer, advertisement: advertisement, proximity: proximity, start: now,
                    due: now))
        }
        setAddress(of: peripheral, peer)
        setAdvertisement(of: peripheral, advertisement)
    }

    func remove(_ peripheral: VirtualPeripheral) {
        placements.removeAll { $0.peripheral === peripheral }
    }

    func setAddress(of peripheral: VirtualPeripheral, _ peer: PeerID) {
        change(peripheral) { $0.peer = peer }
    }

    func setAdvertisement(of peripheral: VirtualPeripheral, _ advertisement: VirtualAdvertisement?) {
        change(peripheral) { $0.advertisement = advertisement }
    }

    func setProximity(of peripheral: VirtualPeripheral, _ proximity: VirtualProximity) {
        change(peripheral) { $0.proximity = proximity }
    }

    func setLinked(_ peripheral: VirtualPeripheral, _ isLinked: Bool) {
        change(peripheral) { $0.isLinked = isLinked }
    }

    /// A peripheral was reset and advertises again after `pause`.
    func restart(_ peripheral: VirtualPeripheral, advertisingAfter pause: Duration) {
        change(peripheral) { placement in
            placement.isLinked = false
            placement.isConnecting = false
            placement.start = loop.now() + pause
            placement.due = placement.start
        }
    }

    // MARK: Connection attempts

    func delayConnections(to peripheral: VirtualPeripheral, by delay: Duration) {
        change(peripheral) { $0.connectionDelay = delay }
    }

    /// Makes the next connections to a peripheral fail, one for each status.
    func refuseConnections(to peripheral: VirtualPeripheral, with statuses: [HCIStatus]) {
        change(peripheral) { $0.refusals = statuses }
    }

    /// Returns the status of the next connection attempt.
    func takeStatus(of peripheral: VirtualPeripheral) -> HCIStatus {
        guard let index = index(of: peripheral), !placements[index].refusals.isEmpty else { return .success }
        return placements[index].refusals.removeFirst()
    }

    func setConnecting(_ peripheral: VirtualPeripheral, _ isConnecting: Bool) {
        change(peripheral) { $0.isConnecting = isConnecting }
    }

    // MARK: Advertising events

    /// Sets the timer to the next advertisement that an adapter may receive, if any receives.
    func schedule(isReceived: Bool, _ handler: @escaping EventLoop.Handler) {
        cancelTimer()
        guard isReceived else { return }
        let now = loop.now()
        for index in placements.indices {
            guard placements[index].due < now, let interval = placements[index].advertisement?.interval else {
                continue
            }
            // Advertising events also pass while no adapter receives.
            let beat = interval.saturatedNanoseconds
            let (beats, rest) = (now - placements[index].start).saturatedNanoseconds.quotientAndRemainder(
                dividingBy: beat)
            placements[index].due = placements[index].start + .nanoseconds((beats + (rest > 0 ? 1 : 0)) * beat)
        }
        guard let next = placements.filter(\.isHeard).map(\.due).min() else { return }
        timer = loop.schedule(at: next) { [weak self] in
            self?.timer = nil
            handler()
        }
    }

    func cancelTimer() {
        timer.take().map(loop.cancel)
    }

    /// Returns the peripherals whose advertising events are due. Call `passEvent` for each.
    func due() -> [Placement] {
        let now = loop.now()
        return placements.filter { $0.isHeard && $0.due <= now }
    }

    /// An advertising event of a peripheral passes.
    func passEvent(of placement: Placement) {
        change(placement.peripheral) { current in
            if let interval = placement.advertisement?.interval { current.due = placement.due + interval }
        }
    }
}
