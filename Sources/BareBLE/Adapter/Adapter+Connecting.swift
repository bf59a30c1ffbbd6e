package import BLECore
internal import BLELinux
internal import Logging

// Two ways to a link.
//
// With CAP_NET_RAW the controller is told to call the peer, and a socket attaches to the link that comes up: own parameters, a
// real cancel, the controller's own reason, and no dependence on what state the kernel's scanner is in. Our scan makes
// way meanwhile, because many controllers do not call while they scan.
//
// Without it the kernel is asked: it scans and calls by itself, and tells an error number. Since 6.10 it does not look for the
// peer at all after somebody's active scan has ended; nothing but capabilities helps then, so the time-out says so.
//
// A link that comes up by command belongs to nobody for some milliseconds. Where bluetoothd serves the same adapter, its listening
// socket is handed the ATT channel of every such link, and lets go of it or not. So a link that was lost to another program
// is ended and called again, and at last the kernel is asked: its socket has the channel from the start.

extension Adapter {
    /// How often a link that broke down before it was usable is tried again.
    private static let attempts = 3
    /// How long attaching to a link that is up may take: the kernel drops an unattached one after this time.
    private static let attachTime: Duration = .seconds(2)

    /// How long a connect without a time-out has the adapter before others have their turn.
    private static let turnTime: Duration = .seconds(10)
    /// How long running scans listen between two such turns.
    private static let restTime: Duration = .seconds(2)

    /// Connects to a peer, when it is this connect's turn; without a time-out in many turns, as long as the task lives.
    ///
    /// - Throws: `BLEError` with `.timedOut` (the peer was not heard), `.busy`, `.connectFailed`, `.lowEnergyOff`,
    ///   `.invalidArgument`, `.cancelled`, and the codes of `prepare`.
    package func connect(
        _ peer: PeerID, parameters: ConnectionParameters?, timeout: Duration?
    ) async throws(BLEError) -> AdapterLink {
        let deadline = timeout.map { loop.now() + $0 }
        while true {
            do throws(BLEError) {
                return try await connectOnce(peer, parameters: parameters, until: deadline)
            } catch {
                // A controller that does not answer is another matter than a peer that is not heard.
                guard deadline == nil, error.code == .timedOut, error.subject == "\(peer)" else { throw error }
            }
            try await rest()
        }
    }

    private func connectOnce(
        _ peer: PeerID, parameters: ConnectionParameters?, until limit: BootInstant?
    ) async throws(BLEError) -> AdapterLink {
        try await prepare(during: "connect")
        guard peer.address != .zero, peer.address != address else {
            throw BLEError(
                .invalidArgument, subject: "\(peer)", during: "connect",
                because: "that is \(peer.address == .zero ? "no device's" : "this adapter's own") address")
        }
        let hasWaited = try await takeTurn(until: limit, peer)
        defer { passTurn() }
        // The adapter may have gone while others had their turns.
        if hasWaited { try await prepare(during: "connect") }
        let deadline = limit ?? loop.now() + Self.turnTime
        guard mayCommand else { return try await connectByKernel(peer, until: deadline) }
        await pauseScan(until: deadline)
        defer { resumeScan() }
        try await awaitParting(from: peer, until: deadline)
        try await takeBackLeftCall(for: peer, until: deadline)
        guard loop.now() < deadline else {
            throw BLEError(
                .timedOut, subject: "\(peer)", during: "connect",
                because: "the time was over before the peer could be called",
                hint: "Allow more time; if that goes on, the controller may be silent: switch the adapter off and on.")
        }
        return try await connectByCommand(peer, parameters ?? .balanced, until: deadline)
    }

    // MARK: Taking turns

    /// Lets scans listen between two turns of a connect.
    private func rest() async throws(BLEError) {
        guard !subscriptions.isEmpty else { return }
        let (wake, _) = await suspend(until: loop.now() + Self.restTime) { _ in }
        if wake == .cancelled { throw cancelledError(during: "connect") }
    }

    /// Answers whether others had theirs before.
    private func takeTurn(until deadline: BootInstant?, _ peer: PeerID) async throws(BLEError) -> Bool {
        guard isTurnTaken else {
            isTurnTaken = true
            return false
        }
        let (wake, number) = await suspend(until: deadline) { turnWaiters.append($0) }
        switch wake {
        case .resumed:
            return true
        case .timedOut, .cancelled:
            turnWaiters.removeAll { $0 == number }
            throw wake == .timedOut ? timedOutError(peer, isWaiting: true) : cancelledError(during: "connect")
        }
    }

    private func passTurn() {
        while !turnWaiters.isEmpty {
            let next = turnWaiters.removeFirst()
            guard sleepers[next] != nil else { continue }
            return wake(next)
        }
        isTurnTaken = false
    }

    private func pauseScan(until deadline: BootInstant) async {
        isPausedForConnect = true
        guard session != nil else { return }
        _ = await suspend(until: min(deadline, loop.now() + .seconds(3))) { number in
            pauseWaiter = number
            performSession { $0.pause(at: $1) }
        }
        pauseWaiter = nil
    }

    private func resumeScan() {
        isPausedForConnect = false
        performSession { $0.resume(at: $1) }
    }

    // MARK: By command

    private func connectByCommand(
        _ peer: PeerID, _ parameters: ConnectionParameters, until deadline: BootInstant
    ) async throws(BLEError) -> AdapterLink {
        for attempt in 1... {
            let handle = try await call(peer, parameters, until: deadline, attempt)
            if handle == nil, attempt < Self.attempts, !system.hasLink(info?.index ?? 0, peer.address) { continue }
            do throws(AttachFailure) {
                // A socket to a link that is gone would have the kernel look for the peer.
                if let handle, lastEnds[handle] != nil { throw .connect(.notEstablished, errno: 0) }
                let socket = try await attach(peer, until: max(deadline, loop.now() + Self.attachTime))
                let known = (try? socket.hciHandle()) ?? handle
                if Task.isCancelled {
                    if let known { await hangUp(known) }
                    throw .gaveUp(.cancelled)
                }
                return adopt(socket, handle: known, peer)
            } catch {
                let end = handle.flatMap { lastEnds[$0] }
                if let handle, end == nil { await hangUpAndWait(handle) }
                let mayRepeat = end == .connectionFailedToBeEstablished || error.isTransient
                guard mayRepeat, loop.now() < deadline else { throw self.error(error, status: end, peer) }
                if attempt < Self.attempts {
                    logger.debug("connecting again", metadata: ["peer": "\(peer)", "attempt": "\(attempt + 1)"])
                } else if handle != nil, case .connect(.busy, _) = error {
                    return try await connectPastOthers(peer, until: deadline)
                } else {
                    throw self.error(error, status: end, peer)
                }
            }
        }
        throw timedOutError(peer, isWaiting: false)
    }

    /// Has the kernel connect, because another program is too quick to be handed each link that comes up otherwise.
    private func connectPastOthers(_ peer: PeerID, until deadline: BootInstant) async throws(BLEError) -> AdapterLink {
        logger.debug("another program takes the channel; the kernel is to connect", metadata: ["peer": "\(peer)"])
        do throws(BLEError) {
            return try await connectByKernel(peer, until: deadline, helped: true)
        } catch {
            if error.code == .cancelled || error.code == .adapterDown { throw error }
            throw BLEError(channelTakenOf: peer, adapter: name)
        }
    }

    /// Has the controller call the peer.
    ///
    /// - Returns: The link's handle; `nil` when there is a link to the peer already, or the call is to be repeated.
    private func call(
        _ peer: PeerID, _ parameters: ConnectionParameters, until deadline: BootInstant, _ attempt: Int
    ) async throws(BLEError) -> ConnectionHandle? {
        if system.hasLink(info?.index ?? 0, peer.address) { return nil }
        let initiation = LEInitiation(peer: peer, ownAddressType: ownAddressType, parameters: parameters)
        let isLongRange = hasExtendedConnect && table.newest(of: peer)?.advertisement?.primaryPHY == .leCoded
        let call = LEConnect.Call(
            initiation, phys: isLongRange ? [.le1M, .coded] : .le1M, isExtended: hasExtendedConnect, deadline: deadline)
        callResult = nil
        earlyEnds = [:]
        let (wake, _) = await suspend { number in
            callWaiter = number
            self.call = LEConnect(call)
            watchPresence()
            performCall { $0.begin(at: $1) }
        }
        callWaiter = nil
        watchPresence()
        guard let result = callResult.take() else {
            logger.debug("call ended", metadata: ["wake": "\(wake)"])
            throw cancelledError(during: "connect")
        }
        switch result {
        case .success(let complete):
            return complete.handle
        case .failure(let failure):
            if failure.status == .connectionAlreadyExists { return nil }
            if failure == .adapterLost, presence == .down { throw downError(during: "connect") }
            if failure.status == .connectionFailedToBeEstablished, attempt < Self.attempts { return nil }
            throw BLEError(failure, peer: peer, adapter: name)
        }
    }

    // MARK: By the kernel

    private func connectByKernel(
        _ peer: PeerID, until deadline: BootInstant, helped: Bool = false
    ) async throws(BLEError) -> AdapterLink {
        if helped { scanForTheKernel() }
        defer { if helped { stopScanningForTheKernel() } }
        for attempt in 1... {
            do throws(AttachFailure) {
                let socket = try await attach(peer, until: deadline)
                let handle = try? socket.hciHandle()
                return adopt(socket, handle: handle, peer)
            } catch {
                guard error.isTransient, attempt < Self.attempts, loop.now() < deadline else {
                    throw self.error(error, status: nil, peer)
                }
                _ = await suspend(until: loop.now() + .milliseconds(200 * attempt)) { _ in }
                if Task.isCancelled { throw cancelledError(during: "connect") }
            }
        }
        throw timedOutError(peer, isWaiting: false)
    }
}

extension LEConnect.Failure {
    /// The controller's status, when it gave one.
    var status: HCIStatus? {
        switch self {
        case .refused(let failure): failure.status
        case .failed(let status): status
        case .busy, .timedOut, .cancelled, .adapterLost, .notTakenBack: nil
        }
    }
}
