import BLECore
import Testing

/// Responses to a discovery that were good once.
@Suite struct GATTDiscoveryDamageTests {
    /// Every prefix of good responses, and every byte of them changed: an outcome each time, and never a trap.
    @Test func damagedResponsesEndInAnOutcome() throws {
        let good = [
            "11 06 0100 0800 0F18 0900 0C00 0018", "01 10 0D00 0A", "09 07 0200 10 0300 192A 0A00 02 0B00 002A",
            "05 01 0400 0229 0500 0228 0600 0328 0700 0028", "09 08 0500 0900 0C00 0018", "01 08 0600 0A",
        ].map { $0.replacing(" ", with: "") }
        for place in good.indices {
            let bytes = try Hex.decode(good[place])
            var variants = (1..<bytes.count).map { Array(bytes.prefix($0)) }
            for index in 1..<bytes.count {
                for change in [0x01, 0x80, 0xFF] as [UInt8] {
                    var variant = bytes
                    variant[index] ^= change
                    variants.append(variant)
                }
            }
            for variant in variants {
                let responses = good.prefix(place) + [Hex.encode(variant)] + good.dropFirst(place + 1)
                for level in DiscoveryLevel.allCases { runToTheEnd(Array(responses), level: level) }
            }
        }
    }

    /// Whatever is requested after the script gets a response with Attribute Not Found.
    private func runToTheEnd(_ responses: [String], level: DiscoveryLevel) {
        var discovery = GATTDiscovery(level: level, mtu: 23)
        var left = responses[...]
        var step = discovery.begin()
        for _ in 0..<1_000 {
            guard case .send(let request) = step else { return }
            let opcode = ATTOpcode(rawValue: request.first ?? 0)
            let notFound = ATTErrorResponse(requestOpcode: opcode, handle: 1, code: .attributeNotFound)
            guard let response = left.popFirst(), let bytes = try? Hex.decode(response),
                let reply = try? ATTReply(bytes)
            else {
                step = discovery.received(.error(notFound))
                continue
            }
            step = discovery.received(reply)
        }
        Issue.record("\(responses) never ends")
    }
}
