import BLELinux
import BareBLE
import BareBLETestKit
import Testing

@testable import CoreBluetooth

/// What one link reports, by itself.
@Suite(.timeLimit(.minutes(10))) struct PeripheralLinkTests {
    /// The task that follows the changes may have one in hand when the link ends.
    @Test func aChangeOfTheServicesIsNotReportedAfterTheEndOfItsLink() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            _ = try await bench.discover(peripheral, recorder)
            // Another link of the same object: its end leaves the attributes as they are.
            let link = PeripheralLink(
                peripheral.weakSelf, to: peripheral.peer, of: peripheral.managerID,
                on: CallbackQueue(bench.queue, loop: bench.time.loop), PeripheralLinkOptions(), host: peripheral.host)
            let device = VirtualPeripheral(.battery, time: bench.time)
            let connection = try await Central(time: bench.time).attach(descriptor: device.connect())
            await link.begin(connection, mtu: 23)
            await link.servicesChanged(1...2, on: connection)
            try await recorder.wait(for: "didModifyServices")
            await link.end(nil)
            try await recorder.wait(for: "didDisconnect")
            let reported = recorder.lines
            await link.servicesChanged(3...0xFFFF, on: connection)
            try await bench.time.clock.sleep(for: .seconds(10))
            #expect(recorder.lines == reported)
            #expect(peripheral.services?.isEmpty == false)
            await connection.disconnect()
            _ = manager
        }
    }
}
