import BLECore
import BareBLE
import Testing

/// That what the adapter drops, and what goes wrong with it, is in `Central.statistics` under the right name.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct AdapterCountingTests {
    private static func address(_ number: Int) -> BluetoothAddress {
        BluetoothAddress(rawValue: 0xC000_0000_0000 + UInt64(number))
    }

    /// One report of a long advertisement; `status` is 0 for its end, 1 where more is to come.
    private static func fragment(of number: Int, status: UInt8, _ count: UInt8 = 4) -> [UInt8] {
        let bytes = (0..<6).map { UInt8(truncatingIfNeeded: address(number).rawValue >> (8 * $0)) }
        let report =
            [status << 5, 0x00, 0x01] + bytes + [0x01, 0x00, 0x00, 0x7F, 0xC0, 0x00, 0x00, 0x00]
            + [UInt8](repeating: 0, count: 6) + [count] + [UInt8](repeating: 0, count: Int(count))
        return [0x04, 0x3E, UInt8(report.count + 2), 0x0D, 0x01] + report
    }

    private func statistics(_ bench: AdapterBench) async -> AdapterStatistics {
        await Central(adapter: bench.adapter).statistics
    }

    @Test func tooManyAdvertisementsInFragmentsAreCounted() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        // One more than may be under way at a time.
        for number in 0...ReportAssembler.capacity {
            await bench.controller.sendRaw(Self.fragment(of: number, status: 1))
        }
        // The last one of them continues as an advertisement of another kind.
        var other = Self.fragment(of: ReportAssembler.capacity, status: 1)
        other[5] |= 1
        await bench.controller.sendRaw(other)
        // And one that has no end.
        for _ in 0...ReportAssembler.limit / 229 {
            await bench.controller.sendRaw(Self.fragment(of: 1, status: 1, 229))
        }
        await deliveries.wait { $0.count == 1 }
        let statistics = await statistics(bench)
        #expect(statistics.evictedAdvertisements == 1)
        #expect(statistics.abandonedAdvertisements == 1)
        #expect(statistics.cutAdvertisements == 1)
        await bench.adapter.unsubscribe(scan)
    }

    @Test func devicesBeyondAFullTableAreCounted() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        for number in 1...DeviceTable.capacity {
            await bench.controller.advertise(Self.address(number), [2, 1, 6])
            await deliveries.wait { $0.count == number }
        }
        // Each newcomer is found, and another one lost for it.
        for number in DeviceTable.capacity + 1...DeviceTable.capacity + 2 {
            await bench.controller.advertise(Self.address(number), [2, 1, 6])
            await deliveries.wait { $0.count == DeviceTable.capacity + 2 * (number - DeviceTable.capacity) }
        }
        #expect(await statistics(bench).evictedDevices == 2)
        #expect(await statistics(bench).refusedDevices == 0)
        await bench.adapter.unsubscribe(scan)
    }

    @Test func aTableOfDevicesThatAreWanted() async throws {
        let bench = try await AdapterBench()
        let wanted = Set((1...DeviceTable.capacity).map { PeerID(address: Self.address($0), type: .random) })
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, pinned: { wanted }, deliveries.receive)
        for number in 1...DeviceTable.capacity {
            await bench.controller.advertise(Self.address(number), [2, 1, 6])
            await deliveries.wait { $0.count == number }
        }
        await bench.controller.advertise(Self.address(DeviceTable.capacity + 1), [2, 1, 6])
        // Known already, and after the newcomer.
        await bench.controller.advertise(Self.address(1), [2, 1, 5])
        await deliveries.wait { $0.count == DeviceTable.capacity + 1 }
        #expect(await statistics(bench).refusedDevices == 1)
        #expect(await statistics(bench).evictedDevices == 0)
        await bench.adapter.unsubscribe(scan)
    }

    @Test func complaintsOfTheControllerAreCounted() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        await bench.controller.send([0x04, 0x10, 0x01, 0x42])
        await bench.controller.set { $0.statuses[.leSetScanParameters] = [.memoryCapacityExceeded] }
        await bench.controller.foreign(.leSetScanEnable)
        await deliveries.wait { $0.count == 2 }
        let statistics = await statistics(bench)
        #expect(statistics.hardwareErrors == 1)
        #expect(statistics.disturbances == 1)
        #expect(statistics.failedStarts == 1)
        await bench.adapter.unsubscribe(scan)
    }
}
