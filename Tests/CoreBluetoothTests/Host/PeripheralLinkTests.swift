import BLECore
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
    /// The change is announced before the subscription is asked for, and reported after that.
    @Test func aSubscriptionIsTakenBackIfAChangeOfItsServiceIsReportedMeanwhile() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let link = PeripheralLink(
                peripheral.weakSelf, to: peripheral.peer, of: peripheral.managerID,
                on: CallbackQueue(bench.queue, loop: bench.time.loop), PeripheralLinkOptions(), host: peripheral.host)
            let device = VirtualPeripheral(.battery, latency: .seconds(1), time: bench.time)
            let connection = try await Central(time: bench.time).attach(descriptor: device.connect())
            await link.begin(connection, mtu: 23)
            let level = try #require(try await connection.discover().characteristics(0x2A19).first)
            let subscription = bench.time.task { try await link.subscribe(to: level, on: connection) }
            await bench.time.settle()
            await link.servicesChanged(1...0xFFFF, on: connection)
            let error = await #expect(throws: BLEError.self) { try await subscription.value }
            #expect(error?.code == .servicesChanged)
            #expect(await !device.isSubscribed(to: 0x2A19))
            await connection.disconnect()
            _ = manager
        }
    }
}
