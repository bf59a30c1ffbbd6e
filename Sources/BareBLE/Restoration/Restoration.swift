public import BLECore

/// What a restart has brought back: the result of `Central.restore(_:from:holding:handlers:)`.
///
/// It holds its sessions: who lets go of it, and of them, ends them for this run. They stay wanted.
public struct Restoration: Sendable {
    /// The peers that were wanted, in the order in which they were first, and what became of each.
    public internal(set) var peers: [RestoredPeer] = []
    /// The scan that was wanted; `nil` where none was.
    public internal(set) var scan: RestoredScan?
    /// Links that the daemon before this one has handed over and that no session wants.
    public internal(set) var links: [Peripheral] = []
    /// Links that were handed over and could not be gone on with, by name. They are over.
    public internal(set) var lostLinks: [String: BLEError] = [:]
    /// The adapter that the daemon before this one used; `nil` where it has used none.
    public internal(set) var adapter: BluetoothAddress?
    /// Why the state was not used (`.unusableState`), and the file with it was moved aside; `nil` where all is well, and where there was none.
    public internal(set) var damage: BLEError?
    /// Where that file is now.
    public internal(set) var movedTo: String?

    /// The sessions that go on.
    public var sessions: [Session] { peers.compactMap(\.session) }
    /// The subscriptions that go on and wait to be taken on, peer by peer.
    public var subscriptions: [RestoredValues] { peers.flatMap(\.subscriptions) }

    /// What became of a peer; `nil` for one that was not wanted.
    public func peer(_ peer: PeerID) -> RestoredPeer? { peers.first { $0.peer == peer } }
}

/// What became of a peer that was wanted before the restart.
public struct RestoredPeer: Sendable {
    /// How a peer goes on.
    public enum Outcome: Sendable {
        /// Its session connects.
        case connecting(Session)
        /// Its session goes on with a link that was handed over: nothing was asked of the peer.
        case adopted(Session)
        /// There is no session. The peer stays wanted until `Central.session(with:)` or `Central.forget(_:)`.
        case failed(BLEError)
    }

    /// What was wanted.
    public let wanted: WantedPeer
    /// How it goes on.
    public let outcome: Outcome
    /// Its subscriptions, which wait to be taken on.
    public let subscriptions: [RestoredValues]
    /// Why a link to this peer that was handed over is over; `nil` where it goes on, and where there was none.
    public let lostLink: BLEError?

    /// Whom it is about.
    public var peer: PeerID { wanted.peer }

    /// The session, if there is one.
    public var session: Session? {
        switch outcome {
        case .connecting(let session), .adopted(let session): session
        case .failed: nil
        }
    }

    /// Why there is no session; `nil` where there is one.
    public var failure: BLEError? {
        if case .failed(let error) = outcome { error } else { nil }
    }
}

/// A subscription of a session that goes on from the daemon before this one.
///
/// The session subscribes as soon as its link is ready. What comes is kept, up to what `restore(_:from:holding:handlers:)` was told, until
/// somebody takes it on. Letting go of it ends the subscription for this run; it stays wanted.
public struct RestoredValues: Sendable {
    /// What is subscribed to.
    public let wanted: WantedSubscription
    /// The session that it belongs to.
    public let session: Session

    let values: SessionValues<ReceivedValue>

    /// What kind of value it is.
    public var characteristic: BluetoothUUID { wanted.uuid }

    /// Takes the subscription on: the values that came since the restart first, in order, losses counted. To be called once.
    public func adopt() -> SessionValues<ReceivedValue> { values }

    /// Takes the subscription on, with each value made a `Value`. To be called once.
    ///
    /// - Parameters:
    ///   - type: What each value is made.
    ///   - malformedValues: What happens to a value that does not fit the type.
    public func adopt<Value: GATTReadable & Sendable>(
        as type: Value.Type, malformedValues: MalformedValuePolicy = .fail
    ) -> SessionValues<Value> {
        SessionValues(lease: values.lease, decoder: ValueDecoder(malformedValues, session.valueLog))
    }

    /// Ends the subscription for good, and tells the peer to stop if nobody else listens.
    public func stop() async {
        await values.unsubscribe()
    }
}

/// A scan that goes on from the daemon before this one.
///
/// It scans already, and what it hears is kept as in every scan: 4,096 events, the oldest go, counted. Letting go of it, and leaving the loop
/// over it, end the scan for this run; it stays wanted.
public struct RestoredScan: Sendable {
    /// What is scanned for.
    public let wanted: WantedScan
    /// Why it does not scan yet, such as `.adapterDown`; iterating what `adopt()` gives tries again. `nil` where it does.
    public let failure: BLEError?

    let sequence: ScanSequence

    /// Takes the scan on: what was heard since the restart first. It stays wanted as `ScanSequence.lasting()` says.
    public func adopt() -> ScanSequence { sequence }

    /// Ends the scan for good, also one that was adopted.
    public func stop() async { await sequence.stop() }
}
