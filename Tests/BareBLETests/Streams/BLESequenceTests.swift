import BareBLETestKit
import Testing

@testable import BLELinux
@testable import BareBLE

/// The iterator that the sequences share. Streams end before they are read, so that no test waits.
@Suite(.timeLimit(.minutes(10))) struct BLESequenceTests {
    private typealias Iterator = BLESequence<String>.AsyncIterator

    /// A full buffer of two, which has dropped "a" and "b".
    private func overrun(_ failure: BLEError? = nil) -> StreamBuffer<String> {
        let buffer = StreamBuffer<String>(of: nil, capacity: 2, policy: .dropOldest)
        for element in ["a", "b", "c", "d"] { buffer.yield(element) }
        buffer.finish(failure)
        return buffer
    }

    private func all(_ iterator: Iterator) async throws -> [String] {
        var (iterator, elements): (Iterator, [String]) = (iterator, [])
        while let element = try await iterator.next() { elements.append(element) }
        return elements
    }

    private let token = LifetimeToken {}

    @Test func lossesCanBeLeftOut() async throws {
        #expect(try await all(Iterator(overrun(), until: token)) == ["c", "d"])
    }

    @Test func lossesCanBeAnElementOfTheirOwn() async throws {
        let iterator = Iterator(overrun(), until: token, losses: .before { "\($0) lost" })
        #expect(try await all(iterator) == ["2 lost", "c", "d"])
    }

    @Test func lossesCanBeInTheNextElement() async throws {
        let iterator = Iterator(overrun(), until: token, losses: .within { "\($0) after \($1)" })
        #expect(try await all(iterator) == ["c after 2", "d"])
    }

    // MARK: Receivers

    /// What reaches a receiver, with the losses before it; "end" at the end.
    private func received(_ buffer: StreamBuffer<String>, _ more: () -> Void = {}) -> [String] {
        let lines = Lock<[String]>([])
        buffer.forward { entry in
            let line = entry.map { "\($0.element) after \($0.droppedBefore)" } ?? "end"
            lines.withLock { $0.append(line) }
        }
        more()
        return lines.withLock { $0 }
    }

    @Test func aReceiverGetsWhatWaitsAndTheEnd() {
        #expect(received(overrun()) == ["c after 2", "d after 0", "end"])
    }

    @Test func aReceiverGetsEachElementWithinTheCallThatAddsIt() {
        let buffer = StreamBuffer<String>(of: nil, capacity: 2, policy: .dropOldest)
        buffer.yield("a")
        let lines = received(buffer) {
            // None of them waits, so none is dropped.
            for element in ["b", "c", "d"] { buffer.yield(element) }
        }
        #expect(lines == ["a after 0", "b after 0", "c after 0", "d after 0"])
        #expect(buffer.waitingCount == 0)
        buffer.finish()
    }

    @Test func aReceiverGetsTheEndOnce() {
        let buffer = StreamBuffer<String>(of: nil, capacity: 2, policy: .dropOldest)
        let lines = received(buffer) {
            buffer.yield("a")
            buffer.finish()
            buffer.finish()
            buffer.yield("b")
        }
        #expect(lines == ["a after 0", "end"])
    }

    // MARK: Sequences of events

    @Test func eventsWaitFromTheCreationOfTheSequenceOn() async throws {
        let broadcaster = EventBroadcaster<String>(capacity: 2)
        broadcaster.report("before")
        let sequence = broadcaster.events(losses: .before { "\($0) lost" })
        for event in ["a", "b", "c"] { broadcaster.report(event) }
        let first = sequence.makeAsyncIterator()
        let second = sequence.makeAsyncIterator()
        broadcaster.report("d")
        broadcaster.finish()
        #expect(try await all(first) == ["2 lost", "c", "d"])
        #expect(try await all(second) == ["d"], "it begins at its own creation")
        #expect(try await all(sequence.makeAsyncIterator()).isEmpty)
    }

    @Test func theEndIsKnownToASequenceThatIsIteratedAfterIt() async throws {
        let broadcaster = EventBroadcaster<String>(capacity: 2)
        let sequence = broadcaster.events(losses: .none)
        broadcaster.report("a")
        broadcaster.finish()
        #expect(try await all(sequence.makeAsyncIterator()) == ["a"])
    }

    private final class Payload: Sendable {}

    private struct Reference {
        weak var payload: Payload?

        var isKept: Bool { payload != nil }
    }

    /// In a function of its own, so that nothing else holds them when it has returned.
    private func reported(_ count: Int, by broadcaster: EventBroadcaster<Payload>) -> [Reference] {
        (0..<count).map { _ in
            let payload = Payload()
            broadcaster.report(payload)
            return Reference(payload: payload)
        }
    }

    @Test func aSequenceThatIsNeverIteratedKeepsFewEventsAndReleasesThem() {
        let broadcaster = EventBroadcaster<Payload>(capacity: 2)
        var sequence: BLESequence<Payload>? = broadcaster.events(losses: .none)
        let references = reported(10_000, by: broadcaster)
        // The buffer releases what it has dropped from time to time.
        let kept = references.filter(\.isKept)
        #expect(kept.count < 200 && references.suffix(2).map(\.isKept) == [true, true])
        withExtendedLifetime(sequence) {}
        sequence = nil
        let leaked = references.filter(\.isKept)
        #expect(leaked.isEmpty)
    }

    @Test func anIteratorTakesTheWaitingEventsOverFromItsSequence() {
        let broadcaster = EventBroadcaster<Payload>(capacity: 2)
        let sequence = broadcaster.events(losses: .none)
        let references = reported(1, by: broadcaster)
        var iterator: BLESequence<Payload>.AsyncIterator? = sequence.makeAsyncIterator()
        #expect(references.map(\.isKept) == [true])
        withExtendedLifetime(iterator) {}
        iterator = nil
        #expect(references.map(\.isKept) == [false])
        withExtendedLifetime(sequence) {}
    }

    /// The excluded devices of a scan may change while results wait.
    @Test func anElementIsLeftOutWhenItsTurnHasCome() async throws {
        let buffer = overrun()
        let isOpen = Lock(true)
        var iterator = Iterator(where: { _ in isOpen.withLock { $0 } }) { () async throws(BLEError) in
            try await buffer.nextBatch()
        }
        #expect(try await iterator.next() == "c")
        isOpen.withLock { $0 = false }
        #expect(try await iterator.next() == nil)
    }

    @Test func aLossIsReportedThoughTheNextElementIsLeftOut() async throws {
        let buffer = overrun()
        let iterator = Iterator(losses: .before { "\($0) lost" }, where: { $0 != "c" }) { () async throws(BLEError) in
            try await buffer.nextBatch()
        }
        #expect(try await all(iterator) == ["2 lost", "d"])
    }

    @Test func theErrorComesOnceAfterTheElements() async throws {
        let failure = BLEError(.disconnected, during: "read", because: "the link is lost")
        var iterator = Iterator(overrun(failure), until: token)
        #expect(try await iterator.next() == "c")
        #expect(try await iterator.next() == "d")
        let error = await #expect(throws: BLEError.self) { try await iterator.next() }
        #expect(error == failure)
        #expect(try await iterator.next() == nil)
    }

    @Test func aLoopThrowsTheTypedError() async {
        let sequence = BLESequence(overrun(BLEError(.valuesLost, during: "read", because: "")), until: token)
        var elements: [String] = []
        do throws(BLEError) {
            for try await element in sequence { elements.append(element) }
            Issue.record("it ended without an error")
        } catch {
            #expect(error.code == .valuesLost)
        }
        #expect(elements == ["c", "d"])
    }

    @Test func theSequenceAndItsIteratorsKeepTheirSource() async throws {
        let hasEnded = Lock(false)
        var sequence: BLESequence<String>? = BLESequence(
            overrun(), until: LifetimeToken { hasEnded.withLock { $0 = true } })
        var iterator = sequence?.makeAsyncIterator()
        sequence = nil
        #expect(try await iterator?.next() == "c")
        #expect(!hasEnded.withLock { $0 })
        iterator = nil
        #expect(hasEnded.withLock { $0 })
    }

    /// Each element brings the next one, so the buffer is never empty.
    @Test func aCancelledLoopEndsThoughElementsKeepComing() async throws {
        let buffer = StreamBuffer<Int>(of: nil, capacity: 4, policy: .dropOldest)
        buffer.yield(0)
        let consumer = Task { [token] in
            var iterator = BLESequence<Int>.AsyncIterator(buffer, until: token)
            var count = 0
            while let element = try await iterator.next(), count < 1_000 {
                count += 1
                if count == 10 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                buffer.yield(element + 1)
            }
            return count
        }
        // The tenth element is followed by what it brought.
        #expect(try await consumer.value == 11)
    }

    @Test func whatWaitsIsStillDeliveredToACancelledLoop() async throws {
        let buffer = StreamBuffer<String>(of: nil, capacity: 8, policy: .dropOldest)
        for elements in [["a", "b"], ["c"]] {
            for element in elements { buffer.yield(element) }
            let consumer = Task { [token] in
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return try await all(Iterator(buffer, until: token))
            }
            #expect(try await consumer.value == elements)
        }
    }
}
