extension SubscribeOptions {
    /// The kind of PDU in which the peer sends the values of a subscription.
    public enum Kind: Hashable, Sendable {
        /// Not confirmed: fast, several in one connection interval.
        case notifications
        /// Confirmed: one at a time, each acknowledged by this host as soon as it was read.
        case indications
    }

    /// The access of other subscriptions to the same characteristic.
    public enum Sharing: Hashable, Sendable {
        /// Every subscription gets every value.
        case shared
        /// No other subscription is allowed: this one fails with `.busy` if there is another, and so do later ones that
        /// do not replace it.
        case exclusive
        /// Replaces the existing subscriptions: their sequences end with `.replaced`. Later ones may share it.
        case replacing
    }

    /// The treatment of a value whose bytes do not fit the type of the subscription.
    public enum MalformedValuePolicy: Hashable, Sendable {
        /// It is thrown as `BLEError.Code.malformedValue`. A `for` loop ends there.
        case fail
        /// It is left out and counted; the log has a warning, once a minute at most.
        case skip
    }
}

/// Options of a subscription.
public struct SubscribeOptions: Hashable, Sendable {
    /// The preferred kind for a characteristic that has both.
    public var preferred: Kind
    /// The number of values that may wait for the consumer.
    public var capacity: Int
    /// The number of bytes of values that may wait for the consumer.
    public var byteLimit: Int
    /// The treatment of a value that does not fit into the buffer.
    public var policy: OverflowPolicy
    /// The longest time for the write to the peer, including the wait for its turn; `nil` for 60 s.
    public var timeout: Duration?
    /// The access of other subscriptions to the values. Requests that listen for their response always share them.
    public var sharing: Sharing
    /// The treatment of a value that does not fit the type of a key. Values without a type are bytes, which always
    /// fit.
    public var malformedValues: MalformedValuePolicy

    /// Creates options, with default values for those not given.
    public init(
        preferred: Kind = .notifications, capacity: Int = 256, byteLimit: Int = 64 * 1024,
        policy: OverflowPolicy = .dropOldest, timeout: Duration? = nil, sharing: Sharing = .shared,
        malformedValues: MalformedValuePolicy = .fail
    ) {
        self.preferred = preferred
        self.capacity = capacity
        self.byteLimit = byteLimit
        self.policy = policy
        self.timeout = timeout
        self.sharing = sharing
        self.malformedValues = malformedValues
    }
}

// MARK: - Former names

/// The former name of `SubscribeOptions.Kind`.
@available(*, deprecated, renamed: "SubscribeOptions.Kind")
public typealias SubscriptionKind = SubscribeOptions.Kind
/// The former name of `SubscribeOptions.Sharing`.
@available(*, deprecated, renamed: "SubscribeOptions.Sharing")
public typealias SubscriptionSharing = SubscribeOptions.Sharing
/// The former name of `SubscribeOptions.MalformedValuePolicy`.
@available(*, deprecated, renamed: "SubscribeOptions.MalformedValuePolicy")
public typealias MalformedValuePolicy = SubscribeOptions.MalformedValuePolicy
