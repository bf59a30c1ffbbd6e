import BLECore
import BareBLE
import BareBLETestKit

/// A connection for the length of one command.
enum Connection {
    /// A command's use of the file of `--cache`.
    enum CacheUse {
        /// Uses it and keeps it current; a stored database without a hash is trusted only on request. With another
        /// peer's, a value would be read, or worse written, at a handle that belongs to another attribute.
        case kept(CacheValidation)
        /// Only reads it.
        case consulted
        /// Does not use it: the requests of the command cost less than the validation of a cache.
        case unneeded
    }

    /// Connects to `peer`, runs `body`, and disconnects however it ends. ^C cancels `body`.
    ///
    /// - Parameters:
    ///   - switchesOn: Whether an adapter that is off is switched on, if this process may.
    ///   - found: Called when the peer has been found, and the connection attempt begins.
    static func run<Value: Sendable>(
        with peer: PeerArgument, _ options: ConnectionOptions, cache use: CacheUse = .kept(.required),
        switchesOn: Bool = true, found: @Sendable @escaping () -> Void = {},
        _ body: @Sendable @escaping (Peripheral) async throws -> Value
    ) async throws -> Value {
        if options.adapter != nil, !peer.isInTheAir {
            throw Failure(
                message: "--adapter does not apply to \(peer), which uses no radio. Leave it out.", status: .usage)
        }
        return try await SessionRecording.during(options.recording) { recording in
            var configuration = options.configuration
            recording?.attach(to: &configuration)
            Console.progress.attach(to: &configuration)
            Console.progress.begin("\(peer): connecting")
            defer { Console.progress.end() }
            return try await run(
                with: peer, options, cache: use, configuration,
                connect: { central, options in
                    try await connect(central, to: peer, options, switchesOn: switchesOn, found: found)
                }, body)
        }
    }

    private static func run<Value: Sendable>(
        with peer: PeerArgument, _ options: ConnectionOptions, cache use: CacheUse, _ configuration: Configuration,
        connect: @Sendable @escaping (Central, ConnectOptions) async throws -> Peripheral,
        _ body: @Sendable @escaping (Peripheral) async throws -> Value
    ) async throws -> Value {
        let (file, cache, validation) = cached(peer, options, use)
        let connectOptions = options.connectOptions(cache: cache, validation: validation)
        return try await Interrupt.cancelling {
            let central = Central(configuration)
            return try await central.run {
                let peripheral = try await connect(central, connectOptions)
                do {
                    let value = try await body(peripheral)
                    // A task of its own: the command may end by ^C, which cancels this one.
                    await Task { await file?.keep(peripheral) }.value
                    await peripheral.disconnect()
                    return value
                } catch {
                    await peripheral.disconnect()
                    throw error
                }
            }
        }
    }

    /// Returns the file to keep current, its contents, and their validation.
    private static func cached(
        _ peer: PeerArgument, _ options: ConnectionOptions, _ use: CacheUse
    ) -> (file: CacheFile?, cache: GATTCache?, validation: CacheValidation) {
        guard let path = options.cache else { return (nil, nil, .required) }
        var file = CacheFile(path, of: peer)
        switch use {
        case .kept(let validation):
            let cache = file.load()
            return (file, cache, validation)
        case .consulted:
            return (nil, file.load(), .required)
        case .unneeded:
            return (nil, nil, .required)
        }
    }

    private static func connect(
        _ central: Central, to peer: PeerArgument, _ options: ConnectOptions, switchesOn: Bool,
        found: @Sendable @escaping () -> Void
    ) async throws -> Peripheral {
        switch peer {
        case .unix(let path):
            return try await central.connect(toSocket: path, options)
        case .demo(let name):
            guard let preset = VirtualDevice.presets.first(where: { $0.name == name }) else {
                let names = VirtualDevice.presets.map { "demo:" + $0.name }.joined(separator: ", ")
                throw Failure(message: "there is no demo:\(name). The virtual devices are \(names).", status: .usage)
            }
            let descriptor = try await VirtualPeripheral(preset.device).connect()
            return try await central.attach(descriptor: descriptor, name: peer.description, options)
        case .address(let address, let type):
            try await central.ready(powerOn: switchesOn, timeout: .seconds(2))
            if let type {
                found()
                return try await central.connect(PeerID(address: address, type: type), options)
            }
            Console.progress.update("\(peer): scanning for it")
            return try await central.connect(address, options) { identified in
                if identified.isGuess {
                    Console.warn("without CAP_NET_RAW the address type is a guess; add /public or /random")
                }
                Console.progress.update("\(identified.peer): connecting")
                found()
            }
        }
    }
}
