import BLECore
import BLELinux
import BareBLE
import Glibc
import TestSupport
import Testing

@testable import BareBLETestKit

/// Pairings by raw packets: questions, results and ends as kernels 6.1 and 6.12 were seen to have them.
@Suite("Virtual pairing", .timeLimit(.minutes(5)))
struct VirtualPairingTests {
    private static let peer = KernelSecurityBench.peer
    private static let failed = packet("11000000 0800 \(peer) 05")

    private static func completed(_ status: String) -> String { packet("01000000 0a00 1900 \(status) \(peer)") }

    // MARK: Association models

    /// What this side is asked.
    enum Question: String {
        case justWorks, compare, enter, show
    }

    /// A row: ours, theirs, Secure Connections; the question; the key's kind and the socket's level.
    struct Model: CustomTestStringConvertible {
        let ours: Int
        let theirs: VirtualSecurity.Capability
        let isSecureConnections: Bool
        let question: Question
        let kind: String
        let level: UInt8

        init(
            _ ours: Int, _ theirs: VirtualSecurity.Capability, _ isSecureConnections: Bool, _ question: Question,
            _ kind: String, _ level: UInt8
        ) {
            self.ours = ours
            self.theirs = theirs
            self.isSecureConnections = isSecureConnections
            self.question = question
            self.kind = kind
            self.level = level
        }

        var testDescription: String { "\(ours)/\(theirs) \(isSecureConnections ? "SC" : "legacy"): \(question)" }
    }

    /// As observed.
    static let models = [
        Model(3, .noInputNoOutput, true, .justWorks, "02", 2), Model(3, .noInputNoOutput, false, .justWorks, "00", 2),
        Model(4, .noInputNoOutput, true, .justWorks, "02", 2), Model(4, .noInputNoOutput, false, .justWorks, "00", 2),
        Model(2, .displayOnly, true, .enter, "03", 4), Model(2, .displayOnly, false, .enter, "01", 3),
        Model(0, .keyboardOnly, true, .show, "03", 4), Model(0, .keyboardOnly, false, .show, "01", 3),
        Model(1, .displayYesNo, true, .compare, "03", 4), Model(1, .displayYesNo, false, .justWorks, "00", 2),
        Model(4, .keyboardDisplay, true, .compare, "03", 4), Model(4, .keyboardDisplay, false, .show, "01", 3),
        Model(4, .displayYesNo, true, .compare, "03", 4), Model(4, .displayYesNo, false, .enter, "01", 3),
        // Core Vol 3 Part H, table 2.8.
        Model(0, .displayOnly, true, .justWorks, "02", 2), Model(2, .keyboardOnly, false, .enter, "01", 3),
        Model(4, .keyboardOnly, true, .show, "03", 4), Model(2, .keyboardDisplay, true, .enter, "03", 4),
        Model(3, .keyboardDisplay, true, .justWorks, "02", 2), Model(1, .displayOnly, false, .justWorks, "00", 2),
    ]

    @Test("The capabilities of both sides decide the question, the key and the level", arguments: models)
    func theCapabilitiesOfBothSidesDecideTheQuestionAndTheLevel(_ model: Model) async throws {
        try await VirtualTime.run { time in
            let security = VirtualSecurity(
                capability: model.theirs, hasSecureConnections: model.isSecureConnections, passkey: 123_456)
            let bench = try await KernelSecurityBench(time, security)
            try await bench.linked()
            let asked = try await bench.exchange("19000000 0800 \(Self.peer) 0\(model.ours)", for: .milliseconds(50))
            let question = try #require(asked.first)
            #expect(asked.count == 1)
            // The socket can be used meanwhile.
            #expect(await bench.read(2) == "0b020300f1ff")
            let shown = await bench.device.shownNumber
            var events: [String]
            switch model.question {
            case .justWorks:
                #expect(question.hasPrefix(packet("0f000000 0c00 \(Self.peer) 01")))
                if !model.isSecureConnections { #expect(question.hasSuffix("00000000")) }
                events = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(100))
                #expect(events.removeFirst() == packet("01000000 0a00 1c00 00 \(Self.peer)"))
            case .compare:
                let number = Self.number(try #require(shown))
                #expect(question == packet("0f000000 0c00 \(Self.peer) 00 \(number)"))
                events = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(100))
                #expect(events.removeFirst() == packet("01000000 0a00 1c00 00 \(Self.peer)"))
            case .enter:
                #expect(question == packet("10000000 0700 \(Self.peer)"))
                #expect(shown == 123_456)
                events = try await bench.exchange("1e000000 0b00 \(Self.peer) 40e20100", for: .milliseconds(100))
                #expect(events.removeFirst() == packet("01000000 0a00 1e00 00 \(Self.peer)"))
            case .show:
                let number = Self.number(try #require(shown))
                #expect(question == packet("17000000 0c00 \(Self.peer) \(number) 00"))
                await bench.pass(.milliseconds(300))
                events = bench.management.received()
            }
            #expect(events.last == Self.completed("00"))
            events.removeLast()
            #expect(events.count == (model.isSecureConnections ? 1 : 2))
            for (event, central) in zip(events, model.isSecureConnections ? ["00"] : ["01", "00"]) {
                #expect(event.hasPrefix(packet("0a000000 2500 01 \(Self.peer) \(model.kind) \(central) 10")))
            }
            #expect(bench.commands.received() == ["04080400400001"])
            #expect(try bench.security() == SocketSecurity(level: .init(rawValue: model.level), keySize: 16))
            let isAuthenticated = model.kind == "01" || model.kind == "03"
            #expect(await bench.device.linkSecurity == VirtualLinkSecurity(isAuthenticated: isAuthenticated))
            #expect(await bench.read(3) == "0b01")
            #expect(await bench.read(5) == (isAuthenticated ? "0b02" : "010a050005"))
            // The peer keeps the key that this side will use.
            let bond = await bench.device.bondKeys.first
            let key = bond?.value.withBytes { bytes in Hex.encode((0..<bytes.count).map { bytes[$0] }) }
            #expect(events.first?.suffix(32) == key.map { $0[...] })
            #expect(try await bench.exchange("19000000 0800 \(Self.peer) 03") == [Self.completed("13")])
        }
    }

    private static func number(_ value: UInt32) -> String {
        Hex.encode((0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
    }

    @Test("The library's link is used while it is paired, and reads what was protected; no timer is left", .row("T27"))
    func theLibrarysLinkIsUsedWhileItIsPaired() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity(capability: .displayYesNo))
            try await bench.manage()
            var configuration = Configuration()
            let (pairings, pairing) = AsyncStream.makeStream(of: SecurityLevel.self)
            configuration.raiseSecurity = { request in
                pairing.yield(request.level)
                try? await time.clock.sleep(for: .seconds(1))
                return true
            }
            let central = Central(configuration, radio: bench.radio)
            let device = try await central.connect(KernelSecurityBench.id)
            async let value = device.read(0xFFF2)
            for await level in pairings {
                #expect(level == .authentication)
                break
            }
            _ = try await bench.exchange("19000000 0800 \(Self.peer) 01", for: .milliseconds(50))
            let events = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(200))
            #expect(events.last == Self.completed("00"))
            #expect(try await value == [2])
            await device.disconnect()
            await bench.pass(.seconds(3))
            #expect(await bench.radio.hasNoTimeouts)
        }
    }

    // MARK: Results

    @Test(
        "The results arrive in any order on their two sockets",
        arguments: [
            (VirtualManagement.ResultOrder.encryptionFirst, ["HCI", "0a", "01"]), (.keysFirst, ["0a", "HCI", "01"]),
            (.completionFirst, ["0a", "01", "HCI"]),
        ])
    func theResultsArriveInAnyOrder(_ order: VirtualManagement.ResultOrder, _ expected: [String]) async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            await bench.radio.orderResults(order)
            try await bench.linked()
            _ = try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .milliseconds(50))
            _ = try await bench.exchange("1c000000 0700 \(Self.peer)")
            var seen: [String] = []
            for _ in 0..<100 {
                await bench.pass(.milliseconds(1))
                seen += bench.commands.received().map { _ in "HCI" }
                seen += bench.management.received().map { String($0.prefix(2)) }
            }
            #expect(seen == expected)
        }
    }

    @Test("A random order is the same in each run, and not always the same one")
    func randomOrders() async throws {
        var runs: [[Bool]] = []
        for _ in 0..<2 {
            let run = try await VirtualTime.run { time in
                let bench = try await KernelSecurityBench(time, VirtualSecurity())
                await bench.radio.orderResults(nil)
                try await bench.linked()
                var isEncryptedFirst: [Bool] = []
                for _ in 0..<12 {
                    _ = try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .milliseconds(50))
                    _ = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(21))
                    isEncryptedFirst.append(!bench.commands.received().isEmpty)
                    await bench.pass(.milliseconds(50))
                    _ = try await bench.exchange("1b000000 0800 \(Self.peer) 00")
                    // An encrypted link would not be paired again.
                    try await bench.disconnect()
                    try await bench.initiate()
                    try bench.attach()
                    _ = bench.management.received()
                }
                return isEncryptedFirst
            }
            runs.append(run)
        }
        #expect(runs[0] == runs[1])
        #expect(Set(runs[0]).count == 2)
    }

    @Test("Without bondable the keys are not for storage; the kernel keeps that of Secure Connections all the same")
    func notBondable() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked(isBondable: false)
            let events = try await bench.pair()
            #expect(events.dropFirst().first?.hasPrefix(packet("0a000000 2500 00 \(Self.peer) 02")) == true)
            #expect(await !bench.device.isBonded)
            #expect(try await bench.exchange("19000000 0800 \(Self.peer) 03") == [Self.completed("13")])
            #expect(
                try await bench.exchange("1b000000 0800 \(Self.peer) 00")
                    == [packet("01000000 0a00 1b00 00 \(Self.peer)")])
        }
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity(hasSecureConnections: false))
            try await bench.linked(isBondable: false)
            #expect(try await bench.pair().dropFirst() == [Self.completed("00")])
            #expect(try bench.security() == SocketSecurity(level: .medium, keySize: 16))
        }
    }

    @Test("On an encrypted link Pair Device succeeds at once, and makes no key")
    func aPairingOnAnEncryptedLinkMakesNoKey() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            try await bench.pair()
            _ = try await bench.exchange("1b000000 0800 \(Self.peer) 00")
            #expect(
                try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .seconds(1)) == [Self.completed("00")])
            #expect(await bench.radio.longTermKeys().isEmpty)
            #expect(await bench.device.pairingCount == 1)
        }
    }

    @Test("A peer without identity, a peer that keeps no bond, short keys, signed writes")
    func peersMayLackAnIdentityABondOrLongKeys() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.keepsBonds = false
            let bench = try await KernelSecurityBench(time, security)
            try await bench.linked()
            #expect(try await bench.pair().dropFirst().first?.hasPrefix(packet("0a000000 2500 00")) == true)
        }
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.keySize = 7
            security.acceptsSignedWrites = true
            let bench = try await KernelSecurityBench(time, security)
            try await bench.linked()
            let events = try await bench.pair()
            #expect(events.count == 4)
            #expect(events[1].hasPrefix(packet("19000000 1900 01 \(Self.peer) 00")))
            #expect(events[2].hasPrefix(packet("0a000000 2500 01 \(Self.peer) 02 00 07")))
            #expect(events[2].hasSuffix("000000000000000000"))
            #expect(try bench.security() == SocketSecurity(level: .medium, keySize: 7))
        }
    }

    @Test("Out-of-band data need no question; wrong ones fail, and the link stays")
    func outOfBand() async throws {
        let confirmation = String(repeating: "a1", count: 16)
        let random = String(repeating: "b2", count: 16)
        for isRight in [true, false] {
            try await VirtualTime.run { time in
                var security = VirtualSecurity()
                security.outOfBandData = VirtualOutOfBandData(
                    confirmation: try Hex.decode(confirmation), random: try Hex.decode(isRight ? random : confirmation))
                let bench = try await KernelSecurityBench(time, security)
                try await bench.linked()
                let zeros = String(repeating: "00", count: 32)
                #expect(
                    try await bench.exchange("21000000 4700 \(Self.peer) \(zeros) \(confirmation) \(random)")
                        == [packet("01000000 0a00 2100 00 \(Self.peer)")])
                let events = try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .milliseconds(200))
                #expect(events.last == Self.completed(isRight ? "00" : "05"))
                #expect(events.count == (isRight ? 2 : 1))
                #expect(try bench.security().level == (isRight ? .fips : .low))
                #expect(await bench.read(2) == "0b020300f1ff")
            }
        }
    }

    // MARK: Ends

    /// A pairing that ends without keys.
    struct End: CustomTestStringConvertible {
        let name: String
        var capability = VirtualSecurity.Capability.noInputNoOutput
        var response = VirtualSecurity.Response.accept
        var requires = false
        var ours = "03"
        /// The command after the question.
        var reply: String?
        var status: String
        var isLinkLost = false

        var testDescription: String { name }
    }

    static let ends = [
        End(name: "our no", reply: "1d000000 0700 \(peer)", status: "05"),
        End(name: "no passkey", capability: .displayOnly, ours: "02", reply: "1f000000 0700 \(peer)", status: "05"),
        End(
            name: "a shown passkey is stopped", capability: .keyboardOnly, ours: "00",
            reply: "1f000000 0700 \(peer)", status: "05"),
        End(
            name: "our passkey is wrong", capability: .displayOnly, ours: "02",
            reply: "1e000000 0b00 \(peer) 41e20100", status: "05", isLinkLost: true),
        End(
            name: "the peer's passkey is wrong", capability: .keyboardOnly, response: .reject, ours: "00",
            status: "05", isLinkLost: true),
        End(
            name: "the peer's user says no", capability: .displayYesNo, response: .reject, ours: "01",
            reply: "1c000000 0700 \(peer)", status: "05", isLinkLost: true),
        End(name: "the peer refuses", response: .refuse, status: "05", isLinkLost: true),
        End(name: "the peer requires authentication", requires: true, status: "05", isLinkLost: true),
        End(name: "cancelled", reply: "1a000000 0700 \(peer)", status: "10", isLinkLost: true),
        End(name: "unpaired", reply: "1b000000 0800 \(peer) 00", status: "05"),
        End(name: "unpaired and disconnected", reply: "1b000000 0800 \(peer) 01", status: "05", isLinkLost: true),
    ]

    @Test(
        "A pairing fails once, others are told, and the link stays or ends as it does with the kernel", arguments: ends)
    func aPairingFailsOnce(_ end: End) async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity(capability: end.capability, passkey: 123_456)
            security.response = end.response
            security.requiresAuthentication = end.requires
            let bench = try await KernelSecurityBench(time, security)
            try await bench.linked()
            let other = try await bench.anotherSocket()
            var events = try await bench.exchange("19000000 0800 \(Self.peer) \(end.ours)", for: .milliseconds(50))
            if let reply = end.reply { events += try await bench.exchange(reply) }
            await bench.pass(.milliseconds(400))
            events += bench.management.received()
            #expect(events.filter { $0.hasPrefix(packet("01000000 0a00 1900")) } == [Self.completed(end.status)])
            #expect(other.received().filter { $0.hasPrefix("11") } == [Self.failed])
            let isLost = events.contains(packet("0c000000 0800 \(Self.peer) 02"))
            #expect(isLost == end.isLinkLost)
            #expect(!events.contains { $0.hasPrefix("0a") })
            #expect(await bench.radio.longTermKeys().isEmpty)
            #expect(await !bench.device.isBonded)
            #expect(await bench.device.pairingCount == 0)
            if end.isLinkLost {
                #expect(bench.commands.received() == ["04050400400016"])
                bench.link = nil
                try await bench.initiate()
                try bench.attach()
                _ = bench.management.received()
            } else {
                #expect(await bench.read(2) == "0b020300f1ff")
            }
            // The next one works at once.
            await bench.device.setSecurity(VirtualSecurity())
            #expect(try await bench.pair().last == Self.completed("00"))
        }
    }

    @Test("A peer that cannot pair refuses; without a Security Manager Pair Device succeeds without doing anything")
    func cannotPair() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, nil)
            try await bench.linked()
            let events = try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .milliseconds(50))
            #expect(events == [Self.completed("05"), packet("0c000000 0800 \(Self.peer) 02")])
        }
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.initiate()
            try bench.attach()
            #expect(try await bench.exchange("19000000 0800 \(Self.peer) 03") == [Self.completed("00")])
            #expect(try bench.security() == SocketSecurity(level: .low, keySize: 0))
        }
    }

    @Test("Nobody replies, or the peer is silent: after 30 seconds the kernel disconnects", arguments: [true, false])
    func theKernelDisconnectsASilentPeerAfterThirtySeconds(isSilent: Bool) async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            if isSilent { security.response = .ignore }
            let bench = try await KernelSecurityBench(time, security)
            try await bench.linked()
            let question = try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .seconds(29))
            #expect(question.count == (isSilent ? 0 : 1))
            await bench.pass(.seconds(2))
            let events = bench.management.received()
            #expect(events.count == 2)
            #expect(await bench.radio.hasNoTimeouts)
            #expect(events.contains(packet("0c000000 0800 \(Self.peer) 02")))
            #expect(events.contains { $0.hasPrefix(packet("01000000 0a00 1900")) })
            #expect(bench.commands.received() == ["04050400400016"])
        }
    }

    @Test("The link drops in each phase: one end, and no keys before they exist")
    func linkLoss() async throws {
        for delay in stride(from: 0, through: 100, by: 5) {
            try await VirtualTime.run { time in
                let bench = try await KernelSecurityBench(time, VirtualSecurity())
                try await bench.linked()
                var events = try await bench.exchange(
                    "19000000 0800 \(Self.peer) 03", for: .milliseconds(min(delay, 50)))
                if delay >= 50 {
                    events += try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(delay - 50))
                }
                await bench.radio.disconnect(bench.device)
                await bench.pass(.seconds(1))
                events += bench.management.received()
                let ends = events.filter { $0.hasPrefix(packet("01000000 0a00 1900")) }
                #expect(ends.count == 1)
                #expect(events.contains(packet("0c000000 0800 \(Self.peer) 03")))
                let isPaired = ends == [Self.completed("00")]
                if isPaired { #expect(events.contains { $0.hasPrefix("0a") }) }
                #expect(await bench.radio.longTermKeys().isEmpty == !bench.device.isBonded)
            }
        }
    }

    @Test("The first reply wins; another Pair Device of the same peer joins or is refused")
    func theFirstReplyWins() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            let other = try await bench.anotherSocket()
            try bench.management.send("19000000 0800 \(Self.peer) 03")
            await bench.pass(.milliseconds(50))
            #expect(other.received().first?.hasPrefix("0f") == true)
            // Another program says no, as bluetoothd does where it has no agent.
            try other.send("1d000000 0700 \(Self.peer)")
            await bench.pass(.zero)
            #expect(other.received() == [packet("01000000 0a00 1d00 00 \(Self.peer)"), Self.failed])
            let late = try await bench.exchange("1c000000 0700 \(Self.peer)")
            #expect(late.suffix(2) == [Self.completed("05"), packet("01000000 0a00 1c00 03 \(Self.peer)")])
            // A second one while the first runs.
            try bench.management.send("19000000 0800 \(Self.peer) 03")
            await bench.pass(.milliseconds(5))
            try other.send("19000000 0800 \(Self.peer) 03")
            await bench.pass(.zero)
            #expect(other.received().last == packet("01000000 0a00 1900 0a \(Self.peer)"))
            // It joins a pairing that a socket has begun.
            _ = try await bench.exchange("1d000000 0700 \(Self.peer)")
            try bench.radio.system.setSecurity(bench.descriptor, .medium)
            _ = try await bench.exchange("19000000 0800 \(Self.peer) 03", for: .milliseconds(50))
            let events = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(100))
            #expect(events.last == Self.completed("00"))
        }
    }

    // MARK: Security Requests

    @Test("A stranger that asks for a bond is refused without a question; one that asks for none is asked about")
    func strangersRequest() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.request = VirtualSecurityRequest()
            let bench = try await KernelSecurityBench(time, security)
            try await bench.manage(isBondable: false)
            try await bench.initiate()
            try bench.attach()
            #expect(bench.management.received().last == Self.failed)
            #expect(await bench.read(2) == "0b020300f1ff")
            for _ in 0..<50 { await bench.device.requestSecurity() }
            await bench.pass(.milliseconds(50))
            #expect(bench.management.received() == Array(repeating: Self.failed, count: 50))
            await bench.device.requestSecurity(VirtualSecurityRequest(isBonding: false))
            await bench.pass(.milliseconds(50))
            #expect(bench.management.received().first?.hasPrefix(packet("0f000000 0c00 \(Self.peer) 01")) == true)
            let refused = try await bench.exchange("1d000000 0700 \(Self.peer)")
            #expect(refused == [packet("01000000 0a00 1d00 00 \(Self.peer)"), Self.failed])
            #expect(await bench.read(2) == "0b020300f1ff")
        }
        // Without a Security Manager it is ignored.
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            _ = try await bench.exchange("04000000 0000")
            try await bench.initiate()
            try bench.attach()
            _ = bench.management.received()
            await bench.device.requestSecurity()
            await bench.pass(.milliseconds(50))
            #expect(bench.management.received().isEmpty)
        }
    }

    @Test("A bonded peer's request encrypts with the key, whatever it asks; with a keyboard it can pair again")
    func bondedPeersRequest() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            try await bench.pair()
            for capability in [3, 4] {
                try await bench.disconnect()
                _ = try await bench.exchange("18000000 0100 0\(capability)")
                _ = try await bench.exchange("09000000 0100 00")
                try await bench.initiate()
                try bench.attach()
                _ = bench.management.received()
                await bench.device.requestSecurity(VirtualSecurityRequest(isAuthenticated: true))
                await bench.pass(.milliseconds(50))
                let events = bench.management.received()
                if capability == 3 {
                    #expect(events.isEmpty)
                    #expect(bench.commands.received() == ["04080400400001"])
                    #expect(try bench.security() == SocketSecurity(level: .medium, keySize: 16))
                } else {
                    // The peer cannot, so it fails, and the link stays unencrypted.
                    #expect(events == [Self.failed])
                    #expect(bench.commands.received().isEmpty)
                    #expect(await bench.device.linkSecurity == .none)
                }
            }
        }
    }
}

extension VirtualRadio {
    fileprivate var hasNoTimeouts: Bool { securityTimers.isIdle }
}
