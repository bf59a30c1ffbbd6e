// The peer has one queue for prepared writes, and what is left in it would be written by whoever executes it next. So the
// operations that fill it take turns.

extension GATTClient {
    func holdsPreparedQueue(_ id: OperationID) -> Bool {
        if case .held(id, _) = prepared { true } else { false }
    }

    func awaitsPreparedQueue(_ id: OperationID) -> Bool {
        switch prepared {
        case .idle: false
        case .held(_, let waiting), .clearing(_, let waiting): waiting.contains(id)
        }
    }

    /// Takes the peer's queue for `id`, or makes it wait; answers whether it may begin.
    mutating func takePreparedQueue(_ id: OperationID) -> Bool {
        switch prepared {
        case .idle:
            prepared = .held(by: id, waiting: [])
            return true
        case .held(let owner, let waiting):
            prepared = .held(by: owner, waiting: waiting + [id])
            return false
        case .clearing(let request, let waiting):
            prepared = .clearing(request, waiting: waiting + [id])
            return false
        }
    }

    mutating func releasePreparedQueue(_ id: OperationID, _ actions: inout [Action], at now: BootInstant) {
        switch prepared {
        case .idle:
            return
        case .held(id, let waiting):
            passPreparedQueue(to: waiting, &actions, at: now)
        case .held(let owner, let waiting):
            prepared = .held(by: owner, waiting: waiting.filter { $0 != id })
        case .clearing(let request, let waiting):
            prepared = .clearing(request, waiting: waiting.filter { $0 != id })
        }
    }

    mutating func passPreparedQueue(
        to waiting: [OperationID], _ actions: inout [Action], at now: BootInstant
    ) {
        prepared = .idle
        guard let next = waiting.first, let operation = running[next] else { return }
        prepared = .held(by: next, waiting: Array(waiting.dropFirst()))
        advance(next, operation.begin(), &actions, at: now)
    }
}
