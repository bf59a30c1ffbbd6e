internal import BLECore
internal import BLELinux
internal import Logging

// What the controller can change of a link that is up: its connection parameters and its PHYs.
//
// A change is a command, which the controller accepts or refuses at once, and an event some connection intervals later.
// The kernel itself responds to peers that want other parameters; the result is seen here as an event without a
// request. Which update is out, and which task waits for it, is in `LinkTable`.

extension Adapter {
    // MARK: What a link is like

    func parameters(_ link: LinkIdentity) throws(BLEError) -> ConnectionParameters {
        let operation = "read the connection parameters"
        guard mayCommand else { throw notPermittedError(during: operation) }
        // Changes may wait to be read.
        commandsReadable()
        reportsReadable()
        let handle = try current(link, during: operation)
        guard let parameters = links.parameters(of: handle) else {
            throw BLEError(
                .notSupported, subject: "\(link.peer)", during: operation,
                because: "this program did not see the link come up", hint: "They are known once they change.")
        }
        return parameters
    }

    func phy(_ link: LinkIdentity) async throws(BLEError) -> Peripheral.LinkPHY {
        let operation = "read the PHY"
        guard mayCommand else { throw notPermittedError(during: operation) }
        let command = HCICommandPacket(LEReadPHY(handle: try current(link, during: operation)))
        do throws(HCICommandFailure) {
            let phy = try await run(command).get().parameters(of: LEReadPHY.self)
            return Peripheral.LinkPHY(transmit: phy.transmit, receive: phy.receive)
        } catch {
            noticeEnd(of: link, error.status)
            throw updateError(error, of: link, during: operation)
        }
    }

    /// How much later than it should the report of an end may come: after the response to a command for the link, or
    /// after the end of its socket.
    private static let endGrace: Duration = .seconds(1)

    /// Looks at the controller's response to a command for a link: where it has no such link, the report of its end is
    /// late, or was lost for the kernel too, which would keep the link for as long as a socket is open.
    func noticeEnd(of link: LinkIdentity, _ status: HCIStatus?) {
        guard status == .unknownConnection else { return }
        awaitReport(ofEnd: link, isKnownToKernel: false)
    }

    /// The socket of a link has ended before the report of the link's end was read: that is late, or was lost where
    /// this program was stopped and its sockets were full. Another program's socket may also keep the link.
    func noticeSocketEnd(of link: LinkIdentity) {
        awaitReport(ofEnd: link, isKnownToKernel: true)
    }

    private func awaitReport(ofEnd link: LinkIdentity, isKnownToKernel: Bool) {
        guard links.isCurrent(link), let handle = link.handle else { return }
        let beginnings = links.beginnings(of: handle)
        _ = loop.schedule(at: loop.now() + Self.endGrace) { [weak self] in
            self?.assumeIsolated { $0.endUnreported(link, after: beginnings, isKnownToKernel: isKnownToKernel) }
        }
    }

    private func endUnreported(_ link: LinkIdentity, after beginnings: Int, isKnownToKernel: Bool) {
        guard presence == .up, let info, let handle = link.handle else { return }
        // Before the sockets: what the kernel has handled by now can be read there. A list that cannot be read shows
        // nothing.
        if isKnownToKernel, system.lowEnergyLinkHandles(info.index)?.contains(handle) != false { return }
        commandsReadable()
        reportsReadable()
        guard presence == .up,
            let (waiters, handler) = links.endedUnreported(
                link, after: beginnings, isReportDue: !isKnownToKernel, at: loop.now())
        else { return }
        logger.warning(
            "a link has ended, and the report of that was lost",
            metadata: ["adapter": "\(name)", "peer": "\(link.peer)"])
        linkEnded(handle, link.peer, .unknownConnection)
        wake(waiters)
        // Its owner has ended, and the handle may be another program's by now.
        if isKnownToKernel { return logWarnings() }
        // Before the kernel drops its link: kernels before 6.5 free it below a socket that is open.
        handler?(.unknownConnection)
        // The controller refuses it, and by that the kernel drops its link.
        send(HCICommandPacket(HCIDisconnect(handle: handle)), for: .none)
        logWarnings()
    }

    /// The handle of a link that is up.
    func current(_ link: LinkIdentity, during operation: String) throws(BLEError) -> ConnectionHandle {
        guard let handle = link.handle else {
            throw BLEError(
                .notSupported, subject: "\(link.peer)", during: operation,
                because: "the kernel does not report which of the controller's links this is",
                hint: "Connect again through an adapter: a stand-in for a link has no controller.")
        }
        guard links.isCurrent(link) else {
            throw BLEError(
                .disconnected, subject: "\(link.peer)", during: operation,
                because: "the controller has dropped this link", hint: "Connect again.")
        }
        return handle
    }

    // MARK: Changes

    func request(
        _ parameters: ConnectionParameters, _ link: LinkIdentity, _ timeout: Duration
    ) async throws(BLEError) -> ConnectionParameters {
        let context = CallContext("change the connection parameters", until: loop.now() + timeout)
        let end = try await update(link, .parameters, in: context) { handle in
            HCICommandPacket(LEConnectionUpdate(handle: handle, parameters: parameters))
        }
        guard case .parameters(let complete) = end else { throw lostError(of: link, during: context.operation) }
        guard complete.status.isSuccess else { throw refusal(complete.status, of: link, during: context.operation) }
        return complete.parameters
    }

    func request(
        _ transmit: LEPHYs, _ receive: LEPHYs, _ link: LinkIdentity, _ timeout: Duration
    ) async throws(BLEError) -> Peripheral.LinkPHY {
        let context = CallContext("change the PHY", until: loop.now() + timeout)
        let end = try await update(link, .phy, in: context) { handle in
            HCICommandPacket(LESetPHY(handle: handle, transmit: transmit, receive: receive))
        }
        guard case .phy(let complete) = end else { throw lostError(of: link, during: context.operation) }
        guard complete.status.isSuccess else { throw refusal(complete.status, of: link, during: context.operation) }
        return Peripheral.LinkPHY(transmit: complete.transmit, receive: complete.receive)
    }

    /// Changes a link: once more after some intervals where the other side had begun a procedure at the same moment, so
    /// that both were dropped (row W53).
    private func update(
        _ link: LinkIdentity, _ kind: LinkUpdate.Kind, in context: CallContext,
        by command: (ConnectionHandle) -> HCICommandPacket
    ) async throws(BLEError) -> LinkUpdate.End {
        let end = try await updateOnce(link, kind, in: context, by: command)
        guard end.hasCollided, let handle = link.handle else { return end }
        let interval = links.parameters(of: handle)?.interval.upperBound ?? Self.usualInterval
        let pause = loop.now() + interval * Self.intervalsAfterCollision
        if context.isOver(at: pause) { return end }
        let (wake, _) = await suspend(until: pause) { _ in }
        if case .cancelled = wake { throw cancelledError(during: context.operation) }
        return try await updateOnce(link, kind, in: context, by: command)
    }

    private static let intervalsAfterCollision = 4
    /// The interval of a link whose parameters are not known.
    private static let usualInterval: Duration = .milliseconds(50)

    /// Sends the command when it is its turn, and waits for the event that ends it.
    private func updateOnce(
        _ link: LinkIdentity, _ kind: LinkUpdate.Kind, in context: CallContext,
        by command: (ConnectionHandle) -> HCICommandPacket
    ) async throws(BLEError) -> LinkUpdate.End {
        guard mayCommand else { throw notPermittedError(during: context.operation) }
        let key = LinkUpdate.Key(handle: try current(link, during: context.operation), kind: kind)
        let command = command(key.handle)
        var isBegun = false
        var wake = Wake.resumed
        while !isBegun {
            try await takeUpdateTurn(key, of: link, in: context)
            let expiry = loop.now() + LinkTable.procedureTimeout
            (wake, _) = await suspend(until: context.deadline(or: expiry)) { number in
                // Another update may have begun in between.
                isBegun = links.beginUpdate(key, for: number, until: expiry)
                if isBegun { send(command, for: .update(key)) } else { self.wake(number) }
            }
            if !isBegun, case .cancelled = wake { throw gaveUpError(wake, on: link, during: context.operation) }
        }
        if let (end, next) = links.takeUpdateEnd(key) {
            self.wake(next)
            guard case .failed(let failure) = end else { return end }
            noticeEnd(of: link, failure.status)
            throw updateError(failure, of: link, during: context.operation)
        }
        links.abandonUpdate(key)
        throw gaveUpError(wake, on: link, during: context.operation)
    }

    private func takeUpdateTurn(
        _ key: LinkUpdate.Key, of link: LinkIdentity, in context: CallContext
    ) async throws(BLEError) {
        while let expiry = links.updateExpiry(key) {
            let (wake, _) = await suspend(until: context.deadline(or: expiry)) { number in
                // The update may have ended since the look above.
                if links.updateExpiry(key) == nil { self.wake(number) } else { links.awaitUpdateTurn(key, number) }
            }
            let now = loop.now()
            switch wake {
            case .cancelled: throw gaveUpError(wake, on: link, during: context.operation)
            case .timedOut where context.isOver(at: now): throw gaveUpError(wake, on: link, during: context.operation)
            case .resumed, .finished, .managed, .listsLoaded, .encryption, .encrypted, .keyMissing, .paired, .failed,
                .timedOut:
                break
            }
            // The handle may belong to another link by now.
            _ = try current(link, during: context.operation)
            links.expireUpdate(key, at: now)
        }
    }
}
