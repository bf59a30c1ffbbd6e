import ArgumentParser
import BLECore
import BareBLE
import BareBLECrypto
import BareBLETestKit

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Be a peripheral: serve services to centrals, and print what they do.",
        usage: "blescan serve <device> [--socket <path>] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan serve demo:heart-rate
              blescan serve demo:heart-rate --socket /tmp/belt
              blescan explore unix:/tmp/belt
              sudo blescan serve thermometer.txt --adapter hci1 --json
              sudo blescan serve demo:lock --pairing show

            A device is a virtual one (demo:heart-rate, demo:battery, demo:uart,
            demo:long-value, demo:lock), or a file with a declaration:

              name Thermometer
              service 1809
                characteristic 2a1d read = 02
                characteristic fff1 read,write,encrypted = 00 01   # needs a bond

            Without a name it is BareBLE. The services 1800 and 1801 are there in any
            case, and are not declared. Properties are read, write,
            write-without-response, notify and indicate; encrypted and authenticated
            are what a link needs. Centrals may subscribe to the values of a
            declaration, but none is sent. That, descriptors, values of a fixed length
            and checks of what is written take a program in Swift: see the article
            PeripheralRole of the module BareBLE. A # begins a comment; in a name it
            does so only between blanks.

            The command advertises and accepts the links that centrals make, until ^C.
            It prints a line for each link, each read, write and subscription, and each
            request that is refused; --trace shows discovery and all packets as well.
            With --pairing they may pair too, and their bonds are kept; it needs
            CAP_NET_ADMIN, and switches the adapter off and on once. With --bonds alone,
            centrals that are bonded already use their bonds, and no others may pair.
            What bonded centrals have subscribed to is kept beside their bonds, and is in
            force again when they come back after a restart.
            Advertising needs CAP_NET_RAW, the rest no rights. Under sudo the command
            becomes the user who ran it: the bonds are those of `sudo blescan pair`, and
            that user must be able to read the declaration. Of several programs that
            accept links on an adapter, the one that has begun last gets them; end
            bluetoothd if it takes them.
            """)

    @Argument(help: "What to serve: demo:NAME, or a file with a declaration.", completion: Completions.served)
    var device: String

    @Option(
        help: ArgumentHelp(
            "Accept links on a Unix SEQPACKET socket, not on an adapter. It needs no rights.", valueName: "path"))
    var socket: String?

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @Option(
        help: ArgumentHelp(
            "Let centrals pair: ask (show and ask on the terminal), show (print a passkey, which is entered at the "
                + "central), or just-works (accept each that comes, with nothing to compare).",
            valueName: "how"))
    var pairing: CentralPairing?

    @OptionGroup var bonds: BondOptions

    @Option(help: ArgumentHelp("The device's name, in place of its own.", valueName: "text"))
    var name: String?

    @Flag(
        name: .customLong("advertise"), inversion: .prefixedNo,
        help: "Whether to advertise, so that centrals find the device.")
    var isAdvertising = true

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    @OptionGroup var times: TimeOptions

    @OptionGroup var color: ColorOptions

    @Flag(name: [.long, .customShort("v")], help: "Print every ATT packet to standard error.")
    var trace = false

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line.")
    var json = false

    func validate() throws {
        if socket == "" { throw ValidationError("--socket takes the path of a socket.") }
        if name == "" { throw ValidationError("--name takes a text.") }
        if let name, name.utf8.count > ServerDatabase.longestName {
            throw ValidationError("--name takes \(ServerDatabase.longestName) bytes at most.")
        }
        if socket != nil, adapter != nil { throw ValidationError("--socket needs no --adapter.") }
        if socket != nil, usesBonds {
            throw ValidationError("a central on a socket cannot pair: leave out --socket, or --pairing and --bonds.")
        }
        if pairing == .ask, !TerminalLine.isPossible {
            throw ValidationError("--pairing ask needs a terminal. In a script, use show or just-works.")
        }
    }

    var usesBonds: Bool { pairing != nil || bonds.directory != nil }

    func run() async throws {
        let served = try servedDevice()
        let command = self
        try await Interrupt.cancelling {
            try await ServedNotes.writing { notes in
                var configuration = try command.centralConfiguration(tracingTo: notes)
                let requests = ServedRequests()
                requests.attach(to: &configuration)
                let central = Central.ofCommand(configuration)
                let adapters = (try? Central.adapters()) ?? []
                let store = try command.subscriptionStore(of: adapters)
                // Without any adapter the command fails at once, and its error has the reason.
                if command.usesBonds, store == nil, !adapters.isEmpty {
                    notes.warn("what centrals subscribe to is not kept for the next run: no adapter was found")
                }
                try await central.run {
                    try await command.serve(
                        served, on: central, requests, keepingSubscriptionsIn: store, notingTo: notes)
                }
            }
        }
    }

    private func servedDevice() throws -> ServedDevice {
        if let name = device.dropped(prefix: "demo:") {
            guard let virtual = VirtualPeer(named: name) else {
                throw Failure(
                    message: "there is no \(device.printable)", hint: VirtualPeer.advice(for: name), status: .usage)
            }
            return ServedDevice(virtual.device)
        }
        InputFile.announce("the declaration", from: device)
        var input = try InputLines(
            path: device, advice: "Name a file with a declaration, or a virtual device: \(VirtualPeer.names).")
        var lines: [InputLine] = []
        while let line = input.next() { lines.append(line) }
        if let failure = input.failure { throw failure }
        return try ServedDevice(declaration: lines, file: device)
    }

    func centralConfiguration(tracingTo notes: ServedNotes) throws -> Configuration {
        var configuration = Configuration()
        if usesBonds {
            configuration.security = SecurityConfiguration(bonds: try BondDirectory(bonds).store())
            configuration.addressHash = { $0.hash }
            configuration.writeSignature = { $0.code }
        }
        configuration.adapter = adapter?.selector ?? .first
        configuration.databaseHash = { $0.hash }
        if trace {
            let trace = Trace(note: { notes.note($0) })
            configuration.trace = { trace.print($0) }
        }
        return configuration
    }

    /// Returns the place of what bonded centrals have subscribed to; `nil` where centrals have no bonds,
    /// and without an adapter.
    func subscriptionStore(of adapters: [AdapterDescription]) throws(Failure) -> StateStore? {
        let selector = adapter?.selector ?? .first
        guard usesBonds, let address = adapters.first(where: { selector.matches($0) })?.address else { return nil }
        return try BondDirectory(bonds).subscriptionStore(of: address)
    }

    /// Continues with what bonded centrals had subscribed to in the run before.
    private func restore(_ local: LocalPeripheral, notingTo notes: ServedNotes) async throws {
        do throws(BLEError) {
            if let damage = try await local.restore().damage { notes.warn("\(damage)") }
        } catch {
            // A directory that cannot be written still has bonds to use.
            guard error.code == .notPermitted else { throw error }
            notes.warn("what centrals subscribe to is not kept for the next run: \(error)")
        }
    }

    /// - Parameters:
    ///   - device: What is served.
    ///   - central: Where it is served.
    ///   - requests: The requests of the central's links.
    ///   - store: Where it is kept what bonded centrals subscribe to; `nil` for nowhere.
    ///   - output: Where the results go.
    ///   - notes: Where messages go. Their owner has them written.
    func serve(
        _ device: ServedDevice, on central: Central, _ requests: ServedRequests,
        keepingSubscriptionsIn store: StateStore?, printingTo output: LineOutput = LineOutput(),
        notingTo notes: ServedNotes
    ) async throws {
        let lines = ServedLines(to: output, reportingTo: notes)
        let printing = Task { await lines.write() }
        defer { lines.finish() }
        var settings = LocalPeripheral.Settings(name: name ?? device.name, appearance: device.appearance)
        settings.store = store
        let local = LocalPeripheral(settings, on: central)
        if store != nil { try await restore(local, notingTo: notes) }
        for service in device.services { try await local.publish(service) }
        let events = local.events
        if let pairing {
            try await local.allowPairing(
                pairing.options(
                    message: { notes.note($0) }, passkey: { line(.passkey, "\($0)", passkey: $1, to: lines) }))
        }
        let lease: Advertisement.Lease?
        if let socket {
            try await local.acceptCentrals(atSocket: socket)
            lease = nil
        } else if isAdvertising {
            lease = try await local.advertise(device.advertisement(named: name ?? device.name))
        } else {
            try await local.acceptCentrals()
            lease = nil
        }
        let place = socket.map { "unix:" + $0 } ?? "the adapter"
        // With the packets of --trace a dialogue, which has nothing else before them than headers.
        notes.note("serving: \(name ?? device.name) on \(place); ^C ends it")
        let limit = duration?.duration
        // A task of its own: the ends of the links follow ^C, which cancels this one. On the loop, as the requests are.
        let reporting = Task {
            await central.run { _ = try? await report(events, to: lines, notingTo: notes) }
        }
        await withTaskGroup(of: Void.self) { group in
            // They end by cancellation alone.
            group.addTask { await report(requests, to: device, of: local, printingTo: lines, notingTo: notes) }
            group.addTask { await sendBack(device.echoes, from: local, printingTo: lines, notingTo: notes) }
            for plan in device.plans { group.addTask { await send(plan, from: local, central.clock, notingTo: notes) } }
            // ^C ends it.
            try? await central.clock.sleep(for: limit ?? .seconds(1_000_000_000))
            group.cancelAll()
        }
        // A task of its own: the command ends by ^C, which cancels this one.
        await Task {
            await lease?.stop()
            await local.stop()
        }.value
        // The peripheral has reported the ends of its links by now, and no event follows.
        await reporting.value
        lines.finish()
        await printing.value
    }

    /// Prints what is written to characteristics that send something back, and sends that, until the task is cancelled.
    private func sendBack(
        _ echoes: ServedEchoes, from local: LocalPeripheral, printingTo lines: ServedLines,
        notingTo notes: ServedNotes
    ) async {
        for await echo in echoes.entries {
            let central = echo.central
            line(.written, central, Attribute(echo.characteristic), value: echo.value, to: lines)
            for reply in echo.replies {
                // A packet has room for the beginning of a long value (Core Vol 3 Part F, 3.4.7.1).
                let value = Array(reply.prefix(central.maximumUpdateLength))
                // A central that has not subscribed gets nothing, and one that takes nothing does not delay the others.
                let isSent = try? await local.tryUpdate(
                    value, of: .uuid(echo.target, service: nil, index: 0), to: [central.id])
                guard isSent == false else { continue }
                notes.warn("\(central.name.printable) takes no values now; what it has written is not sent back")
                break
            }
        }
    }

    /// Sends the values of a plan while anybody has subscribed, until the task is cancelled.
    private func send(
        _ plan: ServedDevice.Plan, from local: LocalPeripheral, _ clock: CentralClock, notingTo notes: ServedNotes
    ) async {
        let reference = CharacteristicReference.uuid(plan.characteristic, service: plan.service, index: 0)
        var next = 0
        var short: Set<ConnectedCentral.ID> = []
        // A central that takes no packets, or cannot take a value, does not delay the values of the others.
        await withDiscardingTaskGroup { group in
            while (try? await clock.sleep(for: plan.interval)) != nil {
                let value = plan.values[next % plan.values.count]
                var isWanted = false
                for central in await local.centrals {
                    guard central.subscriptions.contains(where: { $0.uuid == plan.characteristic }) else { continue }
                    isWanted = true
                    if value.count <= central.maximumUpdateLength {
                        group.addTask {
                            _ = try? await local.update(value, of: reference, to: [central.id], whenFull: .replace)
                        }
                    } else if short.insert(central.id).inserted {
                        notes.warn(
                            "\(central.name.printable) can receive \(central.maximumUpdateLength.counted("byte")), and the values of "
                                + "\(plan.characteristic) are longer: it has to exchange the MTU")
                    }
                }
                if isWanted { next += 1 }
            }
        }
    }
}

// MARK: - Output

extension Serve {
    private func report(
        _ events: LocalPeripheralEventSequence, to lines: ServedLines, notingTo notes: ServedNotes
    ) async throws {
        for try await event in events {
            switch event {
            case .connected(let central): line(.connected, central, to: lines)
            case .disconnected(let central, let reason): line(.disconnected, central, reason: "\(reason)", to: lines)
            case .subscribed(let central, let characteristic, _):
                line(.subscribed, central, Attribute(characteristic), to: lines)
            case .unsubscribed(let central, let characteristic):
                line(.unsubscribed, central, Attribute(characteristic), to: lines)
            case .written(let written):
                line(.written, written.central, Attribute(written), value: written.value, to: lines)
            case .writeDropped(let central, let characteristic):
                line(.writeDropped, central, Attribute(characteristic), to: lines)
            case .paired(let central, let bond): line(.paired, central, bond: bond, to: lines)
            case .pairingFailed(let central, let error): line(.pairingFailed, central, reason: "\(error)", to: lines)
            case .dropped(let count):
                notes.warn("\(count.counted("event")) came faster than they were printed")
            }
        }
    }

    /// Prints the requests that the events do not report: reads, refusals, and writes that the device itself takes.
    private func report(
        _ requests: ServedRequests, to device: ServedDevice, of local: LocalPeripheral, printingTo lines: ServedLines,
        notingTo notes: ServedNotes
    ) async {
        for await entry in requests.entries {
            let request = entry.request
            let central = await local.centrals.first { $0.name == entry.link }
            let name = central?.label ?? entry.link
            let attribute = Attribute(handle: request.handle, type: await local.attributeType(of: request.handle))
            switch request.outcome {
            case .read(let value, let offset):
                line(.read, name, attribute, value: value, offset: offset == 0 ? nil : offset, to: lines)
            case .readRefused(let code): line(.readRefused, name, attribute, refusal: code, to: lines)
            case .writeRefused(let code): line(.writeRefused, name, attribute, refusal: code, to: lines)
            case .written(let value):
                guard let type = attribute.type, device.takingWrites.contains(type) else { continue }
                line(.written, name, attribute, value: value, to: lines)
            }
            let dropped = requests.takeDropped()
            if dropped > 0 { notes.warn("\(dropped.counted("request")) came faster than they were printed") }
        }
    }

    /// What has happened, as objects name it.
    private enum Event: String {
        case connected, disconnected, subscribed, unsubscribed, read, readRefused, written, writeRefused, writeDropped
        case paired, pairingFailed, passkey

        /// The same in words.
        var words: String {
            switch self {
            case .readRefused: "read refused"
            case .writeRefused: "write refused"
            case .writeDropped: "write dropped"
            case .pairingFailed: "pairing failed"
            default: rawValue
            }
        }

        var isFailure: Bool {
            switch self {
            case .readRefused, .writeRefused, .writeDropped, .pairingFailed: true
            default: false
            }
        }
    }

    /// The attribute that a line is about.
    private struct Attribute {
        let handle: AttributeHandle
        /// `nil` if no attribute has the handle.
        let type: BluetoothUUID?

        init(handle: AttributeHandle, type: BluetoothUUID?) {
            self.handle = handle
            self.type = type
        }

        init(_ characteristic: PublishedCharacteristic) {
            self.init(handle: characteristic.id, type: characteristic.uuid)
        }

        init(_ written: LocalPeripheral.WrittenValue) {
            self.init(handle: written.handle, type: written.descriptor ?? written.characteristic.uuid)
        }
    }

    private func line(
        _ event: Event, _ central: ConnectedCentral, _ attribute: Attribute? = nil, value: [UInt8]? = nil,
        reason: String? = nil, bond: Bond? = nil, to lines: ServedLines
    ) {
        line(event, central.label, attribute, value: value, reason: reason, bond: bond, to: lines)
    }

    private func line(
        _ event: Event, _ central: String, _ attribute: Attribute? = nil, value: [UInt8]? = nil, offset: Int? = nil,
        reason: String? = nil, refusal: ATTErrorCode? = nil, bond: Bond? = nil, passkey: Passkey? = nil,
        to lines: ServedLines
    ) {
        let name = attribute?.type.flatMap(AssignedNumbers.label(ofAttribute:))
        let reason = reason ?? refusal.map { $0.name.lowercased() }
        if json {
            let object = JSONLine.object([
                "v": 1, "t": .string(Timestamp.now()), "event": .string(event.rawValue), "central": .string(central),
                "handle": attribute.map { .integer(Int($0.handle)) },
                "uuid": attribute?.type.map { .string($0.description) }, "name": name.map { .string($0) },
                "offset": offset.map { .integer($0) }, "hex": value.map { .string(Hex.encode($0)) },
                "reason": reason.map { .string($0) }, "attError": refusal.map { .integer(Int($0.rawValue)) },
                "method": bond.map { .string($0.method.rawValue) },
                "authenticated": bond.map { .bool($0.isAuthenticated) }, "keySize": bond.map { .integer($0.keySize) },
                "passkey": passkey.map { .string("\($0)") },
            ])
            return lines.add(object.bytes)
        }
        var line = StyledText()
        func add(_ text: String, _ style: ScreenStyle = []) {
            if line.width > 0 { line.add("  ") }
            line.add(text.printable, style)
        }
        add(Timestamp.localNow(), .background)
        add(central)
        add(event.words, event.isFailure ? .defect : .title)
        if let attribute {
            add(CharacteristicReference.handle(attribute.handle).description)
            if let type = attribute.type { add("\(type)") }
            if let name { add(name) }
        }
        if let offset { add("from byte \(offset)") }
        if let value { add(value.isEmpty ? "(empty)" : Hex.encode(value), .green) }
        if let passkey { add("\(passkey)", .bold) }
        if let text = reason ?? bond?.words { add(text) }
        lines.add(Array(Console.spelled(line.painted(color.look)).utf8))
    }
}

extension ConnectedCentral {
    /// What a line calls the central: its identity or address, or its socket.
    fileprivate var label: String { peer.map { "\($0)" } ?? name }
}
