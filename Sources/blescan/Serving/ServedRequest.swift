import BLECore
import BLELinux
import BareBLE

/// A request of a central to read or write an attribute, and what became of it.
struct ServedRequest: Hashable, Sendable {
    /// What the response contains.
    enum Outcome: Hashable, Sendable {
        /// The value, or the part of it from this offset on; `nil` if the response has the values of several attributes
        /// without their lengths.
        case read([UInt8]?, offset: Int)
        case readRefused(ATTErrorCode)
        case written([UInt8])
        case writeRefused(ATTErrorCode)
    }

    let handle: AttributeHandle
    let outcome: Outcome
}

/// Finds the requests of a central to read and write attributes among the packets of its link.
///
/// A request counts when its response is sent. Discovery and commands, which have no response, are not among them.
struct ServedRequestReader {
    /// The request that has no response yet.
    private var request: ATTPacket?
    /// The parts of long values, which are written at once, in the order of their first parts.
    private var prepared: [(handle: AttributeHandle, offset: Int, value: [UInt8])] = []

    /// Takes a packet of the central.
    mutating func received(_ pdu: [UInt8]) {
        // A malformed one is refused, with a response that indicates that.
        guard let packet = try? ATTPacket(pdu) else { return }
        switch packet {
        case .readRequest, .readBlobRequest, .readByTypeRequest, .readMultipleRequest, .readMultipleVariableRequest,
            .writeRequest, .prepareWriteRequest, .executeWriteRequest:
            request = packet
        default: break
        }
    }

    /// Takes a packet to the central; returns the requests that it completes.
    mutating func sent(_ pdu: [UInt8]) -> [ServedRequest] {
        guard let request, let packet = try? ATTPacket(pdu) else { return [] }
        switch (request, packet) {
        case (_, .errorResponse(let error)):
            guard error.requestOpcode == request.opcode else { return [] }
            self.request = nil
            return refused(request, error)
        case (.readRequest(let request), .readResponse(let response)):
            return completed([ServedRequest(request.handle, .read(response.value, offset: 0))])
        case (.readBlobRequest(let request), .readBlobResponse(let response)):
            return completed([ServedRequest(request.handle, .read(response.part, offset: Int(request.offset)))])
        case (.readByTypeRequest(let request), .readByTypeResponse(let response)):
            guard !Self.isDeclaration(request.type) else { return completed([]) }
            return completed(response.entries.map { ServedRequest($0.handle, .read($0.value, offset: 0)) })
        case (.readMultipleRequest(let request), .readMultipleResponse):
            return completed(request.handles.map { ServedRequest($0, .read(nil, offset: 0)) })
        case (.readMultipleVariableRequest(let request), .readMultipleVariableResponse(let response)):
            return completed(
                zip(request.handles, response.values).map { ServedRequest($0, .read($1, offset: 0)) })
        case (.writeRequest(let request), .writeResponse):
            return completed([ServedRequest(request.handle, .written(request.value))])
        case (.prepareWriteRequest(let request), .prepareWriteResponse):
            prepare(request)
            return completed([])
        case (.executeWriteRequest(let request), .executeWriteResponse):
            defer { prepared = [] }
            guard request.action == .write else { return completed([]) }
            return completed(prepared.map { ServedRequest($0.handle, .written($0.value)) })
        default:
            return []
        }
    }

    private mutating func completed(_ requests: [ServedRequest]) -> [ServedRequest] {
        request = nil
        return requests
    }

    private mutating func refused(_ request: ATTPacket, _ error: ATTErrorResponse) -> [ServedRequest] {
        switch request {
        case .readByTypeRequest(let request):
            // That there are no more is the end of each search.
            guard !Self.isDeclaration(request.type), error.code != .attributeNotFound else { return [] }
            return [ServedRequest(error.handle, .readRefused(error.code))]
        case .writeRequest, .prepareWriteRequest:
            return [ServedRequest(error.handle, .writeRefused(error.code))]
        case .executeWriteRequest:
            prepared = []
            return [ServedRequest(error.handle, .writeRefused(error.code))]
        default:
            return [ServedRequest(error.handle, .readRefused(error.code))]
        }
    }

    private mutating func prepare(_ part: ATTPrepareWriteRequest) {
        let offset = Int(part.offset)
        guard let index = prepared.firstIndex(where: { $0.handle == part.handle }) else {
            return prepared.append((part.handle, offset, part.part))
        }
        // A part that begins before the others replaces them; one among them replaces what follows.
        let kept = prepared[index].value.prefix(max(0, offset - prepared[index].offset))
        prepared[index] = (part.handle, min(offset, prepared[index].offset), Array(kept) + part.part)
    }

    /// Whether attributes of a type describe the services, and have no values of their own.
    private static func isDeclaration(_ type: BluetoothUUID) -> Bool {
        [0x2800, 0x2801, 0x2802, 0x2803].contains(type)
    }
}

extension ServedRequest {
    fileprivate init(_ handle: AttributeHandle, _ outcome: Outcome) {
        self.init(handle: handle, outcome: outcome)
    }
}

/// The requests of all centrals, in the order of their responses.
final class ServedRequests: Sendable {
    /// A request, and the name of the link on which it has come.
    struct Entry: Sendable {
        let link: String
        let request: ServedRequest
    }

    /// The requests that are not taken yet; what does not fit is counted.
    let entries: AsyncStream<Entry>
    private let continuation: AsyncStream<Entry>.Continuation
    private let dropped = Lock(0)

    init() {
        (entries, continuation) = AsyncStream.makeStream(of: Entry.self, bufferingPolicy: .bufferingOldest(256))
    }

    /// Has a central report the requests of the links that others make.
    func attach(to configuration: inout Configuration) {
        configuration.traceLinks = { link in
            guard link.isInbound else { return { _ in } }
            let reader = Lock(ServedRequestReader())
            return { event in
                guard case .pdu(let pdu) = event else { return }
                guard pdu.isOutgoing else { return reader.withLock { $0.received(pdu.bytes) } }
                for request in reader.withLock({ $0.sent(pdu.bytes) }) {
                    self.add(Entry(link: link.peer, request: request))
                }
            }
        }
    }

    /// The number of requests that were dropped since the last call.
    func takeDropped() -> Int {
        dropped.withLock { count in
            defer { count = 0 }
            return count
        }
    }

    private func add(_ entry: Entry) {
        if case .dropped = continuation.yield(entry) { dropped.withLock { $0 += 1 } }
    }
}
