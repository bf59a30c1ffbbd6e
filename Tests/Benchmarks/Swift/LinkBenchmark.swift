import BareBLE
import Glibc

/// Communicates with the peer at a descriptor through the public interface, as a program would.
///
/// Orders: `read-loop N` and `read-task N` (one awaited read after the other, from a task on the central's loop and
/// from a task of the global pool), `notify-loop N` and `notify-task N` (the peer sends N notifications in a row; all
/// are taken from a subscription). The answer is the nanoseconds that it took, the values that came and those that were
/// dropped.
enum LinkBenchmark {
    private static let value = CharacteristicReference.handle(3)
    private static let control = CharacteristicReference.handle(6)

    static func run(descriptor: Int32) async {
        do {
            let central = Central()
            let peripheral = try await central.attach(descriptor: descriptor)
            try await peripheral.discover()
            let subscription = try await peripheral.subscribe(to: value)
            while let order = readLine() {
                let words = order.split(separator: " ")
                guard words.count == 2, let count = Int(words[1]) else { break }
                let result =
                    switch words[0] {
                    case "read-loop": try await central.run { try await read(count, from: peripheral) }
                    case "read-task": try await Task.detached { try await read(count, from: peripheral) }.value
                    case "notify-loop": try await central.run { try await take(count, of: subscription, peripheral) }
                    default: try await Task.detached { try await take(count, of: subscription, peripheral) }.value
                    }
                answer("\(result.time) \(result.values) \(result.dropped)")
            }
        } catch {
            print("error: \(error)")
            exit(1)
        }
    }

    private struct Outcome {
        var time: Int
        var values: Int
        var dropped: Int
    }

    @concurrent
    private static func read(_ count: Int, from peripheral: Peripheral) async throws -> Outcome {
        let start = ContinuousClock.now
        var bytes = 0
        for _ in 0..<count { bytes += try await peripheral.read(value).count }
        return Outcome(time: nanoseconds(since: start), values: bytes / 22, dropped: 0)
    }

    @concurrent
    private static func take(
        _ count: Int, of subscription: ValueSequence, _ peripheral: Peripheral
    ) async throws -> Outcome {
        let start = ContinuousClock.now
        let order = (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
        try await peripheral.write(order, to: control, .withoutResponse)
        var outcome = Outcome(time: 0, values: 0, dropped: 0)
        var values = subscription.makeAsyncIterator()
        while outcome.values + outcome.dropped < count, let value = try await values.next() {
            outcome.values += 1
            outcome.dropped += value.droppedBefore
        }
        outcome.time = nanoseconds(since: start)
        return outcome
    }
}
