package import BLECore
internal import BLELinux
internal import Logging

// Two ways to a link.
//
// With CAP_NET_RAW the controller initiates the connection, and a socket attaches to the link that comes up: own
// parameters, a real cancel, the controller's own reason, and no dependence on the state of the kernel's scanner. Our
// scan makes way meanwhile, because many controllers do not initiate while they scan.
//
// Without it the kernel is asked: it scans and initiates by itself, and returns an error number. Since 6.10 it does not
// look for the peer at all after an active scan of another program has ended; nothing but capabilities helps then, so
// the error of the time-out reports that.
//
// A link that comes up by command belongs to no socket for some milliseconds. Where bluetoothd serves the same adapter,
// its listening socket is handed the ATT channel of every such link, and closes it or not. So a link whose channel
// another program has is disconnected, and the kernel connects: its socket has the channel from the start.
//
// A bonded peer is one peer under all its names: its link is filed under its identity, as the kernel does it. What it
// uses on the air is known from scan reports; one that may use private addresses and was not heard lately is listened
// for first, because an address that it no longer uses is never heard.
//
// Where the kernel was given no keys, a link to a bonded peer is encrypted by a command before a socket attaches, and
// never made by the kernel.
//
// What follows which failure is decided by `ConnectRetry`, and by `Initiator.Attempt.substitute` where the controller
// refuses what it lists; this file performs their steps.

/// The peer of a connect.
struct ConnectTarget: Equatable {
    /// The peer by the name that its link is filed under: its identity if it is bonded.
    let peer: PeerID
    /// The address that the caller gave.
    let address: PeerID
    let isBonded: Bool
    /// How its link can be encrypted. By command, the kernel has no keys of this program, and may know the peer by its
    /// address on air.
    let means: EncryptionMeans?
    /// What the link must have before its first byte.
    let required: RequiredEncryption?
}

extension Adapter {
    /// How a turn with the controller has ended.
    private enum Turn: ~Copyable {
        case connected(AdapterLink)
        /// The peer was not heard: a connect without a time-out has another turn.
        case notHeard(BLEError)
        /// The link was not encrypted.
        case notEncrypted(EncryptionFailure, BLEError)
        /// The peer was bonded, or its bond forgotten, while others had their turns; or it was bonded during this turn,
        /// over another link.
        case bondChanged
    }

    /// Connects to a peer, when it is this connect's turn; without a time-out in many turns, as long as the task lives.
    ///
    /// - Throws: `BLEError` with `.timedOut` (the peer was not heard), `.busy`, `.connectFailed`, `.lowEnergyOff`,
    ///   `.invalidArgument`, `.notBonded`, `.bondRejected`, `.unusableState`, `.keyTooShort`, `.adapterShared`,
    ///   `.cancelled`, the codes of `prepare`, and those of `pair` if that is demanded.
    package func connect(
        _ address: PeerID, parameters: ConnectionParameters?, timeout: Duration?,
        security demand: ConnectOptions.SecurityDemand = .asBonded
    ) async throws(BLEError) -> AdapterLink {
        let limit = timeout.map { loop.now() + $0 }
        let context = CallContext("connect", until: limit)
        var retry = ConnectRetry(until: limit, at: loop.now())
        // The bonds must be known.
        if security.isConfigured {
            try await prepare(in: context)
            if demand != .none { try await openBonds(in: context) }
        }
        // Also where it fails: the peer may connect by itself, and would find no key.
        defer { loadOmittedKeys(of: address, demand) }
        while true {
            // It may have been bonded meanwhile, or forgotten.
            let target = try target(address, demand)
            try await listen(for: target, until: limit)
            let turn = try await connectInTurn(target, demand, parameters ?? .balanced, &retry, in: context)
            switch consume turn {
            case .connected(let link):
                guard let options = demand.pairing, target.required == nil else {
                    if demand == .asBonded { logDoubt(about: target) }
                    return link
                }
                return try await pair(link, options)
            case .bondChanged: continue
            case .notEncrypted(let failure, let error):
                // Another program may have emptied the kernel's lists in between.
                guard failure.mayLackKey, target.means == .kernel, retry.keysMissing() else { throw error }
                if case .keyNotLoaded = failure { security.report(.keysLoadedAgain(target.peer)) }
            case .notHeard(let error):
                // Its next turn may be hours away.
                loadOmittedKeys(of: address, demand)
                let mayChangeAddress = mayChangeAddress(target)
                let next = retry.nextTurn(mayChangeAddress: mayChangeAddress, isShared: isShared, at: loop.now())
                switch next {
                case .none: throw error
                case .listen: bonds.linkEnded(target.peer, at: loop.now())
                case .next(let pause): if let pause { try await sleep(until: pause) }
                }
            }
        }
    }

    /// Gives the kernel the keys of a peer again that a connect has left out to replace its bond, unless it is paired.
    private func loadOmittedKeys(of address: PeerID, _ demand: ConnectOptions.SecurityDemand) {
        guard demand.pairing != nil else { return }
        perform(coordinator.loadOmittedKeys(of: identity(of: address) ?? address))
    }

    /// - Throws: `BLEError` with `.invalidArgument` for an address that no peer has.
    func checkIsPeer(_ other: BluetoothAddress, _ subject: String, during operation: String) throws(BLEError) {
        guard other == .zero || other == address else { return }
        throw BLEError(
            .invalidArgument, subject: subject, during: operation,
            because: "that is \(other == .zero ? "no device's" : "this adapter's own") address",
            hint: "Use the address with which a scan reports the device.")
    }

    private func connectInTurn(
        _ target: ConnectTarget, _ demand: ConnectOptions.SecurityDemand, _ parameters: ConnectionParameters,
        _ retry: inout ConnectRetry, in context: CallContext
    ) async throws(BLEError) -> Turn {
        let limit = context.deadline
        try await prepare(in: context)
        try checkIsPeer(target.address.address, "\(target.address)", during: "connect")
        var hasWaited = false
        var wait = LinkLimit.Wait()
        while true {
            // Without the turn: others may need no room.
            try await awaitRoom(for: target, &wait, until: limit)
            if try await takeTurn(until: limit, target.peer) { hasWaited = true }
            if case .free = room(for: target, &wait, until: limit) { break }
            initiator.passTurn()
        }
        defer { initiator.passTurn() }
        if let rest = retry.rest(after: initiator.unheardTurnEnd, isShared: isShared, at: loop.now()) {
            hasWaited = true
            try await sleep(until: rest)
        }
        // The adapter may have gone while others had their turns.
        if hasWaited { try await prepare(in: context) }
        if try self.target(target.address, demand) != target { return .bondChanged }
        retry.beginTurn(at: loop.now())
        // What an earlier link has shown of the bond, which may be another one since.
        _ = coordinator.takeRejection(by: target.peer)
        if target.means == .kernel {
            let omitted = demand.pairing != nil && target.required == nil ? target.peer : nil
            try await loadKeys(leavingOut: omitted, in: context.limited(to: retry.deadline))
        }
        guard mayCommand else { return try await connect(target, demand, parameters, &retry) }
        await pauseScan(until: retry.deadline)
        defer { resumeScan() }
        // Many controllers do not initiate while they advertise.
        await advertiser.pause(until: min(retry.deadline, loop.now() + .seconds(3))) { perform($0) }
        defer { perform(advertiser.resume()) }
        await instances.pause(until: min(retry.deadline, loop.now() + .seconds(3)))
        defer { instances.resume() }
        try await awaitDisconnection(from: target.peer, until: retry.deadline)
        try await confirmCancel(for: target.peer, until: retry.deadline)
        return try await connect(target, demand, parameters, &retry)
    }

    /// Performs the steps of one turn.
    private func connect(
        _ target: ConnectTarget, _ demand: ConnectOptions.SecurityDemand, _ parameters: ConnectionParameters,
        _ retry: inout ConnectRetry
    ) async throws(BLEError) -> Turn {
        let peer = target.peer
        var error = BLEError.notHeard(peer)
        var isScanning = false
        defer { if isScanning { stopScanningForTheKernel() } }
        var step = retry.begin(mayCommand: mayCommand, at: loop.now())
        while true {
            logger.debug(
                "connecting",
                metadata: ["peer": "\(peer)", "attempt": "\(retry.attemptNumber)", "step": "\(step)"])
            switch step {
            case .initiate:
                if try isBondedMeanwhile(target, demand) { return .bondChanged }
                let failure: Initiator.Failure?
                let limit = retry.attemptDeadline(mayChangeAddress: mayChangeAddress(target), at: loop.now())
                switch await initiate(target, parameters, until: limit) {
                case .success(let complete)?:
                    let hasLost = links.hasLostRequest(on: complete.handle, isEncrypted: target.required != nil)
                    step = retry.initiated(complete.handle, hasLostRequest: hasLost, at: loop.now())
                    continue
                case .failure(let reason)?:
                    error = self.error(reason, peer)
                    failure = reason
                case nil:
                    failure = nil
                }
                step = retry.notInitiated(failure, hasLink: hasLink(to: target), at: loop.now())
            case .attach(let handle, let deadline):
                let wasUp = handle != nil || hasLink(to: target)
                do throws(AttachError) {
                    return .connected(try await attach(target, to: handle, until: deadline))
                } catch let reason {
                    if case .encryption(let failure) = reason {
                        return .notEncrypted(failure, await notEncrypted(peer, failure))
                    }
                    let end = handle.flatMap { links.lastEnd(of: $0) }
                    error = self.error(reason, status: end, peer, wasUp: wasUp)
                    step = retry.notAttached(reason.failure, end: end, at: loop.now())
                }
            case .disconnect(let handle):
                await disconnectAndWait(handle, from: peer)
                step = retry.disconnected(at: loop.now())
            case .connectByKernel where target.required != nil && target.means == .command:
                // Its socket would be there before the encryption.
                throw BLEError(channelTakenOf: peer, adapter: name)
            case .connectByKernel(let scanning):
                if try isBondedMeanwhile(target, demand) { return .bondChanged }
                if scanning, !isScanning { scanForTheKernel() }
                isScanning = scanning
                do throws(AttachError) {
                    let link = try await attach(target, to: nil, until: retry.deadline)
                    adjust(link.identity, to: parameters)
                    return .connected(link)
                } catch let reason {
                    if case .encryption(let failure) = reason {
                        return .notEncrypted(failure, await notEncrypted(peer, failure))
                    }
                    error = self.error(reason, status: nil, peer, wasUp: false)
                    step = retry.kernelFailed(reason.failure, at: loop.now())
                }
            case .pause(let deadline):
                try await sleep(until: deadline)
                step = retry.paused()
            case .fail:
                throw error
            case .peerNotHeard:
                initiator.noteUnheardTurn()
                return .notHeard(error)
            case .tooLate:
                initiator.noteUnheardTurn()
                return .notHeard(
                    BLEError(
                        .timedOut, subject: "\(peer)", during: "connect",
                        because: "the time was over before the connection could be initiated",
                        hint: "Allow more time; if this recurs, the controller may be silent: "
                            + "switch the adapter off and on."))
            case .failChannelTaken:
                throw BLEError(channelTakenOf: peer, adapter: name)
            }
        }
    }

    /// Whether the peer of a link that is to be made without a key has been bonded since the turn began: a connect that
    /// finds another link to the peer tries again after a pause, and the two may have paired over that link.
    private func isBondedMeanwhile(
        _ target: ConnectTarget, _ demand: ConnectOptions.SecurityDemand
    ) throws(BLEError) -> Bool {
        guard target.required == nil else { return false }
        return try self.target(target.address, demand) != target
    }

    /// Whether there are scans or advertisements, which pause during a turn.
    private var isShared: Bool { scan.hasScans || advertiser.setCount > 0 || instances.count > 0 }

    private func sleep(until deadline: BootInstant) async throws(BLEError) {
        _ = await suspend(until: deadline) { _ in }
        if Task.isCancelled { throw cancelledError(during: "connect") }
    }

    // MARK: Turns

    /// - Returns: Whether others had theirs before.
    private func takeTurn(until deadline: BootInstant?, _ peer: PeerID) async throws(BLEError) -> Bool {
        switch await initiator.takeTurn(until: deadline) {
        case .resumed(let hasWaited): return hasWaited
        case .timedOut: throw timedOutError(peer, isWaiting: true)
        case .cancelled: throw cancelledError(during: "connect")
        }
    }

    // MARK: The number of links

    /// The handles of the LE links that are up on the adapter, of all programs.
    var linksUp: [ConnectionHandle] {
        let known = info.flatMap { system.lowEnergyLinkHandles($0.index) } ?? []
        // The kernel lists a link for a moment after programs have read its end.
        let now = loop.now()
        return known.filter { !links.hasJustEnded($0, at: now) }
    }

    /// Whether another link may be initiated now.
    private func room(
        for target: ConnectTarget, _ wait: inout LinkLimit.Wait, until limit: BootInstant?
    ) -> LinkLimit.Room {
        guard initiator.hasLinkLimit, !hasLink(to: target) else { return .free }
        return wait.room(by: initiator.advice(links: linksUp.count), at: loop.now(), until: limit)
    }

    /// Waits for the end of a link where as many are up as may be, or as the controller can have.
    private func awaitRoom(
        for target: ConnectTarget, _ wait: inout LinkLimit.Wait, until limit: BootInstant?
    ) async throws(BLEError) {
        while true {
            let end: BootInstant?
            switch room(for: target, &wait, until: limit) {
            case .free: return
            case .missing(let deadline): end = deadline
            case .full(let most):
                if let limit, limit <= loop.now() {
                    throw BLEError(fullOf: linksUp.count, limit: most, peer: target.peer)
                }
                end = limit
            }
            let up = linksUp
            let look = loop.now() + Self.roomPause
            let (wake, number) = await suspend(until: min(end ?? look, look)) { number in
                for handle in up { _ = links.awaitEnd(of: handle, number) }
            }
            for handle in up { links.cancelAwaitingEnd(of: handle, number) }
            if case .cancelled = wake { throw cancelledError(during: "connect") }
            guard presence == .up else { throw downError(during: "connect") }
        }
    }

    /// How often the links are looked at while a connect waits for the end of one. The ends of links are reported,
    /// those of other programs too, so this is for a report that was lost.
    private static let roomPause: Duration = .seconds(60)

    private func pauseScan(until deadline: BootInstant) async {
        recovery.scanMakesWay(true, at: loop.now())
        guard scan.makeWay() else { return }
        _ = await suspend(until: min(deadline, loop.now() + .seconds(3))) { number in
            perform(scan.pause(number, at: loop.now()))
        }
        scan.endPauseWait()
    }

    private func resumeScan() {
        recovery.scanMakesWay(false, at: loop.now())
        perform(scan.resume(at: loop.now()))
    }

    // MARK: By command

    /// How long the kernel may take to file a link whose beginning the controller has reported.
    private static let filingTime: Duration = .seconds(2)
    /// How long a socket may take to attach to a link that is up, where the kernel may have it under another name.
    private static let nameTime: Duration = .milliseconds(500)

    /// Has the controller initiate the connection; `nil` where there is a link to the peer already.
    private func initiate(
        _ target: ConnectTarget, _ parameters: ConnectionParameters, until deadline: BootInstant
    ) async -> Result<LEConnectionComplete, Initiator.Failure>? {
        if hasLink(to: target) { return nil }
        // A device with private addresses is initiated by the one that it was heard with.
        let onAir = (target.isBonded ? addressOnAir(of: target.peer) : nil) ?? target.address
        let initiation = LEInitiation(
            peer: onAir, ownAddressType: traits.ownAddressType,
            scanWindow: system.sharesAntenna(name) ? LEInitiation.windowBesideWiFi : LEInitiation.usualWindow,
            parameters: parameters)
        // A controller uses one set of commands from power-up on.
        let isExtended = traits.hasExtendedConnect && !scan.hasFallenBack
        let isLongRange =
            isExtended && scan.controller?.hasCodedPHY == true
            && scan.scanResult(of: target.peer)?.advertisement?.primaryPHY == .leCoded
        var attempt = Initiator.Attempt(
            initiation, phys: isLongRange ? [.le1M, .leCoded] : .le1M, isExtended: isExtended, deadline: deadline)
        links.attemptBegins()
        // The kernel copies the data of all links for that, so only until the first one is up.
        if !links.hasLinks, linksUp.isEmpty { hci.passData(true) }
        defer {
            hci.passData(false)
            watchPresence()
        }
        let ahead = links.packetsAhead
        var result = await initiator.initiate(attempt)
        judge(result, target)
        let first = result
        // Some controllers list the extended command, or the coded PHY, and do not know it.
        while case .failure(let failure) = result, let substitute = attempt.substitute(after: failure) {
            attempt = substitute
            result = await initiator.initiate(attempt)
            judge(result, target)
        }
        if attempt.isSubstitute {
            switch result {
            case .success, .failure(.failed):
                identification.lacksExtendedConnect()
                logger.info("the controller does not know its extended connect", metadata: ["adapter": "\(name)"])
            case .failure(.refused(let refusal)) where refusal.status == .commandDisallowed:
                // It knows the extended command: why it refused that is the cause.
                result = first
            case .failure: break
            }
        }
        if links.packetsAhead > ahead {
            logger.warning(
                "data came ahead of the link, and the kernel has dropped it",
                metadata: ["adapter": "\(name)", "peer": "\(target.peer)", "packets": "\(links.packetsAhead - ahead)"])
        }
        return result
    }

    /// Learns from the end of an attempt.
    private func judge(
        _ result: Result<LEConnectionComplete, Initiator.Failure>, _ target: ConnectTarget
    ) {
        switch result {
        case .success(let complete):
            if initiator.hasLinkLimit { initiator.linkHeld(beside: linksUp.count { $0 != complete.handle }) }
            initiator.forgetSuspicion(of: target.peer)
            perform(recovery.linkNotSuspected(to: target.peer, at: loop.now()))
        case .failure(let failure):
            if let status = failure.status, status.reportsTooManyLinks { initiator.linkRefused(beside: linksUp.count) }
            let isUnreported = if case .endUnreported = failure { true } else { false }
            guard isUnreported || failure.status == .connectionAlreadyExists, !hasLink(to: target) else { return }
            let count = initiator.suspectLink(to: target.peer, at: loop.now())
            if count == 1 {
                logger.warning(
                    "a link may be up that nobody holds", metadata: ["adapter": "\(name)", "peer": "\(target.peer)"])
            }
            // One missing event may be that of an attempt that has failed,
            // and the controller may still be ending a link.
            if count > 1 { perform(recovery.linkSuspected(to: target.peer, at: loop.now())) }
        }
    }

    /// Makes sure that no attempt is pending whose cancel the controller did not confirm, before the next one.
    ///
    /// - Throws: `BLEError` with `.timedOut` while the controller does not respond, `.cancelled`, `.adapterDown`.
    private func confirmCancel(for peer: PeerID, until deadline: BootInstant) async throws(BLEError) {
        let end = await initiator.confirmCancel(for: peer, until: deadline)
        watchPresence()
        switch end {
        case .resumed(let failure?): throw error(failure, peer)
        case .resumed(nil), .timedOut: return
        case .cancelled: throw cancelledError(during: "connect")
        }
    }

    /// Attaches a socket to a link that came up by command.
    private func attach(
        _ target: ConnectTarget, to handle: ConnectionHandle?, until deadline: BootInstant
    ) async throws(AttachError) -> AdapterLink {
        // A socket to a link that is gone would have the kernel look for the peer.
        if let handle, links.lastEnd(of: handle) != nil {
            if target.required != nil, let failure = rejection(by: target.peer, of: handle) {
                throw .encryption(failure)
            }
            throw .connect(.notEstablished, errno: 0)
        }
        if target.means == .command { return try await attachUnmanaged(target, to: handle, until: deadline) }
        let required = target.required
        var name = target.peer
        var otherName: PeerID?
        if required != nil { _ = coordinator.takeRejection(by: target.peer) }
        // Nothing reports the link that the kernel is to make, and its handle may be an earlier one's, whose end may
        // wait to be read.
        if handle == nil, !mayCommand {
            commandsReadable()
            links.attemptBegins()
        }
        if let handle, target.isBonded {
            // A socket that attaches before the kernel has filed the link, or by another name, has it look for the
            // peer, for good. The kernel has the link of a bond that is to be replaced under the address on air.
            do throws(EncryptionFailure) {
                name = try await kernelName(of: target, handle, until: min(deadline, loop.now() + Self.filingTime))
            } catch {
                throw await end(handle, of: target, error)
            }
        } else if let handle, target.peer.kind == .resolvablePrivate {
            let limit = min(deadline, loop.now() + Self.filingTime)
            (name, otherName) = await kernelNames(ofPrivate: target.peer, handle, until: limit)
            try checkNotEnded(handle, of: target)
        }
        var socket: LinkSocket
        do throws(AttachError) {
            socket = try await attach(&name, or: otherName, required, on: handle, until: deadline)
        } catch {
            // Before the link is ended for it, which is no rejection.
            let failure = required == nil ? nil : rejection(by: target.peer, of: handle)
            if case .encryption = error, let handle { await disconnectAndWait(handle, from: target.peer) }
            if let failure { throw .encryption(failure) }
            throw error
        }
        let known = (try? socket.hciHandle()) ?? socket.reportedHandle ?? handle
        if Task.isCancelled {
            if let known { await disconnectAndWait(known, from: target.peer) }
            throw .cancelled
        }
        var discarded = 0
        if let required {
            do throws(EncryptionFailure) {
                // The kernel may have made another link, unencrypted, where ours was gone.
                if let handle, known != handle { throw .linkLost(links.lastEnd(of: handle)) }
                discarded = try await encrypt(&socket, known, required)
            } catch {
                if let known { await disconnectAndWait(known, from: target.peer) }
                // A link that never came to life is initiated again, as any other.
                if case .linkLost(.connectionFailedToBeEstablished?) = error {
                    throw .connect(.notEstablished, errno: 0)
                }
                throw .encryption(error)
            }
        }
        if let handle, known == handle { try checkNotEnded(handle, of: target) }
        return adopt(socket, handle: known, target, kernelName: name, discarded: discarded)
    }

    /// Fails where the end of an initiated link was reported while a socket attached to it. Programs can read that
    /// before the kernel handles it, and the socket stays connected for so long.
    private func checkNotEnded(_ handle: ConnectionHandle, of target: ConnectTarget) throws(AttachError) {
        // The socket may be ready before the end was read, or the adapter's loss, which leaves no end in the table.
        commandsReadable()
        guard presence == .up else { throw .connect(.aborted, errno: 0) }
        guard links.lastEnd(of: handle) != nil else { return }
        if target.required != nil, let failure = rejection(by: target.peer, of: handle) { throw .encryption(failure) }
        throw .connect(.notEstablished, errno: 0)
    }

    /// Attaches a socket to a link to a bonded peer where the kernel was given no keys: once it is encrypted by a
    /// command, if it has to be, and by the name that the kernel has for it.
    private func attachUnmanaged(
        _ target: ConnectTarget, to initiated: ConnectionHandle?, until deadline: BootInstant
    ) async throws(AttachError) -> AdapterLink {
        let handle: ConnectionHandle
        if let initiated { handle = initiated } else { handle = try linkToTakeOver(target) }
        let name: PeerID
        do throws(EncryptionFailure) {
            if let required = target.required { try await encryptByCommand(handle, of: required.identity) }
            name = try await kernelName(of: target, handle, until: deadline)
        } catch {
            throw await self.end(handle, of: target, error)
        }
        var socket: LinkSocket
        do throws(AttachError) {
            socket = try await attach(name, nil, on: handle, until: deadline)
        } catch {
            guard target.required != nil, let failure = rejection(by: target.peer, of: handle) else { throw error }
            throw .encryption(failure)
        }
        if Task.isCancelled {
            await disconnectAndWait(handle, from: target.peer)
            throw .cancelled
        }
        var discarded = 0
        if let required = target.required {
            let attached = (try? socket.hciHandle()) ?? handle
            do throws(EncryptionFailure) {
                try checkEncryption(handle, of: required.identity, attached: attached)
            } catch {
                throw await self.end(attached, of: target, error)
            }
            discarded = discard(&socket)
        }
        try checkNotEnded(handle, of: target)
        return adopt(socket, handle: handle, target, kernelName: name, discarded: discarded)
    }

    /// Takes charge of a link that a socket is attached to, and reports the encryption that it must have.
    ///
    /// - Parameter discarded: How many packets were discarded that had arrived before the link was encrypted.
    private func adopt(
        _ socket: consuming LinkSocket, handle: ConnectionHandle?, _ target: ConnectTarget, kernelName: PeerID,
        discarded: Int
    ) -> AdapterLink {
        if let required = target.required {
            bonds.recordEncryption(required.identity)
            security.report(.encrypted(required.identity))
        }
        return adopt(socket, handle: handle, target.peer, kernelName: kernelName, hasDiscarded: discarded > 0)
    }

    /// Returns the handle of a link to a peer that is up, as an earlier process leaves it for some seconds.
    private func linkToTakeOver(_ target: ConnectTarget) throws(AttachError) -> ConnectionHandle {
        // The kernel may list a link whose beginning was not read yet.
        commandsReadable()
        reportsReadable()
        for name in kernelNames(of: target) {
            guard let handle = linkHandle(of: name) else { continue }
            // One of this program is in use.
            if links.peer(of: handle) != nil { throw .connect(.busy, errno: SystemCallError.busy) }
            return handle
        }
        throw .connect(.notEstablished, errno: 0)
    }

    /// Disconnects a link that is not encrypted or filed, and returns what that means for the connect.
    private func end(
        _ handle: ConnectionHandle, of target: ConnectTarget, _ failure: EncryptionFailure
    ) async -> AttachError {
        if links.lastEnd(of: handle) == nil { await disconnectAndWait(handle, from: target.peer) }
        if target.required == nil {
            if case .cancelled = failure { return .cancelled }
            return .connect(.notEstablished, errno: 0)
        }
        // A link that never came to life is initiated again, as any other.
        if case .linkLost(.connectionFailedToBeEstablished?) = failure { return .connect(.notEstablished, errno: 0) }
        return .encryption(failure)
    }

    // MARK: Beside the kernel's connect

    /// How long a change of the kernel's parameters may take.
    private static let adjustmentTime: Duration = .seconds(10)

    /// Changes a link that the kernel has made: by its parameters one ends that was not heard for 420 ms (row W42).
    private func adjust(_ link: LinkIdentity, to parameters: ConnectionParameters) {
        guard mayCommand, let handle = link.handle else { return }
        // Its beginning may wait to be read.
        reportsReadable()
        guard let known = links.parameters(of: handle), known.supervisionTimeout < parameters.supervisionTimeout else {
            return
        }
        let logger = logger
        Task(executorPreference: loop) {
            do throws(BLEError) {
                _ = try await self.request(parameters, link, Self.adjustmentTime)
            } catch {
                logger.info("a link keeps the kernel's parameters", metadata: ["reason": "\(error)"])
            }
        }
    }

    private func scanForTheKernel() {
        logger.debug("another program takes the channel; the kernel is to connect", metadata: ["adapter": "\(name)"])
        for command in scan.commandsForKernelConnect()?.begin ?? [] { send(command, for: .none) }
    }

    /// Ends that scan; to be called when no connect is pending, because it would end the kernel's own as well.
    private func stopScanningForTheKernel() {
        if let command = scan.commandsForKernelConnect()?.end { send(command, for: .none) }
    }
}

// MARK: - Sockets

extension Adapter {
    /// Why no socket could be attached.
    enum AttachError: Error {
        case connect(ConnectFailure, errno: Int32)
        case timedOut
        case cancelled
        case encryption(EncryptionFailure)

        /// What matters of it for a retry.
        var failure: ConnectRetry.AttachFailure {
            switch self {
            case .timedOut, .connect(.timedOut, _): .timedOut
            case .cancelled: .cancelled
            case .encryption: .other
            case .connect(.busy, _): .busy
            case .connect(.notEstablished, _): .notEstablished
            case .connect(.adapterUnavailable, _), .connect(.aborted, _): .adapterDown
            case .connect: .other
            }
        }
    }

    /// Connects a socket to a link that is up, by the first of two names; where the kernel has the link under the other
    /// one, by that.
    private func attach(
        _ name: inout PeerID, or other: PeerID?, _ required: RequiredEncryption?, on handle: ConnectionHandle?,
        until limit: BootInstant
    ) async throws(AttachError) -> LinkSocket {
        guard let other else { return try await attach(name, required, on: handle, until: limit) }
        do throws(AttachError) {
            return try await attach(name, required, on: handle, until: min(limit, loop.now() + Self.nameTime))
        } catch {
            guard case .timedOut = error else { throw error }
        }
        name = other
        return try await attach(other, required, on: handle, until: limit)
    }

    /// Connects a socket, to a link that is up or by the kernel's own means.
    private func attach(
        _ peer: PeerID, _ required: RequiredEncryption?, on handle: ConnectionHandle?, until limit: BootInstant
    ) async throws(AttachError) -> LinkSocket {
        guard let info else { throw .connect(.adapterUnavailable, errno: 0) }
        if var socket = await acceptedSocket(handle, until: limit) {
            // It is refused for a link that has the level already.
            if let required { try? socket.setSecurityLevel(required.level) }
            return socket
        }
        // A socket whose key the kernel does not have may never be connected, and never fail.
        let isLimited = required != nil && handle != nil
        let deadline = isLimited ? min(limit, loop.now() + encryptionTimeout(of: handle)) : limit
        let remaining = max(deadline - loop.now(), .milliseconds(10))
        var socket: LinkSocket
        do throws(SystemCallError) {
            // The kernel's own time-out is the later one, so that it is never taken for another failure.
            socket = try system.connect(
                info.address, traits.ownAddressType, peer, remaining + .seconds(1), required?.level)
        } catch {
            throw .connect(ConnectFailure(errno: error.errno, timeRanOut: false), errno: error.errno)
        }
        while socket.isConnecting {
            switch await awaitWritable(socket.descriptor, until: deadline, encrypting: isLimited ? handle : nil) {
            case .timedOut: throw isLimited ? .encryption(.timedOut) : .timedOut
            case .cancelled: throw .cancelled
            case .keyMissing(identity(of: peer) ?? peer): throw .encryption(.keyNotLoaded)
            case .resumed, .finished, .managed, .listsLoaded, .encryption, .encrypted, .keyMissing, .paired, .failed:
                break
            }
            if case .failed(let errno) = socket.finishConnect() {
                throw .connect(ConnectFailure(errno: errno, timeRanOut: loop.now() >= deadline), errno: errno)
            }
        }
        return socket
    }

    /// Waits until a socket that connects is writable, or has failed.
    ///
    /// - Parameter handle: The link whose encryption it waits for.
    func awaitWritable(
        _ descriptor: Int32, until deadline: BootInstant, encrypting handle: ConnectionHandle? = nil
    ) async -> Wake {
        let (wake, number) = await suspend(until: deadline) { number in
            if let handle { links.awaitEncryption(of: handle, number) }
            let wakeUp: EventLoop.Handler = { [weak self] in self?.assumeIsolated { $0.wake(number) } }
            guard loop.onWritable(descriptor, wakeUp) != nil else { return }
            // The kernel cannot watch it: look again a little later.
            _ = loop.schedule(at: loop.now() + .milliseconds(20), wakeUp)
        }
        loop.unregister(descriptor)
        links.stopAwaitingEncryption(number)
        return wake
    }
}
