import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct AdapterScanTests {
    private let thermometer = BluetoothAddress(rawValue: 0xC000_0000_0001)
    private let identification: [HCIOpcode] = [.leReadLocalFeatures, .readLocalSupportedCommands, .readAddress]
    private let start: [HCIOpcode] = [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable]

    /// As a daemon does that ends with scans under way.
    @Test func allScansEndAtOnce() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let first = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        _ = try await bench.adapter.subscribe(.passive, deliveries.receive)
        await bench.adapter.unsubscribeAll()
        #expect(await !bench.controller.isScanning)
        let count = await bench.sent.count
        await bench.adapter.unsubscribe(first)
        await bench.adapter.unsubscribeAll()
        #expect(await bench.sent.count == count)
    }

    /// The program may end with the task, and the scan that is being switched on would stay on.
    @Test func aScanThatIsCancelledWhileItBeginsIsOffBeforeItsTaskEnds() async throws {
        let bench = try await AdapterBench()
        await bench.controller.set { $0.ignored = [.leSetScanEnable] }
        let scan = testTask {
            if let scan = try? await bench.adapter.subscribe(.balanced, { _ in }) {
                await bench.adapter.unsubscribe(scan)
            }
            return await bench.sent
        }
        let before = identification.count
        await bench.controller.commandsArrived(before + 1)
        await bench.controller.foreign(.leSetScanEnable)
        await bench.controller.commandsArrived(before + 3)
        scan.cancel()
        await bench.controller.foreign(.leSetScanEnable)
        await bench.controller.commandsArrived(before + 4)
        await bench.controller.foreign(.leSetScanEnable)
        #expect(await scan.value == identification + start + [.leSetScanEnable])
    }

    @Test func scansAndStops() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        #expect(await bench.sent == identification + start)
        await bench.controller.advertise(thermometer, [2, 1, 6])
        await bench.controller.advertise(thermometer, [2, 1, 6])
        await bench.controller.advertise(thermometer, [3, 9, 65, 66], eventType: 4)
        await deliveries.wait { $0.count >= 2 }
        guard case .found(let first) = deliveries.all[0], case .updated(let second) = deliveries.all[1] else {
            Issue.record("\(deliveries.all)")
            return
        }
        #expect(first.peer == PeerID(address: thermometer, type: .random) && first.rssi == -55)
        #expect(second.name == "AB" && second.count == 3)
        await bench.adapter.unsubscribe(scan)
        #expect(await bench.sent == identification + start + [.leSetScanEnable])
    }

    @Test func severalScansShareTheRadio() async throws {
        let bench = try await AdapterBench()
        let all = Deliveries()
        let named = Deliveries()
        let first = try await bench.adapter.subscribe(.balanced, all.receive)
        let second = try await bench.adapter.subscribe(
            .balanced.matching(.name(startingWith: "AB")), named.receive)
        #expect(await bench.sent == identification + start)
        await bench.controller.advertise(thermometer, [2, 1, 6])
        await bench.controller.advertise(thermometer, [3, 9, 65, 66])
        await named.wait { $0.count == 1 }
        await all.wait { $0.count == 2 }
        await bench.adapter.unsubscribe(first)
        #expect(await bench.sent.count == 6)
        await bench.adapter.unsubscribe(second)
        #expect(await bench.sent.count == 7)
    }

    @Test(.row("H01")) func aMalformedEventIsCountedAndTheScanContinues() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        await bench.controller.sendRaw([0x04, 0x3E, 0x05, 0x02])
        await bench.controller.sendRaw([0x04, 0x3E, 0x00])
        await bench.controller.sendRaw([0x02, 0x00])
        await bench.controller.advertise(thermometer, [])
        await deliveries.wait { $0.count == 1 }
        // And a report without one of its bytes, and an unknown event.
        await bench.controller.sendRaw([0x04, 0x3E, 0x0B, 0x02, 0x01, 0x00, 0x01, 1, 2, 3, 4, 5, 6, 0])
        await bench.controller.sendRaw([0x04, 0xFE, 0x01, 0x00])
        await bench.controller.advertise(thermometer, [1, 2])
        await deliveries.wait { $0.count == 2 }
        let statistics = await Central(adapter: bench.adapter).statistics
        #expect(statistics.malformedEvents == 2)
        // What cannot be read counts as unknown too.
        #expect(statistics.unknownEvents == 4)
        #expect(statistics.reportLosses.missing == 1)
        #expect(statistics.reports == 2)
        await bench.adapter.unsubscribe(scan)
    }

    @Test(.row("H14")) func aBusyScannerIsAnErrorAtTheStart() async throws {
        let bench = try await AdapterBench()
        await bench.controller.set {
            $0.statuses[.leSetScanParameters] = [.commandDisallowed, .commandDisallowed]
        }
        await #expect(throws: error(.busy)) {
            try await bench.adapter.subscribe(.balanced) { _ in }
        }
        #expect(await bench.sent.last == .leSetScanEnable)
    }

    /// What another program advertises may be why the controller begins no scan.
    @Test(.row("H14", "W66")) func theErrorOfABusyScannerNamesAnAdvertisementOfAnotherProgram() async throws {
        let bench = try await AdapterBench()
        for isOn in [true, false] {
            // It has the adapter opened: what was sent before is not seen.
            let scan = try await bench.adapter.subscribe(.balanced) { _ in }
            await bench.adapter.unsubscribe(scan)
            await bench.controller.foreign(LESetAdvertisingEnable(isEnabled: isOn))
            await bench.controller.set {
                $0.statuses[.leSetScanParameters] = [.commandDisallowed, .commandDisallowed]
            }
            let refusal = await #expect(throws: BLEError.self) {
                try await bench.adapter.subscribe(.balanced) { _ in }
            }
            #expect(refusal?.code == .busy)
            #expect(refusal?.reason.contains("because it advertises") == isOn)
        }
        let statistics = await Central(adapter: bench.adapter).statistics
        #expect(statistics.failedStarts == 2 && statistics.scansRefusedWhileAdvertising == 1)
    }

    @Test(.row("H12")) func aScanThatAStrangerStopsIsStartedAgain() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        await bench.controller.foreign(.leSetScanEnable)
        await deliveries.wait { $0 == [.notice(.disturbed), .notice(.resumed)] }
        #expect(await bench.sent == identification + start + start)
        await bench.adapter.unsubscribe(scan)
    }

    @Test(.row("O15")) func aScanWithoutTheCapabilityIsRefused() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock { $0.capabilities = 0 }
        do throws(BLEError) {
            _ = try await bench.adapter.subscribe(.balanced) { _ in }
            Issue.record("scanning is not permitted")
        } catch {
            #expect(error.code == .notPermitted)
            #expect(error.hint?.contains("cap_net_raw") == true)
        }
        #expect(await bench.sent.isEmpty)
    }

    @Test(.row("O04")) func anAdapterThatIsOffIsAnErrorOrIsSwitchedOn() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock {
            $0.controllers = [
                ControllerInfo(index: 0, name: "hci0", address: StandInController.ownAddress, isUp: false)
            ]
        }
        await #expect(throws: error(.adapterDown)) {
            try await bench.adapter.subscribe(.balanced) { _ in }
        }
        try await bench.adapter.ready(powerOn: true, during: "start")
        let scan = try await bench.adapter.subscribe(.balanced) { _ in }
        #expect(await bench.sent.contains(.writeLEHostSupport))
        await bench.adapter.unsubscribe(scan)
    }

    /// On a Raspberry Pi a service gives the controller its own address, maybe after a daemon has found the adapter.
    @Test(.row("W57")) func anAdapterThatIsGivenItsOwnAddressIsStillTheOne() async throws {
        let bench = try await AdapterBench()
        let preset = try #require(BluetoothAddress("43:45:C0:00:1F:AC"))
        bench.kernel.withLock {
            $0.controllers = [ControllerInfo(index: 0, name: "hci0", address: preset, isUp: false)]
        }
        await #expect(throws: error(.adapterDown)) {
            try await bench.adapter.subscribe(.balanced) { _ in }
        }
        bench.kernel.withLock {
            $0.controllers = [ControllerInfo(index: 0, name: "hci0", address: StandInController.ownAddress, isUp: true)]
        }
        let scan = try await bench.adapter.subscribe(.balanced) { _ in }
        #expect(await bench.adapter.address == StandInController.ownAddress)
        // From now on it is known by that.
        bench.kernel.withLock {
            $0.controllers = [ControllerInfo(index: 0, name: "hci0", address: preset, isUp: true)]
        }
        await #expect(throws: error(.noAdapter)) {
            try await bench.adapter.subscribe(.balanced) { _ in }
        }
        await bench.adapter.unsubscribe(scan)
    }

    @Test(.row("O01", "O03"), arguments: [true, false]) func anUnpluggedAdapterComesBackUnderAnotherNumber(
        powerOn: Bool
    ) async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        try await bench.adapter.ready(powerOn: powerOn, during: "start")
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        bench.kernel.withLock { $0.controllers = [] }
        await bench.controller.unplug()
        await deliveries.wait { $0 == [.notice(.adapterLost)] }
        await #expect(throws: error(.noAdapter)) {
            try await bench.adapter.subscribe(.balanced) { _ in }
        }
        let again = try await bench.controller.plugIn()
        bench.kernel.withLock {
            $0.descriptors = [again]
            $0.controllers = [
                ControllerInfo(index: 0, name: "hci0", address: BluetoothAddress(rawValue: 1), isUp: true),
                ControllerInfo(index: 3, name: "hci3", address: StandInController.ownAddress, isUp: !powerOn),
            ]
        }
        await deliveries.wait { $0.last == .notice(.resumed) }
        #expect(await bench.adapter.name == "hci3")
        await bench.controller.advertise(thermometer, [])
        await deliveries.wait { if case .found? = $0.last { true } else { false } }
        await bench.adapter.unsubscribe(scan)
    }

    @Test(.row("H15")) func aResetOfTheControllerRestartsTheScan() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        await bench.controller.foreign(.reset)
        await deliveries.wait { $0 == [.notice(.resumed)] }
        #expect(await bench.sent == identification + start + start)
        await bench.adapter.unsubscribe(scan)
    }

    @Test func aCancelledStartLeavesNothingRunning() async throws {
        let bench = try await AdapterBench()
        await bench.controller.set { $0.ignored = [.leSetScanParameters] }
        let task = testTask { try await bench.adapter.subscribe(.balanced) { _ in } }
        await bench.controller.commandsArrived(5)
        task.cancel()
        await #expect(throws: error(.cancelled)) { try await task.value }
        // The parameters get no response; then the scan is switched off.
        await bench.controller.commandsArrived(6)
        #expect(await bench.sent.last == .leSetScanEnable)
    }

    @Test func silentDevicesAreLost() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let deliveries = Deliveries()
            let scan = try await bench.adapter.subscribe(.balanced, lostAfter: .milliseconds(1), deliveries.receive)
            await bench.controller.advertise(thermometer, [])
            await deliveries.wait { if case .lost? = $0.last { true } else { false } }
            await bench.controller.advertise(thermometer, [])
            await deliveries.wait { if case .found? = $0.dropFirst(2).first { true } else { false } }
            await bench.adapter.unsubscribe(scan)
        }
    }

    @Test func timeSpentInitiatingDoesNotCountAsSilence() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let deliveries = Deliveries()
            let scan = try await bench.adapter.subscribe(.balanced, lostAfter: .seconds(2), deliveries.receive)
            await bench.controller.advertise(thermometer, [])
            await deliveries.wait { $0.count == 1 }
            // No response: the radio initiates for longer than the wait for a silent device.
            let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0009), type: .random)
            await #expect(throws: error(.timedOut)) {
                _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(3))
            }
            #expect(!deliveries.all.contains { if case .lost = $0 { true } else { false } })
            await deliveries.wait { if case .lost? = $0.last { true } else { false } }
            await bench.adapter.unsubscribe(scan)
        }
    }

    /// While a scan runs, no entry of the table expires.
    @Test func whatWasHeardLongAgoIsNoResult() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: belt))
            let central = Central(radio: radio)
            let scan = time.task { for try await _ in central.scan(.any, .passive) {} }
            while await central.scanResult(of: peer) == nil { try await time.clock.sleep(for: .milliseconds(100)) }
            await radio.move(belt, to: .outOfRange)
            try await time.clock.sleep(for: .seconds(290))
            #expect(await central.scanResult(of: peer) != nil)
            try await time.clock.sleep(for: .seconds(20))
            #expect(await central.scanResult(of: peer) == nil)
            scan.cancel()
            _ = await scan.result
        }
    }

    @Test func aConnectedDeviceIsRememberedForLong() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: belt))
            let central = Central(radio: radio)
            _ = try await central.collect(for: .seconds(5))
            let link = try await central.connect(peer)
            try await time.clock.sleep(for: .seconds(600))
            #expect(await central.scanResult(of: peer) != nil)
            await link.disconnect()
            try await time.clock.sleep(for: .seconds(1))
            #expect(await central.scanResult(of: peer) == nil)
        }
    }

    @Test(.row("A12")) func aConnectedPeerIsRememberedInACrowd() async throws {
        let bench = try await AdapterBench()
        let peer = PeerID(address: thermometer, type: .random)
        await bench.controller.set { [thermometer] in $0.peers[thermometer] = 0x40 }
        let scan = try await bench.adapter.subscribe(.balanced) { _ in }
        await bench.controller.advertise(thermometer, [])
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        await begun(bench, scans: 1)
        await crowd(bench)
        #expect(await bench.adapter.scanResult(of: peer) != nil)
        await link.controls.disconnect()
        await crowd(bench)
        #expect(await bench.adapter.scanResult(of: peer) == nil)
        await bench.adapter.unsubscribe(scan)
    }
}
