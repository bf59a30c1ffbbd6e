// Channels that centrals open, over the kernel's own sockets: a local peripheral on hci0, and this library's client on
// hci1. Only in the virtual machine, where BAREBLE_KERNEL_TESTS asks for it.

import BLECore
import BLELinux
import BareBLE
import Glibc
import TestSupport
import Testing

private let isAskedFor = unsafe getenv("BAREBLE_KERNEL_TESTS") != nil

@Suite("Kernel channel listener", .serialized, .enabled(if: isAskedFor), .timeLimit(.minutes(20)))
struct KernelChannelListenerTests {
    /// A local peripheral that listens, and a client that is connected to it.
    private struct Bed {
        let local: LocalPeripheral
        let listener: ChannelListener
        let advertising: Advertisement.Lease
        let client: Peripheral

        init(security: AccessRequirement.Level = .open, _ options: ChannelListener.Options) async throws {
            let host = try await central("hci0")
            // A link of an earlier test would be used again, and the kernel ends it soon.
            while try (0..<2).contains(where: { try !Controllers.links(of: $0).isEmpty }) {
                try await Task.sleep(for: .milliseconds(20))
            }
            local = LocalPeripheral(LocalPeripheral.Settings(name: "Channels"), on: host)
            listener = try await local.listenForChannels(security: security, options)
            try await local.publish(
                LocalService(0xFFF0, [LocalCharacteristic(.l2capPSM, .read, value: .fixed(listener.psm))]))
            advertising = try await local.advertise([.localName("Channels")])
            let peer = PeerID(address: try Controllers.info(0).address, type: .public)
            client = try await central("hci1").connect(peer, ConnectOptions(timeout: .seconds(30)))
        }

        func end() async {
            await client.disconnect()
            await advertising.stop()
            await local.stop()
        }
    }

    /// 1 MiB each way in all, for longer than the 40 s that the kernel gives a channel to be set up.
    @Test(.row("P27")) func eightChannelsCarryPacketsBothWaysAndTheNinthIsClosedAtOnce() async throws {
        let bed = try await Bed(ChannelListener.Options(mtu: 2048, capacity: 8))
        let psm = try await bed.client.read(.l2capPSM)
        #expect(psm == bed.listener.psm && psm >= 0x80)
        var channels = bed.listener.channels.makeAsyncIterator()
        var pairs: [(near: L2CAPChannel, far: L2CAPChannel)] = []
        for _ in 0..<8 {
            let far = try await bed.client.openChannel(psm: psm, L2CAPChannel.Options(mtu: 2048))
            let incoming = try #require(try await channels.next())
            #expect(incoming.channel.sendMTU == 2048 && far.sendMTU == 2048)
            #expect(incoming.central.peer?.address == (try Controllers.info(1)).address)
            pairs.append((incoming.channel, far))
        }
        // The kernel accepts it, and its end may come before the client has looked at it.
        do {
            for try await packet in try await bed.client.openChannel(psm: psm).packets {
                Issue.record("\(packet.count) bytes")
            }
        } catch {
            #expect(error.code == .refusedByPeer)
        }
        #expect(bed.listener.refusedChannels == 1)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, pair) in pairs.enumerated() {
                for (from, to) in [(pair.near, pair.far), (pair.far, pair.near)] {
                    group.addTask { try await Self.pour(into: from, UInt8(number)) }
                    group.addTask { try await Self.drain(to, UInt8(number)) }
                }
            }
            try await group.waitForAll()
        }
        // The attributes can be used beside them, and there is room for another one once one is closed.
        #expect(try await bed.client.read(.l2capPSM) == psm)
        await pairs[0].far.close()
        var packets = pairs[0].near.packets.makeAsyncIterator()
        #expect(try await packets.next() == nil)
        _ = try await bed.client.openChannel(psm: psm)
        #expect(try await channels.next() != nil)
        await bed.end()
    }

    private static let size = 2_048
    private static let count = 64

    private static func packet(_ index: Int, _ number: UInt8) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ index) ^ number }
    }

    private static func pour(into channel: L2CAPChannel, _ number: UInt8) async throws {
        for index in 0..<count { try await channel.send(packet(index, number)) }
    }

    private static func drain(_ channel: L2CAPChannel, _ number: UInt8) async throws {
        var packets = channel.packets.makeAsyncIterator()
        for index in 0..<count {
            let isAsSent = try await packets.next() == packet(index, number)
            #expect(isAsSent, "packet \(index) of channel \(number)")
        }
    }

    @Test func aPSMHasOneListenerUntilItStops() async throws {
        let local = LocalPeripheral(on: try await central("hci0"))
        let first = try await local.listenForChannels()
        let second = try await local.listenForChannels()
        #expect(first.psm >= 0x80 && second.psm != first.psm)
        let error = await #expect(throws: BLEError.self) { _ = try await local.listenForChannels(psm: first.psm) }
        #expect(error?.code == .busy)
        await first.stop()
        #expect(try await local.listenForChannels(psm: first.psm).psm == first.psm)
        await local.stop()
    }

    @Test func theKernelEnforcesTheSecurity() async throws {
        let bed = try await Bed(security: .encrypted, ChannelListener.Options())
        do {
            _ = try await bed.client.openChannel(
                psm: bed.listener.psm, L2CAPChannel.Options(timeout: .seconds(3)))
            Issue.record("the link is not encrypted")
        } catch {
            #expect(error.code == .timedOut || error.code == .insufficientSecurity, "\(error)")
        }
        #expect(try await bed.client.read(.l2capPSM) == bed.listener.psm, "the link goes on")
        await bed.end()
    }

    @Test(.row("P26")) func theConnectionParametersOfACentralAreReadAndChanged() async throws {
        let bed = try await Bed(ChannelListener.Options())
        let id = try #require(await bed.local.centrals.first).id
        #expect(try await bed.local.connectionParameters(of: id).interval.upperBound <= .milliseconds(50))
        let changed = try await bed.local.requestConnectionParameters(.lowPower, of: id)
        #expect(changed.latency == 2 && changed.supervisionTimeout == .seconds(6))
        #expect(try await bed.local.connectionParameters(of: id) == changed)
        await bed.end()
    }

    @Test func whatEndsWhileItWaitsIsNoTrouble() async throws {
        let bed = try await Bed(ChannelListener.Options(capacity: 1))
        var channels = bed.listener.channels.makeAsyncIterator()
        let far = try await bed.client.openChannel(psm: bed.listener.psm)
        let near = try #require(try await channels.next()).channel
        try await far.send([1])
        try await far.send([2])
        await far.close()
        var received: [[UInt8]] = []
        for try await packet in near.packets { received.append(packet) }
        #expect(received == [[1], [2]])
        let again = try await bed.client.openChannel(psm: bed.listener.psm)
        let other = try #require(try await channels.next()).channel
        await bed.client.disconnect()
        await #expect(throws: BLEError.self) {
            for try await _ in other.packets {}
        }
        #expect(await !again.isOpen)
        await bed.end()
    }
}

/// A central on an adapter that is on.
private func central(_ adapter: String) async throws -> Central {
    var configuration = Configuration()
    configuration.adapter = .named(adapter)
    let central = Central(configuration)
    try await central.ready(powerOn: true)
    return central
}
