// One simulation of the peripheral role: a local peripheral on a virtual radio, an application that uses it, and
// centrals that are honest, unlucky or hostile. All of it comes from one seed, in a stream of its own.
//
// Duties
// - Everything that crosses the links, and every event, is in the log and looked at.
// - In the end a newcomer must be served as if nothing had happened, and nothing may be left.
//
// Invariants
// - Everything is on one loop, and nothing goes by a hash's order or another clock:
//   a seed makes the same log each time.

import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// One simulation of the peripheral role, while it runs.
actor ServingWorld {
    nonisolated let loop: EventLoop
    let time: VirtualTime
    let seed: UInt64
    let radio: VirtualRadio
    let adapter: String
    let central: Central
    let local: LocalPeripheral
    var log: EventLog
    var eventCounts = EventCounts()
    private(set) var failure: String?
    var numbers: Numbers
    private let length: Duration
    private var links: [ServedLinkWatch] = []
    private var events = ServerEventWatch()
    var centrals: [VirtualCentral] = []
    /// The centrals that have encrypted their present link, which the program may not have accepted yet.
    private var encrypted: Set<PeerID> = []
    /// What each task does now; empty when it has ended.
    var activities: [Int: String] = [:]
    var isOver = false
    var optional: PublishedService?

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Plays a seed to its end, or to the first thing that is wrong.
    static func play(seed: UInt64, keepsLines: Bool = false) async -> SimulationResult {
        await VirtualTime.run { time in
            var numbers = Numbers(seed: seed, .serving)
            let radio = VirtualRadio(time: time)
            let isExtended = numbers.chance(70)
            let adapter = await radio.addAdapter(isExtended: isExtended)
            let observer = Lock<(@Sendable (TracedLink) -> TracedLink.Observer)?>(nil)
            var configuration = Configuration()
            configuration.adapter = .named(adapter)
            configuration.traceLinks = { link in observer.withLock { $0 }?(link) ?? { _ in } }
            let central = Central(configuration, radio: radio)
            var settings = LocalPeripheral.Settings(name: "Served")
            settings.maximumCentrals = numbers.pick([1, 2, 5, 16])
            settings.mtu = numbers.pick([23, 64, 185, 517])
            let world = ServingWorld(
                seed, time, radio, adapter, central, LocalPeripheral(settings, on: central), numbers, keepsLines)
            observer.withLock { observer in
                observer = { [weak world] link in world?.assumeIsolated { $0.began(link) } ?? { _ in } }
            }
            await world.play()
            observer.withLock { $0 = nil }
            return await world.outcome
        }
    }

    private init(
        _ seed: UInt64, _ time: VirtualTime, _ radio: VirtualRadio, _ adapter: String, _ central: Central,
        _ local: LocalPeripheral, _ numbers: Numbers, _ keepsLines: Bool
    ) {
        self.seed = seed
        self.time = time
        self.radio = radio
        self.adapter = adapter
        self.central = central
        self.local = local
        loop = time.loop
        log = EventLog(keepsLines: keepsLines)
        var numbers = numbers
        length = .seconds(numbers.pick(10...60))
        self.numbers = numbers
    }

    private var outcome: SimulationResult {
        SimulationResult(
            hash: log.hash, events: log.count, failure: failure, eventCounts: eventCounts, lines: log.lines,
            duration: loop.now() - BootInstant(nanoseconds: 0))
    }

    // MARK: The play

    private func play() async {
        do {
            try await local.publish(service)
            let follower = follow()
            let advertising = try await local.advertise([.flags([.generalDiscoverable]), .localName("Served")])
            for number in 0..<numbers.pick(1...5) {
                centrals.append(await radio.addCentral())
                start(number) { await $0.use(number) }
            }
            start(100) { await $0.runApplication() }
            await sleep(length)
            isOver = true
            await heal()
            if failure == nil { await serveNewcomer() }
            await advertising.stop()
            await local.stop()
            await sleep(.seconds(60))
            _ = try await follower.value
            await checkThatNothingIsLeft()
        } catch {
            fail("\(error)")
        }
    }

    private func follow() -> Task<Void, any Error> {
        let events = local.events
        return time.task { [weak self] in
            for try await event in events { await self?.happened(event) }
        }
    }

    private func start(_ number: Int, _ body: @escaping @Sendable (ServingWorld) async -> Void) {
        activities[number] = "begins"
        time.task { [weak self] in
            guard let self else { return }
            await body(self)
            await self.ended(number)
        }
    }

    private func ended(_ number: Int) { activities[number] = nil }

    /// Whatever is off, away or paused comes back.
    private func heal() async {
        await radio.powerOn(adapter)
        for central in centrals {
            await central.confirmIndications(true)
            await central.resume()
            await radio.move(central, to: .near)
        }
        // The longest call waits for a handler, a response or a confirmation.
        await sleep(.seconds(70))
        for central in centrals { await central.disconnect() }
        await sleep(.seconds(70))
        if let (number, activity) = activities.min(by: { $0.key < $1.key }) {
            fail("task \(number) did not end: \(activity)")
        }
    }

    /// A central that was not there before finds the server as it has to be.
    private func serveNewcomer() async {
        let central = await radio.addCentral()
        do {
            try await central.connect(within: .seconds(60))
            try await central.exchangeMTU()
            let value = try await central.read(0xFFF1)
            guard value.count <= 512 else { return fail("a newcomer read \(value.count) bytes") }
            try await central.subscribe(to: 0xFFF1)
            let result = try await local.update([1, 2, 3], of: 0xFFF1, timeout: .seconds(5))
            guard result.sentCount == 1, try await central.nextValue(within: .seconds(5)).bytes == [1, 2, 3] else {
                return fail("a newcomer did not get a value: \(result.outcomes.values.map { "\($0)" })")
            }
            eventCounts.add("serving.newcomer")
            await central.disconnect()
        } catch {
            fail("a newcomer was not served: \(error)")
        }
    }

    private func checkThatNothingIsLeft() async {
        let outstanding = await local.outstanding
        if outstanding > 0 { fail("\(outstanding) calls are left") }
        let connected = await local.centrals.count
        if connected > 0 { fail("\(connected) centrals are left") }
        if events.droppedEvents == 0, events.openLinks > 0 { fail("\(events.openLinks) links have no end") }
        for (number, link) in links.enumerated() where !link.hasEnded { fail("link \(number) has not ended") }
        if await !radio.advertisements(of: adapter).isEmpty { fail("an advertisement is left on air") }
    }

    // MARK: What is seen

    private func began(_ link: TracedLink) -> TracedLink.Observer {
        let number = links.count
        var watch = ServedLinkWatch(peer: link.id, ownMTU: local.settings.mtu)
        if let peer = link.id, encrypted.contains(peer) { watch.encryptionChanged(true, at: link.time) }
        links.append(watch)
        note("+", "link \(number) \(link.peer)")
        return { [weak self] event in self?.assumeIsolated { $0.see(event, number) } }
    }

    private func see(_ event: TracedLink.Event, _ number: Int) {
        switch event {
        case .pdu(let pdu): log.add(pdu.time, pdu.isOutgoing ? "<" : ">", "\(number)", pdu.bytes)
        case .ended(let reason, let time):
            log.add(time, "-", "link \(number): \(reason)")
            eventCounts.add("serving.reason.\(World.name(reason))")
        }
        if let wrong = links[number].see(event) { fail("link \(number): \(wrong)") }
    }

    private func happened(_ event: LocalPeripheral.Event) {
        switch event {
        case .connected: eventCounts.add("serving.connected")
        case .disconnected: eventCounts.add("serving.disconnected")
        case .subscribed: eventCounts.add("serving.subscribed")
        case .unsubscribed: eventCounts.add("serving.unsubscribed")
        case .written: eventCounts.add("serving.written")
        case .writeDropped: eventCounts.add("serving.writeDropped")
        case .paired: eventCounts.add("serving.paired")
        case .pairingFailed: eventCounts.add("serving.pairingFailed")
        case .dropped: eventCounts.add("serving.dropped")
        }
        if let wrong = events.see(event) { fail(wrong) }
    }

    /// The link of a central is encrypted, or no longer.
    func encryptionChanged(of peer: PeerID?, _ isEncrypted: Bool) {
        guard let peer else { return }
        if isEncrypted { encrypted.insert(peer) } else { encrypted.remove(peer) }
        guard let index = links.lastIndex(where: { $0.peer == peer && !$0.hasEnded }) else { return }
        links[index].encryptionChanged(isEncrypted, at: loop.now())
    }

    /// A central is about to make a link, which is not encrypted.
    func connects(_ peer: PeerID?) {
        if let peer { encrypted.remove(peer) }
    }

    func note(_ kind: Character, _ text: String) { log.add(loop.now(), kind, text) }

    func fail(_ what: String) {
        guard failure == nil else { return }
        failure = what
        note("!", what)
    }

    func sleep(_ duration: Duration) async {
        try? await time.clock.sleep(for: duration)
    }

    // MARK: What is served

    /// The value of what only encrypted links may read.
    static let protectedValue = [UInt8](repeating: ServedLinkWatch.secret, count: 40)

    private var service: LocalService {
        let clock = central.clock
        let pause = numbers.pick([0, 1, 300, 3_000, 25_000])
        let slow = LocalValue.handled { _ in
            if pause > 0 { try await clock.sleep(for: .milliseconds(pause)) }
            return [UInt8](repeating: 4, count: 100)
        } write: { _ in
            if pause > 0 { try await clock.sleep(for: .milliseconds(pause)) }
        }
        let picky = LocalValue.handled { _ in
            throw ATTRefusal(ATTErrorCode(rawValue: 0x81))
        } write: { request in
            if request.value.isEmpty { throw ATTRefusal(ATTErrorCode(rawValue: 0x82)) }
        }
        let protected = AttributeAccess(.encrypted)
        return LocalService(
            0xFFF0,
            [
                LocalCharacteristic(0xFFF1, [.read, .write, .notify], value: .stored([1])),
                LocalCharacteristic(0xFFF2, [.read, .notify, .indicate], value: .stored([2])),
                LocalCharacteristic(0xFFF3, [.read, .write, .writeWithoutResponse], value: slow),
                LocalCharacteristic(0xFFF4, [.read, .write, .writeWithoutResponse], value: picky),
                LocalCharacteristic(
                    0xFFF5, [.read, .notify, .indicate], value: .stored(Self.protectedValue), access: protected),
                LocalCharacteristic(
                    0xFFF6, .read, value: .handled { _ in Self.protectedValue }, access: protected,
                    descriptors: [
                        LocalDescriptor(0x2901, value: .fixed(Self.protectedValue), access: protected)
                    ]),
                LocalCharacteristic(0xFFF7, [.write, .writeWithoutResponse], value: .stored([])),
            ])
    }
}
