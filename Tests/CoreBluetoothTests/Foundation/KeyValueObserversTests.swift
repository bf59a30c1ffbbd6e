import BLELinux
import Testing

@testable import CoreBluetooth

/// The observers of one object, by themselves.
@Suite(.timeLimit(.minutes(10))) struct KeyValueObserversTests {
    private final class Observed: Sendable {}

    /// Returns an observation whose handler has the last reference to another one, of the same object.
    private func nested(in observers: KeyValueObservers, _ calls: Lock<Int>) -> NSKeyValueObservation {
        let inner = observers.add(.isScanning, []) { (_: Observed, _: NSKeyValueObservedChange<Bool>) in
            calls.withLock { $0 += 1 }
        }
        return observers.add(.isScanning, []) { (_: Observed, _: NSKeyValueObservedChange<Bool>) in _ = inner }
    }

    /// On a thread of its own, because one that waits for itself never ends.
    @Test func anObservationMayHaveTheLastReferenceToAnother() {
        let (observers, calls) = (KeyValueObservers(), Lock(0))
        let outer = nested(in: observers, calls)
        observers.changed(.isScanning, on: Observed(), from: false, to: true)
        #expect(calls.withLock { $0 } == 1)
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group) { outer.invalidate() }
        guard group.wait(timeout: .now() + 60) == .success else {
            Issue.record("the observation does not end")
            return
        }
        observers.changed(.isScanning, on: Observed(), from: true, to: false)
        #expect(calls.withLock { $0 } == 1)
    }
}
