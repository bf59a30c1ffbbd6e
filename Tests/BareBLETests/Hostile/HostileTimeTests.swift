import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Rows of the catalogue that take a minute, an hour or a night, in virtual time.
@Suite("Hostile peers and machines, over time", .timeLimit(.minutes(10)))
struct HostileTimeTests {
    @Test("a response every 29.9 s, and a discovery that has a minute for all of them", .row("G09"))
    func slowResponsesEndADiscoveryInTime() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(.heartRate, latency: .milliseconds(29_900), time: time)
            let device = try await Central(time: time).attach(
                descriptor: peripheral.connect(), ConnectOptions(mtu: 23))
            let start = time.now
            let code = await HostileLink.code { () throws(BLEError) in _ = try await device.discover(level: .full) }
            #expect(code == .timedOut)
            #expect(time.now - start == .seconds(60))
            // The last response is still to come; then the next request has its turn.
            _ = try await device.read(.handle(3), timeout: .seconds(90))
            #expect(time.now - start == .milliseconds(29_900) * 4)
            #expect(await device.statistics.lateResponses == 1)
            await device.disconnect()
            #expect(time.loop.timerCount == 0)
        }
    }

    @Test("a consumer of a scan that sleeps for an hour learns what it has lost", .row("H18"))
    func consumerSleeps() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let beacon = radio.peripheral(.battery)
            let id = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_5566), type: .public)
            let advertisement = VirtualAdvertisement([2, 1, 6], interval: .seconds(1), isConnectable: false)
            await radio.place(beacon, as: id, advertising: advertisement)
            let central = Central(radio: radio)
            var events = central.scan(.any, ScanSettings.passive.duplicates(.all), capacity: 64).makeAsyncIterator()
            guard case .found? = try await events.next() else { throw Surprise() }
            try await time.clock.sleep(for: .seconds(3600))
            guard case .dropped(let lost)? = try await events.next() else { throw Surprise() }
            var newest: ScanResult?
            for _ in 0..<64 {
                guard case .updated(let scanResult)? = try await events.next() else { throw Surprise() }
                newest = scanResult
            }
            #expect(lost > 3_400)
            #expect(newest?.count == 1 + lost + 64)
            #expect(try #require(newest).lastSeen > time.now + .seconds(-2))
        }
    }

    @Test("a controller that hears nothing for 90 s is set up again, and the scan is notified", .row("H16"))
    func radioSilence() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let deliveries = Deliveries()
            let scan = try await central.adapter.subscribe(.balanced, deliveries.receive)
            try await time.clock.sleep(for: .seconds(89))
            #expect(deliveries.all.isEmpty)
            try await time.clock.sleep(for: .seconds(2))
            #expect(deliveries.all == [.notice(.stalled(count: 1, after: .seconds(90))), .notice(.resumed)])
            // After 15 s more with its events switched on again.
            try await time.clock.sleep(for: .seconds(15))
            #expect(deliveries.all.count == 3)
            #expect(deliveries.all[2] == .notice(.resumed))
            try await time.clock.sleep(for: .seconds(90))
            #expect(deliveries.all[3] == .notice(.stalled(count: 2, after: .seconds(90))))
            #expect(await central.statistics.stalls == 2)
            await central.adapter.unsubscribe(scan)
            #expect(await !radio.isScanning())
        }
    }

    /// As slow as the specification lets a link be: it wants the supervision time to be longer than two of the longest
    /// waits.
    @Test("the slowest link there can be keeps the time limits as they are", .row("L01"))
    func slowLink() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let slowest = try ConnectionParameters(
                interval: .seconds(4) ... .seconds(4), latency: 2, supervisionTimeout: .seconds(32))
            let device = try await central.connect(toFirst: .any).peripheral
            try await device.requestConnectionParameters(slowest, timeout: .seconds(60))
            #expect(try await device.connectionParameters() == slowest)
            await belt.stopResponding()
            let asked = time.now
            let code = await HostileLink.code { () throws(BLEError) in
                _ = try await device.read(.handle(3), timeout: .seconds(90))
            }
            #expect(code == .disconnected)
            #expect(time.now - asked == .seconds(30))
            #expect(await device.disconnectReason == .attTimeout)
        }
    }

    @Test("a peer that is lost as soon as it is connected is called ever more rarely, and nothing gathers", .row("L08"))
    func lostAtOnce() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let connects = Lock(0)
            let target = SessionTarget(name: "mayfly") { options throws(BLEError) in
                connects.withLock { $0 += 1 }
                guard let (ours, theirs) = try? LinkSocket.pair() else {
                    throw BLEError(.system, during: "connect", because: "there are no descriptors")
                }
                let device = try await central.attach(descriptor: ours, name: "mayfly", ConnectOptions(mtu: 23))
                // Closing it would not do: a program that another test starts has a copy of it for a moment, and
                // virtual time does not wait for that.
                var peer = LinkSocket(adopting: theirs)
                peer.shutdown()
                return device
            }
            let session = try await central.session(target, Session.Options(), Session.Handlers())
            try await time.clock.sleep(for: .seconds(3600))
            let (timers, watched) = (time.loop.timerCount, time.loop.watchedCount)
            let first = connects.withLock { $0 }
            try await time.clock.sleep(for: .seconds(86_400))
            let later = connects.withLock { $0 } - first
            // Never less than the longest pause less its jitter, and never silent for long.
            #expect((500...3_000).contains(later), "\(later) connects a day; \(session.state) at \(time.now)")
            #expect(abs(time.loop.timerCount - timers) <= 1)
            #expect(abs(time.loop.watchedCount - watched) <= 1)
            await session.disconnect()
        }
    }

    @Test("a machine that sleeps for eight hours finds its links gone, and makes them again", .row("O19"))
    func machineSleeps() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let central = Central(radio: radio)
            let session = try await central.session(with: try #require(await radio.id(of: belt)))
            let device = try await session.ready()
            await belt.stopResponding()
            let before = await belt.receivedCount
            async let reading = HostileLink.code { () throws(BLEError) in _ = try await device.read(.handle(3)) }
            while await belt.receivedCount == before, !Task.isCancelled { await Task.yield() }
            await radio.move(belt, to: .outOfRange)
            let asleep = time.now
            time.loop.jump(by: .seconds(8 * 3600))
            // One outcome for the call that was under way, its own time being over as well; and a link that works.
            #expect([.timedOut, .disconnected].contains(await reading))
            #expect(await device.disconnected() != nil)
            #expect(time.now - asleep < .seconds(8 * 3600 + 60))
            await belt.resumeResponding()
            await radio.move(belt, to: .near)
            let again = try await session.ready()
            #expect(again !== device)
            _ = try await again.read(0x2A38)
            #expect(time.now - asleep < .seconds(8 * 3600 + 180))
            await session.disconnect()
        }
    }

    /// All times are of the clock that counts from the machine's start. Two files ask for the other: for a file's time,
    /// and to compare with the kernel's times of arrival, which are of that clock.
    @Test("nothing looks at the wall clock", .row("O20"))
    func wallClock() throws {
        for (path, text) in try RepositoryFiles.sources(of: ["BLECore", "BLELinux", "BareBLE", "CBluetooth"]) {
            for word in ["CLOCK_REALTIME", "gettimeofday", "Date()", "time(nil)", "SuspendingClock", "ContinuousClock"]
            where text.contains(word) {
                let isPermitted = ["AppendedFile.swift", "CBluetooth.c"].contains { path.hasSuffix($0) }
                #expect(word == "CLOCK_REALTIME" && isPermitted, "\(path): \(word)")
            }
        }
    }

    private struct Surprise: Error {}
}
