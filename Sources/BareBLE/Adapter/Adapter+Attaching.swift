internal import BLECore
internal import BLELinux

extension Adapter {
    /// How long the end of a link that was hung up is awaited.
    static let hangUpTime: Duration = .seconds(2)

    /// Connects a socket, to a link that is up or by the kernel's own means.
    func attach(_ peer: PeerID, until deadline: BootInstant) async throws(AttachFailure) -> LinkSocket {
        guard let info else { throw .connect(.adapterUnavailable, errno: 0) }
        let remaining = max(deadline - loop.now(), .milliseconds(10))
        var socket: LinkSocket
        do throws(SystemCallError) {
            // The kernel's own time-out is the later one, so that it is never taken for something else.
            socket = try system.connect(info.address, ownAddressType, peer, remaining + .seconds(1))
        } catch {
            throw .connect(ConnectFailure(errno: error.errno, timeRanOut: false), errno: error.errno)
        }
        while socket.isConnecting {
            switch await wait(forRoomOf: socket.descriptor, until: deadline) {
            case .timedOut: throw .gaveUp(.timedOut)
            case .cancelled: throw .gaveUp(.cancelled)
            case .resumed: break
            }
            if case .failed(let errno) = socket.finishConnect() {
                throw .connect(ConnectFailure(errno: errno, timeRanOut: loop.now() >= deadline), errno: errno)
            }
        }
        return socket
    }

    /// Waits until a socket that connects can be written to, or has failed.
    func wait(forRoomOf descriptor: Int32, until deadline: BootInstant) async -> Wake {
        let (wake, _) = await suspend(until: deadline) { number in
            let wakeUp: EventLoop.Handler = { [weak self] in self?.assumeIsolated { $0.wake(number) } }
            guard loop.onWritable(descriptor, wakeUp) != nil else { return }
            // The kernel cannot watch it: look again a little later.
            _ = loop.schedule(at: loop.now() + .milliseconds(20), wakeUp)
        }
        loop.letGo(descriptor)
        return wake
    }

    /// Why no socket could be attached.
    enum AttachFailure: Error {
        case connect(ConnectFailure, errno: Int32)
        case gaveUp(Wake)

        /// Whether the next attempt may well succeed: another connect is just ending, or the link broke down at once.
        var isTransient: Bool {
            switch self {
            case .connect(.busy, _), .connect(.notEstablished, _): true
            case .connect, .gaveUp: false
            }
        }
    }

    func error(_ failure: AttachFailure, status: HCIStatus?, _ peer: PeerID) -> BLEError {
        switch failure {
        case .gaveUp(.timedOut), .connect(.timedOut, _):
            timedOutError(peer, isWaiting: false)
        case .gaveUp:
            cancelledError(during: "connect")
        case .connect(let failure, let errno):
            BLEError(failure, status: status, errno: errno, peer: peer, adapter: name)
        }
    }
}

// MARK: - Beside other programs

extension Adapter {
    /// Ends a link and waits until it is gone, so that the next call makes a new one.
    ///
    /// The command may have to wait for others that a silent controller does not answer, 2 s each: the end is not waited for so long.
    func hangUpAndWait(_ handle: ConnectionHandle) async {
        enqueue(HCICommandPacket(HCIDisconnect(handle: handle)), for: .nobody)
        await awaitEnd(of: handle, until: loop.now() + Self.hangUpTime)
    }

    /// Waits until the last link to a peer is gone, if this program has just ended it.
    ///
    /// The kernel has it until the controller has told its end, some intervals later. A socket would attach to it, and end with it.
    func awaitParting(from peer: PeerID, until deadline: BootInstant) async throws(BLEError) {
        guard let handle = endingLinks.first(where: { linkedPeers[$0] == peer }) else { return }
        let limit = loop.now() + Self.hangUpTime
        await awaitEnd(of: handle, until: min(limit, deadline))
        // Who gives up leaves the wait to the next one.
        if Task.isCancelled { throw cancelledError(during: "connect") }
        if loop.now() >= limit { endingLinks.remove(handle) }
    }

    private func awaitEnd(of handle: ConnectionHandle, until deadline: BootInstant) async {
        guard !Task.isCancelled else { return }
        let (_, number) = await suspend(until: deadline) { number in
            if lastEnds[handle] != nil { return wake(number) }
            hangUpWaiters[handle, default: []].insert(number)
        }
        hangUpWaiters[handle]?.remove(number)
        if hangUpWaiters[handle]?.isEmpty == true { hangUpWaiters[handle] = nil }
    }

    /// Scans as long as the kernel connects. A kernel that believes in somebody's discovery, which may be long over, looks for no
    /// peer by itself, but takes the reports of any scan. A refusal means that it scans already.
    func scanForTheKernel() {
        guard let controller = session?.controller, let plan = ScanPlan(covering: [.passive]) else { return }
        enqueue(controller.parameters(for: plan), for: .nobody)
        enqueue(controller.scanOn(for: plan), for: .nobody)
    }

    /// Ends that scan; to be called when no connect is pending, because it would end the kernel's own as well.
    func stopScanningForTheKernel() {
        guard let controller = session?.controller else { return }
        enqueue(controller.scanOff, for: .nobody)
    }
}
