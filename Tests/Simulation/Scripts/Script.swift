// What happens in one simulation, as a value: who is there, what the applications ask for, what goes wrong, and when. A
// seed makes one; a shrinker leaves things out of it; a file keeps it.
//
// Invariants
// - A step names peers and other steps by numbers that stay the same when something is left out.
// - The seed stays in it: what a peer is, and what an adversary does with a request, is drawn from streams of their
//   own.

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
    /// One for each adapter: whether it has the extended commands.
    var adapters: [Bool] = [true]
    var peers: [PeerKind] = []
    /// The adapters that another program uses too.
    var neighbours: [Int] = []
    /// When the faults end and everything heals, in milliseconds.
    var length = 10_000
    var steps: [Step] = []

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
        case dropAnswers
        /// First: for how many milliseconds.
        case stopResponding
        case newAddress

        // Faults, of an adapter.
        /// First: for how many milliseconds.
        case powerOff, unplug, silence
        case reset
        /// First: by how many seconds.
        case suspend

        var isOnAdapter: Bool {
            switch self {
            case .scan, .neighbourScan, .powerOff, .unplug, .silence, .reset, .suspend: true
            default: false
            }
        }
    }

    static let faults: [Verb] = [
        .hangUp, .outOfRange, .restart, .refuse, .delayConnects, .dropAnswers, .stopResponding, .powerOff, .unplug,
        .silence, .reset, .suspend,
    ]
}
