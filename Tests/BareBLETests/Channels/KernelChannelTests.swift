// Channels over the kernel's own sockets, to a peer of another project: Bumble's credit-based channels, as
// Tests/VM/guest/peripherals/courier.py offers them. Only in the virtual machine, where BAREBLE_KERNEL_TESTS asks for
// it.

import BLECore
import BLELinux
import BareBLE
import Glibc
import Testing

private let isAskedFor = unsafe getenv("BAREBLE_KERNEL_TESTS") != nil

@Suite("Kernel channels", .serialized, .enabled(if: isAskedFor), .timeLimit(.minutes(5)))
struct KernelChannelTests {
    private enum PSM {
        static let echo: UInt16 = 0x80
        static let source: UInt16 = 0x81
        static let closing: UInt16 = 0x82
        static let miser: UInt16 = 0x83
        static let silent: UInt16 = 0x84
        static let locked: UInt16 = 0x86
    }

    private let central = Central()
    private let progress = Self.characteristic(0x31)
    private let purse = Self.characteristic(0x32)
    private let trapdoor = Self.characteristic(0x33)

    private static func characteristic(_ number: UInt64) -> CharacteristicReference {
        .uuid(BluetoothUUID(high: 0xB1E5_0000_7D1C_4F0A | number << 32, low: 0x9C3E_2A5B_6C7D_8E9F))
    }

    private func courier() async throws -> Peripheral {
        try await central.ready(powerOn: true)
        let peer = try #require(PeerID("D1:00:00:00:00:04/random"))
        return try await central.connect(peer, ConnectOptions(timeout: .seconds(30)))
    }

    @Test func packetsOfEverySizeComeBackAsTheyWere() async throws {
        let link = try await courier()
        let channel = try await link.openChannel(psm: PSM.echo, L2CAPChannel.Options(mtu: 2048))
        #expect(channel.sendMTU == 2048)
        var iterator = channel.packets.makeAsyncIterator()
        // Around a segment (23 and 247 bytes, less 2 in the first), the kernel's usual MTU, and the longest.
        for count in [1, 2, 20, 21, 22, 23, 24, 244, 245, 246, 247, 248, 671, 672, 673, 1024, 2047, 2048] {
            let packet = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ count) }
            try await channel.send(packet)
            #expect(try await iterator.next() == packet, "\(count) bytes")
        }
        await #expect(throws: error(.tooLong)) {
            try await channel.send([UInt8](repeating: 0, count: 2049))
        }
        // The attributes can be used beside it, and so can a second channel.
        #expect(try await link.read(progress).count == 4)
        let second = try await link.openChannel(psm: PSM.echo)
        try await second.send([2])
        try await channel.send([1])
        var others = second.packets.makeAsyncIterator()
        #expect(try await others.next() == [2])
        #expect(try await iterator.next() == [1])
        await second.close()
        try await channel.send([3])
        #expect(try await iterator.next() == [3])
        await channel.close()
        #expect(await link.isConnected)
        await link.disconnect()
    }

    @Test func aSlowConsumerHoldsThePeerBack() async throws {
        let link = try await courier()
        let channel = try await link.openChannel(psm: PSM.source, L2CAPChannel.Options(capacity: 8))
        let total: UInt32 = 800
        let held = try await standstill(link) { try await number(link.read(progress)) }
        #expect(held > 8 && held < total)
        var expected: UInt32 = 0
        for try await packet in channel.packets {
            #expect(packet.count == 100)
            guard number(packet) == expected else {
                Issue.record("number \(number(packet)) instead of \(expected)")
                break
            }
            expected += 1
            if expected == total { break }
        }
        #expect(expected == total)
        await link.disconnect()
    }

    @Test func sendingWaitsForThePeersCredits() async throws {
        let link = try await courier()
        let channel = try await link.openChannel(psm: PSM.miser)
        #expect(channel.sendMTU == 100)
        let sent = Lock<UInt32>(0)
        let total: UInt32 = 60
        let sender = Task {
            for number in 0..<total {
                try await channel.send(numbered(number) + [UInt8](repeating: 0xEE, count: 96))
                sent.withLock { $0 = number + 1 }
            }
        }
        let held = try await standstill(link) { sent.withLock { $0 } }
        #expect(held < total)
        await #expect(throws: error(.timedOut)) {
            try await channel.send([0xFF], timeout: .milliseconds(50))
        }
        try await link.write([1], to: purse)
        try await sender.value
        while try await link.read(purse) != numbered(total) + numbered(0) {}
        await channel.close()
        await link.disconnect()
    }

    @Test func packetsSentBeforeThePeerClosesAreDelivered() async throws {
        let link = try await courier()
        let channel = try await link.openChannel(psm: PSM.closing)
        try await channel.send([1])
        var words: [[UInt8]] = []
        for try await word in channel.packets { words.append(word) }
        #expect(words == ["so", "long", "then"].map { Array($0.utf8) })
        await #expect(throws: error(.disconnected)) { try await channel.send([1]) }
        #expect(await link.isConnected)
        #expect(try await link.read(progress).count == 4)
        await link.disconnect()
    }

    @Test func theEndOfTheLinkEndsItsChannels() async throws {
        let link = try await courier()
        let channel = try await link.openChannel(psm: PSM.echo)
        try await channel.send([1])
        let (received, teller) = AsyncStream.makeStream(of: [UInt8].self)
        let end = Task { () -> BLEError? in
            defer { teller.finish() }
            do throws(BLEError) {
                for try await packet in channel.packets { teller.yield(packet) }
                return nil
            } catch {
                return error
            }
        }
        var packets = received.makeAsyncIterator()
        // What is still on its way when a link dies is gone.
        #expect(await packets.next() == [1])
        await #expect(throws: error(.disconnected)) { try await link.read(trapdoor) }
        let failure = await end.value
        #expect(await packets.next() == nil)
        #expect(failure?.code == .disconnected)
        #expect(failure?.hciStatus == .connectionTimeout)
        #expect(await link.disconnected() == .supervisionTimeout)
    }

    @Test func refusalsAndSilenceAreReported() async throws {
        let link = try await courier()
        await #expect(throws: error(.refusedByPeer)) {
            _ = try await link.openChannel(psm: 0x85)
        }
        await #expect(throws: error(.refusedByPeer)) {
            _ = try await link.openChannel(psm: 0x25)
        }
        await #expect(throws: error(.timedOut)) {
            _ = try await link.openChannel(psm: PSM.silent, L2CAPChannel.Options(timeout: .milliseconds(500)))
        }
        let unwanted = Task { _ = try await link.openChannel(psm: PSM.silent) }
        unwanted.cancel()
        await #expect(throws: error(.cancelled)) { try await unwanted.value }
        // Nothing of it is left in the kernel, and the link is as it was.
        try await becomes(0, link)
        let channel = try await link.openChannel(psm: PSM.echo)
        #expect(channelCount() == 1)
        try await channel.send([4])
        var iterator = channel.packets.makeAsyncIterator()
        #expect(try await iterator.next() == [4])
        await channel.close()
        try await becomes(0, link)
        await link.disconnect()
    }

    /// The kernel reports the refusal by the level alone that it wants for the channel then.
    @Test func aRefusalForLackOfSecurityIsReported() async throws {
        let link = try await courier()
        await #expect(throws: error(.insufficientSecurity)) { _ = try await link.openChannel(psm: PSM.locked) }
        #expect(await link.isConnected)
        #expect(try await link.read(progress).count == 4)
        await link.disconnect()
    }

    /// The number of channels with a PSM in the kernel: source, type, destination, type, state, PSM, ...
    private func channelCount() -> Int {
        let file = unsafe open("/sys/kernel/debug/bluetooth/l2cap", O_RDONLY)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(file, &bytes, bytes.count)
        #expect(count > 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n").count { line in
            line.split(separator: " ").dropFirst(5).first.map { $0 != "0" } ?? false
        }
    }

    /// Waits for the kernel, a round trip on the link at a time.
    private func becomes(_ count: Int, _ link: Peripheral) async throws {
        while channelCount() != count { _ = try await link.read(progress) }
    }

    private func number(_ packet: [UInt8]) -> UInt32 {
        packet.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Waits until a number stays the same for a hundred round trips on the link: what the channel has to send goes by
    /// the same link, so it would have gone in between.
    private func standstill(_ link: Peripheral, _ measure: () async throws -> UInt32) async throws -> UInt32 {
        var last = try await measure()
        var still = 0
        while still < 100 {
            _ = try await link.read(progress)
            let now = try await measure()
            still = now == last && now > 0 ? still + 1 : 0
            last = now
        }
        return last
    }
}
