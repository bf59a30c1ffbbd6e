import BLECore
import BareBLETestKit
import Logging
import Testing

@testable import BareBLE

/// Problems are counted for the program and logged, and a peer cannot fill the log.
@Suite(.timeLimit(.minutes(10))) struct TroubleTests {
    private static let device = VirtualDevice(
        name: "Sender",
        services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.notify, .read], value: [9])])])

    /// A central whose warnings are kept, and what it hears of the world.
    private static func central(_ time: VirtualTime, _ warnings: KeptLog) -> (Central, VirtualRadio) {
        var configuration = Configuration()
        configuration.logger = warnings.logger
        let radio = VirtualRadio(time: time)
        return (Central(configuration, radio: radio), radio)
    }

    @Test func aPeerThatDoesWrongAllTheTimeCostsALineAMinute() async throws {
        let warnings = KeptLog(detail: "so far")
        try await VirtualTime.run { time in
            let (central, radio) = Self.central(time, warnings)
            let peripheral = await radio.add(Self.device)
            let (peer, _) = try await central.connect(toFirst: .any)
            for _ in 0..<180 {
                for _ in 0..<20 { await peripheral.send(raw: [0x1B, 0, 0, 1]) }
                try await time.clock.sleep(for: .seconds(1))
            }
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.valuesWithoutHandle == 3_600)
            await peer.disconnect()
        }
        #expect(warnings.all.count == 4)
        #expect(warnings.all.first?.hasPrefix("problems on the link: ") ?? false)
        #expect(warnings.all.last == "problems on the link: values for handle 0: 3600")
    }

    /// A second of a link, a second without one, for so long; returns how many links there were.
    private func comeAndGo(
        for length: Duration, _ configuration: Configuration,
        _ doWrong: @Sendable @escaping (VirtualPeripheral, Peripheral, VirtualTime) async throws -> Void
    ) async throws -> Int {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peripheral = await radio.add(Self.fickle)
            let central = Central(configuration, radio: radio)
            let peer = try #require(await radio.id(of: peripheral))
            var options = Session.Options(reconnect: .backoff(initial: .seconds(1), max: .seconds(1), jitter: 0))
            options.connect.mtu = 23
            let session = try await central.session(with: peer, options)
            var links = 0
            while time.now < BootInstant.zero + length {
                let link = try await session.ready()
                links += 1
                try await doWrong(peripheral, link, time)
                try await time.clock.sleep(for: .milliseconds(500))
                await radio.disconnect(peripheral)
                _ = await link.disconnected()
            }
            await session.disconnect()
            return links
        }
    }

    @Test func aPeerThatComesAndGoesForAnHourCostsALineAMinute() async throws {
        let warnings = KeptLog(from: .info, detail: "so far")
        var configuration = Configuration()
        configuration.logger = warnings.logger
        let links = try await comeAndGo(for: .seconds(3_600), configuration) { peripheral, _, _ in
            await peripheral.send(raw: [0x1B, 0, 0, 1])
        }
        #expect(links > 1_500)
        let troubles = warnings.all.filter { $0.hasPrefix("problems on the link") }
        #expect((55...62).contains(troubles.count), "\(troubles.count)")
        // So do the session's losses and links, each, and its end is one line more.
        #expect(warnings.all.count <= 3 * 62 + 1, "\(warnings.all.count)")
        // The counts are those of all links.
        let digits = troubles.last?.split(separator: "values for handle 0: ").last?.prefix { $0.isNumber }
        #expect(digits.flatMap { Int($0) } ?? 0 > 1_500)
    }

    /// Each link does wrong in several ways, each of which is worth a line.
    @Test func eachKindOfTroubleOfAPeerThatComesAndGoesCostsALineAMinute() async throws {
        let warnings = KeptLog(from: .info, detail: "so far")
        var configuration = Configuration()
        configuration.logger = warnings.logger
        // Nothing can be kept there.
        configuration.cacheDirectory = "/nonexistent/caches"
        let links = try await comeAndGo(for: .seconds(240), configuration) { peripheral, link, time in
            let change = try await link.discover().characteristics.first { $0.uuid == 0x2A05 }
            let handle = UInt8(truncatingIfNeeded: change?.valueHandle ?? 0)
            // The library has subscribed to the peer's changes by then.
            try await time.clock.sleep(for: .milliseconds(100))
            await peripheral.send(raw: [0x1B, 0, 0, 1])
            await peripheral.send(raw: [0x1D, handle, 0, 1])
            await peripheral.send(raw: [0x1D, handle, 0, 1, 0, 0xFF, 0xFF])
        }
        #expect(links > 80)
        let kinds = Dictionary(grouping: warnings.all) { $0.prefix { $0 != ":" } }
        #expect(kinds.keys.sorted() == Self.fickleLines)
        for (kind, lines) in kinds where kind != "a session has ended" {
            #expect((3...6).contains(lines.count), "\(kind): \(lines.count)")
        }
    }

    private static let fickleLines: [Substring] = [
        "a cache could not be written", "a change of services is malformed", "a link is ready", "a link was lost",
        "a session has ended", "problems on the link", "services changed",
    ]

    private static let fickle = VirtualDevice(
        name: "Fickle",
        services: [
            VirtualService(0x1801, [VirtualCharacteristic(0x2A05, [.indicate])]),
            VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.notify, .read], value: [9])]),
        ])

    @Test func aLinkThatEndsIsReportedInFullUnlessItsPeerComesAndGoes() {
        let book = PeerWarningTable()
        let start = BootInstant.zero + .seconds(1_000)
        func counts(_ count: Int) -> WarningThrottle.Counts { { body in body(count, "faults") } }
        let link = LinkWarnings(of: book.warnings(for: "peer"))
        #expect(link.line(counts: counts(0), isEnd: false, at: start) == nil)
        #expect(link.line(counts: counts(1), isEnd: false, at: start) == "faults: 1")
        #expect(link.line(counts: counts(5), isEnd: false, at: start + .seconds(1)) == nil)
        #expect(link.line(counts: counts(6), isEnd: true, at: start + .seconds(2)) == "faults: 6")
        let next = LinkWarnings(of: book.warnings(for: "peer"))
        #expect(next.line(counts: counts(2), isEnd: false, at: start + .seconds(3)) == nil)
        #expect(next.line(counts: counts(3), isEnd: true, at: start + .seconds(4)) == nil)
        // Beside it, another peer.
        let other = LinkWarnings(of: book.warnings(for: "other"))
        #expect(other.line(counts: counts(1), isEnd: false, at: start + .seconds(4)) == "faults: 1")
        let last = LinkWarnings(of: book.warnings(for: "peer"))
        #expect(last.line(counts: counts(0), isEnd: false, at: start + .seconds(61)) == nil)
        #expect(last.line(counts: counts(1), isEnd: false, at: start + .seconds(62)) == "faults: 10")
        #expect(last.line(counts: counts(1), isEnd: true, at: start + .seconds(300)) == nil)
    }

    @Test func onlySoManyPeersAreRemembered() {
        let book = PeerWarningTable()
        let first = book.warnings(for: "0")
        for number in 1..<PeerWarningTable.capacity { _ = book.warnings(for: "\(number)") }
        #expect(book.warnings(for: "0") === first)
        // Met again, it is not the one that goes.
        let second = book.warnings(for: "1")
        _ = book.warnings(for: "one more")
        #expect(book.warnings(for: "0") === first)
        #expect(book.warnings(for: "1") === second)
        for number in 0..<PeerWarningTable.capacity { _ = book.warnings(for: "new \(number)") }
        #expect(book.warnings(for: "0") !== first)
    }

    @Test func aPeerThatBehavesCostsNoLine() async throws {
        let warnings = KeptLog(detail: "so far")
        try await VirtualTime.run { time in
            let (central, radio) = Self.central(time, warnings)
            let peripheral = await radio.add(Self.device)
            let (peer, _) = try await central.connect(toFirst: .any)
            let handle = try await peer.discover().characteristics.first { $0.uuid == 0xFFF1 }?.valueHandle ?? 0
            // Under way when a subscription ends, as far as the log is concerned.
            await peripheral.send(raw: [0x1B, UInt8(truncatingIfNeeded: handle), 0, 1])
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.unsolicitedNotifications == 1)
            await peer.disconnect()
            #expect(await central.statistics.reports > 0)
        }
        #expect(warnings.all == [])
    }

    @Test func aPeerThatHasToBeGivenUpIsAWarning() async throws {
        let warnings = KeptLog(detail: "so far")
        try await VirtualTime.run { time in
            let (central, radio) = Self.central(time, warnings)
            let peripheral = await radio.add(Self.device)
            let (peer, _) = try await central.connect(toFirst: .any)
            await peripheral.stopResponding()
            await #expect(throws: BLEError.self) { try await peer.read(0xFFF1) }
            #expect(await peer.disconnected() == .attTimeout)
        }
        #expect(warnings.all == ["link closed: "])
    }

    /// The behaviour of a phone that looks for services here.
    @Test(arguments: [100, 101]) func aFloodOfWhatAPeerMayDoIsATrouble(count: Int) async throws {
        let warnings = KeptLog(detail: "so far")
        try await VirtualTime.run { time in
            let (central, radio) = Self.central(time, warnings)
            let peripheral = await radio.add(Self.device)
            let (peer, _) = try await central.connect(toFirst: .any)
            for _ in 0..<count { await peripheral.send(raw: [0x52, 0x01, 0x00, 0x01]) }
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.peerCommandsIgnored == count)
            await peer.disconnect()
        }
        #expect(warnings.all == (count > 100 ? ["problems on the link: commands that were ignored: 101"] : []))
    }

    @Test func whatBuffersDropIsCountedForTheLinkAndForTheAdapter() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peripheral = await radio.add(Self.device)
            let central = Central(radio: radio)
            var scan = central.scan(.any, .balanced.duplicates(.all), capacity: 2).makeAsyncIterator()
            #expect(try await scan.next() != nil)
            try await time.clock.sleep(for: .seconds(20))
            #expect(await central.statistics.droppedEvents > 2)
            await scan.stop()
            let (peer, _) = try await central.connect(toFirst: .any)
            let values = try await peer.subscribe(to: 0xFFF1, SubscribeOptions(capacity: 3))
            let handle = UInt8(truncatingIfNeeded: values.handle)
            for number in 0..<10 { await peripheral.send(raw: [0x1B, handle, 0, UInt8(number)]) }
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.droppedValues == 7)
            #expect(values.droppedInTotal == 7)
            await peer.disconnect()
            #expect(await peer.statistics.droppedValues == 7)
        }
    }

    @Test func whatHappensToTheAdapterIsCounted() async throws {
        let warnings = KeptLog(detail: "so far")
        try await VirtualTime.run { time in
            let (central, radio) = Self.central(time, warnings)
            let scan = central.scan(.any, .balanced)
            let listening = time.task { for try await _ in scan {} }
            // Nobody is there: silence for 90 s is a stall.
            try await time.clock.sleep(for: .seconds(100))
            #expect(await central.statistics.stalls == 1)
            await radio.powerOff()
            try await time.clock.sleep(for: .seconds(5))
            #expect(await central.statistics.losses == 1)
            listening.cancel()
            try await listening.value
        }
        #expect(warnings.all == ["problems with the adapter: silent scans re-armed: 1"])
    }
}
