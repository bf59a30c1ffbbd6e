import BLECore
import BLELinux
import BareBLECrypto
import TestSupport
import Testing

@testable import BareBLE
@testable import BareBLETestKit

/// What bonds cost where there is none, and encryption on a link that is up, as counts.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct SecurityCostTests {
    private struct Costs: Hashable {
        var requests = 0
        var controllerCommands = 0
        var managementCommands = 0
        /// Looks at the security of a socket, and changes of it.
        var socketCalls = 0
        var wakeUps: UInt64 = 0

        static func - (later: Costs, earlier: Costs) -> Costs {
            Costs(
                requests: later.requests - earlier.requests,
                controllerCommands: later.controllerCommands - earlier.controllerCommands,
                managementCommands: later.managementCommands - earlier.managementCommands,
                socketCalls: later.socketCalls - earlier.socketCalls, wakeUps: later.wakeUps - earlier.wakeUps)
        }
    }

    /// A central whose calls are counted.
    private struct Counted {
        let bench: SecurityBench
        let central: Central
        private let socketCalls = Lock(0)
        private let commands = Lock(0)

        init(_ bench: SecurityBench, hasBonds: Bool) {
            self.bench = bench
            var configuration = Configuration()
            if hasBonds {
                configuration.security = SecurityConfiguration(bonds: bench.bonds)
                configuration.addressHash = { $0.hash }
            }
            var system = bench.radio.system
            let (security, setSecurity) = (system.security, system.setSecurity)
            let (socketCalls, commands) = (socketCalls, commands)
            system.security = { descriptor throws(SystemCallError) in
                socketCalls.withLock { $0 += 1 }
                return try security(descriptor)
            }
            system.setSecurity = { descriptor, level throws(SystemCallError) in
                socketCalls.withLock { $0 += 1 }
                try setSecurity(descriptor, level)
            }
            central = Central(
                configuration,
                adapter: Adapter(
                    .first, loop: bench.radio.loop, logger: configuration.logger,
                    trace: { packet in if packet.isOutgoing { commands.withLock { $0 += 1 } } },
                    security: configuration.security, addressHash: configuration.addressHash, system: system))
        }

        var costs: Costs {
            get async {
                Costs(
                    requests: await bench.device.requestCount, controllerCommands: commands.withLock { $0 },
                    managementCommands: await bench.radio.managementCommands,
                    socketCalls: socketCalls.withLock { $0 }, wakeUps: bench.radio.loop.wakeUps)
            }
        }
    }

    @Test func aReadFromAPeerWithoutABondCostsTheSameWithBondsAndWithout() async throws {
        var found: [Costs] = []
        for hasBonds in [false, true] {
            found.append(
                try await VirtualTime.run { time in
                    let counted = Counted(try await SecurityBench(time), hasBonds: hasBonds)
                    let peripheral = try await counted.central.connect(counted.bench.id, ConnectOptions(mtu: 23))
                    try await peripheral.discover()
                    let before = await counted.costs
                    for _ in 0..<100 { #expect(try await peripheral.read(0xFFF2) == [8]) }
                    let costs = await counted.costs - before
                    await peripheral.disconnect()
                    return costs
                })
        }
        #expect(found[0] == found[1])
        #expect(found[1].requests == 100 && found[1].socketCalls == 0)
        #expect(found[1].controllerCommands == 0 && found[1].managementCommands == 0)
    }

    @Test func aReadOnAnEncryptedLinkCostsOneRequest() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let counted = Counted(bench, hasBonds: true)
            let peripheral = try await counted.central.connect(bench.id, ConnectOptions(mtu: 23))
            try await peripheral.discover()
            let before = await counted.costs
            for _ in 0..<100 { #expect(try await peripheral.read(0xFFF1) == [7]) }
            let costs = await counted.costs - before
            #expect(costs.requests == 100 && costs.socketCalls == 0)
            // New events of the controller are read with each packet, which asks it nothing.
            #expect(costs.controllerCommands == 0 && costs.managementCommands == 0)
            await peripheral.disconnect()
        }
    }

    @Test func anIdleEncryptedLinkIsNotPolled() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let counted = Counted(bench, hasBonds: true)
            let peripheral = try await counted.central.connect(bench.id)
            let values = try await peripheral.subscribe(to: 0xFFF1)
            try await time.clock.sleep(for: .seconds(60))
            let before = await counted.costs
            try await time.clock.sleep(for: .seconds(3_600))
            // The one that ends the sleep.
            #expect(await counted.costs - before == Costs(wakeUps: 1))
            #expect(await peripheral.security.isEncrypted)
            withExtendedLifetime(values) {}
            await peripheral.disconnect()
        }
    }
}
