internal import BLECore

// The encryption of links by commands to the controller, where the kernel takes no keys from this process.
//
// Duties: find the key of a bond, encrypt a link with it (`LinkEncryption`), and resume the task that waits for that.
//
// Invariants
// - A link is encrypted by a command only where the adapter is not under management; whether that is so is decided by
//   `Adapter.target`.
// - One link is encrypted at a time: links are made in turns.
// - Each task is resumed once.
// - It never acts on the controller: it returns actions, in order.

/// Encrypts links by commands to the controller, with the keys of bonds.
final class CommandEncryption {
    enum Action {
        /// Send this command to the controller, and call `commandFinished` with the number.
        case encrypt(LEEnableEncryption, number: UInt64)
        /// Take LE Enable Encryption out of the queue of commands if it still waits there.
        case withdraw
        /// A task resumes: its link is encrypted with a key of the size given, or is not.
        case encrypted(UInt64, Result<KeyUse, LinkEncryption.Failure>)
    }

    /// The encryption of a link by a command.
    struct KeyUse: Hashable {
        let handle: ConnectionHandle
        let keySize: UInt8
    }

    private let now: () -> BootInstant
    /// Returns the bonds as they are stored.
    private let bonds: () -> [BondRecord]
    /// What the adapter's hardware is, if it is known: bonds may be for other hardware.
    private let hardware: () -> String?
    private var encryption = LinkEncryption()
    /// The task that waits, and the key that is used.
    private var commanding: (waiter: UInt64, key: ManagementLongTermKey)?

    init(
        bonds: @escaping () -> [BondRecord], hardware: @escaping () -> String?, now: @escaping () -> BootInstant
    ) {
        self.bonds = bonds
        self.hardware = hardware
        self.now = now
    }

    var nextDeadline: BootInstant? { encryption.nextDeadline }

    func timePassed() -> [Action] { perform(encryption.timePassed(now())) }

    // MARK: Tasks

    /// Encrypts a link with the key of a bond; resumes `waiter` when that has ended.
    func encrypt(_ handle: ConnectionHandle, of identity: PeerID, _ waiter: UInt64) -> [Action] {
        guard commanding == nil else { return [.encrypted(waiter, .failure(.busy))] }
        // The bond may have been forgotten meanwhile.
        guard
            let key = bonds().first(where: { $0.identity == identity }).flatMap({
                try? BondRules.centralKey(of: $0, adapter: hardware())
            })
        else {
            return [.encrypted(waiter, .failure(.noKey))]
        }
        commanding = (waiter, key)
        return perform(encryption.begin(handle, at: now()))
    }

    /// The task does not wait any longer.
    func cancel(_ waiter: UInt64) -> [Action] {
        commanding?.waiter == waiter ? perform(encryption.cancel()) : []
    }

    // MARK: The controller

    /// LE Enable Encryption has its response, or failed for the reason given.
    func commandFinished(_ number: UInt64, _ failure: HCICommandFailure?) -> [Action] {
        perform(encryption.commandFinished(number, failure))
    }

    /// A link has come up.
    func linkBegan(_ handle: ConnectionHandle) -> [Action] { perform(encryption.linkBegan(handle)) }

    /// An Encryption Change was read.
    func received(_ change: HCIEncryptionChange) -> [Action] { perform(encryption.received(change)) }

    /// An Encryption Key Refresh Complete was read.
    func received(_ refresh: HCIEncryptionKeyRefresh) -> [Action] { perform(encryption.received(refresh)) }

    /// A link has ended.
    func linkEnded(_ handle: ConnectionHandle, _ reason: HCIStatus) -> [Action] {
        perform(encryption.linkEnded(handle, reason))
    }

    /// The controller was reset, or the adapter went away: it has no links any more.
    func controllerReset() -> [Action] { perform(encryption.adapterLost()) }

    private func perform(_ requests: [LinkEncryption.Action]) -> [Action] {
        var actions: [Action] = []
        for request in requests {
            guard let (waiter, key) = commanding else { continue }
            switch request {
            case .send(let handle, let number):
                let command = LEEnableEncryption(handle: handle, rand: key.rand, ediv: key.ediv, key: key.key)
                actions.append(.encrypt(command, number: number))
            case .withdraw: actions.append(.withdraw)
            case .finish(let result):
                commanding = nil
                actions.append(.encrypted(waiter, result.map { KeyUse(handle: $0, keySize: key.size) }))
            }
        }
        return actions
    }
}
