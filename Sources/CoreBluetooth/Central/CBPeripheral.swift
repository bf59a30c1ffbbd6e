internal import BLECore
internal import BLELinux
internal import BareBLE

/// The state of a peripheral for its manager.
public enum CBPeripheralState: Int, Sendable {
    /// Not connected.
    case disconnected = 0
    /// A connection is being established, or is awaited.
    case connecting = 1
    /// Connected.
    case connected = 2
    /// The connection is being cancelled.
    case disconnecting = 3
}

/// A device that a central manager has found, or is connected to.
///
/// A manager has one object for each device. The program keeps it: the connection is cancelled when the last reference
/// to it goes away. Methods may be called on any thread, never wait, and are reported to the delegate on the manager's
/// queue in the order of the calls, except `openL2CAPChannel(_:)`, which is reported when the device has responded. A
/// method that is called while the device is not connected does nothing but log one line.
open class CBPeripheral: CBPeer, @unchecked Sendable {
    private struct State {
        weak var delegate: (any CBPeripheralDelegate)?
        var name: String?
        var state = CBPeripheralState.disconnected
        var link: PeripheralLink?
        /// The number of the connection among those of `link`.
        var number: UInt64 = 0
        var mtu = 23

        /// Whether the program has cancelled a link whose end was not reported. It may have asked for another one
        /// since.
        func hasCancelled(_ link: PeripheralLink) -> Bool { self.link !== link || state == .disconnecting }
    }

    private weak var manager: CBCentralManager?
    let managerID: ManagerID
    let host: CoreBluetoothHost
    let observers = KeyValueObservers()
    let weakSelf = WeakPeripheral()
    private let callbacks: CallbackQueue
    private let own: Lock<State>
    private let attributes = DiscoveredAttributes()

    init(_ peer: PeerID, of manager: CBCentralManager, id: ManagerID) {
        self.manager = manager
        managerID = id
        host = manager.host
        callbacks = manager.callbacks
        own = Lock(State(name: manager.host.names[peer]))
        super.init(peer: peer)
        weakSelf.object = self
    }

    deinit {
        let (link, state) = own.withLock { ($0.link, $0.state) }
        guard let link else { return }
        if state == .connecting {
            Misuse.log(
                "Cancelling connection for unused peripheral \(description), Did you forget to keep a reference to it?",
                host: host)
        }
        host.hub.post { $0.drop(link) }
        manager?.keepState()
    }

    /// Whether the manager is still there; without it nothing is reported.
    var hasManager: Bool { manager != nil }

    // MARK: Properties

    /// The delegate, which the peripheral does not keep.
    open weak var delegate: (any CBPeripheralDelegate)? {
        get { own.withLock { $0.delegate } }
        set {
            if let newValue { DelegateCheck.warnIfMethodsOfSubclassesAreLost(newValue, host: host) }
            own.withLock { $0.delegate = newValue }
        }
    }

    /// The name that the device has advertised, or else its Device Name, which is read after connecting; `nil` while
    /// neither is known.
    open var name: String? { own.withLock { $0.name } }

    /// The state of the connection. `.connecting` and `.disconnecting` begin within the call,
    /// the others with a callback.
    open var state: CBPeripheralState { own.withLock { $0.state } }

    /// The services that have been discovered, in the order of their handles; `nil` before, and after the link has
    /// ended. Generic Access and Generic Attribute are the system's, and not among them.
    open var services: [CBService]? { attributes.services }

    /// The strength of the signal; always `nil`.
    @available(*, deprecated, message: "Use readRSSI() and peripheral(_:didReadRSSI:error:).")
    open var rssi: NSNumber? { nil }

    /// A Boolean value that indicates whether a write without response is sent at once; `false` while many wait. Then
    /// `peripheralIsReady(toSendWriteWithoutResponse:)` is called when there is room.
    open var canSendWriteWithoutResponse: Bool {
        own.withLock { $0.state == .connected ? $0.link : nil }?.flow.canSend ?? false
    }

    /// A Boolean value that indicates whether the device may use Apple's notification service; always `false`.
    open var ancsAuthorized: Bool { false }

    /// Returns the largest value that one write can carry: 512 bytes with response, and what fits into one packet of
    /// the link without.
    open func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        type == .withResponse ? ATTLimits.valueLength : own.withLock { $0.mtu } - 3
    }

    /// The class, the address, the identifier, the name and the state of the object, for logs.
    override open var description: String {
        let (name, state) = own.withLock { ($0.name, $0.state) }
        return
            "<\(objectName(self)), identifier = \(identifier.uuidString), name = \(name ?? "(null)"), state = \(state)>"
    }

    // MARK: Discovery

    /// Discovers services of the device.
    ///
    /// - Parameter serviceUUIDs: The types; `nil` or an empty array for all.
    ///   Services that the device lacks are no error.
    open func discoverServices(_ serviceUUIDs: [CBUUID]?) {
        let uuids = Self.filter(serviceUUIDs)
        perform(.alone) { peripheral, link in
            let result = await Self.result { () async throws(BLEError) in try await peripheral.discoverServices(uuids) }
            if case .success(let found) = result {
                link.host.hub.connected.add(found.map(\.uuid), of: link.peer)
                await link.observeServices(of: peripheral)
            }
            return Self.report(result) { peripheral, found in
                peripheral.setServices(peripheral.attributes.services(adding: found, to: peripheral))
            } finish: { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didDiscoverServices: error)
            }
        }
    }

    /// Discovers the services that a service includes.
    ///
    /// - Parameters:
    ///   - includedServiceUUIDs: The types; `nil` or an empty array for all.
    ///   - service: The service.
    open func discoverIncludedServices(_ includedServiceUUIDs: [CBUUID]?, for service: CBService) {
        guard let remote = remote(of: service) else { return }
        let uuids = Self.filter(includedServiceUUIDs)
        perform(.alone, with: service) { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.discoverIncludedServices(of: remote)
            }
            return Self.report(result) { peripheral, found in
                let wanted = found.filter { include in include.uuid.map { uuids?.contains($0) ?? true } ?? false }
                service.setIncludedServices(
                    peripheral.attributes.services(including: wanted, in: service, of: peripheral))
            } finish: { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didDiscoverIncludedServicesFor: service, error: error)
            }
        }
    }

    /// Discovers characteristics of a service.
    ///
    /// - Parameters:
    ///   - characteristicUUIDs: The types; `nil` or an empty array for all.
    ///   - service: The service.
    open func discoverCharacteristics(_ characteristicUUIDs: [CBUUID]?, for service: CBService) {
        guard let remote = remote(of: service) else { return }
        let uuids = Self.filter(characteristicUUIDs)
        perform(.alone, with: service) { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.discoverCharacteristics(uuids, of: remote)
            }
            return Self.report(result) { _, found in
                DiscoveredAttributes.add(found, to: service)
            } finish: { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didDiscoverCharacteristicsFor: service, error: error)
            }
        }
    }

    /// Discovers the descriptors of a characteristic.
    open func discoverDescriptors(for characteristic: CBCharacteristic) {
        guard let remote = remote(of: characteristic) else { return }
        perform(.alone, with: characteristic) { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.discoverDescriptors(of: remote)
            }
            return Self.report(result) { _, found in
                DiscoveredAttributes.add(found, to: characteristic)
            } finish: { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didDiscoverDescriptorsFor: characteristic, error: error)
            }
        }
    }

    // MARK: Values

    /// Reads the whole value of a characteristic, also a long one.
    ///
    /// If the device refuses it because its services have changed (Database Out Of Sync), they are discovered again,
    /// and the read is repeated once, unless the handle belongs to something else by now: then it fails with
    /// `CBError.invalidHandle`.
    open func readValue(for characteristic: CBCharacteristic) {
        guard let remote = remote(of: characteristic) else { return }
        perform(with: characteristic) { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.read(.handle(remote.valueHandle))
            }
            return Self.report(result) { _, bytes in
                characteristic.setValue(Data(bytes))
            } finish: { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didUpdateValueFor: characteristic, error: error)
            }
        }
    }

    /// Reads the whole value of a descriptor.
    open func readValue(for descriptor: CBDescriptor) {
        guard let remote = remote(of: descriptor) else { return }
        perform(with: descriptor) { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.read(.handle(remote.handle))
            }
            return Self.report(result) { _, bytes in
                descriptor.setValue(bytes: bytes)
            } finish: { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didUpdateValueFor: descriptor, error: error)
            }
        }
    }

    /// Writes the value of a characteristic.
    ///
    /// With response, a value of up to 512 bytes is written whole or not at all, and the peer's response is reported.
    /// Without response, nothing is reported: what is longer than `maximumWriteValueLength(for:)` is not sent, which
    /// the log states. Writes while `canSendWriteWithoutResponse` is `false` wait for their turn,
    /// up to 4,096 calls or 1 MiB.
    open func writeValue(_ data: Data, for characteristic: CBCharacteristic, type: CBCharacteristicWriteType) {
        guard let remote = remote(of: characteristic) else { return }
        let bytes = [UInt8](data)
        guard type == .withoutResponse else {
            return perform(with: characteristic, bytes: bytes.count) { peripheral, _ in
                let result = await Self.result { () async throws(BLEError) in
                    try await peripheral.write(bytes, to: .handle(remote.valueHandle))
                }
                return Self.report(result) { peripheral, error in
                    peripheral.delegate?.peripheral(peripheral, didWriteValueFor: characteristic, error: error)
                }
            }
        }
        perform(with: characteristic, bytes: bytes.count, isCommand: true) { peripheral, link in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.write(bytes, to: .handle(remote.valueHandle), .withoutResponse)
            }
            if case .failure(let error) = result, error.code != .disconnected, error.code != .disconnecting {
                Misuse.log("a write without response was not sent: \(error)", host: link.host)
            }
            return nil
        }
    }

    /// Writes the value of a descriptor. Client Characteristic Configuration (2902) cannot be written: use
    /// `setNotifyValue(_:for:)`.
    open func writeValue(_ data: Data, for descriptor: CBDescriptor) {
        guard let remote = remote(of: descriptor) else { return }
        guard remote.uuid.short != 0x2902 else {
            return Misuse.log(
                "the Client Characteristic Configuration of \(self) cannot be written; use setNotifyValue(_:for:)",
                host: host)
        }
        let bytes = [UInt8](data)
        perform(with: descriptor, bytes: bytes.count) { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.write(bytes, to: .handle(remote.handle))
            }
            return Self.report(result) { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didWriteValueFor: descriptor, error: error)
            }
        }
    }

    /// Has the device send the values of a characteristic, or stop sending them.
    ///
    /// Notifications are preferred to indications. If that is so already, nothing is sent,
    /// and the callback comes at once. When the device is to stop, the values that come before its response are
    /// reported before the callback, and none after it. Values are reported in the order in which they and the
    /// responses of the device came, also of several characteristics. While the queue is blocked, up to 4,096 values or
    /// 1 MiB of a characteristic wait; further ones are dropped, which the log states.
    open func setNotifyValue(_ enabled: Bool, for characteristic: CBCharacteristic) {
        guard let remote = remote(of: characteristic) else { return }
        perform(.alone, with: characteristic) { peripheral, link in
            let result = await Self.result { () async throws(BLEError) in
                if enabled {
                    try await link.subscribe(to: remote, on: peripheral)
                } else {
                    try await link.unsubscribe(from: remote, on: peripheral)
                }
            }
            return Self.report(result, translating: \.translatedForSubscribing) { peripheral, error in
                // The peer may have changed the service meanwhile.
                let isOn = enabled && characteristic.service?.isValid == true
                if !enabled || error == nil { characteristic.setNotifying(isOn) }
                peripheral.delegate?.peripheral(
                    peripheral, didUpdateNotificationStateFor: characteristic, error: error)
            }
        }
    }

    /// Reads the strength of the device's signal. It needs CAP_NET_RAW.
    open func readRSSI() {
        perform { peripheral, _ in
            let result = await Self.result { () async throws(BLEError) in try await peripheral.rssi() }
            let value = try? result.get()
            return Self.report(result) { peripheral, error in
                peripheral.delegate?.peripheral(peripheral, didReadRSSI: NSNumber(value: value ?? 127), error: error)
            }
        }
    }

    // MARK: Channels

    /// Opens an L2CAP channel to a service of the device.
    ///
    /// No other call waits for the device's response, so calls that are made later may be reported earlier. A device
    /// that closes the channel as soon as it is open has refused it: there is no channel, but an error. Where it
    /// refuses the channel for lack of security, and the host is configured for pairing, the device is paired and the
    /// channel is requested once more.
    open func openL2CAPChannel(_ psm: CBL2CAPPSM) {
        let peer = self
        perform(.beside) { [weak peer] peripheral, link in
            let result = await Self.result { () async throws(BLEError) in
                try await peripheral.openChannel(psm: psm, CBL2CAPChannel.options)
            }
            guard let peer else { return nil }
            switch result {
            case .success(let opened):
                let channel = CBL2CAPChannel(opened, to: peer, loop: link.host.hub.loop)
                return { $0.delegate?.peripheral($0, didOpen: channel, error: nil) }
            case .failure(let error):
                if error.code == .disconnecting { return nil }
                // The end of the link is reported by the link; that of a channel alone has no other callback.
                if error.code == .disconnected, await !peripheral.isLinkUp() { return nil }
                let translated = error.translated
                return { $0.delegate?.peripheral($0, didOpen: nil, error: translated) }
            }
        }
    }

    /// Fails with `CBError.operationNotSupported`: Channel Sounding is not available on Linux.
    open func startChannelSoundingSession(_ configuration: CBChannelSoundingSessionConfiguration) {
        perform { _, _ in
            { peripheral in
                let text = "Channel Sounding is not available on Linux."
                peripheral.delegate?.peripheral(
                    peripheral,
                    didCompleteChannelSoundingSession: CBError(
                        .operationNotSupported, userInfo: [NSLocalizedDescriptionKey: text]))
            }
        }
    }

    /// Does nothing: there is no session to cancel.
    open func cancelChannelSoundingSession() {}
}

// MARK: - Making calls

extension CBPeripheral {
    /// Has the manager's hub connect the device.
    func connect(_ options: PeripheralLinkOptions) {
        let link = PeripheralLink(weakSelf, to: peer, of: managerID, on: callbacks, options, host: host)
        let hub = host.hub
        let old = own.withLock { state -> CBPeripheralState? in
            guard state.state == .disconnected || state.state == .disconnecting else { return nil }
            defer { state.state = .connecting }
            state.link = link
            // Before an observer or another thread can cancel it.
            hub.post { $0.connect(link) }
            return state.state
        }
        guard let old else { return }
        observers.changed(.state, on: self, from: old, to: CBPeripheralState.connecting)
        manager?.keepState()
    }

    /// Has the manager's hub end the connection, or the attempt.
    func disconnect() {
        let hub = host.hub
        let couldSend = canSendWriteWithoutResponse
        let old = own.withLock { state -> CBPeripheralState? in
            guard let link = state.link, state.state == .connected || state.state == .connecting else { return nil }
            defer { state.state = .disconnecting }
            // Before an observer or another thread can connect again.
            hub.post { $0.disconnect(link) }
            return state.state
        }
        guard let old else { return }
        observers.changed(.state, on: self, from: old, to: CBPeripheralState.disconnecting)
        if old == .connected { sendingChanged(from: couldSend, to: false) }
        manager?.keepState()
    }

    /// Informs the observers of `canSendWriteWithoutResponse`, if it has changed with the state.
    private func sendingChanged(from old: Bool, to new: Bool) {
        if old != new { observers.changed(.canSendWriteWithoutResponse, on: self, from: old, to: new) }
    }

    /// Makes a call, in its turn.
    ///
    /// - Parameter attribute: The attribute whose handle the call has; `nil` if it has none.
    private func perform(
        _ turn: PeripheralLink.Turn = .shared, with attribute: CBAttribute? = nil, bytes: Int = 0,
        isCommand: Bool = false,
        _ run: @escaping @Sendable (Peripheral, PeripheralLink) async -> PeripheralLink.Report?
    ) {
        let (current, number) = own.withLock { ($0.state == .connected ? $0.link : nil, $0.number) }
        guard let link = current else { return logNotConnected() }
        // Since it was checked its link may have ended, and the number be that of the next one.
        if let attribute, !isOwn(attribute) { return logForeign(attribute) }
        let cost = CallCost(bytes: bytes, isCommand: isCommand)
        guard case .taken(let endsSending) = link.flow.begin(cost) else {
            return Misuse.log(
                "\(self) has too many calls waiting: this one is dropped. Wait for callbacks before making more",
                host: host)
        }
        let call = PeripheralLink.Call(link: number, cost: cost, turn: turn, run: run)
        host.hub.post { _ in link.assumeIsolated { $0.add(call) } }
        // After the call, as an observer may make others.
        if endsSending { observers.changed(.canSendWriteWithoutResponse, on: self, from: true, to: false) }
    }

    private func logNotConnected() {
        Misuse.log("\(self) can only accept commands while in the connected state", host: host)
    }

    private static func result<Value: Sendable>(
        _ body: () async throws(BLEError) -> Value
    ) async -> Result<Value, BLEError> {
        do throws(BLEError) {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    /// Returns what is reported of a result: `apply` records a value, then `finish` informs the delegate. What ended
    /// with the link is not reported.
    private static func report<Value: Sendable>(
        _ result: Result<Value, BLEError>, translating translation: KeyPath<BLEError, any Error> = \.translated,
        _ apply: @escaping @Sendable (CBPeripheral, Value) -> Void = { _, _ in },
        finish: @escaping @Sendable (CBPeripheral, (any Error)?) -> Void
    ) -> PeripheralLink.Report? {
        switch result {
        case .success(let value):
            return { peripheral in
                apply(peripheral, value)
                finish(peripheral, nil)
            }
        case .failure(let error):
            if error.code == .disconnected || error.code == .disconnecting { return nil }
            let translated = error[keyPath: translation]
            return { finish($0, translated) }
        }
    }

    private static func filter(_ uuids: [CBUUID]?) -> [BluetoothUUID]? {
        guard let uuids, !uuids.isEmpty else { return nil }
        return uuids.map(\.value)
    }
}

// MARK: - The attributes

extension CBPeripheral {
    private func setServices(_ services: [CBService]?) {
        let old = attributes.set(services)
        observers.changed(.services, on: self, from: old as Any, to: services as Any)
    }

    private func remote(of service: CBService) -> GATTService? {
        if let remote = service.remote, isOwn(service) { return remote }
        logForeign(service)
        return nil
    }

    private func remote(of characteristic: CBCharacteristic) -> GATTCharacteristic? {
        if let remote = characteristic.remote, isOwn(characteristic) { return remote }
        logForeign(characteristic)
        return nil
    }

    private func remote(of descriptor: CBDescriptor) -> GATTDescriptor? {
        if let remote = descriptor.remote, isOwn(descriptor) { return remote }
        logForeign(descriptor)
        return nil
    }

    private func isOwn(_ attribute: CBAttribute) -> Bool {
        guard let service = attribute.owner else { return false }
        return service.peripheral === self && service.isValid
    }

    private func logForeign(_ attribute: CBAttribute) {
        // The attributes of an ended link are not valid either, but this is the nearer reason.
        guard state == .connected else { return logNotConnected() }
        Misuse.log("\(attribute) is not a valid attribute of \(self): discover it again", host: host)
    }
}

// MARK: - On the delegate's queue

extension CBPeripheral {
    /// Changes the state, if the link is still the current one, and the state is the expected one; returns whether
    /// that is so.
    private func change(
        to new: CBPeripheralState, from expected: CBPeripheralState? = nil, by link: PeripheralLink,
        _ update: (inout State) -> Void = { _ in }
    ) -> Bool {
        let couldSend = canSendWriteWithoutResponse
        let old = own.withLock { state -> CBPeripheralState? in
            guard state.link === link, expected == nil || state.state == expected else { return nil }
            defer { state.state = new }
            update(&state)
            if new == .disconnected { state.link = nil }
            return state.state
        }
        guard let old else { return false }
        if old != new { observers.changed(.state, on: self, from: old, to: new) }
        // An observer of the state may have cancelled the connection, or filled the queue of the link.
        sendingChanged(from: couldSend, to: canSendWriteWithoutResponse)
        manager?.keepState()
        return true
    }

    /// What the next run of the program is to know of a connection; `nil` if there is none.
    var kept: CentralManagerState.Device? {
        let (link, state, name) = own.withLock { ($0.link, $0.state, $0.name) }
        guard let link, state == .connected || state == .connecting else { return nil }
        return CentralManagerState.Device(
            identifier: identifier, name: name, reconnects: link.options.reconnects)
    }

    /// - Parameter name: The name of the device that was known when the link began.
    func connected(_ link: PeripheralLink, number: UInt64, mtu: Int, name: String?) {
        // A connection that the program has cancelled in the meantime is reported as cancelled alone.
        let isAwaited = own.withLock { $0.link === link && $0.state == .connecting }
        guard isAwaited else { return }
        // Before another thread can use them on the new link: after a loss they stay until here.
        setServices(nil)
        // Another manager may have found it since this object was created.
        if let name { advertisedName(name) }
        // An observer of the services or of the name may have cancelled the connection.
        let isUp = change(to: .connected, from: .connecting, by: link) { state in
            state.number = number
            state.mtu = mtu
        }
        guard isUp else { return }
        if let manager { manager.delegate?.centralManager(manager, didConnect: self) }
    }

    func failedToConnect(
        _ link: PeripheralLink, _ error: CBError, isOfThisMachine: Bool, at time: CFAbsoluteTime
    ) {
        let (isCurrent, isCancelled) = own.withLock { ($0.link === link, $0.hasCancelled(link)) }
        // What the run before had is not lost because, for example, the disk with the bonds is mounted late.
        if isCurrent, isOfThisMachine, link.options.isRestored, let kept { manager?.keepFailed(kept, peer) }
        let isDown = change(to: .disconnected, by: link) || state != .connected
        // Those of a lost link have stayed until now.
        if isDown, services != nil { setServices(nil) }
        guard let manager else { return }
        if isCancelled {
            manager.delegate?.centralManager(
                manager, didDisconnectPeripheral: self, timestamp: time, isReconnecting: false, error: nil)
        } else {
            manager.delegate?.centralManager(manager, didFailToConnect: self, error: error)
        }
    }

    func disconnected(_ link: PeripheralLink, _ error: CBError?, isReconnecting: Bool, at time: CFAbsoluteTime) {
        // A link that the program has cancelled, and asked for again, reports its end with the new state.
        let isCancelled = own.withLock { $0.hasCancelled(link) }
        // The end of the new attempt is on its way.
        if isReconnecting, isCancelled { return }
        let isCurrent = change(to: isReconnecting ? .connecting : .disconnected, by: link)
        if !isReconnecting, isCurrent || state != .connected { setServices(nil) }
        guard let manager else { return }
        manager.delegate?.centralManager(
            manager, didDisconnectPeripheral: self, timestamp: time, isReconnecting: isReconnecting,
            error: isCancelled ? nil : error)
    }

    func abandoned(_ link: PeripheralLink) {
        if change(to: .disconnected, by: link) { setServices(nil) }
    }

    func advertisedName(_ name: String) {
        guard self.name == nil else { return }
        setName(name)
    }

    func named(_ name: String) {
        guard self.name != name else { return }
        setName(name)
        delegate?.peripheralDidUpdateName(self)
    }

    private func setName(_ name: String) {
        let old = own.withLock { state in
            defer { state.name = name }
            return state.name
        }
        observers.changed(.name, on: self, from: old as Any, to: Optional(name) as Any)
    }

    func isReadyToWrite(_ link: PeripheralLink) {
        // The link may have ended, or have been cancelled, or have no room again.
        guard link.flow.open(), canSendWriteWithoutResponse else { return }
        observers.changed(.canSendWriteWithoutResponse, on: self, from: false, to: true)
        delegate?.peripheralIsReady(toSendWriteWithoutResponse: self)
    }

    func received(_ bytes: [UInt8], from handle: AttributeHandle) {
        guard let characteristic = attributes.characteristic(at: handle), characteristic.isNotifying else { return }
        characteristic.setValue(Data(bytes))
        delegate?.peripheral(self, didUpdateValueFor: characteristic, error: nil)
    }

    func valuesEnded(of handle: AttributeHandle) {
        attributes.characteristic(at: handle)?.setNotifying(false)
    }

    func servicesChanged(_ handles: ClosedRange<AttributeHandle>) {
        let (rest, invalidated) = attributes.services(without: handles)
        setServices(rest)
        delegate?.peripheral(self, didModifyServices: invalidated)
    }
}
