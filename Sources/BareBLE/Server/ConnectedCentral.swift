public import BLECore

/// A central that is connected, as it was when this value was made.
public struct ConnectedCentral: Identifiable, Hashable, Sendable {
    /// Identifies one link to a central. It is never used again, also if the central comes back.
    public struct ID: Hashable, Sendable {
        let number: UInt64
    }

    /// The link.
    public let id: ID
    /// The central's address, its identity if it is bonded; `nil` on a Unix socket.
    public let peer: PeerID?
    /// The central's name in messages: its address, or the name of the socket.
    public let name: String
    /// The ATT MTU of the link, 23 to 517 bytes.
    public let mtu: Int
    /// The security of the link.
    public let security: LinkSecurity
    /// The characteristics whose values the central has asked for.
    public let subscriptions: [PublishedCharacteristic]

    /// A Boolean value that indicates whether the link was made before this run of the program, which has taken it over
    /// (`LocalPeripheral.restore(from:)`).
    public internal(set) var isRestored = false

    /// The number of bytes that an update for this central may have: what one packet of its MTU has room for, and at
    /// most the 512 of a value.
    public var maximumUpdateLength: Int { min(mtu - 3, ATTLimits.valueLength) }

    /// A Boolean value that indicates whether there is a bond with the central.
    public var isBonded: Bool { security.bond != nil }
}

extension LocalPeripheral {
    /// A request of a central for which the application decides.
    public struct AuthorizationRequest: Sendable {
        /// The central.
        public let central: ConnectedCentral
        /// The characteristic; of a descriptor, the one that it belongs to.
        public let characteristic: PublishedCharacteristic
        /// A Boolean value that indicates whether the central wants to write.
        public let isWrite: Bool
        /// A Boolean value that indicates whether it wants to write the client configuration: to subscribe, or to end
        /// its subscription.
        public let isSubscription: Bool
    }

    /// A stored value as a central has written it.
    public struct WrittenValue: Hashable, Sendable {
        /// The central.
        public let central: ConnectedCentral
        /// The characteristic; of a descriptor, the one that it belongs to.
        public let characteristic: PublishedCharacteristic
        /// The UUID of the descriptor; `nil` if the value of the characteristic itself was written.
        public let descriptor: BluetoothUUID?
        /// The handle of the attribute that was written.
        public let handle: AttributeHandle
        /// The whole value of the attribute after the write, also if the central has written a part of it. Later writes
        /// do not change it.
        public let value: [UInt8]
    }

    /// The treatment of a central whose queue has no room for an update: its radio takes fewer values than are sent.
    public enum WhenFull: Hashable, Sendable {
        /// The call waits; values are sent in the order of the calls. For a central for which 1,024 calls wait, it does
        /// not: the value is not sent there, and the outcome is ``LocalPeripheral/UpdateOutcome/full``.
        case wait
        /// The call waits, and a later update of the same characteristic takes its place: the newest value counts.
        case replace
        /// The value is not sent to this central. The call does not wait for room.
        case fail
    }

    /// The outcome of an update for one central.
    public enum UpdateOutcome: Hashable, Sendable {
        /// The kernel has taken the value, in a notification.
        case notified
        /// The central has confirmed the value, which was sent in an indication.
        case confirmed
        /// The central has not subscribed, or its subscription ended before the value was sent, also because the
        /// service was withdrawn.
        case notSubscribed
        /// There was no room; with ``LocalPeripheral/WhenFull/wait``, as many updates as may wait for room did so.
        case full
        /// A later update took its place.
        case replaced
        /// The value was not sent, or not confirmed, in time.
        case timedOut
        /// The value is longer than the central can receive: the limit, in bytes, is
        /// `ConnectedCentral.maximumUpdateLength`, or less if the kernel has refused the packet.
        case tooLong(limit: Int)
        /// The link does not have the security that the characteristic demands of subscribers.
        case insecure
        /// The central does not know yet that the services have changed.
        case outOfSync
        /// The link ended first.
        case disconnected
        /// The task was cancelled first.
        case cancelled

        /// A Boolean value that indicates whether the central was sent the value.
        public var isSent: Bool { self == .notified || self == .confirmed }
    }

    /// The outcome of an update.
    public struct UpdateResult: Hashable, Sendable {
        /// The outcome for each central that had subscribed.
        public let outcomes: [ConnectedCentral.ID: UpdateOutcome]

        /// The number of centrals that were sent the value.
        public var sentCount: Int { outcomes.values.count { $0.isSent } }
    }

    /// An event of a local peripheral.
    public enum Event: Hashable, Sendable {
        /// A central has connected.
        case connected(ConnectedCentral)
        /// The link to a central has ended. Its subscriptions have ended before.
        case disconnected(ConnectedCentral, DisconnectReason)
        /// A central has subscribed; or, with `isRestored`, the subscription of a bonded central is in force again.
        case subscribed(ConnectedCentral, PublishedCharacteristic, isRestored: Bool)
        /// A central has ended its subscription, or the link has ended.
        case unsubscribed(ConnectedCentral, PublishedCharacteristic)
        /// A central has written the stored value of a characteristic or descriptor; or, where
        /// `LocalPeripheral.Settings.isNameWritable` permits that, the Device Name (0x2A00).
        case written(WrittenValue)
        /// A write without response was dropped, because the application did not handle it, or earlier ones, in time.
        case writeDropped(ConnectedCentral, PublishedCharacteristic)
        /// A central has paired; the bond is on the disk, and encrypts this link and each later one.
        /// Its subscriptions go on.
        ///
        /// It may come after `.disconnected`, if the link ended first.
        case paired(ConnectedCentral, Bond)
        /// A pairing that a central has begun was refused, or has failed; the error has the reason.
        ///
        /// It may come after `.disconnected`, if the link ended first. A central that is refused again for the same
        /// reason on the same link is not reported again; one that is refused after three failures, or because another
        /// one pairs, is a `SecurityEvent.pairingRefused` instead.
        case pairingFailed(ConnectedCentral, BLEError)
        /// This number of events was dropped because they were not consumed.
        case dropped(Int)
    }
}

/// The events of a local peripheral, from the moment when `LocalPeripheral.events` was read.
///
/// Events that come before the iteration wait for the first iterator; a further one of the same sequence begins at its
/// creation. At most 256 wait; beyond that the oldest are dropped, and `.dropped` counts them. It ends with
/// `LocalPeripheral.stop()`. `next()` throws `BLEError` with `.busy` while another task waits for the next event of
/// this iterator.
public typealias LocalPeripheralEventSequence = BLESequence<LocalPeripheral.Event>

/// Elements that report that there may be room for an update again: one at once, and one each time that a central's
/// queue has room after it was full.
public typealias ReadyToUpdateSequence = BLESequence<Void>
