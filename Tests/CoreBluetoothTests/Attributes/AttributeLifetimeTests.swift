import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

@testable import CoreBluetooth

/// Attributes whose link ends while another thread makes a call with them.
@Suite(.timeLimit(.minutes(10))) struct AttributeLifetimeTests {
    private let belt = CBUUID(string: "180D")

    /// The handle would be one of the next link.
    @Test func anAttributeThatEndsWhileACallIsMadeIsRefused() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            _ = try await bench.discover(peripheral, recorder)
            let service = try #require(peripheral.services?.first { $0.uuid == belt })
            peripheral.discoverCharacteristics(nil, for: EndingService(service, of: peripheral))
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == [])
            #expect(bench.log.all.count { $0.contains("is not a valid attribute of") } == 1)
            // The other object of it is as it was.
            peripheral.discoverCharacteristics(nil, for: service)
            try await recorder.wait(for: "didDiscoverCharacteristicsFor \(belt) nil")
        }
    }
}

/// A service that ends as soon as it was found to be valid, as by another thread that reports the end of its link and
/// the next link.
private final class EndingService: CBService, @unchecked Sendable {
    private let isChecked = Lock(false)

    init(_ service: CBService, of peripheral: CBPeripheral) {
        super.init(type: service.uuid, isPrimary: true, remote: service.remote, peripheral: peripheral)
    }

    override var isValid: Bool {
        let isFirst = isChecked.withLock { isChecked in
            defer { isChecked = true }
            return !isChecked
        }
        defer { if isFirst { invalidate() } }
        return super.isValid
    }
}
