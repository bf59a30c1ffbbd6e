// The server side of one link: the Attribute Protocol's requests, commands and confirmations of one client, and the
// values that are sent to it.
//
// Responsibilities: send exactly one response to every request; ask the application, through the owner, for what the
// database does not keep; keep the state of the client (MTU, security, prepared writes, configurations, features,
// awareness of changes); send values, one unconfirmed indication at a time.
//
// Invariants:
// - At most one request is open. A second one before the response has been sent closes the link.
// - Security is checked when a packet is received, again after the application has returned, and again before a packet
//   with a value is offered for sending. No order of events sends or accepts a value below the level of its attribute.
// - A value that waits to be written goes with its attribute. None is sent at a handle that has changed meanwhile.
// - Each request has one response, also if the services change before it is written (Core Vol 3 Part F, 3.3.1). If the
//   change affects the attribute of the request, that is an Error Response, even if the application has returned the
//   value by now: Database Out Of Sync if the client has robust caching and does not know of the change, else Invalid
//   Handle if the attribute is gone, else Unlikely Error. The client loses nothing: once it has received Service
//   Changed, it considers the transaction invalid (Core Vol 3 Part G, 2.5.2).
// - A write that the application has made by then is confirmed by its response. No error reports that a value was
//   written, and after an error a client may write it again. No other write is made at a handle that has changed
//   meanwhile. If one of several prepared writes cannot be made for that reason, the response is an error, even if the
//   application has made others: after an error of Execute Write, the state of the values is not defined (Core Vol 3
//   Part F, 3.4.6.3).
// - Each question to the application has a token of its own. Late results, and those of another kind, are dropped.
// - Every notification and every indication that is not cancelled, every subscription and every link ends exactly once.
// - Memory is bounded by `Limits`, whatever the client sends.
// - The client's stored record is in force only once the client has encrypted the link with the key of its bond.
//
// The owner passes in the database, which all links share, performs the actions in order, and reports how each `.send`
// ended. A request that asks the application is evaluated again from its beginning with each result. So there is one
// description of each request, and nothing that was checked before a pause is trusted after it.
//
// The machine can be copied, unlike others: the virtual devices of the test kit, which contain it, are values.

/// The server side of one link.
///
/// Spec: Core Vol 3 Part F, 3; Core Vol 3 Part G, 2.5 and 4.
package struct GATTServer: Sendable {
    private let limits: Limits
    private var isClosed = false
    private var security = ClientSecurity.none

    /// The largest packet that may be sent.
    package private(set) var mtu: UInt16 = ATTQueue.defaultMTU
    private var isMTUExchanged = false
    private var nextMTU: UInt16?

    private var slot = RequestSlot.free
    private var commands: [Operation] = []
    private var commandBytes = 0
    private var lastToken: UInt64 = 0
    private var prepared: PreparedWrites
    private var snapshot: Snapshot?

    /// By the handle of the descriptor; none is 0.
    private var configurations: [AttributeHandle: Configured] = [:]
    /// The configurations that the client has written on this link.
    private var written: Set<AttributeHandle> = []
    private var features: UInt8 = 0
    private var awareness = Awareness.aware
    private var pendingChange: ClosedRange<AttributeHandle>?
    private var signCounter: UInt32 = 0
    /// The record of a bonded client that has not encrypted the link.
    private var dormant: ClientRecord?
    /// Whether the client has encrypted the link with the key of its bond, so that its state outlives the link.
    private var isProven = false
    private var storing = Storing.idle

    private var outbox: [Packet] = []
    private var writing = Writing.ready
    /// The handles of the services that have changed since the packet was offered.
    private var changedSinceOffer: ClosedRange<AttributeHandle>?
    /// Whether there was no room for a notification, or an indication, since room was reported.
    private var hasRefusedNotification = false
    private var hasRefusedIndication = false
    private var indication: Indication?
    private var waiting: [Indication] = []

    /// The counters of this link.
    package private(set) var statistics = Statistics()

    package init(limits: Limits = Limits()) {
        self.limits = limits
        prepared = PreparedWrites(entryLimit: limits.preparedWrites, byteLimit: limits.preparedBytes)
    }
}

// MARK: - Types

extension GATTServer {
    /// The limits for one client.
    package struct Limits: Hashable, Sendable {
        /// The largest packet that the server receives, which it offers to the client; 23 to 517.
        package var mtu: UInt16
        /// Prepared writes, and the sum of their bytes.
        package var preparedWrites = 64
        package var preparedBytes = 4_096
        /// Write commands that the application has not finished, and the sum of their bytes.
        package var commands = 64
        package var commandBytes = 65_536
        /// Indications that wait for the confirmation of an earlier one.
        package var waitingIndications = 16
        /// The time for the application to return all results that a request needs. The client waits for 30 s, and then
        /// gives up the link.
        package var handlerTime = Duration.seconds(20)
        /// The time for the client to confirm an indication (Core Vol 3 Part F, 3.3.3).
        package var confirmationTime = Duration.seconds(30)
        /// The time for which the parts of a long value come from what the application returned for the first one.
        package var snapshotTime = Duration.seconds(30)
        /// The minimum time between two records of the client to store.
        package var storePause = Duration.seconds(5)

        package init(mtu: UInt16 = ATTQueue.largestMTU) {
            self.mtu = min(max(mtu, ATTQueue.defaultMTU), ATTQueue.largestMTU)
        }
    }

    /// Identifies one question to the application.
    package struct Token: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// Identifies an update to its caller, who chooses the number.
    package struct UpdateID: Hashable, Sendable {
        package let rawValue: UInt64

        package init(_ rawValue: UInt64) {
            self.rawValue = rawValue
        }
    }

    /// A value to write, from `offset` of the attribute's value. The offset is 0 unless the application provides the
    /// value and the client continues it.
    package struct WrittenValue: Hashable, Sendable {
        package let handle: AttributeHandle
        package let offset: Int
        package let value: [UInt8]
        /// A Boolean value that indicates whether the client waits for no response.
        package var isCommand = false
    }

    /// A question to the application.
    package enum Question: Hashable, Sendable {
        /// The whole value of an attribute; the client wants it from `offset`.
        case read(AttributeHandle, offset: Int)
        /// Asks whether to write these values: all or none.
        case write([WrittenValue])
        /// Asks whether the client may read or write an attribute.
        case authorize(AttributeHandle, isWrite: Bool)
        /// Asks whether the signature of a packet is that of the client's key.
        case verify(ATTSignedWriteCommand)

        /// The handle of the attribute that it is about, or of the first of several.
        package var handle: AttributeHandle {
            switch self {
            case .read(let handle, _), .authorize(let handle, _): handle
            case .write(let values): values.first?.handle ?? 0
            case .verify(let command): command.handle
            }
        }
    }

    /// The application's result.
    package enum HandlerResult: Hashable, Sendable {
        /// The value to read.
        case value([UInt8])
        /// The values were written, the access is authorized, or the signature is right.
        case accepted
        /// The access is rejected. A handle other than 0 names the attribute at fault among those of a `write`.
        case rejected(ATTErrorCode, handle: AttributeHandle = 0)
    }

    /// The reason that the link is closed.
    package enum CloseReason: Hashable, Sendable {
        /// The client sent a request without waiting for the response.
        case overlappingRequests
        /// The client did not confirm an indication for 30 s.
        case confirmationTimeout
        /// The client sent a packet longer than the server can receive.
        case oversizedPacket
        /// The system dropped packets of the client, and a request may be among them.
        case droppedPackets
        /// The system refused to send a response or an indication.
        case unsendable

        /// A sentence for users.
        package var sentence: String {
            switch self {
            case .overlappingRequests: "The client sent requests without waiting for the responses."
            case .confirmationTimeout: "The client did not confirm an indication in time."
            case .oversizedPacket: "The client sent a packet longer than the MTU."
            case .droppedPackets: "The client sent packets faster than they could be read."
            case .unsendable: "A response could not be sent."
            }
        }
    }

    /// The reason that a notification was not sent, or an indication not confirmed.
    package enum UpdateFailure: Error, Hashable, Sendable {
        /// The client did not confirm it for 30 s; the link is closed.
        case timedOut
        /// The client ended its subscription before the value was sent.
        case notSubscribed
        /// The link no longer had the security of the attribute when the value's turn came.
        case insecure
        /// The services changed before the value was sent, and the client does not know yet.
        case outOfSync
        /// The attribute was withdrawn.
        case withdrawn
        /// The system never sends the packet: it is longer than the link takes.
        case unsendable
        /// The link ended.
        case closed
    }

    /// The immediate outcome of an update.
    package enum UpdateOutcome: Hashable, Sendable {
        /// It goes out as a notification, now or once the system has room. `.notified` follows, exactly once, unless it
        /// is cancelled.
        case notified
        /// It goes out as an indication, now or later. `.finish` follows, exactly once, unless it is cancelled.
        case indicated
        /// The client has not subscribed.
        case notSubscribed
        /// There is no room; `.readyToUpdate` follows.
        case full
        /// It is longer than the client can receive.
        case tooLong(limit: Int)
        /// The link lacks the security of the attribute.
        case insecure
        /// The client does not know yet that the services have changed.
        case outOfSync
        /// The link has ended.
        case closed
    }

    /// An action for the owner of the link, in this order.
    package enum Action: Hashable, Sendable {
        /// Asks the application, and passes the result to `finished`; a result after `until` is dropped.
        case ask(Token, Question, until: BootInstant)
        /// Stores the record of the client before the next action is performed.
        case store(ClientRecord)
        /// The client has changed its configuration of the value at this handle, or its stored one is in force again;
        /// empty when it has unsubscribed, and when the link ends.
        case configured(AttributeHandle, GATTDescriptor.ClientConfiguration, isRestored: Bool)
        /// The client has written an attribute that the database keeps, which has this value now.
        case wrote(AttributeHandle, [UInt8])
        /// A Write Command was dropped, because too many are unfinished, or the application did not return in time.
        case dropped(AttributeHandle)
        /// A notification was written, or was dropped.
        case notified(UpdateID, failure: UpdateFailure?)
        /// An indication was confirmed, or has failed.
        case finish(UpdateID, failure: UpdateFailure?)
        /// There is room for updates again.
        case readyToUpdate
        /// Writes one packet, then calls `sent`, `blocked` or `refused`. It is the last action, unless the link closes.
        case send([UInt8])
        /// Closes the link. It is the last action.
        case close(CloseReason)
    }

    /// Counters of one link.
    package struct Statistics: Hashable, Sendable {
        /// The requests received.
        package var requests = 0
        /// The Error Responses sent.
        package var errors = 0
        /// Confirmations without an indication.
        package var strayConfirmations = 0
        /// Packets that no client sends to a server.
        package var strayPackets = 0
        /// Commands that were not executed.
        package var droppedCommands = 0
        /// Questions that the application returned no result for in time.
        package var handlerTimeouts = 0
        /// Results that came late, or were of another kind.
        package var lateResults = 0

        /// Calls `body` with each count of problems and its description.
        package func forEachProblem(_ body: (_ count: Int, _ what: StaticString) -> Void) {
            body(strayConfirmations, "unexpected confirmations")
            body(strayPackets, "packets that no client sends")
            body(droppedCommands, "commands that were dropped")
            body(handlerTimeouts, "handlers that took too long")
            body(lateResults, "results that came late")
        }
    }

    private enum RequestSlot {
        case free
        case open(Operation)
        /// The response has not been sent.
        case responding
    }

    private enum Writing {
        case ready
        case offered
        case blocked
    }

    /// The client's knowledge of the services. The numbers are part of the form in which a link is handed over.
    package enum Awareness: UInt8, Hashable, Sendable {
        case aware
        case unaware
        /// The client was sent Database Out Of Sync; its next request makes it aware.
        case notified
        /// The client has read the hash; its next request makes it aware.
        case hashRead
    }

    private enum Storing {
        case idle
        /// A record was stored at that time.
        case stored(BootInstant)
        /// There is a newer one to store at that time.
        case due(BootInstant)
    }

    /// A request or command, with what the application has returned for it.
    private struct Operation {
        let packet: ATTPacket
        /// When the application must have returned the results of all questions:
        /// the client does not wait longer for several.
        let deadline: BootInstant
        var known = Known()
        var token = Token(number: 0)
        var question: Question?
        /// Whether a change of the services has affected the attribute that the question is about.
        private var isQuestionOvertaken = false

        init(packet: ATTPacket, deadline: BootInstant) {
            self.packet = packet
            self.deadline = deadline
        }

        /// Takes the application's result. Returns `false` if it is of another kind than the question.
        mutating func take(_ result: HandlerResult) -> Bool {
            switch (question, result) {
            case (.read(let handle, _)?, .value(let value)):
                known.values[handle] =
                    value.count <= ATTLimits.valueLength
                    ? .success(value) : .failure(Refusal(code: .unlikelyError, handle: handle))
            case (.read(let handle, _)?, .rejected(let code, _)):
                known.values[handle] = .failure(Refusal(code: code.valid, handle: handle))
            case (.write?, .accepted): known.verdict = .accepted
            case (.write?, .rejected(let code, let handle)):
                known.verdict = .rejected(Refusal(code: code.valid, handle: handle))
            case (.authorize(let handle, _)?, .accepted): known.authorizations[handle] = true
            case (.authorize(let handle, _)?, .rejected): known.authorizations[handle] = false
            case (.verify?, .accepted): known.isVerified = true
            case (.verify?, .rejected): known.isVerified = false
            default: return false
            }
            if isQuestionOvertaken {
                // The result is that of an attribute which is not the one at the handle.
                known.values[askedHandle] = nil
                known.authorizations[askedHandle] = nil
            }
            question = nil
            isQuestionOvertaken = false
            return true
        }

        /// Takes over a change of the services in `handles`.
        mutating func databaseChanged(_ handles: ClosedRange<AttributeHandle>) {
            known.overtaken.formUnion(packet.usedHandles.filter { handles.contains($0) })
            // A request that reads a type uses no handle: it lists what has the type now.
            known.values = known.values.filter { !handles.contains($0.key) }
            known.authorizations = known.authorizations.filter { !handles.contains($0.key) }
            if handles.contains(askedHandle) { isQuestionOvertaken = true }
        }

        /// The handle that the question is about.
        var askedHandle: AttributeHandle { question?.handle ?? 0 }
    }

    private struct Known {
        var values: [AttributeHandle: Result<[UInt8], Refusal>] = [:]
        var authorizations: [AttributeHandle: Bool] = [:]
        var verdict: Verdict?
        var isVerified: Bool?
        /// The attributes that the application writes itself, if it accepts.
        var handled: Set<AttributeHandle> = []
        /// The attributes of the request that a change of the services has affected since.
        var overtaken: Set<AttributeHandle> = []

        /// Whether the application has accepted the write.
        var isAccepted: Bool {
            if case .accepted? = verdict { true } else { false }
        }

        /// Whether the application has written the attribute that was at a handle before the services changed.
        func isDone(at handle: AttributeHandle) -> Bool {
            isAccepted && overtaken.contains(handle) && handled.contains(handle)
        }
    }

    /// The application's decision about a write.
    private enum Verdict {
        case accepted
        case rejected(Refusal)
    }

    /// The reason for rejecting a request, and the handle.
    private struct Refusal: Error {
        var code: ATTErrorCode
        var handle: AttributeHandle
    }

    private enum Stop: Error {
        case refused(Refusal)
        case asks(Question)

        static func refused(_ code: ATTErrorCode, _ handle: AttributeHandle) -> Stop {
            .refused(Refusal(code: code, handle: handle))
        }
    }

    /// A response, and the attributes whose values are in it.
    private struct Response {
        var bytes: [UInt8]
        var values: [AttributeHandle] = []
    }

    private struct Packet {
        enum Kind {
            case response(ATTOpcode)
            case notification
            case indication
        }

        let kind: Kind
        let bytes: [UInt8]
        /// The attributes whose values are in it.
        let values: [AttributeHandle]
        /// The updates that end with it, if it is a notification.
        let updates: [Update]

        init(kind: Kind, bytes: [UInt8], values: [AttributeHandle]) {
            self.kind = kind
            self.bytes = bytes
            self.values = values
            updates = []
        }

        /// Creates a notification; `nil` without a value.
        init?(_ updates: [Update]) {
            guard let first = updates.first?.value else { return nil }
            kind = .notification
            bytes =
                updates.count > 1
                ? ATTMultipleHandleValueNotification(entries: updates.map { $0.value }).bytes
                : ATTHandleValueNotification(handle: first.handle, value: first.value).bytes
            values = updates.map { $0.value.handle }
            self.updates = updates
        }

        /// The packet without the value of an update; `nil` if there is no other value.
        func without(_ id: UpdateID) -> Packet? {
            has(id) ? Packet(updates.filter { $0.id != id }) : self
        }

        /// Whether the packet has the value of an update.
        func has(_ id: UpdateID) -> Bool { updates.contains { $0.id == id } }
    }

    /// A value that is sent in a notification.
    private struct Update {
        let id: UpdateID
        let value: ATTAttributeValue
    }

    private struct Indication {
        let id: UpdateID?
        let handle: AttributeHandle
        let value: [UInt8]
        /// The change that it reports, if it is a Service Changed.
        var change: ClosedRange<AttributeHandle>?
        var isServiceChanged = false
        /// Whether the services have changed since: its confirmation does not indicate that the client knows of that.
        var isOvertaken = false
        /// When the client must have confirmed it; `nil` until it was sent.
        var deadline: BootInstant?
    }

    private struct Configured {
        /// The handle of the value.
        let value: AttributeHandle
        let bits: GATTDescriptor.ClientConfiguration
    }

    private struct Snapshot {
        let handle: AttributeHandle
        let value: [UInt8]
        let end: BootInstant
    }

    /// The bits of Client Supported Features.
    private enum Feature {
        static let robustCaching: UInt8 = 1
        static let multipleNotifications: UInt8 = 4
        /// Robust caching, enhanced bearers, multiple notifications.
        static let known: UInt8 = 7
    }
}

// MARK: - Packets of the client

extension GATTServer {
    /// Processes one packet of the client.
    package mutating func received(
        _ pdu: [UInt8], in database: inout ServerDatabase, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard !isClosed, let first = pdu.first else { return actions }
        guard pdu.count <= Int(limits.mtu) else {
            close(.oversizedPacket, database, &actions)
            return actions
        }
        let opcode = ATTOpcode(rawValue: first)
        switch opcode.kind {
        case .request: receivedRequest(pdu, opcode, &database, now, &actions)
        case .command: receivedCommand(pdu, &database, now, &actions)
        case .confirmation:
            guard pdu.count == 1, let confirmed = indication, confirmed.deadline != nil else {
                statistics.strayConfirmations += 1
                break
            }
            indication = nil
            if let id = confirmed.id { actions.append(.finish(id, failure: nil)) }
            if confirmed.isServiceChanged, pendingChange == nil, !confirmed.isOvertaken { awareness = .aware }
            if confirmed.isServiceChanged { recordChanged(database, now, &actions) }
        case .response where opcode.specificationName == nil:
            // An undefined opcode without the command flag is a request, even or odd.
            receivedRequest(pdu, opcode, &database, now, &actions)
        case .response, .notification, .indication: statistics.strayPackets += 1
        }
        proceed(database, &actions)
        return actions
    }

    /// Reports that the system has dropped packets of the client. The client would wait for the response to a request
    /// among them, and send nothing else, so that closes the link.
    package mutating func droppedPackets(in database: ServerDatabase) -> [Action] {
        var actions: [Action] = []
        if !isClosed { close(.droppedPackets, database, &actions) }
        return actions
    }

    private mutating func receivedRequest(
        _ pdu: [UInt8], _ opcode: ATTOpcode, _ database: inout ServerDatabase, _ now: BootInstant,
        _ actions: inout [Action]
    ) {
        guard case .free = slot else { return close(.overlappingRequests, database, &actions) }
        statistics.requests += 1
        // The response to a prepared write repeats it, and would be too long as well.
        guard pdu.count <= Int(mtu) else {
            return respond(to: opcode, .failure(Refusal(code: .invalidPDU, handle: 0)))
        }
        do throws(MalformedPacket) {
            let packet = try ATTPacket(pdu)
            if let handle = outOfSync(packet, database, now, &actions) {
                return respond(to: opcode, .failure(Refusal(code: .databaseOutOfSync, handle: handle)))
            }
            run(Operation(packet: packet, deadline: now + limits.handlerTime), &database, now, &actions)
        } catch {
            respond(to: opcode, .failure(Refusal(code: .invalidPDU, handle: 0)))
        }
    }

    private mutating func receivedCommand(
        _ pdu: [UInt8], _ database: inout ServerDatabase, _ now: BootInstant, _ actions: inout [Action]
    ) {
        guard pdu.count <= Int(mtu), let packet = try? ATTPacket(pdu) else {
            statistics.droppedCommands += 1
            return
        }
        switch packet {
        case .writeCommand, .signedWriteCommand:
            if hasRobustCaching, awareness != .aware {
                statistics.droppedCommands += 1
            } else {
                run(Operation(packet: packet, deadline: now + limits.handlerTime), &database, now, &actions)
            }
        default: statistics.droppedCommands += 1
        }
    }

    /// Returns true if the link's client has the features of robust caching.
    private var hasRobustCaching: Bool { features & Feature.robustCaching != 0 }

    /// Returns the handle for the error of a client that does not know of a change; `nil` to serve the request.
    ///
    /// Spec: Core Vol 3 Part G, 2.5.2.1.
    private mutating func outOfSync(
        _ packet: ATTPacket, _ database: ServerDatabase, _ now: BootInstant, _ actions: inout [Action]
    ) -> AttributeHandle? {
        guard hasRobustCaching else { return nil }
        switch awareness {
        case .aware: return nil
        case .notified, .hashRead:
            awareness = .aware
            recordChanged(database, now, &actions)
            return nil
        case .unaware:
            guard let handle = packet.usedHandle else { return nil }
            awareness = .notified
            return handle
        }
    }
}

extension ATTPacket {
    /// The first handle that a client uses from its knowledge of the services; `nil` for discovery, for which it needs
    /// none.
    ///
    /// Spec: Core Vol 3 Part G, 2.5.2.1.
    fileprivate var usedHandle: AttributeHandle? {
        switch self {
        case .readRequest(let request): request.handle
        case .readBlobRequest(let request): request.handle
        case .readMultipleRequest(let request): request.handles.first
        case .readMultipleVariableRequest(let request): request.handles.first
        case .writeRequest(let request): request.handle
        case .prepareWriteRequest(let request): request.handle
        case .readByTypeRequest(let request):
            switch request.type {
            case .includeDeclaration, .characteristicDeclaration: nil
            default: request.startHandle == 1 && request.endHandle == .max ? nil : request.startHandle
            }
        default: nil
        }
    }

    /// The handles of the attributes that are read or written because the client knows them.
    fileprivate var usedHandles: [AttributeHandle] {
        switch self {
        case .readRequest(let request): [request.handle]
        case .readBlobRequest(let request): [request.handle]
        case .readMultipleRequest(let request): request.handles
        case .readMultipleVariableRequest(let request): request.handles
        case .writeRequest(let request): [request.handle]
        case .prepareWriteRequest(let request): [request.handle]
        case .writeCommand(let command): [command.handle]
        case .signedWriteCommand(let command): [command.handle]
        default: []
        }
    }
}

// MARK: - Requests and commands

extension GATTServer {
    /// Evaluates an operation with what is known, and responds or asks the application.
    private mutating func run(
        _ begun: Operation, _ database: inout ServerDatabase, _ now: BootInstant,
        _ actions: inout [Action]
    ) {
        var operation = begun
        let opcode = operation.packet.opcode
        do throws(Stop) {
            let response = try evaluate(operation, &database, now, &actions)
            if !opcode.isCommand { respond(to: opcode, .success(response)) }
        } catch {
            switch error {
            case .refused(let refusal):
                if opcode.isCommand {
                    statistics.droppedCommands += 1
                } else {
                    if case .executeWriteRequest = operation.packet { prepared.removeAll() }
                    respond(to: opcode, .failure(refusal))
                }
            case .asks(let question):
                lastToken &+= 1
                operation.token = Token(number: lastToken)
                operation.question = question
                if case .write(let values) = question {
                    operation.known.handled = Set(
                        values.map { $0.handle }.filter { database[$0]?.reading != .stored })
                }
                let token = operation.token
                guard opcode.isCommand else {
                    slot = .open(operation)
                    return actions.append(.ask(token, question, until: operation.deadline))
                }
                let size = operation.packet.commandSize
                guard commands.count < limits.commands, commandBytes + size <= limits.commandBytes else {
                    statistics.droppedCommands += 1
                    return actions.append(.dropped(operation.packet.commandHandle))
                }
                commands.append(operation)
                commandBytes += size
                actions.append(.ask(token, question, until: operation.deadline))
            }
        }
    }

    private mutating func respond(to opcode: ATTOpcode, _ result: Result<Response, Refusal>) {
        slot = .responding
        switch result {
        case .success(let response):
            outbox.append(Packet(kind: .response(opcode), bytes: response.bytes, values: response.values))
        case .failure(let refusal): outbox.append(errorPacket(for: opcode, refusal))
        }
    }

    private mutating func errorPacket(for opcode: ATTOpcode, _ refusal: Refusal) -> Packet {
        statistics.errors += 1
        // By this error the client learns of the change.
        if refusal.code == .databaseOutOfSync, awareness == .unaware { awareness = .notified }
        let response = ATTErrorResponse(requestOpcode: opcode, handle: refusal.handle, code: refusal.code)
        return Packet(kind: .response(opcode), bytes: response.bytes, values: [])
    }

    /// The refusal of a request whose attribute is affected by a change of the services.
    private func overtaken(_ handle: AttributeHandle, _ database: ServerDatabase) -> Refusal {
        guard isInSync else { return Refusal(code: .databaseOutOfSync, handle: handle) }
        return Refusal(code: database[handle] == nil ? .invalidHandle : .unlikelyError, handle: handle)
    }

    /// Returns the attribute that a client means by a handle.
    private func attribute(
        at handle: AttributeHandle, _ known: Known, _ database: ServerDatabase
    ) throws(Stop) -> ServerAttribute {
        if known.overtaken.contains(handle) { throw .refused(overtaken(handle, database)) }
        guard let attribute = database[handle] else { throw .refused(.invalidHandle, handle) }
        return attribute
    }

    /// Passes the application's result for a question. A result that comes late has no effect.
    package mutating func finished(
        _ token: Token, _ result: HandlerResult, in database: inout ServerDatabase, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard !isClosed else { return actions }
        if case .open(var operation) = slot, operation.token == token {
            if operation.take(result) {
                remember(operation, database, now)
                run(operation, &database, now, &actions)
            } else {
                statistics.lateResults += 1
            }
        } else if let index = commands.firstIndex(where: { $0.token == token }) {
            var operation = commands[index]
            if operation.take(result) {
                commands.remove(at: index)
                commandBytes -= operation.packet.commandSize
                run(operation, &database, now, &actions)
            } else {
                statistics.lateResults += 1
            }
        } else {
            statistics.lateResults += 1
        }
        proceed(database, &actions)
        return actions
    }

    /// Keeps the value of a read for the parts that follow.
    private mutating func remember(_ operation: Operation, _ database: ServerDatabase, _ now: BootInstant) {
        let handle: AttributeHandle
        switch operation.packet {
        case .readRequest(let request): handle = request.handle
        case .readBlobRequest(let request): handle = request.handle
        default: return
        }
        guard case .success(let value)? = operation.known.values[handle], database[handle]?.reading == .handler else {
            return
        }
        snapshot = Snapshot(handle: handle, value: value, end: now + limits.snapshotTime)
    }

    private mutating func evaluate(
        _ operation: Operation, _ database: inout ServerDatabase, _ now: BootInstant,
        _ actions: inout [Action]
    ) throws(Stop) -> Response {
        let known = operation.known
        switch operation.packet {
        case .exchangeMTURequest(let request):
            if !isMTUExchanged {
                isMTUExchanged = true
                nextMTU = max(mtu, min(request.mtu, limits.mtu))
            }
            return Response(bytes: ATTExchangeMTUResponse(mtu: limits.mtu).bytes)
        case .findInformationRequest(let request): return try findInformation(request, database)
        case .findByTypeValueRequest(let request): return try findByTypeValue(request, database)
        case .readByTypeRequest(let request): return try readByType(request, known, database, now)
        case .readByGroupTypeRequest(let request): return try readByGroupType(request, database)
        case .readRequest(let request):
            let value = try value(at: request.handle, known, database, now)
            if database[request.handle]?.role == .databaseHash { hashWasRead() }
            return Response(
                bytes: ATTReadResponse(value: Array(value.prefix(Int(mtu) - 1))).bytes, values: [request.handle])
        case .readBlobRequest(let request):
            let value = try value(at: request.handle, offset: Int(request.offset), known, database, now)
            guard Int(request.offset) <= value.count else { throw .refused(.invalidOffset, request.handle) }
            let part = Array(value.dropFirst(Int(request.offset)).prefix(Int(mtu) - 1))
            return Response(bytes: ATTReadBlobResponse(part: part).bytes, values: [request.handle])
        case .readMultipleRequest(let request):
            return try readMultiple(request.handles, isVariable: false, known, database, now)
        case .readMultipleVariableRequest(let request):
            return try readMultiple(request.handles, isVariable: true, known, database, now)
        case .writeRequest(let request):
            try write(request.value, to: request.handle, .request, known, &database, now, &actions)
            return Response(bytes: ATTWriteResponse().bytes)
        case .writeCommand(let command):
            try write(command.value, to: command.handle, .command, known, &database, now, &actions)
            return Response(bytes: [])
        case .signedWriteCommand(let command):
            try signedWrite(command, known, &database, now, &actions)
            return Response(bytes: [])
        case .prepareWriteRequest(let request): return try prepareWrite(request, known, database)
        case .executeWriteRequest(let request):
            return try executeWrite(request, known, &database, now, &actions)
        default: throw .refused(.requestNotSupported, 0)
        }
    }

    // MARK: Finding

    private func findInformation(
        _ request: ATTFindInformationRequest, _ database: ServerDatabase
    ) throws(Stop) -> Response {
        var room = Int(mtu) - 2
        var entries: [ATTFindInformationResponse.Entry] = []
        for attribute in try range(request.startHandle, request.endHandle, database) {
            let isLong = attribute.type.short == nil
            let length = isLong ? 18 : 4
            guard room >= length, entries.first.map({ ($0.type.short == nil) == isLong }) ?? true else { break }
            room -= length
            entries.append(.init(handle: attribute.handle, type: attribute.type))
        }
        guard !entries.isEmpty else { throw .refused(.attributeNotFound, request.startHandle) }
        return Response(bytes: ATTFindInformationResponse(entries: entries).bytes)
    }

    private func findByTypeValue(
        _ request: ATTFindByTypeValueRequest, _ database: ServerDatabase
    ) throws(Stop) -> Response {
        let type = BluetoothUUID(request.type)
        var room = Int(mtu) - 1
        var entries: [ATTFindByTypeValueResponse.Entry] = []
        for attribute in try range(request.startHandle, request.endHandle, database) where attribute.type == type {
            // A match discloses the value, so an attribute that the client may not read never matches.
            guard let requirement = attribute.read, requirement.refusal(over: security) == nil,
                !requirement.isAuthorized, storedValue(of: attribute) == request.value
            else { continue }
            guard room >= 4 else { break }
            room -= 4
            entries.append(.init(startHandle: attribute.handle, endHandle: attribute.groupEnd))
        }
        guard !entries.isEmpty else { throw .refused(.attributeNotFound, request.startHandle) }
        return Response(
            bytes: ATTFindByTypeValueResponse(entries: entries).bytes, values: entries.map { $0.startHandle })
    }

    private func readByGroupType(
        _ request: ATTReadByGroupTypeRequest, _ database: ServerDatabase
    ) throws(Stop) -> Response {
        let attributes = try range(request.startHandle, request.endHandle, database)
        guard request.type == .primaryServiceDeclaration || request.type == .secondaryServiceDeclaration else {
            throw .refused(.unsupportedGroupType, request.startHandle)
        }
        let longest = min(Int(mtu) - 6, 251)
        var room = Int(mtu) - 2
        var entries: [ATTReadByGroupTypeResponse.Entry] = []
        for attribute in attributes where attribute.type == request.type {
            guard case .group(let end) = attribute.role else { continue }
            let value = Array(attribute.value.prefix(longest))
            guard room >= value.count + 4, entries.first.map({ $0.value.count == value.count }) ?? true else { break }
            room -= value.count + 4
            entries.append(.init(startHandle: attribute.handle, endHandle: end, value: value))
        }
        guard !entries.isEmpty else { throw .refused(.attributeNotFound, request.startHandle) }
        return Response(bytes: ATTReadByGroupTypeResponse(entries: entries).bytes)
    }

    private func range(
        _ first: AttributeHandle, _ last: AttributeHandle, _ database: ServerDatabase
    ) throws(Stop) -> ArraySlice<ServerAttribute> {
        guard first > 0, first <= last else { throw .refused(.invalidHandle, first) }
        return database.attributes(from: first, through: last)
    }

    // MARK: Reading

    private mutating func readByType(
        _ request: ATTReadByTypeRequest, _ known: Known, _ database: ServerDatabase, _ now: BootInstant
    ) throws(Stop) -> Response {
        let longest = min(Int(mtu) - 4, 253)
        var room = Int(mtu) - 2
        var entries: [ATTReadByTypeResponse.Entry] = []
        attributes: for attribute in try range(request.startHandle, request.endHandle, database)
        where attribute.type == request.type {
            guard room >= 2 else { break }
            let value: [UInt8]
            do throws(Stop) {
                value = Array(try self.value(of: attribute, known, now).prefix(longest))
            } catch {
                // Only the first value's error is a response; a later one ends the list.
                if case .refused = error, !entries.isEmpty { break attributes }
                throw error
            }
            guard room >= value.count + 2, entries.first.map({ $0.value.count == value.count }) ?? true else { break }
            room -= value.count + 2
            entries.append(.init(handle: attribute.handle, value: value))
        }
        guard !entries.isEmpty else { throw .refused(.attributeNotFound, request.startHandle) }
        if request.type == .databaseHash { hashWasRead() }
        return Response(bytes: ATTReadByTypeResponse(entries: entries).bytes, values: entries.map { $0.handle })
    }

    private func readMultiple(
        _ handles: [AttributeHandle], isVariable: Bool, _ known: Known, _ database: ServerDatabase, _ now: BootInstant
    ) throws(Stop) -> Response {
        guard handles.count >= 2 else { throw .refused(.invalidPDU, 0) }
        for handle in handles {
            try checkReadable(attribute(at: handle, known, database), known)
        }
        let room = Int(mtu) - 1
        var writer = ByteWriter(reserving: room)
        var used: [AttributeHandle] = []
        for handle in handles {
            let left = room - writer.bytes.count
            guard left >= (isVariable ? 2 : 1) else { break }
            let value = try value(at: handle, known, database, now)
            if isVariable { writer.u16(UInt16(truncatingIfNeeded: value.count)) }
            writer.array(Array(value.prefix(left - (isVariable ? 2 : 0))))
            used.append(handle)
        }
        let opcode: ATTOpcode = isVariable ? .readMultipleVariableResponse : .readMultipleResponse
        return Response(bytes: [opcode.rawValue] + writer.bytes, values: used)
    }

    private func value(
        at handle: AttributeHandle, offset: Int = 0, _ known: Known, _ database: ServerDatabase, _ now: BootInstant
    ) throws(Stop) -> [UInt8] {
        try value(of: attribute(at: handle, known, database), offset: offset, known, now)
    }

    /// Returns the whole value of an attribute that the client reads.
    private func value(
        of attribute: ServerAttribute, offset: Int = 0, _ known: Known, _ now: BootInstant
    ) throws(Stop) -> [UInt8] {
        let handle = attribute.handle
        try checkReadable(attribute, known)
        if let value = storedValue(of: attribute) {
            if attribute.role == .databaseHash, value.isEmpty { throw .refused(.unlikelyError, handle) }
            return value
        }
        switch known.values[handle] {
        case .success(let value)?: return value
        case .failure(let refusal)?: throw .refused(refusal)
        case nil: break
        }
        if offset > 0, attribute.reading == .handler, let snapshot, snapshot.handle == handle, now < snapshot.end {
            return snapshot.value
        }
        throw .asks(.read(handle, offset: offset))
    }

    /// Returns the value that the client sees at `handle`; `nil` if only the application knows it, or nothing is there.
    package func value(of handle: AttributeHandle, in database: ServerDatabase) -> [UInt8]? {
        database[handle].flatMap { storedValue(of: $0) }
    }

    /// Returns what the client sees in an attribute; `nil` if only the application knows.
    private func storedValue(of attribute: ServerAttribute) -> [UInt8]? {
        switch attribute.role {
        case .clientConfiguration:
            let bits = configurations[attribute.handle]?.bits.rawValue ?? 0
            return [UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)]
        case .clientFeatures: return [features]
        case .databaseHash: return attribute.value
        case .plain, .group: return attribute.reading == .stored ? attribute.value : nil
        }
    }

    /// Checks, in this order, permission, security and authorization.
    private func checkReadable(_ attribute: ServerAttribute, _ known: Known) throws(Stop) {
        guard let requirement = attribute.read else { throw .refused(.readNotPermitted, attribute.handle) }
        try check(requirement, attribute.handle, isWrite: false, known)
    }

    private func check(
        _ requirement: AccessRequirement, _ handle: AttributeHandle, isWrite: Bool, _ known: Known
    ) throws(Stop) {
        if let code = requirement.refusal(over: security) { throw .refused(code, handle) }
        guard requirement.isAuthorized else { return }
        switch known.authorizations[handle] {
        case true?: return
        case false?: throw .refused(.insufficientAuthorization, handle)
        case nil: throw .asks(.authorize(handle, isWrite: isWrite))
        }
    }

    private mutating func hashWasRead() {
        if awareness == .unaware { awareness = .hashRead }
    }

    // MARK: Writing

    private mutating func write(
        _ value: [UInt8], to handle: AttributeHandle, _ method: ServerAttribute.WriteMethods, _ known: Known,
        _ database: inout ServerDatabase, _ now: BootInstant, _ actions: inout [Action]
    ) throws(Stop) {
        if known.isDone(at: handle) { return }
        let attribute = try attribute(at: handle, known, database)
        // Security was checked when the application was asked, which has written by now.
        if known.verdict == nil { try checkWritable(attribute, method, known) }
        let written = WrittenValue(handle: handle, offset: 0, value: value, isCommand: method != .request)
        try checkValue(written, attribute)
        if attribute.asksToWrite { try checkVerdict([written], known) }
        apply(written, attribute, &database, now, &actions)
    }

    private func checkWritable(
        _ attribute: ServerAttribute, _ method: ServerAttribute.WriteMethods, _ known: Known
    ) throws(Stop) {
        guard attribute.writeMethods.contains(method) else { throw .refused(.writeNotPermitted, attribute.handle) }
        try check(attribute.write, attribute.handle, isWrite: true, known)
    }

    private func checkVerdict(_ values: [WrittenValue], _ known: Known) throws(Stop) {
        switch known.verdict {
        case .accepted?: return
        case .rejected(let refusal)?:
            throw .refused(refusal.code, refusal.handle > 0 ? refusal.handle : values.first?.handle ?? 0)
        case nil: throw .asks(.write(values))
        }
    }

    /// Rejects a value that an attribute cannot have.
    private func checkValue(_ written: WrittenValue, _ attribute: ServerAttribute) throws(Stop) {
        let end = written.offset + written.value.count
        let handle = attribute.handle
        switch attribute.role {
        case .clientConfiguration(_, let permitted):
            guard written.offset == 0, end == 2 else { throw .refused(.invalidAttributeValueLength, handle) }
            guard configuration(written).isSubset(of: permitted) else { throw .refused(.valueNotAllowed, handle) }
        case .clientFeatures:
            guard written.offset == 0, let octet = written.value.first else {
                throw .refused(.invalidAttributeValueLength, handle)
            }
            guard features & ~octet == 0 else { throw .refused(.valueNotAllowed, handle) }
            fallthrough
        case .plain, .group, .databaseHash:
            guard end <= attribute.longestValue, !attribute.isFixedLength || end <= attribute.value.count else {
                throw .refused(.invalidAttributeValueLength, handle)
            }
        }
    }

    private func configuration(_ written: WrittenValue) -> GATTDescriptor.ClientConfiguration {
        var reader = ByteReader(written.value.span)
        return GATTDescriptor.ClientConfiguration(rawValue: reader.u16() ?? 0)
    }

    /// Carries out a write that has been checked.
    private mutating func apply(
        _ written: WrittenValue, _ attribute: ServerAttribute, _ database: inout ServerDatabase, _ now: BootInstant,
        _ actions: inout [Action]
    ) {
        if snapshot?.handle == written.handle { snapshot = nil }
        switch attribute.role {
        case .clientConfiguration(let value, _):
            self.written.insert(attribute.handle)
            configure(attribute.handle, value, configuration(written), isRestored: false, &actions)
            recordChanged(database, now, &actions)
        case .clientFeatures:
            features |= (written.value.first ?? 0) & Feature.known
            recordChanged(database, now, &actions)
        case .plain, .group, .databaseHash:
            guard attribute.reading == .stored else { return }
            var value = Array(attribute.value.prefix(written.offset)) + written.value
            if attribute.isFixedLength { value += attribute.value.dropFirst(value.count) }
            database.setValue(value, of: attribute.handle)
            actions.append(.wrote(attribute.handle, value))
        }
    }

    private mutating func prepareWrite(
        _ request: ATTPrepareWriteRequest, _ known: Known, _ database: ServerDatabase
    ) throws(Stop) -> Response {
        try checkWritable(attribute(at: request.handle, known, database), .request, known)
        guard prepared.append(request) else { throw .refused(.prepareQueueFull, request.handle) }
        let response = ATTPrepareWriteResponse(handle: request.handle, offset: request.offset, part: request.part)
        return Response(bytes: response.bytes)
    }

    /// Executes all prepared writes, or none.
    private mutating func executeWrite(
        _ request: ATTExecuteWriteRequest, _ known: Known, _ database: inout ServerDatabase, _ now: BootInstant,
        _ actions: inout [Action]
    ) throws(Stop) -> Response {
        let response = Response(bytes: ATTExecuteWriteResponse().bytes)
        guard request.action == .write else {
            prepared.removeAll()
            return response
        }
        var known = known
        known.overtaken = prepared.overtaken
        if hasRobustCaching, prepared.isStale, !known.isAccepted { throw .refused(.databaseOutOfSync, 0) }
        let parts: [PreparedWrites.Joined]
        switch prepared.joined(oldLength: { length($0, known, database) }) {
        case .failure(let part): throw .refused(.invalidOffset, part.handle)
        case .success(let joined): parts = joined
        }
        var values: [(written: WrittenValue, attribute: ServerAttribute)] = []
        for part in parts {
            if known.isDone(at: part.handle) { continue }
            let attribute = try attribute(at: part.handle, known, database)
            // The client was authorized for each part.
            if known.verdict == nil {
                guard attribute.writeMethods.contains(.request) else { throw .refused(.writeNotPermitted, part.handle) }
                if let code = attribute.write.refusal(over: security) { throw .refused(code, part.handle) }
            }
            let written = complete(part, attribute)
            try checkValue(written, attribute)
            values.append((written, attribute))
        }
        let asked = values.filter { $0.attribute.asksToWrite }.map { $0.written }
        if !asked.isEmpty { try checkVerdict(asked, known) }
        prepared.removeAll()
        for (written, attribute) in values { apply(written, attribute, &database, now, &actions) }
        return response
    }

    /// The length that parts may continue; of a value that only the application knows, any.
    private func length(_ handle: AttributeHandle, _ known: Known, _ database: ServerDatabase) -> Int {
        guard let attribute = database[handle], !known.overtaken.contains(handle) else { return ATTLimits.valueLength }
        return storedValue(of: attribute)?.count ?? ATTLimits.valueLength
    }

    private func complete(_ part: PreparedWrites.Joined, _ attribute: ServerAttribute) -> WrittenValue {
        guard part.offset > 0, let old = storedValue(of: attribute) else {
            return WrittenValue(handle: part.handle, offset: part.offset, value: part.value)
        }
        return WrittenValue(handle: part.handle, offset: 0, value: Array(old.prefix(part.offset)) + part.value)
    }

    /// Executes a signed write, if nothing speaks against it.
    ///
    /// Spec: Core Vol 3 Part C, 10.4.2.
    private mutating func signedWrite(
        _ command: ATTSignedWriteCommand, _ known: Known, _ database: inout ServerDatabase, _ now: BootInstant,
        _ actions: inout [Action]
    ) throws(Stop) {
        var reader = ByteReader(command.signature.span)
        guard let counter = reader.u32() else { throw .refused(.invalidPDU, 0) }
        if known.isVerified == nil {
            // On an encrypted link it is not used, and a counter is accepted once, in ascending order.
            guard !security.isEncrypted, security.isBonded, counter >= signCounter, counter < .max,
                let attribute = database[command.handle], attribute.writeMethods.contains(.signed),
                !attribute.write.isEncrypted
            else { throw .refused(.insufficientAuthentication, command.handle) }
            throw .asks(.verify(command))
        }
        guard known.isVerified == true else { throw .refused(.insufficientAuthentication, command.handle) }
        if known.verdict == nil, known.authorizations.isEmpty {
            // Two packets with the same counter may have waited for their verification.
            guard counter >= signCounter else { throw .refused(.insufficientAuthentication, command.handle) }
            signCounter = counter &+ 1
            actions.append(.store(record(database)))
        }
        try write(command.value, to: command.handle, .signed, known, &database, now, &actions)
    }
}

extension ATTErrorCode {
    /// The same, or Unlikely Error for 0, which is no error.
    fileprivate var valid: ATTErrorCode { rawValue == 0 ? .unlikelyError : self }
}

extension ATTPacket {
    fileprivate var commandSize: Int {
        switch self {
        case .writeCommand(let command): command.value.count
        case .signedWriteCommand(let command): command.value.count
        default: 0
        }
    }

    fileprivate var commandHandle: AttributeHandle {
        switch self {
        case .writeCommand(let command): command.handle
        case .signedWriteCommand(let command): command.handle
        default: 0
        }
    }
}

// MARK: - Sending values

extension GATTServer {
    /// Sends a value to the client, as it has configured: in a notification if that is enabled, else in an indication.
    ///
    /// - Parameter id: Identifies the value in `.notified` or `.finish`.
    package mutating func update(
        _ value: [UInt8], of handle: AttributeHandle, id: UpdateID, in database: ServerDatabase
    ) -> (outcome: UpdateOutcome, actions: [Action]) {
        var actions: [Action] = []
        let outcome = update(value, of: handle, id: id, database)
        if outcome == .full {
            noteRefusal(isNotification: configuration(of: handle, in: database).contains(.notifications))
        }
        proceed(database, &actions)
        return (outcome, actions)
    }

    /// Returns whether there is room for another value of an attribute; if not, `.readyToUpdate` follows.
    package mutating func hasRoom(for handle: AttributeHandle, in database: ServerDatabase) -> Bool {
        let isNotified = configuration(of: handle, in: database).contains(.notifications)
        let hasRoom = isNotified ? !hasNotification && !isBlocked : waiting.count < limits.waitingIndications
        if !hasRoom, !isClosed { noteRefusal(isNotification: isNotified) }
        return hasRoom || isClosed
    }

    private mutating func noteRefusal(isNotification: Bool) {
        if isNotification { hasRefusedNotification = true } else { hasRefusedIndication = true }
    }

    private mutating func update(
        _ value: [UInt8], of handle: AttributeHandle, id: UpdateID, _ database: ServerDatabase
    ) -> UpdateOutcome {
        guard !isClosed else { return .closed }
        guard let attribute = database[handle] else { return .notSubscribed }
        let configuration = configuration(of: handle, in: database)
        guard !configuration.isEmpty else { return .notSubscribed }
        guard attribute.send.refusal(over: security) == nil else { return .insecure }
        let isServiceChanged = attribute.type == ServiceChanged.uuid
        guard isServiceChanged || isInSync else { return .outOfSync }
        let limit = maximumUpdateLength
        guard value.count <= limit else { return .tooLong(limit: limit) }
        if configuration.contains(.notifications) {
            guard !hasNotification else { return .full }
            notify([Update(id: id, value: ATTAttributeValue(handle: handle, value: value))])
            return .notified
        }
        guard waiting.count < limits.waitingIndications else { return .full }
        waiting.append(Indication(id: id, handle: handle, value: value, isServiceChanged: isServiceChanged))
        return .indicated
    }

    /// Sends the values of several attributes for which the client has enabled notifications: in as few packets as the
    /// client can receive, no value cut.
    ///
    /// - Parameter values: The values, each with what identifies it in `.notified`.
    /// - Returns: What became of each value. Values whose client wants indications are not sent.
    package mutating func notify(
        _ values: [(id: UpdateID, handle: AttributeHandle, value: [UInt8])], in database: ServerDatabase
    ) -> (outcomes: [UpdateOutcome], actions: [Action]) {
        var actions: [Action] = []
        var outcomes: [UpdateOutcome] = []
        var packet: [Update] = []
        let isFull = hasNotification
        let longest = features & Feature.multipleNotifications != 0 ? Int(mtu) - 1 : 0
        var size = 0
        for (id, handle, value) in values {
            let notifiable = notifiable(value, of: handle, database)
            let outcome = isFull && notifiable == .notified ? .full : notifiable
            outcomes.append(outcome)
            guard outcome == .notified else { continue }
            if size + value.count + 4 > longest {
                notify(packet)
                packet = []
                size = 0
            }
            packet.append(Update(id: id, value: ATTAttributeValue(handle: handle, value: value)))
            size += value.count + 4
        }
        notify(packet)
        if outcomes.contains(.full) { noteRefusal(isNotification: true) }
        proceed(database, &actions)
        return (outcomes, actions)
    }

    private func notifiable(
        _ value: [UInt8], of handle: AttributeHandle, _ database: ServerDatabase
    ) -> UpdateOutcome {
        guard !isClosed else { return .closed }
        guard let attribute = database[handle],
            configuration(of: handle, in: database).contains(.notifications)
        else { return .notSubscribed }
        guard attribute.send.refusal(over: security) == nil else { return .insecure }
        guard isInSync else { return .outOfSync }
        let limit = maximumUpdateLength
        return value.count <= limit ? .notified : .tooLong(limit: limit)
    }

    private mutating func notify(_ updates: [Update]) {
        if let packet = Packet(updates) { outbox.append(packet) }
    }

    /// Cancels an update that waits: for room in the system, or an indication for the confirmation of another one. It
    /// is not sent, and nothing reports its end; `.readyToUpdate` does once there is room. Has no effect on any other,
    /// nor while a packet is offered.
    package mutating func cancelUpdate(_ id: UpdateID, in database: ServerDatabase) -> [Action] {
        var actions: [Action] = []
        if case .offered = writing { return actions }
        let isNotification = outbox.contains { $0.has(id) }
        let isUnsent = indication.map { $0.id == id && $0.deadline == nil } ?? false
        guard isNotification || isUnsent || waiting.contains(where: { $0.id == id }) else { return actions }
        outbox = outbox.compactMap { $0.without(id) }
        if isUnsent {
            outbox.removeAll { if case .indication = $0.kind { true } else { false } }
            indication = nil
        }
        waiting.removeAll { $0.id == id }
        noteRefusal(isNotification: isNotification)
        proceed(database, &actions)
        return actions
    }

    /// A client with robust caching gets no values while it does not know of a change.
    private var isInSync: Bool { !hasRobustCaching || awareness == .aware }

    /// Whether the system has no room for a packet.
    private var isBlocked: Bool {
        if case .blocked = writing { true } else { false }
    }

    private var hasNotification: Bool {
        outbox.contains { if case .notification = $0.kind { true } else { false } }
    }

    /// The client's configuration of the value at `handle`.
    package func configuration(
        of handle: AttributeHandle, in database: ServerDatabase
    ) -> GATTDescriptor.ClientConfiguration {
        database.configuration(of: handle).flatMap { configurations[$0.handle]?.bits } ?? []
    }

    /// The largest value that can be sent to the client; no value is longer than an attribute's.
    package var maximumUpdateLength: Int { min(Int(mtu) - 3, ATTLimits.valueLength) }

    private mutating func configure(
        _ handle: AttributeHandle, _ value: AttributeHandle, _ configuration: GATTDescriptor.ClientConfiguration,
        isRestored: Bool, _ actions: inout [Action]
    ) {
        guard configurations[handle]?.bits ?? [] != configuration else { return }
        configurations[handle] = configuration.isEmpty ? nil : Configured(value: value, bits: configuration)
        actions.append(.configured(value, configuration, isRestored: isRestored))
        guard !configuration.contains(.indications) else { return }
        finishWaiting(.notSubscribed, &actions) { $0.handle == value }
    }

    private mutating func finishWaiting(
        _ failure: UpdateFailure, _ actions: inout [Action], where isEnded: (Indication) -> Bool
    ) {
        for ended in waiting where isEnded(ended) {
            if let id = ended.id { actions.append(.finish(id, failure: failure)) }
        }
        waiting.removeAll(where: isEnded)
    }
}

// MARK: - The writer

extension GATTServer {
    /// Prepares the next indication, and offers the next packet to the owner.
    private mutating func proceed(_ database: ServerDatabase, _ actions: inout [Action]) {
        guard !isClosed else { return }
        nextIndication(database, &actions)
        let packet = nextPacket(database, &actions)
        reportRoom(&actions)
        guard let packet else { return }
        writing = .offered
        actions.append(.send(packet.bytes))
    }

    /// Reports that there is room for updates of a kind for which there was none. Notifications do not wait for a
    /// client that is slow to confirm its indications.
    private mutating func reportRoom(_ actions: inout [Action]) {
        guard !hasNotification, !isBlocked else { return }
        let hasRoomForIndication = waiting.count < limits.waitingIndications
        guard hasRefusedNotification || hasRefusedIndication && hasRoomForIndication else { return }
        hasRefusedNotification = false
        if hasRoomForIndication { hasRefusedIndication = false }
        actions.append(.readyToUpdate)
    }

    private mutating func nextIndication(_ database: ServerDatabase, _ actions: inout [Action]) {
        guard indication == nil else { return }
        // A change comes before values, which the client might take for those of other attributes.
        if let change = pendingChange, let next = announcement(of: change, database) {
            pendingChange = nil
            indication = next
        }
        while indication == nil, !waiting.isEmpty {
            let next = waiting.removeFirst()
            if let failure = failure(of: next, database) {
                if let id = next.id { actions.append(.finish(id, failure: failure)) }
            } else {
                indication = next
            }
        }
        guard let indication else { return }
        let bytes = ATTHandleValueIndication(handle: indication.handle, value: indication.value).bytes
        outbox.append(Packet(kind: .indication, bytes: bytes, values: [indication.handle]))
    }

    private func announcement(
        of change: ClosedRange<AttributeHandle>, _ database: ServerDatabase
    ) -> Indication? {
        guard let handle = database.handle(of: ServiceChanged.uuid), let attribute = database[handle],
            configuration(of: handle, in: database).contains(.indications),
            attribute.send.refusal(over: security) == nil
        else { return nil }
        var value = ByteWriter(reserving: 4)
        value.u16(change.lowerBound)
        value.u16(change.upperBound)
        return Indication(id: nil, handle: handle, value: value.bytes, change: change, isServiceChanged: true)
    }

    private func failure(of indication: Indication, _ database: ServerDatabase) -> UpdateFailure? {
        guard let attribute = database[indication.handle] else { return .withdrawn }
        guard attribute.send.refusal(over: security) == nil else { return .insecure }
        return indication.isServiceChanged || isInSync ? nil : .outOfSync
    }

    /// Returns the next packet to write; `nil` if there is none, or none can be written now. Packets with values that
    /// the link's present security does not permit are not sent.
    private mutating func nextPacket(_ database: ServerDatabase, _ actions: inout [Action]) -> Packet? {
        guard case .ready = writing else { return nil }
        while let packet = outbox.first {
            guard let refusal = refusal(of: packet, database) else { return packet }
            outbox.removeFirst()
            switch packet.kind {
            case .response(let opcode):
                respond(to: opcode, .failure(refusal))
                outbox.insert(outbox.removeLast(), at: 0)
            case .notification: finish(packet, .insecure, &actions)
            case .indication:
                if let id = indication?.id { actions.append(.finish(id, failure: .insecure)) }
                pendingChange = pendingChange.merged(with: indication?.change)
                indication = nil
                nextIndication(database, &actions)
            }
        }
        return nil
    }

    /// Reports the end of the updates in a notification.
    private func finish(_ packet: Packet, _ failure: UpdateFailure?, _ actions: inout [Action]) {
        for update in packet.updates { actions.append(.notified(update.id, failure: failure)) }
    }

    private func refusal(of packet: Packet, _ database: ServerDatabase) -> Refusal? {
        for handle in packet.values {
            guard let attribute = database[handle] else { continue }
            let requirement: AccessRequirement
            switch packet.kind {
            case .response: requirement = attribute.read ?? .open
            case .notification, .indication: requirement = attribute.send
            }
            if let code = requirement.refusal(over: security) { return Refusal(code: code, handle: handle) }
        }
        return nil
    }

    /// Reports that the offered packet was written.
    package mutating func sent(in database: ServerDatabase, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        guard !isClosed, case .offered = writing, !outbox.isEmpty else { return actions }
        writing = .ready
        changedSinceOffer = nil
        let packet = outbox.removeFirst()
        switch packet.kind {
        case .response:
            slot = .free
            if let size = nextMTU.take() { mtu = size }
        case .notification: finish(packet, nil, &actions)
        case .indication: indication?.deadline = now + limits.confirmationTime
        }
        proceed(database, &actions)
        return actions
    }

    /// Reports that there is no room for the offered packet now.
    package mutating func blocked() {
        if case .offered = writing { writing = .blocked }
    }

    /// Reports that there is room again.
    package mutating func writable(in database: ServerDatabase) -> [Action] {
        var actions: [Action] = []
        if case .blocked = writing { writing = .ready }
        if case .ready = writing, changedSinceOffer != nil || !isInSync {
            dropOvertaken(changedSinceOffer.take(), database, &actions)
        }
        proceed(database, &actions)
        return actions
    }

    /// Reports that the system never sends the offered packet. Without a response or an indication the client would
    /// wait forever, so that closes the link.
    package mutating func refused(in database: ServerDatabase) -> [Action] {
        var actions: [Action] = []
        guard !isClosed, case .offered = writing, !outbox.isEmpty else { return actions }
        writing = .ready
        changedSinceOffer = nil
        let packet = outbox.removeFirst()
        if case .notification = packet.kind {
            finish(packet, .unsendable, &actions)
            proceed(database, &actions)
        } else {
            close(.unsendable, database, &actions)
        }
        return actions
    }
}

// MARK: - Changes of services

extension GATTServer {
    /// Takes over a change of the services in `handles`: the client no longer knows them, and what it has configured
    /// there is gone.
    ///
    /// The change is indicated: now, once the client has confirmed an earlier indication, or once its stored
    /// subscription is in force. A change that is pending already is extended.
    ///
    /// - Parameter isAnnounced: Pass `false` for a peer that does not indicate changes, which no server should do.
    package mutating func databaseChanged(
        _ handles: ClosedRange<AttributeHandle>, isAnnounced: Bool = true, in database: ServerDatabase,
        at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard !isClosed else { return actions }
        snapshot = nil
        written = written.filter { !handles.contains($0) }
        for (handle, configured) in configurations.sorted(by: { $0.key < $1.key }) where handles.contains(handle) {
            configurations[handle] = nil
            actions.append(.configured(configured.value, [], isRestored: false))
        }
        finishWaiting(.withdrawn, &actions) { handles.contains($0.handle) }
        dormant?.databaseChanged(handles, checksum: database.checksum)
        becomeUnaware()
        if case .open(var operation) = slot {
            operation.databaseChanged(handles)
            slot = .open(operation)
        }
        for index in commands.indices { commands[index].databaseChanged(handles) }
        prepared.databaseChanged(handles)
        dropOvertaken(handles, database, &actions)
        let isSubscribed =
            database.handle(of: ServiceChanged.uuid).map { !configuration(of: $0, in: database).isEmpty } ?? false
        if isAnnounced, isProven || isSubscribed { pendingChange = pendingChange.merged(with: handles) }
        recordChanged(database, now, &actions)
        proceed(database, &actions)
        return actions
    }

    /// Makes the client unaware of the services, as after a change that it missed.
    package mutating func becomeUnaware() {
        guard !isClosed else { return }
        awareness = .unaware
        indication?.isOvertaken = true
        prepared.databaseChanged()
    }

    /// Drops the values that wait to be written, and that a change of the services has overtaken: the client would take
    /// those in `handles` for values of what it finds there later, and a client with robust caching receives none until
    /// it knows of the change. A response with a value in `handles` becomes an Error Response.
    ///
    /// A packet that is offered is the owner's until it reports how that ended.
    ///
    /// Spec: Core Vol 3 Part G, 2.5.2.1.
    private mutating func dropOvertaken(
        _ handles: ClosedRange<AttributeHandle>?, _ database: ServerDatabase, _ actions: inout [Action]
    ) {
        var packets = outbox[...]
        outbox = []
        if case .offered = writing, let offered = packets.popFirst() {
            outbox.append(offered)
            changedSinceOffer = changedSinceOffer.merged(with: handles)
        }
        for packet in packets {
            switch packet.kind {
            case .response(let opcode):
                guard let handles, let handle = packet.values.first(where: { handles.contains($0) }) else {
                    outbox.append(packet)
                    continue
                }
                outbox.append(errorPacket(for: opcode, overtaken(handle, by: opcode, database)))
            case .notification:
                var kept: [Update] = []
                for update in packet.updates {
                    if let failure = failure(of: update.value.handle, overtakenBy: handles) {
                        actions.append(.notified(update.id, failure: failure))
                    } else {
                        kept.append(update)
                    }
                }
                if let packet = Packet(kept) { outbox.append(packet) }
            case .indication:
                guard let indication, let failure = failure(of: indication, overtakenBy: handles) else {
                    outbox.append(packet)
                    continue
                }
                if let id = indication.id { actions.append(.finish(id, failure: failure)) }
                pendingChange = pendingChange.merged(with: indication.change)
                self.indication = nil
            }
        }
    }

    /// The refusal of a request whose response waits for room, and contains the value of an attribute that is affected
    /// by a change of the services.
    private func overtaken(
        _ handle: AttributeHandle, by opcode: ATTOpcode, _ database: ServerDatabase
    ) -> Refusal {
        switch opcode {
        case .readByTypeRequest, .findByTypeValueRequest:
            // The server has found the handle. There may be other attributes for a response, so no error that means
            // that there is none is true.
            Refusal(code: .unlikelyError, handle: handle)
        default: overtaken(handle, database)
        }
    }

    private func failure(
        of handle: AttributeHandle, overtakenBy handles: ClosedRange<AttributeHandle>?
    ) -> UpdateFailure? {
        if let handles, handles.contains(handle) { return .withdrawn }
        return isInSync ? nil : .outOfSync
    }

    private func failure(
        of indication: Indication, overtakenBy handles: ClosedRange<AttributeHandle>?
    ) -> UpdateFailure? {
        let failure = failure(of: indication.handle, overtakenBy: handles)
        return indication.isServiceChanged && failure == .outOfSync ? nil : failure
    }
}

// MARK: - The client and its link

extension GATTServer {
    /// Sets the security of the link, before the next packet that was received at it.
    package mutating func securityChanged(
        _ security: ClientSecurity, in database: ServerDatabase, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard !isClosed else { return actions }
        self.security = security
        if security.isProven {
            let isNew = !isProven
            isProven = true
            if let record = dormant.take() {
                putInForce(record, database, &actions)
                recordChanged(database, now, &actions)
            } else if isNew {
                recordChanged(database, now, &actions)
            }
        }
        proceed(database, &actions)
        return actions
    }

    /// Passes the stored record of the client, as soon as it has been identified. It is in force once the client
    /// encrypts the link with the key of its bond.
    ///
    /// - Parameter isNewBond: Whether the client has got another bond: its sign counters begin again.
    package mutating func identified(
        _ record: ClientRecord, isNewBond: Bool = false, in database: ServerDatabase, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard !isClosed else { return actions }
        signCounter = isNewBond ? record.signCounter : max(signCounter, record.signCounter)
        if security.isProven {
            putInForce(record, database, &actions)
            recordChanged(database, now, &actions)
        } else {
            dormant = record
        }
        proceed(database, &actions)
        return actions
    }

    private mutating func putInForce(
        _ record: ClientRecord, _ database: ServerDatabase, _ actions: inout [Action]
    ) {
        features |= record.features & Feature.known
        pendingChange = pendingChange.merged(with: record.pendingChange)
        if record.checksum != database.checksum { pendingChange = 1...AttributeHandle.max }
        if !record.isAware || record.checksum != database.checksum {
            becomeUnaware()
            dropOvertaken(nil, database, &actions)
        }
        for (handle, bits) in record.configurations.sorted(by: { $0.key < $1.key }) where !written.contains(handle) {
            guard case .clientConfiguration(let value, let permitted)? = database[handle]?.role else { continue }
            configure(handle, value, bits.intersection(permitted), isRestored: true, &actions)
        }
    }

    /// The record of the client to store, if it has proven to be the one that has bonded; else what was stored of it.
    package func record(_ database: ServerDatabase) -> ClientRecord {
        var record = dormant ?? ClientRecord(checksum: database.checksum)
        record.signCounter = signCounter
        guard isProven else { return record }
        record.configurations = configurations.mapValues { $0.bits }
        record.features = features
        record.isAware = awareness == .aware
        record.pendingChange = pendingChange.merged(with: indication?.change)
        return record
    }

    private mutating func recordChanged(
        _ database: ServerDatabase, _ now: BootInstant, _ actions: inout [Action]
    ) {
        guard isProven else { return }
        switch storing {
        case .stored(let time) where now < time + limits.storePause: storing = .due(time + limits.storePause)
        case .idle, .stored:
            actions.append(.store(record(database)))
            storing = .stored(now)
        case .due: return
        }
    }

    /// Takes over the MTU of the link, once this side's own exchange is over: both roles share it, and the smallest of
    /// all values counts.
    package mutating func mtuExchanged(_ size: UInt16) {
        mtu = max(ATTQueue.defaultMTU, min(size, limits.mtu))
    }

    /// The number of bytes that the client makes the server keep: packets, values and commands.
    package var heldBytes: Int {
        var count = commandBytes + prepared.byteCount + (snapshot?.value.count ?? 0)
        for packet in outbox { count += packet.bytes.count }
        for indication in waiting { count += indication.value.count }
        if case .open(let operation) = slot {
            for case .success(let value) in operation.known.values.values { count += value.count }
        }
        return count
    }

    /// When `timePassed` is due.
    package var nextDeadline: BootInstant? {
        guard !isClosed else { return nil }
        var deadline = indication?.deadline
        func add(_ other: BootInstant) { deadline = min(deadline ?? other, other) }
        if case .open(let operation) = slot { add(operation.deadline) }
        for command in commands { add(command.deadline) }
        if case .due(let time) = storing { add(time) }
        return deadline
    }

    /// Performs what is due.
    package mutating func timePassed(in database: ServerDatabase, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        guard !isClosed else { return actions }
        if let deadline = indication?.deadline, deadline <= now {
            close(.confirmationTimeout, database, &actions)
            return actions
        }
        if case .open(let operation) = slot, operation.deadline <= now {
            statistics.handlerTimeouts += 1
            if case .executeWriteRequest = operation.packet { prepared.removeAll() }
            let refusal = Refusal(code: .unlikelyError, handle: operation.askedHandle)
            respond(to: operation.packet.opcode, .failure(refusal))
        }
        for command in commands where command.deadline <= now {
            statistics.handlerTimeouts += 1
            commandBytes -= command.packet.commandSize
            actions.append(.dropped(command.packet.commandHandle))
        }
        commands.removeAll { $0.deadline <= now }
        if case .due(let time) = storing, time <= now {
            actions.append(.store(record(database)))
            storing = .stored(now)
        }
        proceed(database, &actions)
        return actions
    }

    /// Ends everything with the link: subscriptions, indications, and what the client has prepared.
    package mutating func ended(in database: ServerDatabase) -> [Action] {
        var actions: [Action] = []
        end(.closed, database, &actions)
        return actions
    }

    private mutating func close(
        _ reason: CloseReason, _ database: ServerDatabase, _ actions: inout [Action]
    ) {
        end(reason == .confirmationTimeout ? .timedOut : .closed, database, &actions)
        actions.append(.close(reason))
    }

    private mutating func end(
        _ failure: UpdateFailure, _ database: ServerDatabase, _ actions: inout [Action]
    ) {
        guard !isClosed else { return }
        if case .due = storing { actions.append(.store(record(database))) }
        if let id = indication?.id { actions.append(.finish(id, failure: failure)) }
        indication = nil
        for packet in outbox { finish(packet, .closed, &actions) }
        finishWaiting(.closed, &actions) { _ in true }
        for (_, configured) in configurations.sorted(by: { $0.key < $1.key }) {
            actions.append(.configured(configured.value, [], isRestored: false))
        }
        configurations = [:]
        written = []
        dormant = nil
        slot = .free
        commands = []
        commandBytes = 0
        prepared.removeAll()
        snapshot = nil
        outbox = []
        changedSinceOffer = nil
        isClosed = true
    }
}

// MARK: - Handing the link over

extension GATTServer {
    /// The state of a client that the next owner of its link needs.
    package struct Remains: Hashable, Sendable {
        /// An indication that the client has not confirmed.
        package struct Indication: Hashable, Sendable {
            package var handle: AttributeHandle
            /// A Boolean value that indicates whether it reports the latest change of the services.
            package var isServiceChanged: Bool
            /// The handles of that change.
            package var change: ClosedRange<AttributeHandle>?
            /// When the client must have confirmed it.
            package var deadline: BootInstant

            package init(
                handle: AttributeHandle, isServiceChanged: Bool, change: ClosedRange<AttributeHandle>?,
                deadline: BootInstant
            ) {
                self.handle = handle
                self.isServiceChanged = isServiceChanged
                self.change = change
                self.deadline = deadline
            }
        }

        /// The largest packet that may be sent.
        package var mtu = ATTQueue.defaultMTU
        /// The largest packet that the client was offered to send.
        package var offeredMTU = ATTQueue.largestMTU
        package var isMTUExchanged = false
        /// A Boolean value that indicates whether the link is encrypted.
        package var isEncrypted = false
        /// The configurations that are not 0, by the handles of the descriptors.
        package var configurations: [AttributeHandle: GATTDescriptor.ClientConfiguration] = [:]
        /// The configurations that the client has written on this link.
        package var written: Set<AttributeHandle> = []
        package var features: UInt8 = 0
        package var awareness = Awareness.aware
        package var pendingChange: ClosedRange<AttributeHandle>?
        package var signCounter: UInt32 = 0
        package var prepared: [ATTPrepareWriteRequest] = []
        /// A Boolean value that indicates whether the services have changed since the first prepared write.
        package var isPreparedStale = false
        package var indication: Indication?

        package init() {}
    }

    /// A Boolean value that indicates whether the link can be handed over: no response is due, no command is
    /// unfinished, and nothing waits for room.
    package var isSettled: Bool {
        guard !isClosed, outbox.isEmpty, commands.isEmpty, case .free = slot else { return false }
        return true
    }

    /// Returns the state of the client; `nil` while the link cannot be handed over. Indications that were not sent are
    /// not part of it.
    package var remains: Remains? {
        guard isSettled else { return nil }
        var remains = Remains()
        remains.mtu = mtu
        remains.offeredMTU = limits.mtu
        remains.isMTUExchanged = isMTUExchanged
        remains.isEncrypted = security.isEncrypted
        remains.configurations = configurations.mapValues { $0.bits }
        remains.written = written
        remains.features = features
        remains.awareness = awareness
        remains.pendingChange = pendingChange
        remains.signCounter = signCounter
        remains.prepared = prepared.parts
        remains.isPreparedStale = prepared.isStale
        if let indication, let deadline = indication.deadline {
            remains.indication = Remains.Indication(
                handle: indication.handle,
                isServiceChanged: indication.isServiceChanged && !indication.isOvertaken,
                change: indication.change, deadline: deadline)
        }
        return remains
    }

    /// Continues with a link that another server has left. `resume` reports its subscriptions. The services in `change`
    /// differ from those of the other server.
    package init(
        limits: Limits, remains: Remains, change: ClosedRange<AttributeHandle>?, in database: ServerDatabase,
        at now: BootInstant
    ) {
        self.init(limits: limits)
        mtu = max(ATTQueue.defaultMTU, min(remains.mtu, limits.mtu))
        isMTUExchanged = remains.isMTUExchanged
        features = remains.features & Feature.known
        awareness = remains.awareness
        pendingChange = remains.pendingChange
        signCounter = remains.signCounter
        for part in remains.prepared { _ = prepared.append(part) }
        if remains.isPreparedStale { prepared.databaseChanged() }
        func isKept(_ handle: AttributeHandle) -> Bool { change?.contains(handle) != true }
        written = remains.written.filter(isKept)
        for (handle, bits) in remains.configurations where isKept(handle) {
            guard case .clientConfiguration(let value, let permitted)? = database[handle]?.role else { continue }
            let kept = bits.intersection(permitted)
            if !kept.isEmpty { configurations[handle] = Configured(value: value, bits: kept) }
        }
        if let former = remains.indication {
            indication = Indication(
                id: nil, handle: former.handle, value: [], change: former.change,
                isServiceChanged: former.isServiceChanged,
                deadline: min(former.deadline, now + limits.confirmationTime))
        }
        guard let change else { return }
        becomeUnaware()
        prepared.databaseChanged(change)
        let isSubscribed =
            database.handle(of: ServiceChanged.uuid).map { !configuration(of: $0, in: database).isEmpty } ?? false
        if remains.isEncrypted || isSubscribed { pendingChange = pendingChange.merged(with: change) }
    }

    /// Reports the subscriptions that the client had before the link was handed over, and sends what is due.
    package mutating func resume(in database: ServerDatabase) -> [Action] {
        var actions: [Action] = []
        for (_, configured) in configurations.sorted(by: { $0.key < $1.key }) {
            actions.append(.configured(configured.value, configured.bits, isRestored: true))
        }
        proceed(database, &actions)
        return actions
    }
}
