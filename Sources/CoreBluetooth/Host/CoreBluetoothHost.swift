internal import BLELinux
package import BareBLE
internal import BareBLECrypto
package import Logging

/// The system below the managers: one adapter for the process, which they all share.
///
/// It is created with the first manager. What Apple's systems decide in their settings and their dialogs, a program
/// decides here, or the environment does for one that is not changed.
public final class CoreBluetoothHost: Sendable {
    /// The settings that the managers of a process share.
    public struct Settings: Sendable {
        /// The adapter: a name such as `hci1`, or an address; `nil` for the first one.
        public var adapter: String?
        /// The way in which devices pair; `nil` if they do not: then an operation for which a device demands security
        /// fails, with `CBATTError.insufficientAuthentication` or `.insufficientEncryption`.
        public var pairing: Pairing?
        /// The directory, which must exist, of what managers with restore identifiers keep; `nil` to keep nothing.
        public var stateDirectory: String?
        /// The variables of the environment that were not used, because the program has rights that its user lacks.
        let ignoredVariables: [String]

        /// Creates the settings that the environment states.
        ///
        /// `BAREBLE_ADAPTER` is the adapter. `BAREBLE_BONDS` is the directory of the bonds: with it devices pair,
        /// without a question to anybody; with `BAREBLE_ALLOW_PAIRING=1` centrals may pair too. `BAREBLE_STATE` is the
        /// directory of what managers keep; without it, the one that systemd gives the service (`STATE_DIRECTORY`).
        ///
        /// A program that has more rights than the user who started it, by a set-user-ID bit or by capabilities of its
        /// file (`setcap`), takes nothing from the environment, which is that user's; the log names the variables. With
        /// `BAREBLE_BONDS` among them and without `pairing`, every connection fails: it would not be known which links
        /// must be encrypted.
        public init() {
            self.init(environment: ProcessInfo.processInfo.environment, isPrivileged: Privileges.areFromFile)
        }

        package init(environment: [String: String], isPrivileged: Bool = false) {
            let names = [
                "BAREBLE_ADAPTER", "BAREBLE_ALLOW_PAIRING", "BAREBLE_BONDS", "BAREBLE_STATE", "STATE_DIRECTORY",
            ]
            ignoredVariables = isPrivileged ? names.filter { environment[$0]?.isEmpty == false } : []
            func value(_ name: String) -> String? {
                isPrivileged ? nil : environment[name].flatMap { $0.isEmpty ? nil : $0 }
            }
            adapter = value("BAREBLE_ADAPTER")
            stateDirectory =
                value("BAREBLE_STATE") ?? value("STATE_DIRECTORY")?.split(separator: ":").first.map(String.init)
            pairing = value("BAREBLE_BONDS").map { Pairing(directory: $0) }
            pairing?.allowsCentrals = value("BAREBLE_ALLOW_PAIRING") == "1"
        }
    }

    /// The host of the current task, for tests; it takes precedence over the one of the process.
    @TaskLocal package static var scoped: CoreBluetoothHost?

    private static let shared = Lock<(host: CoreBluetoothHost?, settings: Settings?)>((nil, nil))

    let hub: CentralHub
    let server: ServerHub
    let logger: Logger
    /// Where managers with restore identifiers keep their state.
    let states: ManagerStates
    /// The names that devices have advertised or given, for objects that are made later.
    let names = KnownNames()

    /// Creates a host on a central, which was made with the configuration of these settings.
    package init(_ central: Central, _ settings: Settings = Settings(environment: [:])) {
        server = ServerHub(central, settings.pairing?.centralOptions)
        hub = CentralHub(central, server)
        logger = central.configuration.logger
        states = ManagerStates(settings.stateDirectory, loop: central.loop, logger: logger)
        guard !settings.ignoredVariables.isEmpty else { return }
        logger.warning(
            """
            \(settings.ignoredVariables.joined(separator: ", ")) of the environment are ignored, because the program's file \
            gives it rights that its user lacks: set them with CoreBluetoothHost.configure(_:)
            """)
    }

    /// Has the managers of this process use other settings than those of the environment.
    ///
    /// Call it before the first manager is created; later it has no effect, and logs one line.
    public static func configure(_ settings: Settings) {
        let isInUse = shared.withLock { shared in
            if shared.host == nil { shared.settings = settings }
            return shared.host != nil
        }
        guard isInUse else { return }
        Misuse.log("CoreBluetoothHost.configure(_:) has no effect after the first manager was created")
    }

    /// Has all managers that are created later use this central.
    package static func use(_ central: Central, _ settings: Settings = Settings(environment: [:])) {
        let host = CoreBluetoothHost(central, settings)
        // The one before ends outside the lock.
        _ = shared.withLock { shared in
            defer { shared.host = host }
            return shared.host
        }
    }

    /// The host, if there is one already.
    static var existing: CoreBluetoothHost? { scoped ?? shared.withLock { $0.host } }

    /// The host for a manager that is created now.
    static var current: CoreBluetoothHost {
        if let scoped { return scoped }
        return shared.withLock { shared in
            if let host = shared.host { return host }
            let settings = shared.settings ?? Settings()
            let host = CoreBluetoothHost(
                Central(configuration(settings, logger: Logger(label: "CoreBluetooth"))), settings)
            shared.host = host
            return host
        }
    }

    /// Returns the configuration of a central for these settings.
    package static func configuration(_ settings: Settings, logger: Logger) -> Configuration {
        var configuration = Configuration()
        configuration.logger = logger
        // Centrals see by it that the services are the same.
        configuration.databaseHash = { $0.hash }
        if let adapter = settings.adapter {
            configuration.adapter = BluetoothAddress(adapter).map(AdapterSelector.address) ?? .named(adapter)
        }
        guard let pairing = settings.pairing else {
            if settings.ignoredVariables.contains("BAREBLE_BONDS") {
                configuration.security = SecurityConfiguration(bonds: BondStore(missing: ignoredBonds(logger)))
            }
            return configuration
        }
        var security = SecurityConfiguration(bonds: bonds(in: pairing.directory, logger))
        security.onDemand = PairingOptions(agent: pairing.agent)
        configuration.security = security
        // Bonded devices keep their identifiers while their addresses change.
        configuration.addressHash = { $0.hash }
        configuration.writeSignature = { $0.code }
        return configuration
    }

    /// The reason that a program whose bonds the environment names, which is not used, connects no device: one that is
    /// bonded would be connected without encryption.
    private static func ignoredBonds(_ logger: Logger) -> BLEError {
        let error = BLEError(
            .notPermitted, subject: "BAREBLE_BONDS", during: "open the bonds",
            because: "the variable is ignored, because the program's file gives it rights that its user lacks",
            hint: "Set the directory with CoreBluetoothHost.configure(_:), or unset the variable.")
        logger.error("no device can be connected, and nothing pairs: \(error)")
        return error
    }

    /// Returns the store of the bonds. While it cannot be opened, it is not known which devices are bonded: then every
    /// connection and every pairing fails with the reason, rather than that a link which should be encrypted is not.
    private static func bonds(in directory: String, _ logger: Logger) -> BondStore {
        do throws(BLEError) {
            return try BondStore(directory: directory)
        } catch {
            logger.error("no device can be connected, and nothing pairs, until the bonds can be read: \(error)")
            return BondStore(unchecked: directory)
        }
    }

    /// Whether the kernel, or a virtual radio in its place, refuses its Bluetooth sockets to this process.
    static var isDenied: Bool {
        do throws(BLEError) {
            // Creating a host here would end the time for `configure(_:)`.
            if let existing {
                _ = try existing.hub.central.adaptersOfSystem()
            } else {
                _ = try Central.adapters()
            }
            return false
        } catch {
            return error.code == .notPermitted
        }
    }
}

/// The log of calls that have no effect, in the form of Apple's systems.
enum Misuse {
    static func log(_ text: String, host: CoreBluetoothHost? = nil) {
        (host ?? .current).logger.error("API MISUSE: \(text)")
    }
}

/// The names of devices, the newest for each. At most 4,096 are kept; beyond that, all are forgotten.
final class KnownNames: Sendable {
    private static let limit = 4_096
    private let names = Lock<[PeerID: String]>([:])

    subscript(peer: PeerID) -> String? {
        get { names.withLock { $0[peer] } }
        set {
            names.withLock { names in
                if names.count >= Self.limit, names[peer] == nil { names = [:] }
                names[peer] = newValue
            }
        }
    }
}

/// The connected devices, and the services that are known of each.
final class ConnectedPeers: Sendable {
    private let peers = Lock<[PeerID: Set<BluetoothUUID>]>([:])

    func insert(_ peer: PeerID, services: Set<BluetoothUUID>) { peers.withLock { $0[peer] = services } }

    func remove(_ peer: PeerID) { peers.withLock { $0[peer] = nil } }

    func add(_ services: [BluetoothUUID], of peer: PeerID) { peers.withLock { $0[peer]?.formUnion(services) } }

    /// Returns the devices with at least one of the services, ordered by address; every device for an empty list.
    func peers(with services: [BluetoothUUID]) -> [PeerID] {
        let found = peers.withLock { peers in
            peers.filter { services.isEmpty || !$0.value.isDisjoint(with: services) }.map(\.key)
        }
        return found.sorted { ($0.address, $0.type.rawValue) < ($1.address, $1.type.rawValue) }
    }

    func services(of peer: PeerID) -> Set<BluetoothUUID> { peers.withLock { $0[peer] ?? [] } }
}
