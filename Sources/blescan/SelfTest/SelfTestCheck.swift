/// The checks of the self-test, in their order. S01 to S13 need one adapter; the others need a peer.
///
/// A check measures, and judges by what it has measured alone: its file has the measured values, a pure function that
/// judges them, and the steps of the runner that measure them.
enum SelfTestCheck: Int, CaseIterable, Hashable, Sendable {
    case identity = 1
    case responses
    case capabilities
    case kernelChoice
    case scanSwitch
    case scanRestarts
    case passiveScan
    case activeScan
    case duplicates
    case duty
    case autosuspend
    case attempt
    case refusals
    case connects
    case scanWhileLinked
    case procedures
    case throughput
    case linkLimit
    case advertiseWhileLinked
    case supervision
    case powerCycles

    /// The stable identifier in reports, such as `S07`.
    var id: String { "S" + (rawValue < 10 ? "0" : "") + String(rawValue) }

    /// The name on the screen.
    var name: String {
        switch self {
        case .identity: "identity"
        case .responses: "responses"
        case .capabilities: "capabilities"
        case .kernelChoice: "kernel's choice"
        case .scanSwitch: "scan on and off"
        case .scanRestarts: "scan restarts"
        case .passiveScan: "passive scan"
        case .activeScan: "active scan"
        case .duplicates: "duplicate filter"
        case .duty: "scan duty"
        case .autosuspend: "autosuspend"
        case .attempt: "connection attempt"
        case .refusals: "refusals"
        case .connects: "connects"
        case .scanWhileLinked: "scan while linked"
        case .procedures: "link procedures"
        case .throughput: "throughput"
        case .linkLimit: "number of links"
        case .advertiseWhileLinked: "advertise linked"
        case .supervision: "supervision"
        case .powerCycles: "power cycles"
        }
    }

    /// Whether it needs a device to connect to.
    var needsPeer: Bool { rawValue >= Self.connects.rawValue }

    /// Whether the peer has to be an adapter of this machine, which the self-test lets advertise and serve.
    var needsPeerAdapter: Bool {
        switch self {
        case .throughput, .linkLimit, .advertiseWhileLinked, .supervision, .powerCycles: true
        default: false
        }
    }
}
