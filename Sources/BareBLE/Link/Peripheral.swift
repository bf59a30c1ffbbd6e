public import BLECore
internal import BLELinux
internal import Logging

// One connected peer: the face of a link. Its state belongs to owners, each with private state:
//
// - `ATTLink`: the socket, the GATT client, and the operations under way.
// - `CallScheduler`: which calls may proceed, exclusive access, security upgrades.
// - `PeerDatabase`: what is known of the services, its cache, its changes.
// - `SubscriptionHub`: the subscribers, and the configurations in the peer.
// - `KeptConfigurations`: what a bonded peer has kept from earlier links.
// - `OpenChannels`: the channels beside the attributes.
// - `LinkProtection`: when the link was encrypted, and what has been tried to get there.
// - `LinkEnding`: why the link ended, and the tasks that wait for that.
//
// The peripheral connects them with tasks and time. A call gets its `CallContext` here and waits in an owner's
// `Waiters`; the peripheral reports its deadline and its cancellation to that owner. What one owner reports is passed
// on to the others.
//
// Invariants
// - All state belongs to the event loop's thread; a readable descriptor enters the actor without a hop.
// - Every caller is resumed exactly once. A cancelled or late caller is released at once; the client handles what that
//   means for the link.
// - At the end of the link: first the waiting calls fail, then the subscriptions and channels end, then
//   `disconnected()` returns.

/// A connected peer: reads, writes and subscribes, one ATT request at a time, in the order of the calls.
///
/// The link lives until `disconnect()`, until the peer or the radio ends it, or until the last reference goes away.
/// Calls from several tasks may overlap; the requests are sent in the order in which they were made. A call that is
/// cancelled, or times out, returns at once and leaves the link usable.
public actor Peripheral {
    /// The peer's address; `nil` if the link is not a Bluetooth link (a Unix socket, a descriptor).
    public nonisolated let id: PeerID?
    /// The peer's name in messages: its address, or the path or name of the link.
    public nonisolated let name: String

    nonisolated let loop: EventLoop
    nonisolated let log: LinkLog
    let controls: LinkControls?
    /// Places in the order of calls that were taken outside the loop.
    nonisolated let places: QueuePlaces

    let link: ATTLink
    let scheduler: CallScheduler
    let peerDatabase: PeerDatabase
    let subscriptionHub: SubscriptionHub
    let channels = OpenChannels()
    let ending: LinkEnding
    let warnings: LinkWarnings
    let protection: LinkProtection
    /// What a bonded peer has kept from earlier links.
    let kept: KeptConfigurations

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside
        // this actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    init(
        socket: consuming LinkSocket, id: PeerID?, name: String, mtu: UInt16, loop: EventLoop,
        configuration: Configuration, warnings: PeerWarningTable, policy: CachePolicy, controls: LinkControls? = nil
    ) {
        self.id = id
        self.name = name
        self.loop = loop
        ending = LinkEnding(on: loop)
        let known = warnings.warnings(for: name)
        self.warnings = LinkWarnings(of: known)
        log = LinkLog(logger: configuration.logger, peer: name, warnings: known, loop: loop)
        self.controls = controls
        protection = LinkProtection(configuration, hasRadio: controls != nil)
        kept = KeptConfigurations(policy.remembered, on: loop)
        places = QueuePlaces()
        link = ATTLink(socket: socket, name: name, mtu: mtu, loop: loop, configuration: configuration)
        scheduler = CallScheduler(places: places, on: loop)
        peerDatabase = PeerDatabase(policy, computingHashBy: configuration.databaseHash, on: loop, log: log)
        subscriptionHub = SubscriptionHub(of: name, on: loop)
    }

    isolated deinit {
        link.abandon()
    }
}

// MARK: - State of the link

extension Peripheral {
    nonisolated var logger: Logger { log.logger }

    /// Why the link ended; `nil` while it is up.
    var end: DisconnectReason? { ending.reason }

    /// A Boolean value that indicates whether the link is up.
    public var isConnected: Bool { end == nil }

    /// A Boolean value that indicates whether the link is about to end: this program has requested it, and calls made
    /// before may still be under way, or the socket has reported its end.
    public var isDisconnecting: Bool { end == nil && (ending.isAsked || link.isEnding) }

    /// The reason that the link ended; `nil` while it is up.
    public var disconnectReason: DisconnectReason? { end }

    /// The ATT MTU of the link, 23 to 517 bytes. A value of up to `mtu - 3` bytes fits one write.
    public var mtu: Int { Int(link.mtu) }

    /// The known database of the peer: from a validated cache, and from discovery; `nil` if nothing is known. If only
    /// some services were discovered, it does not contain the others.
    public var database: GATTDatabase? { peerDatabase.state.database }

    /// Returns the peer's signal strength, in dBm.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a link without a radio, `.notPermitted` without CAP_NET_RAW,
    ///   `.disconnected`, `.adapterDown`, `.timedOut` (the controller does not respond), `.cancelled`.
    public func rssi() async throws(BLEError) -> Int {
        try await radio(during: "read the RSSI").rssi()
    }
}

// MARK: - Beginning and end

extension Peripheral {
    private static let openingTime: Duration = .seconds(60)

    /// Starts reading, exchanges the MTU unless the smallest is requested, and validates the cache, if there is one.
    ///
    /// A failure ends the link, also at the controller. Without a timeout the limit is a minute: as long as the peer
    /// responds, the protocol allows half a minute for each request.
    func open(security demand: ConnectOptions.SecurityDemand = .asBonded, timeout: Duration?) async throws(BLEError) {
        do throws(BLEError) {
            watchEncryption()
            // Its encryption may have ended while the cache was loaded.
            if let error = securityError(demand, during: "connect") { throw error }
            try startReading()
            // A message must not claim that the peer could not be connected to: the link is up.
            let context = context("use the link", within: timeout ?? Self.openingTime)
            let mtu = link.largestMTU
            if mtu > MTUExchange.minimum { try await exchangeMTU(offering: mtu, in: context) }
            try await validateCache(in: context)
            peerDatabase.databaseDidChange()
        } catch {
            let remark = (silenceHint ?? strayHint).map { " \($0)" } ?? ""
            await disconnect()
            guard error.code == .timedOut, error.origin == .peer else { throw error }
            throw error.hinting(
                "The device may be busy, or may not run an ATT server; try again, or allow more time.\(remark)",
                because: "it came up, but \(error.reason)")
        }
    }

    /// Exchanges the MTU. A peer with an invalid response stays at the smallest, as one that refuses does.
    func exchangeMTU(offering mtu: UInt16, in context: CallContext) async throws(BLEError) {
        do throws(BLEError) {
            _ = try await run(in: context) { client, id, deadline, now in
                client.start(MTUExchange(offer: mtu), id: id, deadline: deadline, at: now) { .mtu($0) }
            }
        } catch {
            guard error.code == .malformedReply else { throw error }
            logger.debug("malformed MTU", metadata: ["peer": "\(name)"])
        }
    }

    /// Disconnects: at once, so that operations under way fail with `.disconnected`; or after the pending operations,
    /// where later calls fail with `.disconnecting`. The subscriptions end with the link.
    ///
    /// The call returns when the discovered database is stored too, if it is cached; it waits at most 5 s for a disk.
    /// Does nothing else if the link is already down. With `.afterPendingOperations` a cancelled task does not wait for
    /// calls any longer: the link ends at once. Inside `exclusively` only its own calls are waited for, others fail.
    public func disconnect(_ mode: DisconnectMode = .now) async {
        ending.awaited()
        if mode == .afterPendingOperations, end == nil {
            do throws(BLEError) {
                try await enter(as: .last, from: CallScopes.current, in: context("disconnect", within: nil))
            } catch {
                // Another task ends the link, after the same calls.
                if error.code == .disconnecting { _ = await disconnected() }
            }
        }
        if end == nil {
            ending.requested()
            await controls?.disconnect()
            close(.requested)
        }
        await finishStoring()
    }

    /// Waits until the link is down.
    ///
    /// - Returns: The reason that it ended, at once if it has already ended; `nil` if the task was cancelled first.
    public func disconnected() async -> DisconnectReason? {
        await disconnected(by: nil)
    }

    /// Waits until the link is down, or the deadline has come.
    func disconnected(by deadline: BootInstant?) async -> DisconnectReason? {
        if let end { return end }
        let waiters = ending.waiters
        guard case .resumed(let reason) = await waiters.wait(until: deadline, { _ in end }) else { return nil }
        return reason
    }

    /// Registers a closure that is called when the link ends, before anything else learns of it; at once if it has
    /// ended.
    func onEnd(_ handler: @escaping LinkEnding.Handler) {
        if let end { handler(end) } else { ending.addHandler(handler) }
    }
}

/// The end of a link: what this program has asked for, why it came, and the tasks that wait for it.
final class LinkEnding {
    typealias Handler = @Sendable (DisconnectReason) -> Void

    /// Why the link ended; `nil` while it is up.
    private(set) var reason: DisconnectReason?
    /// Whether `disconnect(_:)` was called, which may wait for calls first.
    private var isAwaited = false
    /// Whether this program has asked for the end, whatever the controller reports of it meanwhile.
    private(set) var isRequested = false
    private var handlers: [Handler] = []
    /// The tasks that wait for the end.
    let waiters: Waiters<DisconnectReason>

    init(on loop: EventLoop) {
        waiters = Waiters(on: loop)
    }

    var isAsked: Bool { isAwaited || isRequested }
    var waiterCount: Int { waiters.count }
    var handlerCount: Int { handlers.count }

    func awaited() { isAwaited = true }

    func requested() { isRequested = true }

    /// Returns the reason of the end, and what was registered for it; `nil` if the link had ended before.
    func end(_ cause: DisconnectReason) -> (reason: DisconnectReason, handlers: [Handler])? {
        guard reason == nil else { return nil }
        let reason = isRequested ? .requested : cause
        self.reason = reason
        defer { handlers = [] }
        return (reason, handlers)
    }

    func addHandler(_ handler: @escaping Handler) { handlers.append(handler) }

    /// Resumes all that wait, after everything else has ended.
    func resumeWaiters() {
        if let reason { waiters.resumeAll(reason) }
    }
}
