// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// As it would be written for iOS: it imports CoreBluetooth alone, and is compiled as Swift 5.

import CoreBluetooth

/// Finds a heart rate belt, and keeps what it sends.
public class BeltReader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    let heartRateService = CBUUID(string: "180D")
    let measurementCharacteristic = CBUUID(string: "2A37")
    let locationCharacteristic = CBUUID(string: "2A38")

    var manager: CBCentralManager!
    var belt: CBPeripheral?
    let queue: DispatchQueue?

    public var steps: [String] = []
    public var rates: [UInt8] = []
    public var onStep: ((String) -> Void)?

    public init(queue: DispatchQueue? = nil) {
        self.queue = queue
        super.init()
    }

    public func start() {
        manager = CBCentralManager(
            delegate: self, queue: queue, options: [CBCentralManagerOptionShowPowerAlertKey: true])
    }

    public func stop() {
        if let belt = belt { manager.cancelPeripheralConnection(belt) }
    }

    func step(_ text: String) {
        steps.append(text)
        onStep?(text)
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        switch central.state {
        case .unknown, .resetting, .unsupported, .unauthorized, .poweredOff:
            step("not ready")
        case .poweredOn:
            step("ready")
            central.scanForPeripherals(
                withServices: [heartRateService], options: [CBCentralManagerScanOptionAllowDuplicatesKey: false])
        @unknown default:
            break
        }
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        guard belt == nil, RSSI.intValue > -80 else { return }
        step("found \(advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? "unnamed")")
        belt = peripheral
        peripheral.delegate = self
        central.stopScan()
        central.connect(peripheral, options: nil)
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        step("connected")
        peripheral.discoverServices([heartRateService])
    }

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?
    ) {
        step("disconnected \(error == nil)")
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services ?? [] {
            step("service \(service.uuid)")
            peripheral.discoverCharacteristics([measurementCharacteristic, locationCharacteristic], for: service)
        }
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?)
    {
        for characteristic in service.characteristics! {
            if characteristic.properties.contains(.read) { peripheral.readValue(for: characteristic) }
            if characteristic.properties.contains(.notify) { peripheral.setNotifyValue(true, for: characteristic) }
        }
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?
    ) {
        guard let data = characteristic.value else { return }
        switch characteristic.uuid {
        case locationCharacteristic: step("location \(data.first ?? 0)")
        case measurementCharacteristic:
            rates.append(data[1])
            step("rate")
        default: break
        }
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) {
        if let error = error as? CBATTError, error.code == .insufficientAuthentication { step("pair first") }
        if let error = error as NSError?, error.domain == CBErrorDomain { step("failed") }
        step("notifying \(characteristic.isNotifying)")
    }
}
