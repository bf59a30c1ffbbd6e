/// Counts of the events on one link's attribute channel. Every packet that is dropped is counted here.
public struct ATTStatistics: Hashable, Sendable {
    /// Requests sent.
    public var requestsSent = 0
    /// Commands sent.
    public var commandsSent = 0
    /// Responses that reached their caller, refusals included.
    public var responses = 0
    /// Responses that came after their caller had given up; discarded.
    public var lateResponses = 0
    /// Error Responses that named another handle than the request; still used.
    public var handleMismatches = 0
    /// Responses that belong to the request but are malformed.
    public var malformedResponses = 0
    /// Database Hashes, sent or stored, that were not those of the database; the database was not stored.
    public var wrongDatabaseHashes = 0
    /// Unexpected responses with a known cause: a second MTU response, a response to the request that had just ended,
    /// an error about a command; dropped.
    public var knownStrays = 0
    /// Responses that fit the request that had just ended, so that there was one too many; dropped, and counted as
    /// known strays too.
    ///
    /// ATT responses have no number. If one was sent twice, and its copy arrived while the next request of its kind
    /// was outstanding, it was taken for the response to that one: the results since the link was last idle are in
    /// doubt.
    public var duplicatedResponses = 0
    /// Responses that nothing explains; dropped.
    public var unexplainedResponses = 0
    /// Responses longer than the MTU.
    public var oversizedResponses = 0
    /// Operations that found the queue full.
    public var refusedByFullQueue = 0
    /// Operations whose own deadline passed.
    public var timedOut = 0
    /// Operations that were cancelled: by their caller, or because the services had changed.
    public var cancelled = 0

    /// Packets that the system refused permanently.
    public var unsendable = 0

    /// Values received in notifications, with or without a subscription.
    public var notifications = 0
    /// Values received in indications, with or without a subscription.
    public var indications = 0
    /// Confirmations sent.
    public var confirmations = 0
    /// Indications that did not wait for the confirmation of the one before.
    public var overlappingIndications = 0
    /// Notifications and indications longer than the MTU or 512 bytes of value; dropped.
    public var oversizedValues = 0
    /// Notifications and indications without a whole handle; dropped.
    public var truncatedValues = 0
    /// Notifications and indications for handle 0; dropped.
    public var valuesWithoutHandle = 0
    /// Multiple Handle Value Notifications whose lengths are inconsistent; dropped as a whole.
    public var malformedLists = 0
    /// Values of characteristics without a subscription; dropped. The values that a bonded peer sends before the first
    /// subscription of a link are not among them, unless no subscription has taken them.
    public var unsolicitedNotifications = 0
    /// Values that did not fit into a subscription's buffer; dropped by its `OverflowPolicy`, and reported in its
    /// stream.
    public var droppedValues = 0
    /// Packets that the kernel dropped because they were not read in time. It reports how many, not which.
    public var droppedByKernel = 0

    /// MTU requests of the peer, with a response.
    public var peerMTURequests = 0
    /// Other requests of the peer, refused with an Error Response.
    public var peerRequestsRefused = 0
    /// Commands of the peer; ignored.
    public var peerCommandsIgnored = 0
    /// Confirmations of indications that were never sent; ignored.
    public var strayConfirmations = 0
    /// Packets without any byte; ignored.
    public var emptyPackets = 0

    /// Creates statistics without any event.
    public init() {}

    /// The former name of `unsolicitedNotifications`.
    @available(*, deprecated, renamed: "unsolicitedNotifications")
    public var unwantedValues: Int {
        get { unsolicitedNotifications }
        set { unsolicitedNotifications = newValue }
    }

    /// The former name of `truncatedValues`.
    @available(*, deprecated, renamed: "truncatedValues")
    public var shortValues: Int {
        get { truncatedValues }
        set { truncatedValues = newValue }
    }

    /// The former name of `responses`.
    @available(*, deprecated, renamed: "responses")
    public var answers: Int {
        get { responses }
        set { responses = newValue }
    }

    /// The former name of `lateResponses`.
    @available(*, deprecated, renamed: "lateResponses")
    public var lateAnswers: Int {
        get { lateResponses }
        set { lateResponses = newValue }
    }

    /// The former name of `malformedResponses`.
    @available(*, deprecated, renamed: "malformedResponses")
    public var malformedAnswers: Int {
        get { malformedResponses }
        set { malformedResponses = newValue }
    }

    /// The former name of `unexplainedResponses`.
    @available(*, deprecated, renamed: "unexplainedResponses")
    public var unexplainedAnswers: Int {
        get { unexplainedResponses }
        set { unexplainedResponses = newValue }
    }

    /// The former name of `oversizedResponses`.
    @available(*, deprecated, renamed: "oversizedResponses")
    public var oversizedAnswers: Int {
        get { oversizedResponses }
        set { oversizedResponses = newValue }
    }
}

extension ATTStatistics {
    /// Calls `body` with each count of problems and its description.
    ///
    /// It leaves out what callers cause themselves (cancellation, too many operations) and, unless there is a flood,
    /// what a well-behaved peer does now and then, such as sending a value while its subscription ends.
    package func forEachProblem(_ body: (_ count: Int, _ what: StaticString) -> Void) {
        body(droppedByKernel, "packets dropped by the kernel")
        body(droppedValues, "values dropped by full buffers")
        body(malformedResponses, "malformed responses")
        body(unexplainedResponses, "unexpected responses")
        body(duplicatedResponses, "responses that came twice, which put earlier results in doubt")
        body(oversizedResponses, "responses longer than the MTU")
        body(overlappingIndications, "indications ahead of a confirmation")
        body(oversizedValues, "values that are too long")
        body(truncatedValues, "values that are too short")
        body(valuesWithoutHandle, "values for handle 0")
        body(wrongDatabaseHashes, "hashes of another database")
        body(malformedLists, "malformed lists of values")
        body(strayConfirmations, "unexpected confirmations")
        body(emptyPackets, "empty packets")
        body(unsendable, "packets that the system refused")
        body(flood(unsolicitedNotifications), "values without a subscription")
        body(flood(peerMTURequests), "requests for the MTU")
        body(flood(peerRequestsRefused), "requests that were refused")
        body(flood(peerCommandsIgnored), "commands that were ignored")
    }

    /// A Boolean value that indicates whether `forEachProblem` has a count that is not zero.
    package var hasProblems: Bool {
        var all = 0
        forEachProblem { count, _ in all |= count }
        return all != 0
    }

    /// Returns the count of something that is normal in small numbers, once there are more than a hundred.
    private func flood(_ count: Int) -> Int { count > 100 ? count : 0 }
}
