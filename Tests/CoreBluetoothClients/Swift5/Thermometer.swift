// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

import CoreBluetooth

/// Offers a temperature to centrals.
public class Thermometer: NSObject, CBPeripheralManagerDelegate {
    let service = CBUUID(string: "1809")
    let temperature = CBUUID(string: "2A1C")

    var manager: CBPeripheralManager!
    var characteristic: CBMutableCharacteristic!
    let queue: DispatchQueue

    public var steps: [String] = []
    public var onStep: ((String) -> Void)?

    public init(queue: DispatchQueue) {
        self.queue = queue
        super.init()
    }

    public func start() { manager = CBPeripheralManager(delegate: self, queue: queue) }

    public func stopAdvertising() { manager.stopAdvertising() }

    func step(_ text: String) {
        steps.append(text)
        onStep?(text)
    }

    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        characteristic = CBMutableCharacteristic(
            type: temperature, properties: [.read, .notify, .write], value: nil, permissions: [.readable, .writeable])
        let offered = CBMutableService(type: service, primary: true)
        offered.characteristics = [characteristic]
        peripheral.add(offered)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        step("added \(error == nil)")
        peripheral.startAdvertising([
            CBAdvertisementDataServiceUUIDsKey: [service.uuid], CBAdvertisementDataLocalNameKey: "Thermometer",
        ])
    }

    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        step("advertising \(peripheral.isAdvertising)")
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        request.value = "21.5".data(using: .utf8)!.subdata(in: request.offset..<4)
        peripheral.respond(to: request, withResult: .success)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        for request in requests { step("written \(request.value?.count ?? 0)") }
        peripheral.respond(to: requests[0], withResult: .success)
    }

    public func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {
        let isSent = peripheral.updateValue(
            "22.0".data(using: .utf8)!, for: self.characteristic, onSubscribedCentrals: [central])
        step("subscribed \(isSent)")
    }
}
