// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// A scanner for the command line, on the main run loop, as for macOS: it imports CoreBluetooth alone.

import CoreBluetooth

final class Scanner: NSObject, CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        print("state \(central.state)")
        if central.state == .poweredOn { central.scanForPeripherals(withServices: nil) }
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        print("\(RSSI) dBm \(peripheral.identifier) \(peripheral.name ?? "")")
    }
}

let scanner = Scanner()
let manager = CBCentralManager(delegate: scanner, queue: nil)
// Without a number of seconds it scans until it is ended.
let limit = CommandLine.arguments.dropFirst().first.flatMap(TimeInterval.init)
RunLoop.main.run(until: limit.map { Date(timeIntervalSinceNow: $0) } ?? .distantFuture)
