// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

import CoreBluetooth

/// What the first pages of iOS libraries show, written on plain CoreBluetooth: a list of devices whose entries expire, a
/// connect with a time-out, and a request whose response comes in several notifications.
public class DeviceWalk: NSObject, @unchecked Sendable {
    let version = CBUUID(string: "9D5A0006-3C7E-4B1F-8A26-E4710C95B3D8")

    let queue: DispatchQueue
    let expiry: TimeInterval
    // The rest is used on the queue.
    var manager: CBCentralManager!
    var lastSeen: [UUID: Date] = [:]
    var device: CBPeripheral?
    var missing = 0
    public private(set) var response = Data()
    public var onStep: ((String) -> Void)?

    public init(queue: DispatchQueue, expiry: TimeInterval) {
        self.queue = queue
        self.expiry = expiry
        super.init()
    }

    public func start() {
        manager = CBCentralManager(delegate: self, queue: queue)
    }

    /// Connects to the device that was found, or gives up after a time.
    public func connect(timeout: TimeInterval) {
        queue.async { [self] in
            guard let device = device else { return }
            manager.stopScan()
            manager.connect(device)
            queue.asyncAfter(deadline: .now() + timeout) { [weak self] in
                guard let self = self, device.state == .connecting else { return }
                self.step("timed out")
                self.manager.cancelPeripheralConnection(device)
            }
        }
    }

    /// Writes a request, and waits for as many bytes as it has.
    public func request(_ data: Data) {
        queue.async { [self] in
            response = Data()
            missing = data.count
            device?.writeValue(data, for: characteristic(uartReceive)!, type: .withResponse)
        }
    }

    public func stop() {
        queue.async { [self] in
            if let device = device { manager.cancelPeripheralConnection(device) }
        }
    }

    func step(_ text: String) { onStep?(text) }

    func characteristic(_ uuid: CBUUID) -> CBCharacteristic? {
        device?.services?.first?.characteristics?.first { $0.uuid == uuid }
    }

    func removeExpired() {
        guard manager.isScanning else { return }
        for (identifier, date) in lastSeen where date.addingTimeInterval(expiry) < Date() {
            lastSeen[identifier] = nil
            step("lost")
        }
        queue.asyncAfter(deadline: .now() + expiry / 4) { [weak self] in self?.removeExpired() }
    }
}

extension DeviceWalk: CBCentralManagerDelegate {
    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        central.scanForPeripherals(
            withServices: [uartService], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        removeExpired()
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        device = peripheral
        if lastSeen.updateValue(Date(), forKey: peripheral.identifier) == nil { step("found") }
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        step("connected")
        peripheral.delegate = self
        peripheral.discoverServices([uartService])
    }

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?
    ) {
        step("disconnected \(error == nil)")
    }
}

extension DeviceWalk: CBPeripheralDelegate {
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        guard let service = peripheral.services?.first else { return }
        peripheral.discoverCharacteristics([version, uartReceive, uartTransmit], for: service)
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?)
    {
        peripheral.readValue(for: characteristic(version)!)
        peripheral.setNotifyValue(true, for: characteristic(uartTransmit)!)
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) {
        if characteristic.isNotifying { step("listening") }
    }

    public func peripheral(_ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: Error?)
    {
        step("written \(error == nil)")
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?
    ) {
        guard let data = characteristic.value else { return }
        guard characteristic.uuid == uartTransmit else {
            return step("version \(String(decoding: data, as: UTF8.self))")
        }
        step("part")
        response.append(data)
        missing -= data.count
        if missing == 0 { step("response") }
    }
}
