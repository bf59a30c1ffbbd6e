// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// A scanner for the command line that never returns from `dispatchMain()`, which serves the main queue: it imports
// CoreBluetooth alone. It ends after the number of seconds that it is given.

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
let manager = CBCentralManager(delegate: scanner, queue: .main)
if let seconds = CommandLine.arguments.dropFirst().first.flatMap(Double.init) {
    DispatchQueue.main.asyncAfter(deadline: .now() + seconds) { exit(0) }
}
dispatchMain()
