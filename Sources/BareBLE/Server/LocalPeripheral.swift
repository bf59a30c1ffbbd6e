public import BLECore
internal import BLELinux
internal import Logging

// The peripheral role: the face of the local services, and of the links to the centrals that use them.
//
// | owner | what it owns |
// |---|---|
// | `PublishedServices` | the database, its handlers |
// | `LinkServer`, one for each link | the server side of the link, its updates and questions |
// | `Peripheral`, one for each link | the link itself, and its client side |
// | `ClientRecords` | what bonded centrals have configured, between links |
// | `ChannelAcceptor`, one for each PSM | a listening socket, and which channels are refused |
//
// Duties
// - Serves every link of its central: those that others make, and those that this program makes.
// - Passes on what happens at a link, in order: connected, subscribed, written, unsubscribed, disconnected.
//
// Invariants
// - A link is in `links` from its first packet to its end. Then its subscriptions have ended.
// - All state belongs to the event loop's thread.

/// A link that is served.
struct ServedLink {
    let peripheral: Peripheral
    let server: LinkServer
    /// Whether a central has made the link.
    let isInbound: Bool
}

/// The peripheral role on this machine: offers services to centrals.
///
/// ```swift
/// let peripheral = LocalPeripheral(.init(name: "Sensor"), on: central)
/// try await peripheral.publish(LocalService(0x180D, [LocalCharacteristic(.heartRateMeasurement, .notify)]))
/// try await peripheral.acceptCentrals()
/// try await peripheral.update(HeartRateMeasurement(beatsPerMinute: 62), of: .heartRateMeasurement)
/// ```
///
/// It serves all links of its central's adapter: those that others make, and those that the central makes. A central has
/// one local peripheral at a time. When the last reference goes away, its links end.
public actor LocalPeripheral {
    /// The properties of a local peripheral.
    public struct Settings: Sendable {
        /// Decides whether a central may access an attribute whose `AccessRequirement.isAuthorized` is `true`.
        public typealias Authorization = @Sendable (AuthorizationRequest) async -> Bool

        /// The Device Name, at most 248 bytes of UTF-8.
        public var name: String
        /// The Appearance.
        public var appearance: UInt16
        /// A Boolean value that indicates whether centrals may write the name.
        public var isNameWritable = false
        /// The maximum number of links that others make. If a further central connects, the unbonded one that was not heard
        /// for the longest time is disconnected; without such a one, the newcomer is.
        public var maximumCentrals = 16
        /// The largest ATT MTU that is offered to centrals, 23 to 517. On a link that the central has made it is
        /// `ConnectOptions.mtu`.
        public var mtu = 517
        /// Decides about accesses to attributes that require authorization; without it they are refused.
        public var authorize: Authorization?

        /// Creates settings.
        public init(name: String = "BareBLE", appearance: UInt16 = 0) {
            self.name = name
            self.appearance = appearance
        }
    }

    /// The settings that the peripheral was created with.
    public nonisolated let settings: Settings

    nonisolated let central: Central
    private nonisolated let loop: EventLoop
    private nonisolated let broadcaster = EventBroadcaster<LocalPeripheralEvent>(capacity: 256)
    private nonisolated let room = EventBroadcaster<Void>(capacity: 1)
    private let services: PublishedServices
    private var records = ClientRecords()
    private var links: [UInt64: ServedLink] = [:]
    private var lastNumber: UInt64 = 0
    private let listener: SocketListener
    /// The listeners for channels.
    let channelAcceptors = ChannelAcceptors()
    /// Ends what would outlive the last reference. It is no deinitializer: for an isolated one the optimizer of Swift 6.3
    /// fails in programs that create a local peripheral ("circular reference").
    private let cleanUp: LifetimeToken
    private var isStopped = false

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop through its central, so the reference stays good.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Creates a peripheral without services, which accepts no links yet.
    public init(_ settings: Settings = Settings(), on central: Central) {
        self.settings = settings
        self.central = central
        loop = central.loop
        let listener = SocketListener(on: central.loop)
        self.listener = listener
        cleanUp = LifetimeToken {
            [broadcaster, room, channelAcceptors, loop = central.loop, adapter = central.adapter] in
            broadcaster.finish()
            room.finish()
            Task(executorPreference: loop) {
                listener.end()
                channelAcceptors.end()
                await adapter.stopAccepting(for: ObjectIdentifier(listener))
            }
        }
        services = PublishedServices(
            name: settings.name, appearance: settings.appearance, isNameWritable: settings.isNameWritable,
            computingHashBy: central.configuration.databaseHash)
    }
}

// MARK: - Services

extension LocalPeripheral {
    /// The published services, in the order of their handles.
    public var publishedServices: [PublishedService] { services.services }

    /// Publishes a service after all others. Connected centrals are notified of the change, bonded ones that are away when
    /// they come back.
    ///
    /// Services have the same handles in each run of a program that publishes the same ones in the same order.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for a service that cannot be: one of the two that are there in any case
    ///   (0x1800, 0x1801), a descriptor that the library adds itself, a value of more than 512 bytes, a fixed value that is
    ///   writable, an include of a service that is not published, or more attributes than there are handles; `.busy` if
    ///   the central has another local peripheral.
    @discardableResult
    public func publish(_ service: LocalService) throws(BLEError) -> PublishedService {
        try checkRuns(during: "publish \(service.uuid)")
        try register(during: "publish \(service.uuid)")
        do throws(ServerDatabase.Failure) {
            let (published, affected) = try services.publish(service)
            if let affected { databaseChanged(affected) }
            return published
        } catch {
            throw BLEError(error, during: "publish \(service.uuid)")
        }
    }

    /// Withdraws a service. Its handles are not used again.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` if it is not published, or another service includes it.
    public func withdraw(_ service: PublishedService) throws(BLEError) {
        do throws(ServerDatabase.Failure) {
            databaseChanged(try services.withdraw(service.id))
        } catch {
            throw BLEError(error, during: "withdraw \(service.uuid)")
        }
    }

    private func databaseChanged(_ handles: ClosedRange<AttributeHandle>) {
        records.databaseChanged(handles, checksum: services.database.checksum, connected: peersInUse)
        for link in links.inOrder { link.server.databaseChanged(handles) }
    }

    private var peersInUse: Set<PeerID> { Set(links.values.compactMap(\.peripheral.id)) }

    /// Returns a stored value.
    ///
    /// - Throws: `BLEError` with `.attributeNotFound`, `.ambiguous`.
    public func value(of characteristic: CharacteristicReference) throws(BLEError) -> [UInt8] {
        let found = try services.resolve(characteristic, during: "look up a value")
        return services.database[found.id]?.value ?? []
    }

    /// Replaces a stored value, and sends nothing.
    ///
    /// - Throws: `BLEError` with `.attributeNotFound`, `.ambiguous`; `.tooLong` for more than 512 bytes.
    public func set(_ value: [UInt8], of characteristic: CharacteristicReference) throws(BLEError) {
        let operation = "set \(characteristic)"
        let found = try services.resolve(characteristic, during: operation)
        try checkLength(value, during: operation)
        services.database.setValue(value, of: found.id)
    }

    private func checkLength(_ value: [UInt8], during operation: String) throws(BLEError) {
        guard value.count > ServerDatabase.longestValue else { return }
        throw BLEError(
            .tooLong, during: operation,
            because: "the value has \(value.count) bytes, and an attribute \(ServerDatabase.longestValue) at most")
    }
}

// MARK: - Updates

extension LocalPeripheral {
    /// Sends a value to the centrals that have subscribed to a characteristic: in a notification or an indication, as each
    /// has asked for. It becomes the stored value as well, if there is one.
    ///
    /// The call returns when the value was sent to all, and those that get indications have confirmed it. Values reach each
    /// central in the order of the calls. A central whose queue is full does not delay the others, until it has all the
    /// buffers that the controller has for packets of all links: the kernel does not reserve any. If nobody has subscribed,
    /// that is no error, and the result is empty.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - characteristic: The characteristic.
    ///   - targets: The centrals; `nil` for all that have subscribed.
    ///   - whenFull: What to do for a central whose queue is full.
    ///   - timeout: After it the call returns; what was not sent is not sent any more. `nil` for no limit.
    /// - Throws: `BLEError` with `.attributeNotFound`, `.ambiguous`; `.tooLong` if the value is longer than one of these
    ///   centrals can receive (`ConnectedCentral.maximumUpdateLength`): it is sent to none.
    @discardableResult
    public func update(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: [ConnectedCentral.ID]? = nil,
        whenFull: WhenFull = .wait, timeout: Duration? = nil
    ) async throws(BLEError) -> UpdateResult {
        let operation = "update \(characteristic)"
        let (handle, receivers) = try receivers(value, characteristic, targets, during: operation)
        var outcomes: [ConnectedCentral.ID: UpdateOutcome] = [:]
        var unfinished: [(id: ConnectedCentral.ID, server: LinkServer, number: UInt64)] = []
        for (id, server) in receivers {
            switch server.beginUpdate(value, of: handle, whenFull: whenFull) {
            case .ended(let outcome): outcomes[id] = outcome
            case .goesOn(let number): unfinished.append((id, server, number))
            }
        }
        let deadline = timeout.map { loop.now() + $0 }
        for (id, server, number) in unfinished { outcomes[id] = await server.end(of: number, until: deadline) }
        return UpdateResult(outcomes: outcomes)
    }

    /// Sends a value, encoded as the key's type, as `update(_:of:to:whenFull:timeout:)` does.
    @discardableResult
    public func update<Value: GATTWritable>(
        _ value: Value, of key: CharacteristicKey<Value>, to targets: [ConnectedCentral.ID]? = nil,
        whenFull: WhenFull = .wait, timeout: Duration? = nil
    ) async throws(BLEError) -> UpdateResult {
        try await update(
            value.valueBytes, of: CharacteristicReference(key), to: targets, whenFull: whenFull, timeout: timeout)
    }

    /// Sends a value to the centrals that have subscribed, if all of them have room for it. It never waits.
    ///
    /// - Returns: `false` if a central has no room: nothing was sent. `readyToUpdate` reports when to try again.
    /// - Throws: `BLEError` as `update(_:of:to:whenFull:timeout:)` does.
    public func tryUpdate(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: [ConnectedCentral.ID]? = nil
    ) throws(BLEError) -> Bool {
        let (handle, receivers) = try receivers(value, characteristic, targets, during: "update \(characteristic)")
        // All are asked, so that each without room reports it later.
        let withoutRoom = receivers.count { !$0.server.hasRoom(for: handle) }
        guard withoutRoom == 0 else { return false }
        for (_, server) in receivers { server.tryUpdate(value, of: handle) }
        return true
    }

    /// When to call `tryUpdate(_:of:to:)` again.
    public nonisolated var readyToUpdate: ReadyToUpdateSequence { room.events(losses: .none, beginningWith: ()) }

    /// The handle of a characteristic, and the links of its subscribers; sets its stored value.
    private func receivers(
        _ value: [UInt8], _ characteristic: CharacteristicReference, _ targets: [ConnectedCentral.ID]?,
        during operation: String
    ) throws(BLEError) -> (AttributeHandle, [(id: ConnectedCentral.ID, server: LinkServer)]) {
        let found = try services.resolve(characteristic, during: operation)
        try checkLength(value, during: operation)
        var receivers: [(id: ConnectedCentral.ID, server: LinkServer)] = []
        for (number, link) in links.sorted(by: { $0.key < $1.key }) {
            let id = ConnectedCentral.ID(number: number)
            guard targets?.contains(id) ?? true, !link.server.configuration(of: found.id).isEmpty else { continue }
            let limit = link.server.maximumUpdateLength
            guard value.count <= limit else {
                throw BLEError(
                    .tooLong, subject: link.peripheral.name, during: operation,
                    because: "the value has \(value.count) bytes, and this central can receive \(limit)",
                    hint: "Send less, or leave the rest to be read: the central has agreed on an MTU of \(limit + 3).")
            }
            receivers.append((id, link.server))
        }
        services.database.setValue(value, of: found.id)
        return (found.id, receivers)
    }
}

// MARK: - Links

extension LocalPeripheral {
    /// The centrals that are connected.
    public var centrals: [ConnectedCentral] {
        links.sorted { $0.key < $1.key }.map { snapshot($0.key, $0.value) }
    }

    /// What happens to the links and their subscriptions.
    public nonisolated var events: LocalPeripheralEventSequence { broadcaster.events(losses: .before { .dropped($0) }) }

    /// Accepts the links that centrals make to the central's adapter, from now on until `stop()`.
    ///
    /// It needs no capability, and the adapter may be off. It does not advertise. Of several programs that accept links on
    /// an adapter, each link goes to the one that has begun last; bluetoothd is one of them.
    ///
    /// - Throws: `BLEError` with `.noAdapter`, `.unsupported`, `.busy` if another local peripheral of this program accepts
    ///   links of the adapter, `.invalidArgument` after `stop()`, `.system`.
    public func acceptCentrals() async throws(BLEError) {
        let operation = "accept centrals"
        try checkRuns(during: operation)
        try register(during: operation)
        try await central.adapter.accept(for: ObjectIdentifier(listener), during: operation) {
            [weak self] socket, peer, controls in
            let reportedReason = socket.reportedReason
            let descriptor = socket.release()
            self?.assumeIsolated { $0.accept(descriptor, reportedReason, peer, controls) }
        }
    }

    /// Advertises, and for a connectable advertisement accepts the links that follow, until the result is stopped or goes
    /// away.
    ///
    /// The advertisement comes back by itself: after a central has connected, after another program has disturbed it, and
    /// after the adapter was off.
    ///
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW; `.invalidArgument` for data that does not fit, with
    ///   the number of bytes, and after `stop()`; `.notSupported` for what the controller cannot do; `.busy` if it has as
    ///   many advertisements as it can; `.noAdapter`, `.adapterDown`, `.blocked`, `.unsupported`, `.cancelled`, and the
    ///   codes of `acceptCentrals()`.
    public func advertise(_ advertisement: Advertisement) async throws(BLEError) -> AdvertisementLease {
        let operation = "advertise"
        try checkRuns(during: operation)
        if advertisement.kind == .connectable { try await acceptCentrals() }
        let id = try await central.adapter.advertise(advertisement, during: operation)
        return AdvertisementLease(id, on: central.adapter)
    }

    /// Accepts links on a Unix SEQPACKET socket, with one PDU in each packet: for tests, and for tools without a radio.
    ///
    /// A socket that an ended program has left at the path is replaced. The file is removed at the end.
    ///
    /// - Throws: `BLEError` with `.busy` if another program listens there, or the path is another kind of file;
    ///   `.invalidArgument` if the path is too long, and after `stop()`; `.notPermitted`, `.system`.
    public func acceptCentrals(atSocket path: String) throws(BLEError) {
        let operation = "accept centrals"
        try checkRuns(during: operation)
        do throws(SystemCallError) {
            try listener.begin(at: path) { [weak self] in
                self?.assumeIsolated { $0.socketReadable(path) }
            }
        } catch {
            throw BLEError(error, acceptingAt: path, during: operation)
        }
    }

    /// Serves a connected SEQPACKET descriptor, with one PDU in each packet, as the link of a central.
    ///
    /// The descriptor belongs to the peripheral from now on, even if the call throws. Tests pass one end of a socketpair.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` after `stop()`, `.system`.
    @discardableResult
    public func attach(descriptor: Int32, name: String = "descriptor") throws(BLEError) -> ConnectedCentral.ID {
        let socket = LinkSocket(adopting: descriptor)
        try checkRuns(during: "attach a descriptor")
        return try serve(makePeripheral(over: socket, id: nil, name: name), isInbound: true)
    }

    /// Returns the client side of the link to a central, to use the central's own services. It lives as long as the link.
    ///
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected; `.timedOut`, `.cancelled`.
    public func peripheral(of id: ConnectedCentral.ID, timeout: Duration? = nil) async throws(BLEError) -> Peripheral {
        guard let peripheral = links[id.number]?.peripheral else {
            throw BLEError(
                .disconnected, during: "use a central's link", because: "the central is not connected")
        }
        try await peripheral.openClientSide(timeout: timeout)
        return peripheral
    }

    /// Returns the present connection parameters of the link to a central, as
    /// ``Peripheral/connectionParameters()`` does.
    ///
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected, and the codes of that method.
    public func connectionParameters(of id: ConnectedCentral.ID) async throws(BLEError) -> ConnectionParameters {
        try await servedLink(to: id, during: "read the connection parameters").peripheral.connectionParameters()
    }

    /// Requests other connection parameters of the link to a central, and waits until they are in effect.
    ///
    /// A central chooses the parameters with which it connects, and may change them at any time, also to absurd ones: the
    /// controllers do not ask this program. The central may refuse a request, choose within its bounds, and change the
    /// parameters again. Request them after `connectionParameters(of:)` has returned unsuitable ones, three times at most:
    /// a central that insists does not give way, and each request costs both sides energy.
    ///
    /// - Parameters:
    ///   - parameters: The bounds of the interval, the latency and the supervision timeout.
    ///   - id: The central.
    ///   - timeout: The longest time for the controllers.
    /// - Returns: The parameters of the link now.
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected, and the codes of
    ///   ``Peripheral/requestConnectionParameters(_:timeout:)``.
    ///
    /// Spec: Connection Parameter Update, Core Vol 3 Part C, 9.3.9.
    @discardableResult
    public func requestConnectionParameters(
        _ parameters: ConnectionParameters, of id: ConnectedCentral.ID, timeout: Duration = .seconds(10)
    ) async throws(BLEError) -> ConnectionParameters {
        let link = try servedLink(to: id, during: "change the connection parameters")
        return try await link.peripheral.requestConnectionParameters(parameters, timeout: timeout)
    }

    private func servedLink(to id: ConnectedCentral.ID, during operation: String) throws(BLEError) -> ServedLink {
        guard let link = links[id.number] else {
            throw BLEError(
                .disconnected, during: operation, because: "the central is not connected",
                hint: "`centrals` has those that are.")
        }
        return link
    }

    /// The link with this number at the controller. After the end of a link its number belongs to the next one, which
    /// may be served before the end is known.
    func link(handle: ConnectionHandle) -> (central: ConnectedCentral, peripheral: Peripheral)? {
        let matches = links.filter { $0.value.peripheral.controls?.handle == handle }
        guard let (number, link) = matches.max(by: { $0.key < $1.key }) else { return nil }
        return (snapshot(number, link), link.peripheral)
    }

    /// The link to a central.
    func link(to id: ConnectedCentral.ID) -> (central: ConnectedCentral, peripheral: Peripheral)? {
        links[id.number].map { (snapshot(id.number, $0), $0.peripheral) }
    }

    /// Disconnects a central; does nothing if it is not connected.
    public func disconnect(_ id: ConnectedCentral.ID) async {
        await links[id.number]?.peripheral.disconnect()
    }

    /// Ends all links that centrals have made, and accepts no others. Sequences of events end after the last of them.
    public func stop() async {
        isStopped = true
        await central.stopUsing(self)
        listener.end()
        channelAcceptors.end()
        await central.adapter.stopAccepting(for: ObjectIdentifier(listener))
        _ = cleanUp.dismiss()
        for link in links.inOrder where link.isInbound { await link.peripheral.disconnect() }
        broadcaster.finish()
        room.finish()
    }

    func checkRuns(during operation: String) throws(BLEError) {
        guard isStopped else { return }
        throw BLEError(
            .invalidArgument, during: operation, because: "this local peripheral was stopped",
            hint: "Create another one.")
    }

    func register(during operation: String) throws(BLEError) {
        guard central.assumeIsolated({ $0.use(self) }) else {
            throw BLEError(
                .busy, during: operation, because: "the central has another local peripheral",
                hint: "Publish all services with one, or stop the other one first.")
        }
    }

    private func socketReadable(_ path: String) {
        while true {
            do throws(SystemCallError) {
                guard let descriptor = try listener.accept() else { return }
                let socket = LinkSocket(adopting: descriptor)
                let number = lastNumber + 1
                let peripheral = makePeripheral(over: socket, id: nil, name: "unix:\(path)#\(number)")
                _ = try? serve(peripheral, isInbound: true)
            } catch {
                central.configuration.logger.warning("a link was not accepted", metadata: ["error": "\(error)"])
                return
            }
        }
    }

    /// A central has made a link to the adapter.
    private func accept(
        _ descriptor: Int32, _ reportedReason: (@Sendable () -> Int32?)?, _ peer: PeerID, _ controls: LinkControls
    ) {
        var socket = LinkSocket(adopting: descriptor)
        socket.reportedReason = reportedReason
        let peripheral = makePeripheral(over: socket, id: peer, name: "\(peer)", controls: controls)
        _ = try? serve(peripheral, isInbound: true)
    }

    /// Returns the link of a central, which nothing reads yet.
    private func makePeripheral(
        over socket: consuming LinkSocket, id: PeerID?, name: String, controls: LinkControls? = nil
    ) -> Peripheral {
        let reportedReason = socket.reportedReason
        let descriptor = socket.release()
        let mtu = UInt16(clamping: settings.mtu)
        return central.assumeIsolated {
            var socket = LinkSocket(adopting: descriptor)
            socket.reportedReason = reportedReason
            return $0.makePeripheral(over: socket, id: id, name: name, mtu: mtu, controls: controls)
        }
    }

    /// Serves a link that the central has made.
    func serve(_ peripheral: Peripheral) {
        guard !isStopped else { return }
        _ = try? serve(peripheral, isInbound: false)
    }

    /// The client side of the link to a peer that is connected as a central.
    func peripheral(connectedAs peer: PeerID) -> Peripheral? {
        links.values.first { $0.peripheral.id == peer && $0.isInbound }?.peripheral
    }

    private func serve(_ peripheral: Peripheral, isInbound: Bool) throws(BLEError) -> ConnectedCentral.ID {
        if isInbound {
            endEarlierLinks(of: peripheral)
            try makePlace(for: peripheral)
        }
        lastNumber &+= 1
        let number = lastNumber
        let id = ConnectedCentral.ID(number: number)
        // A device offers one MTU, in both roles (Core Vol 3 Part F, 3.4.2.2).
        let mtu = peripheral.assumeIsolated { $0.link.largestMTU }
        let server = LinkServer(of: services, mtu: mtu, isInbound: isInbound, on: loop)
        server.onEvents { [weak self] event in
            self?.assumeIsolated { $0.happened(event, number) }
        } questions: { [weak self] question in
            await self?.perform(question, from: number) ?? .rejected(.unlikelyError)
        }
        links[number] = ServedLink(peripheral: peripheral, server: server, isInbound: isInbound)
        let failure: BLEError? = peripheral.assumeIsolated { peripheral in
            do throws(BLEError) {
                try peripheral.serve(server, isStarting: isInbound)
                return nil
            } catch {
                return error
            }
        }
        if let failure {
            links[number] = nil
            throw failure
        }
        if let link = links[number] { broadcaster.report(.connected(snapshot(number, link))) }
        peripheral.assumeIsolated { peripheral in
            peripheral.onEnd { [weak self] reason in self?.assumeIsolated { $0.ended(number, reason) } }
        }
        identified(number)
        return id
    }

    /// Ends the link that a newcomer has had before: it has forgotten it, and nothing else would end it for seconds.
    private func endEarlierLinks(of newcomer: Peripheral) {
        guard let peer = newcomer.id else { return }
        for link in links.inOrder where link.isInbound && link.peripheral.id == peer {
            link.peripheral.assumeIsolated {
                $0.endForServer(.other(.connectionAlreadyExists, errorNumber: nil))
            }
        }
    }

    /// Makes sure that there are not too many links.
    private func makePlace(for newcomer: Peripheral) throws(BLEError) {
        let inbound = links.filter { $0.value.isInbound }
        guard inbound.count >= max(1, settings.maximumCentrals) else { return }
        // Of several that were heard at the same time, the oldest link.
        let idle = inbound.filter { !$0.value.server.security.isBonded }.min {
            ($0.value.server.lastHeard, $0.key) < ($1.value.server.lastHeard, $1.key)
        }
        let goes = idle?.value.peripheral ?? newcomer
        Task(executorPreference: loop) { await goes.disconnect() }
        guard idle == nil else { return }
        throw BLEError(
            .busy, subject: newcomer.name, during: "accept a central",
            because: "\(inbound.count) centrals are connected, and all are bonded")
    }

    /// Passes on what a bonded central has configured on earlier links.
    private func identified(_ number: UInt64) {
        guard let link = links[number], let peer = link.peripheral.id, let record = records.record(of: peer) else {
            return
        }
        link.server.identified(record)
    }

    private func ended(_ number: UInt64, _ reason: DisconnectReason) {
        guard let link = links[number] else { return }
        let central = snapshot(number, link)
        link.server.linkLost()
        links[number] = nil
        broadcaster.report(.disconnected(central, reason))
    }

    private func happened(_ event: LinkServer.Event, _ number: UInt64) {
        guard let link = links[number] else { return }
        switch event {
        case .ready: room.report(())
        case .store(let record):
            if let peer = link.peripheral.id { records.store(record, of: peer) }
        case .configured(let handle, let configuration, let isRestored):
            guard let characteristic = services.characteristic(at: handle), characteristic.id == handle else { return }
            let central = snapshot(number, link)
            broadcaster.report(
                configuration.isEmpty
                    ? .unsubscribed(central, characteristic)
                    : .subscribed(central, characteristic, isRestored: isRestored))
        case .wrote(let handle):
            guard let characteristic = services.characteristic(at: handle) else { return }
            broadcaster.report(.written(snapshot(number, link), characteristic))
        case .dropped(let handle):
            guard let characteristic = services.characteristic(at: handle) else { return }
            broadcaster.report(.writeDropped(snapshot(number, link), characteristic))
        }
    }

    private func perform(_ question: GATTServer.Question, from number: UInt64) async -> GATTServer.HandlerResult {
        guard let link = links[number] else { return .rejected(.unlikelyError) }
        return await services.perform(question, from: snapshot(number, link), authorize: settings.authorize)
    }

    private func snapshot(_ number: UInt64, _ link: ServedLink) -> ConnectedCentral {
        let all = services.services.flatMap(\.characteristics)
        return ConnectedCentral(
            id: ConnectedCentral.ID(number: number), peer: link.peripheral.id, name: link.peripheral.name,
            mtu: Int(link.server.mtu), security: link.peripheral.assumeIsolated { $0.security },
            subscriptions: all.filter { !link.server.configuration(of: $0.id).isEmpty })
    }

    /// The tasks and questions of all links that are unfinished; tests check what is left after their end.
    package var outstanding: Int { links.values.reduce(0) { $0 + $1.server.outstanding } }
}
