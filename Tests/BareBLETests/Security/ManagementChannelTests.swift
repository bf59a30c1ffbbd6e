import BLECore
import BLELinux
import Glibc
import TestSupport
import Testing

@testable import BareBLE

/// The management interface of one adapter, over a socketpair with the kernel's end in the test. Packets follow the
/// kernel's `mgmt.h`.
@Suite struct ManagementChannelTests {
    private typealias Channel = ManagementChannel

    private let powered: [UInt8] = packet("01000300 0700 0500 00 010a0000")

    @Test func commandsGoToTheAdapterAndResponsesToTheirPurpose() throws {
        var bench = try Bench()
        let pair = ManagementPairDevice(
            ManagementPeer(PeerID(address: BluetoothAddress("C6:55:44:33:22:11")!, type: .random)), .noInputNoOutput)
        let (_, none) = bench.channel.send(pair, for: .pairing(1))
        let (_, also) = bench.channel.send(ManagementSetPowered(true), for: .setup)
        #expect(none.isEmpty && also.isEmpty && bench.channel.unfinishedCommands == 2)
        #expect(
            try bench.taken() == [packet("19000300 0800 1122334455c602 03"), packet("05000300 0100 01")])
        // One of another adapter with the same code, and one that says nothing of either.
        try bench.kernel(packet("01000400 0700 0500 00 000a0000"))
        try bench.kernel(packet("07000300 0300 000000"))
        try bench.kernel(powered)
        try bench.kernel(packet("01000300 0a00 1900 00 1122334455c602"))
        let events = bench.read()
        guard events.count == 3, case .received(.unknown(7, [0, 0, 0])) = events[0],
            case .finished(.setup, .setPowered, .success(let complete)) = events[1],
            case .finished(.pairing(1), .pairDevice, .success) = events[2]
        else {
            Issue.record("\(events)")
            return
        }
        #expect(try complete.response(to: ManagementSetPowered.self) == [.powered, .lowEnergy, .secureConnections])
        #expect(bench.channel.counts.strays.foreign == 1 && bench.channel.counts.unknown == 1)
        #expect(bench.channel.unfinishedCommands == 0)
    }

    @Test func eventsOfTheAdapterAreReportedInOrder() throws {
        var bench = try Bench()
        try bench.kernel(packet("06000300 0400 000a0000"))
        try bench.kernel(packet("06000400 0400 010a0000"))
        try bench.kernel(packet("0f000300 0c00 1122334455c602 00 40e20100"))
        try bench.kernel(packet("04000500 0000"))
        try bench.kernel(packet("05000400 0000"))
        // Damaged: the length field does not fit, and a known event is too short.
        try bench.kernel([6, 0, 3, 0, 4, 0, 1])
        try bench.kernel(packet("0f000300 0100 00"))
        let events = bench.read()
        guard events.count == 3, case .received(.newSettings(let settings)) = events[0],
            case .received(.userConfirmationRequest(let request)) = events[1], case .added(index: 5) = events[2]
        else {
            Issue.record("\(events)")
            return
        }
        #expect(settings == [.lowEnergy, .secureConnections] && request.number == 123_456)
        #expect(bench.channel.counts.malformed == 2)
    }

    @Test func aRemovedAdapterFailsItsCommandsAndMayReturnWithAnotherIndex() throws {
        var bench = try Bench()
        _ = bench.channel.send(ManagementSetPowered(true), for: .setup)
        try bench.kernel(packet("05000300 0000"))
        try bench.kernel(powered)
        let events = bench.read()
        guard events.count == 2, case .removed = events[0],
            case .finished(.setup, .setPowered, .failure(let failure)) = events[1]
        else {
            Issue.record("\(events)")
            return
        }
        #expect(failure.reason == .adapterLost && bench.channel.counts.strays.foreign == 1)
        // The index may be another adapter's by now: nothing is sent to it, and nothing read of it.
        _ = try bench.taken()
        guard
            case .finished(.setup, .setPowered, .failure(let refusal))? =
                bench.channel.send(ManagementSetPowered(true), for: .setup).events.first
        else {
            Issue.record("a command to the former index waits")
            return
        }
        try bench.kernel(packet("06000300 0400 000a0000"))
        #expect(try refusal.reason == .adapterLost && bench.taken().isEmpty && bench.read().isEmpty)
        #expect(bench.channel.use(adapter: 7).isEmpty)
        _ = bench.channel.send(ManagementSetPowered(true), for: .setup)
        #expect(try bench.taken() == [packet("05000700 0100 01")])
        guard case .finished(.setup, .setPowered, .failure)? = bench.channel.use(adapter: 8).first else {
            Issue.record("a command to the former index waits on")
            return
        }
    }

    @Test func aLostSocketIsReportedAndFailsEverythingOnce() throws {
        var bench = try Bench()
        _ = bench.channel.send(ManagementSetPowered(true), for: .task(1))
        _ = bench.channel.send(ManagementSetPowered(false), for: .task(2))
        bench.hangUp()
        let events = bench.read() + bench.channel.close()
        guard events.count == 3, case .lost = events[0],
            case .finished(.task(1), .setPowered, .failure(let failure)) = events[1],
            case .finished(.task(2), .setPowered, .failure) = events[2]
        else {
            Issue.record("\(events)")
            return
        }
        #expect(failure.reason == .socketLost && !bench.channel.isOpen && bench.channel.descriptor == nil)
        #expect(bench.channel.close().isEmpty && bench.read().isEmpty)
        // What is sent then fails at once.
        guard
            case .finished(.none, .setPowered, .failure)? =
                bench.channel.send(ManagementSetPowered(true), for: .none).events.first
        else {
            Issue.record("a command without a socket waits")
            return
        }
    }

    @Test func aPacketThatTheKernelRefusesFailsAlone() throws {
        let bench = try Bench(largestPacket: 16)
        let (_, events) = bench.channel.send(ManagementSetPrivacy(nil), for: .setup)
        guard case .finished(.setup, .setPrivacy, .failure(let failure))? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(failure.reason == .tooLong(limit: 16))
        // The kernel's buffer is full.
        var small: Int32 = 1
        _ = unsafe setsockopt(bench.channel.descriptor ?? -1, SOL_SOCKET, SO_SNDBUF, &small, 4)
        var refused: [Channel.Event] = []
        for adapter in 0..<2_000 as Range<UInt16> where refused.isEmpty {
            refused = bench.channel.send(ManagementSetPowered(true).packet(adapter: adapter), for: .none).events
        }
        guard case .finished(.none, .setPowered, .failure(let full))? = refused.first else {
            Issue.record("nothing was refused")
            return
        }
        #expect(full.reason == .notSent(errno: EAGAIN))
    }

    @Test func timeEndsWhatHasNoResponse() throws {
        var bench = try Bench()
        _ = bench.channel.send(ManagementSetBondable(false), for: .setup, timeout: .seconds(1))
        #expect(bench.channel.timePassed().isEmpty)
        let deadline = try #require(bench.channel.nextDeadline)
        bench.time.withLock { $0 = deadline }
        guard case .finished(.setup, .setBondable, .failure(let failure))? = bench.channel.timePassed().first else {
            Issue.record("it waits on")
            return
        }
        #expect(failure.reason == .timeout && bench.channel.nextDeadline == nil)
        try bench.kernel(packet("01000300 0700 0900 00 010a0000"))
        #expect(bench.read().isEmpty)
        #expect(bench.channel.counts.timeouts == 1 && bench.channel.counts.strays.late == 1)
    }

    @Test func aCancelledCommandReportsNothing() throws {
        var bench = try Bench()
        let (ticket, _) = bench.channel.send(ManagementSetPowered(true), for: .task(1))
        bench.channel.cancel(ticket)
        bench.channel.cancel(ticket)
        try bench.kernel(powered)
        #expect(bench.read().isEmpty && bench.channel.counts.strays.foreign == 0)
    }

    /// One wake-up reads 64 packets, so that a flood leaves time for the loop's other descriptors.
    @Test(.row("O31")) func aFloodIsReadInTurns() throws {
        var bench = try Bench()
        for _ in 0..<100 { try bench.kernel(packet("06000300 0400 000a0000")) }
        #expect(bench.read().count == 64)
        #expect(bench.read().count == 36)
    }
}

/// The bytes of a packet.
private func packet(_ hex: String) -> [UInt8] { (try? Hex.decode(hex)) ?? [] }

/// A channel to adapter 3, and the kernel's end of its socket.
private struct Bench: ~Copyable {
    let channel: ManagementChannel
    let time: Lock<BootInstant>
    private var far: LinkSocket?

    init(largestPacket: Int = ManagementSocket.longPacket) throws {
        let (near, far) = try LinkSocket.pair()
        let time = Lock(BootInstant(nanoseconds: 1_000_000_000))
        channel = ManagementChannel { time.withLock { $0 } }
        channel.open(ManagementSocket(adopting: near, largestPacket: largestPacket), adapter: 3)
        self.time = time
        self.far = LinkSocket(adopting: far)
    }

    /// Sends a packet as the kernel.
    mutating func kernel(_ packet: [UInt8]) throws {
        try #require(far?.send(packet) == .sent)
    }

    mutating func hangUp() { far = nil }

    /// The packets that the kernel was sent.
    mutating func taken() throws -> [[UInt8]] {
        var buffer = [UInt8](repeating: 0, count: 2_048)
        var packets: [[UInt8]] = []
        while case .packet(let count, _)? = far?.receive(into: &buffer) { packets.append(Array(buffer.prefix(count))) }
        return packets
    }

    func read() -> [ManagementChannel.Event] {
        var events: [ManagementChannel.Event] = []
        channel.read { events += $0 }
        return events
    }
}
