internal import BLECore
internal import BLELinux

// What is the same in every step of one call. The face of the call creates it, and each step passes it on.

/// The conditions of one call: its name in messages, its deadline, and whether it may be retried.
struct CallContext: Sendable {
    /// The name of an operation. It is composed only for an error: most calls need none, and a read must not pay for
    /// one.
    enum Name: ExpressibleByStringInterpolation, Sendable {
        case text(String)
        case read(CharacteristicReference)
        case write(byteCount: Int, to: CharacteristicReference)

        init(stringLiteral value: String) {
            self = .text(value)
        }
    }

    private let name: Name
    /// The time by which the call must have ended; `nil` for no limit.
    let deadline: BootInstant?
    /// The assumptions of the call if it is retried after a recovery action.
    let retryRule: RetryRule

    init(_ name: Name, until deadline: BootInstant?, retrying retryRule: RetryRule = .always) {
        self.name = name
        self.deadline = deadline
        self.retryRule = retryRule
    }

    /// Returns the conditions of a call without a deadline.
    static func unlimited(_ operation: String) -> CallContext { CallContext(.text(operation), until: nil) }

    /// The name of the operation, such as `read 2a19`.
    var operation: String {
        switch name {
        case .text(let text): text
        case .read(let reference): "read \(reference)"
        case .write(let count, let reference): "write \(count == 1 ? "1 byte" : "\(count) bytes") to \(reference)"
        }
    }

    /// Whether the deadline has come.
    func isOver(at now: BootInstant) -> Bool { deadline.map { $0 <= now } ?? false }

    /// Returns the deadline, or `limit` if that is earlier.
    func deadline(or limit: BootInstant) -> BootInstant { deadline.map { min($0, limit) } ?? limit }

    /// Returns the conditions of a part that has to end by `limit`, or earlier with the whole call.
    func limited(to limit: BootInstant) -> CallContext {
        CallContext(name, until: deadline(or: limit), retrying: retryRule)
    }

    /// Returns the conditions of a part with a name of its own.
    func named(_ name: Name) -> CallContext {
        CallContext(name, until: deadline, retrying: retryRule)
    }

    /// Returns the conditions of a part with other assumptions than the whole call.
    func retrying(_ retryRule: RetryRule) -> CallContext {
        CallContext(name, until: deadline, retrying: retryRule)
    }
}

extension Peripheral {
    /// Returns the conditions of a call that begins now.
    ///
    /// - Parameter timeout: The longest time; `nil` for no limit.
    nonisolated func context(
        _ name: CallContext.Name, within timeout: Duration?, retrying retryRule: RetryRule = .always
    ) -> CallContext {
        CallContext(name, until: timeout.map { loop.now() + $0 }, retrying: retryRule)
    }
}
