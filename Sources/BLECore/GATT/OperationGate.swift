// Decides which calls may use a link now, and which must wait. It precedes the queue of requests.
//
// Duties
// - Calls enter as they come, any number at a time, until a caller requests exclusive access. That begins when the
//   calls made before it have ended; calls made after it wait for its end, in the order of arrival.
// - Exclusive access opens a scope of its own. Calls of its holder are made from that scope and pass. In it the same
//   rules hold again, so exclusive access nests: an inner one keeps the holder's other tasks out.
// - A scope can be opened without exclusive access too, for calls that a call waits for.
// - Calls that waited are admitted one by one, each when the one before has arrived. So their requests are sent in
//   their order, in whichever order the runtime resumes them, and before those of later calls.
// - A turn is a position in the order that is taken before its calls are made, in a scope of its own. Turns follow one
//   after the other. Calls after a turn wait until the turn has made its first call; exclusive access waits until the
//   turn is over.
// - Whole calls pass the gate, never single requests. The library's own requests do not pass it, so nothing that a call
//   waits for can wait for exclusive access.
//
// Invariants
// - Every ticket that waits is admitted or refused exactly once.
// - Every call that is admitted by number arrives once, and only then leaves.
// - Calls that began in a scope count there; when the scope closes before they end, they count in the scope around it.
// - The holder of exclusive access has no concurrent calls in its scope, except those that a closed inner scope left.
// - While it is being cleared, the gate admits no call; that ends with the last call that had been admitted.
// - A closing gate refuses everything that comes later, and does not open again.

/// The treatment of other tasks' calls while one task has exclusive access to a link.
public enum ExclusiveEntry: Hashable, Sendable {
    /// They wait until it is over, in the order in which they were made; their deadlines still apply.
    case wait
    /// They fail at once with `.busy`, from the moment exclusive access is requested; those made before are waited
    /// for.
    case fail

    /// The former name of `wait`.
    @available(*, deprecated, renamed: "wait")
    public static var waiting: ExclusiveEntry { .wait }

    /// The former name of `fail`.
    @available(*, deprecated, renamed: "fail")
    public static var failFast: ExclusiveEntry { .fail }
}

/// Admits the calls of one link. A pure value: its owner keeps the waiting callers and the time.
package struct OperationGate: ~Copyable {
    /// The number of a caller, in the order of arrival.
    package typealias Ticket = UInt64

    /// The scope from which calls are made. The number is unique over all links.
    package struct Scope: Hashable, Sendable {
        package let number: UInt64

        /// The scope of calls without exclusive access.
        package static let root = Scope(number: 0)

        package init(number: UInt64) {
            self.number = number
        }
    }

    /// The request of a caller.
    package enum Entry: Hashable, Sendable {
        /// A call.
        case call
        /// Exclusive access, in a scope of its own.
        case exclusive(Scope, others: ExclusiveEntry)
        /// Calls when its turn comes, from a scope of its own.
        case turn(Scope)
        /// The last call.
        case last
    }

    /// The reason that a caller is not admitted.
    package enum Refusal: Error, Hashable, Sendable {
        /// Exclusive access does not let other calls wait.
        case busy
        /// The link is to end after the pending operations.
        case disconnecting
        /// Everything that waited was cancelled.
        case cleared
        /// The limit of waiting callers is reached.
        case queueFull(limit: Int)
        /// The link is gone.
        case linkLost
        /// Its turn did not come in time.
        case timedOut
        /// The task was cancelled.
        case cancelled
    }

    /// The decision for a caller that arrives.
    package enum Decision: Hashable, Sendable {
        case admitted
        case waits
        case refused(Refusal)
    }

    /// An action for a caller that waits.
    package enum Action: Hashable, Sendable {
        case admit(Ticket)
        case refuse(Ticket, Refusal)
    }

    private struct Waiting {
        let ticket: Ticket
        let entry: Entry
    }

    private enum Turn {
        case admitted
        /// It has made a call.
        case begun
        /// It was cancelled before it made one.
        case cleared
    }

    private struct ScopeState {
        var outer: Scope?
        var calls = 0
        /// The calls among them that are admitted and have not arrived yet.
        var coming = 0
        var holder: Scope?
        var othersMayWait = true
        var isClosing = false
        /// The state of a turn, if this is the scope of one.
        var turn: Turn?
        var waiting: [Waiting] = []

        var refusal: Refusal? {
            if turn == .cleared { return .cleared }
            if isClosing { return .disconnecting }
            if holder != nil, !othersMayWait { return .busy }
            let isKeptOut = waiting.contains { waiting in
                if case .exclusive(_, .fail) = waiting.entry { true } else { false }
            }
            return isKeptOut ? .busy : nil
        }
    }

    /// The maximum number of waiting callers in one scope.
    package static let limit = 64

    private var root = ScopeState(outer: nil)
    private var inner: [Scope: ScopeState] = [:]
    /// A Boolean value that indicates whether the calls inside are being ended,
    /// so that no call may enter before they have left.
    package private(set) var isClearing = false
    /// Whether a call may pass without a check: no caller has, or requests, more than that.
    private var isFree = true

    package init() {}

    /// The number of calls inside.
    package var callCount: Int { inner.values.reduce(root.calls) { $0 + $1.calls } }
}

// MARK: - Entering and leaving

extension OperationGate {
    /// Admits a call if there is nothing to decide, which is nearly always so.
    package mutating func enterFreely() -> Bool {
        guard isFree else { return false }
        root.calls += 1
        return true
    }

    /// A caller arrives from `scopes`, the innermost one last.
    package mutating func enter(_ ticket: Ticket, as entry: Entry, from scopes: [Scope] = []) -> Decision {
        let scope = innermost(of: scopes)
        defer { update() }
        // The end of the link also waits for exclusive access that keeps calls out.
        if let refusal = self[scope].refusal, entry != .last || refusal != .busy { return .refused(refusal) }
        if case .last = entry { close(scope) }
        guard self[scope].waiting.isEmpty, admit(entry, in: scope) else {
            guard self[scope].waiting.count < Self.limit || entry == .last else {
                return .refused(.queueFull(limit: Self.limit))
            }
            self[scope].waiting.append(Waiting(ticket: ticket, entry: entry))
            return .waits
        }
        return .admitted
    }

    /// A waiting caller leaves the queue.
    package mutating func withdraw(_ ticket: Ticket, _ refusal: Refusal) -> [Action] {
        for scope in scopes {
            guard let index = self[scope].waiting.firstIndex(where: { $0.ticket == ticket }) else { continue }
            self[scope].waiting.remove(at: index)
            return [.refuse(ticket, refusal)] + admitNext(in: scope)
        }
        return []
    }

    /// A call from `scopes` that `enter` or an action has admitted proceeds.
    package mutating func arrive(_ scopes: [Scope] = []) -> [Action] {
        let scope = innermost(of: scopes)
        self[scope].coming -= 1
        return admitNext(in: scope)
    }

    /// A call from `scopes` proceeds: the first call of a turn admits what comes after that turn.
    package mutating func begin(from scopes: [Scope]) -> [Action] {
        var actions: [Action] = []
        for scope in scopes where inner[scope]?.turn == .admitted {
            inner[scope]?.turn = .begun
            actions += admitNext(in: inner[scope]?.outer ?? .root)
        }
        return actions
    }

    /// A call from `scopes` has ended.
    package mutating func leave(_ scopes: [Scope] = []) -> [Action] {
        let scope = innermost(of: scopes)
        self[scope].calls -= 1
        guard !isFree else { return [] }
        return isClearing ? endClearing() : admitNext(in: scope)
    }

    /// Opens a scope without exclusive access.
    package mutating func open(_ scope: Scope, from scopes: [Scope] = []) {
        inner[scope] = ScopeState(outer: innermost(of: scopes))
        update()
    }

    /// Exclusive access has ended, or an open scope is no longer needed.
    package mutating func close(scope: Scope) -> [Action] {
        guard let closed = inner.removeValue(forKey: scope) else { return [] }
        let outer = closed.outer ?? .root
        for (other, inside) in inner where inside.outer == scope { inner[other]?.outer = outer }
        self[outer].calls += closed.calls
        self[outer].coming += closed.coming
        let leavesHolder = closed.turn != nil && closed.holder != nil && self[outer].holder == nil
        if self[outer].holder == scope || leavesHolder {
            // Inner exclusive access that outlives it replaces it.
            self[outer].holder = closed.holder
            self[outer].othersMayWait = closed.othersMayWait
        }
        if !closed.waiting.isEmpty {
            self[outer].waiting += closed.waiting
            self[outer].waiting.sort { $0.ticket < $1.ticket }
        }
        return admitNext(in: outer)
    }
}

// MARK: - All calls

extension OperationGate {
    /// Refuses all waiting callers, and admits none until those inside have left.
    package mutating func clear() -> [Action] {
        var actions: [Action] = []
        for scope in scopes {
            let given = self[scope].waiting.filter { $0.entry != .last }
            self[scope].waiting.removeAll { $0.entry != .last }
            actions += given.map { .refuse($0.ticket, .cleared) }
        }
        for scope in inner.keys where inner[scope]?.turn == .admitted { inner[scope]?.turn = .cleared }
        isClearing = true
        return actions + endClearing()
    }

    /// Refuses all waiting callers: the link is lost.
    package mutating func linkLost() -> [Action] {
        var actions: [Action] = []
        for scope in scopes {
            actions += self[scope].waiting.map { .refuse($0.ticket, .linkLost) }
            self[scope].waiting = []
        }
        update()
        return actions
    }

    private mutating func endClearing() -> [Action] {
        guard callCount == 0 else {
            update()
            return []
        }
        isClearing = false
        return scopes.flatMap { admitNext(in: $0) }
    }
}

// MARK: - Scopes

extension OperationGate {
    /// All scopes, the oldest first.
    private var scopes: [Scope] { [.root] + inner.keys.sorted { $0.number < $1.number } }

    private subscript(scope: Scope) -> ScopeState {
        get { inner[scope] ?? root }
        set {
            if inner[scope] == nil { root = newValue } else { inner[scope] = newValue }
        }
    }

    private func innermost(of scopes: [Scope]) -> Scope {
        scopes.last { inner[$0] != nil } ?? .root
    }

    /// Admits a caller if the scope allows it now.
    private mutating func admit(_ entry: Entry, in scope: Scope) -> Bool {
        guard !isClearing, self[scope].holder == nil else { return false }
        switch entry {
        case .call:
            guard self[scope].coming == 0, !hasTurn(in: scope, .admitted) else { return false }
            self[scope].calls += 1
            self[scope].coming += 1
        case .turn(let turn):
            guard self[scope].coming == 0, !hasTurn(in: scope) else { return false }
            inner[turn] = ScopeState(outer: scope, turn: .admitted)
        case .exclusive(let inside, let others):
            guard self[scope].calls == 0, !hasTurn(in: scope) else { return false }
            self[scope].holder = inside
            self[scope].othersMayWait = others == .wait
            inner[inside] = ScopeState(outer: scope)
        case .last:
            guard self[scope].calls == 0, !hasTurn(in: scope) else { return false }
        }
        return true
    }

    private func hasTurn(in scope: Scope, _ turn: Turn? = nil) -> Bool {
        inner.values.contains { $0.outer == scope && $0.turn != nil && (turn == nil || $0.turn == turn) }
    }

    private mutating func admitNext(in scope: Scope) -> [Action] {
        var actions: [Action] = []
        while let first = self[scope].waiting.first, admit(first.entry, in: scope) {
            self[scope].waiting.removeFirst()
            actions.append(.admit(first.ticket))
        }
        update()
        return actions
    }

    /// Refuses everything that comes later, in this scope and the outer ones.
    private mutating func close(_ scope: Scope) {
        self[scope].isClosing = true
        if let outer = self[scope].outer { close(outer) }
    }

    private mutating func update() {
        isFree = inner.isEmpty && !isClearing && !root.isClosing && root.waiting.isEmpty && root.coming == 0
    }
}
