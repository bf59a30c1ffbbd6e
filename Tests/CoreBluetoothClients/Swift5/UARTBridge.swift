// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

import CoreBluetooth

let uartService = CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
let uartReceive = CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
let uartTransmit = CBUUID(string: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E")

/// A serial line in both roles: what a central writes to this program goes to a device, and what the device sends goes
/// to the centrals that have subscribed. Both directions wait for room.
public class UARTBridge: NSObject {
    let queue: DispatchQueue
    var centralManager: CBCentralManager!
    var peripheralManager: CBPeripheralManager!
    var device: CBPeripheral?
    var deviceReceive: CBCharacteristic?
    var transmit: CBMutableCharacteristic!

    var toDevice: [Data] = []
    var toCentrals: [Data] = []
    public var onStep: ((String) -> Void)?

    public init(queue: DispatchQueue) {
        self.queue = queue
        super.init()
    }

    public func start() {
        centralManager = CBCentralManager(delegate: self, queue: queue)
        peripheralManager = CBPeripheralManager(delegate: self, queue: queue)
    }

    func forward() {
        while let device = device, let characteristic = deviceReceive, let next = toDevice.first,
            device.canSendWriteWithoutResponse
        {
            device.writeValue(next, for: characteristic, type: .withoutResponse)
            toDevice.removeFirst()
        }
        while let transmit = transmit, let next = toCentrals.first {
            guard peripheralManager.updateValue(next, for: transmit, onSubscribedCentrals: nil) else { return }
            toCentrals.removeFirst()
        }
    }
}

extension UARTBridge: CBCentralManagerDelegate, CBPeripheralDelegate {
    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [uartService], options: nil) }
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        central.stopScan()
        device = peripheral
        peripheral.delegate = self
        central.connect(peripheral, options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices([uartService])
    }

    public func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: Error?
    ) {
        deviceReceive = nil
        onStep?("disconnected, reconnecting \(isReconnecting)")
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services ?? [] {
            peripheral.discoverCharacteristics([uartReceive, uartTransmit], for: service)
        }
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?)
    {
        deviceReceive = service.characteristics?.first { $0.uuid == uartReceive }
        if let characteristic = service.characteristics?.first(where: { $0.uuid == uartTransmit }) {
            peripheral.setNotifyValue(true, for: characteristic)
        }
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?
    ) {
        onStep?("device ready")
        forward()
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?
    ) {
        guard let value = characteristic.value else { return }
        toCentrals.append(value)
        forward()
    }

    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { forward() }
}

extension UARTBridge: CBPeripheralManagerDelegate {
    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        transmit = CBMutableCharacteristic(type: uartTransmit, properties: .notify, value: nil, permissions: .readable)
        let receive = CBMutableCharacteristic(
            type: uartReceive, properties: [.write, .writeWithoutResponse], value: nil, permissions: .writeable)
        let service = CBMutableService(type: uartService, primary: true)
        service.characteristics = [receive, transmit]
        peripheral.add(service)
        peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [uartService]])
    }

    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        onStep?("advertising \(error == nil)")
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        toDevice += requests.compactMap { $0.value }
        peripheral.respond(to: requests[0], withResult: .success)
        forward()
    }

    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { forward() }
}
