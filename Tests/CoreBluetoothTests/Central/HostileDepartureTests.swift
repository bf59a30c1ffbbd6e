import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import CoreBluetooth
import TestSupport
import Testing

/// Programs on CoreBluetooth that leave a device during a call: no response is that of another call, and none is
/// reported.
@Suite(.timeLimit(.minutes(10))) struct HostileDepartureTests {
    private static let one = CBUUID(string: "FFF1")
    private static let two = CBUUID(string: "FFF2")

    /// A device with values at the handles 3 and 5.
    private static var device: VirtualDevice {
        VirtualDevice(
            name: "Sensor",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, [.read, .write], value: [1]),
                        VirtualCharacteristic(0xFFF2, [.read, .write], value: [2]),
                    ])
            ])
    }

    /// Connects the device by two managers, which share the link.
    private func share(_ bench: Bench) async throws -> (Bench.Link, Bench.Link) {
        let device = await bench.radio.add(Self.device, latency: .zero)
        let (one, other) = try await bench.sharers()
        var links: [Bench.Link] = []
        for sharer in [one, other] {
            sharer.peripheral.delegate = sharer.recorder
            sharer.manager.connect(sharer.peripheral)
            try await sharer.recorder.wait(for: "didConnect 2")
            links.append(try await bench.link(to: device, of: sharer))
        }
        return (links[0], links[1])
    }

    /// The way in which a program leaves a device.
    enum Departure: CaseIterable, Sendable { case cancellation, lastPeripheral, lastManager }

    /// The call that is under way then.
    enum UnderWay: CaseIterable, Sendable {
        case read, discovery, subscription

        /// The opcode of the request that has no response.
        var opcode: UInt8 {
            switch self {
            case .read: 0x0A
            case .discovery: 0x10
            case .subscription: 0x12
            }
        }

        /// A response to it.
        var response: [UInt8] {
            switch self {
            case .read: [0x0B, 66]
            case .discovery: [0x11, 6, 9, 0, 12, 0, 0xF7, 0xFF]
            case .subscription: [0x13]
            }
        }
    }

    /// The response comes on the next link.
    @Test(arguments: Departure.allCases, UnderWay.allCases)
    func aCallThatIsUnderWayIsNotReportedAfterItsProgramHasLeft(_ departure: Departure, _ call: UnderWay) async throws {
        try await Bench.run { bench in
            let device = await bench.radio.add(
                VirtualDevice(
                    name: "Sensor",
                    services: [
                        VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .notify], value: [7])])
                    ]), latency: .zero)
            let former = CallbackRecorder(bench.time)
            let requests = Lock(0)
            var keptManager: CBCentralManager?
            var keptPeripheral: CBPeripheral?
            do {
                let manager = CBCentralManager(delegate: former, queue: bench.queue)
                try await former.wait(for: "state 5")
                let peripheral = try await bench.connect(manager, former)
                let value = try #require(try await bench.discover(peripheral, former)[Self.one])
                try await bench.time.clock.sleep(for: .seconds(5))
                await device.behave { pdu, respond in
                    guard pdu.first == call.opcode else { return withoutDelay(respond(pdu)) }
                    requests.withLock { $0 += 1 }
                    return []
                }
                switch call {
                case .read: peripheral.readValue(for: value)
                case .discovery: peripheral.discoverServices(nil)
                case .subscription: peripheral.setNotifyValue(true, for: value)
                }
                await bench.time.settle()
                #expect(requests.withLock { $0 } == 1)
                if departure != .lastManager { keptManager = manager }
                if departure != .lastPeripheral { keptPeripheral = peripheral }
                if departure == .cancellation { manager.cancelPeripheralConnection(peripheral) }
            }
            former.forget()
            try await bench.time.clock.sleep(for: .seconds(5))
            // Thirty seconds after the request the link ends in any case.
            #expect(await !device.isConnected)
            try await bench.time.clock.sleep(for: .seconds(55))
            let reports = departure == .cancellation ? ["didDisconnect nil false 0"] : []
            let state: CBPeripheralState? = departure == .lastPeripheral ? nil : .disconnected
            #expect(former.lines == reports)
            #expect(keptPeripheral?.state == state)
            await device.behave(nil)
            let (manager, recorder) = try await bench.manager()
            let peripheral = try await bench.connect(manager, recorder)
            let value = try #require(try await bench.discover(peripheral, recorder)[Self.one])
            try await bench.time.clock.sleep(for: .seconds(5))
            await device.send(raw: call.response)
            peripheral.readValue(for: value)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(recorder.lines == ["didUpdateValueFor FFF1 [7]"])
            #expect(former.lines == reports)
            withExtendedLifetime((keptManager, keptPeripheral, manager)) {}
        }
    }

    /// Two managers read values over one link; the device responds to the first one after `delay`, or never. Meanwhile
    /// that manager leaves, and connects again.
    private func leaveDuringARead(
        _ one: Bench.Link, _ other: Bench.Link, _ bench: Bench, respondingAfter delay: Duration?
    ) async throws {
        await one.device.behave { pdu, respond in
            let responses = respond(pdu)
            guard pdu == [0x0A, 3, 0] else { return withoutDelay(responses) }
            guard let delay else { return [] }
            return responses.map { (delay: delay, pdu: $0) }
        }
        one.peripheral.readValue(for: try one.characteristic(Self.one))
        await bench.time.settle()
        other.peripheral.readValue(for: try other.characteristic(Self.two))
        one.manager.cancelPeripheralConnection(one.peripheral)
        try await one.recorder.wait(for: "didDisconnect nil false 0")
        one.manager.connect(one.peripheral)
        try await one.recorder.wait(for: "didConnect 2")
    }

    @Test(.row("T08")) func aLateResponseIsNotThatOfAnotherManagersCall() async throws {
        try await Bench.run { bench in
            let (one, other) = try await share(bench)
            try await leaveDuringARead(one, other, bench, respondingAfter: .seconds(10))
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(one.recorder.lines == ["didDisconnect nil false 0", "didConnect 2"])
            #expect(other.recorder.lines == ["didUpdateValueFor FFF2 [2]"])
            await one.device.behave(nil)
            let value = try #require(try await bench.discover(one.peripheral, one.recorder)[Self.one])
            one.peripheral.readValue(for: value)
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(one.recorder.lines == ["didUpdateValueFor FFF1 [1]"])
        }
    }

    /// The link ends for both managers thirty seconds after the request.
    @Test(.row("T09")) func aResponseThatNeverComesEndsTheLinkThatOthersUse() async throws {
        try await Bench.run { bench in
            let (one, other) = try await share(bench)
            let begin = bench.time.now
            try await leaveDuringARead(one, other, bench, respondingAfter: nil)
            try await other.recorder.wait(for: "didDisconnect")
            #expect((Duration.seconds(30)..<Duration.seconds(33)).contains(bench.time.now - begin))
            try await bench.time.clock.sleep(for: .seconds(60))
            #expect(
                one.recorder.lines == ["didDisconnect nil false 0", "didConnect 2", "didDisconnect CB 6 false 0"])
            #expect(other.recorder.lines == ["didDisconnect CB 6 false 0"])
            await one.device.behave(nil)
            for link in [one, other] {
                link.recorder.clear()
                link.manager.connect(link.peripheral)
                try await link.recorder.wait(for: "didConnect 2")
                let value = try #require(try await bench.discover(link.peripheral, link.recorder)[Self.one])
                link.peripheral.readValue(for: value)
                try await bench.time.clock.sleep(for: .seconds(10))
                #expect(link.recorder.lines == ["didUpdateValueFor FFF1 [1]"])
            }
        }
    }
}
