/// What happened on one link's attribute channel, counted: nothing is dropped without leaving a number here.
public struct ATTStatistics: Hashable, Sendable {
    /// Requests sent.
    public var requestsSent = 0
    /// Commands sent.
    public var commandsSent = 0
    /// Answers that reached their caller, refusals included.
    public var answers = 0
    /// Answers that came after their caller had given up; discarded.
    public var lateAnswers = 0
    /// Error Responses that named another handle than the request; used all the same.
    public var handleMismatches = 0
    /// Answers that belong to the request but are malformed.
    public var malformedAnswers = 0
    /// Database Hashes, sent or stored, that were not those of the database; what they came with was not kept.
    public var wrongDatabaseHashes = 0
    /// Answers out of turn with a known cause: a second MTU response, an answer to what had just ended, an error about
    /// a command; dropped.
    public var knownStrays = 0
    /// Responses that fit the request that had just ended, so that one too many has come; dropped, and counted as known strays too.
    ///
    /// ATT responses have no number. Where one was sent twice, and its copy arrived while the next request of its kind was under
    /// way, it was taken for the response to that one: what was read since the link was last idle is in doubt.
    public var duplicatedResponses = 0
    /// Answers that nothing explains; dropped.
    public var unexplainedAnswers = 0
    /// Answers longer than the MTU.
    public var oversizedAnswers = 0
    /// Operations that found the queue full.
    public var refusedByFullQueue = 0
    /// Operations whose own deadline passed.
    public var timedOut = 0
    /// Operations that were given up: by their caller, or because the services had changed.
    public var cancelled = 0

    /// Packets that the system refused for good.
    public var unsendable = 0

    /// Values received in notifications, wanted or not.
    public var notifications = 0
    /// Values received in indications, wanted or not.
    public var indications = 0
    /// Confirmations sent.
    public var confirmations = 0
    /// Indications that did not wait for the confirmation of the one before.
    public var overlappingIndications = 0
    /// Notifications and indications longer than the MTU or 512 bytes of value; dropped.
    public var oversizedValues = 0
    /// Notifications and indications without a whole handle; dropped.
    public var shortValues = 0
    /// Notifications and indications for handle 0; dropped.
    public var valuesWithoutHandle = 0
    /// Multiple Handle Value Notifications whose list does not add up; dropped as a whole.
    public var malformedLists = 0
    /// Values of characteristics that nobody has subscribed to; dropped.
    public var unwantedValues = 0
    /// Values that found a subscription's buffer full; dropped by its `OverflowPolicy`, and told in its stream.
    public var droppedValues = 0
    /// Packets that the kernel dropped because they were not read in time. It says how many, not which.
    public var droppedByKernel = 0

    /// MTU requests of the peer; answered.
    public var peerMTURequests = 0
    /// Other requests of the peer; answered with an error.
    public var peerRequestsRefused = 0
    /// Commands of the peer; ignored.
    public var peerCommandsIgnored = 0
    /// Confirmations of indications that were never sent; ignored.
    public var strayConfirmations = 0
    /// Packets without any byte; ignored.
    public var emptyPackets = 0

    /// Nothing happened yet.
    public init() {}
}

extension ATTStatistics {
    /// Calls `body` with each count of what should not happen, and with what it counts.
    ///
    /// Not in it are what callers do themselves (give up, ask for too much), and, before it is a flood, what a well-behaved peer does now
    /// and then, such as a value that is under way when its subscription ends.
    package func forEachTrouble(_ body: (_ count: Int, _ what: StaticString) -> Void) {
        body(droppedByKernel, "packets dropped by the kernel")
        body(droppedValues, "values dropped by full buffers")
        body(malformedAnswers, "malformed answers")
        body(unexplainedAnswers, "answers to nothing")
        body(duplicatedResponses, "responses that came twice, which put earlier results in doubt")
        body(oversizedAnswers, "answers longer than the MTU")
        body(overlappingIndications, "indications ahead of a confirmation")
        body(oversizedValues, "values that are too long")
        body(shortValues, "values that are too short")
        body(valuesWithoutHandle, "values for handle 0")
        body(wrongDatabaseHashes, "hashes of another database")
        body(malformedLists, "malformed lists of values")
        body(strayConfirmations, "confirmations of nothing")
        body(emptyPackets, "empty packets")
        body(unsendable, "packets that the system refused")
        body(flood(unwantedValues), "values that nobody wants")
        body(flood(peerMTURequests), "requests for the MTU")
        body(flood(peerRequestsRefused), "requests that were refused")
        body(flood(peerCommandsIgnored), "commands that were ignored")
    }

    /// The count of what may happen now and then, once it has happened more than a hundred times.
    private func flood(_ count: Int) -> Int { count > 100 ? count : 0 }
}
