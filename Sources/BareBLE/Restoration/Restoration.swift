public import BLECore

/// The result of `Central.restore(_:from:holding:handlers:)`: what was restored after a restart.
///
/// It holds references to its sessions: releasing it, and them, ends them for this run. They stay in the restoration
/// state.
public struct Restoration: Sendable {
    /// The peers of the restoration state, in the order in which they were added, with their outcomes.
    public internal(set) var peers: [Peer] = []
    /// The restored scan; `nil` if there was none.
    public internal(set) var scan: Scan?
    /// Links that the daemon before this one has handed over and that belong to no session.
    public internal(set) var links: [Peripheral] = []
    /// Links that were handed over and could not be resumed, by name. They have ended.
    public internal(set) var lostLinks: [String: BLEError] = [:]
    /// The adapter that the daemon before this one used; `nil` if it used none.
    public internal(set) var adapter: BluetoothAddress?
    /// The reason that the state was not used (`.unusableState`) and its file was moved aside; `nil` if it was used,
    /// or if there was none.
    public internal(set) var damage: BLEError?
    /// The path to which that file was moved.
    public internal(set) var movedTo: String?

    /// The sessions that resumed.
    public var sessions: [Session] { peers.compactMap(\.session) }
    /// The subscriptions that resumed and wait to be adopted, peer by peer.
    public var subscriptions: [Values] { peers.flatMap(\.subscriptions) }

    /// Returns the outcome for a peer; `nil` for one that was not in the state.
    public func peer(_ peer: PeerID) -> Peer? { peers.first { $0.peer == peer } }
}

extension Restoration {
    /// The outcome for a peer of the restoration state.
    public struct Peer: Sendable {
        /// A way in which a peer was restored.
        public enum Outcome: Sendable {
            /// Its session connects.
            case connecting(Session)
            /// Its session resumed on a link that was handed over; nothing was requested from the peer.
            case adopted(Session)
            /// There is no session. The peer stays in the state until `Central.session(with:)` or `Central.forget(_:)`.
            case failed(BLEError)
        }

        /// The peer's entry in the restoration state.
        public let persisted: RestorationState.Peer
        /// The way in which it was restored.
        public let outcome: Outcome
        /// Its subscriptions, which wait to be adopted.
        public let subscriptions: [Values]
        /// The reason that a handed-over link to this peer has ended; `nil` if it continues, or if there was none.
        public let lostLink: BLEError?

        /// The peer's address.
        public var peer: PeerID { persisted.peer }

        /// The former name of `persisted`.
        @available(*, deprecated, renamed: "persisted")
        public var wanted: RestorationState.Peer { persisted }

        /// The session; `nil` if the restoration failed.
        public var session: Session? {
            switch outcome {
            case .connecting(let session), .adopted(let session): session
            case .failed: nil
            }
        }

        /// The reason that there is no session; `nil` if there is one.
        public var failure: BLEError? {
            if case .failed(let error) = outcome { error } else { nil }
        }
    }

    /// A subscription of a session, restored from the daemon before this one.
    ///
    /// The session subscribes as soon as its link is ready. The values are kept, up to the limits given to
    /// `restore(_:from:holding:handlers:)`, until a task adopts them. Releasing it ends the subscription for this run;
    /// it stays in the restoration state.
    public struct Values: Sendable {
        /// The subscription's entry in the restoration state.
        public let persisted: RestorationState.Subscription
        /// The session that it belongs to.
        public let session: Session

        let values: SessionValueSequence<ReceivedValue>

        /// The UUID of the characteristic.
        public var characteristic: BluetoothUUID { persisted.uuid }

        /// The former name of `persisted`.
        @available(*, deprecated, renamed: "persisted")
        public var wanted: RestorationState.Subscription { persisted }

        /// Adopts the subscription: the values since the restart come first, in order, with losses counted. Call it
        /// once.
        public func adopt() -> SessionValueSequence<ReceivedValue> { values }

        /// Adopts the subscription, with each value decoded as a `Value`. Call it once.
        ///
        /// - Parameters:
        ///   - type: The type of the values.
        ///   - malformedValues: How to treat a value that does not fit the type.
        public func adopt<Value: GATTReadable & Sendable>(
            as type: Value.Type, malformedValues: SubscribeOptions.MalformedValuePolicy = .fail
        ) -> SessionValueSequence<Value> {
            SessionValueSequence(values.listener, decoder: ValueDecoder(malformedValues, session.valueLog))
        }

        /// Ends the subscription for good, and asks the peer to stop unless another subscription needs the values.
        public func stop() async {
            await values.unsubscribe()
        }
    }

    /// A scan, restored from the daemon before this one.
    ///
    /// It already scans, and its events are kept as in every scan: up to 4,096, the oldest are dropped and counted.
    /// Releasing it, or leaving the loop over it, ends the scan for this run; it stays in the restoration state.
    public struct Scan: Sendable {
        /// The scan's entry in the restoration state.
        public let persisted: RestorationState.Scan

        /// The former name of `persisted`.
        @available(*, deprecated, renamed: "persisted")
        public var wanted: RestorationState.Scan { persisted }

        /// The reason that it does not scan yet, such as `.adapterDown`; iterating the result of `adopt()` tries again.
        /// `nil` if it scans.
        public let failure: BLEError?

        let sequence: ScanSequence

        /// Adopts the scan: the events since the restart come first. It stays in the restoration state as
        /// `ScanSequence.lasting()` specifies.
        public func adopt() -> ScanSequence { sequence }

        /// Ends the scan for good, even if it was adopted.
        public func stop() async { await sequence.stop() }
    }
}

// MARK: - Former names

/// The former name of `Restoration.Peer`.
@available(*, deprecated, renamed: "Restoration.Peer")
public typealias RestoredPeer = Restoration.Peer
/// The former name of `Restoration.Values`.
@available(*, deprecated, renamed: "Restoration.Values")
public typealias RestoredValues = Restoration.Values
/// The former name of `Restoration.Scan`.
@available(*, deprecated, renamed: "Restoration.Scan")
public typealias RestoredScan = Restoration.Scan
