import BareBLE
import BareBLECrypto
import BareBLETestKit
import TestSupport
import Testing

/// Peers that repeat a hash that is not that of their database. The hash of the belt is what the specification
/// calculates.
@Suite struct DatabaseHashCheckTests {
    private static func belt() throws -> VirtualDevice {
        try #require(VirtualDevice.presets.first { $0.name == "heart-rate" }).device
    }

    /// The belt's hash, and two characteristics in each other's place.
    private static func impostor() throws -> VirtualDevice {
        var device = try belt()
        device.services = device.services.map { service in
            var service = service
            if service.uuid == 0x180A { service.characteristics.reverse() }
            return service
        }
        return device
    }

    private static func central(isChecking: Bool) -> Central {
        var configuration = Configuration()
        if isChecking { configuration.databaseHash = { $0.hash } }
        return Central(configuration)
    }

    private static func cache(
        of device: VirtualDevice, isChecking: Bool
    ) async throws -> (cache: GATTCache?, wrongHashes: Int) {
        let link = try await central(isChecking: isChecking).attach(to: VirtualPeripheral(device))
        try await link.discover(level: .full)
        let cache = try await link.cache()
        let count = await link.statistics.wrongDatabaseHashes
        await link.disconnect()
        return (cache, count)
    }

    @Test func whatAgreesIsKept() async throws {
        let (cache, wrongHashes) = try await Self.cache(of: Self.belt(), isChecking: true)
        #expect(cache?.databaseHash?.count == 16)
        #expect(wrongHashes == 0)
    }

    /// Nothing is kept, and it is counted; the link itself continues.
    @Test(.row("G26")) func aHashOfAnotherDatabaseIsNotKept() async throws {
        let (cache, wrongHashes) = try await Self.cache(of: Self.impostor(), isChecking: true)
        #expect(cache == nil)
        #expect(wrongHashes == 1)
        // Without a function that computes it, the peer is trusted.
        let (believed, none) = try await Self.cache(of: Self.impostor(), isChecking: false)
        #expect(believed?.databaseHash != nil && none == 0)
    }

    /// A cache that was made from an impostor, or by hand, is found out before the real device is addressed by it.
    @Test(.row("G26")) func aForgedCacheIsNotUsed() async throws {
        let forged = try #require(try await Self.cache(of: Self.impostor(), isChecking: false).cache)
        let link = try await Self.central(isChecking: true).attach(
            to: VirtualPeripheral(try Self.belt()), ConnectOptions(cache: forged))
        #expect(await link.database == nil)
        #expect(await link.statistics.wrongDatabaseHashes == 1)
        let real = try await link.discover(level: .full)
        #expect(real.characteristics != forged.database.characteristics)
        await link.disconnect()
    }
}
