import BLECapture
import BLECore
import Testing

/// Plays the conformance dialogues against the machines that they speak of: what the machine sends must be the file's
/// next `<` line, and its end what the file expects.
@Suite("Conformance dialogues")
struct DialogueConformanceTests {
    /// What became of one operation: `ok`, or `att-error` and the byte.
    typealias Outcome = String

    @Test(
        "Each operation sends the file's requests and ends as it says",
        arguments: [
            "gar-cl-bv-01-c", "gar-cl-bi-01-c", "gar-cl-bi-03-c", "gar-cl-bi-06-c", "gar-cl-bi-12-c", "gar-cl-bi-18-c",
            "gar-cl-bv-03-c-2", "gar-cl-bv-04-c-512b-fixed", "gar-cl-bv-05-c", "gaw-cl-bi-02-c", "gaw-cl-bi-07-c",
            "gaw-cl-bv-03-c", "gaw-cl-bv-05-c", "gaw-cl-bv-06-c", "nimble-mtu-23-512",
            "nimble-read-long-exact-multiple-22-empty-blob",
        ])
    func eachOperationSendsTheRequestsOfItsFile(_ name: String) throws {
        let dialogue = try Dialogue(try CaptureFixtures.text("att/\(name).dialogue"))
        let expected = try #require(dialogue.header("expect"))
        #expect(try outcome(of: dialogue) == expected)
    }

    private func outcome(of dialogue: Dialogue) throws -> Outcome {
        let mtu = UInt16(dialogue.initialMTU)
        func number(_ name: String) throws -> UInt16 {
            let text = try #require(dialogue.header(name))
            return try #require(text.hasPrefix("0x") ? UInt16(text.dropFirst(2), radix: 16) : UInt16(text))
        }
        func value() throws -> [UInt8] { try Hex.decode(try #require(dialogue.header("value"))) }
        switch try #require(dialogue.header("operation")) {
        case "read", "read-long": return try run(ReadLong(handle: try number("handle"), mtu: mtu), dialogue)
        case "read-by-uuid":
            let uuid = try #require(dialogue.header("uuid").flatMap { BluetoothUUID($0) })
            return try run(ReadByUUID(uuid, in: try number("start")...number("end"), mtu: mtu), dialogue)
        case "read-multiple":
            let handles = try #require(dialogue.header("handles")).split(separator: ", ")
                .compactMap { UInt16($0.dropFirst(2), radix: 16) }
            return try run(ReadMultiple(handles: handles, mtu: mtu), dialogue)
        case "write":
            return try run(WriteRequest(handle: try number("handle"), value: try value(), mtu: mtu), dialogue)
        case "write-long", "reliable-write":
            return try run(WriteLong(handle: try number("handle"), value: try value(), mtu: mtu), dialogue)
        case "exchange-mtu": return try run(MTUExchange(offer: try number("client-rx-mtu")), dialogue)
        default: return "unknown operation"
        }
    }

    private func run<Procedure: GATTProcedure>(_ procedure: Procedure, _ dialogue: Dialogue) throws -> Outcome {
        var procedure = procedure
        var steps = dialogue.steps[...]
        var step = procedure.begin()
        while case .send(let request) = step {
            guard let line = steps.popFirst(), let next = steps.popFirst() else { return "the file ends too early" }
            #expect(line.event == .sent(request), "line \(line.line)")
            guard case .received(let reply) = next.event else { return "no reply" }
            if let error = try? ATTErrorResponse(reply) {
                step = procedure.received(.error(error))
            } else {
                step = procedure.received(.response(reply))
            }
        }
        #expect(steps.isEmpty, "the file goes on")
        switch step {
        case .finished: return "ok"
        case .failed(.att(_, _, let code)): return "att-error 0x\(Hex.encode([code.rawValue]))"
        case .failed(let failure): return "\(failure)"
        case .send: return "unfinished"
        }
    }
}
