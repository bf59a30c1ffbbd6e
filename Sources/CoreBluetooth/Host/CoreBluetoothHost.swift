internal import BLELinux
package import BareBLE
internal import Logging

/// The system below the managers: one central of BareBLE for the process, which they all share.
///
/// It is created with the first manager, on the adapter that the environment variable `BAREBLE_ADAPTER` names (`hci1`, or an
/// address), by default the first one. Tests give it a central on a virtual radio.
package final class CoreBluetoothHost: Sendable {
    /// The host of the current task, for tests; it takes precedence over the one of the process.
    @TaskLocal package static var scoped: CoreBluetoothHost?

    private static let shared = Lock<CoreBluetoothHost?>(nil)

    let hub: CentralHub
    let server: ServerHub
    let logger: Logger
    /// The names that devices have advertised or given, for objects that are made later.
    let names = KnownNames()

    /// Creates a host on a central.
    package init(_ central: Central) {
        server = ServerHub(central)
        hub = CentralHub(central, server)
        logger = central.configuration.logger
    }

    /// Has all managers that are created later use this central.
    package static func use(_ central: Central) {
        shared.withLock { $0 = CoreBluetoothHost(central) }
    }

    /// The host for a manager that is created now.
    static var current: CoreBluetoothHost {
        if let scoped { return scoped }
        return shared.withLock { shared in
            if let shared { return shared }
            let host = CoreBluetoothHost(Central(defaultConfiguration))
            shared = host
            return host
        }
    }

    private static var defaultConfiguration: Configuration {
        var configuration = Configuration()
        configuration.logger = Logger(label: "CoreBluetooth")
        guard let adapter = ProcessInfo.processInfo.environment["BAREBLE_ADAPTER"], !adapter.isEmpty else {
            return configuration
        }
        configuration.adapter = BluetoothAddress(adapter).map(AdapterSelector.address) ?? .named(adapter)
        return configuration
    }

    /// Whether the kernel refuses its Bluetooth sockets to this process.
    static var isDenied: Bool {
        do throws(BLEError) {
            _ = try Central.adapters()
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
