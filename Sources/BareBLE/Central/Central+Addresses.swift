public import BLECore
internal import BLELinux
internal import Logging

// Connects by an address without its type.
//
// The type of an address is part of it: every packet indicates which of the two address spaces it uses, and a
// connection attempt with the wrong type waits for a device that does not exist. If the type is unknown, a scan listens
// for the device first.

/// A device with an address that was given without its type.
package struct IdentifiedPeer: Hashable, Sendable {
    /// The address with its type.
    package let peer: PeerID
    /// A Boolean value that indicates whether the type is a guess, because the process may not scan.
    package let isGuess: Bool
}

extension Central {
    /// Returns the identity of the device with this address: the address with its type, as the device advertises it.
    ///
    /// If one of this central's scans has received the device recently, nothing is sent or scanned. Otherwise the call
    /// scans until the device is received, for one advertising interval or a few; other scans continue meanwhile. Store
    /// the result in place of the address: the type never changes, so no later connect needs a scan.
    ///
    /// Two devices may have the same digits, one as a public and one as a random address. The one received first is
    /// returned, or the one received last if earlier scans have received both. Only advertisements of devices that
    /// accept connections count.
    ///
    /// - Parameters:
    ///   - address: The device's address.
    ///   - timeout: The longest scan, from the time at which it has started; `nil` for as long as the task lives.
    /// - Throws: `BLEError` with `.timedOut` if the device was received with neither type, `.notPermitted` without
    ///   CAP_NET_RAW, `.busy` if a link or a session already uses the address, `.invalidArgument` for an address that
    ///   no peer has, `.cancelled`, and the codes of starting a scan.
    public func peer(
        at address: BluetoothAddress, timeout: Duration? = .seconds(10)
    ) async throws(BLEError) -> PeerID {
        let operation = "find a device"
        if let known = try await knownPeer(at: address, during: operation) { return known }
        return try await listen(for: address, timeout: timeout, during: operation)
    }

    /// Connects to the device with this address, after a scan for its type.
    ///
    /// The scan, as in `peer(at:timeout:)`, is skipped if the device was received recently; a connect by `PeerID` never
    /// needs one. Both share `ConnectOptions.timeout`; a device that was received at the last moment has a second for
    /// the connect. Without CAP_NET_RAW the process may not scan: the type is then guessed from the address's top bits,
    /// which a warning in the log reports. The guess takes a public address that looks like a static random one for
    /// random, and private addresses for public ones.
    ///
    /// - Throws: `BLEError` with `.timedOut` if the device was not received, or a guess was wrong, and as
    ///   `connect(_:_:)` with a `PeerID` does.
    public func connect(
        _ address: BluetoothAddress, _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        try await connect(address, options) { _ in }
    }

    /// Connects to the device with this address; `identified` is called when its type is known, before the connect
    /// begins.
    package func connect(
        _ address: BluetoothAddress, _ options: ConnectOptions, identified: @Sendable (IdentifiedPeer) -> Void
    ) async throws(BLEError) -> Peripheral {
        _ = try mtu(options, connectingTo: "\(address)")
        let deadline = options.timeout.map { loop.now() + $0 }
        let found = try await identify(address, timeout: options.timeout)
        identified(found)
        var rest = options
        rest.timeout = deadline.map { max(.seconds(1), $0 - loop.now()) }
        do throws(BLEError) {
            return try await connect(found.peer, rest)
        } catch {
            guard found.isGuess, error.code == .timedOut else { throw error }
            let other = PeerID(address: address, type: found.peer.type == .public ? .random : .public)
            throw error.hinting(
                "Check that it advertises and is near. Without CAP_NET_RAW the type of the address is a guess: try \(other)."
            )
        }
    }

    /// Connects to the device with this address in its usual notation: `AA:BB:CC:DD:EE:FF/random`,
    /// `AA:BB:CC:DD:EE:FF/public`, or without the type, which a scan then determines first.
    ///
    /// Without the type it requires a scan, unless the device was received recently.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for any other text, and as `connect(_:_:)` with a `PeerID` or a
    ///   `BluetoothAddress` does.
    public func connect(
        _ text: String, _ options: ConnectOptions = ConnectOptions()
    ) async throws(BLEError) -> Peripheral {
        switch try WrittenPeer(text, during: "connect") {
        case .peer(let peer): try await connect(peer, options)
        case .address(let address): try await connect(address, options)
        }
    }

    /// Connects to the device with this address, after a scan for its type, runs `body`, and disconnects when `body`
    /// has returned or thrown.
    ///
    /// `body` runs in the caller's isolation and may change the caller's state: variables, and properties of an actor
    /// or the main actor.
    ///
    /// - Throws: `BLEError` as `connect(_:_:)` with a `BluetoothAddress` does, and the error of `body`.
    public nonisolated func withConnection<Value>(
        _ address: BluetoothAddress, _ options: ConnectOptions = ConnectOptions(),
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        let peripheral = try await connect(address, options)
        return try await disconnecting(peripheral) { try await body(peripheral) }
    }

    /// Connects to the device with this address in its usual notation, runs `body`, and disconnects when `body` has
    /// returned or thrown.
    ///
    /// `body` runs in the caller's isolation and may change the caller's state: variables, and properties of an actor
    /// or the main actor.
    ///
    /// - Throws: `BLEError` as `connect(_:_:)` with a `String` does, and the error of `body`.
    public nonisolated func withConnection<Value>(
        _ text: String, _ options: ConnectOptions = ConnectOptions(),
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        let peripheral = try await connect(text, options)
        return try await disconnecting(peripheral) { try await body(peripheral) }
    }

    /// Determines the type of an address, then starts a session with the device as `session(with:_:onReady:reconnect:)`
    /// does.
    ///
    /// The session itself connects by `Session.id`, which contains the type: only this call scans, for as long as the
    /// timeout of `Session.Options.connect`. Store `Session.id` to start without a scan next time. The type is never
    /// guessed: a session with the wrong type would try forever.
    ///
    /// - Throws: `BLEError` as `peer(at:timeout:)` and `session(with:_:onReady:reconnect:)` do.
    public func session(
        with address: BluetoothAddress, _ options: Session.Options = Session.Options(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil,
        reconnect decide: (@Sendable (Session.Disconnection, _ failures: Int) -> Duration?)? = nil
    ) async throws(BLEError) -> Session {
        let peer = try await peer(at: address, timeout: options.connect.timeout)
        return try session(with: peer, options, onReady: onReady, reconnect: decide)
    }

    /// Starts a session with the device with this address in its usual notation: with its type, or without, which a
    /// scan then determines first.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for any other text, and as the sessions with a `PeerID` or a
    ///   `BluetoothAddress` do.
    public func session(
        with text: String, _ options: Session.Options = Session.Options(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil,
        reconnect decide: (@Sendable (Session.Disconnection, _ failures: Int) -> Duration?)? = nil
    ) async throws(BLEError) -> Session {
        switch try WrittenPeer(text, during: "begin a session") {
        case .peer(let peer): try session(with: peer, options, onReady: onReady, reconnect: decide)
        case .address(let address): try await session(with: address, options, onReady: onReady, reconnect: decide)
        }
    }

    // MARK: Determining the type

    /// Returns the device with this address; a guess if the process may not scan.
    private func identify(_ address: BluetoothAddress, timeout: Duration?) async throws(BLEError) -> IdentifiedPeer {
        let operation = "connect"
        if let known = try await knownPeer(at: address, during: operation) {
            return IdentifiedPeer(peer: known, isGuess: false)
        }
        do throws(BLEError) {
            let peer = try await listen(for: address, timeout: timeout, during: operation)
            return IdentifiedPeer(peer: peer, isGuess: false)
        } catch {
            guard error.code == .notPermitted else { throw error }
            let random = PeerID(address: address, type: .random)
            let peer = random.kind == .static ? random : PeerID(address: address, type: .public)
            configuration.logger.warning(
                "the type of an address is a guess, because a scan needs CAP_NET_RAW", metadata: ["peer": "\(peer)"])
            return IdentifiedPeer(peer: peer, isGuess: true)
        }
    }

    /// Returns the device as earlier scans have received it.
    ///
    /// - Throws: `BLEError` if a scan for it is useless.
    private func knownPeer(
        at address: BluetoothAddress, during operation: String
    ) async throws(BLEError) -> PeerID? {
        let candidates = [AddressType.public, .random].map { PeerID(address: address, type: $0) }
        for peer in candidates where isTaken(peer) { throw hasSessionError(peer) }
        let adapter = adapter
        try await adapter.prepare(during: operation)
        try await adapter.checkIsPeer(address, "\(address)", during: operation)
        var newest: ScanResult?
        for peer in candidates {
            guard let scanResult = await adapter.scanResult(of: peer), scanResult.isConnectable else { continue }
            if newest.map({ $0.lastSeen < scanResult.lastSeen }) ?? true { newest = scanResult }
        }
        if let peer = newest?.peer(at: address) { return peer }
        // A connected device rarely advertises.
        guard await adapter.hasLink(to: candidates[0]) else { return nil }
        throw BLEError(
            .busy, subject: "\(address)", during: operation,
            because: "a link to the device is up already, and it does not advertise meanwhile",
            hint: "Close that link, of this or another program, or add the type to the address: /public or /random.")
    }

    private func listen(
        for address: BluetoothAddress, timeout: Duration?, during operation: String
    ) async throws(BLEError) -> PeerID {
        var filter = ScanFilter.address(address)
        filter.connectableOnly = true
        do throws(BLEError) {
            if let peer = try await first(filter, timeout: timeout).peer(at: address) { return peer }
        } catch {
            guard error.code == .timedOut, error.origin != .adapter else { throw error }
        }
        throw BLEError(
            .timedOut, subject: "\(address)", during: operation,
            because: "the device was heard neither under a public nor under a random address in \(timeout ?? .zero)",
            hint: "Check that it is near, switched on, advertising, and not connected elsewhere.", origin: .peer)
    }
}

/// A peer in its usual notation: an address, with its type or without.
private enum WrittenPeer {
    case peer(PeerID)
    case address(BluetoothAddress)

    init(_ text: String, during operation: String) throws(BLEError) {
        if let peer = PeerID(text) {
            self = .peer(peer)
        } else if let address = BluetoothAddress(text) {
            self = .address(address)
        } else {
            throw BLEError(
                .invalidArgument, subject: text, during: operation, because: "that is no device address",
                hint: "Write AA:BB:CC:DD:EE:FF, and /public or /random after it where the type is known.")
        }
    }
}
