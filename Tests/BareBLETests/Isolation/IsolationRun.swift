import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// Applications with links to four honest peers, in virtual time; beside them, on the same adapter and the same thread,
// a session with a peer that misbehaves, or none. The events of the four are recorded with their times, so that two
// runs can be compared byte by byte.

/// The events of honest peers' links, and of the applications on them.
struct IsolationRun: Sendable {
    /// One PDU, or one result of a call, with its moment.
    struct Entry: Equatable, Sendable {
        var time: BootInstant
        var what: String
        var bytes: [UInt8]
    }

    /// All that crossed a link, by the address of its peer.
    private(set) var links: [String: [Entry]] = [:]
    /// The results of an application's calls, by its name.
    private(set) var results: [String: [Entry]] = [:]
    /// The total time and number of the calls of all applications.
    private(set) var latency = Duration.zero
    private(set) var calls = 0
    /// The number of PDUs from the misbehaving peer.
    private(set) var hostilePDUs = 0
    /// The number of links of the misbehaving peer.
    private(set) var hostileLinks = 0

    /// The time for which the applications run.
    static let duration: Duration = .seconds(10)

    /// Plays one run: with `hostility` on another link, or without that link.
    static func play(beside hostility: Hostility?) async throws -> IsolationRun {
        try await VirtualTime.run { time in
            let record = Lock(IsolationRun())
            let radio = VirtualRadio(time: time)
            var peripherals: [VirtualPeripheral] = []
            for device in [VirtualDevice.heartRate, .battery, .uart, .longValue] {
                peripherals.append(await radio.add(device))
            }
            var configuration = Configuration()
            configuration.trace = { pdu in record.withLock { $0.add(pdu) } }
            let central = Central(configuration, radio: radio)
            var devices: [Peripheral] = []
            for peripheral in peripherals {
                guard let id = await radio.id(of: peripheral) else { continue }
                devices.append(try await central.connect(id))
            }
            let honest = devices
            try await withThrowingTaskGroup(of: Void.self) { group in
                let end = time.now + duration
                for application in Application.all {
                    group.addTask {
                        try await application.work(honest, until: end, time) { name, result, began in
                            record.withLock { $0.add(name, result, since: began, at: time.now) }
                        }
                    }
                }
                if let hostility {
                    group.addTask {
                        let hostile = HostileNeighbour(hostility, radio: radio, central: central, time: time)
                        let (pdus, links) = try await hostile.work(until: end)
                        record.withLock { ($0.hostilePDUs, $0.hostileLinks) = (pdus, links) }
                    }
                }
                try await group.waitForAll()
            }
            for device in devices { await device.disconnect() }
            let names = devices.map(\.name)
            return record.withLock { record in
                var record = record
                record.links = record.links.filter { names.contains($0.key) }
                return record
            }
        }
    }

    /// The first difference between this run and another one, in any link or application; `nil` if they are equal.
    func difference(from other: IsolationRun) -> String? {
        for (name, mine, others) in paired(links, other.links) + paired(results, other.results) where mine != others {
            let place = zip(mine, others).enumerated().first { $0.element.0 != $0.element.1 }
            guard let place else { return "\(name): \(mine.count) and \(others.count) entries" }
            return "\(name), entry \(place.offset): \(place.element.0) and \(place.element.1)"
        }
        return nil
    }

    private func paired(
        _ mine: [String: [Entry]], _ others: [String: [Entry]]
    ) -> [(String, [Entry], [Entry])] {
        Set(mine.keys).union(others.keys).sorted().map { ($0, mine[$0] ?? [], others[$0] ?? []) }
    }

    private mutating func add(_ pdu: TracedPDU) {
        links[pdu.peer, default: []]
            .append(Entry(time: pdu.time, what: pdu.isOutgoing ? "<" : ">", bytes: pdu.bytes))
    }

    private mutating func add(_ name: String, _ result: [UInt8], since began: BootInstant?, at now: BootInstant) {
        results[name, default: []].append(Entry(time: now, what: name, bytes: result))
        guard let began else { return }
        latency += now - began
        calls += 1
    }
}

/// The activity of an application on its link.
private struct Application: Sendable {
    typealias Tell = @Sendable (_ name: String, _ result: [UInt8], _ since: BootInstant?) -> Void
    typealias Work = @Sendable (Peripheral, BootInstant, VirtualTime, Tell) async throws -> Void

    let device: Int
    let body: Work

    func work(_ devices: [Peripheral], until end: BootInstant, _ time: VirtualTime, _ tell: Tell) async throws {
        try await body(devices[device], end, time, tell)
    }

    static let all: [Application] = [
        Application(device: 0) { belt, end, _, tell in
            for try await value in try await belt.subscribe(to: 0x2A37) {
                tell("beats", value.bytes + [UInt8(clamping: value.droppedBefore)], nil)
                if value.time + .seconds(1) > end { return }
            }
        },
        Application(device: 1) { battery, end, time, tell in
            while time.now < end {
                let began = time.now
                tell("level", try await battery.read(0x2A19), began)
                try await time.clock.sleep(for: .milliseconds(70))
            }
        },
        Application(device: 2) { line, end, time, tell in
            let database = try await line.discover()
            let (input, output) = (uart(2), uart(3))
            var echoes = try await line.subscribe(to: output).makeAsyncIterator()
            var number: UInt8 = 0
            while time.now < end {
                let began = time.now
                try await line.write([number, UInt8(clamping: database.attributeCount)], to: input)
                tell("echo", try await echoes.next()?.bytes ?? [], began)
                number &+= 1
            }
        },
        Application(device: 3) { long, end, time, tell in
            while time.now < end {
                let began = time.now
                tell("long", try await long.read(0xFFF1), began)
                let value = [UInt8](repeating: UInt8(truncatingIfNeeded: began.nanoseconds >> 20), count: 512)
                try await long.write(value, to: 0xFFF1)
                tell("written", [], began)
                try await long.discover(ignoringCache: true)
                tell("discovered", [], began)
            }
        },
    ]

    private static func uart(_ number: UInt64) -> CharacteristicReference {
        .uuid(BluetoothUUID(high: 0x6E40_0000_B5A3_F393 | number << 32, low: 0xE0A9_E50E_24DC_CA9E))
    }
}
