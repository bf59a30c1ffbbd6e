import BLECore
import Testing

/// Random events in random order: whatever the peer, the callers, the socket and the clock do, the promises hold.
@Suite struct ATTQueuePropertyTests {
    /// SplitMix64: the same seed gives the same run everywhere.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    private static let responses = ["0b", "0bff", "13", "0902", "010a030005", "0112030005", "010a", "03f700", "030000"]
    private static let others = [
        "", "1b030001", "1d030001", "1b", "1d01", "2303000100aa0400010055", "23ff", "0a0300", "021700", "02f700", "2a",
        "6a", "1e", "d2", "ff", "05", "0b" + String(repeating: "55", count: 600),
    ]

    private func packetOfThePeer(isTame: Bool, _ random: inout Generator) -> String {
        if isTame { return ["1b030001", "1d030001", "1e"].randomElement(using: &random) ?? "" }
        if Bool.random(using: &random) { return Self.others.randomElement(using: &random) ?? "" }
        let count = Int.random(in: 0...24, using: &random)
        return Hex.encode((0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func eachRequestEndsOnceInItsOrder(seed: UInt64) throws {
        var random = Generator(state: seed)
        let isTame = seed % 2 == 0
        let link = QueueOwner { limits in
            limits.isStrict = seed % 7 == 0
            if isTame { limits.unexplainedResponses = .max }
        }
        var enqueued: [(id: RequestID, mark: String, isRequest: Bool)] = []
        for step in 0..<400 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                let isRequest = Bool.random(using: &random)
                let mark = Hex.encode([UInt8(step & 0xFF), UInt8(step >> 8 | 0x10)])
                let time: Duration? =
                    Bool.random(using: &random) ? .seconds(Int.random(in: 0...40, using: &random)) : nil
                enqueued.append((link.enqueue((isRequest ? "0a" : "52") + mark, within: time), mark, isRequest))
            case 4...6:
                link.receive(Self.responses.randomElement(using: &random) ?? "")
            case 7:
                link.receive(packetOfThePeer(isTame: isTame, &random))
            case 8:
                if let victim = enqueued.randomElement(using: &random) { link.cancel(victim.id) }
            case 9:
                link.pass(.milliseconds(Int.random(in: 0...5_000, using: &random)))
            case 10:
                link.takesPackets = Bool.random(using: &random)
                if link.takesPackets { link.becomeWritable() }
            default:
                link.refusal = Bool.random(using: &random) ? 90 : nil
            }
            #expect(link.count <= 64)
            #expect(link.nextDeadline.map { $0 <= link.now + .seconds(40) } ?? true)
        }
        link.becomeWritable()
        link.lose()

        #expect(link.wrongs.isEmpty)
        #expect(link.isClosed)
        #expect(link.nextDeadline == nil)
        #expect(Set(link.finishedOrder) == Set(enqueued.map(\.id)))
        #expect(link.finishedOrder.count == enqueued.count)

        let ours = link.sent.filter { $0.count == 6 && ($0.hasPrefix("0a") || $0.hasPrefix("52")) }.map {
            $0.dropFirst(2)
        }
        var order = enqueued.map(\.mark)[...]
        for mark in ours {
            let place = try #require(order.firstIndex { $0 == mark }, "sent twice or out of order")
            order = order[(place + 1)...]
        }
        #expect(link.statistics.requestsSent - link.statistics.responses - link.statistics.lateResponses <= 1)
        #expect(link.statistics.requestsSent + link.statistics.commandsSent == ours.count)
    }
}
