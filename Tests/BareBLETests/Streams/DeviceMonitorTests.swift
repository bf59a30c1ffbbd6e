import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct DeviceMonitorTests {
    private let lamp = BluetoothAddress(rawValue: 0xC000_0000_0002)
    private let belt = BluetoothAddress(rawValue: 0xC000_0000_0007)

    @Test func theListFollowsArrivalsAndDepartures() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let central = Central(adapter: bench.adapter)
            let monitor = try await central.monitor(lostAfter: .milliseconds(100))
            #expect(monitor.devices.isEmpty && monitor.isListening)
            let pinned = PeerID(address: belt, type: .random)
            monitor.pin(pinned)
            var changes = monitor.changes.makeAsyncIterator()
            await bench.controller.advertise(lamp, [], rssi: -80)
            let first = try #require(try await changes.next())
            #expect(first.arrived.map { $0.peer?.address } == [lamp])
            #expect(first.arrived.first?.proximity.level == .far)
            let gone = try #require(try await changes.next())
            #expect(gone.left.map { $0.peer?.address } == [lamp] && monitor.devices.isEmpty)
            await bench.controller.advertise(belt, [], rssi: -30)
            let second = try #require(try await changes.next())
            #expect(second.arrived.map(\.proximity.level) == [.immediate])
            let silent = try #require(try await changes.next())
            #expect(silent.left.map(\.isPresent) == [false])
            #expect(monitor.device(pinned)?.isPresent == false)
            monitor.unpin(pinned)
            #expect(monitor.devices.isEmpty)
            await monitor.stop()
            #expect(try await changes.next() == nil && !monitor.isListening)
            #expect(await bench.adapter.runningScans == 0)
        }
    }

    /// A device that is connected does not advertise, and is here.
    @Test(.row("C06")) func aConnectedDeviceIsNotLost() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let sensor = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: sensor))
            let central = Central(radio: radio)
            let monitor = try await central.monitor(lostAfter: .seconds(5))
            let losses = Lock(0)
            let scan = central.scan(lostAfter: .seconds(5))
            let counting = time.task {
                for try await case .lost in scan { losses.withLock { $0 += 1 } }
            }
            try await time.clock.sleep(for: .seconds(2))
            let device = try await central.connect(peer)
            try await time.clock.sleep(for: .seconds(20))
            #expect(monitor.device(peer)?.isPresent == true)
            #expect(losses.withLock(\.self) == 0)
            await radio.advertise(sensor, nil)
            await device.disconnect()
            try await time.clock.sleep(for: .seconds(4))
            #expect(monitor.device(peer)?.isPresent == true, "its silence counts from the end of the link")
            try await time.clock.sleep(for: .seconds(4))
            #expect(monitor.device(peer) == nil)
            #expect(losses.withLock(\.self) == 1)
            await scan.stop()
            try await counting.value
            await monitor.stop()
        }
    }

    /// The clock goes on while the machine sleeps, and nothing listens then.
    @Test(.row("O19")) func noDeviceIsLostBecauseTheMachineHasSlept() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let sensor = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: sensor))
            let central = Central(radio: radio)
            let monitor = try await central.monitor(lostAfter: .seconds(5))
            let losses = Lock(0)
            let scan = central.scan(lostAfter: .seconds(5))
            let counting = time.task {
                for try await case .lost in scan { losses.withLock { $0 += 1 } }
            }
            try await time.clock.sleep(for: .seconds(2))
            #expect(monitor.device(peer)?.isPresent == true)
            time.loop.jump(by: .seconds(8 * 3600))
            try await time.clock.sleep(for: .seconds(10))
            #expect(monitor.device(peer)?.isPresent == true)
            #expect(losses.withLock(\.self) == 0)
            await radio.advertise(sensor, nil)
            try await time.clock.sleep(for: .seconds(4))
            #expect(monitor.device(peer)?.isPresent == true)
            try await time.clock.sleep(for: .seconds(4))
            #expect(monitor.device(peer) == nil)
            #expect(losses.withLock(\.self) == 1)
            await scan.stop()
            try await counting.value
            await monitor.stop()
        }
    }

    @Test func aPinnedDeviceKeepsItsPlaceInACrowd() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let monitor = try await central.monitor(lostAfter: .seconds(600))
        let peer = PeerID(address: belt, type: .random)
        monitor.pin(peer)
        await bench.controller.advertise(belt, [])
        await bench.controller.advertise(lamp, [])
        await bench.until { monitor.devices.count >= 2 }
        await crowd(bench)
        #expect(monitor.devices.count == DeviceTable.capacity)
        #expect(monitor.device(peer)?.isPresent == true)
        #expect(monitor.device(PeerID(address: lamp, type: .random)) == nil)
        await monitor.stop()
    }

    @Test func whileTheAdapterIsAwayTheListStandsStill() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let monitor = try await central.monitor(lostAfter: .seconds(600))
        var changes = monitor.changes.makeAsyncIterator()
        await bench.controller.advertise(lamp, [])
        #expect(try await changes.next()?.arrived.count == 1)
        let controllers = bench.kernel.withLock { kernel in
            defer { kernel.controllers = [] }
            return kernel.controllers
        }
        await bench.controller.unplug()
        await bench.until { !monitor.isListening }
        #expect(monitor.devices.map(\.isPresent) == [true])
        let again = try await bench.controller.plugIn()
        bench.kernel.withLock { ($0.descriptors, $0.controllers) = ([again], controllers) }
        await bench.until { monitor.isListening }
        await bench.controller.commandsArrived(9)
        await bench.controller.advertise(belt, [])
        #expect(try await changes.next()?.arrived.count == 1)
        #expect(monitor.devices.count == 2)
        await monitor.stop()
    }

    @Test func releasingTheMonitorStopsIt() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        var monitor: DeviceMonitor? = try await central.monitor()
        #expect(await bench.adapter.runningScans == 1)
        #expect(monitor != nil)
        monitor = nil
        await begun(bench, scans: 0)
        #expect(await bench.sent.last == .leSetScanEnable)
    }

    @Test func cancellationEndsTheWaitAndLeavesTheMonitor() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let monitor = try await central.monitor()
        let task = testTask {
            var changes = monitor.changes.makeAsyncIterator()
            return try await changes.next()
        }
        task.cancel()
        #expect(try await task.value == nil)
        await bench.controller.advertise(lamp, [])
        var changes = monitor.changes.makeAsyncIterator()
        #expect(try await changes.next()?.arrived.count == 1)
        await monitor.stop()
    }
}

/// Fills the adapter's table with new devices.
func crowd(_ bench: AdapterBench) async {
    let heard = await bench.adapter.statistics.reports
    let first = 0xC100_0000_0000 + UInt64(heard) << 16
    for number in 0..<DeviceTable.capacity {
        await bench.controller.advertise(BluetoothAddress(rawValue: first + UInt64(number)), [])
        // The stand-in's socket holds some hundred reports.
        guard number % 100 == 99 || number == DeviceTable.capacity - 1 else { continue }
        while await bench.adapter.statistics.reports < heard + number + 1, !Task.isCancelled { await Task.yield() }
    }
}
