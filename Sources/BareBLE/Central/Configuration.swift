public import BLECore
package import BLELinux
public import Logging

/// A selection of the adapter to use.
public enum AdapterSelector: Hashable, Sendable, CustomStringConvertible {
    /// The first adapter that is present, by index.
    case first
    /// The adapter with this name, such as `hci0`. The number changes when an adapter is reset or replugged.
    case named(String)
    /// The adapter with this address, whatever its number is.
    case address(BluetoothAddress)

    /// A text such as `hci0`, an address, or "the first adapter".
    public var description: String {
        switch self {
        case .first: "the first adapter"
        case .named(let name): name
        case .address(let address): address.description
        }
    }

    /// Returns a Boolean value that indicates whether this selects an adapter.
    package func matches(_ adapter: ControllerInfo) -> Bool { matches(adapter.name, adapter.address) }

    /// Returns a Boolean value that indicates whether this selects an adapter.
    package func matches(_ adapter: AdapterDescription) -> Bool { matches(adapter.name, adapter.address) }

    private func matches(_ name: String, _ address: BluetoothAddress?) -> Bool {
        switch self {
        case .first: true
        case .named(let wanted): name == wanted
        case .address(let wanted): address == wanted
        }
    }
}

/// The configuration of a `Central`.
public struct Configuration: Sendable {
    /// The adapter that scans and connects.
    public var adapter: AdapterSelector = .first
    /// The largest ATT MTU to request, 23 to 517. 517 carries the longest value (512 bytes) in one response.
    public var preferredMTU: Int = 517
    /// The destination of diagnostics; none by default. Changes of state are logged at `debug`; problems of a link or
    /// an adapter are logged at `warning`, the first at once and then a summary each minute.
    public var logger = Logger(label: "BareBLE") { _ in SwiftLogNoOpLogHandler() }
    /// Called on the event loop with every ATT PDU of every link, in wire order. It must return quickly.
    public var trace: (@Sendable (TracedPDU) -> Void)?
    /// Called on the event loop with each link that comes up; the observer that it returns is called with all events
    /// of that link, in order. Both must return quickly. `Recorder` of BLECapture writes files from them.
    public var traceLinks: (@Sendable (TracedLink) -> TracedLink.Observer)?
    /// Called on the event loop with every command to the adapter's controller and every event from it, in the order
    /// in which they were written and read, including scan reports, and the commands of the kernel and of other
    /// programs with their responses. Keys in commands are blanked. It must return quickly.
    public var traceHCI: (@Sendable (TracedHCIPacket) -> Void)?
    /// Called when a peer refuses an operation for lack of security; raises the security of the link, and returns
    /// whether it did.
    ///
    /// The operation is then retried once. Operations that need the same level at the same time share one call, and
    /// each level is requested separately. The closure runs on the event loop, so it must await and not block. Without
    /// it, such an operation fails with `BLEError.Code.insufficientSecurity`, as it does if the closure returns
    /// `false`. The closure may use the peripheral itself; those operations fail in the same way.
    ///
    /// It is for programs with means of their own. With `SecurityConfiguration.onDemand` the library pairs instead; if
    /// both are set, this closure is called.
    public var raiseSecurity: (@Sendable (SecurityRequest) async -> Bool)?
    /// Pairing and bonds; `nil` for none.
    public var security: SecurityConfiguration?
    /// The recovery actions that are permitted when the adapter has stopped reporting or responding. By default no link
    /// is ended for that.
    public var recovery = RecoveryPolicy.rescan
    /// The largest number of links on the adapter, those of other programs among them;
    /// `nil` for no limit of this program's.
    ///
    /// No controller reports how many links it can have, and some misbehave with fewer than they accept: five is safe
    /// for most. A connect beyond the limit waits for the end of a link until its time-out, and fails with
    /// `BLEError.Code.busy`. Without a limit, one is learnt from the controller's refusals: a connect beyond that waits
    /// 4 s for the end of a link, then is attempted.
    public var maximumLinks: Int?
    /// The PHYs that links may use; `nil`, the default, leaves the choice to the two controllers,
    /// which take 2M where both have it.
    ///
    /// `le1M` helps where links break after their change to 2M. It is set at the controller, so it holds for the links
    /// of other programs too, and until the adapter is switched off; PHYs that the controller does not have are left
    /// out. It needs CAP_NET_RAW. `Peripheral.requestPHY(transmit:receive:timeout:)` still changes one link.
    ///
    /// Spec: HCI_LE_Set_Default_PHY, Core Vol 4 Part E, 7.8.48.
    public var preferredPHYs: LEPHYs?
    /// The store that keeps the restoration state between runs, for `Central.restore(_:from:holding:handlers:)`; `nil`
    /// keeps nothing.
    public var stateStore: StateStore?
    /// The directory that keeps the peers' databases between connections, one file for each peer; `nil` uses the
    /// directory of the state if there is a `stateStore`, and otherwise keeps nothing.
    ///
    /// The directory must exist. With it, a connection needs no discovery while the peer's Database Hash is unchanged:
    /// one request reads that, after the exchange of the MTU. Where the central remembers the state of a bonded peer,
    /// none may be needed. Peers whose addresses change are left out. See `GATTCacheDirectory` for details.
    public var cacheDirectory: String?
    /// Computes the Database Hash of a discovered database, so that a cache is stored only if the peer's hash matches
    /// its database; `nil` trusts the peer.
    ///
    /// With `import BareBLECrypto` it is `{ $0.hash }`. Databases that were discovered completely, at the level
    /// `full`, are checked before they are stored and when they are read from a cache. It also computes the Database
    /// Hash of a local peripheral's services, which have none without it. Called on the event loop; it must return
    /// quickly.
    ///
    /// Spec: Database Hash, Core Vol 3 Part G, 7.3.1.
    public var databaseHash: (@Sendable (_ message: DatabaseHashMessage) -> [UInt8])?
    /// Computes the hash by which a bonded device is recognized under the private addresses that it uses; `nil`
    /// recognizes only devices that advertise with their identity address. Where a bond has an identity resolving key,
    /// connects to resolvable private addresses fail with `.notSupported` then, because a link to the bonded device
    /// would not be encrypted, unless they demand `ConnectOptions.SecurityDemand.none`.
    ///
    /// With `import BareBLECrypto` it is `{ $0.hash }`. It is computed once for each new address that a scan hears and
    /// each bond with an identity resolving key, on the event loop, so it must return quickly.
    ///
    /// Spec: Random address hash function ah, Core Vol 3 Part H, 2.2.2.
    public var addressHash: (@Sendable (_ message: AddressHashMessage) -> UInt32)?
    /// Computes the code of a write that is signed with the key of a bond, for `Peripheral.writeSigned(_:to:timeout:)`
    /// and for the signed writes of centrals; `nil` signs no such writes, and accepts none.
    ///
    /// With `import BareBLECrypto` it is `{ $0.code }`. Called on the event loop; it must return quickly.
    ///
    /// Spec: Signature Generation, Core Vol 3 Part H, 2.4.5.
    public var writeSignature: (@Sendable (_ message: WriteSignatureMessage) -> [UInt8])?
    /// A Boolean value that indicates whether a peer's protocol errors close the link; otherwise they are counted and
    /// tolerated.
    public var isStrict = false
    /// The time that a peer has for a response before the link closes: 30 s by the protocol, less in tests.
    package var responseTime: Duration = .seconds(30)

    /// Creates a configuration with the default values.
    public init() {}
}

/// Options of a connection.
public struct ConnectOptions: Hashable, Sendable {
    /// The longest time for setting up the link, including the MTU exchange; `nil` waits for the peer for as long as
    /// the task lives.
    ///
    /// Without a limit the connection is attempted again and again, so that others on the same adapter have their
    /// turns; in between, running scans listen and advertisements are on air. Once the link is up, the remaining steps
    /// are still limited to a minute.
    public var timeout: Duration? = .seconds(15)
    /// The largest ATT MTU to request, 23 to 517; `nil` uses the central's. 23 saves the exchange.
    public var mtu: Int?
    /// The connection parameters to request; `nil` leaves them to the kernel.
    public var parameters: ConnectionParameters?
    /// The cache of an earlier connection to this peer, from `Peripheral.cache()`; it takes precedence over the one in
    /// `Configuration.cacheDirectory`, and over what is remembered of a bonded peer.
    public var cache: GATTCache?
    /// The validation of the cache before it is used.
    public var validation: GATTCache.Validation = .required
    /// A Boolean value that indicates whether to subscribe to the peer's Service Changed characteristic once its
    /// handle is known.
    ///
    /// This takes one or two writes, after the first request of the application. Changes that the peer announces are
    /// handled in any case.
    public var observesServiceChanges = true
    /// The security that the link must have before it is used. Of a session, a store keeps whether a bond is required.
    public var security = SecurityDemand.asBonded

    /// Creates options, with default values for those not given.
    public init(
        timeout: Duration? = .seconds(15), mtu: Int? = nil, parameters: ConnectionParameters? = nil,
        cache: GATTCache? = nil, validation: GATTCache.Validation = .required, observesServiceChanges: Bool = true,
        security: SecurityDemand = .asBonded
    ) {
        self.timeout = timeout
        self.mtu = mtu
        self.parameters = parameters
        self.cache = cache
        self.validation = validation
        self.observesServiceChanges = observesServiceChanges
        self.security = security
    }
}
