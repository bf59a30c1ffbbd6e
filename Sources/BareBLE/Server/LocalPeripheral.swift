public import BLECore
internal import BLELinux

// The peripheral role: the face of the local services, and of the links to the centrals that use them. Its state
// belongs to owners, each with private state:
//
// | owner | what it owns |
// |---|---|
// | `PublishedServices` | the database, its handlers |
// | `ServedLinks` | the links: a `Peripheral`, a `LinkServer` and `SecurityRequests` for each; `IdleLimit` |
// | `UpdateSender` | which centrals a value goes to |
// | `CentralAcceptor` | the sockets on which links and channels (`ChannelAcceptor`) are accepted |
// | `ClientRecords` | what bonded centrals have configured, between links and between runs |
// | `ServerHandOver` | what the run before has left (`HandedServer`), and what the next one gets |
// | `ServerEvents` | the listeners |
//
// The face checks arguments, and ends the owners in order: the advertisements, the acceptance of links, the links, the
// records, and the events last.
//
// Invariants
// - It serves every link of its central: those that others make, and those that this program makes.
// - All state belongs to the event loop's thread.

/// The peripheral role on this machine: offers services to centrals.
///
/// ```swift
/// let peripheral = LocalPeripheral(.init(name: "Sensor"), on: central)
/// try await peripheral.publish(LocalService(0x180D, [LocalCharacteristic(.heartRateMeasurement, .notify)]))
/// try await peripheral.acceptCentrals()
/// try await peripheral.update(HeartRateMeasurement(beatsPerMinute: 62), of: .heartRateMeasurement)
/// ```
///
/// It serves all links of its central's adapter: those that others make, and those that the central makes. A central
/// has one local peripheral at a time. When the last reference goes away, its links end.
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
        /// A new name is a ``LocalPeripheral/Event/written(_:)`` of 0x2A00. It is kept until the peripheral goes away,
        /// and not advertised by itself.
        public var isNameWritable = false
        /// The maximum number of links that others make. If a further central connects, the one that was not heard for
        /// the longest time is disconnected, among those whose links no bond encrypts; without such a one, the newcomer
        /// is. A central that comes back while its earlier link is still up counts once.
        public var maximumCentrals = 16
        /// The time for which a central may send nothing before it is disconnected, at least 1 s; `nil`, the default,
        /// for as long as it likes, as the protocol permits.
        ///
        /// It counts whatever a central sends on its link: requests, commands, confirmations, and responses to requests
        /// of this side. A central that only receives notifications sends nothing: it needs a limit that is longer than
        /// it stays, or indications. One that waits for a response of this side, that pairs, or has a channel open, is
        /// not disconnected. The limit is for links that centrals have made; the event is `.disconnected`.
        public var idleLimit: Duration?
        /// The largest ATT MTU that is offered to centrals, 23 to 517. On a link that the central has made it is
        /// `ConnectOptions.mtu`.
        public var mtu = 517
        /// Decides about accesses to attributes that require authorization; without it they are refused.
        public var authorize: Authorization?
        /// The store of what bonded centrals have configured, from `restore(from:)` on; `nil` for the
        /// `Configuration.stateStore` of the central, without which that is kept until the end of the program.
        public var store: StateStore?

        /// Creates settings.
        public init(name: String = "BareBLE", appearance: UInt16 = 0) {
            self.name = name
            self.appearance = appearance
        }
    }

    /// An advertisement, which lives as long as the application keeps its lease.
    private struct Advertised {
        weak var lease: Advertisement.Lease?
    }

    /// The settings that the peripheral was created with.
    public nonisolated let settings: Settings

    nonisolated let central: Central
    let links: ServedLinks
    let acceptor: CentralAcceptor
    private nonisolated let serverEvents = ServerEvents()
    private let services: PublishedServices
    private let records: ClientRecords
    private let updates: UpdateSender
    private let handOver: ServerHandOver
    /// What is advertised, for `stop()`.
    private var advertisements: [Advertised] = []
    /// Ends what would outlive the last reference. It is no deinitializer: for an isolated one the optimizer of Swift
    /// 6.3 fails in programs that create a local peripheral ("circular reference").
    private let cleanUp: LifetimeToken

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop through its central, so the reference stays good.
        unsafe central.loop.asUnownedSerialExecutor()
    }

    /// Creates a peripheral without services, which accepts no links yet.
    public init(_ settings: Settings = Settings(), on central: Central) {
        self.settings = settings
        self.central = central
        let services = PublishedServices(
            name: settings.name, appearance: settings.appearance, isNameWritable: settings.isNameWritable,
            computingHashBy: central.configuration.databaseHash)
        let records = ClientRecords(on: central.loop, logger: central.configuration.logger)
        let links = ServedLinks(settings, on: central, services: services, records: records, events: serverEvents)
        let acceptor = CentralAcceptor(on: central)
        self.services = services
        self.records = records
        self.links = links
        self.acceptor = acceptor
        updates = UpdateSender(of: services, to: links)
        handOver = ServerHandOver(on: central, services: services, records: records, links: links)
        cleanUp = LifetimeToken { [serverEvents, loop = central.loop] in
            serverEvents.finish()
            Task(executorPreference: loop) {
                records.close()
                await acceptor.end()
            }
        }
    }
}

// MARK: - Services

extension LocalPeripheral {
    /// The published services, in the order of their handles.
    public var publishedServices: [PublishedService] { services.services }

    /// Publishes a service after all others. Connected centrals are notified of the change, bonded ones that are away
    /// when they come back.
    ///
    /// Services have the same handles in each run of a program that publishes the same ones in the same order.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for a service that cannot be: one of the two that are there in any
    ///   case (0x1800, 0x1801), a descriptor that the library adds itself, a characteristic or descriptor with the UUID
    ///   of a declaration, a characteristic with that of a descriptor, a value of more than 512 bytes, a fixed value
    ///   that is writable, an include of a service that is not published, or more attributes than there are handles;
    ///   `.busy` if the central has another local peripheral.
    @discardableResult
    public func publish(_ service: LocalService) throws(BLEError) -> PublishedService {
        let operation = "publish \(service.uuid)"
        try checkRuns(during: operation)
        try register(during: operation)
        do throws(ServerDatabase.Failure) {
            let (published, affected) = try services.publish(service)
            if let affected { links.databaseChanged(affected) }
            return published
        } catch {
            throw BLEError(error, during: operation)
        }
    }

    /// Withdraws a service. Its handles are not used again.
    ///
    /// A read whose handler has not returned gets an error, whatever the handler returns. A write is confirmed if its
    /// handler succeeds.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` if it is not published, or another service includes it.
    public func withdraw(_ service: PublishedService) throws(BLEError) {
        do throws(ServerDatabase.Failure) {
            links.databaseChanged(try services.withdraw(service.id))
        } catch {
            throw BLEError(error, during: "withdraw \(service.uuid)")
        }
    }

    /// Withdraws all services, and notifies centrals of one change. The handles are not used again.
    public func withdrawAll() {
        var affected: ClosedRange<AttributeHandle>?
        // Those that include others were published after them, so that none is refused.
        for service in services.services.reversed() {
            guard let handles = try? services.withdraw(service.id) else { continue }
            affected = affected.merged(with: handles)
        }
        if let affected { links.databaseChanged(affected) }
    }

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
        services.set(
            value, at: try services.handle(of: characteristic, for: value, during: "set \(characteristic)"))
    }
}

// MARK: - Updates

extension LocalPeripheral {
    /// Sends a value to the centrals that have subscribed to a characteristic: in a notification or an indication, as
    /// each has asked for. It becomes the stored value as well, if there is one.
    ///
    /// The call returns when the value was sent to all, and those that get indications have confirmed it. Values reach
    /// each central in the order of the calls. A central whose queue is full does not delay the others, until it has
    /// all the buffers that the controller has for packets of all links: the kernel does not reserve any. If nobody has
    /// subscribed, that is no error, and the result is empty. A central that cannot receive so long a value does not
    /// get it, and the others do: its outcome is ``LocalPeripheral/UpdateOutcome/tooLong(limit:)``.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - characteristic: The characteristic.
    ///   - targets: The centrals; `nil` for all that have subscribed.
    ///   - whenFull: What to do for a central whose queue is full.
    ///   - timeout: After it the call returns; what was not sent is not sent any more. `nil` for no limit.
    /// - Throws: `BLEError` with `.attributeNotFound`, `.ambiguous`; `.tooLong` if the value is longer than one of
    ///   `targets`, or each of all centrals that have subscribed, can receive (`ConnectedCentral.maximumUpdateLength`):
    ///   it is sent to none.
    @discardableResult
    public func update(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: [ConnectedCentral.ID]? = nil,
        whenFull: WhenFull = .wait, timeout: Duration? = nil
    ) async throws(BLEError) -> UpdateResult {
        try await updates.update(
            value, of: characteristic, to: targets, whenFull: whenFull, until: timeout.map { central.loop.now() + $0 })
    }

    /// Sends a value, encoded as the key's type, as `update(_:of:to:whenFull:timeout:)` does.
    ///
    /// - Throws: `BLEError` with the codes of that method.
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
    /// A central that supports Multiple Handle Value Notifications gets those for which it has enabled notifications in
    /// as few packets as they fit in, if there is room for them at once. Others get one packet for each value.
    /// Indications follow the notifications.
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
        try await updates.update(
            values, to: targets, whenFull: whenFull, until: timeout.map { central.loop.now() + $0 })
    }

    /// Sends a value to the centrals that have subscribed, if all of them have room for it. It never waits.
    ///
    /// The value becomes the stored one as well, if there is one, also where nothing was sent. A central that cannot
    /// receive so long a value does not get it; with `targets` that is an error. One that may not have it, for a reason
    /// that ``LocalPeripheral/UpdateOutcome`` names, does not get it either, and does not keep it from the others.
    ///
    /// - Returns: `false` if a central has no room: nothing was sent. `readyToUpdate` reports when to try again.
    /// - Throws: `BLEError` as `update(_:of:to:whenFull:timeout:)` does.
    public func tryUpdate(
        _ value: [UInt8], of characteristic: CharacteristicReference, to targets: [ConnectedCentral.ID]? = nil
    ) throws(BLEError) -> Bool {
        try updates.tryUpdate(value, of: characteristic, to: targets)
    }

    /// A sequence that reports when to call `tryUpdate(_:of:to:)` again.
    public nonisolated var readyToUpdate: ReadyToUpdateSequence { serverEvents.readyToUpdate }
}

// MARK: - Links

extension LocalPeripheral {
    /// The centrals that are connected.
    public var centrals: [ConnectedCentral] { links.inOrder.map(links.snapshot) }

    /// The events of the links and their subscriptions, beginning when the property is read.
    ///
    /// Read it before `advertise(_:)` or `acceptCentrals()`, and iterate over it afterwards: then no event is missed.
    public nonisolated var events: LocalPeripheralEventSequence { serverEvents.all }

    /// Passes each event to `receiver` too, from now on until the end, before what a central has sent after it is
    /// passed to a handler. The receiver runs on the event loop; it must not make calls of the local peripheral.
    package nonisolated func forwardEvents(to receiver: @escaping @Sendable (Event) -> Void) {
        serverEvents.forward(to: receiver)
    }

    /// Accepts the links that centrals make to the central's adapter, from now on until `stop()`.
    ///
    /// It needs no capability, and the adapter may be off. It does not advertise. Of several programs that accept links
    /// on an adapter, each link goes to the one that has begun last; bluetoothd is one of them.
    ///
    /// - Throws: `BLEError` with `.noAdapter`, `.unsupported`, `.busy` if another local peripheral of this program
    ///   accepts links of the adapter, `.invalidArgument` after `stop()`, `.system`.
    public func acceptCentrals() async throws(BLEError) {
        let operation = "accept centrals"
        try checkRuns(during: operation)
        try register(during: operation)
        await handOver.resumeRadioLinks()
        try checkRuns(during: operation)
        try await acceptor.acceptRadioLinks(for: links, adoptingFrom: handOver, during: operation)
        try checkRuns(during: operation)
    }

    /// Advertises, and for a connectable advertisement accepts the links that follow, until the result is stopped or
    /// goes away, or until `stop()`.
    ///
    /// The advertisement comes back by itself: after a central has connected, after another program has disturbed it,
    /// and after the adapter was off. ``Advertisement/Lease/states`` reports that.
    ///
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, or with ``Advertisement/BackEnd/management``
    ///   without CAP_NET_ADMIN; `.invalidArgument` for data that does not fit, with the number of bytes, for an
    ///   interval or a PHY that is not permitted, and after `stop()`; `.notSupported` for what the controller or the
    ///   kernel cannot do; `.busy` if there are as many advertisements as it can have, if the controller does not begin
    ///   one beside the links that are up, or if its only advertiser is in use by the other back end; `.noAdapter`,
    ///   `.adapterDown`, `.blocked`, `.unsupported`, `.timedOut`, `.cancelled`, and the codes of `acceptCentrals()`.
    public func advertise(_ advertisement: Advertisement) async throws(BLEError) -> Advertisement.Lease {
        let operation = "advertise"
        try checkRuns(during: operation)
        if advertisement.kind == .connectable { try await acceptCentrals() }
        let started = try await central.adapter.advertise(advertisement, during: operation)
        let lease = Advertisement.Lease(started, on: central.adapter)
        do throws(BLEError) {
            try checkRuns(during: operation)
        } catch {
            await lease.stop()
            throw error
        }
        advertisements.removeAll { $0.lease == nil }
        advertisements.append(Advertised(lease: lease))
        return lease
    }

    /// Accepts links on a Unix SEQPACKET socket, with one PDU in each packet: for tests, and for tools without a radio.
    ///
    /// A socket that an ended program has left at the path is replaced. The file is removed at the end.
    ///
    /// - Throws: `BLEError` with `.busy` if another program listens there; `.invalidArgument` if something else than a
    ///   socket is at the path, which stays, if the path is too long, and after `stop()`; `.notPermitted`, `.system`.
    public func acceptCentrals(atSocket path: String) throws(BLEError) {
        let operation = "accept centrals"
        try checkRuns(during: operation)
        handOver.resumeSocketLinks()
        do throws(SystemCallError) {
            try acceptor.acceptLinks(
                atSocket: path, adopting: handOver.takeListener(at: .unix(path)), for: links)
        } catch {
            throw BLEError(error, acceptingAt: path, during: operation)
        }
    }

    /// Serves a connected SEQPACKET descriptor, with one PDU in each packet, as the link of a central.
    ///
    /// The descriptor belongs to the peripheral from now on, even if the call throws.
    /// Tests pass one end of a socketpair.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` after `stop()`, `.system`.
    @discardableResult
    public func attach(descriptor: Int32, name: String = "descriptor") throws(BLEError) -> ConnectedCentral.ID {
        let socket = LinkSocket(adopting: descriptor)
        try checkRuns(during: "attach a descriptor")
        return try links.accept(socket, name: name)
    }

    /// Returns the client side of the link to a central, to use the central's own services.
    /// It lives as long as the link.
    ///
    /// Where the central has a bond, its link must be encrypted with the key: anybody may use its address.
    /// `requestSecurity(_:of:timeout:)` has it encrypted. To use the link without encryption, call
    /// `Central.connect(_:_:)` with `ConnectOptions.SecurityDemand.none`.
    ///
    /// - Parameters:
    ///   - id: The central.
    ///   - timeout: The longest time for the exchange of the MTU and the check of the cache; `nil` for 60 s.
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected; `.notBonded` for an unencrypted link
    ///   of a central with a bond; `.notSupported` for a private address that may be that of one, without
    ///   `Configuration.addressHash`; `.timedOut`, `.cancelled`, and the codes of `BondStore`.
    public func peripheral(of id: ConnectedCentral.ID, timeout: Duration? = nil) async throws(BLEError) -> Peripheral {
        let operation = "use a central's link"
        guard let peripheral = links[id]?.peripheral else {
            throw BLEError(.disconnected, during: operation, because: "the central is not connected")
        }
        if peripheral.controls != nil {
            let deadline = timeout.map { central.loop.now() + $0 }
            try await central.adapter.openBonds(in: CallContext(.text(operation), until: deadline))
        }
        if let error = await peripheral.clientSideError(during: operation) { throw error }
        try await peripheral.openClientSide(timeout: timeout)
        return peripheral
    }

    /// Returns the present connection parameters of the link to a central, as
    /// ``Peripheral/connectionParameters()`` does.
    ///
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected, and the codes of that method.
    public func connectionParameters(of id: ConnectedCentral.ID) async throws(BLEError) -> ConnectionParameters {
        try await links.link(to: id, during: "read the connection parameters").peripheral.connectionParameters()
    }

    /// Requests other connection parameters of the link to a central, and waits until they are in effect.
    ///
    /// A central chooses the parameters with which it connects, and may change them at any time, also to absurd ones:
    /// the controllers do not ask this program. The central may refuse a request, choose within its bounds, and change
    /// the parameters again. Request them after `connectionParameters(of:)` has returned unsuitable ones, three times
    /// at most: a central that insists does not give way, and each request costs both sides energy.
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
        let link = try links.link(to: id, during: "change the connection parameters")
        return try await link.peripheral.requestConnectionParameters(parameters, timeout: timeout)
    }

    /// A Boolean value that indicates whether centrals may pair now.
    public var allowsPairing: Bool { get async { await central.adapter.allowsCentralPairing } }

    /// Lets centrals that connect from now on pair, for a time or until `refusePairing()`; before that, and afterwards,
    /// they are refused.
    ///
    /// A later call takes the place of an earlier one. Where the later one is cancelled or fails while both wait, the
    /// earlier call throws `.cancelled`. So does a call whose permission `refusePairing()` or `stop()` withdraws while
    /// it waits. What the agent can show and ask counts for links that come up after the call: on those that are up,
    /// nothing can be compared. One central pairs at a time, and others are refused meanwhile; also while a pairing of
    /// this side waits for its turn (``Peripheral/pair(_:)``). One whose pairings have failed three times in a minute
    /// is refused for the rest of it, and so is the fourth that would bond in a minute with
    /// `CentralPairingOptions.acceptsUnconfirmed`. If another program makes the adapter not bondable meanwhile, that is
    /// undone, three times in a minute, logged, and reported as `SecurityEvent.otherManager`. The end of the time does
    /// not end a pairing that runs. `events` reports what becomes of each; `Central.securityEvents` the rest.
    ///
    /// With advertising sets, the kernel may pair with the address of another program's last advertisement. While
    /// centrals may pair, an advertising instance that is not put on air is added and removed to set that right; where
    /// the kernel refuses that, it is logged, and centrals may pair all the same.
    ///
    /// - Parameters:
    ///   - options: How centrals may pair.
    ///   - duration: How long they may; `nil` for no limit.
    /// - Throws: `BLEError` with `.invalidArgument` for options that accept no pairing, and after `stop()`;
    ///   `.notPermitted` without CAP_NET_ADMIN, `.notSupported` without `Configuration.security`, `.pairingUnavailable`
    ///   if the kernel cannot pair with the adapter as it was switched on, `.adapterShared` if another program keeps
    ///   making the adapter not bondable, `.timedOut`, `.adapterDown`, `.noAdapter`, `.blocked`, `.cancelled`, and
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
        try await acceptor.allowPairing(
            options, until: duration.map { central.loop.now() + $0 }, during: operation)
    }

    /// Lets no central pair from now on. A pairing that runs ends without a bond, unless that is being stored.
    ///
    /// Bonds stay, and encrypt later links.
    public func refusePairing() async {
        await acceptor.refusePairing()
    }

    /// Lets no central begin to pair from now on. A pairing that runs goes on.
    package func refuseFurtherPairing() async {
        await acceptor.refusePairing(keepingCurrent: true)
    }

    /// Requests security of a central, and waits until the link has it: the central encrypts the link with its bond, or
    /// pairs.
    ///
    /// A link that has the security is left alone. A central without a bond can pair only while `allowPairing(_:for:)`
    /// lets it, whose agent decides as ever; what that agent can show and ask is part of the request. Prefer an
    /// attribute that requires security (`AttributeAccess`): every central reacts to a refused attribute, and many
    /// phones ask their users about a request, or ignore it. The kernel ends the link of a central that refuses, and
    /// that of one that has not reacted after 30 s.
    ///
    /// - Parameters:
    ///   - required: What the link must have.
    ///   - id: The central.
    ///   - timeout: The longest time for the call: for the kernel and the disk, where the adapter is not under
    ///     management yet, and for the central and its user. The request cannot be withdrawn.
    /// - Returns: The security of the link.
    /// - Throws: `BLEError` with `.disconnected` if the central is not connected, or disconnects; `.timedOut` if it
    ///   does not react in time; `.pairingRefused` and the other codes of a pairing that fails; `.notBonded` if it has
    ///   no bond and may not pair; `.insufficientSecurity` if its bond, or the one that it has made, is worth less;
    ///   `.invalidArgument` for a link that this side has made, `.notSupported` for one without a radio and without
    ///   `Configuration.security`, `.notPermitted` without CAP_NET_ADMIN, `.adapterDown`, `.cancelled`, `.system`.
    ///
    /// Spec: Peripheral Initiated Security, Core Vol 3 Part H, 2.4.6.
    @discardableResult
    public func requestSecurity(
        _ required: PairingOptions.RequiredSecurity = .encrypted, of id: ConnectedCentral.ID,
        timeout: Duration = .seconds(30)
    ) async throws(BLEError) -> LinkSecurity {
        let deadline = central.loop.now() + timeout
        return try await links.link(to: id, during: SecurityRequests.operation).securing.request(
            required, until: deadline)
    }

    /// Disconnects a central; does nothing if it is not connected.
    public func disconnect(_ id: ConnectedCentral.ID) async {
        await links[id]?.peripheral.disconnect()
    }

    /// Takes all advertisements off air, ends all links that centrals have made, and accepts no others. Sequences of
    /// events end after the last of them.
    ///
    /// All links end at the same time: a controller that does not respond delays the call by 2 s for all of them.
    public func stop() async {
        links.close()
        await central.stopUsing(self)
        for advertised in advertisements { await advertised.lease?.stop() }
        await acceptor.end()
        _ = cleanUp.dismiss()
        // Concurrently: each may have to wait for a controller that does not respond.
        await withTaskGroup(of: Void.self) { group in
            for link in links.inbound {
                group.addTask(executorPreference: central.loop) { await link.peripheral.disconnect() }
            }
        }
        handOver.drop()
        await handOver.finishRecords()
        serverEvents.finish()
    }

    /// Serves a link that the central has made.
    func serve(_ peripheral: Peripheral) { links.serve(peripheral) }

    /// The client side of the link to a peer that is connected as a central.
    func peripheral(connectedAs peer: PeerID) -> Peripheral? { links.peripheral(connectedAs: peer) }

    func checkRuns(during operation: String) throws(BLEError) { try links.checkIsOpen(during: operation) }

    func register(during operation: String) throws(BLEError) {
        guard central.assumeIsolated({ $0.use(self) }) else {
            throw BLEError(
                .busy, during: operation, because: "the central has another local peripheral",
                hint: "Publish all services with one, or stop the other one first.")
        }
    }

    /// The tasks and questions of all links that are unfinished; tests check what is left after their end.
    package var outstanding: Int { links.outstanding }
}

// MARK: - Restarting

extension LocalPeripheral {
    /// Continues with what the run before has left: what bonded centrals have configured, the socket on which links are
    /// accepted, and the links themselves.
    ///
    /// Call it once at each start, also the first, before services are published. Publish the same services in the same
    /// order then, and accept centrals: that resumes the links, whose centrals notice nothing. Their events come before
    /// those of newcomers, which have waited meanwhile: `.connected`, with `ConnectedCentral.isRestored`, and
    /// `.subscribed` for each of their subscriptions. Where the services differ from those of the run before, all
    /// bonded centrals are notified of the change at their next encrypted link,
    /// and the subscriptions that it affects end.
    ///
    /// From then on the file is kept current automatically, written at most once in 5 s, and at `stop()` and
    /// `suspend(handingOverTo:)`.
    ///
    /// - Parameter environment: Where to look for what the service manager has kept.
    /// - Throws: `BLEError` with `.busy` if another process has the file, which the reason names, or if this was called
    ///   before; `.invalidArgument` if there are services or links already, and after `stop()`; `.timedOut` if the disk
    ///   has not responded in 5 s; `.cancelled`, `.notPermitted`, `.diskFull`, `.system`. A file that cannot be used is
    ///   not an error: see `LocalPeripheral.RestorationResult.damage`.
    public func restore(
        from environment: ServiceEnvironment = .process
    ) async throws(BLEError) -> RestorationResult {
        let operation = "restore the local peripheral"
        try checkRuns(during: operation)
        return try await handOver.restore(
            from: environment, settings.store ?? central.configuration.stateStore, during: operation)
    }

    /// The status of the file with what bonded centrals have configured; `nil` if it is not kept.
    public var stateStatus: StateStore.Status? { records.status }

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
    /// - Returns: What was not handed over, by the names of the centrals and of the sockets on which links are
    ///   accepted, with the reasons: these links have ended. Where the manager has been sent something and does not
    ///   confirm it, the reason is `.timedOut`, and the manager may have it or not.
    @discardableResult
    public func suspend(handingOverTo store: DescriptorStore) async -> [String: BLEError] {
        guard !links.isClosed else { return [:] }
        links.close()
        await central.stopUsing(self)
        _ = cleanUp.dismiss()
        let lost = await handOver.suspend(acceptor, to: store)
        serverEvents.finish()
        return lost
    }
}
