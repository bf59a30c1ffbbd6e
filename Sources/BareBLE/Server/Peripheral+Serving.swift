internal import BLECore
internal import BLELinux

// The link of a peripheral that this program serves as well: a central's link, or one that this program has made.
//
// Invariants
// - The server knows the security of the link before each packet that is passed to it.
// - What arrived before the link was encrypted is served as on a link that is not: nothing proves who sent it. The
//   kernel's times of arrival show what that is. Where this process may not read the controller's events they are not
//   known: there a request that is read together with the beginning of the encryption is refused if it needs that.

extension Peripheral {
    /// Has the peer served from now on. `serverSecurityMayHaveChanged` follows,
    /// once the server has the record of the peer.
    ///
    /// - Parameter isStarting: Whether nothing reads the link yet.
    func serve(_ server: LinkServer, isStarting: Bool) throws(BLEError) {
        guard end == nil else { throw endError(during: "serve a central") }
        begin(server)
        reportArrivals()
        guard isStarting else { return }
        watchEncryption()
        try startReading()
    }

    private func begin(_ server: LinkServer) {
        server.begin(on: link) { [weak self] in
            self?.assumeIsolated { $0.link.readAll($0.happened) }
        } _: { [weak self] reason in
            self?.assumeIsolated { $0.endForServer(reason) }
        }
        readEventsBeforePackets()
    }

    /// Takes over a link that the run before has served. Nothing is read before `continueServing`.
    func adopt(_ state: ServedLinkState, servedBy server: LinkServer) {
        resumeClientSide(state.link)
        begin(server)
    }

    /// Begins to read a link that the run before has served.
    ///
    /// A link that was encrypted then has been ever since, because the encryption of a link ends with the link: so was
    /// what waits in the socket.
    func continueServing(_ server: LinkServer, wasEncrypted: Bool) throws(BLEError) {
        watchEncryption()
        reportArrivals()
        if wasEncrypted, controls != nil { server.securityChanged(clientSecurity) }
        try startReading()
        link.resume(happened)
        serverSecurityMayHaveChanged()
    }

    /// Ends the link for a reason of the server side.
    func endForServer(_ reason: DisconnectReason) {
        let controls = controls
        close(reason)
        // Closing the socket alone leaves the link up for seconds.
        Task(executorPreference: loop) { await controls?.disconnect() }
    }

    /// Looks at the security of the link where this program serves it, before packets are read.
    func serverSecurityMayHaveChanged() {
        guard controls != nil, end == nil, let server = link.server else { return }
        let security = clientSecurity
        guard security != server.security else { return }
        // The encryption may have begun before this program has accepted the link;
        // its end must be noticed all the same.
        if security.isEncrypted { secured() }
        if security.isEncrypted, !server.security.isEncrypted { readAhead(of: security, server) }
        if end == nil, security != server.security { server.securityChanged(security) }
    }

    /// Reads what waits at the socket of a link that has become encrypted. The server has the new security before the
    /// first packet that arrived encrypted.
    private func readAhead(of security: ClientSecurity, _ server: LinkServer) {
        // It may have been reported since the last look, and the kernel acts after its report.
        controls?.readEvents()
        let beginning = controls?.encryptionBeginning()
        var isChanged = false
        link.readAhead(happened) { [link] arrival in
            guard !isChanged, link.isUsable, let beginning, let arrival, arrival > beginning else { return }
            isChanged = true
            server.securityChanged(security)
        }
    }

    /// Without the times of arrival, packets count as unencrypted ones while that is in doubt.
    private func reportArrivals() {
        guard controls != nil else { return }
        try? link.reportArrivals()
    }

    private var clientSecurity: ClientSecurity {
        let security = security
        // The bond that this side replaces is not the one whose key is being made.
        let bond = controls?.isBeingPaired() == true ? nil : security.bond
        guard security.isEncrypted else {
            return ClientSecurity(keySize: 0, isBonded: controls?.bond() != nil)
        }
        // The level of a link that the peer has encrypted is what its key is worth.
        return ClientSecurity(
            keySize: UInt8(clamping: security.keySize),
            isAuthenticated: bond.map { $0.isAuthenticated || $0.isLegacyPasskey } ?? (security.level >= 3),
            isSecureConnections: security.level >= 4 && bond?.isAuthenticated ?? true, isBonded: bond != nil)
    }

    // MARK: The client side of a central's link

    /// Returns why the client side may not be used, as a connect to the central would not use the link; `nil` if it
    /// may.
    func clientSideError(during operation: String) -> BLEError? {
        if let error = securityError(.asBonded, during: operation) {
            return error.hinting(
                "Have the central encrypt its link with `LocalPeripheral.requestSecurity`, or disconnect it.")
        }
        return controls?.strangerError(.asBonded, operation)
    }

    /// Prepares the client side: exchanges the MTU, unless that was done, and validates the cache.
    ///
    /// A failure leaves the link to the server.
    func openClientSide(timeout: Duration?) async throws(BLEError) {
        let context = context("use a central's link", within: timeout ?? .seconds(60))
        if link.largestMTU > MTUExchange.minimum, link.mtu <= MTUExchange.minimum {
            try await exchangeMTU(offering: link.largestMTU, in: context)
        }
        try await validateCache(in: context)
        peerDatabase.databaseDidChange()
    }
}
