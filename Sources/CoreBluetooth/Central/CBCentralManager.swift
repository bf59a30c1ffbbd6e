internal import BLELinux
internal import BareBLE
internal import Logging

/// Scans for devices, and connects to them.
///
/// All managers of a process share one adapter and its links: a device that several managers connect to has one link,
/// which ends when the last one has cancelled its connection.
///
/// Methods may be called on any thread. They never wait, and what they lead to is reported to the delegate on the
/// manager's queue, never from within the call. A method that is called in another state than `.poweredOn` does nothing
/// but log one line.
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
        public static let channelSounding = Feature(rawValue: 1024)
    }

    private struct State {
        /// The number of the newest scan.
        var scan: UInt64 = 0
        /// What is scanned for, also for the next run of the program.
        var kept: CentralManagerState.Scan?
        var isScanning: Bool { kept != nil }
        /// The peripheral objects of this manager that are alive.
        var peripherals: [PeerID: WeakPeripheral] = [:]
        /// Devices of the run before whose connections failed for a reason of this machine. They are kept for the next
        /// run, until the program connects to them or cancels that.
        var failed: [PeerID: CentralManagerState.Device] = [:]
        /// The number of peripheral objects from which on those that are gone are forgotten.
        var pruneAt = 64
    }

    private let own = Lock(State())
    private let keeper: ManagerStateFile<CentralManagerState>?

    /// Creates a manager without a delegate, on the main queue.
    public convenience init() {
        self.init(delegate: nil, queue: nil, options: nil)
    }

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - delegate: The delegate, which the manager does not keep.
    ///   - queue: The queue for the callbacks; `nil` for the main queue, which needs `RunLoop.main.run()` or
    ///     `dispatchMain()`.
    public convenience init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// Creates a manager.
    ///
    /// With `CBCentralManagerOptionRestoreIdentifierKey`, the manager continues what one with this identifier did when
    /// the program ended: its scan, and its connections, which are established again as soon as the devices are in
    /// range. The delegate receives them by `centralManager(_:willRestoreState:)`, before the state. They begin after
    /// the first `.poweredOn` was reported, however late the adapter is. The state is kept in the directory of
    /// `CoreBluetoothHost.Settings`; without one nothing is restored, which the log states. A manager that is created
    /// while another one of the process has its identifier is not restored,
    /// and what it does is kept from the end of that one on.
    ///
    /// - Parameters:
    ///   - delegate: The delegate, which the manager does not keep.
    ///   - queue: The queue for the callbacks; `nil` for the main queue, which needs `RunLoop.main.run()` or
    ///     `dispatchMain()`.
    ///   - options: With `CBCentralManagerOptionShowPowerAlertKey`, the adapter is switched on, if the process has
    ///     CAP_NET_ADMIN. `CBCentralManagerOptionRestoreIdentifierKey` as above. Others have no effect on Linux.
    public init(
        delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
    ) {
        let opened = (options?[CBCentralManagerOptionRestoreIdentifierKey] as? String).flatMap {
            CoreBluetoothHost.current.states.open($0, kind: "central", as: CentralManagerState.self)
        }
        keeper = opened?.keeper
        super.init(on: queue)
        anyDelegate = delegate
        register(powerOn: options?[CBCentralManagerOptionShowPowerAlertKey])
        if let former = opened?.former { restore(former) }
        keeper?.begin()
        start()
    }

    deinit { keeper?.end(with: CentralManagerState()) }

    /// The delegate. A delegate that is set after the state was reported is notified of it.
    open weak var delegate: (any CBCentralManagerDelegate)? {
        get { anyDelegate as? any CBCentralManagerDelegate }
        set { anyDelegate = newValue }
    }

    // MARK: Scanning

    /// A Boolean value that indicates whether the manager scans; also while a restored scan waits for the adapter.
    open var isScanning: Bool { own.withLock { $0.isScanning } }

    /// Returns a Boolean value that indicates whether all of the features are supported.
    ///
    /// The controller is asked with the first scan or connection of the process, and `.extendedScanAndConnect` is not
    /// reported as supported before. Channel Sounding is never supported.
    open class func supports(_ features: Feature) -> Bool {
        features.isSubset(of: CoreBluetoothHost.existing?.hub.features.value ?? [])
    }

    /// Scans for devices, instead of the scan before.
    ///
    /// Without duplicates a device is reported once, and once more if its scan response is heard later. A scan needs
    /// CAP_NET_RAW; without it, `isScanning` becomes `false` again, and the log states what to do.
    ///
    /// - Parameters:
    ///   - serviceUUIDs: Services of which a device has to advertise one; `nil` or an empty array for all devices.
    ///   - options: `CBCentralManagerScanOptionAllowDuplicatesKey` and
    ///     `CBCentralManagerScanOptionSolicitedServiceUUIDsKey`.
    open func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
        guard isPoweredOn() else { return }
        let solicited = options?[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] as? [CBUUID]
        let duplicates = options?[CBCentralManagerScanOptionAllowDuplicatesKey] as? NSNumber
        scan(
            CentralManagerState.Scan(
                services: (serviceUUIDs ?? []).map(\.uuidString), solicited: (solicited ?? []).map(\.uuidString),
                allowsDuplicates: duplicates?.boolValue ?? false))
    }

    private func scan(_ scan: CentralManagerState.Scan) {
        var filter = ScanFilter.any
        filter.services = Set(scan.services.compactMap { BluetoothUUID($0) })
        filter.solicitedServices = Set(scan.solicited.compactMap { BluetoothUUID($0) })
        let settings = ScanSettings.balanced.duplicates(scan.allowsDuplicates ? .all : .changed)
        let (id, hub) = (id, host.hub)
        setScan(scan) { number in
            let request = ScanRequest(
                number: number, filter: filter, settings: settings, allowsDuplicates: scan.allowsDuplicates)
            hub.post { $0.scan(id, request) }
        }
    }

    /// Stops the scan. No device is reported afterwards.
    open func stopScan() {
        guard isPoweredOn() else { return }
        endScan()
    }

    /// Ends the scan. What it has heard is not reported any more.
    private func endScan() {
        let (id, hub) = (id, host.hub)
        setScan(nil) { _ in hub.post { $0.stopScan(id) } }
    }

    /// Sets what is scanned for from now on. `post` has the hub do that, by its number, before an observer or another
    /// thread can change it again.
    private func setScan(_ scan: CentralManagerState.Scan?, _ post: (UInt64) -> Void) {
        let old = own.withLock { state in
            defer { state.kept = scan }
            state.scan += 1
            post(state.scan)
            return state.isScanning
        }
        let isOn = scan != nil
        if old != isOn { observers.changed(.isScanning, on: self, from: old, to: isOn) }
        keepState()
    }

    // MARK: Connecting

    /// Connects to a device, now or whenever it is in range: the attempt has no time limit, and ends with
    /// `cancelPeripheralConnection(_:)`, with the adapter, or when the last reference to the peripheral goes away.
    ///
    /// - Parameters:
    ///   - peripheral: A device of this manager. Keep a reference to it.
    ///   - options: `CBConnectPeripheralOptionStartDelayKey` and `CBConnectPeripheralOptionEnableAutoReconnect` are
    ///     used; the others have no effect on Linux.
    open func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil) {
        guard isPoweredOn(), isOwn(peripheral) else { return }
        var link = PeripheralLinkOptions()
        if let delay = (options?[CBConnectPeripheralOptionStartDelayKey] as? NSNumber)?.doubleValue, delay > 0 {
            // A longer one could exceed what a `Duration` holds.
            link.startDelay = .seconds(min(delay, 31_536_000))
        }
        link.reconnects = (options?[CBConnectPeripheralOptionEnableAutoReconnect] as? NSNumber)?.boolValue ?? false
        link.isRestored = own.withLock { $0.failed.removeValue(forKey: peripheral.peer) } != nil
        peripheral.connect(link)
    }

    /// Cancels a connection, or the attempt to establish one.
    ///
    /// It ends with `centralManager(_:didDisconnectPeripheral:error:)` without an error in both cases. Calls that are
    /// under way may not be reported any more. The link itself stays up while other managers use it.
    open func cancelPeripheralConnection(_ peripheral: CBPeripheral) {
        guard isPoweredOn(), isOwn(peripheral) else { return }
        peripheral.disconnect()
        if own.withLock({ $0.failed.removeValue(forKey: peripheral.peer) }) != nil { keepState() }
    }

    // MARK: Known devices

    /// Returns the devices with these identifiers, in their order; identifiers that are not of this module are left
    /// out.
    ///
    /// An identifier contains the address, so it holds after a restart and on other machines. The result is empty in
    /// any state but `.poweredOn`.
    open func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [CBPeripheral] {
        guard isPoweredOn() else { return [] }
        return identifiers.compactMap(PeerIdentifier.peer).map(peripheral)
    }

    /// Returns the devices that this process is connected to, by any of its managers, and that are known to offer one
    /// of the services. To use one, connect to it. Links of other programs are not known.
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
        let (object, _) = own.withLock { state -> (CBPeripheral, [PeerID: CBPeripheral]) in
            // Another thread may have been faster.
            if let known = state.peripherals[peer]?.object { return (known, [:]) }
            // These may be the last references: they go away when the lock is released.
            var alive: [PeerID: CBPeripheral] = [:]
            if state.peripherals.count >= state.pruneAt {
                alive = state.peripherals.compactMapValues(\.object)
                state.peripherals = alive.mapValues(\.weakSelf)
                state.pruneAt = max(64, 2 * alive.count)
            }
            state.peripherals[peer] = new.weakSelf
            return (new, alive)
        }
        return object
    }

    /// A scan that was asked for since the adapter returned, and before its loss was reported here, ends with it too.
    override func adapterIsLost(_ state: CBManagerState) { endScan() }

    override func reportState() { delegate?.centralManagerDidUpdateState(self) }

    override func reportRestored(_ restored: [String: Any]) {
        delegate?.centralManager(self, willRestoreState: restored)
    }

    // MARK: Restoring

    /// Keeps the scan and the connections for the next run of the program.
    func keepState() { keeper?.changed { [weak self] in self?.kept } }

    /// Keeps a device of the run before although its connection failed.
    func keepFailed(_ device: CentralManagerState.Device, _ peer: PeerID) {
        own.withLock { $0.failed[peer] = device }
    }

    private var kept: CentralManagerState {
        let (scan, peripherals, failed) = own.withLock { state in
            (state.kept, state.peripherals.values.compactMap(\.object), state.failed)
        }
        let live = peripherals.compactMap(\.kept)
        let others = failed.values.filter { one in !live.contains { $0.identifier == one.identifier } }
        let devices = (live + others).sorted { $0.identifier.uuidString < $1.identifier.uuidString }
        return CentralManagerState(devices: devices, scan: scan)
    }

    private func restore(_ former: CentralManagerState) {
        var restored: [String: Any] = [:]
        let peripherals = former.devices.compactMap { device -> CBPeripheral? in
            guard let peer = PeerIdentifier.peer(of: device.identifier) else { return nil }
            if let name = device.name, host.names[peer] == nil { host.names[peer] = name }
            let peripheral = peripheral(peer)
            peripheral.connect(PeripheralLinkOptions(reconnects: device.reconnects, isRestored: true))
            return peripheral
        }
        restored[CBCentralManagerRestoredStatePeripheralsKey] = peripherals
        if let scan = former.scan {
            restored[CBCentralManagerRestoredStateScanServicesKey] = scan.services.compactMap {
                BluetoothUUID($0).map(CBUUID.init)
            }
            var options: [String: Any] = [
                CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: scan.allowsDuplicates)
            ]
            if !scan.solicited.isEmpty {
                options[CBCentralManagerScanOptionSolicitedServiceUUIDsKey] = scan.solicited.compactMap {
                    BluetoothUUID($0).map(CBUUID.init)
                }
            }
            restored[CBCentralManagerRestoredStateScanOptionsKey] = options
            self.scan(scan)
        }
        setRestored(restored)
    }

    // MARK: Misuse

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
        endScan()
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
