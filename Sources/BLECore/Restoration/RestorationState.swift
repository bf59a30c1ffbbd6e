/// The restoration state of a daemon: what it resumes after a restart.
///
/// `bytes` is a form to store. Decoding validates everything: truncated, changed or forged bytes are rejected.
public struct RestorationState: Hashable, Sendable {
    /// The maximum number of peers, of subscriptions of each, and of entries of each kind in the scan's filter.
    /// `bytes` leaves out the rest; saving such a state is refused.
    public static let limit = 1_024

    /// The address of the adapter that was used; its number changes.
    public var adapter: BluetoothAddress?
    /// The peers to connect to.
    public var peers: [Peer]
    /// The scan that was running; `nil` if none was.
    public var scan: Scan?
    /// The times at which recovery of the adapter began steps that end links, in seconds since 1970-01-01 00:00 UTC:
    /// eight at most, of the last hour. They keep the next run from taking such steps more often than one run may.
    public var recoveryTimes: [UInt64] = []
    /// The same times by the clock of the boot, which is not set; `nil` where it is not known, as in states of earlier
    /// versions. `setRecoveryRuns` sets both.
    var recoveryBoot: RecoveryBoot?

    /// Creates a state.
    public init(adapter: BluetoothAddress? = nil, peers: [Peer] = [], scan: Scan? = nil) {
        self.adapter = adapter
        self.peers = peers
        self.scan = scan
    }
}

extension RestorationState {
    /// A peer to connect to, with the options of its session.
    public struct Peer: Hashable, Sendable {
        /// The peer's address.
        public var peer: PeerID
        /// The policy after the loss of a link.
        public var reconnect: ReconnectPolicy
        /// The time for which a link must have been ready before pauses and attempts start over.
        public var resetBackoffAfter: Duration
        /// The longest time for making a link ready; `nil` for no limit.
        public var readyTimeout: Duration?
        /// The longest time for setting up a link; `nil` for no limit.
        public var timeout: Duration?
        /// The largest ATT MTU to request; `nil` uses the central's.
        public var mtu: Int?
        /// The connection parameters to request; `nil` leaves them to the kernel.
        public var parameters: ConnectionParameters?
        /// The validation of a cache before it is used.
        public var validation: GATTCache.Validation
        /// A Boolean value that indicates whether to subscribe to the peer's Service Changed characteristic.
        public var observesServiceChanges: Bool
        /// A Boolean value that indicates whether the peer must be bonded, and the link encrypted.
        public var requiresBond: Bool
        /// The subscriptions of the session.
        public var subscriptions: [Subscription]

        /// Creates an entry, with the defaults of a session.
        public init(
            _ peer: PeerID, reconnect: ReconnectPolicy = .backoff(), resetBackoffAfter: Duration = .seconds(10),
            readyTimeout: Duration? = .seconds(30), timeout: Duration? = .seconds(15), mtu: Int? = nil,
            parameters: ConnectionParameters? = nil, validation: GATTCache.Validation = .required,
            observesServiceChanges: Bool = true, requiresBond: Bool = false,
            subscriptions: [Subscription] = []
        ) {
            self.peer = peer
            self.reconnect = reconnect
            self.resetBackoffAfter = resetBackoffAfter
            self.readyTimeout = readyTimeout
            self.timeout = timeout
            self.mtu = mtu
            self.parameters = parameters
            self.validation = validation
            self.observesServiceChanges = observesServiceChanges
            self.requiresBond = requiresBond
            self.subscriptions = subscriptions
        }
    }

    /// A characteristic to subscribe to.
    public struct Subscription: Hashable, Sendable {
        /// The UUID of the characteristic.
        public var uuid: BluetoothUUID
        /// The UUID of the service; `nil` for any.
        public var service: BluetoothUUID?
        /// The index among several matches, from 0 in the order of handles; `nil` if there is one.
        public var index: Int?
        /// A Boolean value that indicates whether indications are preferred for a characteristic that has both kinds.
        public var prefersIndications: Bool

        /// Creates an entry.
        public init(
            _ uuid: BluetoothUUID, service: BluetoothUUID? = nil, index: Int? = nil, prefersIndications: Bool = false
        ) {
            self.uuid = uuid
            self.service = service
            self.index = index
            self.prefersIndications = prefersIndications
        }
    }

    /// A scan to run.
    public struct Scan: Hashable, Sendable {
        /// The settings that specify how to listen and how to treat repetitions, and the filter.
        public var settings: ScanSettings
        /// The time after which a silent device is reported as lost; `nil` for never.
        public var lostAfter: Duration?

        /// Creates an entry.
        public init(_ settings: ScanSettings, lostAfter: Duration? = nil) {
            self.settings = settings
            self.lostAfter = lostAfter
        }
    }
}

// MARK: - Former names

/// The former name of `RestorationState`.
@available(*, deprecated, renamed: "RestorationState")
public typealias DaemonState = RestorationState
/// The former name of `RestorationState.Peer`.
@available(*, deprecated, renamed: "RestorationState.Peer")
public typealias WantedPeer = RestorationState.Peer
/// The former name of `RestorationState.Subscription`.
@available(*, deprecated, renamed: "RestorationState.Subscription")
public typealias WantedSubscription = RestorationState.Subscription
/// The former name of `RestorationState.Scan`.
@available(*, deprecated, renamed: "RestorationState.Scan")
public typealias WantedScan = RestorationState.Scan

extension RestorationState.Peer {
    /// The former name of `resetBackoffAfter`.
    @available(*, deprecated, renamed: "resetBackoffAfter")
    public var provenAfter: Duration {
        get { resetBackoffAfter }
        set { resetBackoffAfter = newValue }
    }
    /// The initializer with the former name of `resetBackoffAfter`.
    @available(
        *, deprecated,
        renamed:
            "init(_:reconnect:resetBackoffAfter:readyTimeout:timeout:mtu:parameters:validation:observesServiceChanges:requiresBond:subscriptions:)"
    )
    public init(
        _ peer: PeerID, reconnect: ReconnectPolicy = .backoff(), provenAfter: Duration,
        readyTimeout: Duration? = .seconds(30), timeout: Duration? = .seconds(15), mtu: Int? = nil,
        parameters: ConnectionParameters? = nil, validation: GATTCache.Validation = .required,
        observesServiceChanges: Bool = true, subscriptions: [RestorationState.Subscription] = []
    ) {
        self.init(
            peer, reconnect: reconnect, resetBackoffAfter: provenAfter, readyTimeout: readyTimeout, timeout: timeout,
            mtu: mtu, parameters: parameters, validation: validation, observesServiceChanges: observesServiceChanges,
            subscriptions: subscriptions)
    }
}
