package import BLECore
package import BLELinux

/// A link that an adapter has made: its socket, and what only the adapter can do for it.
package struct AdapterLink: ~Copyable, Sendable {
    /// The socket, connected, which nobody watches yet.
    package var socket: LinkSocket
    /// The controller's number for the link; `nil` for a stand-in.
    package let handle: ConnectionHandle?
    /// Signal strength, an end at once, and the reason of the end.
    package let controls: LinkControls
}

extension Adapter {
    /// Takes note of a link that is up.
    func adopt(_ socket: consuming LinkSocket, handle: ConnectionHandle?, _ peer: PeerID) -> AdapterLink {
        AdapterLink(socket: socket, handle: handle, controls: register(handle, peer))
    }

    /// Takes note of who is at the other end of `handle` from now on.
    func register(_ handle: ConnectionHandle?, _ peer: PeerID) -> LinkControls {
        lastNumber &+= 1
        let number = lastNumber
        if let handle {
            // The link that had it before was given away, or its end was not told.
            if let former = links.updateValue(number, forKey: handle) { lossHandlers[former] = nil }
            lastEnds[handle] = nil
            endingLinks.remove(handle)
            linkedPeers[handle] = peer
            updatePins()
        }
        return controls(handle, number, peer)
    }

    /// Handles are used again, so each call is checked against the link that it was made for.
    private func controls(_ handle: ConnectionHandle?, _ number: UInt64, _ peer: PeerID) -> LinkControls {
        let link = LinkIdentity(handle: handle, number: number, peer: peer)
        return LinkControls(
            rssi: { () async throws(BLEError) in try await self.rssi(link) },
            parameters: { () async throws(BLEError) in try await self.parameters(link) },
            requestParameters: { parameters, timeout async throws(BLEError) in
                try await self.request(parameters, link, timeout)
            },
            phy: { () async throws(BLEError) in try await self.phy(link) },
            requestPHY: { transmit, receive, timeout async throws(BLEError) in
                try await self.request(transmit, receive, link, timeout)
            },
            disconnect: { await self.disconnect(handle, number) },
            lastReason: { await self.reason(number) },
            openChannel: { request async throws(BLEError) in
                try await self.openChannel(request, to: peer, handle, number)
            },
            watchLoss: { handler in
                self.assumeIsolated { adapter in
                    if let handle, adapter.links[handle] == number { adapter.lossHandlers[number] = handler }
                }
            },
            isUp: { await self.hasLink(to: peer) })
    }

    private func hasLink(to peer: PeerID) -> Bool {
        guard let index = info?.index else { return false }
        return system.hasLink(index, peer.address)
    }

    private func rssi(_ link: LinkIdentity) async throws(BLEError) -> Int {
        let operation = "read the RSSI"
        guard mayCommand else { throw notPermittedError(during: operation) }
        let handle = try current(link, during: operation)
        guard let rssi = try await ask(HCIReadRSSI(handle: handle), during: operation).rssi else {
            throw BLEError(.notSupported, subject: name, during: operation, because: "the controller cannot tell it")
        }
        return Int(rssi)
    }

    private func disconnect(_ handle: ConnectionHandle?, _ number: UInt64) async {
        guard let handle, links[handle] == number, mayCommand else { return }
        endingLinks.insert(handle)
        await hangUp(handle)
    }

    /// Ends a link at the controller; the socket's end follows within milliseconds.
    func hangUp(_ handle: ConnectionHandle) async {
        // The command goes out all the same where nobody waits for it: a task that is cancelled, or a controller that is silent, and may have
        // others to answer before this one.
        let command = HCICommandPacket(HCIDisconnect(handle: handle))
        var isOut = false
        let (_, number) = await suspend(until: loop.now() + Self.hangUpTime) { number in
            isOut = true
            enqueue(command, for: .sleeper(number))
        }
        answers[number] = nil
        if !isOut { enqueue(command, for: .nobody) }
    }

    private func reason(_ number: UInt64) -> HCIStatus? {
        // The socket may have told the end before this one was read.
        commandsReadable()
        return endedLinks.removeValue(forKey: number)
    }

    func linkEnded(_ end: HCIDisconnectionComplete) {
        guard end.status.isSuccess else { return }
        lastEnds[end.handle] = end.reason
        if linkParameters[end.handle] == nil, links[end.handle] == nil { earlyEnds[end.handle] = end.reason }
        endingLinks.remove(end.handle)
        linkUpdatesEnded(on: end.handle)
        for waiter in hangUpWaiters.removeValue(forKey: end.handle) ?? [] { wake(waiter) }
        guard let number = links.removeValue(forKey: end.handle) else { return }
        linkedPeers[end.handle] = nil
        lossHandlers[number] = nil
        updatePins()
        // Whoever lets go of a link without asking leaves its reason here; they are few, and old ones go.
        if endedLinks.count >= 64, let oldest = endedLinks.keys.min() { endedLinks[oldest] = nil }
        endedLinks[number] = end.reason
    }
}
