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
// one that came back is being put under it, and counts.
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
    /// The channels that are requested, by number.
    private var channelRequests: [UInt64: RequestedChannel] = [:]
    private var lastChannelRequest: UInt64 = 0
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
    func setUpEnded(_ failure: BLEError?) { setUpFailure = failure }

    /// Putting an adapter that came back under management for the centrals begins, or has ended.
    func setManagingForCentrals(_ isManaging: Bool) { isManagingForCentrals = isManaging }

    // MARK: Channels

    private struct RequestedChannel {
        /// The kernel's name of the peer.
        let peer: PeerID
        /// Whether the kernel has begun to pair since the request.
        var isRefused = false
    }

    /// A channel is requested from a peer, by the kernel's name; returns the number of the request.
    ///
    /// A kernel reports no refusal of a channel for lack of security: it begins to pair, as nobody has asked it to. That
    /// pairing is refused, like all that no task has requested, and is the sign of the refusal.
    /// `l2cap_le_connect_rsp` in the kernel's net/bluetooth/l2cap_core.c.
    func channelRequested(from peer: PeerID) -> UInt64 {
        lastChannelRequest &+= 1
        channelRequests[lastChannelRequest] = RequestedChannel(peer: peer)
        return lastChannelRequest
    }

    /// A request has ended.
    func channelRequestEnded(_ number: UInt64) { channelRequests[number] = nil }

    /// A pairing with a peer was refused that no task has requested.
    func pairingRefused(with peer: PeerID) {
        for (number, request) in channelRequests where request.peer == peer {
            channelRequests[number]?.isRefused = true
        }
    }

    /// Whether the kernel has begun to pair with the peer of a request since then. A later request is another one.
    func isChannelRefused(_ number: UInt64) -> Bool { channelRequests[number]?.isRefused ?? false }

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
