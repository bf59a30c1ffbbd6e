// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// As it would be written for iOS: it imports CoreBluetooth alone, and is compiled as Swift 6.

import CoreBluetooth

/// A serial line over Bluetooth as `async` calls.
public final class AsyncLine: NSObject, @unchecked Sendable {
    public enum Failure: Error {
        case notConnected
    }

    private static let service = CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
    private static let receive = CBUUID(string: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
    private static let transmit = CBUUID(string: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E")

    // All of it is used on the queue.
    private let queue = DispatchQueue(label: "line")
    private var manager: CBCentralManager?
    private var device: CBPeripheral?
    private var writable: CBCharacteristic?
    private var opening: CheckedContinuation<Void, any Error>?
    private var reply: CheckedContinuation<Data, any Error>?

    /// Finds the device, connects, and subscribes.
    public func open() async throws {
        let manager = CBCentralManager(delegate: self, queue: queue)
        try await withCheckedThrowingContinuation { continuation in
            queue.async {
                self.manager = manager
                self.opening = continuation
            }
        }
    }

    /// Writes bytes, and returns the next value.
    public func echo(_ data: Data) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                guard let device, let writable, device.state == .connected else {
                    return continuation.resume(throwing: Failure.notConnected)
                }
                reply = continuation
                device.writeValue(data, for: writable, type: .withoutResponse)
            }
        }
    }

    public func close() {
        queue.async { [self] in
            if let device { manager?.cancelPeripheralConnection(device) }
        }
    }
}

extension AsyncLine: CBCentralManagerDelegate {
    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [Self.service]) }
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
        peripheral.discoverServices([Self.service])
    }

    public func centralManager(
        _ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?
    ) {
        opening?.resume(throwing: error ?? Failure.notConnected)
        opening = nil
    }
}

extension AsyncLine: CBPeripheralDelegate {
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) {
        writable = service.characteristics?.first { $0.uuid == Self.receive }
        for characteristic in service.characteristics ?? [] where characteristic.uuid == Self.transmit {
            peripheral.setNotifyValue(true, for: characteristic)
        }
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        if let error { opening?.resume(throwing: error) } else { opening?.resume() }
        opening = nil
    }

    public func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        reply?.resume(returning: characteristic.value ?? Data())
        reply = nil
    }
}

/// A model of a user interface: an actor's class conforms as on Apple's systems.
@MainActor public final class ScanModel: NSObject, @preconcurrency CBCentralManagerDelegate {
    public private(set) var names: [String] = []
    private var observation: NSKeyValueObservation?

    public func begin() -> CBCentralManager {
        let manager = CBCentralManager(delegate: self, queue: .main)
        observation = manager.observe(\.isScanning, options: [.new]) { _, _ in }
        return manager
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        central.scanForPeripherals(withServices: nil)
    }

    public func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        names.append(peripheral.name ?? peripheral.identifier.uuidString)
    }
}
