import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// A hostile peer costs its own link only (promise P10): other links give the same bytes at the same moments as without
/// it.
@Suite("Isolation of links", .timeLimit(.minutes(10)), .serialized)
struct IsolationTests {
    private static let alone = Task { try await IsolationRun.play(beside: nil) }

    @Test("other links' traces are byte-identical", .row("T17", "T25"), arguments: Hostility.allCases)
    func neighboursSeeNoDifference(_ hostility: Hostility) async throws {
        let alone = try await Self.alone.value
        let beside = try await IsolationRun.play(beside: hostility)
        #expect(beside.difference(from: alone) == nil)
        #expect(alone.links.count == 4)
        #expect(alone.calls > 200)
        #expect(beside.calls == alone.calls)
        #expect(beside.latency <= alone.latency * 21 / 20)
        // It was not idle meanwhile.
        switch hostility {
        case .silence, .advertisements: #expect(beside.hostileLinks == 1)
        // A link that is ended here is let go of by the radio two seconds later.
        case .responses, .garbage: #expect(beside.hostileLinks > 3)
        // In ten seconds: a new one once the radio has let go of the one before.
        case .drops, .everything: #expect(beside.hostileLinks > 4)
        case .indications: #expect(beside.hostilePDUs > 1_000)
        case .notifications, .lists, .unknownHandles, .requests, .serviceChanges: #expect(beside.hostilePDUs > 5_000)
        }
    }

    @Test("The same run twice gives the same bytes at the same moments")
    func aRunCanBeRepeated() async throws {
        let again = try await IsolationRun.play(beside: nil)
        #expect(again.difference(from: try await Self.alone.value) == nil)
    }

    /// Hidden by virtual time: how much of a flood is read before others have a turn.
    @Test("a request waits for two turns of 64 packets of each flood at most", arguments: [1, 8])
    func turnsAreShared(floods: Int) async throws {
        try await VirtualTime.run { time in
            let order = Lock<[String]>([])
            var configuration = Configuration()
            configuration.trace = { pdu in order.withLock { $0.append(pdu.peer) } }
            let central = Central(configuration, time: time)
            var (devices, flooding) = ([Peripheral](), [PeerLink]())
            for number in 0..<floods {
                let (link, other) = try PeerLink.open(on: time.loop)
                let options = ConnectOptions(mtu: 23, observesServiceChanges: false)
                devices.append(try await central.attach(descriptor: other, name: "flood \(number)", options))
                link.start(packet: { _ in }, ended: {})
                flooding.append(link)
            }
            let peripheral = VirtualPeripheral(.battery, time: time)
            let quiet = try await central.attach(descriptor: peripheral.connect(), name: "quiet")
            order.withLock { $0 = [] }
            // More than the sockets hold: they are filled again whenever there is room.
            for link in flooding { for _ in 0..<2_000 { link.send([0x1B, 3, 0, 1]) } }
            for _ in 0..<5 { #expect(try await quiet.read(0x2A19) == [64]) }
            let seen = order.withLock(\.self)
            #expect(seen.count(where: { $0 == "quiet" }) == 10)
            // Until the request is on its way no turn is needed; the peer takes one, and the response the next.
            let waits = seen.split(separator: "quiet", omittingEmptySubsequences: false).map(\.count)
            #expect(waits.max() ?? 0 <= floods * 64 * 2, "\(waits)")
            #expect(seen.count(where: { $0 != "quiet" }) >= floods * 64, "the flood was there")
            for device in devices + [quiet] { await device.disconnect() }
        }
    }
}
