internal import BLECore
internal import BLELinux
internal import Logging

// How a link to a bonded peer becomes encrypted before its first byte.
//
// The kernel encrypts by itself when a socket with a level of security attaches to a link whose key it has. The socket
// is writable then; but any packet of the peer makes it writable too, before it is encrypted or without that. So the
// level is read from the socket while it is connected, and what arrived before is discarded: nothing proves who sent it.
//
// Invariants
// - A link to a bonded peer is handed on encrypted with at least the level and the key size of the bond, or not at all.
// - The level that is requested is the one of the stored key: for more the kernel would pair again.
// - A key that the peer rejects stays on the disk, marked. Only `forgetBond` removes it.

/// The security that a link to a bonded peer must have.
struct RequiredEncryption {
    let identity: PeerID
    let level: SocketSecurity.Level
    let keySize: UInt8

    init(_ record: BondRecord, minimumKeySize: Int) {
        identity = record.identity
        level = SocketSecurity.Level(rawValue: record.level.rawValue)
        keySize = UInt8(clamping: max(7, minimumKeySize))
    }

    func isMet(by security: SocketSecurity) -> Bool { security.level >= level && security.keySize >= keySize }
}

/// Why a link to a bonded peer is not encrypted.
enum EncryptionFailure: Error {
    /// The peer does not have the key, or another one.
    case rejected(HCIStatus?)
    /// The kernel did not have the key.
    case keyNotLoaded
    /// Neither encryption nor its failure was reported in time.
    case timedOut
    case linkLost(HCIStatus?)
    case cancelled
}

extension Adapter {
    /// How long the encryption of a link may take.
    private static let encryptionTimeout: Duration = .seconds(5)
    /// How often the security of the socket is read where the controller's events are not.
    private static let encryptionPause: Duration = .milliseconds(20)

    /// What a link to a peer must have before its first byte; `nil` without a bond.
    func requiredEncryption(of peer: PeerID) -> RequiredEncryption? {
        guard let configuration = securityConfiguration else { return nil }
        return security.record(of: identity(of: peer) ?? peer).map {
            RequiredEncryption($0, minimumKeySize: configuration.minimumKeySize)
        }
    }

    /// Gives the kernel the keys of all bonds again: anybody may have emptied its lists unseen. While another peer is
    /// paired they are left as they are, and not waited for.
    func loadKeys(until deadline: BootInstant, during operation: String) async throws(BLEError) {
        if security.isPairing {
            if security.hasKeys { return }
            throw BLEError(
                .busy, subject: name, during: operation,
                because: "another peer is being paired, and the kernel does not have the keys of the bonds",
                hint: "Try again when that has ended.")
        }
        let (wake, number) = await suspend(until: deadline) { number in perform(security.load(number)) }
        security.stopWaiting(number)
        switch wake {
        case .listsLoaded(nil): return
        case .listsLoaded(let failure?): throw BLEError(failure, adapter: name, during: operation)
        case .cancelled: throw cancelledError(during: operation)
        default:
            throw BLEError(
                .timedOut, subject: name, during: operation, because: "the kernel did not take the keys of the bonds")
        }
    }

    /// Waits until a socket that is attached to a link is encrypted, and discards what arrived before.
    func encrypt(
        _ socket: inout LinkSocket, _ handle: ConnectionHandle?, _ required: RequiredEncryption
    ) async throws(EncryptionFailure) {
        let limit = loop.now() + Self.encryptionTimeout
        var failure: HCIStatus?
        while true {
            if let handle, let end = links.lastEnd(of: handle) { throw Self.failure(of: end, after: failure) }
            guard let found = try? system.security(socket.descriptor) else { throw .linkLost(nil) }
            if required.isMet(by: found) { break }
            if let failure { throw Self.failure(of: nil, after: failure) }
            guard loop.now() < limit else { throw .keyNotLoaded }
            let pause = mayCommand && handle != nil ? limit : min(limit, loop.now() + Self.encryptionPause)
            let (wake, number) = await suspend(until: pause) { number in
                if let handle { security.awaitEncryption(of: handle, number) }
            }
            security.stopWaiting(number)
            switch wake {
            case .cancelled: throw .cancelled
            case .encryption(let status) where !status.isSuccess: failure = status
            default: break
            }
        }
        var discarded = 0
        while socket.receivePacket() != nil { discarded += 1 }
        security.discarded(discarded)
    }

    /// What the controller has reported where a peer does not accept the key of its bond; `nil` for any other end.
    func rejection(of handle: ConnectionHandle) -> EncryptionFailure? {
        // The socket may have reported the end before these events were read.
        commandsReadable()
        let failure = Self.failure(of: links.lastEnd(of: handle), after: security.encryptionFailure(of: handle))
        if case .rejected = failure { return failure }
        return nil
    }

    private static func failure(of end: HCIStatus?, after encryption: HCIStatus?) -> EncryptionFailure {
        switch (encryption, end) {
        case (.keyMissing?, _), (_, .micFailure?), (_, .authenticationFailure?): .rejected(encryption ?? end)
        default: .linkLost(end ?? encryption)
        }
    }

    /// Notes on the disk that the peer does not accept its key.
    func markRejected(_ identity: PeerID) async {
        guard let store = bondStore, let configuration = securityConfiguration else { return }
        let time = configuration.timeOfDay()
        do throws(BLEError) {
            use(
                try await onDisk(during: "mark the bond") { () throws(BLEError) -> [BondRecord] in
                    _ = try store.markRejected(identity, at: time)
                    return try store.load().records
                })
        } catch {
            logger.warning("a bond could not be marked", metadata: ["peer": "\(identity)", "reason": "\(error)"])
        }
    }
}

extension Adapter {
    /// A link to a bonded peer was not encrypted: a bond that the peer rejects is marked.
    func notEncrypted(_ peer: PeerID, _ failure: EncryptionFailure) async -> BLEError {
        if case .rejected = failure { await markRejected(identity(of: peer) ?? peer) }
        return error(failure, peer)
    }

    /// The error for a link to a bonded peer that was not encrypted.
    func error(_ failure: EncryptionFailure, _ peer: PeerID) -> BLEError {
        let operation = "connect"
        switch failure {
        case .rejected(let status):
            return BLEError(bondRejectedBy: identity(of: peer) ?? peer, during: operation, status)
        case .keyNotLoaded:
            return BLEError(
                .notBonded, subject: "\(peer)", during: operation,
                because: "the kernel did not have the key of the bond",
                hint: "Another program manages the adapter and has removed it: end that one, such as bluetoothd.")
        case .timedOut:
            return BLEError(
                .timedOut, subject: "\(peer)", during: operation, because: "the link was not encrypted in time")
        case .linkLost(let status):
            return BLEError(
                .connectFailed, subject: "\(peer)", during: operation,
                because: "the link ended before it was encrypted", hint: status?.sentence, hciStatus: status)
        case .cancelled:
            return cancelledError(during: operation)
        }
    }
}
