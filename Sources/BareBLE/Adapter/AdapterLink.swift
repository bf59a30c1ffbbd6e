package import BLECore
package import BLELinux

/// A link that an adapter has made: its socket, and what only the adapter can do for it.
package struct AdapterLink: ~Copyable, Sendable {
    /// The socket, connected and not watched yet.
    package var socket: LinkSocket
    /// The link; its peer is named as the link is filed, a bonded one by its identity.
    package let identity: LinkIdentity
    /// A Boolean value that indicates whether packets were discarded that had arrived before the link was encrypted.
    package let hasDiscarded: Bool
    /// Signal strength, an end at once, and the reason of the end.
    package let controls: LinkControls

    /// The controller's number for the link; `nil` for a stand-in.
    package var handle: ConnectionHandle? { identity.handle }
    /// The peer by the name that the link is filed under.
    package var peer: PeerID { identity.peer }
}

extension Adapter {
    /// Takes charge of a link that is up.
    ///
    /// - Parameters:
    ///   - kernelName: The name by which the kernel has the link, if it is another one.
    ///   - hasDiscarded: Whether packets were discarded that had arrived before the link was encrypted.
    func adopt(
        _ socket: consuming LinkSocket, handle: ConnectionHandle?, _ peer: PeerID, kernelName: PeerID? = nil,
        hasDiscarded: Bool = false
    ) -> AdapterLink {
        let link = register(handle, peer, kernelName: kernelName)
        let controls = controls(of: link, supervisionHint: mayCommand ? nil : Self.supervisionHint)
        return AdapterLink(socket: socket, identity: link, hasDiscarded: hasDiscarded, controls: controls)
    }

    /// Without CAP_NET_RAW a link keeps the kernel's parameters, and nothing shows them (row W42).
    private static let supervisionHint =
        "The kernel has made the link, and ends it after 420 ms without the peer, unless it was set otherwise: "
        + "give this program cap_net_raw, and its links have 5 s."

    /// Makes `handle` belong to a link to `peer` from now on.
    func register(_ handle: ConnectionHandle?, _ peer: PeerID, kernelName: PeerID? = nil) -> LinkIdentity {
        let link = links.register(handle, peer, kernelName: kernelName)
        updatePins()
        return link
    }

    /// Returns what the adapter can do for a link. Handles are used again, so each call is checked against the link
    /// that it was made for.
    ///
    /// - Parameters:
    ///   - link: The link.
    ///   - supervisionHint: What the kernel's parameters do to it, where it has them for good.
    func controls(of link: LinkIdentity, supervisionHint: String? = nil) -> LinkControls {
        LinkControls(
            link: link, rssi: { () async throws(BLEError) in try await self.rssi(link) },
            parameters: { () async throws(BLEError) in try await self.parameters(link) },
            requestParameters: { parameters, timeout async throws(BLEError) in
                try await self.request(parameters, link, timeout)
            },
            phy: { () async throws(BLEError) in try await self.phy(link) },
            requestPHY: { transmit, receive, timeout async throws(BLEError) in
                try await self.request(transmit, receive, link, timeout)
            },
            disconnect: { await self.disconnect(link) },
            lastReason: { await self.takeReason(of: link) },
            openChannel: { request async throws(BLEError) in try await self.openChannel(request, on: link) },
            watchLoss: { handler in self.assumeIsolated { $0.links.watchLoss(of: link, handler) } },
            watchEncryption: { handler in self.assumeIsolated { $0.links.watchEncryption(of: link, handler) } },
            encryptionBeginning: { self.assumeIsolated { $0.links.encryptionBeginning(of: link) } },
            readEvents: { self.assumeIsolated { $0.commandsReadable() } },
            isUp: { await self.kernelName(of: link) != nil },
            silenceHint: { self.assumeIsolated { $0.silenceHint } }, supervisionHint: supervisionHint,
            security: { descriptor in self.assumeIsolated { $0.linkSecurity(of: link, descriptor) } },
            bond: { self.assumeIsolated { $0.bond(of: link) } },
            recordEncryption: { self.assumeIsolated { $0.recordEncryption(of: link) } },
            isPeerBonded: { self.assumeIsolated { $0.isBonded(with: link.peer) } },
            bondDamage: { self.assumeIsolated { $0.security.bonds.damage } },
            missingBond: { subject, operation in
                self.assumeIsolated { $0.missingBondError(of: link, subject, during: operation) }
            },
            strangerError: { demand, operation in
                self.assumeIsolated { $0.strangerError(of: link, demand, during: operation) }
            },
            prepareSignature: { operation, code async throws(BLEError) in
                try await self.prepareSignature(for: link.peer, during: operation, code)
            },
            sign: { value, handle in self.assumeIsolated { $0.sign(value, for: handle, to: link.peer) } },
            accept: { command, code in await self.accept(command, on: link, code) },
            requestSecurity: { required, context async throws(BLEError) in
                try await self.requestSecurity(of: link, required, in: context)
            },
            isPairing: { self.assumeIsolated { $0.isPairingCentral(on: link) } },
            isBeingPaired: { self.assumeIsolated { $0.security.pairing.isMakingKey(of: link) } },
            pair: { descriptor, options async throws(BLEError) in
                try await self.pair(link, descriptor: descriptor, options)
            })
    }

    /// The name by which the kernel has a link: after a pairing it is the identity that the peer has distributed. `nil`
    /// if it has none.
    func kernelName(of link: LinkIdentity) -> PeerID? {
        if hasLink(to: link.kernelName) { return link.kernelName }
        guard let identity = identity(of: link.peer), hasLink(to: identity) else { return nil }
        return identity
    }

    /// Whether the kernel has a link to a peer, of this or another program.
    func hasLink(to peer: PeerID) -> Bool { linkHandle(of: peer) != nil }

    /// The handle of the link to a peer that is up, of this or another program.
    func linkHandle(of peer: PeerID) -> ConnectionHandle? {
        guard let index = info?.index, let handle = system.linkHandle(index, peer.address) else { return nil }
        // The kernel lists a link for a moment after programs have read its end. A socket would attach to it,
        // and end with it.
        return links.hasJustEnded(handle, at: loop.now()) ? nil : handle
    }

    private func rssi(_ link: LinkIdentity) async throws(BLEError) -> Int {
        let operation = "read the RSSI"
        guard mayCommand else { throw notPermittedError(during: operation) }
        let handle = try current(link, during: operation)
        let rssi: Int8?
        do throws(HCICommandFailure) {
            rssi = try await run(HCICommandPacket(HCIReadRSSI(handle: handle))).get().parameters(of: HCIReadRSSI.self)
                .rssi
        } catch {
            noticeEnd(of: link, error.status)
            throw self.error(error, during: operation)
        }
        guard let rssi else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "the controller does not know it",
                hint: "Read it again after the next packets of the link: it is measured by them.")
        }
        return Int(rssi)
    }

    func disconnect(_ link: LinkIdentity) async {
        guard let handle = link.handle, links.isCurrent(link), mayCommand else { return }
        links.disconnecting(link)
        await disconnect(handle)
    }

    private func takeReason(of link: LinkIdentity) -> HCIStatus? {
        // The socket may have reported the end before this event was read.
        commandsReadable()
        if let reason = links.takeReason(of: link) { return reason }
        noticeSocketEnd(of: link)
        return nil
    }
}

// MARK: - Disconnecting

extension Adapter {
    /// How long the end of a disconnected link is awaited.
    private static let disconnectTimeout: Duration = .seconds(2)

    /// Disconnects a link at the controller; the socket's end follows within milliseconds.
    func disconnect(_ handle: ConnectionHandle) async {
        // The command is sent also where nothing waits for it: for a cancelled task, and to a silent controller that
        // may have others to respond to before this one.
        let command = HCICommandPacket(HCIDisconnect(handle: handle))
        var isSent = false
        _ = await suspend(until: loop.now() + Self.disconnectTimeout) { number in
            isSent = true
            send(command, for: .task(number))
        }
        if !isSent { send(command, for: .none) }
    }

    /// Disconnects a link and waits until it is gone: the kernel has it until then, and the next turn or connect would
    /// attach to it, and end with it.
    ///
    /// Without CAP_NET_RAW the kernel refuses the command. The peer, or the kernel itself, may be ending the link then.
    ///
    /// The command may have to wait for others to which a silent controller does not respond, 2 s each: the end is not
    /// awaited for so long. A cancelled caller does not wait: the next connect to the peer does.
    func disconnectAndWait(_ handle: ConnectionHandle, from peer: PeerID) async {
        links.disconnecting(handle, from: peer)
        send(HCICommandPacket(HCIDisconnect(handle: handle)), for: .none)
        await awaitEnd(of: handle, until: loop.now() + Self.disconnectTimeout)
    }

    /// Waits until the last link to a peer is gone, if this program has just disconnected it.
    ///
    /// The kernel has it until the controller has reported its end, some intervals later. A socket would attach to it,
    /// and end with it.
    func awaitDisconnection(from peer: PeerID, until deadline: BootInstant) async throws(BLEError) {
        guard let handle = links.disconnectingHandle(to: peer) else { return }
        let limit = loop.now() + Self.disconnectTimeout
        await awaitEnd(of: handle, until: min(limit, deadline))
        // A cancelled caller leaves the wait to the next one.
        if Task.isCancelled { throw cancelledError(during: "connect") }
        if loop.now() >= limit { links.stopAwaitingEnd(of: handle) }
    }

    private func awaitEnd(of handle: ConnectionHandle, until deadline: BootInstant) async {
        guard !Task.isCancelled else { return }
        let (_, number) = await suspend(until: deadline) { number in
            if !links.awaitEnd(of: handle, isUnseen: !mayCommand, number) { wake(number) }
        }
        links.cancelAwaitingEnd(of: handle, number)
    }
}
