import BLECore
import BareBLE
import BareBLECrypto
import BareBLETestKit

/// A connection for the length of one command.
enum Connection {
    /// A command's use of the file of `--cache`.
    enum CacheUse {
        /// Uses it and keeps it current; a stored database without a hash is trusted only on request. With another
        /// peer's, a value would be read, or worse written, at a handle that belongs to another attribute.
        case kept(GATTCache.Validation)
        /// Only reads it.
        case consulted
        /// Does not use it: the requests of the command cost less than the validation of a cache.
        case unneeded
    }

    /// Returns the peer of a command, and searches for it first if only what it advertises is known. The device that is
    /// found is reported on standard error.
    ///
    /// - Throws: `Failure` if no device matches, or several do, or the device is to be paired;
    ///   `BLEError` of the adapter.
    static func find(_ peer: PeerDesignation, _ options: ConnectionOptions) async throws -> PeerArgument {
        let wanted: AdvertisedPeer
        switch peer {
        case .known(let peer): return peer
        case .advertised(let advertised): wanted = advertised
        }
        guard !options.pair else {
            throw Failure(
                message: "--pair needs the address of the device, because any device may advertise \(wanted)",
                hint: "`sudo blescan scan \(wanted.scanOptions)` shows it.", status: .usage)
        }
        Console.progress.begin("\(wanted): scanning for it")
        defer { Console.progress.end() }
        let match = try await Interrupt.cancelling {
            let central = Central(options.configuration(traces: false))
            return try await central.run {
                try await central.ready(powerOn: true, timeout: .seconds(2))
                // A bonded device is known by its identity, whatever its address is now.
                let keys = try? BondDirectory(options.link.bonds).identityKeys(of: await central.adapterAddress)
                await central.setIdentityKeys(options.ignoresBonds ? [:] : keys ?? [:])
                return try await PeerSearch.run(wanted, by: central, for: options.valueTimeout)
            }
        }
        // Objects name the peer themselves.
        if !Console.isJSONWanted { Console.note("\(wanted): \(match.description)") }
        return .address(match.peer.address, match.peer.type)
    }

    /// Connects to `peer`, runs `body`, and disconnects however it ends. ^C cancels `body`.
    ///
    /// A peer with a bond is encrypted before the first byte; one without is paired first, if `--pair` is given.
    ///
    /// - Parameters:
    ///   - changesPeer: Whether the command changes something on the peer. It then goes on if the reader of the
    ///     recording goes away.
    ///   - switchesOn: Whether an adapter that is off is switched on, if this process may.
    ///   - found: Called when the peer has been found, and the connection attempt begins.
    static func run<Value: Sendable>(
        with peer: PeerArgument, _ options: OperationOptions, cache use: CacheUse = .kept(.required),
        changesPeer: Bool = false, switchesOn: Bool = true, found: @Sendable @escaping () -> Void = {},
        _ body: @Sendable @escaping (Peripheral) async throws -> Value
    ) async throws -> Value {
        let bonds = try self.bonds(of: peer, options.connection)
        let goesOn = changesPeer || options.pair
        return try await SessionRecording.during(options.output.recording, goesOn: goesOn) { recording in
            try await run(
                with: peer, options.connection, traces: options.output.trace, cache: use, switchesOn: switchesOn,
                recording, bonds, found: found
            ) { peripheral, _ in
                if let pairing = options.connection.pairing { _ = try await pairing.pair(peripheral, peer) }
                return try await body(peripheral)
            }
        }
    }

    /// Does the same for a screen, whose links are all recorded in `recording`.
    static func run(
        with peer: PeerArgument, _ options: ConnectionOptions, recording: SessionRecording?,
        found: @Sendable @escaping () -> Void, _ body: @Sendable @escaping (Peripheral) async throws -> Void
    ) async throws {
        try await run(
            with: peer, options, traces: false, cache: .kept(.required), switchesOn: true, recording,
            try bonds(of: peer, options), found: found
        ) { peripheral, _ in
            if let pairing = options.pairing { _ = try await pairing.pair(peripheral, peer) }
            try await body(peripheral)
        }
    }

    /// Connects to `peer` and pairs with it.
    ///
    /// - Returns: The bond, and whether it is new.
    static func pair(
        with peer: PeerArgument, _ options: OperationOptions, _ request: PairingRequest
    ) async throws -> (bond: Bond, isNew: Bool) {
        let bonds = try self.bonds(of: peer, options.connection, isPairing: true)
        return try await SessionRecording.during(options.output.recording, goesOn: true) { recording in
            try await run(
                with: peer, options.connection, traces: options.output.trace, cache: .unneeded, switchesOn: true,
                recording, bonds, found: {}
            ) { peripheral, central in
                let former = try await central.bonds()
                let bond = try await request.pair(peripheral, peer)
                return (bond, !former.contains { $0.peer == bond.peer })
            }
        }
    }

    /// Returns the bonds to use, before anything is opened.
    private static func bonds(
        of peer: PeerArgument, _ options: ConnectionOptions, isPairing: Bool = false
    ) throws -> BondUse? {
        if options.adapter != nil, !peer.isInTheAir {
            throw Failure(
                message: "--adapter does not apply to \(peer), which uses no radio", hint: "Leave it out.",
                status: .usage)
        }
        guard !options.ignoresBonds else { return nil }
        let finding = try BondUse.find(for: peer, options.link, isPairing: isPairing || options.pair)
        for warning in finding.warnings { Console.warn(warning) }
        return finding.use
    }

    private static func run<Value: Sendable>(
        with peer: PeerArgument, _ options: ConnectionOptions, traces: Bool, cache use: CacheUse, switchesOn: Bool,
        _ recording: SessionRecording?, _ bonds: BondUse?, found: @Sendable @escaping () -> Void,
        _ body: @Sendable @escaping (Peripheral, Central) async throws -> Value
    ) async throws -> Value {
        var configuration = options.configuration(traces: traces)
        if let bonds {
            configuration.security = SecurityConfiguration(bonds: bonds.store)
            configuration.addressHash = { $0.hash }
            if let adapter = bonds.adapter { configuration.adapter = .address(adapter) }
        }
        recording?.attach(to: &configuration)
        Console.progress.attach(to: &configuration)
        Console.progress.begin("\(peer): connecting")
        defer { Console.progress.end() }
        do {
            return try await run(
                with: peer, options, cache: use, configuration, bonds,
                connect: { central, options in
                    try await connect(central, to: peer, bonds, options, switchesOn: switchesOn, found: found)
                }, body)
        } catch let error as BLEError {
            throw error.advised(peer, isBonded: bonds?.identity != nil || options.pair).advisedToReadDirectly(peer)
        }
    }

    private static func run<Value: Sendable>(
        with peer: PeerArgument, _ options: ConnectionOptions, cache use: CacheUse, _ configuration: Configuration,
        _ bonds: BondUse?, connect: @Sendable @escaping (Central, ConnectOptions) async throws -> Peripheral,
        _ body: @Sendable @escaping (Peripheral, Central) async throws -> Value
    ) async throws -> Value {
        let (file, cache, validation) = cached(peer, options, use)
        var connectOptions = options.connectOptions(cache: cache, validation: validation)
        // It is paired over an unencrypted link, which is refused otherwise.
        if bonds?.isLost == true { connectOptions.security = .none }
        let linkOptions = connectOptions
        return try await Interrupt.cancelling {
            let central = await central(for: peer, configuration, bonds)
            return try await central.run {
                let peripheral = try await connect(central, linkOptions)
                do {
                    let value = try await body(peripheral, central)
                    // A task of its own: the command may end by ^C, which cancels this one.
                    await Task { await file?.keep(peripheral) }.value
                    await peripheral.disconnect()
                    return value
                } catch {
                    await peripheral.disconnect()
                    guard let failure = error as? BLEError else { throw error }
                    throw failure.afterDisconnect
                }
            }
        }
    }

    /// Returns the central that reaches `peer`: a virtual device that pairs is on a virtual radio.
    private static func central(
        for peer: PeerArgument, _ configuration: Configuration, _ bonds: BondUse?
    ) async -> Central {
        guard bonds != nil, case .demo(let name) = peer, let virtual = VirtualPeer(named: name) else {
            return .ofCommand(configuration)
        }
        let radio = VirtualRadio()
        await radio.add(virtual.device, latency: .zero)
        return Central(configuration, radio: radio)
    }

    /// Returns the file to keep current, its contents, and their validation.
    private static func cached(
        _ peer: PeerArgument, _ options: ConnectionOptions, _ use: CacheUse
    ) -> (file: CacheFile?, cache: GATTCache?, validation: GATTCache.Validation) {
        guard let path = options.cache else { return (nil, nil, .required) }
        var file = CacheFile(path, of: peer)
        switch use {
        case .kept(let validation):
            let cache = file.load()
            return (file, cache, validation)
        case .consulted:
            return (nil, file.consult(), .required)
        case .unneeded:
            // A mistake in its name is reported in any case.
            _ = file.consult()
            return (nil, nil, .required)
        }
    }

    private static func connect(
        _ central: Central, to peer: PeerArgument, _ bonds: BondUse?, _ options: ConnectOptions, switchesOn: Bool,
        found: @Sendable @escaping () -> Void
    ) async throws -> Peripheral {
        switch peer {
        case .unix(let path):
            return try await central.connect(toSocket: path, options)
        case .demo(let name):
            guard let virtual = VirtualPeer(named: name) else {
                throw VirtualPeer.absence(of: name)
            }
            if bonds != nil { return try await central.connect(toFirst: ScanFilter(), .balanced, options).peripheral }
            let descriptor = try await VirtualPeripheral(virtual.device).connect()
            return try await central.attach(descriptor: descriptor, name: peer.description, options)
        case .address(let address, let type):
            try await central.ready(powerOn: switchesOn, timeout: .seconds(2))
            // Without its bonds, a bonded peer's link would not be encrypted.
            if bonds != nil { _ = try await central.bonds() }
            if let known = bonds?.identity ?? type.map({ PeerID(address: address, type: $0) }) {
                found()
                return try await central.connect(known, options)
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

extension Result where Failure == any Error {
    /// Returns the result of `body`, after which something is to be done in any case.
    static func of(_ body: () async throws -> Success) async -> Self {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }
}
