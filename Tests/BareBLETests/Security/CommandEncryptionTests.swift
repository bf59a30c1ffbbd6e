import BLECore
import BLELinux
import BareBLECrypto
import TestSupport
import Testing

@testable import BareBLE
@testable import BareBLETestKit

/// Links to bonded peers in a process that may not manage the adapter: encrypted by a command to the controller, with
/// the stored key, before a socket attaches.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct CommandEncryptionTests {
    /// A notification without encryption.
    private let forged: [UInt8] = [0x1B, 0x03, 0x00, 0x66]

    /// What a central without management does and sees.
    private struct Restricted {
        let bench: SecurityBench
        let central: Central
        let commands = Lock<[TracedHCIPacket]>([])

        /// Pairs with all rights, and goes on with less.
        ///
        /// - Parameter empties: Whether the kernel loses the keys, as by unplugging the adapter.
        init(
            _ bench: SecurityBench, permissions: VirtualPermissions = .commands, empties: Bool = true,
            log: KeptLog? = nil, change: (inout AdapterSystem) -> Void = { _ in }
        ) async throws {
            self.bench = bench
            try await bench.pair()
            if empties {
                var socket = LinkSocket(adopting: try await bench.radio.openManagement().get())
                #expect(socket.send([0x13, 0, 0, 0, 2, 0, 0, 0]) == .sent)
                #expect(socket.send([0x30, 0, 0, 0, 2, 0, 0, 0]) == .sent)
                while await !bench.radio.longTermKeys().isEmpty { await Task.yield() }
            }
            await bench.radio.setPermissions(permissions)
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            configuration.addressHash = { $0.hash }
            if let log { configuration.logger = log.logger }
            var system = bench.radio.system
            change(&system)
            let commands = commands
            central = Central(
                configuration,
                adapter: Adapter(
                    .first, loop: bench.radio.loop, logger: configuration.logger,
                    trace: { packet in if packet.isOutgoing { commands.withLock { $0.append(packet) } } },
                    security: configuration.security, addressHash: configuration.addressHash, system: system))
        }

        /// The opcodes of the commands that make and encrypt links.
        var linkCommands: [HCIOpcode] {
            let wanted: Set<HCIOpcode> = [.leExtendedCreateConnection, .leEnableEncryption, .disconnect]
            return commands.withLock { $0 }.compactMap { packet in
                (try? HCICommandPacket(packet.bytes.span))?.opcode
            }.filter { wanted.contains($0) }
        }
    }

    // MARK: Success

    @Test(.row("S01"), arguments: [true, false], [true, false])
    func theLinkIsEncryptedBeforeItsFirstByte(hasSecureConnections: Bool, empties: Bool) async throws {
        try await VirtualTime.run { time in
            let security = VirtualSecurity(hasSecureConnections: hasSecureConnections)
            let restricted = try await Restricted(try await SecurityBench(time, security), empties: empties)
            let bench = restricted.bench
            let requests = await bench.device.requestCount
            await bench.radio.observe { isCommand in
                // Nothing was sent before the link was encrypted.
                if !isCommand { bench.device.assumeIsolated { #expect($0.requestCount == requests) } }
            }
            let peripheral = try await restricted.central.connect(bench.id, ConnectOptions(mtu: 23))
            await bench.radio.observe(nil)
            let found = await peripheral.security
            #expect(found.isEncrypted && found.keySize == 16 && found.level == 2)
            #expect(found.bond?.peer == bench.id && !found.isAuthenticated)
            #expect(try await peripheral.read(0xFFF1) == [7])
            #expect(restricted.linkCommands == [.leExtendedCreateConnection, .leEnableEncryption])
            #expect(await bench.device.pairingCount == 1)
            #expect(await bench.device.encryptionCount == 1)
            await peripheral.disconnect()
            #expect(await peripheral.security == .none)
        }
    }

    @Test func aBondIsForgottenWithoutTheRightToManageTheAdapter() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let peripheral = try await restricted.central.connect(restricted.bench.id)
            try await restricted.central.forgetBond(with: restricted.bench.id)
            _ = await peripheral.disconnected()
            #expect(try await restricted.central.bonds().isEmpty)
        }
    }

    /// The kernel has no key of it to remove, and would end no link with one.
    @Test func aBondThatIsForgottenWhileItEncryptsALinkLeavesNone() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            await bench.radio.delayEncryption(by: .seconds(1))
            let requests = await bench.device.requestCount
            let connecting = time.task { try await restricted.central.connect(bench.id) }
            while restricted.linkCommands.last != .leEnableEncryption {
                try await time.clock.sleep(for: .milliseconds(10))
            }
            try await restricted.central.forgetBond(with: bench.id)
            let failure = await #expect(throws: BLEError.self) { _ = try await connecting.value }
            #expect(failure?.code == .notBonded && failure?.reason.contains("forgotten") == true)
            while bench.radio.system.linkHandle(0, bench.id.address) != nil {
                try await time.clock.sleep(for: .milliseconds(10))
            }
            #expect(restricted.linkCommands == [.leExtendedCreateConnection, .leEnableEncryption, .disconnect])
            #expect(await bench.device.requestCount == requests)
            #expect(await bench.device.encryptionCount == 1)
            #expect(try await restricted.central.bonds().isEmpty)
        }
    }

    @Test func theKeyIsInNoTrace() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(
                try await SecurityBench(time, VirtualSecurity(hasSecureConnections: false)))
            let stored = try restricted.bench.bonds.open(adapter: VirtualRadio.address(of: 0)).load()
            let key = try #require(stored.records.first?.centralKey)
            let peripheral = try await restricted.central.connect(restricted.bench.id)
            await peripheral.disconnect()
            let packets = restricted.commands.withLock { $0 }.map(\.bytes)
            let encryption = try #require(packets.first { $0.starts(with: [0x19, 0x20]) })
            #expect(encryption.count == 31)
            // Rand and EDIV stay, and name the key.
            let named = LEEnableEncryption(handle: 0x40, rand: key.rand, ediv: key.ediv, key: .zero)
            #expect(encryption == Array(HCICommandPacket(named).bytes.dropFirst()) && key.rand != 0)
            #expect(encryption.suffix(16).allSatisfy { $0 == 0 })
            let command = LEEnableEncryption(handle: 0x40, rand: key.rand, ediv: key.ediv, key: key.key)
            let secret = Hex.encode(command.parameters.suffix(16))
            #expect(!packets.contains { Hex.encode($0).contains(secret) })
            #expect(!"\(HCICommandPacket(command)) \(command)".contains(secret))
            var dumped = ""
            dump(HCICommandPacket(command), to: &dumped)
            #expect(!dumped.contains("\(command.parameters.suffix(16)[27])"))
        }
    }

    @Test func anArmedReconnectCostsNoRequestAndNoManagementCommand() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time) { device in
                device.services =
                    [.genericAccess(name: "Lock", appearance: 0), .genericAttribute(databaseHash: nil)]
                    + device.services
            }
            let restricted = try await Restricted(bench)
            let options = ConnectOptions(mtu: 23)
            var costs: [Int] = []
            var management: [Int] = []
            for round in 0..<4 {
                let (before, packets) = (await bench.device.requestCount, await bench.radio.managementCommands)
                let peripheral = try await restricted.central.connect(bench.id, options)
                if round == 0 {
                    try await peripheral.discover(level: .full)
                    _ = try await peripheral.serviceChanges()
                }
                var values = try await peripheral.subscribe(to: 0xFFF1).makeAsyncIterator()
                costs.append(await bench.device.requestCount - before)
                management.append(await bench.radio.managementCommands - packets)
                #expect(try await bench.device.notify(0xFFF1, [UInt8(round)]))
                #expect(try await values.next()?.bytes == [UInt8(round)])
                await bench.radio.disconnect(bench.device)
                _ = await peripheral.disconnected()
            }
            // One configuration is read back, once: then the peer is known to keep them.
            #expect(costs[0] > 1 && costs[1...] == [1, 0, 0])
            #expect(management[0] > 0 && management[1...] == [0, 0, 0], "that it may not is asked once")
        }
    }

    @Test(.row("S11"), arguments: [true, false]) func itFollowsThePeerOverItsAddresses(empties: Bool) async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time, isPrivate: true), empties: empties)
            let bench = restricted.bench
            for round in 1...10 {
                await bench.radio.rotateAddress(of: bench.device)
                let peripheral = try await restricted.central.connect(SecurityBench.identity)
                #expect(peripheral.id == SecurityBench.identity)
                #expect(await peripheral.security.isEncrypted, "\(round)")
                #expect(try await peripheral.read(0xFFF1) == [7])
                await #expect(throws: error(.busy)) { _ = try await restricted.central.connect(SecurityBench.identity) }
                await peripheral.disconnect()
            }
            #expect(await bench.device.pairingCount == 1)
        }
    }

    @Test(arguments: [true, false]) func aLinkThatAnEarlierProcessHasLeftIsEncryptedAgain(
        isPrivate: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: isPrivate)
            let restricted = try await Restricted(bench)
            // It comes up as a killed process leaves it: without a socket.
            let leaving = try await bench.radio.open(0).get()
            var other = LinkSocket(adopting: leaving.commands)
            let onAir = try #require(await bench.radio.id(of: bench.device))
            _ = try await restricted.central.adapter.prepare(during: "connect")
            let initiation = LEInitiation(peer: onAir, ownAddressType: .public, parameters: .balanced)
            #expect(other.send(HCICommandPacket(LEExtendedCreateConnection(initiation, phys: .le1M)).bytes) == .sent)
            while bench.radio.system.linkHandle(0, onAir.address) == nil {
                try await time.clock.sleep(for: .milliseconds(10))
            }
            let peer = isPrivate ? SecurityBench.identity : bench.id
            let peripheral = try await restricted.central.connect(isPrivate ? onAir : peer)
            #expect(peripheral.id == peer)
            #expect(await peripheral.security.isEncrypted)
            // The first one is the other program's.
            #expect(restricted.linkCommands == [.leExtendedCreateConnection, .leEnableEncryption])
            await peripheral.disconnect()
            _ = LinkSocket(adopting: leaving.reports)
        }
    }

    /// How a command has encrypted a link is known to the program alone that has sent it.
    @Test func aLinkOfAnotherProgramIsNotAdoptedAndEndsAtOnce() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            let detached = try await restricted.central.connect(bench.id).detach()
            let handle = try #require(bench.radio.system.linkHandle(0, bench.id.address))
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            configuration.addressHash = { $0.hash }
            let next = Central(configuration, radio: bench.radio)
            // As `adopt` does, which needs a socket of the kernel.
            let operation = "adopt a link"
            try await next.adapter.readBonds(during: operation)
            try? await next.adapter.prepare(during: operation, mayCyclePower: false)
            let controls = try #require(
                await next.adapter.controls(adopting: handle, from: VirtualRadio.address(of: 0), to: bench.id))
            let peripheral = Peripheral(
                socket: LinkSocket(adopting: try #require(detached.release())), id: bench.id, name: "\(bench.id)",
                mtu: 517, loop: bench.radio.loop, configuration: configuration, warnings: next.warnings,
                policy: CachePolicy(ConnectOptions()), controls: controls)
            let begin = time.now
            let error = await #expect(throws: BLEError.self) {
                try await peripheral.resume(detached.state, holding: SubscribeOptions())
            }
            #expect(error?.code == .notBonded)
            await time.settle()
            // The kernel itself takes two seconds.
            #expect(await bench.device.isConnected == false && time.now < begin + .seconds(1))
            let again = try await next.connect(bench.id)
            #expect(await again.security.isEncrypted)
            #expect(try await again.read(0xFFF1) == [7])
            await again.disconnect()
        }
    }

    // MARK: Failures

    @Test(.row("S01", "S02"), arguments: [true, false]) func aPeerWithoutTheKeyGetsAndDeliversNothing(
        isReplaced: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            var security = VirtualSecurity()
            security.earlyPackets = [forged, forged]
            await bench.device.setSecurity(security)
            if isReplaced { await bench.device.replaceBondKeys() } else { await bench.device.forgetBonds() }
            let requests = await bench.device.requestCount
            var events = restricted.central.securityEvents.makeAsyncIterator()
            let failure = await #expect(throws: BLEError.self) {
                _ = try await restricted.central.connect(bench.id)
            }
            #expect(failure?.code == .bondRejected)
            #expect(failure?.hciStatus == (isReplaced ? .micFailure : .keyMissing))
            #expect(try await events.next() == .bondRejected(bench.id))
            #expect(await bench.device.requestCount == requests)
            #expect(await bench.device.pairingCount == 1)
            #expect(try await restricted.central.bonds().first?.rejectedSince != nil, "kept, and marked")
            #expect(await bench.device.isConnected == false)
        }
    }

    @Test(.row("S01")) func whatCameInClearIsNotDelivered() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            var security = VirtualSecurity()
            security.earlyPackets = [forged, [0x1D, 0x03, 0x00, 0x01]]
            await restricted.bench.device.setSecurity(security)
            let peripheral = try await restricted.central.connect(restricted.bench.id, ConnectOptions(mtu: 23))
            #expect(try await peripheral.read(0xFFF1) == [7])
            let statistics = await peripheral.statistics
            #expect(statistics.unsolicitedNotifications == 0)
            await peripheral.disconnect()
        }
    }

    @Test func aRefusedCommandIsAnErrorWithAHint() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            let cases: [(HCIStatus, BLEError.Code)] = [
                (.commandDisallowed, .connectFailed), (.invalidParameters, .connectFailed),
                (.unknownCommand, .notSupported),
            ]
            for (status, code) in cases {
                await bench.radio.refuse(.leEnableEncryption, with: status)
                let failure = await #expect(throws: BLEError.self) {
                    _ = try await restricted.central.connect(bench.id)
                }
                #expect(failure?.code == code && failure?.hciStatus == status && failure?.hint != nil)
                #expect(await bench.device.isConnected == false)
            }
            #expect(try await restricted.central.bonds().first?.rejectedSince == nil)
            await bench.radio.refuse(.leEnableEncryption, with: nil)
            let peripheral = try await restricted.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            // The right is taken away between two commands.
            await peripheral.disconnect()
            await bench.radio.observe { [radio = bench.radio] isCommand in
                let links = radio.assumeIsolated { $0.links.names(of: 0).count }
                if !isCommand, links == 1 { radio.assumeIsolated { $0.setPermissions([]) } }
            }
            await #expect(throws: error(.notPermitted)) { _ = try await restricted.central.connect(bench.id) }
            await bench.radio.observe(nil)
        }
    }

    /// The kernel has the first link until the controller has reported its end, some intervals after the command.
    @Test func aConnectAfterARefusedCommandHasAnotherLink() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            await bench.radio.delayDisconnections(by: .milliseconds(100))
            await bench.radio.refuse(.leEnableEncryption, with: .commandDisallowed)
            await #expect(throws: error(.connectFailed)) { _ = try await restricted.central.connect(bench.id) }
            await bench.radio.refuse(.leEnableEncryption, with: nil)
            let peripheral = try await restricted.central.connect(bench.id)
            try await time.clock.sleep(for: .seconds(1))
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    /// The moments of the end: the packet with which it comes, counted from the Connection Complete. A link that ends
    /// with the first one is initiated again, as any other.
    @Test(.row("S19"), arguments: 2...4) func theLinkMayEndInEachPhase(packet: Int) async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            let count = Lock(0)
            await bench.radio.observe { [radio = bench.radio, device = bench.device] _ in
                radio.assumeIsolated { radio in
                    guard !radio.links.names(of: 0).isEmpty else { return }
                    let isDue = count.withLock { count in
                        count += 1
                        return count == packet
                    }
                    if isDue { radio.disconnect(device, because: .connectionTimeout) }
                }
            }
            let requests = await bench.device.requestCount
            let failure = await #expect(throws: BLEError.self) {
                _ = try await restricted.central.connect(bench.id)
            }
            await bench.radio.observe(nil)
            #expect(failure?.code == .connectFailed || failure?.code == .disconnected, "\(failure.debugDescription)")
            #expect(await bench.device.requestCount == requests)
            #expect(try await restricted.central.bonds().first?.rejectedSince == nil)
            let peripheral = try await restricted.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    /// The kernel makes a link of its own where ours has ended before the socket attaches: unencrypted,
    /// with the same handle.
    @Test(.row("S19")) func aLinkThatTheKernelMakesInItsPlaceIsNotUsed() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let isArmed = Lock(true)
            let restricted = try await Restricted(bench) { [radio = bench.radio, device = bench.device] system in
                let connect = system.connect
                system.connect = { own, type, peer, timeout, level throws(SystemCallError) in
                    let isDue = isArmed.withLock { isArmed in
                        defer { isArmed = false }
                        return isArmed
                    }
                    if isDue {
                        radio.assumeIsolated { $0.disconnect(device, because: .connectionTimeout) }
                    }
                    return try connect(own, type, peer, timeout, level)
                }
            }
            let requests = await bench.device.requestCount
            await #expect(throws: error(.connectFailed)) { _ = try await restricted.central.connect(bench.id) }
            let hasNotEnded = isArmed.withLock { $0 }
            #expect(!hasNotEnded)
            #expect(await bench.device.requestCount == requests)
            // The kernel ends its link when no socket uses it any more.
            try await time.clock.sleep(for: .seconds(5))
            let peripheral = try await restricted.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    @Test func aSilentEncryptionEndsInTime() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            await bench.radio.delayEncryption(by: .seconds(20))
            let begin = time.clock.now
            let failure = await #expect(throws: BLEError.self) {
                _ = try await restricted.central.connect(bench.id)
            }
            #expect(failure?.code == .timedOut && failure?.reason.contains("encrypted") == true)
            #expect(time.clock.now - begin < .seconds(6))
            await bench.radio.delayEncryption(by: .milliseconds(10))
            let peripheral = try await restricted.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    @Test func aCancelledConnectLeavesNoLink() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            await bench.radio.delayEncryption(by: .seconds(1))
            let running = Lock<Task<Peripheral, any Error>?>(nil)
            // It is cancelled while the controller encrypts.
            await bench.radio.observe { isCommand in
                if !isCommand, restricted.linkCommands.last == .leEnableEncryption { running.withLock { $0 }?.cancel() }
            }
            // On the loop, so that the time does not pass before it continues.
            let task = Task(executorPreference: bench.radio.loop) {
                while running.withLock({ $0 == nil }) { await Task.yield() }
                return try await restricted.central.connect(bench.id)
            }
            running.withLock { $0 = task }
            await #expect(throws: error(.cancelled)) { _ = try await task.value }
            await bench.radio.observe(nil)
            while bench.radio.system.linkHandle(0, bench.id.address) != nil {
                try await time.clock.sleep(for: .milliseconds(10))
            }
            #expect(restricted.linkCommands == [.leExtendedCreateConnection, .leEnableEncryption, .disconnect])
            await bench.radio.delayEncryption(by: .milliseconds(10))
            let peripheral = try await restricted.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    @Test(.row("S16")) func aLinkThatIsNoLongerEncryptedEnds() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            let peripheral = try await restricted.central.connect(bench.id)
            await bench.radio.stopEncryption(of: bench.device)
            await bench.device.send(raw: forged)
            #expect(await peripheral.disconnected() == .other(.authenticationFailure, errorNumber: nil))
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
            #expect(await peripheral.security == .none)
        }
    }

    // MARK: Rights and demands

    @Test(.row("S01")) func withNeitherRightABondedPeerIsNotConnected() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time), permissions: [], empties: false)
            let bench = restricted.bench
            let requests = await bench.device.requestCount
            for demand in [ConnectOptions.SecurityDemand.asBonded, .bonded, .pairing(PairingOptions())] {
                let failure = await #expect(throws: BLEError.self) {
                    _ = try await restricted.central.connect(bench.id, ConnectOptions(security: demand))
                }
                #expect(failure?.code == .notPermitted && failure?.hint?.contains("cap_net_raw") == true)
            }
            #expect(await bench.device.requestCount == requests)
            #expect(await bench.device.pairingCount == 1)
            #expect(bench.radio.system.linkHandle(0, bench.id.address) == nil)
            let peripheral = try await restricted.central.connect(bench.id, ConnectOptions(security: .none))
            #expect(await peripheral.security == .none)
            #expect(try await peripheral.read(0xFFF2) == [8])
            await peripheral.disconnect()
        }
    }

    /// With CAP_NET_ADMIN alone, the ends of links are read, and no beginnings: the kernel passes no LE events. Each of
    /// the links has the handle of the one before.
    @Test func theKernelEncryptsEachLinkWhereNoBeginningIsReported() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(
                try await SecurityBench(time), permissions: .administration, empties: false,
                change: { system in
                    let connect = system.connect
                    system.connect = { own, type, peer, timeout, level throws(SystemCallError) in
                        let socket = try connect(own, type, peer, timeout, level)
                        let (isConnecting, reason) = (socket.isConnecting, socket.reportedReason)
                        // A socket of the kernel has the handle of its link once that is up.
                        return LinkSocket(
                            adopting: socket.release(), isConnecting: isConnecting, reportedHandle: 0x0040,
                            reportedReason: reason)
                    }
                })
            for round in 1...3 {
                let peripheral = try await restricted.central.connect(restricted.bench.id)
                #expect(await peripheral.security.isEncrypted, "\(round)")
                #expect(restricted.bench.radio.system.linkHandle(0, restricted.bench.id.address) == 0x0040)
                await peripheral.disconnect()
                try await time.clock.sleep(for: .seconds(10))
            }
            #expect(await restricted.bench.device.pairingCount == 1)
        }
    }

    @Test func theDemandsHold() async throws {
        try await VirtualTime.run { time in
            let restricted = try await Restricted(try await SecurityBench(time))
            let bench = restricted.bench
            for demand in [ConnectOptions.SecurityDemand.bonded, .pairing(PairingOptions())] {
                let peripheral = try await restricted.central.connect(bench.id, ConnectOptions(security: demand))
                #expect(await peripheral.security.isEncrypted)
                await peripheral.disconnect()
            }
            let peripheral = try await restricted.central.connect(bench.id, ConnectOptions(security: .none))
            #expect(await peripheral.security == .none)
            await peripheral.disconnect()
            let stranger = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            let id = try #require(await bench.radio.id(of: stranger))
            await #expect(throws: error(.notBonded)) {
                _ = try await restricted.central.connect(id, ConnectOptions(security: .bonded))
            }
            await #expect(throws: error(.notPermitted)) {
                _ = try await restricted.central.connect(id, ConnectOptions(security: .pairing(PairingOptions())))
            }
            let plain = try await restricted.central.connect(id)
            #expect(await plain.security == .none)
            await #expect(throws: error(.notPermitted)) { try await plain.pair() }
            await plain.disconnect()
        }
    }
}
