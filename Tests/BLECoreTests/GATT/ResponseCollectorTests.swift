import BLECore
import Synchronization
import Testing

/// What a call collects, without a link.
@Suite struct ResponseCollectorTests {
    private func at(_ seconds: Int64) -> BootInstant { BootInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test func nothingBeforeTheRequestIsItsResponse() {
        var collector = ResponseCollector(.match { _ in true })
        collector.received([1], at: at(0))
        #expect(collector.outcome == nil)
        collector.asked()
        collector.received([2], at: at(1))
        // Before the peer's confirmation, as many do.
        #expect(collector.outcome == .matched([2]))
        collector.confirmed(at: at(2))
        collector.received([3], at: at(3))
        #expect(collector.outcome == .matched([2]))
        #expect(collector.nextDeadline == nil)
    }

    @Test func whatDoesNotMatchIsPassedOver() {
        var collector = ResponseCollector(.match { $0.first == 0x10 }, deadline: at(60))
        collector.asked()
        collector.confirmed(at: at(0))
        collector.received([], at: at(1))
        collector.received([0x11], at: at(2))
        #expect(collector.outcome == nil && collector.count == 2)
        #expect(collector.nextDeadline == at(60))
        collector.timePassed(at(59))
        #expect(collector.outcome == nil)
        collector.timePassed(at(60))
        #expect(collector.outcome == .timedOut)
    }

    @Test(arguments: [
        ([[1, 2], [3]], ResponseCollector.Outcome.assembled([1, 2, 3])),
        ([[1, 2], [3, 4]], .tooMuch),
        ([[1, 2, 3, 4]], .tooMuch),
        ([[1], [], [2], [], [3], [4]], .assembled([1, 2, 3])),
    ])
    func lengthsAreExact(parts: [[UInt8]], outcome: ResponseCollector.Outcome) {
        var collector = ResponseCollector(.assemble(.length(3)))
        collector.asked()
        collector.confirmed(at: at(0))
        for part in parts { collector.received(part, at: at(1)) }
        #expect(collector.outcome == outcome)
    }

    @Test(arguments: [
        (ResponseCount.exactly(2), [[1], [], [3]], ResponseCollector.Outcome?.some(.collected([[1], []]))),
        (.exactly(2), [[1]], ResponseCollector.Outcome?.none),
        (.until { $0.first == 3 }, [[1], [2], [3, 4], [5]], .collected([[1], [2], [3, 4]])),
        (.until(limit: 2) { $0.first == 3 }, [[1], [3]], .collected([[1], [3]])),
        (.until(limit: 2) { $0.first == 3 }, [[1], [2], [3]], .tooMuch),
    ])
    func valuesAreCollected(count: ResponseCount, values: [[UInt8]], outcome: ResponseCollector.Outcome?) {
        var collector = ResponseCollector(.collect(count), idleTime: .seconds(5), deadline: at(60))
        collector.received([9], at: at(0))
        collector.asked()
        for value in values.prefix(1) { collector.received(value, at: at(1)) }
        collector.confirmed(at: at(2))
        for value in values.dropFirst() { collector.received(value, at: at(3)) }
        #expect(collector.outcome == outcome)
        if outcome == nil { #expect(collector.nextDeadline == at(7)) }
    }

    @Test func whatMatchedBeforeTheLastPieceOfTheRequestDoesNotCount() {
        var collector = ResponseCollector(.match { _ in true })
        collector.asked()
        collector.received([1], at: at(1))
        collector.asked()
        #expect(collector.outcome == nil && collector.count == 0)
        collector.received([2], at: at(2))
        #expect(collector.outcome == .matched([2]))
    }

    @Test func anEmptyResponseIsThereWithTheConfirmation() {
        var collector = ResponseCollector(.assemble(.length(0)))
        collector.asked()
        #expect(collector.outcome == nil)
        collector.confirmed(at: at(0))
        #expect(collector.outcome == .assembled([]))
    }

    @Test func aPredicateSeesAllBytesAndHasALimit() {
        var collector = ResponseCollector(.assemble(.until(limit: 4) { $0.suffix(2) == [13, 10] }))
        collector.asked()
        collector.received([1, 13], at: at(0))
        collector.received([10], at: at(0))
        #expect(collector.outcome == .assembled([1, 13, 10]))
        var endless = ResponseCollector(.assemble(.until(limit: 4) { _ in false }))
        endless.asked()
        for byte in 0..<9 as Range<UInt8> { endless.received([byte], at: at(0)) }
        #expect(endless.outcome == .tooMuch)
        #expect(endless.bytes == [0, 1, 2, 3, 4])
    }

    @Test func silenceIsMeasuredFromTheConfirmationAndEachValue() {
        var collector = ResponseCollector(.assemble(.length(3)), idleTime: .seconds(5))
        #expect(collector.nextDeadline == nil)
        collector.asked()
        collector.received([1], at: at(3))
        #expect(collector.nextDeadline == nil)
        collector.confirmed(at: at(4))
        #expect(collector.nextDeadline == at(9))
        collector.received([2], at: at(8))
        collector.timePassed(at(9))
        #expect(collector.outcome == nil)
        #expect(collector.nextDeadline == at(13))
        collector.timePassed(at(13))
        #expect(collector.outcome == .idle)
        #expect(collector.bytes == [1, 2])
    }

    /// A peer that sends nothing, again and again, is silent.
    @Test func valuesWithoutBytesProlongNoReply() {
        final class Asked: Sendable { let count = Mutex(0) }
        let asked = Asked()
        let framing = ReplyFraming.until(limit: 4) { _ in
            asked.count.withLock { $0 += 1 }
            return false
        }
        var collector = ResponseCollector(.assemble(framing), idleTime: .seconds(10))
        collector.asked()
        collector.confirmed(at: at(0))
        collector.received([1], at: at(1))
        collector.received([], at: at(9))
        #expect(asked.count.withLock { $0 } == 1)
        #expect(collector.count == 2)
        #expect(collector.nextDeadline == at(11))
        collector.timePassed(at(11))
        #expect(collector.outcome == .idle)
        #expect(collector.bytes == [1])
    }

    @Test func theTotalTimeEndsWhatTheIdleTimeDoesNot() {
        var collector = ResponseCollector(.silence, idleTime: .seconds(2), deadline: at(5))
        collector.asked()
        collector.confirmed(at: at(0))
        for second in 1...4 as ClosedRange<Int64> { collector.received([0], at: at(second)) }
        #expect(collector.nextDeadline == at(5))
        collector.timePassed(at(5))
        #expect(collector.outcome == .timedOut)
        #expect(collector.count == 4)
    }

    @Test func silenceIsWhatADrainWants() {
        var collector = ResponseCollector(.silence, idleTime: .seconds(2), deadline: at(60))
        collector.asked()
        collector.confirmed(at: at(0))
        collector.received([0], at: at(1))
        collector.timePassed(at(3))
        #expect(collector.outcome == .silent)
        #expect(collector.count == 1)
    }

    /// The write was refused for want of security, and is made again.
    @Test func aRepeatedRequestBeginsAgain() {
        var collector = ResponseCollector(.assemble(.length(2)))
        collector.asked()
        collector.received([9], at: at(0))
        collector.asked()
        collector.received([1, 2], at: at(0))
        #expect(collector.outcome == .assembled([1, 2]))
    }
}
