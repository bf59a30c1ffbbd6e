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
// | `ClientRecords` | what bonded centrals have configured, between links and between runs |
// | `HandedServer` | what the run before has left to the service manager, until it is taken over |
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
    /// The central's identity, where it is known, or its address.
    var peer: PeerID?
    /// Whether the run before has served the link.
    var isRestored = false
    /// The tasks that have requested security of the central.
    let securing: Waiters<Result<Void, BLEError>>
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
        /// A Boolean value that indicates whether centrals may write the name, at most 248 bytes.
        ///
        /// A new name is a ``LocalPeripheralEvent/written(_:_:)`` of 0x2A00, whose value ``LocalPeripheral/value(of:)``
        /// returns. It is kept until the peripheral goes away, and not advertised by itself.
        public var isNameWritable = false
        /// The maximum number of links that others make. If a further central connects, the unbonded one that was not heard
        /// for the longest time is disconnected; without such a one, the newcomer is.
        public var maximumCentrals = 16
        /// How long a central may send nothing before it is disconnected, at least 1 s; `nil`, the default, for as long as it
        /// likes, as the protocol permits.
        ///
        /// It counts whatever a central sends on its link: requests, commands, confirmations, and responses to requests of this
        /// side. A central that only receives notifications sends nothing: it needs a limit that is longer than it stays, or
        /// indications. One that waits for a response of this side, that pairs, or has a channel open, is not disconnected. The
        /// limit is for links that centrals have made; the event is `.disconnected`.
        public var idleLimit: Duration?
        /// The largest ATT MTU that is offered to centrals, 23 to 517. On a link that the central has made it is
        /// `ConnectOptions.mtu`.
        public var mtu = 517
        /// Decides about accesses to attributes that require authorization; without it they are refused.
        public var authorize: Authorization?
        /// Where it is kept what bonded centrals have configured, from `restore(from:)` on; `nil` for the
        /// `Configuration.stateStore` of the central, without which it is kept until the end of the program.
        public var store: StateStore?

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
    private let records: ClientRecords
    /// What the run before has handed over; `nil` before `restore(from:)`.
    private var handed: HandedServer?
    private var isRestored = false
    private var links: [UInt64: ServedLink] = [:]
    private var lastNumber: UInt64 = 0
    private var idleTimer = DeadlineTimer()
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
        let listener = SocketListener(on: central.loop, logger: central.configuration.logger)
        self.listener = listener
        let records = ClientRecords(on: central.loop, logger: central.configuration.logger)
        self.records = records
        cleanUp = LifetimeToken {
            [broadcaster, room, channelAcceptors, loop = central.loop, adapter = central.adapter] in
            broadcaster.finish()
            room.finish()
            Task(executorPreference: loop) {
                records.close()
                listener.end()
                channelAcceptors.end()
                await adapter.stopAccepting(for: ObjectIdentifier(listener))
                await adapter.stopServingPairings(for: ObjectIdentifier(listener))
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
        records.databaseChanged(handles, services.database, connected: peersInUse)
        for link in links.inOrder { link.server.databaseChanged(handles) }
    }

    private var peersInUse: Set<PeerID> { Set(links.values.compactMap(\.peer)) }

    /// Returns a stored value: of a published characteristic, or with 0x2A00 the Device Name.
    ///
    /// - Throws: `BLEError` with `.attributeNotFound`, `.ambiguous`.
    public func value(of characteristic: CharacteristicReference) throws(BLEError) -> [UInt8] {
        let found = try services.resolve(characteristic, during: "look up a value", isNameIncluded: true)
        return services.database[found.id]?.value ?? []
    }

    /// Returns the type of an attribute; `nil` if no attribute has this handle.
    package func attributeType(of handle: AttributeHandle) -> BluetoothUUID? { services.database[handle]?.type }

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
    /// that is no error, and the result is empty. A central that cannot receive so long a value does not get it, and the others
    /// do: its outcome is ``UpdateOutcome/tooLong(limit:)``.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - characteristic: The characteristic.
    ///   - targets: The centrals; `nil` for all that have subscribed.
    ///   - whenFull: What to do for a central whose queue is full.
    ///   - timeout: After it the call returns; what was not sent is not sent any more. `nil` for no limit.
    /// - Throws: `BLEError` with `.attributeNotFound`, `.ambiguous`; `.tooLong` if the value is longer than one of `targets`, or
    ///   each of all centrals that have subscribed, can receive (`ConnectedCentral.maximumUpdateLength`): it is sent to none.
    @discardableResult
    public func update(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: [ConnectedCentral.ID]? = nil,
        whenFull: WhenFull = .wait, timeout: Duration? = nil
    ) async throws(BLEError) -> UpdateResult {
        let receivers = try receivers(value, characteristic, targets)
        services.database.setValue(value, of: receivers.handle)
        var outcomes = receivers.outcomes
        var unfinished: [(id: ConnectedCentral.ID, server: LinkServer, number: UInt64)] = []
        for (id, server) in receivers.links {
            switch server.beginUpdate(value, of: receivers.handle, whenFull: whenFull) {
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

    /// Sends the values of several characteristics, each as `update(_:of:to:whenFull:timeout:)` does.
    ///
    /// A central that supports Multiple Handle Value Notifications gets those for which it has enabled notifications in as few
    /// packets as they fit in, if there is room for them at once. Others get one packet for each value. Indications follow the
    /// notifications.
    ///
    /// - Parameters:
    ///   - values: The values and their characteristics.
    ///   - targets: The centrals; `nil` for all that have subscribed.
    ///   - whenFull: What to do for a central whose queue is full.
    ///   - timeout: After it the call returns; what was not sent is not sent any more. `nil` for no limit.
    /// - Returns: What became of each value, in their order.
    /// - Throws: `BLEError` as that method does, for the first value that cannot be sent: then none is sent.
    ///
    /// Spec: ATT_MULTIPLE_HANDLE_VALUE_NTF, Core Vol 3 Part F, 3.4.7.4.
    @discardableResult
    public func update(
        _ values: [(characteristic: CharacteristicReference, value: [UInt8])], to targets: [ConnectedCentral.ID]? = nil,
        whenFull: WhenFull = .wait, timeout: Duration? = nil
    ) async throws(BLEError) -> [UpdateResult] {
        var outcomes: [[ConnectedCentral.ID: UpdateOutcome]] = []
        var sent: [ConnectedCentral.ID: [(index: Int, handle: AttributeHandle, value: [UInt8])]] = [:]
        var handles: [AttributeHandle] = []
        for (index, (characteristic, value)) in values.enumerated() {
            let receivers = try receivers(value, characteristic, targets)
            outcomes.append(receivers.outcomes)
            handles.append(receivers.handle)
            for (id, _) in receivers.links { sent[id, default: []].append((index, receivers.handle, value)) }
        }
        for (handle, (_, value)) in zip(handles, values) { services.database.setValue(value, of: handle) }
        var unfinished: [(index: Int, id: ConnectedCentral.ID, server: LinkServer, number: UInt64)] = []
        for (number, link) in links.sorted(by: { $0.key < $1.key }) {
            let id = ConnectedCentral.ID(number: number)
            guard let own = sent[id] else { continue }
            let begun = link.server.beginUpdates(
                own.map { (handle: $0.handle, value: $0.value) }, whenFull: whenFull)
            for (update, begun) in zip(own, begun) {
                switch begun {
                case .ended(let outcome): outcomes[update.index][id] = outcome
                case .goesOn(let number): unfinished.append((update.index, id, link.server, number))
                }
            }
        }
        let deadline = timeout.map { loop.now() + $0 }
        for (index, id, server, number) in unfinished {
            outcomes[index][id] = await server.end(of: number, until: deadline)
        }
        return outcomes.map { UpdateResult(outcomes: $0) }
    }

    /// Sends a value to the centrals that have subscribed, if all of them have room for it. It never waits.
    ///
    /// A central that cannot receive so long a value does not get it; with `targets` that is an error.
    ///
    /// - Returns: `false` if a central has no room: nothing was sent. `readyToUpdate` reports when to try again.
    /// - Throws: `BLEError` as `update(_:of:to:whenFull:timeout:)` does.
    public func tryUpdate(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: [ConnectedCentral.ID]? = nil
    ) throws(BLEError) -> Bool {
        let receivers = try receivers(value, characteristic, targets)
        services.database.setValue(value, of: receivers.handle)
        // All are asked, so that each without room reports it later.
        let withoutRoom = receivers.links.count { !$0.server.hasRoom(for: receivers.handle) }
        guard withoutRoom == 0 else { return false }
        for (_, server) in receivers.links { server.tryUpdate(value, of: receivers.handle) }
        return true
    }

    /// When to call `tryUpdate(_:of:to:)` again.
    public nonisolated var readyToUpdate: ReadyToUpdateSequence { room.events(losses: .none, beginningWith: ()) }

    /// Where a value goes.
    private struct Receivers {
        /// The handle of the characteristic.
        let handle: AttributeHandle
        /// The links of the subscribers that can receive it.
        var links: [(id: ConnectedCentral.ID, server: LinkServer)] = []
        /// Those that cannot.
        var outcomes: [ConnectedCentral.ID: UpdateOutcome] = [:]
    }

    private func receivers(
        _ value: [UInt8], _ characteristic: CharacteristicReference, _ targets: [ConnectedCentral.ID]?
    ) throws(BLEError) -> Receivers {
        let operation = "update \(characteristic)"
        let found = try services.resolve(characteristic, during: operation)
        try checkLength(value, during: operation)
        var receivers = Receivers(handle: found.id)
        var firstTooSmall: (name: String, limit: Int)?
        for (number, link) in links.sorted(by: { $0.key < $1.key }) {
            let id = ConnectedCentral.ID(number: number)
            guard targets?.contains(id) ?? true, !link.server.configuration(of: found.id).isEmpty else { continue }
            let limit = link.server.maximumUpdateLength
            if value.count <= limit {
                receivers.links.append((id, link.server))
            } else {
                receivers.outcomes[id] = .tooLong(limit: limit)
                if firstTooSmall == nil { firstTooSmall = (name: link.peripheral.name, limit: limit) }
            }
        }
        if let (name, limit) = firstTooSmall, targets != nil || receivers.links.isEmpty {
            throw BLEError(
                .tooLong, subject: name, during: operation,
                because: "the value has \(value.count) bytes, and this central can receive \(limit)",
                hint: "Send less, or leave the rest to be read: the central has agreed on an MTU of \(limit + 3).")
        }
        return receivers
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
        await resumeLinks(overRadio: true)
        try checkRuns(during: operation)
        let handed = handed
        try await central.adapter.accept(for: ObjectIdentifier(listener), during: operation) { own in
            handed?.takeListener(at: .attributeChannel(own))
        } _: {
            [weak self] socket, peer, controls in
            let reportedReason = socket.reportedReason
            let descriptor = socket.release()
            self?.assumeIsolated { $0.accept(descriptor, reportedReason, peer, controls) }
        }
        await servePairings()
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
        for link in handed?.takeLinks(overRadio: false) ?? [] { resume(link) }
        do throws(SystemCallError) {
            try listener.begin(at: path, adopting: handed?.takeListener(at: .unix(path))) { [weak self] in
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

    private func radio(of peripheral: Peripheral, during operation: String) throws(BLEError) -> LinkControls {
        try peripheral.assumeIsolated { peripheral in
            Result { () throws(BLEError) in try peripheral.radio(during: operation) }
        }.get()
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

    /// A Boolean value that indicates whether centrals may pair now.
    public var allowsPairing: Bool { get async { await central.adapter.allowsCentralPairing } }

    /// Lets centrals that connect from now on pair, for a time or until `refusePairing()`; before that, and afterwards, they
    /// are refused.
    ///
    /// A later call takes the place of an earlier one. What the agent can show and ask counts for links that come up
    /// after the call: on those that are up, nothing can be compared. One central pairs at a time, and others are
    /// refused meanwhile; also while a pairing of this side waits for its turn (``Peripheral/pair(_:)``). One whose
    /// pairings have failed three times in a minute is refused for the rest of it, and so is the fourth that would bond
    /// in a minute with `CentralPairingOptions.acceptsUnconfirmed`. If another program makes the adapter not bondable
    /// meanwhile, that is undone, three times in a minute, logged, and reported as `SecurityEvent.otherManager`. The
    /// end of the time does not end a pairing that runs. `events` reports what becomes of each;
    /// `Central.securityEvents` the rest.
    ///
    /// - Parameters:
    ///   - options: How centrals may pair.
    ///   - duration: How long they may; `nil` for no limit.
    /// - Throws: `BLEError` with `.invalidArgument` for options that accept no pairing, and after `stop()`; `.notPermitted`
    ///   without CAP_NET_ADMIN, `.notSupported` without `Configuration.security`, `.pairingUnavailable` if the kernel cannot pair
    ///   with the adapter as it was switched on, `.adapterShared` if another program keeps making the adapter not bondable,
    ///   `.timedOut`, `.adapterDown`, `.noAdapter`, `.blocked`, `.cancelled`, and
    ///   the codes of `acceptCentrals()`.
    ///
    /// Spec: bondable mode, Core Vol 3 Part C, 9.4.3.
    public func allowPairing(
        _ options: CentralPairingOptions, for duration: Duration? = nil
    ) async throws(BLEError) {
        let operation = "allow pairing"
        try checkRuns(during: operation)
        let agent = options.agent
        guard agent.capability != .noInputNoOutput || agent.confirm != nil || options.acceptsUnconfirmed else {
            throw BLEError(
                .invalidArgument, during: operation, because: "the agent can confirm nothing",
                hint: "Give it a closure, or set `acceptsUnconfirmed` to bond with every central in range.")
        }
        guard agent.outOfBand == nil else {
            throw BLEError(
                .invalidArgument, during: operation,
                because: "out-of-band data belong to one peer, which this side pairs",
                hint: "Leave `outOfBand` out.")
        }
        try await acceptCentrals()
        try await central.adapter.allowCentralPairing(
            options, for: ObjectIdentifier(listener), until: duration.map { loop.now() + $0 }, during: operation)
    }

    /// Lets no central pair from now on. A pairing that runs ends without a bond, unless that is being stored.
    ///
    /// Bonds stay, and encrypt later links.
    public func refusePairing() async {
        await central.adapter.refuseCentrals(of: ObjectIdentifier(listener))
    }

    /// Lets no central begin to pair from now on. A pairing that runs goes on.
    package func refuseFurtherPairing() async {
        await central.adapter.refuseCentrals(of: ObjectIdentifier(listener), keepingCurrent: true)
    }

    private static let securing = "request security"

    /// Requests security of a central, and waits until the link has it: the central encrypts the link with its bond, or
    /// pairs.
    ///
    /// A link that has the security is left alone. A central without a bond can pair only while `allowPairing(_:for:)` lets
    /// it, whose agent decides as ever; what that agent can show and ask is part of the request. Prefer an attribute that
    /// requires security (`AttributeAccess`): every central reacts to a refused attribute, and many phones ask their users
    /// about a request, or ignore it. The kernel ends the link of a central that refuses, and that of one
    /// that has not reacted after 30 s.
    ///
    /// - Parameters:
    ///   - required: What the link must have.
    ///   - id: The central.
    ///   - timeout: The longest time for the call: for the kernel and the disk, where the adapter is not under management yet,
    ///     and for the central and its user. The request cannot be withdrawn.
    /// - Returns: The security of the link.
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected, or disconnects; `.timedOut` if it does not
    ///   react in time; `.pairingRefused` and the other codes of a pairing that fails; `.notBonded` if it has no bond and
    ///   may not pair; `.insufficientSecurity` if its bond, or the one that it has made, is worth less;
    ///   `.invalidArgument` for a link that this side has made, `.notSupported` for one without a radio and without
    ///   `Configuration.security`, `.notPermitted` without CAP_NET_ADMIN, `.adapterDown`, `.cancelled`, `.system`.
    ///
    /// Spec: Slave Initiated Security, Core Vol 3 Part H, 2.4.6.
    @discardableResult
    public func requestSecurity(
        _ required: RequiredSecurity = .encrypted, of id: ConnectedCentral.ID, timeout: Duration = .seconds(30)
    ) async throws(BLEError) -> LinkSecurity {
        let operation = Self.securing
        let deadline = loop.now() + timeout
        let link = try servedLink(to: id, during: operation)
        let (peripheral, securing) = (link.peripheral, link.securing)
        guard link.isInbound else {
            throw BLEError(
                .invalidArgument, subject: peripheral.name, during: operation, because: "this side has made the link",
                hint: "Call `Peripheral.pair`.")
        }
        let controls = try radio(of: peripheral, during: operation)
        func security() -> LinkSecurity { peripheral.assumeIsolated { $0.security } }
        if security().satisfies(required), !controls.isPairing() { return security() }
        try await controls.requestSecurity(required, deadline, operation)
        while true {
            // While the central pairs, the link may be encrypted with a key that becomes no bond.
            if security().satisfies(required), !controls.isPairing() { return security() }
            let end = await securing.wait(until: deadline) { _ in
                links[id.number] == nil
                    ? .failure(
                        BLEError(
                            .disconnected, subject: peripheral.name, during: operation, because: "the link has ended"))
                    : nil
            }
            switch end {
            case .resumed(.success) where security().isEncrypted && !controls.isPairing():
                guard security().satisfies(required) else {
                    throw BLEError(
                        .insufficientSecurity, subject: peripheral.name, during: operation,
                        because: "the link is encrypted with a key that is worth less than what is required",
                        hint: "Require as much in `CentralPairingOptions`, so that no weaker bond is made.")
                }
            case .resumed(.success): continue
            case .resumed(.failure(let error)):
                // A central that keeps no bonds has encrypted the link all the same.
                guard security().satisfies(required) else { throw error }
            case .timedOut:
                throw BLEError(
                    .timedOut, subject: peripheral.name, during: operation,
                    because: "the central has not reacted in time",
                    hint: "Its user may have to confirm. Without a reaction the kernel ends the link after 30 s.")
            case .cancelled:
                throw BLEError(
                    .cancelled, subject: peripheral.name, during: operation, because: "the task was cancelled")
            }
        }
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
        await central.adapter.stopServingPairings(for: ObjectIdentifier(listener))
        _ = cleanUp.dismiss()
        for link in links.inOrder where link.isInbound { await link.peripheral.disconnect() }
        handed?.drop()
        await endRecords()
        broadcaster.finish()
        room.finish()
    }

    private func endRecords() async {
        await central.adapter.storeAcceptedCounters()
        await records.flush(until: loop.now() + Central.storageTime)
        records.close()
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
        while let descriptor = listener.accept() {
            let socket = LinkSocket(adopting: descriptor)
            let number = lastNumber + 1
            let peripheral = makePeripheral(over: socket, id: nil, name: "unix:\(path)#\(number)")
            _ = try? serve(peripheral, isInbound: true)
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
        links.values.first { ($0.peer == peer || $0.peripheral.id == peer) && $0.isInbound }?.peripheral
    }

    private func serve(_ peripheral: Peripheral, isInbound: Bool) throws(BLEError) -> ConnectedCentral.ID {
        if isInbound {
            endEarlierLinks(of: peripheral)
            try makePlace(for: peripheral)
        }
        // A device offers one MTU, in both roles (Core Vol 3 Part F, 3.4.2.2).
        let mtu = peripheral.assumeIsolated { $0.link.largestMTU }
        let (number, server) = makeServer(mtu: mtu, isInbound: isInbound)
        let id = ConnectedCentral.ID(number: number)
        links[number] = ServedLink(
            peripheral: peripheral, server: server, isInbound: isInbound, peer: peripheral.id,
            securing: Waiters(on: loop))
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
        // The record before the security: a client that is proven without a record is stored with an empty one.
        identified(number)
        peripheral.assumeIsolated { $0.serverSecurityMayHaveChanged() }
        lookForIdleLinks()
        return id
    }

    /// Ends the links of centrals that have sent nothing for too long, and looks again when the next one may have.
    private func lookForIdleLinks() {
        guard let limit = settings.idleLimit.map({ max($0, .seconds(1)) }), !isStopped else { return }
        let now = loop.now()
        var next: BootInstant?
        for (_, link) in links where link.isInbound {
            var end = link.server.lastHeard + limit
            if end <= now {
                // One that is ended now may take a while, and would be found at once again.
                if !isInUse(link) { endIdle(link, limit) }
                end = now + limit
            }
            next = next.map { min($0, end) } ?? end
        }
        idleTimer.arm(for: next, on: loop) { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated {
                    $0.idleTimer.fired()
                    $0.lookForIdleLinks()
                }
            }
        }
    }

    /// Whether a central that sends nothing waits for this side, or uses its link otherwise.
    private func isInUse(_ link: ServedLink) -> Bool {
        if !link.server.isSettled || link.peripheral.assumeIsolated({ $0.channels.hasOpen }) { return true }
        guard let identity = link.peripheral.controls?.link else { return false }
        return central.adapter.assumeIsolated { $0.isPairingCentral(on: identity) }
    }

    private func endIdle(_ link: ServedLink, _ limit: Duration) {
        let peripheral = link.peripheral
        central.configuration.logger.notice(
            "a central that has sent nothing is disconnected",
            metadata: ["peer": "\(peripheral.name)", "limit": "\(limit)"])
        Task(executorPreference: loop) { await peripheral.disconnect() }
    }

    /// Ends the link that a newcomer has had before: it has forgotten it, and nothing else would end it for seconds.
    private func endEarlierLinks(of newcomer: Peripheral) {
        guard let peer = newcomer.id else { return }
        for link in links.inOrder where link.isInbound && (link.peer == peer || link.peripheral.id == peer) {
            link.peripheral.assumeIsolated {
                $0.endForServer(.other(.connectionAlreadyExists, errorNumber: nil))
            }
        }
    }

    /// Returns the server of the next link, and its number.
    private func makeServer(mtu: UInt16, isInbound: Bool) -> (number: UInt64, server: LinkServer) {
        records.begin(with: services.database)
        lastNumber &+= 1
        let number = lastNumber
        let server = LinkServer(of: services, mtu: mtu, isInbound: isInbound, on: loop)
        server.onEvents { [weak self] event in
            self?.assumeIsolated { $0.happened(event, number) }
        } questions: { [weak self] question in
            await self?.perform(question, from: number) ?? .rejected(.unlikelyError)
        }
        return (number, server)
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
        guard let link = links[number], let bond = bond(of: link), let record = records.record(of: bond) else { return }
        link.server.identified(record)
    }

    private func bond(of link: ServedLink) -> BondID? {
        link.peripheral.assumeIsolated { $0.controls?.bond() }
    }

    private func ended(_ number: UInt64, _ reason: DisconnectReason) {
        guard let link = links[number] else { return }
        let central = snapshot(number, link)
        link.server.linkLost()
        links[number] = nil
        link.securing.resumeAll(
            .failure(
                BLEError(
                    .disconnected, subject: central.name, during: Self.securing, because: "the link ended: \(reason)",
                    hint: "The central may have lost its bond, or have been asked 30 s ago.")))
        broadcaster.report(.disconnected(central, reason))
    }

    private func happened(_ event: LinkServer.Event, _ number: UInt64) {
        guard let link = links[number] else { return }
        switch event {
        case .ready: room.report(())
        case .secured: link.securing.resumeAll(.success(()))
        case .store(let record):
            if let bond = bond(of: link) { records.store(record, of: bond, connected: peersInUse) }
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

    // MARK: Pairing

    /// Has the adapter pass on the pairings of centrals, which it refuses unless `allowPairing` lets it accept them.
    private func servePairings() async {
        await central.adapter.servePairings(
            for: ObjectIdentifier(listener),
            CentralPairings.Host { [weak self] peer in
                self?.assumeIsolated { $0.served(peer) }
            } hasOther: { [weak self] peer, link in
                self?.assumeIsolated { $0.hasCentral(peer, besides: link) } ?? false
            } ended: { [weak self] central, result in
                self?.assumeIsolated { $0.pairingEnded(central, result) }
            } securityRefused: { [weak self] central, error in
                self?.assumeIsolated { $0.securityRefused(central, error) } ?? false
            })
    }

    /// Whether a central is connected by another link than the one given.
    private func hasCentral(_ peer: PeerID, besides own: LinkIdentity) -> Bool {
        links.values.contains { link in
            guard link.isInbound, let identity = link.peripheral.controls?.link, identity != own else { return false }
            return Self.names(of: link, identity).contains(peer)
        }
    }

    /// The names by which the peer of a link is known: to the kernel, on the air, and by its bond.
    private static func names(of link: ServedLink, _ identity: LinkIdentity) -> [PeerID?] {
        [identity.kernelName, identity.peer, link.peer]
    }

    /// The central whose link the kernel has under a name.
    private func served(_ peer: PeerID) -> ServedCentral? {
        for (number, link) in links.sorted(by: { $0.key > $1.key }) where link.isInbound {
            let (identity, descriptor) = link.peripheral.assumeIsolated { ($0.controls?.link, $0.link.descriptor) }
            guard let identity, let descriptor, Self.names(of: link, identity).contains(peer) else { continue }
            return ServedCentral(link: identity, descriptor: descriptor, central: snapshot(number, link))
        }
        return nil
    }

    private func pairingEnded(_ central: ConnectedCentral, _ result: Result<Bond, BLEError>) {
        let number = central.id.number
        if case .success(let bond) = result, let link = links[number] {
            links[number]?.peer = bond.peer
            // What the central had configured with an earlier bond went with that.
            link.server.identified(ClientRecord(checksum: services.database.checksum), isNewBond: true)
            link.peripheral.assumeIsolated { $0.serverSecurityMayHaveChanged() }
        }
        links[number]?.securing.resumeAll(result.map { _ in })
        let now = links[number].map { snapshot(number, $0) } ?? central
        switch result {
        case .success(let bond): broadcaster.report(.paired(now, bond))
        case .failure(let error): broadcaster.report(.pairingFailed(now, error))
        }
    }

    /// The central of a link does not follow a Security Request; returns whether there was one.
    private func securityRefused(_ central: ConnectedCentral, _ error: BLEError) -> Bool {
        guard let link = links[central.id.number], !link.securing.isEmpty else { return false }
        link.securing.resumeAll(.failure(error))
        return true
    }

    private func perform(_ question: GATTServer.Question, from number: UInt64) async -> GATTServer.HandlerResult {
        guard let link = links[number] else { return .rejected(.unlikelyError) }
        if case .verify(let command) = question {
            let isRight = await link.peripheral.controls?.accept(command, central.configuration.writeSignature) ?? false
            return isRight ? .accepted : .rejected(.insufficientAuthentication)
        }
        return await services.perform(question, from: snapshot(number, link), authorize: settings.authorize)
    }

    private func snapshot(_ number: UInt64, _ link: ServedLink) -> ConnectedCentral {
        let all = services.services.flatMap(\.characteristics)
        var central = ConnectedCentral(
            id: ConnectedCentral.ID(number: number), peer: link.peer, name: link.peripheral.name,
            mtu: Int(link.server.mtu), security: link.peripheral.assumeIsolated { $0.security },
            subscriptions: all.filter { !link.server.configuration(of: $0.id).isEmpty })
        central.isRestored = link.isRestored
        return central
    }

    /// The tasks and questions of all links that are unfinished; tests check what is left after their end.
    package var outstanding: Int { links.values.reduce(0) { $0 + $1.server.outstanding } }
}

// MARK: - Restarting

extension LocalPeripheral {
    /// The time for a request of a central to be finished before its link is handed over.
    private static let settlingTime: Duration = .seconds(5)

    /// Continues with what the run before has left: what bonded centrals have configured, the socket on which links are
    /// accepted, and the links themselves.
    ///
    /// Call it once at each start, also the first, before services are published. Publish the same services in the same order
    /// then, and accept centrals: that resumes the links, whose centrals notice nothing. Their events come before those of
    /// newcomers, which have waited meanwhile: `.connected`, with `ConnectedCentral.isRestored`, and `.subscribed` for each
    /// of their subscriptions. Where the services differ from those of the run before, all bonded centrals are notified of the
    /// change at their next encrypted link, and the subscriptions that it affects end.
    ///
    /// From then on the file is kept current automatically, written at most once in 5 s, and at `stop()` and
    /// `suspend(handingOverTo:)`.
    ///
    /// - Parameter environment: Where to look for what the service manager has kept.
    /// - Throws: `BLEError` with `.busy` if another process has the file, which the reason names, or if this was called
    ///   before; `.invalidArgument` if there are services or links already, and after `stop()`; `.timedOut` if the disk has not
    ///   responded in 5 s; `.cancelled`, `.notPermitted`, `.diskFull`, `.system`. A file that cannot be used is not an error: see
    ///   `LocalPeripheralRestoration.damage`.
    public func restore(
        from environment: ServiceEnvironment = .process
    ) async throws(BLEError) -> LocalPeripheralRestoration {
        let operation = "restore the local peripheral"
        try checkRuns(during: operation)
        guard !isRestored else {
            throw BLEError(
                .busy, during: operation, because: "this local peripheral has done so before",
                hint: "Call it once, right after the peripheral was created.")
        }
        guard services.services.isEmpty, links.isEmpty else {
            throw BLEError(
                .invalidArgument, during: operation, because: "services are published, or links are served already",
                hint: "Restore it right after it was created.")
        }
        let logger = central.configuration.logger
        // After a failure the next call continues with the same descriptors.
        let handed = handed ?? HandedServer(from: environment, on: loop, logger: logger)
        self.handed = handed
        var restoration = LocalPeripheralRestoration()
        (restoration.links, restoration.lost) = (handed.linkNames, handed.damaged)
        if let store = settings.store ?? central.configuration.stateStore {
            let (file, loaded) = try await central.stored(store.clientsPath) {
                () throws(BLEError) -> (StateFile, StateFile.Loaded<ClientTable>) in
                let file = try store.openClients()
                let loaded = try store.loadClients(from: file)
                // Logged here, so that it is also logged if no task waits any longer.
                if let damage = loaded.damage {
                    logger.warning("the configurations of centrals are not used", metadata: ["reason": "\(damage)"])
                }
                return (file, loaded)
            }
            records.keep(loaded.value ?? ClientTable(), in: file)
            (restoration.damage, restoration.movedTo) = (loaded.damage, loaded.movedTo)
        }
        isRestored = true
        handed.removeDamaged()
        restoration.knownCentrals = records.count
        return restoration
    }

    /// The status of the file with what bonded centrals have configured; `nil` if it is not kept.
    public var stateStatus: StateStatus? { records.status }

    /// Ends this run, and hands its sockets to the service manager, which keeps them up until the next start.
    ///
    /// It hands over the sockets on which links are accepted, where centrals that connect meanwhile wait, and the links
    /// of centrals, each with the state of its ATT bearer and server: the MTU, the central's subscriptions and what it
    /// has prepared, and whether it knows of the latest change of the services. What bonded centrals have configured is
    /// stored (`restore(from:)`), and so are bonds. Handlers, the links that this program has made and channels are not
    /// handed over.
    ///
    /// Two things are finished first, for 5 s at most: a request whose handler runs, and the storing of the bond that a
    /// central has just made. A link ends whose request is not finished by then, whose central pairs, has no bond
    /// stored by then or could not pair, or which the manager does not take. Updates that were not sent, and
    /// indications that were not confirmed, end with `.disconnected`. The advertisements stay on air until their leases
    /// end; a central that they bring waits as well. Sequences of events end, as after `stop()`; so do listeners for
    /// channels.
    ///
    /// - Returns: What was not handed over, by the names of the centrals and of the sockets on which links are accepted, with the
    ///   reasons: these links have ended. Where the manager has been sent something and does not confirm it, the reason is
    ///   `.timedOut`, and the manager may have it or not.
    @discardableResult
    public func suspend(handingOverTo store: DescriptorStore) async -> [String: BLEError] {
        guard !isStopped else { return [:] }
        var lost: [String: BLEError] = [:]
        isStopped = true
        await central.stopUsing(self)
        _ = cleanUp.dismiss()
        let logger = central.configuration.logger
        var items: [HandedServer.Item] = []
        channelAcceptors.end()
        let accepting = await central.adapter.takeListener(of: ObjectIdentifier(listener))
        // A pairing that runs ends, unless its bond is being stored: that central may use it from now on.
        await central.adapter.refuseCentrals(of: ObjectIdentifier(listener))
        for descriptor in [accepting, listener.takeSocket()] {
            if let item = descriptor.flatMap(HandedServer.item(ofListener:)) { items.append(item) }
        }
        let deadline = loop.now() + Self.settlingTime
        let numbers = links.filter { $0.value.isInbound }.keys.sorted()
        for number in numbers { links[number]?.server.stopUpdates() }
        await central.adapter.centralStored(of: ObjectIdentifier(listener))
        await central.adapter.stopServingPairings(for: ObjectIdentifier(listener))
        for number in numbers {
            while let link = links[number], link.server.remains == nil, loop.now() < deadline {
                await link.server.settle(until: deadline)
            }
            guard let link = links[number] else { continue }
            if let identity = link.peripheral.controls?.link, await !central.adapter.mayHandOver(identity) {
                lost[link.peripheral.name] = await endUnkept(link, Self.unprovenError(link.peripheral.name))
                continue
            }
            do throws(BLEError) {
                items.append(try handOver(link, number))
            } catch {
                lost[link.peripheral.name] = await endUnkept(link, error)
            }
        }
        await endRecords()
        lost.merge(await HandedServer.put(items, in: store, logger: logger)) { first, _ in first }
        broadcaster.finish()
        room.finish()
        return lost
    }

    /// Ends a link that cannot be handed over; returns the reason.
    private func endUnkept(_ link: ServedLink, _ reason: BLEError) async -> BLEError {
        central.configuration.logger.notice(
            "a link is not handed over", metadata: ["peer": "\(link.peripheral.name)", "reason": "\(reason)"])
        await link.peripheral.disconnect()
        return reason
    }

    private static func unprovenError(_ name: String) -> BLEError {
        BLEError(
            .pairingFailed, subject: name, during: "hand a link over",
            because: "a pairing on the link is not finished, or has failed",
            hint: "The link ends; the central connects again by itself.")
    }

    private func handOver(_ link: ServedLink, _ number: UInt64) throws(BLEError) -> HandedServer.Item {
        let operation = "hand a link over"
        guard let remains = link.server.remains else {
            throw BLEError(
                .timedOut, subject: link.peripheral.name, during: operation,
                because: "a request of the central is not finished",
                hint: "The link ends; the central connects again by itself.")
        }
        let detached = link.peripheral.assumeIsolated { peripheral in
            Result { () throws(BLEError) in try peripheral.detachNow() }
        }
        return try HandedServer.item(of: try detached.get(), remains, services.database.outline, number: number)
    }

    /// Serves the links of the run before over a radio, or the others.
    private func resumeLinks(overRadio: Bool) async {
        for link in handed?.takeLinks(overRadio: overRadio) ?? [] {
            do throws(BLEError) {
                let operation = "resume a link"
                let found = try await central.adapter.adopt(served: link.descriptor, during: operation)
                // It may have been stopped meanwhile, and would not end the link.
                try checkRuns(during: operation)
                resume(link, as: found?.peer, found?.controls)
            } catch {
                _ = LinkSocket(adopting: link.descriptor)
                central.configuration.logger.notice(
                    "a link is not resumed", metadata: ["peer": "\(link.state.link.name)", "reason": "\(error)"])
            }
        }
    }

    private func resume(_ link: HandedServer.Link, as peer: PeerID? = nil, _ controls: LinkControls? = nil) {
        let (former, remains) = (link.state.link, link.state.server)
        let peripheral = central.assumeIsolated {
            $0.makePeripheral(
                over: LinkSocket(adopting: link.descriptor), id: peer ?? former.peer, name: former.name,
                mtu: former.client.largestMTU, controls: controls)
        }
        let (number, server) = makeServer(
            mtu: max(UInt16(clamping: settings.mtu), remains.offeredMTU), isInbound: true)
        let served = ServedLink(
            peripheral: peripheral, server: server, isInbound: true, peer: peripheral.id, isRestored: true,
            securing: Waiters(on: loop))
        links[number] = served
        peripheral.assumeIsolated { $0.adopt(link.state, servedBy: server) }
        broadcaster.report(.connected(snapshot(number, served)))
        server.resume(remains, of: link.state.outline)
        lookForIdleLinks()
        if !remains.isEncrypted { identified(number) }
        peripheral.assumeIsolated { peripheral in
            peripheral.onEnd { [weak self] reason in self?.assumeIsolated { $0.ended(number, reason) } }
            do throws(BLEError) {
                try peripheral.continueServing(server, wasEncrypted: remains.isEncrypted)
            } catch {
                peripheral.close(.other(nil, errorNumber: error.errorNumber))
            }
        }
    }
}
