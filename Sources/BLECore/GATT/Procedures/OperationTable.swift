/// The unfinished operations of one link, in the order in which they were started.
///
/// There are usually one or two of them and at most 64, so a linear search costs less than hashing.
struct OperationTable: ~Copyable {
    private var entries: [(id: OperationID, operation: RunningOperation)] = []

    var count: Int { entries.count }
    var ids: [OperationID] { entries.map { $0.id } }

    subscript(_ id: OperationID) -> RunningOperation? {
        entries.first { $0.id == id }?.operation
    }

    /// Returns the operation that waits for the end of `request`.
    func waiting(for request: RequestID) -> (id: OperationID, operation: RunningOperation)? {
        entries.first { $0.operation.request == request }
    }

    mutating func append(_ operation: RunningOperation, id: OperationID) {
        entries.append((id, operation))
    }

    mutating func remove(_ id: OperationID) -> RunningOperation? {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
        return entries.remove(at: index).operation
    }

    mutating func removeAll() {
        entries.removeAll()
    }

    /// Returns the operations whose deadline has passed.
    func late(at now: BootInstant) -> [OperationID] {
        entries.compactMap { entry in
            guard let deadline = entry.operation.deadline, deadline <= now else { return nil }
            return entry.id
        }
    }

    /// The earliest deadline.
    var nextDeadline: BootInstant? {
        var next: BootInstant?
        for entry in entries {
            guard let deadline = entry.operation.deadline else { continue }
            next = next.map { min($0, deadline) } ?? deadline
        }
        return next
    }
}
