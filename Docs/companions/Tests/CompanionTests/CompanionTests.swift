import Combine
import CoreBluetooth
import OSLog
import Testing
import os.log

@testable import os

@Suite struct CompanionTests {
    @Test func messagesAreWritten() {
        let log = OSLog(subsystem: "com.example", category: "test")
        os_log("device %{public}@ has %d services", log: log, type: .info, CBUUID(string: "180D"), 3)
        os_log(.error, log: log, "failed")
        Logger(subsystem: "com.example", category: "test").info("value \(7, privacy: .public)")
        #expect(log.isEnabled(type: .error))
        #expect(!OSLog.disabled.isEnabled(type: .fault))
    }

    @Test(
        arguments: [
            ("%d of %ld", [1, 2], "1 of 2"), ("%{public}@ is %{private, mask.hash}s", ["a", "b"], "a is b"),
            ("%s", [7], "7"), ("%@", [7], "7"), ("%d", ["seven"], "seven"), ("%f", [7], "7"), ("%d", [1.5], "1.5"),
            ("%.2f %5.1f|%-5d|%05d", [1.0, 2.25, 3, 4], "1.00   2.2|3    |00004"),
            ("0x%08x %X %o", [0xAB, UInt8(0xCD), 8], "0x000000ab CD 10"),
            ("%x %u", [Int8(-1), Int32(-1)], "ffffffff 4294967295"),
            ("%llu", [UInt64.max], "18446744073709551615"), ("%d %d", [1], "1 <missing>"), ("%d", [1, 2], "1"),
            ("100 %%, %", [], "100 %, %"), ("%c%5s|%-5s|%.2s", [65, "b", "c", "def"], "A    b|c    |de"),
            ("%*d|%-*s|", [4, 7, 3, "x"], "   7|x  |"), ("%s", [CBUUID(string: "180D")], "180D"), ("%y %", [1], "1 %"),
        ] as [(String, [any CVarArg], String)])
    func argumentsAreWrittenByTheirTypes(_ format: String, _ arguments: [any CVarArg], _ text: String) {
        #expect(LogFormat.text(format, arguments) == text)
    }

    @Test func aPointerToCharactersIsText() {
        "text".withCString { #expect(LogFormat.text("%s", [$0]) == "text") }
    }

    @Test func aLockGuardsItsValue() {
        let lock = OSAllocatedUnfairLock(initialState: 0)
        DispatchQueue.concurrentPerform(iterations: 100) { _ in lock.withLock { $0 += 1 } }
        #expect(lock.withLock { $0 } == 100)
    }

    @Test func anUnfairLockExcludesOtherThreads() {
        let counter = Counter()
        DispatchQueue.concurrentPerform(iterations: 100) { _ in counter.increment() }
        #expect(counter.count == 100)
        let attempts = [os_unfair_lock_trylock(&counter.lock), os_unfair_lock_trylock(&counter.lock)]
        os_unfair_lock_unlock(&counter.lock)
        #expect(attempts == [true, false])
    }

    @Test func publishersMerge() {
        let (one, two) = (PassthroughSubject<Int, Never>(), PassthroughSubject<Int, Never>())
        var values: [Int] = []
        let cancellable = one.merge(with: two).sink { values.append($0) }
        one.send(1)
        two.send(2)
        one.send(3)
        cancellable.cancel()
        #expect(values == [1, 2, 3])
    }

    @Test func eachSubscriberReceivesEachStateOnce() async {
        let queue = DispatchQueue(label: "test")
        let manager = CBCentralManager(delegate: nil, queue: queue)
        let received = OSAllocatedUnfairLock<[[CBManagerState]]>(initialState: [[], [], []])
        let publisher = manager.publisher(for: \.state)
        let cancellables = (0..<3).map { index in
            publisher.sink { state in received.withLock { $0[index].append(state) } }
        }
        let waiting = OSAllocatedUnfairLock<CheckedContinuation<Void, Never>?>(uncheckedState: nil)
        var observation: NSKeyValueObservation?
        await withCheckedContinuation { continuation in
            waiting.withLock { $0 = continuation }
            observation = manager.observe(\.state, options: [.initial, .new]) { manager, _ in
                guard manager.state != .unknown else { return }
                let continuation = waiting.withLock { waiting in
                    defer { waiting = nil }
                    return waiting
                }
                continuation?.resume()
            }
        }
        // The end of the block that changes the state.
        queue.sync {}
        for cancellable in cancellables { cancellable.cancel() }
        for states in received.withLock({ $0 }) {
            #expect(states.last == manager.state)
            #expect(zip(states, states.dropFirst()).allSatisfy { $0 != $1 })
        }
        _ = observation
    }

    @Test func aStateIsPublished() async {
        let manager = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "test"))
        let states = await withCheckedContinuation { continuation in
            let kept = OSAllocatedUnfairLock<(states: [CBManagerState], cancellable: AnyCancellable?)>(
                uncheckedState: ([], nil))
            let cancellable = manager.publisher(for: \.state).sink { state in
                let states = kept.withLock { kept in
                    kept.states.append(state)
                    return kept.states
                }
                if states.last != .unknown { continuation.resume(returning: states) }
            }
            kept.withLock { $0.cancellable = cancellable }
        }
        #expect(states.last == manager.state)
    }
}

/// A counter with a lock, as programs for Apple's systems write it.
private final class Counter: @unchecked Sendable {
    var lock = os_unfair_lock()
    private(set) var count = 0

    func increment() {
        os_unfair_lock_lock(&lock)
        count += 1
        os_unfair_lock_unlock(&lock)
    }
}
