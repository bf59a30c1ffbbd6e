import BareBLE

/// A peripheral that does what its centrals write to 0xFFF4: an order, and a number of four bytes, the lowest first.
///
/// | order | what it does |
/// |---|---|
/// | 1 | notifies so many numbered values of 0xFFF2, each as soon as there is room for it |
/// | 2 | indicates so many numbered values of 0xFFF3, each after the confirmation of the one before |
/// | 3, 4 | publishes another service, 0xFFE0, and withdraws it |
/// | 5 | notifies so many numbered values of 0xFFF2, one in 50 ms, the newest of which counts |
/// | 6 | requests security of the central, within so many seconds |
/// | 7 | listens for channels on links of this security level, 1 to 4; another service, 0xFFD0, has the PSM |
/// | 8 | publishes another service, 0xFFC0; 0xFFC1 has the value that the reading central has in its own 0xFFB1 |
/// | 9 | reads 0xFFB1 of the central |
///
/// A channel returns what it receives, in packets that the central can take; the packet `close` ends it. A central has
/// two channels at most.
///
/// With a directory for bonds, centrals may pair: by `just-works`, `show` or `compare`,
/// whose number is confirmed at once.
///
/// 0xFFF1 keeps 512 bytes, 0xFFF5 takes 10 ms for a command and says how many it has taken, 0xFFF6 demands encryption
/// and 0xFFF7 authentication. 0xFFF8 accepts signed writes.
struct ServeTrial {
    let central: Central
    var pairing: CentralPairingOptions?
    var backEnd = Advertisement.BackEnd.automatic

    /// How centrals may pair, by its name.
    static func pairing(_ name: String) -> CentralPairingOptions? {
        switch name {
        case "just-works": .justWorks
        case "show":
            CentralPairingOptions(agent: PairingAgent(show: { _, passkey in LinkTrials.say("passkey \(passkey)") }))
        case "compare":
            CentralPairingOptions(
                agent: PairingAgent(
                    show: { _, passkey in LinkTrials.say("passkey \(passkey)") },
                    compare: { _, number in
                        LinkTrials.say("compared \(number)")
                        return true
                    }))
        default: nil
        }
    }

    func run() async throws {
        try await central.ready(powerOn: true)
        let local = LocalPeripheral(LocalPeripheral.Settings(name: "Workbench"), on: central)
        let (orders, order) = AsyncStream.makeStream(of: Order.self)
        let (clock, counter) = (central.clock, Counter())
        try await local.publish(
            LocalService(
                0xFFF0,
                [
                    LocalCharacteristic(
                        0xFFF1, [.read, .write], value: .stored((0..<512).map { UInt8(truncatingIfNeeded: $0) })),
                    LocalCharacteristic(0xFFF2, .notify),
                    LocalCharacteristic(0xFFF3, [.read, .indicate]),
                    LocalCharacteristic(
                        0xFFF4, .write,
                        value: .handled(write: { order.yield(Order(value: $0.value, central: $0.central)) })),
                    LocalCharacteristic(
                        0xFFF5, [.read, .writeWithoutResponse],
                        value: .handled(
                            read: { _ in Self.bytes(await counter.count) },
                            write: { _ in
                                try await clock.sleep(for: .milliseconds(10))
                                await counter.add()
                            })),
                    LocalCharacteristic(0xFFF6, .read, value: .fixed([6]), access: AttributeAccess(.encrypted)),
                    LocalCharacteristic(0xFFF7, .read, value: .fixed([7]), access: AttributeAccess(.authenticated)),
                    LocalCharacteristic(0xFFF8, [.read, .authenticatedSignedWrites], value: .stored([0])),
                ]))
        let events = local.events
        if let pairing { try await local.allowPairing(pairing) }
        var contents = Advertisement([.flags(.generalDiscoverable), .localName("Workbench")])
        contents.backEnd = backEnd
        let advertisement = try await local.advertise(contents)
        LinkTrials.say("serving")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for try await event in events { report(event) } }
            group.addTask { for await order in orders { try await perform(order.value, of: order.central, local) } }
            try await group.waitForAll()
        }
        withExtendedLifetime(advertisement) {}
    }

    private func report(_ event: LocalPeripheral.Event) {
        switch event {
        case .connected(let central): LinkTrials.say("connected \(central.name)")
        case .disconnected(let central, let reason): LinkTrials.say("disconnected \(central.name): \(reason)")
        case .subscribed(let central, let characteristic, let isRestored):
            LinkTrials.say("subscribed \(characteristic.uuid) \(central.name)\(isRestored ? " restored" : "")")
        case .unsubscribed(let central, let characteristic):
            LinkTrials.say("unsubscribed \(characteristic.uuid) \(central.name)")
        case .paired(_, let bond): LinkTrials.say("paired \(bond.peer)")
        case .pairingFailed(let central, let error): LinkTrials.say("pairing failed \(central.name): \(error)")
        case .written(let written): LinkTrials.say("written \(written.characteristic.uuid)")
        case .writeDropped: break
        case .dropped(let count): LinkTrials.say("missed \(count) events")
        }
    }

    private struct Order: Sendable {
        let value: [UInt8]
        let central: ConnectedCentral
    }

    private func perform(_ order: [UInt8], of client: ConnectedCentral, _ local: LocalPeripheral) async throws {
        // Random packets may be orders too.
        let number = min(order.dropFirst().prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }, 20_000)
        switch order.first {
        case 1:
            for value in 0..<number { try await local.update(Self.bytes(value), of: 0xFFF2) }
            LinkTrials.say("notified \(number)")
        case 2:
            for value in 0..<number { try await local.update(Self.bytes(value), of: 0xFFF3) }
            LinkTrials.say("indicated \(number)")
        case 3: try await local.publish(LocalService(0xFFE0, [LocalCharacteristic(0xFFE1, .read, value: .fixed([1]))]))
        case 4:
            for service in await local.publishedServices where service.uuid == 0xFFE0 {
                try await local.withdraw(service)
            }
        case 5:
            try await withThrowingDiscardingTaskGroup { group in
                for value in 0..<number {
                    group.addTask { try await local.update(Self.bytes(value), of: 0xFFF2, whenFull: .replace) }
                    try await central.clock.sleep(for: .milliseconds(50))
                }
                LinkTrials.say("notified \(number)")
            }
        case 6:
            // Other orders go on meanwhile.
            Task {
                do throws(BLEError) {
                    let security = try await local.requestSecurity(of: client.id, timeout: .seconds(number))
                    LinkTrials.say("secured \(security.keySize) \(security.bond?.peer.description ?? "without a bond")")
                } catch {
                    LinkTrials.say("not secured \(error.code): \(error)")
                }
            }
        case 7: try await listen(for: AccessRequirement.Level(rawValue: UInt8(clamping: number)) ?? .open, local)
        case 8:
            try await local.publish(
                LocalService(
                    0xFFC0,
                    [
                        LocalCharacteristic(
                            0xFFC1, .read,
                            value: .handled(read: { try await local.peripheral(of: $0.central.id).read(0xFFB1) }))
                    ]))
            LinkTrials.say("reads what its readers have")
        case 9:
            // Other orders go on meanwhile.
            Task {
                do throws(BLEError) {
                    let value = try await local.peripheral(of: client.id).read(0xFFB1)
                    LinkTrials.say("found \(Self.hexadecimal(value))")
                } catch {
                    LinkTrials.say("not found \(error.code): \(error)")
                }
            }
        default: LinkTrials.say("no such order: \(order)")
        }
    }

    private func listen(for security: AccessRequirement.Level, _ local: LocalPeripheral) async throws {
        let options = ChannelListener.Options(mtu: 300, maximumChannels: 2)
        let listener = try await local.listenForChannels(security: security, options)
        try await local.publish(
            LocalService(0xFFD0, [LocalCharacteristic(.l2capPSM, .read, value: .fixed(listener.psm))]))
        // Other orders go on meanwhile.
        Task {
            do {
                for try await incoming in listener.channels {
                    Task { await Self.serve(incoming) }
                }
            } catch {
                LinkTrials.say("not listening: \(error)")
            }
        }
        LinkTrials.say("listening \(listener.psm)")
    }

    private static func serve(_ incoming: ChannelListener.IncomingChannel) async {
        let (channel, name) = (incoming.channel, incoming.central.name)
        LinkTrials.say("channel began \(name)")
        do {
            for try await packet in channel.packets {
                if packet == Array("close".utf8) { await channel.close() }
                var rest = packet[...]
                while !rest.isEmpty, await channel.isOpen {
                    try await channel.send(Array(rest.prefix(channel.sendMTU)))
                    rest = rest.dropFirst(channel.sendMTU)
                }
            }
            LinkTrials.say("channel ended \(name)")
        } catch {
            LinkTrials.say("channel failed \(name): \(error)")
        }
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
    }

    /// A number, and as many bytes as make it a packet of 23.
    private static func bytes(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + [UInt8](repeating: 0, count: 16)
    }

    private actor Counter {
        private(set) var count = 0

        func add() { count += 1 }
    }
}
