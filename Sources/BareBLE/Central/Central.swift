internal import BLECore
package import BLELinux
internal import Logging

/// The central role on this machine: scans, and connects to peers.
///
/// A central costs nothing until it is used; its first scan or connect opens its sockets. All its work runs on an
/// event loop: by default on a thread of the library's own, shared by all centrals. `run(_:)` runs a caller's task on
/// that thread too, and `serve(_:_:)` runs a whole daemon on one thread.
public actor Central {
    /// The configuration that the central was created with.
    public nonisolated let configuration: Configuration

    package nonisolated let loop: EventLoop
    package let adapter: Adapter
    let sessions = SessionRegistry()
    let persistence = StatePersistence()
    /// What was logged of each peer.
    nonisolated let warnings = PeerWarningTable()
    nonisolated let disk = DiskGate()
    /// What bonded peers keep between links.
    nonisolated let bondedClients = BondedClients()
    /// The peripheral role on the same adapter, which serves the links that this central makes as well.
    private(set) weak var localPeripheral: LocalPeripheral?

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside
        // this actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Creates a central on the library's own thread.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        self.loop = .shared
        self.adapter = Adapter(
            configuration.adapter, loop: loop, logger: configuration.logger, trace: configuration.traceHCI,
            security: configuration.security, addressHash: configuration.addressHash, recovery: configuration.recovery,
            maximumLinks: configuration.maximumLinks, preferredPHYs: configuration.preferredPHYs)
        loop.start()
    }

    /// Creates a central on a loop that the caller runs.
    package init(_ configuration: Configuration, loop: EventLoop) {
        self.configuration = configuration
        self.loop = loop
        self.adapter = Adapter(
            configuration.adapter, loop: loop, logger: configuration.logger, trace: configuration.traceHCI,
            security: configuration.security, addressHash: configuration.addressHash, recovery: configuration.recovery,
            maximumLinks: configuration.maximumLinks, preferredPHYs: configuration.preferredPHYs)
    }

    /// Creates a central with an existing adapter.
    package init(_ configuration: Configuration = Configuration(), adapter: Adapter) {
        self.configuration = configuration
        self.loop = adapter.loop
        self.adapter = adapter
    }
}

// MARK: - The peripheral role

extension Central {
    /// Has a local peripheral serve the links of this central; returns `false` if another one does.
    func use(_ peripheral: LocalPeripheral) -> Bool {
        guard localPeripheral == nil || localPeripheral === peripheral else { return false }
        localPeripheral = peripheral
        return true
    }

    /// Ends the use of a local peripheral.
    func stopUsing(_ peripheral: LocalPeripheral) {
        if localPeripheral === peripheral { localPeripheral = nil }
    }

    /// The link to a peer that is connected as a central.
    func linkToUse(to peer: PeerID) -> Peripheral? {
        localPeripheral?.assumeIsolated { $0.peripheral(connectedAs: peer) }
    }

    /// Has a peer that this central has connected to served by the local peripheral.
    func serve(_ peripheral: Peripheral) {
        localPeripheral?.assumeIsolated { $0.serve(peripheral) }
    }

    /// Returns the link of a central, which nothing reads yet.
    func makePeripheral(
        over socket: consuming LinkSocket, id: PeerID?, name: String, mtu: UInt16, controls: LinkControls?
    ) -> Peripheral {
        let policy = id.map { cachePolicy(for: $0, nil, ConnectOptions()) } ?? CachePolicy(ConnectOptions())
        return Peripheral(
            socket: socket, id: id, name: name, mtu: mtu, loop: loop, configuration: configuration,
            warnings: warnings, policy: policy, controls: controls)
    }
}

// MARK: - Where code runs

extension Central {
    /// Runs `body` on the central's thread, so that awaiting its peripherals costs no change of threads.
    ///
    /// Child tasks inherit it, `Task { }` does not. A `body` that blocks its thread stops every link meanwhile.
    public nonisolated func run<Value: Sendable>(
        _ body: @concurrent @Sendable @escaping () async throws -> Value
    ) async rethrows -> Value {
        try await withTaskExecutorPreference(loop) { try await body() }
    }

    /// Runs a whole daemon on the calling thread: `body` receives a central, and the thread runs its event loop until
    /// `body` ends.
    ///
    /// No other thread is started. Call it once, from synchronous code such as `main`. Scans that still run afterwards
    /// are ended.
    ///
    /// - Throws: The error of `body`.
    public static func serve<Value: Sendable>(
        _ configuration: Configuration = Configuration(), _ body: @Sendable @escaping (Central) async throws -> Value
    ) throws -> Value {
        let loop = EventLoop()
        let central = Central(configuration, loop: loop)
        let outcome = Lock<Result<Value, any Error>?>(nil)
        Task(executorPreference: loop) {
            let result: Result<Value, any Error>
            do {
                result = .success(try await body(central))
            } catch {
                result = .failure(error)
            }
            // Otherwise the radio keeps scanning after the daemon has ended.
            await central.adapter.unsubscribeAll()
            outcome.withLock { $0 = result }
            loop.stop()
        }
        var result: Result<Value, any Error>?
        while result == nil {
            loop.run()
            result = outcome.withLock { $0 }
        }
        guard let result else { throw CancellationError() }
        return try result.get()
    }
}

// MARK: - Links without a radio

extension Central {
    /// Connects to an ATT server on a Unix SEQPACKET socket, such as a simulated peripheral.
    ///
    /// - Throws: `BLEError` with `.connectFailed` if there is no listener, `.timedOut`, `.cancelled`.
    public func connect(
        toSocket path: String, _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        let mtu = try mtu(options, connectingTo: "unix:\(path)")
        let socket: LinkSocket
        do {
            socket = try LinkSocket.connectedUnix(path: path)
        } catch {
            throw BLEError(error, connectingToSocket: path)
        }
        let peripheral = Peripheral(
            socket: socket, id: nil, name: "unix:\(path)", mtu: mtu, loop: loop, configuration: configuration,
            warnings: warnings,
            policy: CachePolicy(options))
        try await peripheral.open(timeout: options.timeout)
        return peripheral
    }

    /// Takes over a connected SEQPACKET descriptor, with one PDU in each packet, as a link to a peer.
    ///
    /// The descriptor belongs to the peripheral from now on, even if the call throws. Tests pass one end of a
    /// socketpair.
    ///
    /// - Throws: `BLEError` with `.timedOut`, `.disconnected`, `.cancelled`.
    public func attach(
        descriptor: Int32, name: String = "descriptor", _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        let socket = LinkSocket(adopting: descriptor)
        let mtu = try mtu(options, connectingTo: name)
        let peripheral = Peripheral(
            socket: socket, id: nil, name: name, mtu: mtu, loop: loop, configuration: configuration, warnings: warnings,
            policy: CachePolicy(options))
        try await peripheral.open(timeout: options.timeout)
        return peripheral
    }

    /// Returns the largest MTU that a link may use; checked before there is a link.
    func mtu(_ options: ConnectOptions, connectingTo peer: String) throws(BLEError) -> UInt16 {
        let mtu = options.mtu ?? configuration.preferredMTU
        guard (Int(ATTQueue.defaultMTU)...Int(ATTQueue.largestMTU)).contains(mtu) else {
            throw BLEError(
                .invalidArgument, subject: peer, during: "connect", because: "an MTU of \(mtu) was requested",
                hint: "Request 23 to 517 bytes.")
        }
        return UInt16(mtu)
    }
}
