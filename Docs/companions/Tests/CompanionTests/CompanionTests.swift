import Combine
import CoreBluetooth
import OSLog
import Testing
import os.log

@Suite struct CompanionTests {
    @Test func messagesAreWritten() {
        let log = OSLog(subsystem: "com.example", category: "test")
        os_log("device %{public}@ has %d services", log: log, type: .info, CBUUID(string: "180D"), 3)
        os_log(.error, log: log, "failed")
        Logger(subsystem: "com.example", category: "test").info("value \(7, privacy: .public)")
        #expect(log.isEnabled(type: .error))
        #expect(!OSLog.disabled.isEnabled(type: .fault))
    }

    @Test func aLockGuardsItsValue() {
        let lock = OSAllocatedUnfairLock(initialState: 0)
        DispatchQueue.concurrentPerform(iterations: 100) { _ in lock.withLock { $0 += 1 } }
        #expect(lock.withLock { $0 } == 100)
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
