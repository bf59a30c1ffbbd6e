import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import ClientInSwift5
import ClientInSwift6
import CoreBluetooth
import TestSupport
import Testing

/// Code in the manner of iOS programs, which imports CoreBluetooth alone, over a virtual radio.
@Suite(.timeLimit(.minutes(10))) struct ClientTests {
    @Test func theTutorialReadsABelt() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let reader = BeltReader(queue: bench.queue)
            await wait(for: "rate", 3, on: bench.queue) {
                reader.onStep = $0
            } begin: {
                reader.start()
            }
            let steps = bench.queue.sync { reader.steps.filter { $0 != "rate" } }
            #expect(
                steps == ["ready", "found Virtual HRM", "connected", "service 180D", "notifying true", "location 1"])
            #expect(bench.queue.sync { Array(reader.rates.prefix(3)) } == [72, 73, 74])
            await wait(for: "disconnected true", 1, on: bench.queue) {
                reader.onStep = $0
            } begin: {
                reader.stop()
            }
        }
    }

    @Test func theTutorialOffersATemperature() async throws {
        try await Bench.run { bench in
            let thermometer = Thermometer(queue: bench.queue)
            await wait(for: "advertising true", 1, on: bench.queue) {
                thermometer.onStep = $0
            } begin: {
                thermometer.start()
            }
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            #expect(try await phone.read(0x2A1C) == Array("21.5".utf8))
            try await phone.write([1, 2], to: 0x2A1C)
            try await phone.subscribe(to: 0x2A1C)
            #expect(try await phone.nextValue().bytes == Array("22.0".utf8))
            let steps = bench.queue.sync { thermometer.steps }
            #expect(steps == ["added true", "advertising true", "written 2", "subscribed true"])
        }
    }

    /// The times of the program are real. Each step is waited for, so that it does not matter how long they take.
    @Test func aWalkFindsLosesConnectsAndAssembles() async throws {
        try await Bench.run { bench in
            let device = VirtualDevice(
                name: "Walk",
                services: [
                    VirtualService(
                        "6e400001-b5a3-f393-e0a9-e50e24dcca9e",
                        [
                            VirtualCharacteristic(
                                "9d5a0006-3c7e-4b1f-8a26-e4710c95b3d8", .read, value: Array("1.2".utf8)),
                            VirtualCharacteristic(
                                "6e400002-b5a3-f393-e0a9-e50e24dcca9e", .write,
                                onWrite: .echo("6e400003-b5a3-f393-e0a9-e50e24dcca9e")),
                            VirtualCharacteristic("6e400003-b5a3-f393-e0a9-e50e24dcca9e", .notify),
                        ])
                ], maximumMTU: 23)
            let peripheral = await bench.radio.add(device)
            let walk = DeviceWalk(queue: bench.queue, expiry: 0.2)
            let (stream, sink) = AsyncStream.makeStream(of: String.self)
            bench.queue.sync { walk.onStep = { sink.yield($0) } }
            var steps = stream.makeAsyncIterator()
            walk.start()
            while let step = await steps.next(), step != "found" {}
            await bench.radio.move(peripheral, to: .outOfRange)
            while let step = await steps.next(), step != "lost" {}
            walk.connect(timeout: 0.05)
            #expect(await steps.next() == "timed out")
            #expect(await steps.next() == "disconnected true")
            await bench.radio.move(peripheral, to: .near)
            walk.connect(timeout: 600)
            #expect(await steps.next() == "connected")
            #expect(await steps.next() == "version 1.2")
            #expect(await steps.next() == "listening")
            let request = Data((0..<60).map { UInt8($0) })
            walk.request(request)
            var received: [String] = []
            while let step = await steps.next() {
                received.append(step)
                if received.contains("response"), received.contains("written true") { break }
            }
            #expect(received.filter { $0 == "part" }.count == 3)
            #expect(bench.queue.sync { walk.response } == request)
            walk.stop()
            #expect(await steps.next() == "disconnected true")
        }
    }

    @Test func anAsyncWrapperEchoes() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.uart)
            let line = AsyncLine()
            try await line.open()
            for number in 0..<20 as Range<UInt8> {
                #expect(try await line.echo(Data([number, 0xFF])) == Data([number, 0xFF]))
            }
            line.close()
            try await bench.time.clock.sleep(for: .seconds(5))
            await #expect(throws: AsyncLine.Failure.self) { try await line.echo(Data([1])) }
        }
    }

    @Test func aBridgeServesBothRoles() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.uart)
            let bridge = UARTBridge(queue: bench.queue)
            await wait(for: "advertising true", 1, on: bench.queue) {
                bridge.onStep = $0
            } begin: {
                bridge.start()
            }
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            try await phone.subscribe(to: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E")
            let handle = try await phone.characteristic("6E400002-B5A3-F393-E0A9-E50E24DCCA9E").value
            // The device echoes.
            for number in 0..<200 as Range<UInt8> { await phone.command([number], at: handle) }
            for number in 0..<200 as Range<UInt8> { #expect(try await phone.nextValue().bytes == [number]) }
        }
    }

    @Test func aHeartRateApplicationContinuesAfterARestart() async throws {
        let folder = try Folder()
        var settings = CoreBluetoothHost.Settings(environment: [:])
        settings.stateDirectory = folder.path
        let first = settings
        try await Bench.run(first) { bench in
            let device = await bench.radio.add(.heartRate)
            let (monitor, view) = (HeartRateMonitor(), HeartRateView())
            monitor.delegate = view
            monitor.begin(on: bench.queue)
            while view.rates.count < 3 { try await bench.time.clock.sleep(for: .milliseconds(100)) }
            await bench.radio.disconnect(device)
            while view.rates.count < 6 { try await bench.time.clock.sleep(for: .milliseconds(100)) }
            #expect(view.states == ["connected", "lost", "connected"])
            #expect(view.places.last == "chest")
            let rest = try Folder(copyOf: folder)
            monitor.end()
            while view.states.last != "ended" { try await bench.time.clock.sleep(for: .milliseconds(100)) }
            var second = first
            second.stateDirectory = rest.path
            try await bench.runAgain(second) { bench in
                let (monitor, view) = (HeartRateMonitor(), HeartRateView())
                monitor.delegate = view
                monitor.begin(on: bench.queue)
                while view.rates.isEmpty { try await bench.time.clock.sleep(for: .milliseconds(100)) }
                #expect(view.states == ["restored", "connected"])
            }
        }
    }

    /// A method that differs from that of the protocol would compile, and its default would be called.
    @Test func everyMethodOfTheDelegatesIsCalled() async throws {
        try await Bench.run { bench in
            _ = await bench.radio.add(.heartRate)
            let (manager, recorder) = try await bench.manager()
            let device = try await bench.connect(manager, recorder)
            let server = CBPeripheralManager(delegate: recorder, queue: bench.queue)
            try await recorder.wait(for: "state 5")
            let service = CBMutableService(type: CBUUID(string: "FFF0"), primary: true)
            service.characteristics = [
                CBMutableCharacteristic(
                    type: CBUUID(string: "FFF1"), properties: .read, value: nil, permissions: .readable)
            ]
            server.add(service)
            server.startAdvertising(nil)
            try await recorder.wait(for: "didStartAdvertising nil")
            recorder.react { line in
                guard line.hasPrefix("didReceiveRead"), let request = recorder.requests.last else { return }
                server.respond(to: request, withResult: .success)
            }
            let phone = await bench.radio.addCentral()
            try await phone.connect()
            _ = try await phone.read(0xFFF1)
            let request = try #require(recorder.requests.first)
            let callbacks = EveryCallback()
            let calls =
                callbacks.callAsCentral(manager, device, service) + callbacks.callAsPeripheral(server, request, service)
            #expect(callbacks.names.count == calls)
        }
    }

    /// Waits for the `count`-th step with this text, after `begin`.
    private func wait(
        for text: String, _ count: Int, on queue: DispatchQueue, observe: (@escaping (String) -> Void) -> Void,
        begin: () -> Void
    ) async {
        await withCheckedContinuation { continuation in
            let missing = Lock(count)
            queue.sync {
                observe { step in
                    guard step == text else { return }
                    let isLast = missing.withLock { missing in
                        missing -= 1
                        return missing == 0
                    }
                    if isLast { continuation.resume() }
                }
            }
            begin()
        }
    }
}

/// The view of a heart-rate application.
private final class HeartRateView: HeartRateMonitorDelegate, Sendable {
    private let state = Lock<(states: [String], rates: [Int], places: [String?])>(([], [], []))

    var states: [String] { state.withLock { $0.states } }
    var rates: [Int] { state.withLock { $0.rates } }
    var places: [String?] { state.withLock { $0.places } }

    func monitor(_ monitor: HeartRateMonitor, didChange status: String) { state.withLock { $0.states.append(status) } }

    func monitor(_ monitor: HeartRateMonitor, didReceive rate: Int, at location: String?) {
        state.withLock { state in
            state.rates.append(rate)
            state.places.append(location)
        }
    }
}
