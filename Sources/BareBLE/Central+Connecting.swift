public import BLECore
package import BLELinux

extension Central {
    /// Connects to a peer that advertises, and agrees on the MTU. No scan is needed before.
    ///
    /// Connects of one adapter take turns. With CAP_NET_RAW the controller is told to call the peer, which makes a real
    /// cancel, own parameters and the controller's own reason possible; running scans make way and go on afterwards.
    /// Without, the kernel connects by its own means.
    ///
    /// - Throws: `BLEError` with `.timedOut` when the peer was not heard, `.connectFailed`, `.busy` (it is connected already, or has a
    ///   session), `.lowEnergyOff`, `.noAdapter`, `.adapterDown`, `.blocked`, `.unsupported`, `.invalidArgument`, `.cancelled`. After it has thrown,
    ///   the attempt is over: the peer is not connected to later.
    public func connect(
        _ peer: PeerID, _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        if isTaken(peer) { throw hasSessionError(peer) }
        return try await connectAlone(peer, options)
    }

    /// Connects without asking whether the peer has a session.
    func connectAlone(_ peer: PeerID, _ options: ConnectOptions) async throws(BLEError) -> Peripheral {
        let deadline = options.timeout.map { loop.now() + $0 }
        _ = try mtu(options, connectingTo: "\(peer)")
        let link = try await adapter.connect(peer, parameters: options.parameters, timeout: options.timeout)
        keepAdapter()
        let controls = link.controls
        return try await peripheral(over: link.socket, to: peer, controls: controls, options, until: deadline)
    }

    /// The peer at the other end of a link that is up, with what is kept of it from earlier links.
    package func peripheral(
        over socket: consuming LinkSocket, to peer: PeerID, controls: LinkControls? = nil, _ options: ConnectOptions,
        policy given: CachePolicy? = nil, until deadline: BootInstant?
    ) async throws(BLEError) -> Peripheral {
        let mtu = try mtu(options, connectingTo: "\(peer)")
        var policy = given ?? cachePolicy(for: peer, options)
        policy.cache = await cache(of: peer, policy, until: deadline)
        let peripheral = Peripheral(
            socket: socket, id: peer, name: "\(peer)", mtu: mtu, loop: loop, configuration: configuration,
            troubles: troubles, policy: policy, controls: controls)
        try await peripheral.open(timeout: deadline.map { max(.seconds(1), $0 - loop.now()) })
        return peripheral
    }

    /// Connects, runs `body`, and disconnects whatever comes of it.
    ///
    /// `body` runs where the caller does, and may change the caller's state: variables, properties of an actor, or of the main actor.
    ///
    /// - Throws: `BLEError` as `connect(_:_:)` does, and what `body` throws.
    public nonisolated func withConnection<Value>(
        _ peer: PeerID, _ options: ConnectOptions = ConnectOptions(),
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        let peripheral = try await connect(peer, options)
        return try await disconnecting(peripheral) { try await body(peripheral) }
    }

    /// Runs `body`, and disconnects whatever comes of it.
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
