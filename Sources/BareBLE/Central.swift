internal import BLECore
package import BLELinux
internal import Logging

/// This machine's side of Bluetooth Low Energy: scans, and connects to peers.
///
/// A central costs nothing until it is used; it opens its sockets with the first scan or connect. All its work runs on an
/// event loop: by default on a thread of the library's own, shared by all centrals; `run(_:)` puts a caller's task on that
/// thread too, and `serve(_:_:)` makes a whole daemon of one thread.
public actor Central {
    /// What the central was told at the start.
    public nonisolated let configuration: Configuration

    nonisolated let loop: EventLoop
    package let adapter: Adapter
    /// The sessions by their peers, as long as somebody holds them.
    var sessions: [PeerID: WeakSession] = [:]
    /// Keeps what is wanted for the next start, from `restore` to `suspend`.
    var keeper: StateKeeper?
    var hasRestored = false
    var hasNoticedMissingRestore = false
    /// What the log was told of each peer.
    nonisolated let troubles = TroubleBook()
    nonisolated let disk = DiskGate()

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside this
        // actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// A central on the library's own thread.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        self.loop = .shared
        self.adapter = Adapter(
            configuration.adapter, loop: loop, logger: configuration.logger, trace: configuration.traceHCI)
        loop.start()
    }

    /// A central on a loop that somebody else drives.
    package init(_ configuration: Configuration, loop: EventLoop) {
        self.configuration = configuration
        self.loop = loop
        self.adapter = Adapter(
            configuration.adapter, loop: loop, logger: configuration.logger, trace: configuration.traceHCI)
    }

    /// A central with an adapter that somebody else made.
    package init(_ configuration: Configuration = Configuration(), adapter: Adapter) {
        self.configuration = configuration
        self.loop = adapter.loop
        self.adapter = adapter
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

    /// Runs a whole daemon on the calling thread: `body` gets a central, and the thread serves it until `body` ends.
    ///
    /// No other thread is started. To be called from synchronous code, once, such as `main`. Scans that are left over are ended.
    ///
    /// - Throws: What `body` throws.
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
            // The radio would scan on for a daemon that has ended.
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
    /// Connects to an ATT server behind a Unix SEQPACKET socket, such as a simulated peripheral.
    ///
    /// - Throws: `BLEError` with `.connectFailed` when nobody listens there, `.timedOut`, `.cancelled`.
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
            troubles: troubles,
            policy: CachePolicy(options))
        try await peripheral.open(timeout: options.timeout)
        return peripheral
    }

    /// Takes over a connected SEQPACKET descriptor, one packet a PDU, as a link to a peer.
    ///
    /// The descriptor belongs to the peripheral from now on, also when the call throws. Tests give one end of a
    /// socketpair.
    ///
    /// - Throws: `BLEError` with `.timedOut`, `.disconnected`, `.cancelled`.
    public func attach(
        descriptor: Int32, name: String = "descriptor", _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        let socket = LinkSocket(adopting: descriptor)
        let mtu = try mtu(options, connectingTo: name)
        let peripheral = Peripheral(
            socket: socket, id: nil, name: name, mtu: mtu, loop: loop, configuration: configuration, troubles: troubles,
            policy: CachePolicy(options))
        try await peripheral.open(timeout: options.timeout)
        return peripheral
    }

    /// The largest MTU that a link may get; checked before there is a link.
    func mtu(_ options: ConnectOptions, connectingTo peer: String) throws(BLEError) -> UInt16 {
        let mtu = options.mtu ?? configuration.preferredMTU
        guard (Int(ATTQueue.defaultMTU)...Int(ATTQueue.largestMTU)).contains(mtu) else {
            throw BLEError(
                .invalidArgument, subject: peer, during: "connect", because: "an MTU of \(mtu) was asked for",
                hint: "Ask for 23 to 517 bytes.")
        }
        return UInt16(mtu)
    }
}
