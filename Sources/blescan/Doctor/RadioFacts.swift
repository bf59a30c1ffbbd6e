/// The facts from the kernel's Bluetooth sockets.
///
/// Sockets cannot be simulated by files; with `--root DIR` the file `bluetooth.json` in it replaces their responses,
/// in the JSON form of `RadioFacts`.
struct RadioFacts: Codable, Hashable, Sendable {
    /// The error numbers of opening each kind of socket; 0 where it opens.
    var controllerSocket: Int32 = 0
    var managementSocket: Int32 = 0
    var linkSocket: Int32 = 0
    /// The adapters in question, the one that programs use by default first.
    var adapters: [AdapterFacts] = []
    /// The programs with an open socket of a controller or the management interface; `nil` without permission to see
    /// them.
    var openers: [SocketOpener]?
}

/// A program with an open socket of a controller or the management interface.
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
    /// A name such as `hci0`.
    var name: String
    var address: String
    /// The adapter is up.
    var isUp: Bool
    /// The controller has power: also in the two seconds after plugging in.
    var isRunning: Bool
    /// The bus, such as `usb`.
    var bus: String?
    /// The response of the management interface; `nil` if there was none.
    var management: ManagementFacts?
    /// What the adapter lacks before the kernel switches it on; `nil` if it is configured.
    var configuration: ConfigurationFacts?
    /// The responses of the controller; `nil` if it was not queried.
    var controller: ControllerFacts?
    /// The reports before our own scan; `nil` without listening.
    var before: HeardFacts?
    /// The scan that was made; `nil` if there was none.
    var scan: ScanFacts?
    /// The links that are up, of all programs.
    var links: [LinkFacts]?
}

/// An adapter's data from the management interface.
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

/// What the management interface reports of an adapter that is not configured.
struct ConfigurationFacts: Codable, Hashable, Sendable {
    /// The maker's company identifier; `nil` without a response.
    var company: UInt16?
    /// A bit for each option that has to be set first; `nil` without a response.
    var missing: UInt32?
}

/// The versions of a controller, and its maker.
struct VersionFacts: Codable, Hashable, Sendable {
    /// The maker's number of the firmware, or of a part of it.
    var hciRevision: UInt16
    var company: UInt16
    var linkSubversion: UInt16
}

/// The LE features of a controller; `nil` for those that it did not report.
struct ControllerFacts: Codable, Hashable, Sendable {
    var version: VersionFacts?
    var features: UInt64?
    /// Whether it lists the commands of extended scanning.
    var listsExtendedScan: Bool?
    var acceptListSize: UInt8?
    var resolvingListSize: UInt8?
    /// The number of data buffers, and their length.
    var bufferLength: UInt16?
    var bufferCount: UInt8?
    /// The commands that failed, with their statuses, or `nil` for those without a response.
    var failures: [CommandResult] = []
}

/// A command to the controller, and its status; `nil` without a response.
struct CommandResult: Codable, Hashable, Sendable {
    var command: UInt16
    var status: UInt8?
}

/// The scan that the diagnosis makes, step by step.
struct ScanFacts: Codable, Hashable, Sendable {
    var isExtended: Bool
    var steps: [CommandResult]
    /// The reports during the scan; `nil` if it could not be started.
    var heard: HeardFacts?
}

/// The advertising reports in a period.
struct HeardFacts: Codable, Hashable, Sendable {
    var milliseconds: Int64
    var reports = 0
    /// Those without data.
    var empty = 0
    /// Those that any controller could have received.
    var legacy = 0
    /// Those in the events of a scan with legacy commands; `nil` in facts that were recorded without it.
    var fromLegacyScan: Int?
    /// The number of different addresses.
    var addresses = 0
}

/// One LE link.
struct LinkFacts: Codable, Hashable, Sendable {
    var handle: UInt16
    var address: String
    /// Whether this computer is the central of the link.
    var isCentral: Bool
}
