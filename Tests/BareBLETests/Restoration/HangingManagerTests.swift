import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

/// A service manager that has stopped reading, and as many messages before it as its socket takes.
@Suite(.timeLimit(.minutes(10))) struct HangingManagerTests {
    /// Its copies cannot be removed, which is logged for each. The 5 s for that are waited for once.
    @Test func isWaitedForOnceForManyLinks() async throws {
        let keeper = try VirtualServiceManager()
        let store = DescriptorStore(try #require(ServiceNotifier(keeper.environment())))
        let peers = (0..<3).map { _ in VirtualPeripheral(.battery) }
        for (number, peer) in peers.enumerated() {
            let device = try await Central().attach(descriptor: try await peer.connect(), name: "peer \(number)")
            try await store.put(try await device.detach())
        }

        let address = "@bareble-\(getpid())-hangs"
        let descriptor = try #require(ServiceSocket(address)).listen()
        defer { MemoryFile.close(descriptor) }
        let environment = ServiceEnvironment(
            descriptors: await keeper.takeStored(), variables: ["NOTIFY_SOCKET": address])
        let notifier = try #require(ServiceNotifier(environment))
        #expect(throws: error(.busy)) { while true { try notifier.watchdog() } }

        let log = KeptLog(detail: "reason")
        var configuration = Configuration()
        configuration.logger = log.logger
        let restoration = try await Central(configuration).restore(from: environment)
        let reasons = ["did not respond in time", "accepts no more messages now", "accepts no more messages now"]
        #expect(log.all.count == reasons.count)
        for (line, reason) in zip(log.all, reasons) {
            #expect(line.hasPrefix("the service manager keeps a copy of a link: ") && line.contains(reason), "\(line)")
        }
        #expect(restoration.links.count == 3 && restoration.lostLinks.isEmpty)
        for link in restoration.links { #expect(try await link.read(0x2A19) == [64]) }
    }
}
