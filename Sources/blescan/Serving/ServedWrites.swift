import BLECore
import BLELinux
import BareBLE

/// The stored values as centrals have written them, until the events of the writes are printed: by then, the database may
/// have later ones.
final class ServedWrites: Sendable {
    private struct Place: Hashable {
        let central: ConnectedCentral.ID
        let handle: AttributeHandle
    }

    private struct State {
        var values: [Place: [[UInt8]]] = [:]
        var count = 0
    }

    /// The maximum number of values: more than events that wait.
    static let limit = 1_024

    private let state = Lock(State())

    /// Adds the value that a write has left. Without room, all are forgotten.
    func add(_ value: [UInt8], by central: ConnectedCentral.ID, to handle: AttributeHandle) {
        state.withLock { state in
            if state.count >= Self.limit { state = State() }
            state.values[Place(central: central, handle: handle), default: []].append(value)
            state.count += 1
        }
    }

    /// Returns the value of the next write of a central to an attribute; `nil` if it was forgotten.
    func take(by central: ConnectedCentral.ID, to handle: AttributeHandle) -> [UInt8]? {
        let place = Place(central: central, handle: handle)
        return state.withLock { state in
            guard var values = state.values[place], !values.isEmpty else { return nil }
            let value = values.removeFirst()
            state.values[place] = values.isEmpty ? nil : values
            state.count -= 1
            return value
        }
    }

    /// Forgets all, because events were dropped: which values are theirs is not known.
    func removeAll() { state.withLock { $0 = State() } }
}
