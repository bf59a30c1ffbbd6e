import BLECore
import BLELinux
import BareBLE
import Testing

/// Radio links that the next program takes over.
@Suite(.serialized, .timeLimit(.minutes(10))) struct AdoptionFaultTests {
    private static let noManager = ServiceEnvironment(variables: [:], processID: 1)

    /// Links that are up, without their owner.
    private func detached(_ count: Int, _ bench: FaultyAdapter) async throws -> [DetachedLink] {
        var links: [DetachedLink] = []
        for _ in 0..<count {
            let device = try await bench.central.connect(PretendedMachine.peer, ConnectOptions(timeout: .seconds(5)))
            links.append(try await device.detach())
            await bench.machine.park()
        }
        return links
    }

    @Test("the controller is asked once, whether it responds or not", arguments: [false, true])
    func askedOnce(isSilent: Bool) async throws {
        let bench = try await FaultyAdapter(mayCommand: false)
        let links = try await detached(3, bench)
        if isSilent { await bench.machine.fallSilent() }
        let before = await bench.machine.received.count
        let adapter = bench.nextAdapter()
        let central = Central(Configuration(), adapter: adapter)
        let restoration = try await central.restore(links, from: Self.noManager)
        #expect(restoration.links.count == 3 && restoration.lostLinks.isEmpty)
        let asked = await Array(bench.machine.received.dropFirst(before))
        #expect(
            asked
                == (isSilent
                    ? [.leReadLocalFeatures]
                    : [.leReadLocalFeatures, .readLocalSupportedCommands, .readAddress, .leSetEventMask]))
        for link in restoration.links { await link.disconnect() }
        await adapter.unsubscribeAll()
        await bench.end()
    }
}
