// Decides which calls may go on to a link now, and which must wait: the queue in front of the queue of requests.
//
// Duties
// - Calls go in as they come, any number at a time, until somebody wants the link to itself: a lease. The lease begins when
//   the calls made before it are over, and what is called behind it waits for its end, in the order of arrival.
// - A lease opens a room of its own. Calls of its holder are made from that room and pass; in it the same rules hold once
//   more, so leases nest: an inner one keeps the holder's other tasks out.
// - A room can be opened without a lease too, for calls that a call waits for.
// - Calls that waited are admitted one by one, each when the one before has arrived: what each of them asks of the peer is to go
//   out in their order, in whichever the runtime lets them go on, and before what is called later.
// - A turn is a place in the order that is taken before its calls are made, in a room of its own. Turns go one after the other; what
//   comes after a turn waits until the turn has made its first call, and leases wait until it is over.
// - Whole calls pass the gate, never single requests. What the library does of its own accord does not come here at all, so
//   nothing that a call waits for can wait for a lease.
//
// Invariants
// - Every ticket that waits is admitted or refused exactly once.
// - Every call that is admitted by number arrives once, and only then leaves.
// - Calls that began in a room count there; when the room closes before they end, they count in the room around it.
// - A lease has no calls beside it in its room, except those that a closed inner room left behind.
// - While it is being cleared, the gate admits nobody; that ends with the last call that had been admitted.
// - A closing gate refuses everything that comes later, and opens no more.

/// Who may call on one link. A pure value: waiting callers and time are the owner's affair.
package struct CallGate {
    /// One who wants to enter; numbered in the order of arrival.
    package typealias Ticket = UInt64

    /// Where calls are made from. Rooms are told apart over all links.
    package struct Room: Hashable, Sendable {
        package let number: UInt64

        /// Where everybody is who holds no lease.
        package static let hall = Room(number: 0)

        package init(number: UInt64) {
            self.number = number
        }
    }

    /// What somebody wants.
    package enum Entry: Hashable, Sendable {
        /// To make a call.
        case call
        /// To be alone; the room is the lease's own.
        case lease(Room, others: ExclusiveEntry)
        /// To make calls when it is the turn of this one, from a room of its own.
        case turn(Room)
        /// To be the last one.
        case last
    }

    /// Why somebody does not get in.
    package enum Refusal: Error, Hashable, Sendable {
        /// A lease lets nobody wait.
        case busy
        /// The link is to end behind what was called before.
        case disconnecting
        /// Everything that waited was given up.
        case cleared
        /// So many wait already.
        case queueFull(limit: Int)
        /// The link is gone.
        case linkLost
        /// It was not the turn of this one in time.
        case timedOut
        /// The task was cancelled.
        case cancelled
    }

    /// What becomes of one who comes.
    package enum Answer: Hashable, Sendable {
        case admitted
        case waits
        case refused(Refusal)
    }

    /// What the owner must tell one who waits.
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
        /// It was given up before it has made one.
        case cleared
    }

    private struct Inside {
        var outer: Room?
        var calls = 0
        /// Those of the calls that are admitted and have not arrived yet.
        var coming = 0
        var lease: Room?
        var leaseLetsWait = true
        var isClosing = false
        /// Whether this is the room of a turn, and what has become of that.
        var turn: Turn?
        var waiting: [Waiting] = []

        var refusal: Refusal? {
            if turn == .cleared { return .cleared }
            if isClosing { return .disconnecting }
            if lease != nil, !leaseLetsWait { return .busy }
            let isKeptOut = waiting.contains { waiting in
                if case .lease(_, .failFast) = waiting.entry { true } else { false }
            }
            return isKeptOut ? .busy : nil
        }
    }

    /// How many may wait in one room.
    package static let limit = 64

    private var hall = Inside(outer: nil)
    private var inner: [Room: Inside] = [:]
    /// Whether the calls that are inside are being ended, so that nobody may enter before they are gone.
    package private(set) var isClearing = false
    /// Whether a call may pass without being looked at: nobody has, or wants, more than that.
    private var isFree = true

    package init() {}

    /// How many calls are inside.
    package var callCount: Int { inner.values.reduce(hall.calls) { $0 + $1.calls } }
}

// MARK: - Coming and going

extension CallGate {
    /// Admits a call if there is nothing to think about, which is so nearly always.
    package mutating func enterFreely() -> Bool {
        guard isFree else { return false }
        hall.calls += 1
        return true
    }

    /// Somebody comes who was in `rooms` before, the innermost one last.
    package mutating func enter(_ ticket: Ticket, as entry: Entry, from rooms: [Room] = []) -> Answer {
        let room = innermost(of: rooms)
        defer { update() }
        // Who wants the end of the link waits also for a lease that keeps calls out.
        if let refusal = self[room].refusal, entry != .last || refusal != .busy { return .refused(refusal) }
        if case .last = entry { close(room) }
        guard self[room].waiting.isEmpty, admit(entry, in: room) else {
            guard self[room].waiting.count < Self.limit || entry == .last else {
                return .refused(.queueFull(limit: Self.limit))
            }
            self[room].waiting.append(Waiting(ticket: ticket, entry: entry))
            return .waits
        }
        return .admitted
    }

    /// One who waits does not want to any more.
    package mutating func withdraw(_ ticket: Ticket, _ refusal: Refusal) -> [Action] {
        for room in rooms {
            guard let index = self[room].waiting.firstIndex(where: { $0.ticket == ticket }) else { continue }
            self[room].waiting.remove(at: index)
            return [.refuse(ticket, refusal)] + admitNext(in: room)
        }
        return []
    }

    /// A call from `rooms` that `enter` or an action has admitted goes on.
    package mutating func arrive(_ rooms: [Room] = []) -> [Action] {
        let room = innermost(of: rooms)
        self[room].coming -= 1
        return admitNext(in: room)
    }

    /// A call from `rooms` goes on: with the first one of a turn, what comes after that turn may.
    package mutating func begin(from rooms: [Room]) -> [Action] {
        var actions: [Action] = []
        for room in rooms where inner[room]?.turn == .admitted {
            inner[room]?.turn = .begun
            actions += admitNext(in: inner[room]?.outer ?? .hall)
        }
        return actions
    }

    /// A call from `rooms` has ended.
    package mutating func leave(_ rooms: [Room] = []) -> [Action] {
        let room = innermost(of: rooms)
        self[room].calls -= 1
        guard !isFree else { return [] }
        return isClearing ? endClearing() : admitNext(in: room)
    }

    /// Opens a room without a lease.
    package mutating func open(_ room: Room, from rooms: [Room] = []) {
        inner[room] = Inside(outer: innermost(of: rooms))
        update()
    }

    /// A lease has ended, or an open room is needed no longer.
    package mutating func close(room: Room) -> [Action] {
        guard let closed = inner.removeValue(forKey: room) else { return [] }
        let outer = closed.outer ?? .hall
        for (other, inside) in inner where inside.outer == room { inner[other]?.outer = outer }
        self[outer].calls += closed.calls
        self[outer].coming += closed.coming
        let leavesLease = closed.turn != nil && closed.lease != nil && self[outer].lease == nil
        if self[outer].lease == room || leavesLease {
            // An inner lease that outlives it takes its place.
            self[outer].lease = closed.lease
            self[outer].leaseLetsWait = closed.leaseLetsWait
        }
        if !closed.waiting.isEmpty {
            self[outer].waiting += closed.waiting
            self[outer].waiting.sort { $0.ticket < $1.ticket }
        }
        return admitNext(in: outer)
    }
}

// MARK: - All at once

extension CallGate {
    /// Refuses all who wait, and admits nobody until those who are inside have gone.
    package mutating func clear() -> [Action] {
        var actions: [Action] = []
        for room in rooms {
            let given = self[room].waiting.filter { $0.entry != .last }
            self[room].waiting.removeAll { $0.entry != .last }
            actions += given.map { .refuse($0.ticket, .cleared) }
        }
        for room in inner.keys where inner[room]?.turn == .admitted { inner[room]?.turn = .cleared }
        isClearing = true
        return actions + endClearing()
    }

    /// Refuses all who wait: the link is gone.
    package mutating func linkLost() -> [Action] {
        var actions: [Action] = []
        for room in rooms {
            actions += self[room].waiting.map { .refuse($0.ticket, .linkLost) }
            self[room].waiting = []
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
        return rooms.flatMap { admitNext(in: $0) }
    }
}

// MARK: - Inside

extension CallGate {
    /// All rooms, from the oldest on.
    private var rooms: [Room] { [.hall] + inner.keys.sorted { $0.number < $1.number } }

    private subscript(room: Room) -> Inside {
        get { inner[room] ?? hall }
        set {
            if inner[room] == nil { hall = newValue } else { inner[room] = newValue }
        }
    }

    private func innermost(of rooms: [Room]) -> Room {
        rooms.last { inner[$0] != nil } ?? .hall
    }

    /// Lets one in if the room allows it now.
    private mutating func admit(_ entry: Entry, in room: Room) -> Bool {
        guard !isClearing, self[room].lease == nil else { return false }
        switch entry {
        case .call:
            guard self[room].coming == 0, !hasTurn(in: room, .admitted) else { return false }
            self[room].calls += 1
            self[room].coming += 1
        case .turn(let turn):
            guard self[room].coming == 0, !hasTurn(in: room) else { return false }
            inner[turn] = Inside(outer: room, turn: .admitted)
        case .lease(let lease, let others):
            guard self[room].calls == 0, !hasTurn(in: room) else { return false }
            self[room].lease = lease
            self[room].leaseLetsWait = others == .waiting
            inner[lease] = Inside(outer: room)
        case .last:
            guard self[room].calls == 0, !hasTurn(in: room) else { return false }
        }
        return true
    }

    private func hasTurn(in room: Room, _ turn: Turn? = nil) -> Bool {
        inner.values.contains { $0.outer == room && $0.turn != nil && (turn == nil || $0.turn == turn) }
    }

    private mutating func admitNext(in room: Room) -> [Action] {
        var actions: [Action] = []
        while let first = self[room].waiting.first, admit(first.entry, in: room) {
            self[room].waiting.removeFirst()
            actions.append(.admit(first.ticket))
        }
        update()
        return actions
    }

    /// Nothing that comes later gets in, here and further out.
    private mutating func close(_ room: Room) {
        self[room].isClosing = true
        if let outer = self[room].outer { close(outer) }
    }

    private mutating func update() {
        isFree = inner.isEmpty && !isClearing && !hall.isClosing && hall.waiting.isEmpty && hall.coming == 0
    }
}
