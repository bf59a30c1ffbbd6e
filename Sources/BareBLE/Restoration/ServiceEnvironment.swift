internal import BLELinux
internal import Glibc

/// The environment that a service manager such as systemd gives a process: a few variables, and descriptors.
///
/// This is a plain value: reading it changes nothing. `process` reads the environment of this process; tests create
/// their own.
public struct ServiceEnvironment: Hashable, Sendable {
    /// A descriptor that was passed to the process, and its name.
    public struct Descriptor: Hashable, Sendable {
        /// The name that the service or its unit file gave it; `unknown` if there is none.
        public let name: String
        /// The descriptor's number.
        public let number: Int32
    }

    /// The first descriptor that a manager passes.
    private static let firstDescriptor: Int32 = 3
    /// The number of descriptors that are considered.
    private static let descriptorLimit: Int32 = 4_096
    private static let names = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
    ]

    /// The variables by their names.
    public let variables: [String: String]
    /// The process that reads them: some variables apply to one process alone.
    public let processID: Int32
    /// The descriptors that were passed to this process, whether or not they are still open.
    public let descriptors: [Descriptor]

    /// Creates an environment from given variables.
    public init(variables: [String: String], processID: Int32) {
        self.variables = variables
        self.processID = processID
        self.descriptors = Self.descriptors(variables, processID)
    }

    /// Creates an environment whose descriptors have other numbers than a manager would use.
    package init(descriptors: [(name: String, number: Int32)], variables: [String: String] = [:]) {
        self.variables = variables
        processID = getpid()
        self.descriptors = descriptors.map { Descriptor(name: $0.name, number: $0.number) }
    }

    private static func descriptors(_ variables: [String: String], _ processID: Int32) -> [Descriptor] {
        guard variables["LISTEN_PID"].flatMap({ Int32($0) }) == processID,
            let count = variables["LISTEN_FDS"].flatMap({ Int32($0) }), count > 0
        else { return [] }
        let names = variables["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        return (0..<min(count, descriptorLimit)).map { index in
            let name = Int(index) < names.count ? String(names[Int(index)]) : "unknown"
            return Descriptor(name: name, number: firstDescriptor + index)
        }
    }

    /// The environment of this process.
    public static var process: ServiceEnvironment {
        var variables: [String: String] = [:]
        for name in names {
            if let value = unsafe getenv(name) { variables[name] = unsafe String(cString: value) }
        }
        return ServiceEnvironment(variables: variables, processID: getpid())
    }

    /// Removes the variables from the environment of this process, so that the programs that it starts do not use
    /// them. Call it while no other thread reads the environment.
    public static func removeFromProcess() {
        for name in names { unsafe unsetenv(name) }
    }

    /// The address of the manager's socket, from `NOTIFY_SOCKET`; `nil` if it is not set.
    public var notifySocket: String? { variables["NOTIFY_SOCKET"] }

    /// The interval in which the manager expects a watchdog message; `nil` if it expects none. Twice as often is good
    /// practice.
    public var watchdogInterval: Duration? {
        if let process = variables["WATCHDOG_PID"], Int32(process) != processID { return nil }
        guard let microseconds = variables["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0 else { return nil }
        return .microseconds(microseconds)
    }
}
