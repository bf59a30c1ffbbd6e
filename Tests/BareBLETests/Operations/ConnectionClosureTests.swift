import BLECore
import BareBLE
import BareBLETestKit
import Testing

/// Closures that do not escape run where their caller does, and may change what is the caller's.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct ConnectionClosureTests {
    /// A value that may not leave its isolation.
    private final class Levels {
        var values: [UInt8] = []
    }

    private actor Reader {
        var values: [UInt8] = []

        func read(by central: Central, _ peer: PeerID) async throws {
            values += try await central.withConnection(peer) { device in
                values.append(0)
                let level = try await device.read(.batteryLevel).percentage
                self.values.append(level)
                return [level]
            }
        }

        func read(toFirst filter: ScanFilter, by central: Central) async throws {
            try await central.withConnection(toFirst: filter) { device, scanResult in
                self.values.append(scanResult.peer == device.id ? 1 : 0)
                self.values.append(try await device.read(.batteryLevel).percentage)
            }
        }

        func read(by session: Session) async throws {
            try await session.withPeripheral { device in
                self.values.append(try await device.read(.batteryLevel).percentage)
            }
        }
    }

    @MainActor private final class Screen {
        var level: UInt8 = 0

        func read(by session: Session) async throws {
            try await session.withPeripheral { device in
                level = try await device.read(.batteryLevel).percentage
                MainActor.assertIsolated()
            }
        }

        func read(by central: Central, _ peer: PeerID) async throws {
            try await central.withConnection(peer) { device in
                level = try await device.read(.batteryLevel).percentage
                MainActor.assertIsolated()
            }
        }
    }

    @Test func aConnectionChangesLocalState() async throws {
        let radio = VirtualRadio(time: try #require(VirtualTimeTrait.time))
        let peer = try #require(await radio.id(of: radio.add(.battery)))
        let central = Central(radio: radio)
        var level: UInt8 = 0
        let levels = try await central.withConnection(peer) { device in
            level = try await device.read(.batteryLevel).percentage
            let levels = Levels()
            levels.values.append(level)
            return levels
        }
        #expect(level == 64)
        #expect(levels.values == [64])
        var count = 0
        try await central.withConnection(toFirst: .address(peer.address)) { _, _ in count += 1 }
        #expect(count == 1)
    }

    @Test func aConnectionChangesTheStateOfAnActor() async throws {
        let radio = VirtualRadio(time: try #require(VirtualTimeTrait.time))
        let peer = try #require(await radio.id(of: radio.add(.battery)))
        let central = Central(radio: radio)
        let reader = Reader()
        try await reader.read(by: central, peer)
        try await reader.read(toFirst: .address(peer.address), by: central)
        #expect(await reader.values == [0, 64, 64, 1, 64])
        let screen = Screen()
        try await screen.read(by: central, peer)
        #expect(await screen.level == 64)
    }

    @Test func aSessionChangesStateOfItsCaller() async throws {
        let session = try await SessionBench(.battery).session()
        var level: UInt8 = 0
        try await session.withPeripheral { level = try await $0.read(.batteryLevel).percentage }
        #expect(level == 64)
        let reader = Reader()
        try await reader.read(by: session)
        #expect(await reader.values == [64])
        let screen = Screen()
        try await screen.read(by: session)
        #expect(await screen.level == 64)
        await session.disconnect()
    }

    /// The link ends also when the closure throws.
    @Test func aFailedClosureEndsTheLink() async throws {
        struct Refused: Error {}
        let radio = VirtualRadio(time: try #require(VirtualTimeTrait.time))
        let peer = try #require(await radio.id(of: radio.add(.battery)))
        let central = Central(radio: radio)
        var device: Peripheral?
        await #expect(throws: Refused.self) {
            try await central.withConnection(peer) { peripheral in
                device = peripheral
                throw Refused()
            }
        }
        #expect(await device?.disconnectReason == .requested)
    }
}
