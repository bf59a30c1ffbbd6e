internal import BLECore
internal import BLELinux
internal import Glibc

extension Central {
    /// Takes over a link that is up: one that `Peripheral.detach()` returned, in this program or in the one before.
    ///
    /// Nothing is requested from the peer: the MTU, its known services and its subscriptions are unchanged. If the
    /// last owner had sent a request, the others wait until its response has come and was discarded, or until the
    /// peer's 30 s are over. Values that come before a task adopts the subscriptions
    /// (`Peripheral.restoredSubscriptions`) are kept as `holding` specifies: by default 256 values and 64 KiB for each;
    /// the oldest is dropped, and losses are counted.
    ///
    /// The link is consumed, even if the call throws.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for a link that was adopted before, for a descriptor that is not a
    ///   SEQPACKET socket, and for one that leads to another peer; `.disconnected` if the link has ended meanwhile;
    ///   `.notBonded` for a link to a bonded peer that the kernel does not report as encrypted, as one that was
    ///   encrypted without CAP_NET_ADMIN, which ends: connect again; `.notSupported` for a private address that may be
    ///   a bonded peer's, without `Configuration.addressHash`; `.unusableState` for a peer whose bond is damaged; the
    ///   codes of `BondStore` if the bonds cannot be read.
    public func adopt(
        _ link: DetachedLink, holding options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> Peripheral {
        var isToPrepare = true
        return try await adopt(link, holding: options, preparing: &isToPrepare)
    }

    /// Adopts one link of many: only the first one waits for a silent controller, as the others' values would wait
    /// too.
    func adopt(
        _ link: DetachedLink, holding options: SubscribeOptions, preparing isToPrepare: inout Bool
    ) async throws(BLEError) -> Peripheral {
        let state = link.state
        let operation = "adopt a link"
        guard let descriptor = link.release() else { throw link.givenAwayError(during: operation) }
        let socket = LinkSocket(adopting: descriptor)
        let endpoint: LinkEndpoint
        do {
            endpoint = try socket.endpoint()
        } catch {
            throw BLEError(error, adopting: state.name)
        }
        var controls: LinkControls?
        if case .radio(let own, let peer) = endpoint {
            if configuration.security != nil { try await adapter.readBonds(during: operation) }
            // The kernel names a peer by its identity after a pairing.
            let identity = if let named = state.peer { await adapter.identity(of: named) } else { nil as PeerID? }
            guard peer == state.peer || peer == identity else {
                throw BLEError(
                    .invalidArgument, subject: state.name, during: operation,
                    because: "the descriptor leads to \(peer)",
                    hint: "The link is closed. Store each descriptor with the bytes of its own link, and connect again."
                )
            }
            if isToPrepare { try? await adapter.prepare(during: operation, mayCyclePower: false) }
            isToPrepare = false
            controls = await adapter.controls(adopting: try? socket.hciHandle(), from: own, to: peer)
        }
        var policy = CachePolicy(ConnectOptions(cache: state.cache))
        if let peer = state.peer {
            // Not as the cache of a bond: what the former owner knew may have been found before the bond was made.
            policy.store = cachePolicy(for: peer, nil, ConnectOptions(cache: state.cache)).store
        }
        let peripheral = Peripheral(
            socket: socket, id: state.peer, name: state.name, mtu: state.client.largestMTU, loop: loop,
            configuration: configuration, warnings: warnings, policy: policy, controls: controls)
        try await peripheral.resume(state, holding: options)
        return peripheral
    }
}

extension Adapter {
    /// Returns this adapter's means for a link that it has not made; `nil` if the link is another adapter's, or if
    /// that is unknown.
    func controls(
        adopting handle: ConnectionHandle?, from own: BluetoothAddress, to peer: PeerID
    ) -> LinkControls? {
        guard address == own else { return nil }
        return controls(of: register(handle, peer))
    }
}

extension BLEError {
    fileprivate init(_ error: SystemCallError, adopting link: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case ENOTCONN: (.disconnected, "the link has ended meanwhile", "Connect again.")
            case EPROTOTYPE, ENOTSOCK: (.invalidArgument, "the descriptor is not the SEQPACKET socket of a link", nil)
            default: (.system, "\(error.call) failed", nil)
            }
        self.init(
            code, subject: link, during: "adopt a link", because: reason, hint: hint, errorNumber: error.errno)
    }
}
