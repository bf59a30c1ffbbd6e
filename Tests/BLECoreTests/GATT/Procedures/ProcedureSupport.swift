import BLECore
import Testing

/// Runs a procedure against responses written down beforehand; what it asks is kept.
struct ScriptedResponses {
    var responses: [[UInt8]]
    private(set) var requests: [[UInt8]] = []

    init(_ responses: [String]) throws {
        self.responses = try responses.map { try Hex.decode($0) }
    }

    mutating func run<Procedure: GATTProcedure>(
        _ procedure: Procedure
    ) throws -> Result<Procedure.Output, GATTFailure> {
        var procedure = procedure
        var step = procedure.begin()
        while true {
            switch step {
            case .finished(let output): return .success(output)
            case .failed(let failure): return .failure(failure)
            case .send(let request):
                requests.append(request)
                guard !responses.isEmpty else { throw ResponsesRanOut(request: Hex.encode(request)) }
                step = procedure.received(try ATTReply(responses.removeFirst()))
            }
        }
    }

    var requestTexts: [String] { requests.map { Hex.encode($0) } }
}

struct ResponsesRanOut: Error {
    var request: String
}

extension ATTReply {
    init(_ pdu: [UInt8]) throws {
        if pdu.first == ATTErrorResponse.opcode.rawValue {
            self = .error(try ATTErrorResponse(pdu))
        } else {
            self = .response(pdu)
        }
    }
}

extension Result where Failure == GATTFailure {
    var failure: GATTFailure? {
        if case .failure(let failure) = self { return failure }
        return nil
    }

    /// Whether it failed because of bytes that are not what their format asks for.
    var isMalformed: Bool {
        if case .malformed? = failure { return true }
        return false
    }
}

extension GATTFailure {
    static func att(_ request: ATTOpcode, _ handle: AttributeHandle, _ code: ATTErrorCode) -> GATTFailure {
        .att(request: request, handle: handle, code: code)
    }
}
