import BareBLE
import ClientInSwift5
import CoreBluetoothTestKit
import Testing

/// Tests of classes in the manner of iOS, as users write them: they import the product, and BareBLE for the UUIDs that
/// a virtual phone reads and writes.
@Suite(.timeLimit(.minutes(10))) struct TestKitTests {
    /// The sample of the product's documentation.
    @Test func aClassFindsAndLosesAVirtualDevice() async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            await CoreBluetoothHost.withRadio(radio) {
                let reader = BeltReader(queue: DispatchQueue(label: "belt"))
                let (stream, sink) = AsyncStream.makeStream(of: String.self)
                reader.onStep = { sink.yield($0) }
                reader.start()
                var steps = stream.makeAsyncIterator()
                #expect(await steps.next() == "ready")
                #expect(await steps.next() == "found Virtual HRM")
                #expect(await steps.next() == "connected")
                await radio.disconnect(belt)
                while let step = await steps.next(), step != "disconnected false" {}
                reader.stop()
            }
        }
    }

    @Test func aClassServesAVirtualPhone() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let phone = await radio.addCentral()
            try await CoreBluetoothHost.withRadio(radio) {
                let thermometer = Thermometer(queue: DispatchQueue(label: "thermometer"))
                let (stream, sink) = AsyncStream.makeStream(of: String.self)
                thermometer.onStep = { sink.yield($0) }
                thermometer.start()
                var steps = stream.makeAsyncIterator()
                while let step = await steps.next(), step != "advertising true" {}
                try await phone.connect()
                #expect(try await phone.read(0x2A1C) == Array("21.5".utf8))
                try await phone.write([1, 2], to: 0x2A1C)
                while let step = await steps.next(), step != "written 2" {}
                withExtendedLifetime(thermometer) {}
            }
        }
    }

    @Test func theClosureReturnsItsResultAndEachHasItsOwnRadio() async throws {
        let states = try await VirtualTime.run { time in
            let on = VirtualRadio(time: time)
            let off = VirtualRadio(time: time)
            await off.powerOff()
            let first = try await CoreBluetoothHost.withRadio(on) { try await Self.state() }
            let second = try await CoreBluetoothHost.withRadio(off) { try await Self.state() }
            return [first, second]
        }
        #expect(states == [.poweredOn, .poweredOff])
    }

    /// Returns the first state that a manager reports.
    private static func state() async throws -> CBManagerState {
        let (stream, sink) = AsyncStream.makeStream(of: CBManagerState.self)
        let observer = StateObserver { sink.yield($0) }
        let manager = CBCentralManager(delegate: observer, queue: DispatchQueue(label: "states"))
        var states = stream.makeAsyncIterator()
        let state = await states.next()
        withExtendedLifetime((manager, observer)) {}
        return try #require(state)
    }

    /// In real time, because the radio of the process lives on.
    @Test func managersOfTheProcessUseARadioToo() async {
        let radio = VirtualRadio()
        await radio.add(.heartRate)
        CoreBluetoothHost.use(radio: radio)
        let reader = BeltReader(queue: DispatchQueue(label: "belt"))
        let (stream, sink) = AsyncStream.makeStream(of: String.self)
        reader.onStep = { sink.yield($0) }
        reader.start()
        var steps = stream.makeAsyncIterator()
        while let step = await steps.next(), step != "rate" {}
        reader.stop()
        while let step = await steps.next(), step != "disconnected true" {}
        withExtendedLifetime(reader) {}
    }
}

private final class StateObserver: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
    private let report: @Sendable (CBManagerState) -> Void

    init(_ report: @escaping @Sendable (CBManagerState) -> Void) {
        self.report = report
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) { report(central.state) }
}
