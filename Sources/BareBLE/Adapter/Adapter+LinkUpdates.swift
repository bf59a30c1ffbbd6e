internal import BLECore
internal import BLELinux

// What the controller can change of a link that is up: its connection parameters and its PHYs.
//
// A change is a command, which the controller takes or refuses at once, and an event some connection intervals later. The
// kernel answers peers that want other parameters by itself; what comes of it is seen here as an event that nobody asked for.
//
// Invariants
// - One update of a kind is out on a link at a time, because an event does not say whose request it ends. The others wait.
// - One whose caller has given up stays out until its event comes, or until the link layer's own limit of 40 s has passed.
// - A link that ends, and an adapter that goes, end what is out on it.

/// A link as its owner knows it: handles are used again, numbers are not.
struct LinkIdentity: Sendable {
    let handle: ConnectionHandle?
    let number: UInt64
    let peer: PeerID
}

/// An update of a link that is out.
struct LinkUpdate {
    enum Kind: Hashable, Comparable {
        case parameters
        case phy
    }

    struct Key: Hashable {
        let handle: ConnectionHandle
        let kind: Kind
    }

    enum End {
        /// The controller did not take the command.
        case failed(HCICommandFailure)
        case parameters(LEConnectionUpdateComplete)
        case phy(LEPHYUpdateComplete)
        case linkLost
    }

    /// Who wants to know the end; `nil` once the caller has given up.
    var waiter: UInt64?
    let expiry: BootInstant
    var end: End?
}

extension Adapter {
    /// After that time without an answer the link layer gives the link up. Spec: T_PRT, Core Vol 6 Part B, 5.2.
    private static let procedureTime: Duration = .seconds(40)

    // MARK: What a link is like

    func parameters(_ link: LinkIdentity) throws(BLEError) -> ConnectionParameters {
        let operation = "read the connection parameters"
        guard mayCommand else { throw notPermittedError(during: operation) }
        // What has changed already may wait to be read.
        commandsReadable()
        reportsReadable()
        let handle = try current(link, during: operation)
        guard let parameters = linkParameters[handle] else {
            throw BLEError(
                .notSupported, subject: "\(link.peer)", during: operation,
                because: "this program did not see the link come up", hint: "They are known once they change.")
        }
        return parameters
    }

    func phy(_ link: LinkIdentity) async throws(BLEError) -> LinkPHY {
        let operation = "read the PHY"
        guard mayCommand else { throw notPermittedError(during: operation) }
        let command = HCICommandPacket(LEReadPHY(handle: try current(link, during: operation)))
        do throws(HCICommandFailure) {
            let answer = try await run(command).get().answer(to: LEReadPHY.self)
            return LinkPHY(transmit: answer.transmit, receive: answer.receive)
        } catch {
            throw updateError(error, of: link, during: operation)
        }
    }

    /// The handle of a link that is up.
    func current(_ link: LinkIdentity, during operation: String) throws(BLEError) -> ConnectionHandle {
        guard let handle = link.handle else {
            throw BLEError(
                .notSupported, subject: "\(link.peer)", during: operation,
                because: "the kernel does not say which of the controller's links this is")
        }
        guard links[handle] == link.number else {
            throw BLEError(
                .disconnected, subject: "\(link.peer)", during: operation,
                because: "the controller has this link no more", hint: "Connect again.")
        }
        return handle
    }

    // MARK: Changes

    func request(
        _ parameters: ConnectionParameters, _ link: LinkIdentity, _ timeout: Duration
    ) async throws(BLEError) -> ConnectionParameters {
        let operation = "change the connection parameters"
        let end = try await update(link, .parameters, until: loop.now() + timeout, during: operation) { handle in
            HCICommandPacket(LEConnectionUpdate(handle: handle, parameters: parameters))
        }
        guard case .parameters(let complete) = end else { throw lostError(of: link, during: operation) }
        guard complete.status.isSuccess else { throw refusal(complete.status, of: link, during: operation) }
        return complete.parameters
    }

    func request(
        _ transmit: LEPHYs, _ receive: LEPHYs, _ link: LinkIdentity, _ timeout: Duration
    ) async throws(BLEError) -> LinkPHY {
        let operation = "change the PHY"
        let end = try await update(link, .phy, until: loop.now() + timeout, during: operation) { handle in
            HCICommandPacket(LESetPHY(handle: handle, transmit: transmit, receive: receive))
        }
        guard case .phy(let complete) = end else { throw lostError(of: link, during: operation) }
        guard complete.status.isSuccess else { throw refusal(complete.status, of: link, during: operation) }
        return LinkPHY(transmit: complete.transmit, receive: complete.receive)
    }

    /// Sends the command when it is its turn, and waits for the event that ends it.
    private func update(
        _ link: LinkIdentity, _ kind: LinkUpdate.Kind, until deadline: BootInstant, during operation: String,
        by command: (ConnectionHandle) -> HCICommandPacket
    ) async throws(BLEError) -> LinkUpdate.End {
        guard mayCommand else { throw notPermittedError(during: operation) }
        let key = LinkUpdate.Key(handle: try current(link, during: operation), kind: kind)
        let command = command(key.handle)
        var isBegun = false
        var wake = Wake.resumed
        while !isBegun {
            try await takeUpdateTurn(key, of: link, until: deadline, during: operation)
            let expiry = loop.now() + Self.procedureTime
            (wake, _) = await suspend(until: min(deadline, expiry)) { number in
                // Somebody else may have come in between.
                guard linkUpdates[key] == nil else { return self.wake(number) }
                isBegun = true
                linkUpdates[key] = LinkUpdate(waiter: number, expiry: expiry)
                enqueue(command, for: .update(key))
            }
            if !isBegun, wake == .cancelled { throw gaveUpError(wake, on: link, during: operation) }
        }
        if let end = linkUpdates[key]?.end {
            passUpdateTurn(key)
            guard case .failed(let failure) = end else { return end }
            throw updateError(failure, of: link, during: operation)
        }
        linkUpdates[key]?.waiter = nil
        throw gaveUpError(wake, on: link, during: operation)
    }

    private func takeUpdateTurn(
        _ key: LinkUpdate.Key, of link: LinkIdentity, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) {
        while let update = linkUpdates[key] {
            let (wake, _) = await suspend(until: min(deadline, update.expiry)) {
                updateTurns[key, default: []].append($0)
            }
            let now = loop.now()
            if wake == .cancelled || wake == .timedOut && now >= deadline {
                throw gaveUpError(wake, on: link, during: operation)
            }
            // The handle may belong to another link by now.
            _ = try current(link, during: operation)
            if let update = linkUpdates[key], update.waiter == nil, update.expiry <= now { linkUpdates[key] = nil }
        }
    }

    private func passUpdateTurn(_ key: LinkUpdate.Key) {
        linkUpdates[key] = nil
        for waiter in updateTurns.removeValue(forKey: key) ?? [] { wake(waiter) }
    }

    // MARK: What the controller says

    func linkBegan(_ complete: LEConnectionComplete) {
        guard complete.status.isSuccess else { return }
        let handle = complete.handle
        // At the other socket the end of the last link with this handle may wait, and that of this one.
        commandsReadable()
        lastEnds[handle] = earlyEnds.removeValue(forKey: handle)
        if lastEnds[handle] == nil { linkParameters[handle] = complete.parameters }
    }

    func linkUpdated(_ complete: LEConnectionUpdateComplete) {
        if complete.status.isSuccess { linkParameters[complete.handle] = complete.parameters }
        ended(LinkUpdate.Key(handle: complete.handle, kind: .parameters), .parameters(complete))
    }

    func linkUpdated(_ complete: LEPHYUpdateComplete) {
        ended(LinkUpdate.Key(handle: complete.handle, kind: .phy), .phy(complete))
    }

    func linkUpdatesEnded(on handle: ConnectionHandle) {
        linkParameters[handle] = nil
        for kind in [LinkUpdate.Kind.parameters, .phy] {
            ended(LinkUpdate.Key(handle: handle, kind: kind), .linkLost)
        }
    }

    func allLinkUpdatesEnded() {
        linkParameters = [:]
        for key in linkUpdates.keys.sorted(by: { ($0.handle, $0.kind) < ($1.handle, $1.kind) }) {
            ended(key, .linkLost)
        }
    }

    func ended(_ key: LinkUpdate.Key, _ end: LinkUpdate.End) {
        guard let update = linkUpdates[key], update.end == nil else { return }
        guard let waiter = update.waiter else { return passUpdateTurn(key) }
        linkUpdates[key]?.end = end
        wake(waiter)
    }
}
