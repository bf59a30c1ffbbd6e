// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// Headers of Apple's framework, by their names.
import CoreBluetooth.CBCentralManager
import CoreBluetooth.CBUUID

/// Reads the temperature of a `Thermometer`, subscribes to it, and writes to it.
public class ThermometerReader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    let service = CBUUID(string: "1809")
    let temperature = CBUUID(string: "2A1C")

    var manager: CBCentralManager!
    var device: CBPeripheral?
    let queue: DispatchQueue

    public var onStep: ((String) -> Void)?

    public init(queue: DispatchQueue) {
        self.queue = queue
        super.init()
    }

    public func start() { manager = CBCentralManager(delegate: self, queue: queue) }

    public func stop() {
        if let device = device { manager.cancelPeripheralConnection(device) }
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [service]) }
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        central.stopScan()
        device = peripheral
        peripheral.delegate = self
        central.connect(peripheral)
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        onStep?("connected")
        peripheral.discoverServices([service])
    }

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?
    ) {
        onStep?("disconnected \(error == nil)")
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services ?? [] { peripheral.discoverCharacteristics([temperature], for: service) }
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?)
    {
        guard let characteristic = service.characteristics?.first else { return }
        peripheral.readValue(for: characteristic)
        peripheral.writeValue(Data([1, 2]), for: characteristic, type: .withResponse)
        peripheral.setNotifyValue(true, for: characteristic)
    }

    public func peripheral(_ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: Error?)
    {
        onStep?("written \(error == nil)")
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?
    ) {
        onStep?(String(data: characteristic.value ?? Data(), encoding: .utf8) ?? "no text")
    }
}
