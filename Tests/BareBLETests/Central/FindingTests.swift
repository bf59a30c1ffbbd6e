import BLECore
import BareBLE
import TestSupport
import Testing

/// Scans with an end: one device, a list, one device and a link.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct FindingTests {
    private let lamp = BluetoothAddress(rawValue: 0xC000_0000_0002)
    private let belt = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private let heartRate: [UInt8] = [2, 1, 6, 3, 3, 0x0D, 0x18]
    private let setUp: [HCIOpcode] = [
        .leReadLocalFeatures, .readLocalSupportedCommands, .readAddress, .leSetScanEnable, .leSetScanParameters,
        .leSetScanEnable,
    ]

    @Test func theFirstIsFoundAndTheRadioIsQuietThen() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let task = testTask {
            let found = try await central.first(.services(0x180D), timeout: nil) { ($0.rssi ?? -127) > -50 }
            return (found, await bench.sent)
        }
        await begun(bench, scans: 1)
        await bench.controller.advertise(lamp, [2, 1, 6], rssi: -40)
        await bench.controller.advertise(belt, heartRate, rssi: -60)
        await bench.controller.advertise(belt, heartRate, rssi: -45)
        let (found, sent) = try await task.value
        #expect(found.peer?.address == belt && found.count == 2)
        #expect(sent == setUp + [.leSetScanEnable])
    }

    @Test func aSearchWithoutAMatchTimesOut() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        await #expect(throws: error(.timedOut)) {
            try await central.first(.services(0x180D), timeout: .milliseconds(20))
        }
        #expect(await bench.sent == setUp + [.leSetScanEnable])
        let task = testTask { try await central.first(timeout: nil) }
        await begun(bench, scans: 1)
        task.cancel()
        await #expect(throws: error(.cancelled)) { try await task.value }
        await begun(bench, scans: 0)
    }

    @Test func aListEndsAtItsCount() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let task = testTask { try await central.collect(for: nil, count: 2) }
        await begun(bench, scans: 1)
        await bench.controller.advertise(lamp, [2, 1, 6])
        await bench.controller.advertise(lamp, [3, 9, 65, 66])
        await bench.controller.advertise(belt, heartRate)
        let found = try await task.value
        #expect(found.map { $0.peer?.address } == [lamp, belt])
        #expect(found.first?.name == "AB" && found.first?.count == 2)
        #expect(await bench.sent == setUp + [.leSetScanEnable])
        #expect(try await central.collect(count: 0).isEmpty)
    }

    @Test func aListEndsAtItsTime() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        #expect(try await central.collect(for: .milliseconds(20)).isEmpty)
        let task = testTask { try await central.collect(.services(0x180D), for: .seconds(1), count: 5) }
        await begun(bench, scans: 1)
        await bench.controller.advertise(lamp, [2, 1, 6])
        await bench.controller.advertise(belt, heartRate)
        #expect(try await task.value.map { $0.peer?.address } == [belt])
        let cancelled = testTask { try await central.collect(for: nil) }
        await begun(bench, scans: 1)
        cancelled.cancel()
        await #expect(throws: error(.cancelled)) { try await cancelled.value }
    }

    @Test func theScanStopsBeforeTheConnectAndWhatWasHeardComesAlong() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        await bench.controller.set { [belt] in $0.peers[belt] = 0x40 }
        let task = testTask {
            try await central.connect(toFirst: .services(0x180D), .balanced, ConnectOptions(mtu: 23), timeout: nil)
        }
        await begun(bench, scans: 1)
        // Not connectable: event type 3. Then another device, then ours.
        await bench.controller.advertise(belt, heartRate, eventType: 3)
        await bench.controller.advertise(lamp, [2, 1, 6])
        await bench.controller.advertise(belt, heartRate)
        let (device, scanResult) = try await task.value
        #expect(device.id?.address == belt && scanResult.peer == device.id && scanResult.serviceUUIDs == [0x180D])
        #expect(await bench.sent == setUp + [.leSetScanEnable, .leCreateConnection])
        await device.disconnect()
    }

    @Test(.row("W36")) func scansBesideContinueAfterTheConnect() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        await bench.controller.set { [belt] in $0.peers[belt] = 0x40 }
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        let task = testTask {
            try await central.withConnection(toFirst: .address(belt), .balanced, ConnectOptions(mtu: 23), timeout: nil)
            {
                device, scanResult in
                device.id == scanResult.peer
            }
        }
        await begun(bench, scans: 2)
        await bench.controller.advertise(belt, heartRate)
        #expect(try await task.value)
        await deliveries.wait { $0.last == .notice(.resumed) }
        // The hang-up comes somewhere among the commands that set the scan up again.
        let after = await bench.sent.dropFirst(setUp.count)
        #expect(Array(after.prefix(2)) == [.leSetScanEnable, .leCreateConnection])
        #expect(after.dropFirst(2).filter { $0 != .disconnect } == Array(setUp.suffix(3)))
        await bench.adapter.unsubscribe(scan)
    }

    @Test func aConnectToAFoundDeviceThatDoesNotRespondTimesOut() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let options = ConnectOptions(timeout: .seconds(1), mtu: 23)
        let task = testTask { try await central.connect(toFirst: .any, .balanced, options, timeout: nil).scanResult }
        await begun(bench, scans: 1)
        await bench.controller.advertise(belt, heartRate)
        await #expect(throws: error(.timedOut)) { try await task.value }
        #expect(await bench.sent.suffix(2) == [.leCreateConnection, .leCreateConnectionCancel])
    }
}
