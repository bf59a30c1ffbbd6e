// The queue of commands on one socket of the management interface.
//
// Duties: write the commands in the order in which they came, match each response to its command, and end what has
// waited too long.
//
// The kernel does not number commands: a response names the command by its code and the adapter. So one command of a
// code is out at a time for an adapter, and the next of that code waits. Commands of other codes pass it: Pair Device
// completes when the user has typed a passkey, and the question for it is itself a command. The kernel executes
// commands in the order in which they are written.
//
// Invariants:
// - Every ticket ends exactly once, in a `finish` action.
// - Responses come only to the socket that sent the command. One without a command that is out is late, after its
//   time-out or loss, or foreign; both are counted and end nothing.
// - The first response after a time-out belongs to the command that has timed out, unless the peer that it returns
//   indicates otherwise: the kernel responds to commands of one code in their order. A command that times out after
//   such a response is taken for the one whose response that was.
// - Command Status with success announces a result that is still to come. Any other status ends the command.
// - A cancelled command that is out keeps its place until its response comes; only its caller is released. A time-out
//   makes room.
// - A packet beyond what the socket accepts is never written: the kernel would refuse it with an error that does not
//   name the cause, and a list of keys would be missing without notice.
//
// A packet may contain keys: it is overwritten as soon as it was written.
//
// The queue never acts: it returns what to do, in order. The owner of the socket also owns the queue.

/// The failure of a command to the management interface.
package struct ManagementCommandFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause of a failure.
    package enum Reason: Hashable, Sendable {
        /// The kernel returned an error status.
        case status(ManagementStatus)
        /// The response does not fit the command.
        case malformed(MalformedPacket)
        /// The kernel did not respond in time.
        case timeout
        /// Too many commands are queued.
        case queueFull
        /// The packet has more bytes than the socket accepts.
        case tooLong(limit: Int)
        /// The caller no longer waits for the response.
        case cancelled
        /// The adapter was removed.
        case adapterLost
        /// The socket was closed, or is of no more use.
        case socketLost
        /// The kernel rejected the packet with this error number.
        case notSent(errno: Int32)
    }

    /// The failed command.
    package let code: ManagementCommandCode
    /// The cause.
    package let reason: Reason

    package init(code: ManagementCommandCode, reason: Reason) {
        self.code = code
        self.reason = reason
    }

    /// The kernel's status, if that was the cause.
    package var status: ManagementStatus? {
        if case .status(let status) = reason { return status }
        return nil
    }

    /// A message such as "management command 0x0013: Permission Denied (0x14)".
    package var description: String {
        let why =
            switch reason {
            case .status(let status): status.description
            case .malformed(let packet): packet.description
            case .timeout: "the kernel did not respond in time"
            case .queueFull: "too many commands are queued"
            case .tooLong(let limit): "the packet is longer than the \(limit) bytes that the socket accepts"
            case .cancelled: "cancelled"
            case .adapterLost: "the adapter was removed"
            case .socketLost: "the socket was closed"
            case .notSent(let errno): "the kernel rejected the packet with error \(errno)"
            }
        let bytes = [UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
        return "management command 0x\(Hex.encode(bytes)): \(why)"
    }
}

extension ManagementCommandComplete {
    /// Decodes the return parameters of a command that has succeeded.
    ///
    /// - Throws: `ManagementCommandFailure` with the kernel's status, or with the defect of the parameters.
    package func response<Command: ManagementCommand>(
        to command: Command.Type
    ) throws(ManagementCommandFailure) -> Command.Response {
        guard status == .success else {
            throw ManagementCommandFailure(code: self.command, reason: .status(status))
        }
        do throws(MalformedPacket) {
            return try Command.response(from: returnParameters.span)
        } catch {
            throw ManagementCommandFailure(code: Command.code, reason: .malformed(error))
        }
    }
}

/// Matches the responses of the management interface to the commands of one socket.
package struct ManagementCommandQueue: ~Copyable {
    /// Names one command that was put in.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Write this packet to the socket; call `notSent` with the ticket if that fails.
        case send(Ticket, SecretBytes)
        /// Report the result to the owner of the ticket.
        case finish(Ticket, Result<ManagementCommandComplete, ManagementCommandFailure>)
    }

    /// Responses without a command that was out.
    package struct Strays: Hashable, Sendable {
        /// Those of commands that had timed out.
        package var late = 0
        /// All others.
        package var foreign = 0

        package init() {}
    }

    /// What a response names.
    private struct Key: Hashable {
        let code: ManagementCommandCode
        let adapter: UInt16?
    }

    private struct Entry {
        let ticket: Ticket
        let key: Key
        let peer: ManagementPeer?
        let bytes: SecretBytes
        let timeout: Duration
    }

    /// A command that was written. Its caller may have stopped waiting.
    private struct Pending {
        let ticket: Ticket
        let key: Key
        /// The peer that the command names, and its response returns.
        let peer: ManagementPeer?
        let until: BootInstant
        var isCancelled = false
        /// Whether a response that came while it was out was taken for that of an earlier command.
        var hasYielded = false
    }

    /// A command whose response may still come.
    private struct Overdue {
        let key: Key
        let peer: ManagementPeer?
    }

    private var entries: [Entry] = []
    private var pending: [Pending] = []
    /// Commands whose responses may still come, the oldest first.
    private var overdue: [Overdue] = []
    private var lastNumber: UInt64 = 0
    private let largestPacket: Int

    /// Counts of responses that ended nothing.
    package private(set) var strays = Strays()

    /// Creates an empty queue.
    ///
    /// - Parameter largestPacket: The most bytes that the socket accepts in one packet.
    package init(largestPacket: Int) {
        self.largestPacket = largestPacket
    }

    /// The number of commands that wait to be written.
    package var count: Int { entries.count }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? { pending.map { $0.until }.min() }

    /// Puts a command in; the ticket may be finished already among the actions.
    ///
    /// - Parameter timeout: How long the kernel may take from the writing of the command; `nil` for what `timeout(of:)`
    ///   returns.
    package mutating func enqueue(
        _ packet: ManagementPacket, timeout: Duration? = nil, at now: BootInstant
    ) -> (Ticket, [Action]) {
        let bytes = SecretBytes(packet.bytes)
        guard bytes.count <= largestPacket else { return refuse(packet, .tooLong(limit: largestPacket)) }
        guard entries.count < Self.capacity else { return refuse(packet, .queueFull) }
        lastNumber &+= 1
        let ticket = Ticket(number: lastNumber)
        let code = ManagementCommandCode(rawValue: packet.code)
        entries.append(
            Entry(
                ticket: ticket, key: Key(code: code, adapter: packet.adapter),
                peer: Self.peer(in: packet.parameters, of: code), bytes: bytes,
                timeout: timeout ?? Self.timeout(of: code)))
        return (ticket, advance(at: now))
    }

    /// Fails a command that must not be written.
    package mutating func refuse(
        _ packet: ManagementPacket, _ reason: ManagementCommandFailure.Reason
    ) -> (Ticket, [Action]) {
        lastNumber &+= 1
        let ticket = Ticket(number: lastNumber)
        return (ticket, [Self.failed(ticket, ManagementCommandCode(rawValue: packet.code), reason)])
    }

    /// A Command Complete of this adapter was read, or of none.
    package mutating func received(
        _ complete: ManagementCommandComplete, adapter: UInt16?, at now: BootInstant
    ) -> [Action] {
        let peer = Self.peer(in: complete.returnParameters, of: complete.command)
        guard let command = take(Key(code: complete.command, adapter: adapter), peer) else { return [] }
        let rest = advance(at: now)
        if command.isCancelled { return rest }
        guard complete.status == .success else {
            return [Self.failed(command.ticket, complete.command, .status(complete.status))] + rest
        }
        return [.finish(command.ticket, .success(complete))] + rest
    }

    /// A Command Status of this adapter was read, or of none.
    package mutating func received(
        _ status: ManagementCommandStatus, adapter: UInt16?, at now: BootInstant
    ) -> [Action] {
        guard status.status != .success, let command = take(Key(code: status.command, adapter: adapter), nil) else {
            return []
        }
        let rest = advance(at: now)
        if command.isCancelled { return rest }
        return [Self.failed(command.ticket, status.command, .status(status.status))] + rest
    }

    /// Releases the owner of a command; one that was not written yet never will be.
    package mutating func cancel(_ ticket: Ticket) -> [Action] {
        if let index = entries.firstIndex(where: { $0.ticket == ticket }) {
            return [Self.failed(ticket, entries.remove(at: index).key.code, .cancelled)]
        }
        guard let index = pending.firstIndex(where: { $0.ticket == ticket && !$0.isCancelled }) else { return [] }
        pending[index].isCancelled = true
        return [Self.failed(ticket, pending[index].key.code, .cancelled)]
    }

    /// The packet of this ticket could not be written: its command fails, the next of its code may go.
    package mutating func notSent(_ ticket: Ticket, errno: Int32, at now: BootInstant) -> [Action] {
        guard let index = pending.firstIndex(where: { $0.ticket == ticket }) else { return [] }
        let command = pending.remove(at: index)
        let rest = advance(at: now)
        return command.isCancelled ? rest : [Self.failed(ticket, command.key.code, .notSent(errno: errno))] + rest
    }

    /// The time is `now`: ends what has waited too long.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        var actions: [Action] = []
        while let index = pending.firstIndex(where: { $0.until <= now }) {
            let command = pending.remove(at: index)
            if !command.hasYielded {
                if overdue.count == Self.capacity { overdue.removeFirst() }
                overdue.append(Overdue(key: command.key, peer: command.peer))
            }
            if !command.isCancelled { actions.append(Self.failed(command.ticket, command.key.code, .timeout)) }
        }
        return actions.isEmpty && entries.isEmpty ? [] : actions + advance(at: now)
    }

    /// The adapter with this index was removed: its commands fail once.
    package mutating func adapterLost(_ adapter: UInt16) -> [Action] {
        end(.adapterLost) { $0.adapter == adapter }
    }

    /// The socket is closed, or is of no more use: everything fails once, and the queue is empty.
    package mutating func socketLost() -> [Action] {
        overdue = []
        return end(.socketLost) { _ in true }
    }

    // MARK: Transitions

    private mutating func end(_ reason: ManagementCommandFailure.Reason, _ isLost: (Key) -> Bool) -> [Action] {
        var actions: [Action] = []
        for command in pending where isLost(command.key) && !command.isCancelled {
            actions.append(Self.failed(command.ticket, command.key.code, reason))
        }
        for entry in entries where isLost(entry.key) {
            actions.append(Self.failed(entry.ticket, entry.key.code, reason))
        }
        pending.removeAll { isLost($0.key) }
        entries.removeAll { isLost($0.key) }
        overdue.removeAll { isLost($0.key) }
        return actions
    }

    /// Takes the command out that a response belongs to; `nil` for a stray response, which is counted.
    ///
    /// - Parameter peer: The peer that it returns.
    private mutating func take(_ key: Key, _ peer: ManagementPeer?) -> Pending? {
        let place = pending.firstIndex { $0.key == key }
        guard let late = indexOfOverdue(key, peer, besides: place.flatMap { pending[$0].peer }) else {
            if let place { return pending.remove(at: place) }
            strays.foreign += 1
            return nil
        }
        overdue.remove(at: late)
        strays.late += 1
        if let place { pending[place].hasYielded = true }
        return nil
    }

    /// The command that has timed out and that a response belongs to; `nil` if it is the one of the command that is
    /// out.
    private func indexOfOverdue(_ key: Key, _ peer: ManagementPeer?, besides pending: ManagementPeer?) -> Int? {
        let candidates = overdue.indices.filter { overdue[$0].key == key }
        guard let peer else { return candidates.first }
        if let named = candidates.first(where: { overdue[$0].peer == peer }) { return named }
        return peer == pending ? nil : candidates.first
    }

    /// The peer with which the parameters begin, of a command about a peer and of its response.
    private static func peer(in parameters: [UInt8], of code: ManagementCommandCode) -> ManagementPeer? {
        switch code {
        case .disconnect, .pairDevice, .cancelPairDevice, .unpairDevice, .userConfirmationReply,
            .userConfirmationNegativeReply, .userPasskeyReply, .userPasskeyNegativeReply, .addRemoteOutOfBandData,
            .removeRemoteOutOfBandData:
            var reader = ByteReader(parameters.span)
            return reader.managementPeer()
        default: return nil
        }
    }

    /// Returns a Boolean value that indicates whether a command of this code is out for an adapter, whether or not
    /// anybody waits for it.
    package func isOut(_ code: ManagementCommandCode, adapter: UInt16?) -> Bool {
        pending.contains { $0.key == Key(code: code, adapter: adapter) }
    }

    /// Writes what may go now, in order.
    private mutating func advance(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        while let index = entries.firstIndex(where: { entry in !pending.contains { $0.key == entry.key } }) {
            let next = entries.remove(at: index)
            pending.append(
                Pending(ticket: next.ticket, key: next.key, peer: next.peer, until: now + next.timeout))
            actions.append(.send(next.ticket, next.bytes))
        }
        return actions
    }

    private static func failed(
        _ ticket: Ticket, _ code: ManagementCommandCode, _ reason: ManagementCommandFailure.Reason
    ) -> Action {
        .finish(ticket, .failure(ManagementCommandFailure(code: code, reason: reason)))
    }

    // MARK: Limits

    /// The number of commands that may wait.
    package static let capacity = 64

    /// Returns how long the kernel may take for a command by default.
    ///
    /// It gives up on each HCI command after 2 s, and a change of the power takes several. A pairing has a time-out of
    /// 30 s for each of its steps.
    package static func timeout(of code: ManagementCommandCode) -> Duration {
        switch code {
        case .pairDevice: .seconds(180)
        case .setPowered: .seconds(20)
        default: .seconds(6)
        }
    }
}
