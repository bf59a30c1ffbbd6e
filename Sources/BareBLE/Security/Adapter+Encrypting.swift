internal import BLECore
internal import BLELinux
internal import Logging

// How a link to a bonded peer becomes encrypted before its first byte.
//
// The kernel encrypts by itself when a socket with a level of security attaches to a link whose key it has. The socket
// is writable then; but any packet of the peer makes it writable too, before it is encrypted or without that. So the
// level is read from the socket while it is connected, and what arrived before is discarded:
// nothing proves who sent it.
//
// A process that may not manage the adapter can give the kernel no keys. With CAP_NET_RAW it encrypts the link by a
// command with the stored key, before a socket attaches: `CommandEncryption`. BT_SECURITY knows nothing of that; what
// proves the encryption is the controller's event, and that nothing has ended it since (`LinkTable.keySize`). What the
// peer has sent before that was dropped by the kernel, which had no socket for it.
//
// Without that capability too, a bonded peer is not connected to. A level that is requested from the kernel is reached
// with whatever key it has, or makes it pair, and nothing shows this process which of both has happened.
//
// Invariants
// - A link to a bonded peer is handed on encrypted with at least the level and the key size of the bond, or not at all.
// - The level that is requested is the one of the stored key: for more the kernel would pair again.
// - A key that the peer rejects stays on the disk, marked. Only `forgetBond` removes it.

/// How the link to a bonded peer becomes encrypted.
enum EncryptionMeans {
    /// The kernel does it, with a key that it was given.
    case kernel
    /// The controller does it on a command of this program.
    case command
}

/// The security that a link to a bonded peer must have.
struct RequiredEncryption: Equatable {
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
    /// The controller did not take the command that encrypts, or reported another failure than a lost key.
    case notEncrypted(HCICommandFailure)
    /// Neither encryption nor its failure was reported in time.
    case timedOut
    case linkLost(HCIStatus?)
    case cancelled

    /// Whether it is worthwhile to give the kernel the keys again: without one it may also never report anything.
    var mayLackKey: Bool {
        switch self {
        case .keyNotLoaded, .timedOut: true
        case .rejected, .notEncrypted, .linkLost, .cancelled: false
        }
    }
}

extension Adapter {
    /// How long the encryption of a link takes at the most, where its parameters are the usual ones.
    private static let encryptionTimeout: Duration = .seconds(5)
    /// The encryption takes at most so many connection events in which the peer listens, some of them repeated.
    private static let encryptionEvents = 16
    /// The kernel's buffer for a socket holds fewer packets.
    private static let discardLimit = 4_096
    /// How often the security of the socket is read where the controller's events are not.
    private static let encryptionPause: Duration = .milliseconds(20)

    /// How links to bonded peers become encrypted: by the kernel, unless it takes no keys from this process; `nil` if
    /// they cannot be.
    var encryptionMeans: EncryptionMeans? { coordinator.isManaged ? .kernel : mayCommand ? .command : nil }

    /// Gives the kernel the keys of all bonds again: anybody may have emptied its lists unseen. While another peer is
    /// paired they are left as they are, and not waited for.
    ///
    /// - Parameter omitted: A peer whose bond is to be replaced: with its key the kernel would encrypt the link first.
    func loadKeys(leavingOut omitted: PeerID? = nil, in context: CallContext) async throws(BLEError) {
        let operation = context.operation
        if coordinator.isPairing {
            if coordinator.hasKeys { return }
            throw BLEError(
                .busy, subject: name, during: operation,
                because: "another peer is being paired, and the kernel does not have the keys of the bonds",
                hint: "Try again when that has ended.")
        }
        let (wake, number) = await suspend(until: context.deadline) { number in
            perform(coordinator.load(number, leavingOut: omitted))
        }
        coordinator.stopWaiting(number)
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
    ///
    /// - Returns: How many packets were discarded.
    func encrypt(
        _ socket: inout LinkSocket, _ handle: ConnectionHandle?, _ required: RequiredEncryption
    ) async throws(EncryptionFailure) -> Int {
        let limit = loop.now() + encryptionTimeout(of: handle)
        var failure: HCIStatus?
        // Set once the controller's event was read, on which the kernel has not acted yet.
        var isSettling = false
        while true {
            // It may have been read while the socket was attached.
            if let handle { failure = failure ?? links.encryptionFailure(of: handle) }
            if let handle, let end = attachedEnd(of: handle) { throw Self.failure(of: end, after: failure) }
            guard let found = try? system.security(socket.descriptor) else { throw .linkLost(nil) }
            if required.isMet(by: found) { break }
            if let failure { throw Self.failure(of: nil, after: failure) }
            guard loop.now() < limit else { throw .timedOut }
            let isNotified = mayCommand && handle != nil && !isSettling
            let pause = isNotified ? limit : min(limit, loop.now() + Self.encryptionPause)
            let (wake, number) = await suspend(until: pause) { number in
                guard let handle else { return }
                links.awaitEncryption(of: handle, number)
                // Other jobs may have run since the look above.
                let hasFailed = failure == nil && links.encryptionFailure(of: handle) != nil
                if hasFailed || attachedEnd(of: handle) != nil { self.wake(number) }
            }
            links.stopAwaitingEncryption(number)
            switch wake {
            case .cancelled: throw .cancelled
            case .encryption(let status) where !status.isSuccess: failure = status
            case .encryption: isSettling = true
            case .keyMissing(required.identity): throw .keyNotLoaded
            default: break
            }
        }
        return discard(&socket)
    }

    /// Returns the reason that a link has ended which a socket is attached to, and which is not registered yet; `nil`
    /// while it may be up. Where the beginnings of links are not reported, the last end may be an earlier link's.
    private func attachedEnd(of handle: ConnectionHandle) -> HCIStatus? {
        mayCommand ? links.lastEnd(of: handle) : links.unseenEnd(of: handle)
    }

    /// How long the encryption of a link may take: long intervals need more time.
    func encryptionTimeout(of handle: ConnectionHandle?) -> Duration {
        guard let parameters = handle.flatMap({ links.parameters(of: $0) }) else { return Self.encryptionTimeout }
        let event = parameters.interval.upperBound * (Int(parameters.latency) + 1)
        return max(Self.encryptionTimeout, event * Self.encryptionEvents)
    }

    /// Discards what arrived before a link was encrypted, and returns how many packets that were.
    ///
    /// The peer may have sent them after that all the same, and wait for a response: for 30 s, and then it would send
    /// nothing more on this link. So requests are refused, and indications are confirmed; both reveal nothing.
    func discard(_ socket: inout LinkSocket) -> Int {
        var count = 0
        while count < Self.discardLimit, let packet = socket.receivePacket() {
            count += 1
            if let reply = ATTPacket.reply(toDiscarded: packet) { _ = socket.send(reply) }
        }
        security.discarded(count)
        return count
    }

    /// What the controller or the kernel has reported where a peer does not accept the key of its bond; `nil` for any
    /// other end.
    func rejection(by peer: PeerID, of handle: ConnectionHandle?) -> EncryptionFailure? {
        // The socket may have reported the end before these events were read.
        commandsReadable()
        managementReadable()
        let isRejected = coordinator.takeRejection(by: peer)
        if let handle {
            let failure = Self.failure(of: links.lastEnd(of: handle), after: links.encryptionFailure(of: handle))
            if case .rejected = failure { return failure }
        }
        return isRejected ? .rejected(nil) : nil
    }

    private static func failure(of end: HCIStatus?, after encryption: HCIStatus?) -> EncryptionFailure {
        switch (encryption, end) {
        case (.keyMissing?, _), (_, .micFailure?), (_, .authenticationFailure?): .rejected(encryption ?? end)
        default: .linkLost(end ?? encryption)
        }
    }

    // MARK: By command

    /// Encrypts a link by a command with the key of the bond.
    func encryptByCommand(_ handle: ConnectionHandle, of identity: PeerID) async throws(EncryptionFailure) {
        let interruption = WaitInterruption.handled { [weak self] number, _ in
            self?.assumeIsolated { $0.perform($0.security.encryption.cancel(number)) }
        }
        let (wake, _) = await suspend(interruption: interruption) { number in
            perform(security.encryption.encrypt(handle, of: identity, number))
        }
        guard case .encrypted(let result) = wake else { throw .cancelled }
        if case .failure(let reason) = result { throw failure(reason, of: handle) }
    }

    /// Performs what the encryption by command returns.
    func perform(_ actions: [CommandEncryption.Action]) {
        for action in actions {
            switch action {
            case .encrypt(let command, let number): send(HCICommandPacket(command), for: .encryption(number))
            case .withdraw: perform(hci.withdraw(.leEnableEncryption))
            case .encrypted(let waiter, let result):
                if case .success(let use) = result { links.encrypted(use.handle, keySize: use.keySize) }
                wake(waiter, .encrypted(result))
            }
        }
        armTimer()
    }

    /// What the failure of an encryption by command means.
    private func failure(_ reason: LinkEncryption.Failure, of handle: ConnectionHandle) -> EncryptionFailure {
        switch reason {
        case .refused(let failure): .notEncrypted(failure)
        case .failed(.keyMissing?): .rejected(.keyMissing)
        case .failed(let status):
            .notEncrypted(
                HCICommandFailure(opcode: .leEnableEncryption, reason: .status(status ?? .encryptionModeNotAcceptable)))
        case .timedOut: .timedOut
        // The kernel drops a link that no socket attaches to in time.
        case .linkLost(.localHostTerminated?): .timedOut
        case .linkLost(.keyMissing?): .rejected(.keyMissing)
        case .linkLost(let reason): Self.failure(of: reason, after: links.encryptionFailure(of: handle))
        case .cancelled: .cancelled
        case .busy: .notEncrypted(HCICommandFailure(opcode: .leEnableEncryption, reason: .queueFull))
        case .noKey: .keyNotLoaded
        }
    }

    /// The names that the kernel may have for a bonded peer: its identity if it has the key of its private addresses,
    /// perhaps from an earlier process, and otherwise the address on air.
    func kernelNames(of target: ConnectTarget) -> [PeerID] {
        [target.peer, addressOnAir(of: target.peer), target.address].compactMap(\.self)
    }

    /// Returns the name by which the kernel has a link to a bonded peer.
    ///
    /// The kernel handles an event after this process could read it, and may still be about to file the link. It also
    /// keeps what arrives until then, and drops it afterwards, if no socket is attached.
    func kernelName(
        of target: ConnectTarget, _ handle: ConnectionHandle, until deadline: BootInstant
    ) async throws(EncryptionFailure) -> PeerID {
        let names = kernelNames(of: target)
        while let info, links.lastEnd(of: handle) == nil, loop.now() < deadline {
            if let name = names.first(where: { system.linkHandle(info.index, $0.address) == handle }) { return name }
            let (wake, _) = await suspend(until: min(deadline, loop.now() + Self.encryptionPause)) { _ in }
            if case .cancelled = wake { throw .cancelled }
        }
        throw .linkLost(links.lastEnd(of: handle))
    }

    /// Returns the names under which the kernel may have a link to a private address without a bond, the likelier one
    /// first. It has the link under an identity where it was given that peer's key by another program, or by an earlier
    /// process, and does not list whether the identity is a public address or a static one.
    func kernelNames(
        ofPrivate peer: PeerID, _ handle: ConnectionHandle, until deadline: BootInstant
    ) async -> (first: PeerID, second: PeerID?) {
        while let info, links.lastEnd(of: handle) == nil, loop.now() < deadline {
            if let address = system.linkAddress(info.index, handle) {
                if address == peer.address { return (peer, nil) }
                let random = PeerID(address: address, type: .random)
                let fixed = PeerID(address: address, type: .public)
                if random.kind == .static { return (random, fixed) }
                return (fixed, nil)
            }
            let (wake, _) = await suspend(until: min(deadline, loop.now() + Self.encryptionPause)) { _ in }
            if case .cancelled = wake { break }
        }
        return (peer, nil)
    }

    /// Reads what the controller has reported up to now, and checks that nothing of it has ended the encryption by
    /// command of the link that a socket is attached to.
    ///
    /// If the link was gone, the kernel may have made another one, unencrypted, and perhaps with the same handle. It
    /// acts on an event only after this process could read it.
    ///
    /// Nor may the bond have been forgotten: `forgetBond` ends the links that are registered, and this one is not yet.
    func checkEncryption(
        _ handle: ConnectionHandle, of identity: PeerID, attached: ConnectionHandle
    ) throws(EncryptionFailure) {
        commandsReadable()
        reportsReadable()
        guard bonds.record(of: identity) != nil else { throw .keyNotLoaded }
        guard attached == handle, links.keySize(of: handle) != nil else {
            throw Self.failure(of: links.lastEnd(of: handle), after: links.encryptionFailure(of: handle))
        }
    }
}

// MARK: - Connecting

extension Adapter {
    /// How long an address that was heard is initiated to without listening again.
    private static let freshness: Duration = .seconds(10)

    /// Returns what a connect to this address means: a bonded peer's is one to its identity.
    ///
    /// - Throws: `BLEError` with `.notBonded` where a bond is demanded, and for one whose key cannot be used;
    ///   `.adapterMismatch` for one that is for other hardware; `.adapterShared` where the adapter is not to be shared;
    ///   `.keyTooShort` for a bond whose key is too short by now; `.notPermitted` where its key may not be used;
    ///   `.pairingFailed` for a bond that is weaker than a pairing would have to be; `.notSupported` for a private
    ///   address that may be a bonded peer's and cannot be resolved; `.unusableState` for a peer whose bond could not
    ///   be read.
    func target(_ address: PeerID, _ demand: ConnectOptions.SecurityDemand) throws(BLEError) -> ConnectTarget {
        let identity = identity(of: address) ?? address
        guard let configuration = bonds.configuration, let record = bonds.record(of: identity) else {
            if demand == .bonded {
                throw missingBondError("\(address)", during: "connect")
            }
            try checkIsStranger(address, demand, during: "connect")
            return ConnectTarget(peer: address, address: address, isBonded: false, means: nil, required: nil)
        }
        let means = encryptionMeans
        if let options = demand.pairing, demand.uses(record) {
            try checkStrength(of: record, options.require, during: "connect")
        }
        guard demand.uses(record) else {
            return ConnectTarget(peer: identity, address: address, isBonded: true, means: means, required: nil)
        }
        try checkSharing(during: "connect")
        guard means != nil else { throw .keyNotPermitted(identity) }
        do throws(BondRefusal) {
            _ = try BondRules.centralKey(of: record, adapter: bonds.hardware)
        } catch {
            throw BLEError(unusableBondWith: identity, error, during: "connect")
        }
        if let size = record.centralKey?.size, Int(size) < configuration.minimumKeySize {
            throw BLEError(
                .keyTooShort, subject: "\(identity)", during: "connect",
                because: "the key of its bond has \(size) bytes, and \(configuration.minimumKeySize) are required",
                hint: "Forget the bond and pair again.")
        }
        let required = RequiredEncryption(record, minimumKeySize: configuration.minimumKeySize)
        return ConnectTarget(peer: identity, address: address, isBonded: true, means: means, required: required)
    }

    /// Refuses a peer whose bond could not be read, unless it is to be paired, and a private address that may be a
    /// bonded peer's, where nothing shows whose it is: its link would not be encrypted.
    private func checkIsStranger(
        _ address: PeerID, _ demand: ConnectOptions.SecurityDemand, during operation: String
    ) throws(BLEError) {
        if demand != .none, demand.pairing == nil, bonds.isLost(address) {
            throw BLEError(bondLostWith: address, during: operation)
        }
        guard demand != .none, address.kind == .resolvablePrivate,
            bonds.records.contains(where: { $0.resolvingKey != nil })
        else { return }
        if security.addressHash == nil {
            throw BLEError(
                .notSupported, subject: "\(address)", during: operation,
                because: "that may be the private address of a bonded device, and this program cannot resolve it",
                hint: "Set `Configuration.addressHash` to `{ $0.hash }`, with `import BareBLECrypto`.")
        }
        guard scan.isAmbiguous(address) else { return }
        throw BLEError(
            .notBonded, subject: "\(address)", during: operation,
            because: "several bonded devices have the key of this private address, so that its bond is not known",
            hint: "Forget all but one of those whose `Bond.resolvesPrivateAddresses` is false.")
    }

    /// Logs an unencrypted link to a private address that may belong to a peer whose bond could not be read.
    func logDoubt(about target: ConnectTarget) {
        guard bonds.damage != nil, !target.isBonded, target.address.kind == .resolvablePrivate else { return }
        logger.warning(
            "a link to a private address is not encrypted, and the device may have one of the bonds that could not be read",
            metadata: ["adapter": "\(nameAndAddress)", "peer": "\(target.address)"])
    }

    /// Returns why a link that is up may not be taken for one to a stranger, as a connect to its peer's address could
    /// not be; `nil` if it may, or if there is a bond with the peer.
    func strangerError(
        of link: LinkIdentity, _ demand: ConnectOptions.SecurityDemand, during operation: String
    ) -> BLEError? {
        guard demand != .none, security.isConfigured, bond(with: link.peer) == nil else { return nil }
        guard bonds.isOpen else {
            return BLEError(
                .notBonded, subject: "\(link.peer)", during: operation, because: "the bonds have not been read",
                hint: "`Central.bonds()` reads them, or reports why that fails.")
        }
        do throws(BLEError) {
            try checkIsStranger(link.peer, demand, during: operation)
            return nil
        } catch {
            return error
        }
    }

    /// Listens for a bonded peer that may use private addresses, unless it was heard a moment ago.
    ///
    /// - Throws: `BLEError` with `.timedOut` if it was not heard, `.adapterDown`, `.noAdapter`,
    ///   `.blocked`, `.cancelled`.
    func listen(for target: ConnectTarget, until limit: BootInstant?) async throws(BLEError) {
        guard mayChangeAddress(target), !hasLink(to: target) else { return }
        let begin = loop.now()
        func isHeard(since moment: BootInstant) -> Bool {
            scan.scanResult(of: target.peer).map { $0.lastSeen >= moment } ?? false
        }
        if let heard = scan.scanResult(of: target.peer)?.lastSeen, heard + Self.freshness >= begin,
            bonds.lastLinkEnd(of: target.peer).map({ $0 <= heard }) ?? true
        {
            return
        }
        let waiter = Lock<UInt64?>(nil)
        let settings = ScanSettings.balanced.matching(.peer(target.peer)).duplicates(.all).rssiDelta(nil)
        let number: ScanID
        do throws(BLEError) {
            number = try await subscribe(settings) { [weak self] delivery in
                guard let number = waiter.withLock({ $0 }) else { return }
                self?.assumeIsolated { adapter in
                    switch delivery {
                    case .notice(.adapterLost):
                        adapter.wake(number, .failed(adapter.downError(during: "connect")))
                    case .notice: break
                    default: adapter.wake(number)
                    }
                }
            }
        } catch {
            // Where nothing can be heard, the address that was known last may still be the right one.
            if error.code == .cancelled { throw error }
            return
        }
        var wake = Wake.resumed
        if !isHeard(since: begin) {
            (wake, _) = await suspend(until: limit) { number in waiter.withLock { $0 = number } }
        }
        await unsubscribe(number)
        switch wake {
        case .cancelled: throw cancelledError(during: "connect")
        case .timedOut: throw .notHeard(target.peer)
        case .failed(let error): throw error
        default: return
        }
    }

    /// Whether a bonded peer may use private addresses, which can be recognized.
    func mayChangeAddress(_ target: ConnectTarget) -> Bool {
        target.isBonded && mayCommand && security.addressHash != nil
            && bonds.record(of: target.peer)?.resolvingKey != nil
    }

    /// Whether the kernel has a link to a peer under one of its names.
    func hasLink(to target: ConnectTarget) -> Bool {
        if hasLink(to: target.peer) || target.address != target.peer && hasLink(to: target.address) { return true }
        guard target.isBonded, let onAir = addressOnAir(of: target.peer), onAir != target.peer else { return false }
        return hasLink(to: onAir)
    }

    /// Pairs over a link that nothing has been sent on, and files it under the identity that the peer has distributed.
    ///
    /// - Throws: As `pair` does; the link has ended then.
    func pair(_ link: consuming AdapterLink, _ options: PairingOptions) async throws(BLEError) -> AdapterLink {
        let identity = link.identity
        let bond: Bond
        do throws(BLEError) {
            bond = try await pair(identity, descriptor: link.socket.descriptor, options)
        } catch {
            await disconnect(identity)
            throw error
        }
        // Its handle may belong to another link by now.
        guard links.isCurrent(identity) else {
            throw BLEError(
                .disconnected, subject: "\(bond.peer)", during: "connect",
                because: "the link has ended after the pairing", hint: "Connect again; there is a bond now.")
        }
        let discarded = discard(&link.socket)
        // The name may be another one now.
        return adopt(link.socket, handle: identity.handle, bond.peer, hasDiscarded: discarded > 0)
    }

    // MARK: The security of links

    /// The security of a link, by the descriptor of its socket.
    func linkSecurity(of link: LinkIdentity, _ descriptor: Int32) -> LinkSecurity {
        let record = bondRecord(of: link)
        let bond = record.flatMap { record in address.map { Bond(record, adapter: $0) } }
        // The kernel does not know how a command has encrypted it, unless it has done so itself since.
        if let record, let size = links.keySize(of: link) {
            return LinkSecurity(level: Int(record.level.rawValue), keySize: Int(size), bond: bond)
        }
        guard let found = try? system.security(descriptor) else { return .none }
        return LinkSecurity(found, bond: bond)
    }

    /// Returns whether there is a bond with a peer.
    package func isBonded(with peer: PeerID) -> Bool { bond(with: peer) != nil }

    /// The bond with the peer of a link; `nil` where its key may not be the one that encrypts the link.
    func bond(of link: LinkIdentity) -> BondID? { bondRecord(of: link).map { BondID($0) } }

    /// The bond whose key encrypts a link if the link is encrypted.
    func bondRecord(of link: LinkIdentity) -> BondRecord? {
        if security.centrals.isUnproven(link) { return nil }
        let identity = identity(of: link.peer) ?? link.peer
        // While a new bond is being stored, the kernel has its key already, also for a next link of the same central.
        if let pairing = security.centrals.pairing?.link.peer, self.identity(of: pairing) ?? pairing == identity {
            return nil
        }
        return bonds.usableRecord(of: identity)
    }

    /// Records that the key of the bond with the peer of a link has encrypted it.
    func recordEncryption(of link: LinkIdentity) {
        // A pairing that is to replace the bond encrypts the link with another key.
        guard security.pairing.context?.link != link, let record = bondRecord(of: link) else { return }
        bonds.recordEncryption(record.identity)
    }

    /// Gives the kernel the key of a bonded peer again that was removed by others, unless they have removed the bond
    /// too.
    func loadRemovedKey(of peer: PeerID) async {
        await bonds.readAgain()
        perform(coordinator.loadRemovedKey(of: peer))
    }

    /// The bond with a peer.
    func bond(with peer: PeerID) -> BondID? {
        bonds.record(of: identity(of: peer) ?? peer).map { BondID($0) }
    }

    /// A link to a bonded peer was not encrypted: a bond that the peer rejects is marked.
    func notEncrypted(_ peer: PeerID, _ failure: EncryptionFailure) async -> BLEError {
        if case .rejected = failure {
            let identity = identity(of: peer) ?? peer
            await bonds.markRejected(identity)
            security.report(.bondRejected(identity))
        }
        return error(failure, peer)
    }

    /// The error for a link to a bonded peer that was not encrypted.
    func error(_ failure: EncryptionFailure, _ peer: PeerID) -> BLEError {
        let operation = "connect"
        switch failure {
        case .rejected(let status):
            return BLEError(bondRejectedBy: identity(of: peer) ?? peer, during: operation, status)
        case .keyNotLoaded where !coordinator.isManaged:
            return BLEError(
                .notBonded, subject: "\(peer)", during: operation,
                because: "its bond with \(nameAndAddress) was forgotten meanwhile", hint: "Pair with it again.")
        case .keyNotLoaded:
            return BLEError(
                .adapterShared, subject: "\(peer)", during: operation,
                because: "the kernel did not have the key of the bond: another program has removed it",
                hint: "End the program that manages the adapter too, such as bluetoothd.")
        case .notEncrypted(let failure): return error(notEncrypting: failure, peer, during: operation)
        case .timedOut:
            return BLEError(
                .timedOut, subject: "\(peer)", during: operation, because: "the link was not encrypted in time",
                hint: "The peer may be far away or disturbed; try again nearer to it.", origin: .peer
            ).asEncryptionTimeout()
        case .linkLost(let status):
            return BLEError(
                .connectFailed, subject: "\(peer)", during: operation,
                because: "the link ended before it was encrypted", hint: status?.sentence, hciStatus: status)
        case .cancelled:
            return cancelledError(during: operation)
        }
    }

    /// The error for a link that a command could not encrypt.
    private func error(
        notEncrypting failure: HCICommandFailure, _ peer: PeerID, during operation: String
    ) -> BLEError {
        guard case .status(let status) = failure.reason else { return error(failure, during: operation) }
        let (code, hint): (BLEError.Code, String?) =
            switch status {
            case .unknownCommand, .unsupportedFeature:
                (.notSupported, "The controller cannot encrypt by command: give the program CAP_NET_ADMIN.")
            case .unsupportedRemoteFeature:
                (.notSupported, "The device cannot encrypt, so it is not the one that was paired, or was changed.")
            case .commandDisallowed, .invalidParameters:
                (
                    .connectFailed,
                    "Another program, or the kernel, may be encrypting the link: connect again, and let one program use "
                        + "\(name)."
                )
            default: (.connectFailed, status.sentence)
            }
        return BLEError(
            code, subject: "\(peer)", during: operation,
            because: "the controller did not encrypt the link: \(status.name.lowercased())", hint: hint,
            hciStatus: status)
    }
}
