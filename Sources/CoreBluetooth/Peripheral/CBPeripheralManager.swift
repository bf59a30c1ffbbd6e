internal import BLELinux
internal import BareBLE
internal import Logging

/// Offers services to centrals, and advertises them.
///
/// All peripheral managers of a process share one database and one adapter. Methods may be called on any thread, never
/// wait, and are reported to the delegate on the manager's queue. A method that is called in another state than
/// `.poweredOn` does nothing but log one line.
open class CBPeripheralManager: CBManager, @unchecked Sendable {
    private struct State {
        var isAdvertising = false
        /// Whether advertising was asked for, and neither failed nor ended. Its end changes `isAdvertising` in the same
        /// step.
        var wantsAdvertising = false
        /// The number of the newest request to advertise, or to stop.
        var start: UInt64 = 0
        /// The number of updates that wait to be sent.
        var updates = 0
        /// Whether an update was refused because there was no room.
        var isFull = false
        /// The services that were added, and what is advertised, for the next run of the program.
        var services: [CBMutableService] = []
        var advertisement: PeripheralManagerState.Advertisement?
        /// What the run before has advertised, until the adapter is on; it belongs to what the next run finds.
        var restored: PeripheralManagerState.Advertisement?
        /// The number of the request that advertises it, which is not reported.
        var quietStart: UInt64?
        /// How often the loss of the adapter has ended the services and channels.
        var losses = 0
    }

    /// The number of updates that may wait, and down to which they must go before there is room again.
    private static let (updateLimit, updateLow) = (20, 4)

    /// The error for a start that was stopped before it was reported.
    static let advertisingWasStopped = CBError(
        .operationCancelled,
        userInfo: [NSLocalizedDescriptionKey: "Advertising was stopped before its start was reported."])

    /// The error for a channel that was to be published when the adapter was lost.
    static let channelWasWithdrawn = CBError(
        .operationCancelled,
        userInfo: [NSLocalizedDescriptionKey: "The adapter was lost before the channel was published."])

    private let own = Lock(State())
    private let keeper: ManagerStateFile<PeripheralManagerState>?

    /// Creates a manager without a delegate, on the main queue.
    public convenience init() {
        self.init(delegate: nil, queue: nil, options: nil)
    }

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - delegate: The delegate, which the manager does not keep.
    ///   - queue: The queue for the callbacks; `nil` for the main queue.
    public convenience init(delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// Creates a manager.
    ///
    /// With `CBPeripheralManagerOptionRestoreIdentifierKey`, the manager publishes the services, and advertises what a
    /// manager with this identifier did when the program ended. The delegate receives them by
    /// `peripheralManager(_:willRestoreState:)`, before the state. Advertising begins after the first `.poweredOn`,
    /// however late the adapter is. Links and subscriptions end with the program. The state is kept in the directory of
    /// `CoreBluetoothHost.Settings`; without one nothing is restored, which the log states. A manager that is created
    /// while another one of the process has its identifier is not restored,
    /// and what it does is kept from the end of that one on.
    ///
    /// - Parameters:
    ///   - delegate: The delegate, which the manager does not keep.
    ///   - queue: The queue for the callbacks; `nil` for the main queue.
    ///   - options: With `CBPeripheralManagerOptionShowPowerAlertKey`, the adapter is switched on, if the process has
    ///     CAP_NET_ADMIN. `CBPeripheralManagerOptionRestoreIdentifierKey` as above.
    public init(
        delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
    ) {
        let opened = (options?[CBPeripheralManagerOptionRestoreIdentifierKey] as? String).flatMap {
            CoreBluetoothHost.current.states.open($0, kind: "peripheral", as: PeripheralManagerState.self)
        }
        keeper = opened?.keeper
        super.init(on: queue)
        anyDelegate = delegate
        let (weak, id, callbacks, server) = (WeakManager(self), id, callbacks, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.add(weak, id, callbacks) } }
        register(powerOn: options?[CBPeripheralManagerOptionShowPowerAlertKey])
        if let former = opened?.former { restore(former) }
        keeper?.begin()
        start()
    }

    deinit {
        keeper?.end(with: PeripheralManagerState())
        let (id, server) = (id, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.remove(id) } }
    }

    /// The delegate. A delegate that is set after the state was reported is notified of it.
    open weak var delegate: (any CBPeripheralManagerDelegate)? {
        get { anyDelegate as? any CBPeripheralManagerDelegate }
        set { anyDelegate = newValue }
    }

    /// Returns the permission of this process.
    @available(*, deprecated, message: "Use CBManager.authorization.")
    open class func authorizationStatus() -> CBPeripheralManagerAuthorizationStatus {
        authorization == .denied ? .denied : .authorized
    }

    // MARK: Advertising

    /// A Boolean value that indicates whether the manager advertises; `true` from the callback on.
    open var isAdvertising: Bool { own.withLock { $0.isAdvertising } }

    /// Advertises, so that centrals find this device and connect. It needs CAP_NET_RAW.
    ///
    /// - Parameter advertisementData: `CBAdvertisementDataLocalNameKey` and `CBAdvertisementDataServiceUUIDsKey` are
    ///   used, as on Apple's systems; anything else is not advertised. A name that does not fit is shortened. Services
    ///   for which there is no room are not advertised, which the log states.
    open func startAdvertising(_ advertisementData: [String: Any]?) {
        guard isPoweredOn() else { return }
        let services = advertisementData?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
        let advertisement = PeripheralManagerState.Advertisement(
            name: advertisementData?[CBAdvertisementDataLocalNameKey] as? String, services: services.map(\.uuidString))
        guard !begin(advertisement) else { return }
        let error = CBError(
            .alreadyAdvertising,
            userInfo: [NSLocalizedDescriptionKey: "The manager advertises already; stop that first."])
        callbacks.post { [weak self] in
            if let self { delegate?.peripheralManagerDidStartAdvertising(self, error: error) }
        }
    }

    /// Advertises what a program has asked for, or what the run before has advertised, which is not reported.
    ///
    /// - Returns: `false` if the manager advertises already.
    @discardableResult
    private func begin(_ advertisement: PeripheralManagerState.Advertisement, isRestored: Bool = false) -> Bool {
        let services = advertisement.services.compactMap { BluetoothUUID($0) }
        let (name, id, hub, server) = (advertisement.name, id, host.hub, host.server)
        let isNew = own.withLock { state in
            guard !state.wantsAdvertising else { return false }
            state.wantsAdvertising = true
            state.advertisement = advertisement
            state.restored = nil
            state.start += 1
            if isRestored { state.quietStart = state.start }
            let start = state.start
            // Before another thread can stop it.
            hub.post { _ in server.assumeIsolated { $0.advertise(name, services, start: start, for: id) } }
            return true
        }
        if isNew { keepState() }
        return isNew
    }

    /// Stops advertising. Links stay up. A start that is not reported yet is reported with
    /// `CBError.operationCancelled`, or with the error that it ended with.
    open func stopAdvertising() {
        guard isPoweredOn() else { return }
        endAdvertising()
    }

    /// Ends what is advertised.
    private func endAdvertising() {
        let (id, hub, server) = (id, host.hub, host.server)
        let wasOn = own.withLock { state in
            defer { state.isAdvertising = false }
            state.wantsAdvertising = false
            state.advertisement = nil
            state.restored = nil
            state.start += 1
            // Before an observer or another thread can start again.
            hub.post { _ in server.assumeIsolated { $0.stopAdvertising(of: id) } }
            return state.isAdvertising
        }
        if wasOn { observers.changed(.isAdvertising, on: self, from: true, to: false) }
        keepState()
    }

    /// Asks a central for a latency of its link. The central decides; there is no callback.
    open func setDesiredConnectionLatency(
        _ latency: CBPeripheralManagerConnectionLatency, for central: CBCentral
    ) {
        guard isPoweredOn() else { return }
        let (link, server) = (central.link, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.requestLatency(latency, of: link) } }
    }

    // MARK: Services

    /// Publishes a service, whose object and parts cannot change afterwards.
    open func add(_ service: CBMutableService) {
        guard isPoweredOn() else { return }
        let (id, server) = (id, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.publish(service, for: id) } }
    }

    /// Withdraws a service.
    open func remove(_ service: CBMutableService) {
        guard isPoweredOn() else { return }
        let (id, server) = (id, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.withdraw(service, of: id) } }
    }

    /// Withdraws all services of this manager.
    open func removeAllServices() {
        guard isPoweredOn() else { return }
        let (id, server) = (id, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.withdrawAll(of: id) } }
    }

    // MARK: Values

    /// Responds to a request of a central.
    ///
    /// - Parameters:
    ///   - request: The request; of several that came together, any one.
    ///   - result: `.success`, or the error that the central receives.
    open func respond(to request: CBATTRequest, withResult result: CBATTError.Code) {
        guard !request.respond(result) else { return }
        Misuse.log("a request of \(request.central.identifier) was responded to before, or too late", host: host)
    }

    /// Sends a value to centrals that have subscribed to a characteristic, in a notification or an indication.
    ///
    /// A value that is longer than a central can receive is cut for it (`CBCentral.maximumUpdateValueLength`).
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - characteristic: A characteristic of a service that was added.
    ///   - centrals: The centrals; `nil` for all that have subscribed.
    /// - Returns: `false` if too many updates wait: this one is not sent, and
    ///   `peripheralManagerIsReady(toUpdateSubscribers:)` is called when there is room.
    open func updateValue(
        _ value: Data, for characteristic: CBMutableCharacteristic, onSubscribedCentrals centrals: [CBCentral]?
    ) -> Bool {
        guard isPoweredOn() else { return false }
        let hasRoom = own.withLock { state in
            guard state.updates < Self.updateLimit else {
                state.isFull = true
                return false
            }
            state.updates += 1
            return true
        }
        guard hasRoom else { return false }
        let (id, server, bytes) = (id, host.server, [UInt8](value))
        let targets = centrals?.map(\.link)
        host.hub.post { _ in server.assumeIsolated { $0.update(bytes, of: characteristic, to: targets, for: id) } }
        return true
    }

    // MARK: Channels

    /// Lets centrals open L2CAP channels to a PSM that the system chooses, and that the callback reports. The PSM ends
    /// where the services do, in a state below `.poweredOff`, without a callback.
    ///
    /// - Parameter encryptionRequired: A Boolean value that indicates whether the link must be encrypted.
    open func publishL2CAPChannel(withEncryption encryptionRequired: Bool) {
        guard isPoweredOn() else { return }
        let (id, hub, server) = (id, host.hub, host.server)
        own.withLock { state in
            let losses = state.losses
            // In one step: the hub withdraws for a later loss after this.
            hub.post { _ in
                server.assumeIsolated { $0.publishChannel(isEncrypted: encryptionRequired, losses: losses, for: id) }
            }
        }
    }

    /// Ends that centrals can open channels to a PSM. Open channels stay open.
    open func unpublishL2CAPChannel(_ psm: CBL2CAPPSM) {
        guard isPoweredOn() else { return }
        let (id, server) = (id, host.server)
        host.hub.post { _ in server.assumeIsolated { $0.withdrawChannel(psm, for: id) } }
    }

    // MARK: Restoring

    private func keepState() { keeper?.changed { [weak self] in self?.kept } }

    private var kept: PeripheralManagerState {
        let (services, advertisement) = own.withLock { ($0.services, $0.advertisement ?? $0.restored) }
        return PeripheralManagerState(services, advertisement)
    }

    private func restore(_ former: PeripheralManagerState) {
        let services = former.objects
        var restored: [String: Any] = [CBPeripheralManagerRestoredStateServicesKey: services]
        restored[CBPeripheralManagerRestoredStateAdvertisementDataKey] = former.advertisement?.data
        own.withLock { state in
            state.services = services
            state.restored = former.advertisement
        }
        let (id, server) = (id, host.server)
        host.hub.post { _ in
            server.assumeIsolated { server in
                for service in services { server.publish(service, for: id, isRestored: true) }
            }
        }
        setRestored(restored)
    }

    // MARK: On the delegate's queue

    /// What was asked for since the adapter returned, and before its loss was reported here, ends with it too.
    override func adapterIsLost(_ state: CBManagerState) {
        endAdvertising()
        guard state != .poweredOff else { return }
        let (id, hub, server) = (id, host.hub, host.server)
        own.withLock { state in
            state.losses += 1
            // The program adds them again.
            hub.post { _ in server.assumeIsolated { $0.withdrawEverything(of: id) } }
        }
    }

    override func adapterIsReady() {
        if let restored = own.withLock({ $0.restored }) { begin(restored, isRestored: true) }
    }

    override func reportState() { delegate?.peripheralManagerDidUpdateState(self) }

    override func reportRestored(_ restored: [String: Any]) {
        delegate?.peripheralManager(self, willRestoreState: restored)
    }

    /// A service was published, or withdrawn.
    func changed(_ service: CBMutableService, isPublished: Bool) {
        own.withLock { state in
            let index = state.services.firstIndex { $0 === service }
            switch (index, isPublished) {
            case (nil, true): state.services.append(service)
            case (let index?, false): state.services.remove(at: index)
            default: break
            }
        }
        keepState()
    }

    func advertisingBegan(_ error: (any Error)?, start: UInt64) {
        let (isQuiet, isCurrent) = own.withLock { state -> (Bool, Bool) in
            let isQuiet = state.quietStart == start
            // The program has stopped it meanwhile, and may have started it again.
            guard state.start == start else { return (isQuiet, false) }
            state.isAdvertising = error == nil
            if error != nil {
                state.wantsAdvertising = false
                // The next run tries it again.
                if isQuiet { state.restored = state.advertisement }
                state.advertisement = nil
            }
            return (isQuiet, true)
        }
        if isCurrent, error == nil { observers.changed(.isAdvertising, on: self, from: false, to: true) }
        if let error, isCurrent {
            keepState()
            if isQuiet { host.logger.error("what the run before has advertised is not advertised: \(error)") }
        }
        guard !isQuiet else { return }
        // It may have begun and been stopped before this report.
        var reported = error
        if !isCurrent, error == nil { reported = CBPeripheralManager.advertisingWasStopped }
        delegate?.peripheralManagerDidStartAdvertising(self, error: reported)
    }

    /// A channel was published; a loss of the adapter that was reported since then has ended it.
    func channelPublished(_ psm: CBL2CAPPSM, losses: Int) {
        let isCurrent = own.withLock { $0.losses == losses }
        let error = isCurrent ? nil : CBPeripheralManager.channelWasWithdrawn
        delegate?.peripheralManager(self, didPublishL2CAPChannel: isCurrent ? psm : 0, error: error)
    }

    func updateEnded() {
        let isReady = own.withLock { state in
            state.updates -= 1
            guard state.isFull, state.updates <= Self.updateLow else { return false }
            state.isFull = false
            return true
        }
        guard isReady else { return }
        callbacks.post { [weak self] in
            if let self { delegate?.peripheralManagerIsReady(toUpdateSubscribers: self) }
        }
    }
}
