public import BLECore
package import BLELinux
public import Logging

/// Which adapter to use.
public enum AdapterSelector: Hashable, Sendable, CustomStringConvertible {
    /// The first one that is there, by index.
    case first
    /// The one with this name, such as `hci0`. The number changes when an adapter is reset or replugged.
    case named(String)
    /// The one with this address, whatever its number is.
    case address(BluetoothAddress)

    /// `hci0`, an address, or "the first adapter".
    public var description: String {
        switch self {
        case .first: "the first adapter"
        case .named(let name): name
        case .address(let address): address.description
        }
    }

    /// Whether an adapter is one that this names.
    package func matches(_ adapter: ControllerInfo) -> Bool {
        switch self {
        case .first: true
        case .named(let name): adapter.name == name
        case .address(let address): adapter.address == address
        }
    }
}

/// What a `Central` is told at the start.
public struct Configuration: Sendable {
    /// Which adapter scans and connects.
    public var adapter: AdapterSelector = .first
    /// The largest ATT MTU to ask for, 23 to 517. 517 carries the longest value (512 bytes) in one response.
    public var preferredMTU: Int = 517
    /// Where diagnostics go; silent by default. A line at `debug` for each change of state; at `warning` what goes wrong on a link or an
    /// adapter, at once and then once a minute, summed up.
    public var logger = Logger(label: "BareBLE") { _ in SwiftLogNoOpLogHandler() }
    /// Called on the event loop with every ATT PDU of every link, in wire order. It must return quickly.
    public var trace: (@Sendable (TracedPDU) -> Void)?
    /// Called on the event loop with each link that comes up; what it returns is called with all that happens on that link, in
    /// order. Both must return quickly. `Recorder` of BareBLETestKit makes files of it.
    public var traceLinks: (@Sendable (TracedLink) -> TracedLink.Observer)?
    /// Called on the event loop with every command to the adapter's controller and every event from it, in the order in which they
    /// were written and read: reports of a scan, and what other programs' commands were answered with, too. It must return quickly.
    public var traceHCI: (@Sendable (TracedHCIPacket) -> Void)?
    /// Asked when a peer refuses a call for lack of security: makes the link more secure, and answers whether it did.
    ///
    /// The call is then made again, once. Calls that need the same level at the same time share one question, and each level
    /// is asked for on its own. It runs on the event loop, so it must await and not block. Without it, such a call fails
    /// with `BLEError.Code.insufficientSecurity`, as it does when the answer is no. So does a call that the hook itself
    /// makes to that peripheral, which it may.
    public var raiseSecurity: (@Sendable (SecurityRequest) async -> Bool)?
    /// Where what the program wants of the radio is kept from one run to the next, for `Central.restore(_:from:holding:handlers:)`;
    /// `nil`: nowhere.
    public var stateStore: StateStore?
    /// Where what peers offer is kept from one connection to the next, a file for each peer; `nil`: beside the state, if there is a
    /// `stateStore`, else nowhere.
    ///
    /// The directory must exist. With it, each connection begins with one request, for the peer's Database Hash, and needs no
    /// discovery while that has not changed. Peers whose addresses change are left out. `GATTCacheDirectory` has the rest.
    public var cacheDirectory: String?
    /// Computes the Database Hash of what was discovered, so that a cache is kept only where the peer's hash is that of its database;
    /// `nil`: the peer is believed.
    ///
    /// With `import BareBLECrypto` it is `{ $0.hash }`. Databases that were discovered completely, at the level `full`, are checked,
    /// before they are stored and when they are read from a cache. Called on the event loop; it must return quickly.
    ///
    /// Spec: Database Hash, Core Vol 3 Part G, 7.3.1.
    public var databaseHash: (@Sendable (_ message: DatabaseHashMessage) -> [UInt8])?
    /// Whether a peer's protocol errors close the link instead of being counted and tolerated.
    public var isStrict = false
    /// How long a peer may think about a request before the link closes: 30 s by the protocol, less in tests.
    package var responseTime: Duration = .seconds(30)

    /// The defaults.
    public init() {}
}

/// How a connection is made and kept.
public struct ConnectOptions: Hashable, Sendable {
    /// How long setting up the link, the MTU exchange included, may take; `nil` waits for the peer for as long as the task lives.
    ///
    /// Without a limit the connect is made anew again and again, so that others on the same adapter have their turns and running
    /// scans listen in between. Once the link is up, what is left has a minute all the same.
    public var timeout: Duration? = .seconds(15)
    /// The largest ATT MTU to ask for, 23 to 517; `nil` takes the central's. 23 saves the exchange.
    public var mtu: Int?
    /// What the link layer is asked for; `nil` leaves it to the kernel.
    public var parameters: ConnectionParameters?
    /// What an earlier connection found out about this peer, from `Peripheral.cache()`; it goes before the one in
    /// `Configuration.cacheDirectory`.
    public var cache: GATTCache?
    /// How the cache is checked before it is used.
    public var validation: CacheValidation = .required
    /// Whether the peer is told to announce changes of its services, once it is known how.
    ///
    /// That is a write or two, behind the first request of the application. Announced changes are obeyed in any case.
    public var observesServiceChanges = true

    /// The defaults, or other values for some of them.
    public init(
        timeout: Duration? = .seconds(15), mtu: Int? = nil, parameters: ConnectionParameters? = nil,
        cache: GATTCache? = nil, validation: CacheValidation = .required, observesServiceChanges: Bool = true
    ) {
        self.timeout = timeout
        self.mtu = mtu
        self.parameters = parameters
        self.cache = cache
        self.validation = validation
        self.observesServiceChanges = observesServiceChanges
    }
}
