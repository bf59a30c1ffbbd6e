internal import BLELinux
internal import BareBLE
internal import Logging
internal import Synchronization

/// Scans for devices, and connects to them.
///
/// All managers of a process share one adapter and its links: a device that several managers connect to has one link, which
/// ends when the last one has cancelled its connection.
///
/// Methods may be called on any thread. They never wait, and what they lead to is reported to the delegate on the manager's
/// queue, never from within the call. A method that is called in another state than `.poweredOn` does nothing but log one
/// line.
open class CBCentralManager: CBManager, @unchecked Sendable {
    /// A feature of a central manager.
    public struct Feature: OptionSet, Sendable {
        /// The bits of the set.
        public let rawValue: UInt

        /// Creates a set from its bits.
        public init(rawValue: UInt) {
            self.rawValue = rawValue
        }

        /// Extended advertising: scans and connections on secondary channels.
        public static let extendedScanAndConnect = Feature(rawValue: 1)
        /// Channel Sounding; not on Linux.
        public static let channelSounding = Feature(rawValue: 2)
    }

    private struct State {
        weak var delegate: (any CBCentralManagerDelegate)?
        /// Whether the state was reported while there was no delegate.
        var isUnreported = false
        var isScanning = false
        /// The number of the newest scan.
        var scan: UInt64 = 0
        /// The peripheral objects of this manager that are alive.
        var peripherals: [PeerID: WeakPeripheral] = [:]
        /// The number of peripheral objects from which on those that are gone are forgotten.
        var pruneAt = 64
    }

    private static let lastID = Atomic<UInt64>(0)

    let callbacks: CallbackQueue
    private let id = ManagerID(central: CBCentralManager.lastID.add(1, ordering: .relaxed).newValue)
    private let own: Lock<State>

    /// Creates a manager without a delegate, on the main queue.
    public convenience init() {
        self.init(delegate: nil, queue: nil, options: nil)
    }

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - delegate: The delegate, which the manager does not keep.
    ///   - queue: The queue for the callbacks; `nil` for the main queue, which needs `RunLoop.main.run()` or `dispatchMain()`.
    public convenience init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - delegate: The delegate, which the manager does not keep.
    ///   - queue: The queue for the callbacks; `nil` for the main queue, which needs `RunLoop.main.run()` or `dispatchMain()`.
    ///   - options: With `CBCentralManagerOptionShowPowerAlertKey`, the adapter is switched on, if the process has
    ///     CAP_NET_ADMIN. `CBCentralManagerOptionRestoreIdentifierKey` is accepted, and logged: nothing is restored.
    public init(
        delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
    ) {
        let host = CoreBluetoothHost.current
        callbacks = CallbackQueue(queue ?? .main, loop: host.hub.loop)
        own = Lock(State())
        super.init(on: host)
        self.delegate = delegate
        if options?[CBCentralManagerOptionRestoreIdentifierKey] != nil {
            host.logger.warning("state restoration is not available on Linux: the restore identifier has no effect")
        }
        let powerOn = (options?[CBCentralManagerOptionShowPowerAlertKey] as? NSNumber)?.boolValue ?? false
        let (weak, id, callbacks) = (WeakManager(self), id, callbacks)
        host.hub.post { $0.add(weak, id, callbacks, powerOn: powerOn) }
    }

    deinit {
        let id = id
        host.hub.post { $0.remove(id) }
    }

    // MARK: Delegate

    /// The delegate. A delegate that is set after the state was reported is notified of it.
    open weak var delegate: (any CBCentralManagerDelegate)? {
        get { own.withLock { $0.delegate } }
        set {
            if let newValue { DelegateCheck.warnIfMethodsOfSubclassesAreLost(newValue, host: host) }
            let isUnreported = own.withLock { state in
                state.delegate = newValue
                guard newValue != nil else { return false }
                defer { state.isUnreported = false }
                return state.isUnreported
            }
            guard isUnreported else { return }
            callbacks.post { [weak self] in if let self { delegate?.centralManagerDidUpdateState(self) } }
        }
    }

    // MARK: Scanning

    /// A Boolean value that indicates whether the manager scans.
    open var isScanning: Bool { own.withLock { $0.isScanning } }

    /// Returns a Boolean value that indicates whether all of the features are supported.
    ///
    /// The call cannot examine an adapter, so `.extendedScanAndConnect` is reported as supported: BareBLE
    /// uses it where the controller has it. Channel Sounding is never supported.
    open class func supports(_ features: Feature) -> Bool { !features.contains(.channelSounding) }

    /// Scans for devices, instead of the scan before.
    ///
    /// Without duplicates a device is reported once, and once more if its scan response is heard later. A scan needs
    /// CAP_NET_RAW; without it, `isScanning` becomes `false` again, and the log states what to do.
    ///
    /// - Parameters:
    ///   - serviceUUIDs: Services of which a device has to advertise one; `nil` or an empty array for all devices.
    ///   - options: `CBCentralManagerScanOptionAllowDuplicatesKey` and `CBCentralManagerScanOptionSolicitedServiceUUIDsKey`.
    open func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
        guard isPoweredOn() else { return }
        let number = own.withLock { state in
            state.scan += 1
            return state.scan
        }
        setScanning(true)
        var filter = ScanFilter.any
        filter.services = Set((serviceUUIDs ?? []).map(\.value))
        let solicited = options?[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] as? [CBUUID]
        filter.solicitedServices = Set((solicited ?? []).map(\.value))
        let duplicates = options?[CBCentralManagerScanOptionAllowDuplicatesKey] as? NSNumber
        let allowsDuplicates = duplicates?.boolValue ?? false
        let request = ScanRequest(
            number: number, filter: filter,
            settings: ScanSettings.balanced.duplicates(allowsDuplicates ? .all : .changed),
            allowsDuplicates: allowsDuplicates)
        let id = id
        host.hub.post { $0.scan(id, request) }
    }

    /// Stops the scan. No device is reported afterwards.
    open func stopScan() {
        guard isPoweredOn() else { return }
        own.withLock { $0.scan += 1 }
        setScanning(false)
        let id = id
        host.hub.post { $0.stopScan(id) }
    }

    private func setScanning(_ isOn: Bool) {
        let old = own.withLock { state in
            defer { state.isScanning = isOn }
            return state.isScanning
        }
        observers.changed(.isScanning, on: self, from: old, to: isOn)
    }

    // MARK: Connecting

    /// Connects to a device, now or whenever it is in range: the attempt has no time limit, and ends with
    /// `cancelPeripheralConnection(_:)`, with the adapter, or when the last reference to the peripheral goes away.
    ///
    /// - Parameters:
    ///   - peripheral: A device of this manager. Keep a reference to it.
    ///   - options: `CBConnectPeripheralOptionStartDelayKey` and `CBConnectPeripheralOptionEnableAutoReconnect` are used; the
    ///     others have no effect on Linux.
    open func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil) {
        guard isPoweredOn(), isOwn(peripheral) else { return }
        var link = LinkOptions()
        if let delay = (options?[CBConnectPeripheralOptionStartDelayKey] as? NSNumber)?.doubleValue, delay > 0 {
            // A longer one could exceed what a `Duration` holds.
            link.startDelay = .seconds(min(delay, 31_536_000))
        }
        link.reconnects = (options?[CBConnectPeripheralOptionEnableAutoReconnect] as? NSNumber)?.boolValue ?? false
        peripheral.connect(link)
    }

    /// Cancels a connection, or the attempt to establish one.
    ///
    /// It ends with `centralManager(_:didDisconnectPeripheral:error:)` without an error in both cases. Calls that are under
    /// way may not be reported any more. The link itself stays up while other managers use it.
    open func cancelPeripheralConnection(_ peripheral: CBPeripheral) {
        guard isPoweredOn(), isOwn(peripheral) else { return }
        peripheral.disconnect()
    }

    // MARK: Known devices

    /// Returns the devices with these identifiers, in their order; identifiers that are not of this module are left out.
    ///
    /// An identifier contains the address, so it holds after a restart and on other machines. The result is empty in any
    /// state but `.poweredOn`.
    open func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [CBPeripheral] {
        guard isPoweredOn() else { return [] }
        return identifiers.compactMap(PeerIdentifier.peer).map(peripheral)
    }

    /// Returns the devices that this process is connected to, by any of its managers, and that are known to offer one of the
    /// services. To use one, connect to it. Links of other programs are not known.
    open func retrieveConnectedPeripherals(withServices serviceUUIDs: [CBUUID]) -> [CBPeripheral] {
        guard isPoweredOn() else { return [] }
        return host.hub.connected.peers(with: serviceUUIDs.map(\.value)).map(peripheral)
    }

    /// Has connections of this process, by any of its managers, reported to the delegate; `nil` ends that.
    ///
    /// - Parameter options: The devices, by services or identifiers; an empty dictionary for all.
    open func registerForConnectionEvents(options: [CBConnectionEventMatchingOption: Any]? = nil) {
        guard isPoweredOn() else { return }
        let services = (options?[.serviceUUIDs] as? [CBUUID])?.map(\.value)
        let peers = (options?[.peripheralUUIDs] as? [UUID])?.compactMap(PeerIdentifier.peer)
        let filter = options.map { _ in ConnectionEventFilter(services: services, peers: peers.map(Set.init)) }
        let id = id
        host.hub.post { $0.setConnectionEvents(filter, of: id) }
    }

    /// Returns the object for a device: one for each device, as long as anything refers to it.
    func peripheral(_ peer: PeerID) -> CBPeripheral {
        if let known = own.withLock({ $0.peripherals[peer]?.object }) { return known }
        let new = CBPeripheral(peer, of: self, id: id)
        return own.withLock { state in
            // Another thread may have been faster.
            if let known = state.peripherals[peer]?.object { return known }
            if state.peripherals.count >= state.pruneAt {
                state.peripherals = state.peripherals.filter { $0.value.object != nil }
                state.pruneAt = max(64, 2 * state.peripherals.count)
            }
            state.peripherals[peer] = new.weakSelf
            return new
        }
    }

    override func adapterChanged(_ new: CBManagerState) {
        guard new != state else { return }
        if new != .poweredOn {
            own.withLock { $0.scan += 1 }
            if isScanning { setScanning(false) }
        }
        setState(new)
        // In one step, so that a delegate that is set meanwhile is notified here, or when it is set.
        let delegate = own.withLock { state in
            state.isUnreported = state.delegate == nil
            return state.delegate
        }
        delegate?.centralManagerDidUpdateState(self)
    }

    // MARK: Misuse

    private func isPoweredOn() -> Bool {
        if state == .poweredOn { return true }
        Misuse.log("\(self) can only accept this command while in the powered on state", host: host)
        return false
    }

    private func isOwn(_ peripheral: CBPeripheral) -> Bool {
        if peripheral.managerID == id { return true }
        Misuse.log("\(peripheral) was not found by \(self): connect to it with the manager that found it", host: host)
        return false
    }
}

// MARK: - On the delegate's queue

extension CBCentralManager {
    func discovered(_ peer: PeerID, _ result: ScanResult, in scan: UInt64) {
        guard own.withLock({ $0.scan == scan }) else { return }
        if let name = result.name { host.names[peer] = name }
        guard let delegate else { return }
        let peripheral = peripheral(peer)
        if let name = result.name { peripheral.advertisedName(name) }
        delegate.centralManager(
            self, didDiscover: peripheral, advertisementData: result.advertisementData,
            rssi: NSNumber(value: Int(result.rssi ?? 127)))
    }

    func scanFailed(_ error: BLEError, in scan: UInt64) {
        guard own.withLock({ $0.scan == scan }) else { return }
        host.logger.error("the scan has ended: \(error)")
        setScanning(false)
    }

    func connectionEvent(_ event: CBConnectionEvent, _ peer: PeerID) {
        delegate?.centralManager(self, connectionEventDidOccur: event, for: peripheral(peer))
    }
}

extension ScanResult {
    /// The contents of the advertisement and the scan response, as Apple's systems give them.
    fileprivate var advertisementData: [String: Any] {
        var data: [String: Any] = [CBAdvertisementDataIsConnectable: NSNumber(value: isConnectable)]
        if let name { data[CBAdvertisementDataLocalNameKey] = name }
        if let manufacturer = manufacturerData.first {
            let company = [UInt8(manufacturer.company & 0xFF), UInt8(manufacturer.company >> 8)]
            data[CBAdvertisementDataManufacturerDataKey] = Data(company + manufacturer.data)
        }
        if !serviceData.isEmpty {
            data[CBAdvertisementDataServiceDataKey] = Dictionary(
                serviceData.map { (CBUUID($0.service), Data($0.data)) }, uniquingKeysWith: { first, _ in first })
        }
        if !serviceUUIDs.isEmpty { data[CBAdvertisementDataServiceUUIDsKey] = serviceUUIDs.map(CBUUID.init) }
        if !solicitedServiceUUIDs.isEmpty {
            data[CBAdvertisementDataSolicitedServiceUUIDsKey] = solicitedServiceUUIDs.map(CBUUID.init)
        }
        if let txPower { data[CBAdvertisementDataTxPowerLevelKey] = NSNumber(value: Int(txPower)) }
        return data
    }
}
