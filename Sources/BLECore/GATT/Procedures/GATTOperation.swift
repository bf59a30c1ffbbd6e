/// Identifies one operation of a link, for as long as the link lives.
package struct OperationID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// The result of an operation.
package enum GATTOutcome: Hashable, Sendable {
    /// The MTU of the link from now on.
    case mtu(UInt16)
    /// The discovered database.
    case database(GATTDatabase)
    /// One value.
    case value([UInt8])
    /// Several attributes with their values, in the order of handles.
    case attributes([AttributeValue])
    /// Several values, in the order in which they were requested.
    case values([[UInt8]])
    /// Services, in the order of handles.
    case services([GATTService])
    /// References to services, in the order of handles.
    case includes([GATTService.Include])
    /// Characteristics, in the order of handles.
    case characteristics([GATTCharacteristic])
    /// The descriptors of one characteristic, in the order of handles.
    case descriptors([GATTDescriptor])
    /// Success without a value.
    case done
}

/// The reason that an operation ended without a result.
package enum OperationFailure: Error, Hashable, Sendable {
    /// The peer refused, or its responses are invalid.
    case gatt(GATTFailure)
    /// The operation's own deadline passed. The link is still usable.
    case timedOut
    /// The caller cancelled. The link is still usable.
    case cancelled
    /// The limit of unfinished operations was reached; this one was not started.
    case queueFull(limit: Int)
    /// The peer changed its services meanwhile, so that handles may belong to other attributes. The link is still
    /// usable.
    case servicesChanged
    /// The system refused the packet permanently; the number is the owner's own, such as an errno. The link is still
    /// usable.
    case unsendable(Int32)
    /// The link ended first.
    case linkLost
}

/// One running operation, whatever procedure it follows.
///
/// A class only so that procedures of different types can share one dictionary without existential boxes, which
/// Embedded Swift does not have. This base class is a command: it ends as soon as its packet was sent.
class RunningOperation {
    let usesPreparedQueue: Bool
    let deadline: BootInstant?
    /// The request of this operation that is queued or outstanding.
    private(set) var request: RequestID?
    /// The MTU when that request was created.
    fileprivate var requestMTU: UInt16 = MTUExchange.minimum
    /// The number of contradictions on the link when the last request ended.
    fileprivate var contradictions = 0

    init(usesPreparedQueue: Bool = false, deadline: BootInstant?) {
        self.usesPreparedQueue = usesPreparedQueue
        self.deadline = deadline
    }

    /// Its next request goes into the queue, while the link has this MTU.
    final func queued(_ request: RequestID, mtu: UInt16) { (self.request, requestMTU) = (request, mtu) }

    /// The end of that request; with the number of contradictions on the link so far.
    final func requestEnded(contradictions: Int) { (request, self.contradictions) = (nil, contradictions) }

    func begin() -> GATTStep<GATTOutcome> { .finished(.done) }
    func received(_ reply: ATTReply, mtu: UInt16) -> GATTStep<GATTOutcome> { .finished(.done) }
    func abandoned() -> [UInt8]? { nil }
    var executesPreparedQueue: Bool { false }
}

final class RunningProcedure<Procedure: GATTProcedure>: RunningOperation {
    private var procedure: Procedure
    private let outcome: (Procedure.Output) -> GATTOutcome

    init(_ procedure: Procedure, deadline: BootInstant?, outcome: @escaping (Procedure.Output) -> GATTOutcome) {
        self.procedure = procedure
        self.outcome = outcome
        super.init(usesPreparedQueue: procedure.usesPreparedQueue, deadline: deadline)
    }

    override func begin() -> GATTStep<GATTOutcome> { procedure.begin().map(outcome) }
    override func received(_ reply: ATTReply, mtu: UInt16) -> GATTStep<GATTOutcome> {
        procedure.willReceive(mtu: min(mtu, requestMTU))
        procedure.willReceive(contradictions: contradictions)
        return procedure.received(reply).map(outcome)
    }

    override func abandoned() -> [UInt8]? { procedure.abandoned() }
    override var executesPreparedQueue: Bool { procedure.executesPreparedQueue }
}

/// Reads a value, as `RunningProcedure` would. As the most frequent operation it is specialized for its procedure.
final class RunningRead: RunningOperation {
    private var procedure: ReadLong

    init(_ procedure: ReadLong, deadline: BootInstant?) {
        self.procedure = procedure
        super.init(deadline: deadline)
    }

    override func begin() -> GATTStep<GATTOutcome> { procedure.begin().map { .value($0) } }
    override func received(_ reply: ATTReply, mtu: UInt16) -> GATTStep<GATTOutcome> {
        procedure.willReceive(mtu: min(mtu, requestMTU))
        procedure.willReceive(contradictions: contradictions)
        return procedure.received(reply).map { .value($0) }
    }
}
