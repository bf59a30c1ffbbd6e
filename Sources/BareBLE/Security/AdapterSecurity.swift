internal import BLECore
internal import BLELinux
internal import Logging

// What the security of one adapter consists of. Each part has an owner of its own, whose state is private:
//
// | owner | what it owns |
// |---|---|
// | `BondedDevices` | the bonds of the adapter, and their store |
// | `SecurityCoordinator` | the management interface, the pairing that runs, the keys that the kernel has |
// | `CurrentPairing` | the link, the agent and the stored bond of that pairing |
// | `CentralPairings` | who serves centrals, how these may pair, and the one that does |
// | `CommandEncryption` | the link that a command encrypts, and the task that waits for that |
//
// Duties: hold these together, let the coordinator and the encryption read the bonds as they are stored, report the
// events of bonds and security, and keep what belongs to none of them: why the adapter is not under management, whether
// one that came back is being put under it, when a management interface that was lost is opened again, and counts.
//
// Invariants
// - All state belongs to the event loop's thread. The events alone are for any thread.
// - The owners do not know one another, with the exception named above. `Adapter+Pairing`, `Adapter+CentralPairing` and
//   `Adapter+Encrypting` perform what the coordinator and the encryption return, `Adapter+Management` opens what the
//   coordinator reads.

/// The bonds, the pairings and the keys of an adapter.
// Unchecked: only the loop's thread touches its state.
final class AdapterSecurity: @unchecked Sendable {
    let bonds: BondedDevices
    let coordinator: SecurityCoordinator
    let encryption: CommandEncryption
    let pairing = CurrentPairing()
    let centrals = CentralPairings()
    let events = EventBroadcaster<SecurityEvent>(capacity: 64)
    /// Compares private addresses with the keys of bonded devices; without it none is resolved.
    let addressHash: AddressResolver.Hash?
    /// Why the adapter could not be put under management before its use; `ready` and a pairing try again.
    private(set) var setUpFailure: BLEError?
    /// Whether an adapter that came back is being put under management for the centrals that are served.
    private(set) var isManagingForCentrals = false
    /// When a management interface that was lost is opened again for the centrals.
    private var managementTimer: TimerID?
    /// Whether it is being opened again.
    private(set) var isReopeningManagement = false
    /// How often the adapter had been lost when a management interface was lost with which it could pair.
    private var lossesWhenAble: Int?
    private var requestedChannels = RequestedChannels()
    /// Packets that arrived on links to bonded peers before these were encrypted.
    private var discardedPackets = 0
    /// Security Requests of peers without a bond.
    private var securityRequests = 0
    /// Signed writes of centrals that were dropped.
    private var refusedSignatures = 0

    init(
        _ configuration: SecurityConfiguration?, addressHash: AddressResolver.Hash?, on loop: EventLoop, logger: Logger
    ) {
        let bonds = BondedDevices(configuration, on: loop, logger: logger)
        self.bonds = bonds
        self.addressHash = addressHash
        coordinator = SecurityCoordinator(bonds: { bonds.records }, hardware: { bonds.hardware }) { loop.now() }
        encryption = CommandEncryption(bonds: { bonds.records }, hardware: { bonds.hardware }) { loop.now() }
    }

    /// Whether bonds are stored, and peers may be paired, by this program.
    var isConfigured: Bool { bonds.configuration != nil }

    /// Reports an event to all listeners.
    func report(_ event: SecurityEvent) { events.report(event) }

    /// Putting the adapter under management before its use has failed, or has succeeded since.
    func setUpEnded(_ failure: BLEError?) {
        setUpFailure = failure
        if failure == nil { lossesWhenAble = nil }
    }

    /// The management interface is lost, and what the kernel can do is about to be forgotten with it.
    ///
    /// - Parameter losses: How often the adapter has been lost so far.
    func managementLost(losses: Int) { lossesWhenAble = coordinator.canPair == true ? losses : nil }

    /// Whether the kernel can still pair with an adapter that was there all the time while the management interface was
    /// lost; `nil` if that is not known.
    func canStillPair(losses: Int) -> Bool? {
        // What a link has shown since counts more.
        coordinator.canPair == nil && lossesWhenAble == losses ? true : nil
    }

    /// Putting an adapter that came back under management for the centrals begins, or has ended.
    func setManagingForCentrals(_ isManaging: Bool) { isManagingForCentrals = isManaging }

    /// Sets when a management interface that was lost is opened again, in place of an earlier time.
    func scheduleManagement(at time: BootInstant, on loop: EventLoop, _ handler: @escaping EventLoop.Handler) {
        if let managementTimer { loop.cancel(managementTimer) }
        managementTimer = loop.schedule(at: time, handler)
    }

    /// It is that time.
    func managementTimerFired() { managementTimer = nil }

    /// Nothing is opened again any more.
    func stopManagementTimer(on loop: EventLoop) {
        if let managementTimer { loop.cancel(managementTimer) }
        managementTimer = nil
    }

    /// Opening a management interface again that was lost begins, or has ended.
    func setReopeningManagement(_ isReopening: Bool) { isReopeningManagement = isReopening }

    // MARK: Channels

    /// A channel is requested from a peer, by the kernel's name; returns the number of the request.
    ///
    /// - Parameter isEncrypted: Whether the link is encrypted.
    func channelRequested(from peer: PeerID, isEncrypted: Bool) -> UInt64 {
        requestedChannels.begin(with: peer, isEncrypted: isEncrypted)
    }

    /// A request has ended.
    func channelRequestEnded(_ number: UInt64) { requestedChannels.end(number) }

    /// A pairing with a peer was refused that no task has requested.
    func pairingRefused(with peer: PeerID, at now: BootInstant) {
        requestedChannels.pairingRefused(with: peer, at: now)
    }

    /// A pairing with a peer has failed that no task has requested, without a question; returns whether the kernel has
    /// begun it for a channel.
    func pairingFailed(with peer: PeerID, at now: BootInstant) -> Bool {
        requestedChannels.pairingFailed(with: peer, at: now)
    }

    /// The kernel wants more security for a channel than was requested.
    ///
    /// - Parameter time: How long the peer has taken to respond, at most; `nil` where the kernel pairs with nobody.
    func securityWanted(forChannel number: UInt64, after time: Duration?, at now: BootInstant) {
        requestedChannels.securityWanted(for: number, after: time, at: now)
    }

    /// Whether the end of a channel that is being opened means that the peer has refused it for lack of security.
    func isChannelRefusedByItsEnd(_ number: UInt64) -> Bool { requestedChannels.isRefusedByItsEnd(number) }

    /// Whether the peer has refused a channel for lack of security.
    func isChannelRefused(_ number: UInt64, at now: BootInstant) -> Bool {
        requestedChannels.isRefused(number, at: now)
    }

    // MARK: Counts

    /// Packets from before the encryption were discarded.
    func discarded(_ packets: Int) { discardedPackets += packets }

    /// A peer without a bond has asked for security.
    func countSecurityRequest() { securityRequests += 1 }

    /// A signed write of a central was dropped.
    func refusedSignature() { refusedSignatures += 1 }

    /// Adds what was counted here and by the coordinator.
    func count(in statistics: inout AdapterStatistics) {
        statistics.discardedPackets = discardedPackets
        statistics.securityRequests = securityRequests
        statistics.refusedSignatures = refusedSignatures
        coordinator.count(in: &statistics)
    }
}
