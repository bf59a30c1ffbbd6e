// What the peripheral managers of a process share: one local peripheral, with the services of all of them.
//
// Duties
// - Publish and withdraw services, and keep which attribute belongs to which object of the application.
// - Pass requests of centrals to the manager of the service, and its responses back. BareBLE refuses a request that has
//   no response after 20 s; the object of the request refuses it when its last reference goes away.
// - Start the updates in the order of the calls; BareBLE keeps that order for each central.
// - Report each subscription and its end, between the requests before and after it. While the queue of a manager has no
//   room, what a central changes several times is reported once, so that it takes no memory. Requests that come after
//   that wait until it is reported.
// - Let centrals pair while something that is offered needs it, and a manager advertises or a central is connected; and
//   at no other time.
//
// `ServiceTranslation` translates services, `PendingResponse` waits for the program, `KnownCentrals` has the objects of
// centrals, `ReportedSubscriptions` what was reported of them, and `CentralPairingSwitch` lets them pair.
//
// Invariants
// - All state belongs to the event loop. Managers are referred to weakly; their services, advertisements and channels
//   end with them.
// - The local peripheral exists from the first service, advertisement or channel on.

internal import BLECore
internal import BLELinux
internal import BareBLE
internal import Logging

/// The server of a process.
actor ServerHub {
    private struct Entry {
        let manager: WeakManager
        let callbacks: CallbackQueue
        /// Whether the manager was notified that the adapter is on. What it has restored stays until then.
        var wasOn = false
        var lease: Advertisement.Lease?
        /// The number of the newest request to advertise, or to stop.
        var advertising = 0
        /// Whether changes of subscriptions wait for room in the queue.
        var awaitsRoom = false
        /// Whether advertising was asked for, and neither failed nor ended.
        var isAdvertising = false
        var services: [(object: CBMutableService, published: PublishedService, isProtected: Bool)] = []
        var listeners: [CBL2CAPPSM: (listener: ChannelListener, isEncrypted: Bool)] = [:]
        /// How often the services and channels were withdrawn because the adapter was lost.
        var withdrawals = 0

        /// Whether centrals need an encrypted link for something that the manager offers.
        var isProtected: Bool {
            services.contains(where: \.isProtected) || listeners.values.contains(where: \.isEncrypted)
        }

        func post(_ report: @escaping @Sendable (CBPeripheralManager) -> Void) {
            callbacks.post { [manager] in if let object = manager.object as? CBPeripheralManager { report(object) } }
        }
    }

    private nonisolated let central: Central
    private nonisolated let loop: EventLoop
    private nonisolated let logger: Logger
    /// Lets centrals pair; `nil` if they never may.
    private let pairing: CentralPairingSwitch?
    private var managers: [ManagerID: Entry] = [:]
    private var local: LocalPeripheral?
    /// The objects of the published characteristics, and their managers.
    private var characteristics: [AttributeHandle: (object: CBMutableCharacteristic, manager: ManagerID)] = [:]
    private var centrals = KnownCentrals()
    private var subscriptions = ReportedSubscriptions()

    /// The event loop of the central: all of the actor's code runs there.
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the central, which holds its loop, so the reference stays good.
        unsafe central.unownedExecutor
    }

    init(_ central: Central, _ options: CentralPairingOptions?) {
        self.central = central
        loop = central.loop
        logger = central.configuration.logger
        pairing = options.map { CentralPairingSwitch($0, on: central.loop, logger: central.configuration.logger) }
    }

    // MARK: Managers

    func add(_ manager: WeakManager, _ id: ManagerID, _ callbacks: CallbackQueue) {
        managers[id] = Entry(manager: manager, callbacks: callbacks)
    }

    func remove(_ id: ManagerID) {
        withdrawEverything(of: id)
        stopAdvertising(of: id)
        managers[id] = nil
    }

    /// A manager is notified of a state. If the adapter cannot be used any more, nothing is advertised; and unless it
    /// is only off, there are no services and no channels.
    func adapterChanged(_ state: CBManagerState, of id: ManagerID) {
        guard let entry = managers[id] else { return }
        guard state != .poweredOn else {
            managers[id]?.wasOn = true
            return
        }
        guard entry.wasOn else { return }
        stopAdvertising(of: id)
        if state != .poweredOff { withdrawEverything(of: id) }
    }

    /// Withdraws the services and the channels of a manager, also a channel that is not published yet. The ends of the
    /// others are not reported.
    func withdrawEverything(of id: ManagerID) {
        withdrawAll(of: id)
        managers[id]?.withdrawals += 1
        for psm in managers[id]?.listeners.keys.sorted() ?? [] { endListener(psm, of: id) }
    }

    private func server() -> LocalPeripheral {
        if let local { return local }
        let local = LocalPeripheral(LocalPeripheral.Settings(name: ProcessInfo.processInfo.hostName), on: central)
        self.local = local
        // Not by its sequence: a request that comes after a subscription would be reported before it.
        local.forwardEvents { [weak self] event in self?.assumeIsolated { $0.happened(event) } }
        return local
    }

    // MARK: Services

    /// Publishes a service. One that the run before has published is not reported.
    func publish(_ service: CBMutableService, for id: ManagerID, isRestored: Bool = false) {
        guard let entry = managers[id] else { return }
        let local = server()
        do {
            let definition = try definition(of: service, for: id)
            let published = try local.assumeIsolated { try $0.publish(definition) }
            managers[id]?.services.append((service, published, definition.isProtected))
            service.setPublished(true)
            for (object, characteristic) in zip(service.characteristics ?? [], published.characteristics) {
                guard let object = object as? CBMutableCharacteristic else { continue }
                object.setPublished(true)
                characteristics[characteristic.id] = (object, id)
            }
            adjustPairing()
            entry.post { manager in
                manager.changed(service, isPublished: true)
                if !isRestored { manager.delegate?.peripheralManager(manager, didAdd: service, error: nil) }
            }
        } catch {
            if isRestored {
                logger.error("\(service) of the run before is not published: \(error)")
                return entry.post { $0.changed(service, isPublished: false) }
            }
            let translated = (error as? BLEError)?.translated ?? error
            entry.post { $0.delegate?.peripheralManager($0, didAdd: service, error: translated) }
        }
    }

    func withdraw(_ service: CBMutableService, of id: ManagerID) {
        guard let index = managers[id]?.services.firstIndex(where: { $0.object === service }),
            let entry = managers[id]?.services.remove(at: index), let local
        else { return }
        let published = entry.published
        do {
            try local.assumeIsolated { try $0.withdraw(published) }
        } catch {
            // Another service includes it.
            managers[id]?.services.insert(entry, at: index)
            return logger.error("the service was not removed: \(error)")
        }
        adjustPairing()
        service.setPublished(false)
        managers[id]?.post { $0.changed(service, isPublished: false) }
        for characteristic in published.characteristics {
            guard let object = characteristics.removeValue(forKey: characteristic.id)?.object else { continue }
            object.setPublished(false)
            object.removeSubscribers()
            // A subscription may not have been reported yet.
            managers[id]?.post { _ in object.removeSubscribers() }
            subscriptions.remove(characteristic.id)
        }
    }

    func withdrawAll(of id: ManagerID) {
        // A service that includes others was added after them.
        for service in managers[id]?.services.reversed() ?? [] { withdraw(service.object, of: id) }
    }

    private func definition(of service: CBMutableService, for id: ManagerID) throws -> LocalService {
        guard managers[id]?.services.contains(where: { $0.object === service }) == false else {
            throw ServiceTranslation.invalid("the service \(service.uuid) was added before")
        }
        let all = managers.values.flatMap(\.services)
        let translation = ServiceTranslation(
            read: { [weak self] request, characteristic in
                guard let self else { throw ATTRefusal(.unlikelyError) }
                return try await self.read(request, of: characteristic)
            },
            write: { [weak self] requests in
                guard let self else { throw ATTRefusal(.unlikelyError) }
                try await self.write(requests)
            },
            published: { service in all.first { $0.object === service }?.published })
        return try translation.definition(of: service)
    }

    // MARK: Requests

    private func read(
        _ request: LocalValue.ReadRequest, of characteristic: CBMutableCharacteristic
    ) async throws -> [UInt8] {
        guard characteristic.isReadable else { throw ATTRefusal(.readNotPermitted) }
        guard let id = characteristics.values.first(where: { $0.object === characteristic })?.manager,
            let entry = managers[id]
        else { throw ATTRefusal(.unlikelyError) }
        await awaitReports(to: id)
        let central = object(of: request.central)
        let response = try await PendingResponse.response { pending in
            let object = CBATTRequest(
                central, characteristic, offset: request.offset, value: nil, pending: pending)
            entry.post { $0.delegate?.peripheralManager($0, didReceiveRead: object) }
        }
        // The bytes from the offset on, as many as the program likes.
        return [UInt8](response.value ?? Data())
    }

    private func write(_ requests: [LocalValue.WriteRequest]) async throws {
        let known = requests.compactMap { request in characteristics[request.characteristic.id].map { (request, $0) } }
        guard known.count == requests.count, let first = known.first, let entry = managers[first.1.manager] else {
            throw ATTRefusal(.unlikelyError)
        }
        guard known.allSatisfy({ $0.1.object.isWritable }) else { throw ATTRefusal(.writeNotPermitted) }
        await awaitReports(to: first.1.manager)
        let central = object(of: first.0.central)
        let report = { (pending: PendingResponse?) in
            let objects = known.map { request, target in
                CBATTRequest(
                    central, target.object, offset: request.offset, value: Data(request.value),
                    pending: request.isCommand ? nil : pending)
            }
            entry.post { $0.delegate?.peripheralManager($0, didReceiveWrite: objects) }
        }
        // A central that writes without response waits for none, and neither do its next requests.
        guard requests.contains(where: { !$0.isCommand }) else {
            await entry.callbacks.awaitRoom()
            return report(nil)
        }
        _ = try await PendingResponse.response(reporting: report)
    }

    // MARK: Updates

    func update(
        _ value: [UInt8], of characteristic: CBMutableCharacteristic, to targets: [ConnectedCentral.ID]?,
        for id: ManagerID
    ) {
        guard let entry = managers[id] else { return }
        let ended: @Sendable () -> Void = { [manager = entry.manager] in
            (manager.object as? CBPeripheralManager)?.updateEnded()
        }
        guard let local, let handle = characteristics.first(where: { $0.value.object === characteristic })?.key else {
            logger.error("API MISUSE: \(characteristic) was not added, so its value is not sent")
            return ended()
        }
        // All parts begin now, so that none comes after the part of a later update.
        let sent = parts(of: value, to: targets, of: local).map { part, targets in
            Task(executorPreference: loop) { [logger] in
                do throws(BLEError) {
                    try await local.update(part, of: .handle(handle), to: targets)
                } catch {
                    logger.error("a value was not sent: \(error)")
                }
            }
        }
        Task(executorPreference: loop) {
            for task in sent { await task.value }
            ended()
        }
    }

    /// Returns a value as each central can receive it: one part for all if it fits.
    private func parts(
        of value: [UInt8], to targets: [ConnectedCentral.ID]?, of local: LocalPeripheral
    ) -> [([UInt8], [ConnectedCentral.ID]?)] {
        if value.count <= 20 { return [(value, targets)] }
        let receivers = local.assumeIsolated { $0.centrals }.filter { targets?.contains($0.id) ?? true }
        let limits = receivers.map { ($0.id, min($0.maximumUpdateLength, ATTLimits.valueLength)) }
        if limits.allSatisfy({ $0.1 >= value.count }) { return [(value, targets)] }
        return limits.map { (Array(value.prefix($0.1)), [$0.0]) }
    }

    // MARK: Events

    private func happened(_ event: LocalPeripheral.Event) {
        switch event {
        case .connected(let central):
            _ = centrals.object(for: central)
            adjustPairing()
        case .disconnected(let central, _):
            centrals.remove(central.id)
            adjustPairing()
        case .subscribed(let central, let characteristic, _):
            subscription(of: centrals.object(for: central), to: characteristic.id, isOn: true)
        case .unsubscribed(let central, let characteristic):
            subscription(of: centrals.object(for: central), to: characteristic.id, isOn: false)
        case .written, .writeDropped, .paired, .pairingFailed, .dropped: break
        }
    }

    /// Reports the changes of subscriptions that were not reported yet, by comparing with the local peripheral.
    ///
    /// Events that still wait are older, and `subscription` ignores what was reported already.
    private func reportMissedChanges() {
        guard let local else { return }
        let present = local.assumeIsolated { $0.centrals }
        for former in subscriptions.all {
            let central = present.first { $0.id == former.central.link }
            guard central?.subscriptions.contains(where: { $0.id == former.handle }) != true else { continue }
            subscription(of: former.central, to: former.handle, isOn: false)
        }
        for central in present {
            let object = centrals.object(for: central)
            for characteristic in central.subscriptions { subscription(of: object, to: characteristic.id, isOn: true) }
        }
        centrals.keep(only: present)
        adjustPairing()
    }

    private func reportMissedChangesLater(to id: ManagerID) {
        guard let entry = managers[id], !entry.awaitsRoom else { return }
        managers[id]?.awaitsRoom = true
        Task(executorPreference: loop) { [weak self] in
            await entry.callbacks.awaitRoom()
            await self?.queueHasRoom(of: id)
        }
    }

    /// Waits until the changes of subscriptions are reported that wait for room: what a central does next is reported
    /// after them.
    private func awaitReports(to id: ManagerID) async {
        while let entry = managers[id], entry.awaitsRoom {
            await entry.callbacks.awaitRoom()
            if managers[id]?.awaitsRoom == true { queueHasRoom(of: id) }
        }
    }

    private func queueHasRoom(of id: ManagerID) {
        managers[id]?.awaitsRoom = false
        reportMissedChanges()
    }

    /// Reports a subscription or its end, unless that was reported by comparing.
    private func subscription(of central: CBCentral, to handle: AttributeHandle, isOn: Bool) {
        guard let (characteristic, id) = characteristics[handle], let entry = managers[id] else { return }
        guard isOn != subscriptions.contains(handle, central) else { return }
        guard entry.callbacks.hasRoom else { return reportMissedChangesLater(to: id) }
        let known = subscriptions.change(handle, central, isOn: isOn)
        entry.post { manager in
            characteristic.setSubscribed(known, isOn)
            if isOn {
                manager.delegate?.peripheralManager(manager, central: known, didSubscribeTo: characteristic)
            } else {
                manager.delegate?.peripheralManager(manager, central: known, didUnsubscribeFrom: characteristic)
            }
        }
    }

    /// Returns the object of a central that has sent a request or opened a channel. One whose end was reported before
    /// is not kept, as nothing would remove it any more.
    private func object(of central: ConnectedCentral) -> CBCentral {
        let isKnown = centrals.contains(central.id)
        let object = centrals.object(for: central)
        guard !isKnown else { return object }
        let isConnected = local?.assumeIsolated { $0.centrals.contains { $0.id == central.id } } ?? false
        if !isConnected { centrals.remove(central.id) }
        return object
    }

    /// The number of centrals whose objects are kept.
    var centralCount: Int { centrals.count }

    // MARK: Advertising

    /// Advertises, and reports the end of the request `start`, once, also if a later request is there by then.
    func advertise(_ name: String?, _ services: [BluetoothUUID], start: UInt64, for id: ManagerID) {
        guard let entry = managers[id] else { return }
        managers[id]?.advertising += 1
        managers[id]?.isAdvertising = true
        let number = entry.advertising + 1
        let (data, omitted) = AdvertisementData.contents(name, services)
        if !omitted.isEmpty {
            logger.warning("there is no room to advertise the services \(omitted.map(\.description))")
        }
        let (local, advertisement) = (server(), Advertisement(data))
        let pairingChange = adjustPairing()
        Task(executorPreference: loop) {
            await pairingChange?.value
            do throws(BLEError) {
                let lease = try await local.advertise(advertisement)
                guard await self.keep(lease, number, of: id) else {
                    await lease.stop()
                    return entry.post {
                        $0.advertisingBegan(CBPeripheralManager.advertisingWasStopped, start: start)
                    }
                }
                entry.post { $0.advertisingBegan(nil, start: start) }
            } catch {
                await self.advertisingFailed(number, of: id)
                let translated = error.translated
                entry.post { $0.advertisingBegan(translated, start: start) }
            }
        }
    }

    private func advertisingFailed(_ number: Int, of id: ManagerID) {
        guard managers[id]?.advertising == number else { return }
        managers[id]?.isAdvertising = false
        adjustPairing()
    }

    private func keep(_ lease: Advertisement.Lease, _ number: Int, of id: ManagerID) -> Bool {
        guard managers[id]?.advertising == number else { return false }
        managers[id]?.lease = lease
        return true
    }

    func stopAdvertising(of id: ManagerID) {
        guard managers[id] != nil else { return }
        managers[id]?.advertising += 1
        managers[id]?.isAdvertising = false
        adjustPairing()
        guard let lease = managers[id]?.lease else { return }
        managers[id]?.lease = nil
        Task(executorPreference: loop) { await lease.stop() }
    }

    // MARK: Pairing

    /// Whether centrals may have to pair.
    private var needsPairing: Bool {
        guard managers.values.contains(where: \.isProtected) else { return false }
        // A central that is connected may find out only later that it needs an encrypted link.
        let hasCentral = local?.assumeIsolated { !$0.centrals.isEmpty } ?? false
        return hasCentral || managers.values.contains(where: \.isAdvertising)
    }

    /// Lets centrals pair, or lets no further one, as it is needed by then.
    @discardableResult
    private func adjustPairing() -> Task<Void, Never>? {
        guard let local else { return nil }
        return pairing?.adjust(local) { await self.needsPairing }
    }

    // MARK: Latency

    func requestLatency(_ latency: CBPeripheralManagerConnectionLatency, of link: ConnectedCentral.ID) {
        guard let local else { return }
        let interval: ClosedRange<Duration> =
            switch latency {
            case .low: .milliseconds(15)...(.milliseconds(30))
            case .medium: .milliseconds(90)...(.milliseconds(120))
            case .high: .milliseconds(285)...(.milliseconds(300))
            }
        guard let parameters = try? ConnectionParameters(interval: interval, supervisionTimeout: .seconds(6)) else {
            return
        }
        Task(executorPreference: loop) { [logger] in
            do throws(BLEError) {
                try await local.requestConnectionParameters(parameters, of: link)
            } catch {
                logger.notice("the latency was not changed: \(error)")
            }
        }
    }

    // MARK: Channels

    /// Publishes a channel.
    ///
    /// - Parameter losses: The losses of the adapter that the manager had reported when this was requested.
    func publishChannel(isEncrypted: Bool, losses: Int, for id: ManagerID) {
        guard let entry = managers[id] else { return }
        let local = server()
        Task(executorPreference: loop) {
            do throws(BLEError) {
                let options = ChannelListener.Options(mtu: CBL2CAPChannel.options.mtu)
                let listener = try await local.listenForChannels(security: isEncrypted ? .encrypted : .open, options)
                guard await self.keep(listener, isEncrypted: isEncrypted, entry.withdrawals, of: id) else {
                    await listener.stop()
                    let error = CBPeripheralManager.channelWasWithdrawn
                    return entry.post { $0.delegate?.peripheralManager($0, didPublishL2CAPChannel: 0, error: error) }
                }
                let psm = listener.psm
                entry.post { $0.channelPublished(psm, losses: losses) }
            } catch {
                let translated = error.translated
                entry.post { $0.delegate?.peripheralManager($0, didPublishL2CAPChannel: 0, error: translated) }
            }
        }
    }

    private func keep(_ listener: ChannelListener, isEncrypted: Bool, _ withdrawals: Int, of id: ManagerID) -> Bool {
        guard let entry = managers[id], entry.withdrawals == withdrawals else { return false }
        managers[id]?.listeners[listener.psm] = (listener, isEncrypted)
        adjustPairing()
        Task(executorPreference: loop) { [weak self, loop] in
            do throws(BLEError) {
                for try await incoming in listener.channels {
                    guard let central = await self?.object(of: incoming.central) else { return }
                    let channel = CBL2CAPChannel(incoming.channel, to: central, loop: loop)
                    entry.post { $0.delegate?.peripheralManager($0, didOpen: channel, error: nil) }
                }
            } catch {
                // This task is the sequence's only consumer, and it has no other error.
            }
        }
        return true
    }

    func withdrawChannel(_ psm: CBL2CAPPSM, for id: ManagerID) {
        guard let entry = managers[id] else { return }
        guard endListener(psm, of: id) else {
            let error = CBError(
                .invalidParameters, userInfo: [NSLocalizedDescriptionKey: "The PSM \(psm) is not published."])
            return entry.post { $0.delegate?.peripheralManager($0, didUnpublishL2CAPChannel: psm, error: error) }
        }
        entry.post { $0.delegate?.peripheralManager($0, didUnpublishL2CAPChannel: psm, error: nil) }
    }

    @discardableResult
    private func endListener(_ psm: CBL2CAPPSM, of id: ManagerID) -> Bool {
        guard let listener = managers[id]?.listeners.removeValue(forKey: psm)?.listener else { return false }
        adjustPairing()
        Task(executorPreference: loop) { await listener.stop() }
        return true
    }
}

extension AdvertisementData {
    /// Returns what a manager advertises: its name, and as many of the services as there is room for, in their order;
    /// and the others.
    fileprivate static func contents(
        _ name: String?, _ services: [BluetoothUUID]
    ) -> (data: AdvertisementData, omitted: [BluetoothUUID]) {
        let data = { (listed: [BluetoothUUID]) -> AdvertisementData in
            var elements: [Element] = [.flags([.generalDiscoverable, .classicNotSupported])]
            if !listed.isEmpty { elements.append(.services(listed, isComplete: listed.count == services.count)) }
            if let name { elements.append(.localName(name, mayBeShortened: true)) }
            return AdvertisementData(elements)
        }
        var listed: [BluetoothUUID] = []
        var omitted: [BluetoothUUID] = []
        for service in services {
            let isFitting = (try? data(listed + [service]).payload(fitting: .legacy)) != nil
            if isFitting { listed.append(service) } else { omitted.append(service) }
        }
        return (data(listed), omitted)
    }
}
