internal import BLECore
internal import BLELinux

/// The centrals in the air of a virtual radio, and the timer for the next advertisement that they hear.
///
/// Only the radio uses it, on its event loop.
final class PlacedCentrals {
    /// A central in the air.
    struct Placement {
        let central: VirtualCentral
        fileprivate(set) var peer: PeerID
        fileprivate(set) var proximity: VirtualProximity
        fileprivate(set) var reaction = VirtualSecurityReaction.ignore
        fileprivate(set) var securityRequests = 0

        fileprivate init(_ central: VirtualCentral, _ peer: PeerID, _ proximity: VirtualProximity) {
            self.central = central
            self.peer = peer
            self.proximity = proximity
        }
    }

    private let loop: EventLoop
    /// In the order in which they were added, which is also the order in which they hear.
    private var placements: [Placement] = []
    private var timer: TimerID?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    subscript(_ central: VirtualCentral) -> Placement? {
        placements.first { $0.central === central }
    }

    /// The centrals that are in range.
    var inRange: [Placement] { placements.filter { $0.proximity.rssi != nil } }

    // MARK: Changes

    func add(_ central: VirtualCentral, as peer: PeerID, _ proximity: VirtualProximity) {
        placements.append(Placement(central, peer, proximity))
    }

    func remove(_ central: VirtualCentral) {
        placements.removeAll { $0.central === central }
    }

    func setProximity(of central: VirtualCentral, _ proximity: VirtualProximity) {
        change(central) { $0.proximity = proximity }
    }

    func setAddress(of central: VirtualCentral, _ peer: PeerID) {
        change(central) { $0.peer = peer }
    }

    func setReaction(of central: VirtualCentral, _ reaction: VirtualSecurityReaction) {
        change(central) { $0.reaction = reaction }
    }

    func countSecurityRequest(to central: VirtualCentral) {
        change(central) { $0.securityRequests += 1 }
    }

    private func change(_ central: VirtualCentral, _ change: (inout Placement) -> Void) {
        if let index = placements.firstIndex(where: { $0.central === central }) { change(&placements[index]) }
    }

    // MARK: Hearing

    /// Sets the timer to the next advertising event that a central may hear, if any waits for one. The event is asked
    /// for only then.
    func schedule(_ next: () -> BootInstant?, _ handler: @escaping EventLoop.Handler) {
        cancelTimer()
        guard inRange.contains(where: { $0.central.assumeIsolated { $0.isHearing } }), let next = next() else { return }
        timer = loop.schedule(at: next) { [weak self] in
            self?.timer = nil
            handler()
        }
    }

    func cancelTimer() {
        timer.take().map(loop.cancel)
    }
}
