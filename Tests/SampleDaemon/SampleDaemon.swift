import BareBLE
import Glibc

/// A small daemon: waits for a device with a battery, reads its level and follows it, for as long as the link lasts.
///
///     sample-daemon               the first device that advertises the Battery Service
///     sample-daemon unix:PATH     an ATT server behind a socket
///
/// Everything runs on the main thread; there is no other.
@main
enum SampleDaemon {
    static func main() {
        do {
            try Central.serve { central in try await follow(batteryOf: await connect(central)) }
        } catch {
            print("sample-daemon: \(error)")
            exit(1)
        }
    }

    private static func connect(_ central: Central) async throws(BLEError) -> Peripheral {
        if let argument = CommandLine.arguments.dropFirst().first, argument.hasPrefix("unix:") {
            return try await central.connect(toSocket: String(argument.dropFirst(5)))
        }
        try await central.ready(powerOn: true)
        for try await case .found(let device) in central.scan(.services(0x180F)) {
            if let peer = device.peer { return try await central.connect(peer) }
        }
        throw BLEError(.cancelled, during: "find a device", because: "the scan was ended")
    }

    private static func follow(batteryOf device: Peripheral) async throws(BLEError) {
        try await device.discover()
        report(try await device.read(0x2A19))
        for try await level in try await device.subscribe(to: 0x2A19) { report(level.bytes) }
    }

    private static func report(_ level: [UInt8]) {
        print("battery: \(level.first ?? 0) %")
        fflush(nil)
    }
}
