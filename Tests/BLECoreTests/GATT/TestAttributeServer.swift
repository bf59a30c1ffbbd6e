// The peer of the client's tests: the library's own `GATTServer`, and what a faulty peer makes of its responses.
//
// Duties: serve a `ModelDatabase` at an MTU; record the requests; alter the responses where a test needs a peer that no
// correct server is.
//
// Invariants:
// - No request is evaluated here. A response is the server's, the same altered by a quirk, or that of `intercept`.
// - What a test expects does not come from the server: it comes from the model (`ModelDatabase.differences`) or from a
//   recording, or is written in the test. An attribute that the server hides is a difference to the model.
//
// Client and server share the types of the PDUs, so a layout that is wrong in both does not show with this peer. It
// shows where other implementations are the witness: `ATTGoldenPDUs`, `GATTVectorTests`, whose reads and writes run on
// recorded responses without any server, and `GATTServerDialogueTests`.

import BLECore

/// Responds to requests from the attributes of a model.
///
/// The quirks make it wrong in one way each; `intercept` makes it wrong in any other.
struct TestAttributeServer {
    enum Quirk: Hashable {
        /// A list of services or values jumps over those of another length instead of ending in front of them.
        case skipsOtherLengths
        /// The configurations cannot be read.
        case hidesConfigurations
        /// The value of one packet counts as short: asking for more of it is Attribute Not Long.
        case refusesBlobOfOnePacket
        /// Attribute Not Found names handle 0.
        case errorsNameHandleZero
    }

    private var database: ServerDatabase
    private var server: GATTServer
    private let quirks: Set<Quirk>
    /// Called before the server; a response that it returns is sent instead.
    var intercept: (ATTPacket) -> [UInt8]? = { _ in nil }
    private(set) var requests: [ATTPacket] = []

    /// Creates a server of `model`.
    ///
    /// - Parameters:
    ///   - model: The attributes.
    ///   - mtu: The MTU that client and server have exchanged.
    ///   - queueLimit: The number of prepared writes that the server keeps.
    ///   - quirks: The ways in which it is wrong.
    init(_ model: ModelDatabase, mtu: Int = 23, queueLimit: Int = 64, quirks: Set<Quirk> = []) {
        var attributes = model.attributes.map { ServerAttribute($0) }
        if quirks.contains(.hidesConfigurations) {
            for index in attributes.indices where attributes[index].type == .clientCharacteristicConfiguration {
                attributes[index].read = nil
            }
        }
        database = ServerDatabase(attributes: attributes)
        let size = UInt16(clamping: mtu)
        var limits = GATTServer.Limits(mtu: size)
        limits.preparedWrites = queueLimit
        server = GATTServer(limits: limits)
        server.mtuExchanged(size)
        self.quirks = quirks
    }

    mutating func reply(to pdu: [UInt8]) throws -> [UInt8] {
        let packet = try ATTPacket(pdu)
        requests.append(packet)
        if let response = intercept(packet) { return response }
        return try altered(response(to: pdu), to: packet)
    }

    /// Returns the response of the server.
    private mutating func response(to pdu: [UInt8]) throws -> [UInt8] {
        var responses: [[UInt8]] = []
        var actions = server.received(pdu, in: &database, at: .zero)[...]
        while let action = actions.popFirst() {
            switch action {
            case .send(let packet):
                responses.append(packet)
                actions += server.sent(in: database, at: .zero)
            case .wrote: break
            default: throw UnexpectedAction(action: action)
            }
        }
        guard responses.count == 1, let response = responses.first else {
            throw NotOneResponse(count: responses.count)
        }
        return response
    }

    // MARK: Attributes

    func attribute(_ handle: AttributeHandle) -> ServerAttribute? { database[handle] }

    mutating func setValue(_ value: [UInt8], of handle: AttributeHandle) {
        database.setValue(value, of: handle)
    }

    /// The prepared writes that have not been executed.
    var prepared: [ATTPrepareWriteRequest] { server.remains?.prepared ?? [] }
}

extension ServerAttribute {
    /// A model has no permissions: everything can be read and written.
    fileprivate init(_ model: ModelAttribute) {
        self.init(handle: model.handle, type: model.type, value: model.value)
        writeMethods = .request
        switch model.type {
        case .primaryServiceDeclaration, .secondaryServiceDeclaration:
            role = .group(end: model.groupEnd ?? model.handle)
        default: break
        }
    }
}

// MARK: - Quirks

extension TestAttributeServer {
    private mutating func altered(_ correct: [UInt8], to packet: ATTPacket) throws -> [UInt8] {
        var response = correct
        if quirks.contains(.errorsNameHandleZero), var error = try? ATTErrorResponse(response),
            error.code == .attributeNotFound
        {
            error.handle = 0
            response = error.bytes
        }
        switch packet {
        case .readByTypeRequest(let request) where quirks.contains(.skipsOtherLengths):
            return try skippingOtherLengths(response, to: request, as: ATTReadByTypeResponse.self) { $0.handle }
        case .readByGroupTypeRequest(let request) where quirks.contains(.skipsOtherLengths):
            return try skippingOtherLengths(response, to: request, as: ATTReadByGroupTypeResponse.self) {
                $0.startHandle
            }
        case .readBlobRequest(let request) where quirks.contains(.refusesBlobOfOnePacket):
            guard let value = attribute(request.handle)?.value, value.count < Int(server.mtu) else { return response }
            return ATTErrorResponse(
                requestOpcode: .readBlobRequest, handle: request.handle, code: .attributeNotLong
            ).bytes
        default: return response
        }
    }

    /// Continues a list, which the server has ended in front of an entry of another length, with later entries of the
    /// same length.
    private mutating func skippingOtherLengths<Request: ATTTypeInRangePDU, List: ATTEntryListPDU>(
        _ correct: [UInt8], to request: Request, as type: List.Type, handle: (List.Entry) -> AttributeHandle
    ) throws -> [UInt8] {
        guard let list = try? List(correct), let first = list.entries.first, let end = list.entries.last else {
            return correct
        }
        let length = first.value.count
        let room = (Int(server.mtu) - 2) / (List.Entry.headLength + length)
        var entries: [List.Entry] = list.entries
        var last = handle(end)
        while last < request.endHandle {
            let next = Request(startHandle: last + 1, endHandle: request.endHandle, type: request.type)
            let rest = try response(to: next.bytes)
            guard let more = try? List(rest), let end = more.entries.last else { break }
            entries += more.entries.filter { $0.value.count == length }
            last = handle(end)
        }
        return List(entries: Array(entries.prefix(room))).bytes
    }
}

// MARK: - Running procedures

extension TestAttributeServer {
    /// Runs a procedure to its end against this server.
    mutating func run<Procedure: GATTProcedure>(
        _ procedure: Procedure, limit: Int = 20_000
    ) throws -> Result<Procedure.Output, GATTFailure> {
        var procedure = procedure
        var step = procedure.begin()
        for _ in 0..<limit {
            switch step {
            case .finished(let output): return .success(output)
            case .failed(let failure): return .failure(failure)
            case .send(let request):
                let answer = try reply(to: request)
                if answer.first == ATTErrorResponse.opcode.rawValue {
                    step = procedure.received(.error(try ATTErrorResponse(answer)))
                } else {
                    step = procedure.received(.response(answer))
                }
            }
        }
        throw EndlessProcedure()
    }
}

struct EndlessProcedure: Error {}

/// The server asked for something that these tests have no use for.
private struct UnexpectedAction: Error {
    let action: GATTServer.Action
}

/// The server did not send exactly one packet for a request.
private struct NotOneResponse: Error {
    let count: Int
}
