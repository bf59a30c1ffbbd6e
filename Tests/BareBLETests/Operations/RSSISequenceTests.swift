import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Measurements on demand, by a stand-in for a controller.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct RSSISequenceTests {
    private let address = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private let never = Duration.seconds(3600)

    private func attach() async throws -> (Peripheral, VirtualPeripheral, AdapterBench) {
        let (bench, address) = (try await AdapterBench(), address)
        let peer = PeerID(address: address, type: .random)
        await bench.controller.set { $0.peers = [address: 0x40] }
        let controls = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls
        let time = try #require(VirtualTimeTrait.time)
        let peripheral = VirtualPeripheral(.battery, time: time)
        let descriptor = try await peripheral.connect()
        let central = Central(time: time)
        let device = try await central.peripheral(
            over: LinkSocket(adopting: descriptor), to: peer, controls: controls, ConnectOptions(),
            until: central.clock.now + .seconds(10))
        return (device, peripheral, bench)
    }

    private func questions(_ bench: AdapterBench) async -> Int {
        await bench.sent.count { $0 == .readRSSI }
    }

    @Test func eachStepOfAnIteratorIsOneQuestion() async throws {
        let (device, _, bench) = try await attach()
        let sequence = device.rssi(every: .milliseconds(1))
        #expect(await questions(bench) == 0)
        var iterator = sequence.makeAsyncIterator()
        for count in 1...3 {
            #expect(try await iterator.next() == -56)
            #expect(await questions(bench) == count)
        }
        await device.disconnect()
        #expect(try await iterator.next() == nil)
    }

    @Test func theEndOfTheLinkEndsTheWait() async throws {
        let (device, peripheral, bench) = try await attach()
        var iterator = device.rssi(every: never).makeAsyncIterator()
        #expect(try await iterator.next() == -56)
        async let end: Void = peripheral.disconnect()
        await #expect(throws: error(.disconnected)) { _ = try await iterator.next() }
        await end
        #expect(await questions(bench) == 1)
    }

    @Test func aCancelledTaskEndsTheWait() async throws {
        let (device, _, bench) = try await attach()
        let task = testTask {
            for try await _ in device.rssi(every: never) {}
        }
        await bench.until { await questions(bench) > 0 }
        task.cancel()
        try await task.value
        #expect(await device.isConnected)
    }
}
