/// What a daemon wants of the radio, to be gone on with after a restart.
///
/// `bytes` is a form to store. Its reading side believes nothing: what was cut, changed or made up is refused.
public struct DaemonState: Hashable, Sendable {
    /// How many peers are stored, how many subscriptions of each, and how many entries of each kind in the scan's filter. `bytes`
    /// leaves more out; to save such a state is refused.
    public static let limit = 1_024

    /// The adapter that was used, by its address; its number changes.
    public var adapter: BluetoothAddress?
    /// The peers to be connected to.
    public var peers: [WantedPeer]
    /// The scan that was running, if one was.
    public var scan: WantedScan?

    /// Puts together what is to be stored.
    public init(adapter: BluetoothAddress? = nil, peers: [WantedPeer] = [], scan: WantedScan? = nil) {
        self.adapter = adapter
        self.peers = peers
        self.scan = scan
    }
}

/// A peer that is to be connected to, and how.
public struct WantedPeer: Hashable, Sendable {
    /// Whom.
    public var peer: PeerID
    /// What happens after a link was lost.
    public var reconnect: ReconnectPolicy
    /// How long a link must have been ready for pauses and attempts to start over.
    public var provenAfter: Duration
    /// How long making a link ready may take; `nil` for any time.
    public var readyTimeout: Duration?
    /// How long setting up a link may take; `nil` for any time.
    public var timeout: Duration?
    /// The largest ATT MTU to ask for; `nil` takes the central's.
    public var mtu: Int?
    /// What the link layer is asked for; `nil` leaves it to the kernel.
    public var parameters: ConnectionParameters?
    /// How a cache is checked before it is used.
    public var validation: CacheValidation
    /// Whether the peer is told to announce changes of its services.
    public var observesServiceChanges: Bool
    /// The values that the peer is to send.
    public var subscriptions: [WantedSubscription]

    /// Names a peer, with the defaults of a session.
    public init(
        _ peer: PeerID, reconnect: ReconnectPolicy = .backoff(), provenAfter: Duration = .seconds(10),
        readyTimeout: Duration? = .seconds(30), timeout: Duration? = .seconds(15), mtu: Int? = nil,
        parameters: ConnectionParameters? = nil, validation: CacheValidation = .required,
        observesServiceChanges: Bool = true, subscriptions: [WantedSubscription] = []
    ) {
        self.peer = peer
        self.reconnect = reconnect
        self.provenAfter = provenAfter
        self.readyTimeout = readyTimeout
        self.timeout = timeout
        self.mtu = mtu
        self.parameters = parameters
        self.validation = validation
        self.observesServiceChanges = observesServiceChanges
        self.subscriptions = subscriptions
    }
}

/// A characteristic whose values are wanted.
public struct WantedSubscription: Hashable, Sendable {
    /// What kind of value.
    public var uuid: BluetoothUUID
    /// In services of which kind; `nil` for any.
    public var service: BluetoothUUID?
    /// Which one of several, from 0 in the order of handles; `nil` where there is one.
    public var index: Int?
    /// Whether indications are preferred where the characteristic has both.
    public var prefersIndications: Bool

    /// Names a characteristic.
    public init(
        _ uuid: BluetoothUUID, service: BluetoothUUID? = nil, index: Int? = nil, prefersIndications: Bool = false
    ) {
        self.uuid = uuid
        self.service = service
        self.index = index
        self.prefersIndications = prefersIndications
    }
}

/// A scan that is to run.
public struct WantedScan: Hashable, Sendable {
    /// How to listen, what to do with repetitions, and the filter.
    public var settings: ScanSettings
    /// After how long a silent device is told as lost; `nil`: never.
    public var lostAfter: Duration?

    /// Describes a scan.
    public init(_ settings: ScanSettings, lostAfter: Duration? = nil) {
        self.settings = settings
        self.lostAfter = lostAfter
    }
}
