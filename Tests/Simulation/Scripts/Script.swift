// What happens in one simulation, as a value: who is there, what the applications ask for, what goes wrong, and when. A
// seed makes one; a shrinker leaves things out of it; a file keeps it.
//
// Invariants
// - A step names peers and other steps by numbers that stay the same when something is left out.
// - The seed stays in it: what a peer is, and what an adversary does with a request, is drawn from streams of their
//   own.

import BLECore
import BareBLETestKit

/// The script of one simulation.
struct Script: Hashable, Sendable {
    /// The kind of a peer.
    enum PeerKind: String, CaseIterable, Sendable {
        /// It does what the specification says.
        case honest
        /// It has a fault that devices on the market have.
        case vendor
        /// It breaks the protocol at random.
        case adversary
        /// It responds late, at times after more than the protocol's 30 s.
        case slow
        /// It forgets, and changes its services.
        case amnesiac
        /// It was left out.
        case absent
    }

    var seed: UInt64
    /// One for each adapter: the name of its controller's personality.
    var adapters = [Self.usualAdapter]
    /// One for each adapter: how many links its controller can have. An adapter without one can have one to each peer.
    var linkLimits: [LinkLimit] = []
    /// What becomes of the data on the links of controllers that lose some, until the faults end.
    var dataLosses: [DataLoss] = []
    /// How far the programs may go when an adapter has stopped reporting or responding.
    var recovery = RecoveryPolicy.Limit.rescan
    var peers: [PeerKind] = []
    /// The adapters that another program uses too.
    var neighbours: [Int] = []
    /// The adapters whose programs keep bonds; the peers can pair where there is one.
    var security: [Int] = []
    /// When the faults end and everything heals, in milliseconds.
    var length = 10_000
    var steps: [Step] = []

    /// How many links a controller can have.
    struct LinkLimit: Hashable, Sendable {
        /// More than there are peers.
        static let ample = LinkLimit(links: 16, reaction: .fails(.connectionLimitExceeded))

        var links: Int
        /// What it does about a connection attempt beyond that.
        var reaction: VirtualPersonality.BeyondLimit
    }

    /// What becomes of the data on the links of a controller.
    struct DataLoss: Hashable, Sendable {
        var adapter: Int
        var loss: VirtualPersonality.DataLoss

        var kind: String {
            switch loss {
            case .received: "received"
            case .receivedEvery: "receivedEvery"
            case .reordersEvery: "reordersEvery"
            case .sentBeyond: "sentBeyond"
            }
        }
    }

    /// One thing that happens.
    struct Step: Hashable, Sendable {
        /// Names the step in the log, and for `cancel`.
        var number: Int
        /// When it happens, in milliseconds since the beginning.
        var time: Int
        var verb: Verb
        /// The peer, or the adapter.
        var subject = 0
        /// The argument of the verb.
        var first = 0
        var second = 0
        /// How long the call may take, in milliseconds; 0 for no such limit.
        var limit = 0
    }
}

extension Script {
    /// The controller without deviations that has the extended commands.
    static let usualAdapter = "bluetooth5"

    static let adapterNames = VirtualPersonality.all.map(\.name)

    /// The limits of recovery under which a promise can be stated.
    static let recoveryLimits: [RecoveryPolicy.Limit] = [.rescan, .power, .usb]

    /// The controller of an adapter.
    func personality(_ adapter: Int) -> VirtualPersonality {
        guard adapters.indices.contains(adapter) else { return .bluetooth5 }
        var personality = Self.imitation(adapters[adapter])
        personality.linkLimit = linkLimit(adapter).links
        personality.beyondLimit = linkLimit(adapter).reaction
        personality.losesData = dataLoss(adapter)
        return personality
    }

    /// The controller of this name, without what is drawn for an adapter.
    static func imitation(_ name: String) -> VirtualPersonality {
        VirtualPersonality.all.first { $0.name == name }?.personality ?? .bluetooth5
    }

    /// How many links the controller of an adapter can have.
    func linkLimit(_ adapter: Int) -> LinkLimit {
        linkLimits.indices.contains(adapter) ? linkLimits[adapter] : .ample
    }

    /// What becomes of the data on the links of an adapter; `nil` where all of it arrives, in order.
    func dataLoss(_ adapter: Int) -> VirtualPersonality.DataLoss? {
        dataLosses.first { $0.adapter == adapter }?.loss
    }
}

extension Script {
    /// What a step may be; beside it what its numbers mean.
    enum Verb: String, CaseIterable, Sendable {
        // Applications, on a peer.
        case connect
        case session
        case endSession
        /// First: 1 for the end after the pending operations.
        case disconnect
        /// First: 1 for `ignoringCache`.
        case discover
        /// First: which value.
        case read
        /// First: which value; second: its length.
        case write, command
        /// First: which value; second: for how many milliseconds, times 8, plus the capacity.
        case subscribe
        /// First: which value; second: how many reads at once.
        case burst
        /// First: which value; second: how many milliseconds the link is kept.
        case exclusively
        case cancelAll
        case rssi
        /// First: the step whose call is given up.
        case cancel

        // Applications, on an adapter.
        /// First: for how many milliseconds; second: capacity.
        case scan

        // Applications with bonds, on a peer.
        /// First: bits 0 and 1 are what it may replace, bits 2 and 3 what it requires; second: the agent.
        case pair
        /// A connect that pairs; as `pair`.
        case connectPairing
        case connectBonded
        case forget

        // Applications with bonds, on an adapter.
        /// The program dies, and another one begins. First: the number of changes of its files before that, 0 for none;
        /// second: how long it waits for them, in milliseconds.
        case crash

        // Peers.
        /// First: which value; second: how many values, 10 ms apart.
        case notify
        /// An unsolicited PDU.
        case provoke
        /// First: 1 when it is announced.
        case changeServices
        case outOfSync

        // Another program on the same adapter.
        /// First: for how many milliseconds it keeps the link.
        case neighbourConnect
        /// First: for how many milliseconds; second: capacity.
        case neighbourScan

        // Faults, of a peer.
        /// First: the controller's reason.
        case hangUp
        /// First: for how many milliseconds.
        case outOfRange
        case restart
        /// First: the status; second: how often.
        case refuse
        /// First: by how many milliseconds.
        case delayConnects
        /// First: how many of its responses are lost.
        case dropResponses
        /// First: for how many milliseconds.
        case stopResponding
        case newAddress

        // Faults of bonds, of a peer.
        /// It forgets its bonds; its keys become others.
        case loseBonds, otherKeys
        /// First: 1 for a request to bond, 2 for one for protection against a man in the middle, 3 for both.
        case requestSecurity
        case rotateAddress
        /// It sends packets on each link before that is encrypted. First: for how many milliseconds.
        case forge
        /// First: for how many milliseconds; second: 0 it refuses, 1 its user rejects, 2 it is silent.
        case failPairings
        /// The link is no longer encrypted.
        case endEncryption

        // Faults of bonds, of an adapter.
        /// Another program empties the kernel's lists. First: 1 for the Long Term Keys, 2 for the identities,
        /// 3 for both.
        case emptyLists
        /// Another program changes a setting. First: 0 the power, for as many milliseconds as second says; 1 bondable;
        /// 2 Secure Connections.
        case changeSetting
        /// Another program unpairs the peer of this number. First: the peer; second: 1 ends its link.
        case unpair
        /// The management interface is lost.
        case loseManagement
        /// The disk fails. First: for how many milliseconds; second: 0 full, 1 read-only, 2 errors; plus 4 times the
        /// number of calls that succeed before.
        case failDisk
        /// The file of bonds is gone, or replaced by the one from the beginning of the fault before.
        case loseStore, oldStore

        // Faults, of an adapter.
        /// First: for how many milliseconds.
        case powerOff, unplug, silence
        case reset
        /// First: by how many seconds.
        case suspend

        var isOnAdapter: Bool {
            switch self {
            case .scan, .neighbourScan, .powerOff, .unplug, .silence, .reset, .suspend, .crash, .emptyLists,
                .changeSetting,
                .unpair, .loseManagement, .failDisk, .loseStore, .oldStore:
                true
            default: false
            }
        }
    }

    static let faults: [Verb] = [
        .hangUp, .outOfRange, .restart, .refuse, .delayConnects, .dropResponses, .stopResponding, .powerOff, .unplug,
        .silence, .reset, .suspend,
    ]

    /// The faults of bonds.
    static let bondFaults: [Verb] = [
        .loseBonds, .otherKeys, .requestSecurity, .rotateAddress, .forge, .failPairings, .endEncryption, .emptyLists,
        .changeSetting, .unpair, .loseManagement, .failDisk, .loseStore, .oldStore,
    ]
}
