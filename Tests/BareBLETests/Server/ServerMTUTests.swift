import BLECore
import BLELinux
import BareBLECrypto
import BareBLETestKit
import TestSupport
import Testing

@testable import BareBLE

/// One MTU for both roles of a link (Core Vol 3 Part F, 3.4.2).
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct ServerMTUTests {
    @Test func theSmallestOfAllValuesCountsOnceBothExchangesAreOver() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let central = try await bench.raw()
            let handle = await bench.handle(0xFFF1)
            let id = central.id
            let opening = bench.time.task { try await bench.local.peripheral(of: id) }
            #expect(await central.receive() == [0x02, 0x05, 0x02])
            // The central's own exchange ends first.
            #expect(await central.request([0x02, 200, 0]) == [0x03, 0x05, 0x02])
            #expect(await bench.local.centrals.map(\.mtu) == [200])
            // It may use what was agreed on: the write is refused for another reason than its length.
            let long = [0x12] + handle.bytes + [UInt8](repeating: 0, count: 97)
            #expect(await central.request(long) == [0x01, 0x12] + handle.bytes + [0x03])
            central.send([0x03, 50, 0])
            let device = try await opening.value
            #expect(await device.mtu == 50)
            #expect(await bench.local.centrals.map(\.mtu) == [50])
            #expect(await bench.local.centrals.map(\.maximumUpdateLength) == [47])
            #expect(await central.request(long) == [0x01, 0x12, 0, 0, 0x04])
        }
    }

    @Test func bothRolesOfALinkThatThisProgramHasMadeOfferTheSame() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let (ours, theirs) = try LinkSocket.pair()
            var peer = LinkSocket(adopting: theirs)
            let connecting = bench.time.task {
                try await bench.central.attach(descriptor: ours, ConnectOptions(mtu: 64))
            }
            await bench.time.settle()
            #expect(peer.receivePacket() == [0x02, 64, 0])
            #expect(peer.send([0x03, 100, 0]) == .sent)
            let device = try await connecting.value
            await bench.central.serve(device)
            #expect(peer.send([0x02, 200, 0]) == .sent)
            await bench.time.settle()
            #expect(peer.receivePacket() == [0x03, 64, 0])
            #expect(await device.mtu == 64)
            #expect(await bench.local.centrals.map(\.mtu) == [64])
            await device.disconnect()
        }
    }

    /// The exchange has what the search for the link has left of the time.
    @Test func aConnectThatUsesTheLinkOfACentralEndsAtItsDeadline() async throws {
        let delayed = Lock<EventLoop?>(nil)
        try await PairingBench.run { configuration in
            // The address is resolved after the deadline was set.
            configuration.addressHash = { message in
                delayed.withLock { $0.take() }?.jump(by: .seconds(4))
                return message.hash
            }
        } _: { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            let identity = try #require(await phone.peer)
            var security = VirtualSecurity()
            security.identity = VirtualIdentity(identity, key: Array(0x20...0x2F))
            try await bench.pair(phone, security)
            #expect(await bench.paired().map(\.peer) == [identity])
            await phone.pause()
            let address = bench.privateAddress(of: security, 2)
            let options = ConnectOptions(timeout: .seconds(10), security: .none)
            let begin = bench.time.now
            delayed.withLock { $0 = bench.time.loop }
            let late = await #expect(throws: BLEError.self) {
                _ = try await bench.central.connectAlone(address, options)
            }
            #expect(late?.code == .timedOut)
            let isTaken = delayed.withLock { $0 == nil }
            #expect(isTaken)
            #expect(bench.time.now - begin == .seconds(10))
            await phone.resume()
        }
    }
}
