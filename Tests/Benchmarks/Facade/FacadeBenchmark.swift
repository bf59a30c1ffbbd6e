internal import BLECore
internal import BareBLE
internal import BareBLETestKit
internal import CoreBluetooth

/// Reads a value by BareBLE and through CoreBluetooth, in turns, from the same virtual device on the same virtual
/// radio.
///
/// Orders: `bareble N` (one awaited read after the other, from a task of the global pool) and `corebluetooth N` (each
/// read is called from the callback of the one before, on a queue of its own). Each connects first. The answer is the
/// nanoseconds that the reads took.
@main
enum FacadeBenchmark {
    static func main() async throws {
        // In real time, in which a task that does not ask for the loop runs off it. The air takes no time, so that what
        // is measured is what the software costs.
        let radio = VirtualRadio()
        let device = await radio.add(.heartRate, latency: .zero)
        let central = Central(radio: radio)
        CoreBluetoothHost.use(central)
        guard let peer = await radio.id(of: device) else { exit(1) }
        while let order = readLine() {
            let words = order.split(separator: " ")
            guard words.count == 2, let count = Int(words[1]) else { break }
            let nanoseconds =
                words[0] == "bareble"
                ? try await read(count, from: peer, by: central) : await FacadeReader().read(count)
            print(nanoseconds)
            fflush(nil)
        }
    }

    @concurrent
    private static func read(_ count: Int, from peer: PeerID, by central: Central) async throws -> Int {
        try await central.withConnection(peer) { device in
            _ = try await device.read(0x2A38)
            let start = ContinuousClock.now
            for _ in 0..<count { _ = try await device.read(0x2A38) }
            return nanoseconds(since: start)
        }
    }

    fileprivate static func nanoseconds(since start: ContinuousClock.Instant) -> Int {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
    }
}

/// A program on CoreBluetooth: finds the device, connects, and reads.
private final class FacadeReader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
    // All of it is used on the queue.
    private let queue = DispatchQueue(label: "reader")
    private var manager: CBCentralManager?
    private var device: CBPeripheral?
    private var left = 0
    private var start: ContinuousClock.Instant?
    private var time = 0
    private var continuation: CheckedContinuation<Int, Never>?

    func read(_ count: Int) async -> Int {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                left = count
                self.continuation = continuation
                manager = CBCentralManager(delegate: self, queue: queue)
            }
        }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [CBUUID(string: "180D")]) }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi: NSNumber
    ) {
        central.stopScan()
        device = peripheral
        peripheral.delegate = self
        central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices([CBUUID(string: "180D")])
    }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        continuation?.resume(returning: time)
        continuation = nil
        device = nil
        manager = nil
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        guard let service = peripheral.services?.first else { return }
        peripheral.discoverCharacteristics([CBUUID(string: "2A38")], for: service)
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?) {
        if let characteristic = service.characteristics?.first { peripheral.readValue(for: characteristic) }
    }

    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        guard let start else {
            // The first read is not counted, as in the other mode.
            start = .now
            return peripheral.readValue(for: characteristic)
        }
        left -= 1
        guard left == 0 else { return peripheral.readValue(for: characteristic) }
        time = FacadeBenchmark.nanoseconds(since: start)
        manager?.cancelPeripheralConnection(peripheral)
    }
}
