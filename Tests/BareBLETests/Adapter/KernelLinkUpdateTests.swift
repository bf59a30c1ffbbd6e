// Connection parameters and PHYs over the kernel's own sockets, with Bumble's controllers. Only in the virtual machine,
// where BAREBLE_KERNEL_TESTS asks for it.

import BLECore
import BareBLE
import Glibc
import Testing

private let isAskedFor = unsafe getenv("BAREBLE_KERNEL_TESTS") != nil

@Suite("Kernel link updates", .serialized, .enabled(if: isAskedFor), .timeLimit(.minutes(5)))
struct KernelLinkUpdateTests {
    @Test func whatIsAskedForIsWhatTheLinkHas() async throws {
        let central = Central()
        try await central.ready(powerOn: true)
        let peer = try #require(PeerID("D1:00:00:00:00:04/random"))
        try await central.withConnection(peer, ConnectOptions(timeout: .seconds(30))) { link in
            #expect(try await link.connectionParameters().interval.lowerBound <= .milliseconds(50))
            let changed = try await link.requestConnectionParameters(.lowPower)
            #expect(changed.latency == 2 && changed.supervisionTimeout == .seconds(6))
            #expect(try await link.connectionParameters() == changed)
            let phy = try await link.requestPHY(.le2M)
            #expect(phy == Peripheral.LinkPHY(transmit: .le2M, receive: .le2M))
            #expect(try await link.phy().receive.rawValue > 0)
        }
    }
}
