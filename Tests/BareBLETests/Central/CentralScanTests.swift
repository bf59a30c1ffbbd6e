import BLECore
import BLELinux
import BareBLE
import TestSupport
import Testing

/// A scan as applications see it: order, loss, its end, and several scans on one radio.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct CentralScanTests {
    private let thermometer = BluetoothAddress(rawValue: 0xC000_0000_0001)
    private let lamp = BluetoothAddress(rawValue: 0xC000_0000_0002)
    private let setUp: [HCIOpcode] = [
        .leReadLocalFeatures, .readLocalSupportedCommands, .readAddress, .leSetScanEnable, .leSetScanParameters,
        .leSetScanEnable,
    ]

    @Test func severalScansShareOneScanOfTheRadio() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let named = testTask { try await names(central.scan(.name(startingWith: "AB"), .passive), count: 1) }
        let throttled = testTask {
            try await strengths(
                central.scan(.any, ScanSettings.passive.duplicates(.all).rssiDelta(10)), count: 3)
        }
        let every = testTask { try await strengths(central.scan(.any, .passive.duplicates(.all)), count: 5) }
        let changed = testTask { try await names(central.scan(.any, .passive), count: 2) }
        await begun(bench, scans: 4)
        for rssi in [-60, -62, -71, -61] as [Int8] {
            await bench.controller.advertise(thermometer, [2, 1, 6], rssi: rssi)
        }
        await bench.controller.advertise(thermometer, [3, 9, 65, 66], rssi: -61)
        #expect(try await named.value == ["AB"])
        #expect(try await throttled.value == [-60, -71, -61])
        #expect(try await every.value == [-60, -62, -71, -61, -61])
        #expect(try await changed.value == [nil, "AB"])
        // One scan was set up for all of them, and switched off after the last.
        await bench.controller.commandsArrived(7)
        #expect(await bench.sent == setUp + [.leSetScanEnable])
    }

    @Test func theCentralScansUntilItsLastScanHasEnded() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        #expect(await !central.isScanning)
        let first = try await central.monitor()
        let second = try await central.monitor()
        #expect(await central.isScanning)
        await first.stop()
        #expect(await central.isScanning)
        await second.stop()
        #expect(await !central.isScanning)
    }

    @Test func reportsComeInTheirOrder() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let task = testTask { () throws -> [UInt8?] in
            var numbers: [UInt8?] = []
            for try await event in central.scan() {
                switch event {
                case .found(let device), .updated(let device): numbers.append(device.advertisement?.data.last)
                case .lost, .dropped, .paused, .resumed: Issue.record("\(event)")
                }
                if numbers.count == 200 { break }
            }
            return numbers
        }
        await begun(bench, scans: 1)
        for number in 0..<200 { await bench.controller.advertise(thermometer, [2, 1, UInt8(number)]) }
        #expect(try await task.value == (0..<200).map { UInt8($0) })
    }

    @Test(.row("H17", "H18")) func whatASlowConsumerLosesIsCountedToTheLastOne() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let deliveries = Deliveries()
        let witness = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        var events = central.scan(.any, .balanced, capacity: 8).makeAsyncIterator()
        let first = testTask { [thermometer] in
            await begun(bench, scans: 2)
            await bench.controller.advertise(thermometer, [2, 1, 0])
        }
        guard case .found? = try await events.next() else { throw Surprise() }
        await first.value
        for number in 1...100 { await bench.controller.advertise(thermometer, [2, 1, UInt8(number)]) }
        await deliveries.wait { $0.count == 101 }
        // Every task has been resumed when the adapter responds.
        _ = await bench.adapter.statistics
        #expect(try await events.next() == .dropped(92))
        for number in 93...100 {
            guard case .updated(let device)? = try await events.next() else { throw Surprise() }
            #expect(device.advertisement?.data == [2, 1, UInt8(number)])
        }
        await bench.controller.advertise(thermometer, [2, 1, 101])
        guard case .updated? = try await events.next() else { throw Surprise() }
        await bench.adapter.unsubscribe(witness)
    }

    @Test func cancellationEndsTheSequenceAndTheScan() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let task = testTask {
            var events = central.scan().makeAsyncIterator()
            let event = try await events.next()
            let again = try await events.next()
            return event == nil && again == nil
        }
        await begun(bench, scans: 1)
        task.cancel()
        #expect(try await task.value)
        await bench.controller.commandsArrived(7)
        #expect(await bench.sent == setUp + [.leSetScanEnable])
    }

    @Test func theDurationEndsTheSequenceOnceAndForAll() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        var events = central.scan(duration: .milliseconds(20)).makeAsyncIterator()
        #expect(try await events.next() == nil)
        #expect(await bench.sent == setUp + [.leSetScanEnable])
        #expect(try await events.next() == nil)
        #expect(await bench.sent == setUp + [.leSetScanEnable])
    }

    @Test(arguments: 1...6) func aScanThatStartsIsStopped(afterCommand count: Int) async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let scan = central.scan()
        let hasEnded = Lock(false)
        let task = testTask {
            for try await event in scan { Issue.record("\(event)") }
            hasEnded.withLock { $0 = true }
        }
        await bench.controller.commandsArrived(count)
        await scan.stop()
        #expect(await bench.adapter.runningScans == 0)
        #expect(await !bench.controller.isScanning)
        try await bench.clock.sleep(for: .seconds(1))
        #expect(hasEnded.withLock { $0 })
        #expect(await !bench.controller.isScanning)
        task.cancel()
        try await task.value
        // A loop that begins later is another scan.
        let copy = scan
        let later = testTask { try await addresses(copy, count: 1) }
        await begun(bench, scans: 1)
        await bench.controller.advertise(thermometer, [])
        #expect(try await later.value == [thermometer])
    }

    /// The end of the scan that starts leaves the one that shares the radio.
    @Test func aScanThatStartsIsStoppedAlone() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let (scan, other) = (central.scan(), central.scan())
        let running = testTask { try await addresses(other, count: 1) }
        let stopped = (0..<2).map { _ in testTask { try await addresses(scan, count: 1) } }
        await bench.controller.commandsArrived(1)
        await scan.stop()
        try await bench.clock.sleep(for: .seconds(1))
        #expect(await bench.adapter.runningScans == 1)
        await bench.controller.advertise(thermometer, [])
        #expect(try await running.value == [thermometer])
        for task in stopped {
            task.cancel()
            #expect(try await task.value == [])
        }
    }

    /// A controller without a response does not hold the stop up for long, and its error is not reported.
    @Test func aStartThatHangsIsStopped() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        await bench.controller.set { $0.ignored = [.leSetScanParameters] }
        let scan = central.scan()
        let task = testTask { try await addresses(scan, count: 1) }
        await bench.controller.commandsArrived(setUp.count - 1)
        await scan.stop()
        #expect(try await task.value == [])
        #expect(await bench.adapter.runningScans == 0)
    }

    @Test func excludedDevicesAreLeftOutFromThatMomentOn() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let deliveries = Deliveries()
        let witness = try await bench.adapter.subscribe(.balanced.duplicates(.all), deliveries.receive)
        let scan = central.scan(.any, .balanced.duplicates(.all))
        var events = scan.makeAsyncIterator()
        let first = testTask { [thermometer, lamp] in
            await begun(bench, scans: 2)
            for address in [thermometer, thermometer, lamp] { await bench.controller.advertise(address, []) }
        }
        guard case .found(let found)? = try await events.next() else { throw Surprise() }
        await first.value
        await deliveries.wait { $0.count == 3 }
        let peer = try #require(found.peer)
        // One more of it waits already, followed by one of another device.
        scan.excluded.insert(peer)
        #expect(scan.excluded.contains(peer) && scan.excluded.peers == [peer])
        #expect(try await address(of: events.next()) == lamp)
        await bench.controller.advertise(thermometer, [])
        await bench.controller.advertise(lamp, [])
        #expect(try await address(of: events.next()) == lamp)
        scan.excluded.remove(peer)
        await bench.controller.advertise(thermometer, [])
        guard case .found(let again)? = try await events.next() else { throw Surprise() }
        #expect(again.peer == peer)
        await bench.adapter.unsubscribe(witness)
    }

    @Test func aSetOfExcludedDevicesMayServeSeveralScans() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        let ignored = ExcludedPeers([PeerID(address: thermometer, type: .random)])
        let tasks = (0..<2).map { _ in
            testTask { try await addresses(central.scan().excluding(ignored), count: 1) }
        }
        await begun(bench, scans: 2)
        await bench.controller.advertise(thermometer, [])
        await bench.controller.advertise(lamp, [])
        for task in tasks { #expect(try await task.value == [lamp]) }
        ignored.removeAll()
        #expect(ignored.peers.isEmpty)
    }

    private struct Surprise: Error {}

    private func names(_ scan: ScanSequence, count: Int) async throws -> [String?] {
        try await scanResults(scan, count: count).map(\.name)
    }

    private func strengths(_ scan: ScanSequence, count: Int) async throws -> [Int8?] {
        try await scanResults(scan, count: count).map(\.rssi)
    }

    private func addresses(_ scan: ScanSequence, count: Int) async throws -> [BluetoothAddress?] {
        try await scanResults(scan, count: count).map { $0.peer?.address }
    }

    private func scanResults(_ scan: ScanSequence, count: Int) async throws -> [ScanResult] {
        var heard: [ScanResult] = []
        for try await event in scan {
            switch event {
            case .found(let device), .updated(let device): heard.append(device)
            case .lost, .dropped, .paused, .resumed: Issue.record("\(event)")
            }
            if heard.count == count { break }
        }
        return heard
    }

    private func address(of event: ScanEvent?) -> BluetoothAddress? {
        switch event {
        case .found(let device)?, .updated(let device)?: device.peer?.address
        case .lost?, .dropped?, .paused?, .resumed?, nil: nil
        }
    }
}

/// Waits until so many scans run.
func begun(_ bench: AdapterBench, scans: Int) async {
    await bench.until { await bench.adapter.runningScans == scans }
}
