import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import ClientInSwift5
import ClientInSwift6
import CoreBluetooth
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
