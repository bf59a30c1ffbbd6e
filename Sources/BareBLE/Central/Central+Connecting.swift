public import BLECore
package import BLELinux

extension Central {
    /// Connects to an advertising peer and exchanges the MTU. No scan is needed before.
    ///
    /// The connects of one adapter take turns. With CAP_NET_RAW the library initiates the connection itself, which
    /// allows a real cancel, connection parameters and the controller's own reason for a failure; running scans pause
    /// and resume afterwards. Without it, the kernel connects by its own means.
    ///
    /// A bonded peer may be named by its identity or by any of its private addresses: it is one peer, and
    /// `Peripheral.id` is its identity. If it may use private addresses and was not heard in the last seconds, a scan
    /// listens for it first. Its link is encrypted before its first byte, unless `ConnectOptions.security` specifies
    /// otherwise.
    ///
    /// - Throws: `BLEError` with `.timedOut` if the peer was not heard, `.connectFailed`, `.busy` (it is already
    ///   connected, or has a session), `.bondRejected` (a bonded peer does not accept the key), `.notBonded`,
    ///   `.unusableState` (the peer's bond was damaged and moved aside, and neither a pairing is demanded nor `.none`),
    ///   `.keyTooShort`, `.adapterShared` (another program removes the keys of bonds from the kernel, or is not allowed
    ///   by `SecurityConfiguration.sharing`), `.adapterMismatch` (the bond is for other hardware), `.notSupported`
    ///   (a private address that may be a bonded peer's, without `Configuration.addressHash`), `.lowEnergyOff`,
    ///   `.noAdapter`, `.adapterDown`, `.blocked`, `.unsupported`, `.invalidArgument`, `.cancelled`, and the codes of
    ///   `Peripheral.pair(_:)` if the options demand that. After an error the attempt is over: the peer is not
    ///   connected later.
    public func connect(
        _ peer: PeerID, _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        if isTaken(peer) { throw hasSessionError(peer) }
        return try await connectAlone(peer, options)
    }

    /// Returns the name under which a peer is filed: the identity of a bonded one.
    func name(of peer: PeerID) -> PeerID {
        guard configuration.security != nil, peer.kind == .resolvablePrivate else { return peer }
        return adapter.assumeIsolated { $0.bond(with: peer)?.identity } ?? peer
    }

    /// Connects without checking whether the peer has a session.
    func connectAlone(_ peer: PeerID, _ options: ConnectOptions) async throws(BLEError) -> Peripheral {
        let deadline = options.timeout.map { loop.now() + $0 }
        _ = try mtu(options, connectingTo: "\(peer)")
        // A central is served also where the bonds could not be read.
        if options.security != .none, linkToUse(to: name(of: peer)) != nil {
            try await adapter.openBonds(in: CallContext("connect", until: deadline))
        }
        // The kernel has one channel for both roles, and it is that of the accepted link.
        if let inbound = linkToUse(to: name(of: peer)) {
            if let error = await inbound.takingError(options.security, during: "connect") { throw error }
            try await inbound.openClientSide(timeout: deadline.map { max(.zero, $0 - loop.now()) })
            return inbound
        }
        let link = try await adapter.connect(
            peer, parameters: options.parameters, timeout: options.timeout, security: options.security)
        keepAdapter()
        let (peer, controls, hasDiscarded) = (link.peer, link.controls, link.hasDiscarded)
        // A pairing has a limit of its own.
        let rest = options.security.pairing == nil ? deadline : options.timeout.map { loop.now() + $0 }
        return try await peripheral(
            over: link.socket, to: peer, controls: controls, options, hasDiscarded: hasDiscarded, until: rest)
    }

    /// Returns the peripheral at the other end of a link that is up, with the cached state of earlier links.
    package func peripheral(
        over socket: consuming LinkSocket, to peer: PeerID, controls: LinkControls? = nil, _ options: ConnectOptions,
        policy given: CachePolicy? = nil, hasDiscarded: Bool = false, until deadline: BootInstant?
    ) async throws(BLEError) -> Peripheral {
        let mtu = try mtu(options, connectingTo: "\(peer)")
        let bond = bond(over: socket.descriptor, controls)
        var policy = given ?? cachePolicy(for: peer, bond, options)
        remember(bond, controls, hasDiscarded: hasDiscarded, in: &policy)
        policy.cache = await cache(of: peer, policy, until: deadline)
        let peripheral = Peripheral(
            socket: socket, id: peer, name: "\(peer)", mtu: mtu, loop: loop, configuration: configuration,
            warnings: warnings, policy: policy, controls: controls)
        // It may send requests as soon as the link is up.
        serve(peripheral)
        try await peripheral.open(
            security: options.security, timeout: deadline.map { max(.seconds(1), $0 - loop.now()) })
        return peripheral
    }

    /// Connects, runs `body`, and disconnects however `body` ends.
    ///
    /// `body` runs in the caller's isolation and may change the caller's state: variables, and properties of an actor
    /// or the main actor.
    ///
    /// - Throws: `BLEError` as `connect(_:_:)` does, and the error of `body`.
    public nonisolated func withConnection<Value>(
        _ peer: PeerID, _ options: ConnectOptions = ConnectOptions(),
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        let peripheral = try await connect(peer, options)
        return try await disconnecting(peripheral) { try await body(peripheral) }
    }

    /// Runs `body`, and disconnects however it ends.
    nonisolated func disconnecting<Value>(
        _ peripheral: Peripheral, after body: () async throws -> Value
    ) async throws -> Value {
        do {
            let value = try await body()
            await peripheral.disconnect()
            return value
        } catch {
            await peripheral.disconnect()
            throw error
        }
    }
}
