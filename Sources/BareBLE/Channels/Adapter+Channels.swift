internal import BLECore
internal import BLELinux
internal import Glibc

extension Adapter {
    /// Listens for channels; in `request` a PSM of 0 has the kernel choose one.
    func listenForChannels(
        _ request: ChannelListenRequest, during operation: String
    ) async throws(BLEError) -> ListeningSocket {
        let own = try await addressToListenOn(during: operation)
        do throws(SystemCallError) {
            return try system.listenForChannels(own, request)
        } catch {
            throw BLEError(error, listeningTo: request.psm, adapter: name, during: operation)
        }
    }

    /// The pause before a channel that cannot be written to is checked again: it may be open, without credits.
    private static let channelPause: Duration = .milliseconds(100)

    /// Opens a channel beside a link; it takes no turn, because the controller initiates no connection for it.
    ///
    /// If the old link has just ended, the kernel makes a new one, unencrypted. So the kernel is asked for a level of
    /// security, and encrypts that link too before the channel is requested, with the key of the bond. Where a command
    /// has encrypted the link, the kernel has no key, and would pair for a level. In all cases the channel's link is
    /// compared with ours, by what the sockets hold: the kernel acts on an event only after this process could read it.
    ///
    /// A channel that the peer closes before anything was received is refused: some peers accept each channel first.
    func openChannel(
        _ request: ChannelRequest, on link: LinkIdentity
    ) async throws(BLEError) -> LinkSocket {
        var request = request
        let peer = link.peer
        let deadline = loop.now() + request.timeout
        // The end of the link may wait to be read.
        commandsReadable()
        reportsReadable()
        guard let info, links.isCurrent(link), let kernelName = kernelName(of: link) else {
            throw BLEError(openingChannel: SystemCallError.notConnected, psm: request.psm, peer: peer, adapter: name)
        }
        let isEncryptedByCommand = links.keySize(of: link) != nil
        if request.isEncrypted, !isEncryptedByCommand, encryptionMeans == .kernel, let record = bondRecord(of: link) {
            let level = SocketSecurity.Level(rawValue: record.level.rawValue)
            // Right after a pairing the kernel has the level that was requested, though the key is worth more. For more
            // it would have the link encrypted again, which a central need not do.
            request.security = request.linkLevel.map { min(level, max($0, .medium)) } ?? level
        }
        let beginning = loop.now()
        var socket: LinkSocket
        do throws(SystemCallError) {
            socket = try system.openChannel(info.address, traits.ownAddressType, kernelName, request)
        } catch {
            throw BLEError(openingChannel: error.errno, psm: request.psm, peer: peer, adapter: name)
        }
        let number = security.channelRequested(from: kernelName, isEncrypted: request.isEncrypted)
        defer { security.channelRequestEnded(number) }
        while socket.isConnecting {
            let step = min(deadline, loop.now() + Self.channelPause)
            let wake = await awaitWritable(socket.descriptor, until: step)
            let progress = socket.finishConnect()
            // Also of one that has failed: its end may have come right after the refusal.
            if progress != .connected, isMoreSecurityWanted(for: request, at: socket.descriptor) {
                let now = loop.now()
                security.securityWanted(forChannel: number, after: pairsWithNobody ? nil : now - beginning, at: now)
            }
            switch (progress, wake) {
            case (.failed(let errno), _):
                throw openingFailure(errno, request, number, on: link)
            case (_, .cancelled):
                throw BLEError(
                    .cancelled, subject: "\(peer)", during: BLEError.opening(request.psm),
                    because: "the task was cancelled")
            case (.pending, _) where isRefused(number, until: deadline):
                throw securityRefusal(of: request, by: peer)
            case (.pending, _) where loop.now() >= deadline:
                throw BLEError(
                    openingChannelTimedOut: request.psm, peer: peer,
                    isEncrypted: request.isEncrypted || links.encryptionBeginning(of: link) != nil,
                    isPairingConfigured: security.isConfigured)
            case (.pending, _), (.connected, _):
                continue
            }
        }
        // In this order: what has ended the link before the kernel made another one can be read by now.
        let actual = try? socket.hciHandle()
        let found = try? system.security(socket.descriptor)
        commandsReadable()
        reportsReadable()
        if socket.hasEndedUnused() { throw openingFailure(ECONNRESET, request, nil, on: link) }
        // The kernel reports no security of a channel that has ended; it was requested at the level all the same.
        let hasEnded = socket.isHungUp
        let isMet = request.isMet(by: found) || request.security != nil && hasEnded
        let isEncrypted = isEncryptedByCommand ? links.keySize(of: link) != nil : isMet
        guard links.isCurrent(link), actual == nil || link.handle == nil || actual == link.handle,
            isEncrypted || !request.isEncrypted
        else {
            throw BLEError(openingChannel: SystemCallError.notConnected, psm: request.psm, peer: peer, adapter: name)
        }
        return socket
    }

    /// Whether a link has shown that the kernel pairs with nobody, for no program: it has no Security Manager for the
    /// adapter.
    private var pairsWithNobody: Bool { coordinator.isManaged && coordinator.canPair == false }

    /// Whether the kernel reports to this program that it pairs for a channel which the peer has refused. Without
    /// `Configuration.security` the adapter is never under management, and otherwise that may fail.
    private var seesChannelPairings: Bool { coordinator.isManaged && !pairsWithNobody }

    /// Whether the peer has refused a channel for lack of security, where the management interface does not show that.
    private func isMoreSecurityWanted(for request: ChannelRequest, at descriptor: Int32) -> Bool {
        guard !seesChannelPairings, let level = system.wantedLevel(descriptor) else { return false }
        return level > request.security ?? .low
    }

    /// Whether a channel counts as refused for lack of security.
    ///
    /// - Parameter deadline: The end of the attempt: there is no more time for the channel to open then.
    private func isRefused(_ number: UInt64, until deadline: BootInstant) -> Bool {
        let now = loop.now()
        if !seesChannelPairings, now >= deadline { return security.isChannelRefusedByItsEnd(number) }
        return security.isChannelRefused(number, at: now)
    }

    /// Returns why a channel that was being opened has failed: if it has ended, and its link is up, the peer has closed
    /// it. If the link has ended after the kernel's own pairing, the peer has refused the channel.
    ///
    /// - Parameter number: The number of the request; `nil` once the peer has accepted the channel.
    private func openingFailure(
        _ errno: Int32, _ request: ChannelRequest, _ number: UInt64?, on link: LinkIdentity
    ) -> BLEError {
        let ends: [Int32] = [ECONNRESET, ECONNABORTED, ENOTCONN, EPIPE]
        // The socket may have reported the end before that pairing's was read.
        managementReadable()
        if let number, ends.contains(errno), security.isChannelRefusedByItsEnd(number) {
            return securityRefusal(of: request, by: link.peer)
        }
        guard ends.contains(errno), links.isCurrent(link), kernelName(of: link) != nil else {
            return BLEError(
                openingChannel: errno, psm: request.psm, peer: link.peer, adapter: name,
                isEncrypted: request.isEncrypted)
        }
        return BLEError(channelClosedByPeer: errno, psm: request.psm, peer: link.peer)
    }

    /// The error for a channel that the peer has refused for lack of security. Pairing would fail for the reason that
    /// the adapter could not be put under management, or that the kernel cannot pair with it.
    private func securityRefusal(of request: ChannelRequest, by peer: PeerID) -> BLEError {
        let error = BLEError(
            openingChannel: EACCES, psm: request.psm, peer: peer, adapter: name, isEncrypted: request.isEncrypted)
        let cause: BLEError? =
            pairsWithNobody
            ? BLEError(cannotPairWith: name, during: BLEError.opening(request.psm))
            : coordinator.isManaged ? nil : security.setUpFailure
        guard let cause else { return error }
        return error.hinting("Pairing is not possible: \(cause.reason)." + (cause.hint.map { " \($0)" } ?? ""))
    }
}

extension ChannelRequest {
    /// Whether the link of a channel has the security that it must have.
    fileprivate func isMet(by found: SocketSecurity?) -> Bool {
        guard let found else { return false }
        return found.level >= security ?? .medium && found.keySize >= 7
    }
}
