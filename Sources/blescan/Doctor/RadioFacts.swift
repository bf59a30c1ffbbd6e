/// What the kernel's Bluetooth sockets told.
///
/// Sockets cannot be pretended as files can; below `--root DIR` the file `bluetooth.json` there stands for their answers, in
/// the form that `RadioFacts` has as JSON.
struct RadioFacts: Codable, Hashable, Sendable {
    /// The error numbers of opening each kind of socket; 0 where it opens.
    var controllerSocket: Int32 = 0
    var managementSocket: Int32 = 0
    var linkSocket: Int32 = 0
    /// The adapters that are looked at, the one that programs get by themselves first.
    var adapters: [AdapterFacts] = []
    /// Which programs have a controller's or the management interface's socket open; `nil` where that may not be seen.
    var openers: [SocketOpener]?
}

/// A program that has a controller's or the management interface's socket open.
struct SocketOpener: Codable, Hashable, Sendable {
    enum Kind: String, Codable, Hashable, Sendable {
        /// Beside the kernel's host: scanners.
        case raw
        /// Instead of the kernel's host.
        case user
        case management
    }

    var program: String
    var kind: Kind
    /// The adapter's index; `nil` for all.
    var adapter: UInt16?
}

/// One adapter.
struct AdapterFacts: Codable, Hashable, Sendable {
    var index: UInt16
    /// Such as `hci0`.
    var name: String
    var address: String
    /// On, and meant to stay so.
    var isUp: Bool
    /// The controller has power: also in the two seconds after plugging in.
    var isRunning: Bool
    /// How it is attached, such as `usb`.
    var bus: String?
    /// What the management interface tells; `nil` where it did not answer.
    var management: ManagementFacts?
    /// What the controller itself told; `nil` where it was not asked.
    var controller: ControllerFacts?
    /// What was heard before anything of ours scanned; `nil` where nobody listened.
    var before: HeardFacts?
    /// The scan that was made; `nil` where none was.
    var scan: ScanFacts?
    /// The links that are up, of all programs.
    var links: [LinkFacts]?
}

/// What the management interface tells of an adapter.
struct ManagementFacts: Codable, Hashable, Sendable {
    /// The version of the specification, as a number.
    var version: UInt8
    /// The maker's company identifier.
    var company: UInt16
    /// A bit for each setting that the adapter can have.
    var supported: UInt32
    /// A bit for each setting that it has.
    var current: UInt32
}

/// What a controller can do on LE; `nil` for what it did not answer.
struct ControllerFacts: Codable, Hashable, Sendable {
    var features: UInt64?
    /// Whether it lists the commands of extended scanning.
    var listsExtendedScan: Bool?
    var acceptListSize: UInt8?
    var resolvingListSize: UInt8?
    /// Its buffers for data: how long, and how many.
    var bufferLength: UInt16?
    var bufferCount: UInt8?
    /// The commands that failed, with the status, or none for those without an answer.
    var failures: [CommandResult] = []
}

/// A command to the controller, and its status; none where no answer came.
struct CommandResult: Codable, Hashable, Sendable {
    var command: UInt16
    var status: UInt8?
}

/// The scan that the diagnosis makes, step by step.
struct ScanFacts: Codable, Hashable, Sendable {
    var isExtended: Bool
    var steps: [CommandResult]
    /// What was heard meanwhile; `nil` where it could not be begun.
    var heard: HeardFacts?
}

/// Advertising reports of a while.
struct HeardFacts: Codable, Hashable, Sendable {
    var milliseconds: Int64
    var reports = 0
    /// Those without data.
    var empty = 0
    /// Those that any controller could have received.
    var legacy = 0
    /// Different addresses.
    var addresses = 0
}

/// One LE link.
struct LinkFacts: Codable, Hashable, Sendable {
    var handle: UInt16
    var address: String
    /// Whether this computer made the link.
    var isCentral: Bool
}
