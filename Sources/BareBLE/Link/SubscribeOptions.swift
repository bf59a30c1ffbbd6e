/// How the peer sends the values of a subscription.
public enum SubscriptionKind: Hashable, Sendable {
    /// Without waiting for a confirmation: fast, several in one connection interval.
    case notifications
    /// One at a time, each confirmed by this host as soon as it was read.
    case indications
}

/// Whether others may have the values of a characteristic too.
public enum SubscriptionSharing: Hashable, Sendable {
    /// Everybody who subscribes gets every value.
    case shared
    /// Nobody else may: it fails with `.busy` where somebody has subscribed, and so do later ones that do not replace it.
    case exclusive
    /// In the place of those who have: their sequences end with `.replaced`. Later ones may share it.
    case replacing
}

/// What a subscription with a type does with a value whose bytes do not fit that.
public enum MalformedValuePolicy: Hashable, Sendable {
    /// It is thrown as `BLEError.Code.malformedValue`. A `for` loop ends there.
    case fail
    /// It is left out and counted; the log has a warning, once a minute at most.
    case skip
}

/// How a subscription is made.
public struct SubscribeOptions: Hashable, Sendable {
    /// What is preferred where the characteristic has both.
    public var preferred: SubscriptionKind
    /// How many values may wait for the consumer.
    public var capacity: Int
    /// How many bytes of values may wait for the consumer.
    public var byteLimit: Int
    /// What happens to a value that finds no room.
    public var policy: OverflowPolicy
    /// How long telling the peer may take, the wait for its turn included; `nil` for 60 s.
    public var timeout: Duration?
    /// Whether others may have the values too. Requests that listen for their answer may in any case.
    public var sharing: SubscriptionSharing
    /// What happens to a value that does not fit the type of a key. Values without a type are bytes, which always fit.
    public var malformedValues: MalformedValuePolicy

    /// The defaults, or other values for some of them.
    public init(
        preferred: SubscriptionKind = .notifications, capacity: Int = 256, byteLimit: Int = 64 * 1024,
        policy: OverflowPolicy = .dropOldest, timeout: Duration? = nil, sharing: SubscriptionSharing = .shared,
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
