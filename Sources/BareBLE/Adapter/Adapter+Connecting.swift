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
// the time-out says so.
//
// A link that comes up by command belongs to no socket for some milliseconds. Where bluetoothd serves the same adapter,
// its listening socket is handed the ATT channel of every such link, and closes it or not. So a link whose channel
// another program has is disconnected and initiated again, and at last the kernel connects: its socket has the channel
// from the start.
//
// What follows which failure is decided by `ConnectRetry`; this file performs its steps.

extension Adapter {
    /// How a turn with the controller has ended.
    private enum Turn: ~Copyable {
        case connected(AdapterLink)
        /// The peer was not heard: a connect without a time-out has another turn.
        case notHeard(BLEError)
    }

    /// Connects to a peer, when it is this connect's turn; without a time-out in many turns, as long as the task lives.
    ///
    /// - Throws: `BLEError` with `.timedOut` (the peer was not heard), `.busy`, `.connectFailed`, `.lowEnergyOff`,
    ///   `.invalidArgument`, `.cancelled`, and the codes of `prepare`.
    package func connect(
        _ peer: PeerID, parameters: ConnectionParameters?, timeout: Duration?
    ) async throws(BLEError) -> AdapterLink {
        let limit = timeout.map { loop.now() + $0 }
        var retry = ConnectRetry(until: limit, at: loop.now())
        var mayLoadAgain = true
        while true {
            let turn: Turn
            do throws(BLEError) {
                turn = try await connectInTurn(peer, parameters ?? .balanced, &retry, until: limit)
            } catch {
                // Another program may have emptied the kernel's lists in between.
                guard error.code == .notBonded, mayLoadAgain else { throw error }
                mayLoadAgain = false
                continue
            }
            switch consume turn {
            case .connected(let link):
                return link
            case .notHeard(let error):
                guard case .next(let pause) = retry.nextTurn(isScanning: scan.hasScans, at: loop.now()) else {
                    throw error
                }
                if let pause { try await sleep(until: pause) }
            }
        }
    }

    /// - Throws: `BLEError` with `.invalidArgument` for an address that no peer has.
    func checkIsPeer(_ other: BluetoothAddress, _ subject: String, during operation: String) throws(BLEError) {
        guard other == .zero || other == address else { return }
        throw BLEError(
            .invalidArgument, subject: subject, during: operation,
            because: "that is \(other == .zero ? "no device's" : "this adapter's own") address")
    }

    private func connectInTurn(
        _ peer: PeerID, _ parameters: ConnectionParameters, _ retry: inout ConnectRetry, until limit: BootInstant?
    ) async throws(BLEError) -> Turn {
        try await prepare(during: "connect")
        try checkIsPeer(peer.address, "\(peer)", during: "connect")
        let hasWaited = try await takeTurn(until: limit, peer)
        defer { passTurn() }
        // The adapter may have gone while others had their turns.
        if hasWaited { try await prepare(during: "connect") }
        if requiredEncryption(of: peer) != nil { try await loadKeys(until: retry.deadline, during: "connect") }
        retry.beginTurn(at: loop.now())
        guard mayCommand else { return try await connect(peer, parameters, &retry) }
        await pauseScan(until: retry.deadline)
        defer { resumeScan() }
        try await awaitDisconnection(from: peer, until: retry.deadline)
        try await confirmCancel(for: peer, until: retry.deadline)
        return try await connect(peer, parameters, &retry)
    }

    /// Performs the steps of one turn.
    private func connect(
        _ peer: PeerID, _ parameters: ConnectionParameters, _ retry: inout ConnectRetry
    ) async throws(BLEError) -> Turn {
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
                let failure: Initiator.Failure?
                switch await initiate(peer, parameters, until: retry.deadline) {
                case .success(let complete)?:
                    step = retry.initiated(complete.handle, at: loop.now())
                    continue
                case .failure(let reason)?:
                    error = self.error(reason, peer)
                    failure = reason
                case nil:
                    failure = nil
                }
                step = retry.notInitiated(failure, hasLink: hasLink(to: peer), at: loop.now())
            case .attach(let handle, let deadline):
                do throws(AttachError) {
                    return .connected(try await attach(peer, to: handle, until: deadline))
                } catch let reason {
                    if case .encryption(let failure) = reason { throw await notEncrypted(peer, failure) }
                    let end = handle.flatMap { links.lastEnd(of: $0) }
                    error = self.error(reason, status: end, peer)
                    step = retry.notAttached(reason.failure, end: end, at: loop.now())
                }
            case .disconnect(let handle):
                await disconnectAndWait(handle)
                step = retry.disconnected(at: loop.now())
            case .connectByKernel(let scanning):
                if scanning, !isScanning { scanForTheKernel() }
                isScanning = scanning
                do throws(AttachError) {
                    return .connected(try await attach(peer, to: nil, until: retry.deadline))
                } catch let reason {
                    if case .encryption(let failure) = reason { throw await notEncrypted(peer, failure) }
                    error = self.error(reason, status: nil, peer)
                    step = retry.kernelFailed(reason.failure, at: loop.now())
                }
            case .pause(let deadline):
                try await sleep(until: deadline)
                step = retry.paused()
            case .fail:
                throw error
            case .peerNotHeard:
                return .notHeard(error)
            case .tooLate:
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

    private func sleep(until deadline: BootInstant) async throws(BLEError) {
        _ = await suspend(until: deadline) { _ in }
        if Task.isCancelled { throw cancelledError(during: "connect") }
    }

    // MARK: Turns

    /// - Returns: Whether others had theirs before.
    private func takeTurn(until deadline: BootInstant?, _ peer: PeerID) async throws(BLEError) -> Bool {
        if initiator.takeTurn() { return false }
        let (wake, number) = await suspend(until: deadline) { number in
            // The turn may have become free since the look above.
            if initiator.takeTurn() { self.wake(number) } else { initiator.awaitTurn(number) }
        }
        if case .resumed = wake { return true }
        initiator.cancelAwaitingTurn(number)
        if case .timedOut = wake { throw timedOutError(peer, isWaiting: true) }
        throw cancelledError(during: "connect")
    }

    private func passTurn() {
        if let next = initiator.passTurn({ waiting.contains($0) }) { wake(next) }
    }

    private func pauseScan(until deadline: BootInstant) async {
        guard scan.makeWay() else { return }
        _ = await suspend(until: min(deadline, loop.now() + .seconds(3))) { number in
            perform(scan.pause(number, at: loop.now()))
        }
        scan.endPauseWait()
    }

    private func resumeScan() { perform(scan.resume(at: loop.now())) }

    // MARK: By command

    /// Has the controller initiate the connection; `nil` where there is a link to the peer already.
    private func initiate(
        _ peer: PeerID, _ parameters: ConnectionParameters, until deadline: BootInstant
    ) async -> Result<LEConnectionComplete, Initiator.Failure>? {
        if hasLink(to: peer) { return nil }
        // A device with private addresses is initiated by the one that it was heard with.
        let onAir = requiredEncryption(of: peer).flatMap { addressOnAir(of: $0.identity) } ?? peer
        let initiation = LEInitiation(peer: onAir, ownAddressType: traits.ownAddressType, parameters: parameters)
        let isExtended = traits.hasExtendedConnect
        let isLongRange = isExtended && scan.scanResult(of: peer)?.advertisement?.primaryPHY == .leCoded
        let attempt = Initiator.Attempt(
            initiation, phys: isLongRange ? [.le1M, .leCoded] : .le1M, isExtended: isExtended, deadline: deadline)
        links.attemptBegins()
        let wake = await awaitInitiator { initiator, now in initiator.begin(attempt, at: now) }
        if case .initiated(let result) = wake { return result }
        return .failure(.cancelled)
    }

    /// Makes sure that no attempt is pending whose cancel the controller did not confirm, before the next one.
    ///
    /// - Throws: `BLEError` with `.timedOut` while the controller does not respond, `.cancelled`, `.adapterDown`.
    private func confirmCancel(for peer: PeerID, until deadline: BootInstant) async throws(BLEError) {
        guard initiator.hasPendingCancel else { return }
        let wake = await awaitInitiator { initiator, now in
            initiator.confirmCancel(for: peer, until: deadline, at: now)
        }
        switch wake {
        case .initiated(.failure(let failure)): throw error(failure, peer)
        case .cancelled: throw cancelledError(during: "connect")
        case .resumed, .timedOut, .finished, .initiated, .managed, .listsLoaded, .encryption, .paired, .failed: return
        }
    }

    private func awaitInitiator(_ begin: (inout Initiator, BootInstant) -> [Initiator.Action]) async -> Wake {
        let interruption = WaitInterruption.handled { [weak self] number, _ in
            self?.assumeIsolated { $0.cancelAttempt(of: number) }
        }
        let (wake, _) = await suspend(interruption: interruption) { number in
            connectWaiter = number
            perform(begin(&initiator, loop.now()))
            watchPresence()
        }
        connectWaiter = nil
        watchPresence()
        return wake
    }

    /// Attaches a socket to a link that came up by command.
    private func attach(
        _ peer: PeerID, to handle: ConnectionHandle?, until deadline: BootInstant
    ) async throws(AttachError) -> AdapterLink {
        // A socket to a link that is gone would have the kernel look for the peer.
        if let handle, links.lastEnd(of: handle) != nil { throw .connect(.notEstablished, errno: 0) }
        let required = requiredEncryption(of: peer)
        var socket: LinkSocket
        do throws(AttachError) {
            socket = try await attach(required?.identity ?? peer, required?.level, until: deadline)
        } catch {
            guard required != nil, let handle, let failure = rejection(of: handle) else { throw error }
            throw .encryption(failure)
        }
        let known = (try? socket.hciHandle()) ?? handle
        if Task.isCancelled {
            if let known { await disconnect(known) }
            throw .cancelled
        }
        if let required {
            do throws(EncryptionFailure) {
                // The kernel may have made another link, in clear, where ours was gone.
                if let handle, known != handle { throw .linkLost(links.lastEnd(of: handle)) }
                try await encrypt(&socket, known, required)
            } catch {
                if let known { await disconnect(known) }
                throw .encryption(error)
            }
        }
        return adopt(socket, handle: known, peer)
    }

    // MARK: Beside the kernel's connect

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

    /// Connects a socket, to a link that is up or by the kernel's own means.
    private func attach(
        _ peer: PeerID, _ level: SocketSecurity.Level?, until deadline: BootInstant
    ) async throws(AttachError) -> LinkSocket {
        guard let info else { throw .connect(.adapterUnavailable, errno: 0) }
        let remaining = max(deadline - loop.now(), .milliseconds(10))
        var socket: LinkSocket
        do throws(SystemCallError) {
            // The kernel's own time-out is the later one, so that it is never taken for another failure.
            socket = try system.connect(info.address, traits.ownAddressType, peer, remaining + .seconds(1), level)
        } catch {
            throw .connect(ConnectFailure(errno: error.errno, timeRanOut: false), errno: error.errno)
        }
        while socket.isConnecting {
            switch await awaitWritable(socket.descriptor, until: deadline) {
            case .timedOut: throw .timedOut
            case .cancelled: throw .cancelled
            case .resumed, .finished, .initiated, .managed, .listsLoaded, .encryption, .paired, .failed: break
            }
            if case .failed(let errno) = socket.finishConnect() {
                throw .connect(ConnectFailure(errno: errno, timeRanOut: loop.now() >= deadline), errno: errno)
            }
        }
        return socket
    }

    /// Waits until a socket that connects is writable, or has failed.
    func awaitWritable(_ descriptor: Int32, until deadline: BootInstant) async -> Wake {
        let (wake, _) = await suspend(until: deadline) { number in
            let wakeUp: EventLoop.Handler = { [weak self] in self?.assumeIsolated { $0.wake(number) } }
            guard loop.onWritable(descriptor, wakeUp) != nil else { return }
            // The kernel cannot watch it: look again a little later.
            _ = loop.schedule(at: loop.now() + .milliseconds(20), wakeUp)
        }
        loop.letGo(descriptor)
        return wake
    }
}
