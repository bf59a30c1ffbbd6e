// The encryption of one link by a command of this program, for processes that cannot give the kernel its keys: LE
// Enable Encryption, and the event that proves its success.
//
// Duties: send the command for one link at a time, wait for the event of that very link, keep the deadline. The owner
// has made the link, attaches a socket to it only after a success, and disconnects it after each failure.
//
// Invariants:
// - `begin` ends exactly once, in `finish`.
// - What proves the encryption is the controller's event, for the handle of the link and after its response to the
//   command: Encryption Change, or Encryption Key Refresh Complete where the kernel had encrypted the link before. An
//   event before the response is about a command of the kernel or of another program; so is one for another handle.
// - The end of the link ends the encryption, whatever is reported later. Handles are used again: a second Connection
//   Complete for the handle is another link, whose predecessor has ended unseen.
// - A command that was not sent when the encryption ends is withdrawn. Its response, and a late one, ends no other
//   encryption: each has a number.
// - The machine holds no key: its owner encodes the one that is stored at the moment of `send`.

/// Encrypts links by command, one at a time.
package struct LinkEncryption: ~Copyable {
    /// The reason that a link is not encrypted.
    package enum Failure: Error, Hashable, Sendable {
        /// The controller did not accept the command, or the kernel did not pass it on.
        case refused(HCICommandFailure)
        /// The controller accepted the command, and the encryption failed; no status where it was switched off.
        case failed(HCIStatus?)
        /// The controller reported neither success nor failure.
        case timedOut
        /// The link has ended; no reason where the end was not reported.
        case linkLost(HCIStatus?)
        /// The caller cancelled.
        case cancelled
        /// Another encryption is under way.
        case busy
        /// There is no key for the link any more, or none that may be used.
        case noKey
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Send LE Enable Encryption for this link, and call `commandFinished` with the number.
        case send(ConnectionHandle, number: UInt64)
        /// Take LE Enable Encryption out of the queue of commands if it still waits there.
        case withdraw
        /// The encryption has ended. Resume the caller.
        case finish(Result<ConnectionHandle, Failure>)
    }

    private enum State {
        case idle
        /// The command is in the queue or out.
        case commanding(ConnectionHandle, until: BootInstant)
        /// The controller encrypts.
        case encrypting(ConnectionHandle, until: BootInstant)
    }

    private var state = State.idle
    private var number: UInt64 = 0

    package init() {}

    /// The time that it may take in all. The kernel drops a link without a socket after 2 s.
    package static let timeout: Duration = .seconds(5)

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .idle: nil
        case .commanding(_, let until), .encrypting(_, let until): until
        }
    }

    private var handle: ConnectionHandle? {
        switch state {
        case .idle: nil
        case .commanding(let handle, _), .encrypting(let handle, _): handle
        }
    }

    /// Encrypts a link that is up.
    package mutating func begin(_ handle: ConnectionHandle, at now: BootInstant) -> [Action] {
        guard case .idle = state else { return [.finish(.failure(.busy))] }
        number &+= 1
        state = .commanding(handle, until: now + Self.timeout)
        return [.send(handle, number: number)]
    }

    /// The command with this number has its response, or failed for the reason given.
    package mutating func commandFinished(_ number: UInt64, _ failure: HCICommandFailure?) -> [Action] {
        guard number == self.number, case .commanding(let handle, let until) = state else { return [] }
        if let failure { return finish(.failure(.refused(failure))) }
        state = .encrypting(handle, until: until)
        return []
    }

    /// An Encryption Change was read.
    package mutating func received(_ change: HCIEncryptionChange) -> [Action] {
        ended(change.handle, change.status, isEncrypted: change.isEncrypted)
    }

    /// An Encryption Key Refresh Complete was read.
    package mutating func received(_ refresh: HCIEncryptionKeyRefresh) -> [Action] {
        ended(refresh.handle, refresh.status, isEncrypted: true)
    }

    /// A Connection Complete was read: there is a new link with this handle.
    package mutating func linkBegan(_ handle: ConnectionHandle) -> [Action] {
        handle == self.handle ? stop(.linkLost(nil)) : []
    }

    /// The link with this handle has ended.
    package mutating func linkEnded(_ handle: ConnectionHandle, _ reason: HCIStatus) -> [Action] {
        handle == self.handle ? stop(.linkLost(reason)) : []
    }

    /// The adapter was unplugged, switched off or reset: there is no link any more.
    package mutating func adapterLost() -> [Action] { stop(.linkLost(nil)) }

    /// The caller cancels.
    package mutating func cancel() -> [Action] { stop(.cancelled) }

    /// Advances to `now`.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let nextDeadline, nextDeadline <= now else { return [] }
        return stop(.timedOut)
    }

    private mutating func ended(_ handle: ConnectionHandle, _ status: HCIStatus, isEncrypted: Bool) -> [Action] {
        guard case .encrypting(handle, _) = state else { return [] }
        guard status.isSuccess else { return finish(.failure(.failed(status))) }
        return finish(isEncrypted ? .success(handle) : .failure(.failed(nil)))
    }

    private mutating func stop(_ failure: Failure) -> [Action] {
        switch state {
        case .idle: []
        case .commanding: [.withdraw] + finish(.failure(failure))
        case .encrypting: finish(.failure(failure))
        }
    }

    private mutating func finish(_ result: Result<ConnectionHandle, Failure>) -> [Action] {
        state = .idle
        return [.finish(result)]
    }
}
