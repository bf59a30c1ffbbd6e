// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

import CoreBluetooth

/// What a heart-rate application is notified of.
public protocol HeartRateMonitorDelegate: AnyObject {
    func monitor(_ monitor: HeartRateMonitor, didChange status: String)
    func monitor(_ monitor: HeartRateMonitor, didReceive rate: Int, at location: String?)
}

/// The model of a heart-rate application: a delegate of CoreBluetooth with a delegate of its own. It keeps a belt over
/// losses of the link and restarts of the program.
public final class HeartRateMonitor: NSObject, @unchecked Sendable {
    private static let service = CBUUID(string: "180D")
    private static let measurement = CBUUID(string: "2A37")
    private static let location = CBUUID(string: "2A38")
    private static let restoration = "com.example.heart-rate"

    public weak var delegate: (any HeartRateMonitorDelegate)?
    private var manager: CBCentralManager?
    private var belt: CBPeripheral?
    private var place: String?

    public func begin(on queue: DispatchQueue) {
        manager = CBCentralManager(
            delegate: self, queue: queue, options: [CBCentralManagerOptionRestoreIdentifierKey: Self.restoration])
    }

    public func end() {
        if let belt { manager?.cancelPeripheralConnection(belt) }
    }

    private static func rate(in value: Data) -> Int? {
        guard let flags = value.first, value.count > 1 else { return nil }
        if flags & 1 == 0 { return Int(value[1]) }
        return value.count > 2 ? Int(value[1]) | Int(value[2]) << 8 : nil
    }
}

extension HeartRateMonitor: CBCentralManagerDelegate {
    public func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        belt = (dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral])?.first
        belt?.delegate = self
        delegate?.monitor(self, didChange: "restored")
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        guard let belt else { return central.scanForPeripherals(withServices: [Self.service]) }
        if belt.state == .disconnected { central.connect(belt) }
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        central.stopScan()
        belt = peripheral
        peripheral.delegate = self
        central.connect(peripheral, options: [CBConnectPeripheralOptionNotifyOnDisconnectionKey: true])
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        delegate?.monitor(self, didChange: "connected")
        peripheral.discoverServices([Self.service])
    }

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        delegate?.monitor(self, didChange: error == nil ? "ended" : "lost")
        if error != nil { central.connect(peripheral) }
    }
}

extension HeartRateMonitor: CBPeripheralDelegate {
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        guard let service = peripheral.services?.first(where: { $0.uuid == Self.service }) else { return }
        peripheral.discoverCharacteristics([Self.measurement, Self.location], for: service)
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) {
        for characteristic in service.characteristics ?? [] {
            switch characteristic.uuid {
            case Self.measurement: peripheral.setNotifyValue(true, for: characteristic)
            case Self.location: peripheral.readValue(for: characteristic)
            default: break
            }
        }
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        guard error == nil, let value = characteristic.value else { return }
        if characteristic.uuid == Self.location { place = value.first == 1 ? "chest" : "elsewhere" }
        if characteristic.uuid == Self.measurement, let rate = Self.rate(in: value) {
            delegate?.monitor(self, didReceive: rate, at: place)
        }
    }
}
