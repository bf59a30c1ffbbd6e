import BLECore
import BLELinux
import Glibc
import TestSupport
import Testing

@testable import BareBLE

/// Pairings one after the other on one adapter, with the kernel's end of the management socket in the test. Packets
/// follow the kernel's `mgmt.h`.
@Suite struct SecurityCoordinatorTests {
    private static let first = PeerID("C6:55:44:33:22:11/random")!
    private static let second = PeerID("C6:55:44:33:22:12/random")!

    @Test func aPairingThatTheKernelDoesNotEndHoldsUpTheNextOne() throws {
        var bench = try Bench()
        bench.setUp()
        bench.pair(Self.first, 1)
        #expect(bench.kernel() == ["19000300 0800 1122334455c602 03"])
        // The kernel ends it neither by itself nor when that is requested.
        bench.passDeadline()
        #expect(bench.sent.last == "1a000300 0700 1122334455c602")
        bench.passDeadline()
        bench.run(besides: [0x1A])
        #expect(bench.ended == [1: .failure(.timedOut(nil))])
        // Its end is still to come: it is nobody else's, and no list is loaded before.
        #expect(bench.coordinator.isPairing)
        bench.pair(Self.second, 2)
        #expect(bench.ended[2] == .failure(.command(.pairDevice, .busy)))
        bench.awaitTurn(3)
        #expect(bench.kernel().isEmpty && bench.turns.isEmpty)
        bench.send("01000300 0a00 1900 10 1122334455c602")
        #expect(bench.turns == [3] && !bench.coordinator.isPairing)
        bench.pair(Self.second, 4)
        #expect(bench.sent.suffix(4).map { $0.prefix(8) } == ["30000300", "13000300", "09000300", "19000300"])
        #expect(bench.sent.last == "19000300 0800 1222334455c602 03" && bench.ended[4] == nil)
    }

    /// A yes that was not sent yet would be one to a question that nobody has asked.
    @Test func whatAPairingHasNotSentIsNeverSent() throws {
        var bench = try Bench()
        bench.setUp()
        bench.pair(Self.first, 1)
        bench.send("0f000300 0c00 1122334455c602 01 2a000000")
        bench.reply(.yes)
        #expect(bench.kernel().last == "1c000300 0700 1122334455c602")
        // The kernel asks once more, and has not responded to the first reply.
        bench.send("0f000300 0c00 1122334455c602 00 40e20100")
        bench.reply(.yes)
        #expect(bench.kernel().isEmpty)
        bench.send("01000300 0a00 1900 05 1122334455c602")
        bench.run(besides: [0x1C])
        #expect(bench.ended[1] == .failure(.numberRejected))
        bench.send("01000300 0a00 1c00 00 1122334455c602")
        #expect(bench.kernel().isEmpty)
    }

    @Test func aPairingIsRefusedWhereTheKernelCannotPair() throws {
        var bench = try Bench()
        bench.records.withLock { $0 = [RecordedBonds.first] }
        bench.pair(Self.first, 1)
        #expect(bench.ended[1] == .failure(.notReady(.notManaged)) && bench.kernel().isEmpty)
        #expect(!bench.coordinator.isPairing && !bench.coordinator.hasKeys)
    }

    @Test func aPairingThatMayNotBeginInTimeEnds() throws {
        var bench = try Bench()
        bench.setUp()
        bench.perform(bench.coordinator.load(nil))
        bench.pair(Self.first, 1, deadline: .seconds(2))
        #expect(bench.coordinator.nextDeadline == bench.now + .seconds(2))
        bench.passDeadline()
        #expect(bench.ended[1] == .failure(.timedOut(nil)) && !bench.coordinator.isPairing)
    }

    /// A connect that was to replace a bond has failed before its pairing: the kernel lacks its keys, and takes no list
    /// while another peer is paired.
    @Test func theKernelHasTheKeysOfAllOthersWhileAPeerIsPaired() throws {
        var bench = try Bench()
        bench.records.withLock { $0 = [RecordedBonds.first] }
        bench.setUp()
        bench.perform(bench.coordinator.load(nil, leavingOut: Self.first))
        bench.run()
        #expect(bench.sent == ["30000300 0200 0000", "13000300 0200 0000"])
        bench.pair(Self.second, 1)
        #expect(bench.sent.dropFirst(2).map { $0.prefix(8) } == ["30000300", "13000300", "09000300", "19000300"])
        #expect(bench.sent[3].hasPrefix("13000300 2600 0100"))
        // A connect that ends without a pairing has them loaded again, and leaves those of others as they are.
        var third = try Bench()
        third.records.withLock { $0 = [RecordedBonds.first] }
        third.setUp()
        third.perform(third.coordinator.load(nil, leavingOut: Self.first))
        third.run()
        third.perform(third.coordinator.loadOmittedKeys(of: Self.second))
        third.run()
        #expect(third.sent.count == 2)
        for _ in 0..<2 { third.perform(third.coordinator.loadOmittedKeys(of: Self.first)) }
        third.run()
        #expect(third.sent.count == 4 && third.sent.last?.hasPrefix("13000300 2600 0100") == true)
        // The pairing that the keys were left out for begins without them.
        var other = try Bench()
        other.records.withLock { $0 = [RecordedBonds.first] }
        other.setUp()
        other.perform(other.coordinator.load(nil, leavingOut: Self.first))
        other.run()
        let demand = PairingExchange.Demand(
            peer: Self.first, capability: .noInputNoOutput, hasBond: true, replacedBond: Self.first,
            deadline: other.now + .seconds(25))
        other.perform(other.coordinator.pair(demand, 1))
        other.run(besides: [0x19])
        #expect(other.sent.dropFirst(2).map { $0.prefix(8) } == ["09000300", "1b000300", "19000300"])
        // One that is cancelled before it begins has them loaded again as well.
        var fourth = try Bench()
        fourth.records.withLock { $0 = [RecordedBonds.first] }
        fourth.setUp()
        fourth.perform(fourth.coordinator.load(nil, leavingOut: Self.first))
        fourth.respond()
        fourth.perform(fourth.coordinator.pair(demand, 1))
        fourth.perform(fourth.coordinator.cancelPairing(1))
        fourth.run()
        #expect(fourth.ended[1] == .failure(.cancelled) && fourth.sent.count == 2)
        fourth.perform(fourth.coordinator.loadOmittedKeys(of: Self.first))
        fourth.run()
        #expect(fourth.sent.count == 4 && fourth.sent.last?.hasPrefix("13000300 2600 0100") == true)
    }

    /// bluetoothd clears the list of blocked peers when it begins; what a user unblocks is one peer.
    @Test(.row("S03")) func aProgramThatClearsTheBlockedPeersManagesTheAdapter() throws {
        var bench = try Bench()
        bench.setUp()
        bench.send("15000300 0700 1122334455c602")
        #expect(!bench.coordinator.hasOtherManager && bench.others == 0)
        bench.send("15000300 0700 00000000000000")
        #expect(bench.coordinator.hasOtherManager && bench.others == 1)
        // Another adapter is another matter.
        bench.perform(bench.coordinator.use(adapter: 4))
        #expect(!bench.coordinator.hasOtherManager)
    }

    /// A bonded central that connects by itself, and finds its key missing, may forget its bond.
    @Test(.row("S03")) func aKeyThatAnotherProgramHasRemovedIsLoadedAgain() throws {
        var bench = try Bench()
        bench.records.withLock { $0 = [RecordedBonds.first] }
        // Without management nothing is loaded.
        bench.send("16000300 0700 1122334455c602")
        #expect(!bench.coordinator.hasOtherManager && bench.coordinator.counts.failedLoads == 0)
        bench.setUp()
        bench.send("16000300 0700 1222334455c602")
        #expect(bench.kernel().isEmpty && !bench.coordinator.hasOtherManager)
        bench.send("16000300 0700 1122334455c602")
        bench.run()
        #expect(bench.sent.map { $0.prefix(8) } == ["30000300", "13000300"])
        #expect(bench.sent.last?.hasPrefix("13000300 2600 0100") == true && bench.coordinator.hasOtherManager)
    }

    /// After the peer has sent its identity, the kernel names it by that.
    @Test(.row("S04")) func theEndOfAPairingIsNoSecurityRequest() throws {
        var bench = try Bench()
        bench.setUp()
        let rotating = PeerID("62:CC:28:F3:EE:75/random")!
        bench.pair(rotating, 1)
        bench.send("18000300 1e00 01 75eef328cc62 1222334455c602 000102030405060708090a0b0c0d0e0f")
        bench.send("11000300 0800 1222334455c602 05")
        bench.send("11000300 0800 75eef328cc6202 05")
        #expect(bench.requested.isEmpty)
        // A peer that nobody pairs is another matter.
        bench.send("11000300 0800 1122334455c602 05")
        #expect(bench.requested == [Self.first])
    }

    /// The kernel reports the failure of a pairing that was refused, unless its link has ended before.
    @Test(.row("S04")) func aRefusedPairingEndsWithItsLinkAndWithTheInterface() throws {
        var bench = try Bench()
        bench.setUp()
        let question = "0f000300 0c00 1122334455c602 01 2a000000"
        let failure = "11000300 0800 1122334455c602 05"
        bench.send(question)
        bench.send(failure)
        #expect(bench.requested.isEmpty)
        // On the next link the peer asks for security.
        bench.send(question)
        bench.send("0c000300 0800 1122334455c602 03")
        bench.send(failure)
        #expect(bench.requested == [Self.first])
        // The end of another peer's link changes nothing.
        bench.send(question)
        bench.send("0c000300 0800 1222334455c602 03")
        bench.send(failure)
        #expect(bench.requested == [Self.first])
        bench.send(question)
        bench.perform(bench.coordinator.close())
        try bench.open()
        bench.send(failure)
        #expect(bench.requested == [Self.first, Self.first])
    }

    /// The kernel may have no key of a peer whose bond is forgotten, and its link may just have ended.
    @Test func aPeerWithoutAKeyInTheKernelIsUnpaired() throws {
        var bench = try Bench()
        bench.setUp()
        for (waiter, status) in [(1, "00"), (2, "06"), (3, "0e"), (4, "0b")] as [(UInt64, String)] {
            bench.perform(bench.coordinator.unpair(Self.first, waiter))
            #expect(bench.kernel() == ["1b000300 0800 1122334455c602 01"])
            bench.send("01000300 0a00 1b00 \(status) 1122334455c602")
            #expect(bench.unpaired[waiter] == (waiter != 4))
        }
    }

    /// A power that was switched off when the socket was lost.
    @Test func aPowerIsSwitchedOnAgainAfterTheLossOfTheSocket() throws {
        var bench = try Bench()
        bench.settings = 0x0201
        bench.perform(bench.coordinator.manage(ManagementSetup.Plan(powersOn: false), 9))
        bench.respond()
        bench.respond()
        #expect(bench.settings == 0x0200)
        bench.perform(bench.coordinator.close())
        #expect(bench.managed == [false])
        try bench.open()
        bench.perform(bench.coordinator.manage(ManagementSetup.Plan(powersOn: false), 9))
        bench.run()
        #expect(bench.managed == [false, true] && bench.settings & 1 == 1)
    }
}

/// Pairings that centrals begin, with the same kernel.
@Suite struct CentralPairingCoordinatorTests {
    private static let central = PeerID("C6:55:44:33:22:11/random")!
    private static let permission = PairingResponder.Permission(capability: .displayOnly)
    private static let confirmation = "0f000300 0c00 1122334455c602 01 2a000000"
    private static let key =
        "0a000300 2500 01 1122334455c602 02 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e"

    private static func bench() throws -> Bench {
        var bench = try Bench()
        bench.setUp()
        bench.coordinator.findCentrals { $0 == central ? PairingResponder.Client(peer: central) : nil }
        return bench
    }

    @Test func aCentralIsRefusedUntilCentralsMayPair() throws {
        var bench = try Self.bench()
        bench.send(Self.confirmation)
        bench.run()
        #expect(bench.sent.last == "1d000300 0700 1122334455c602" && bench.coordinator.counts.refusedPairings == 1)
        bench.perform(bench.coordinator.allowCentralPairing(Self.permission, 7))
        bench.run()
        #expect(bench.rested == [7] && bench.sent.suffix(2) == ["09000300 0100 01", "18000300 0100 00"])
        bench.send(Self.confirmation)
        #expect(bench.kernel().isEmpty && bench.coordinator.isPairing)
        // A peer that is no central of a served link.
        bench.send("0f000300 0c00 1222334455c602 01 2a000000")
        bench.run()
        #expect(bench.sent.last == "1d000300 0700 1222334455c602")
        bench.replyAboutCentral(.yes)
        bench.run()
        #expect(bench.sent.last == "1c000300 0700 1122334455c602")
    }

    @Test func aCentralPairsAndTheListsAreLoadedAgain() throws {
        var bench = try Self.bench()
        bench.perform(bench.coordinator.allowCentralPairing(Self.permission, 7))
        bench.run()
        bench.send(Self.confirmation)
        bench.replyAboutCentral(.yes)
        bench.run()
        bench.perform(bench.coordinator.encryptionChanged(true, of: Self.central))
        bench.send(Self.key)
        #expect(bench.centrals.map { try? $0.get().identity } == [Self.central] && !bench.coordinator.isPairing)
        bench.run()
        // It stays bondable.
        #expect(bench.sent.suffix(2).map { $0.prefix(8) } == ["30000300", "13000300"])
        bench.perform(bench.coordinator.refuseCentrals())
        bench.run()
        #expect(bench.sent.suffix(2) == ["09000300 0100 00", "18000300 0100 03"])
    }

    /// The kernel holds references into the lists while a pairing runs, and the adapter has one set of settings.
    @Test func aPairingOfThisSideWaitsForThatOfACentral() throws {
        var bench = try Self.bench()
        bench.perform(bench.coordinator.allowCentralPairing(Self.permission, 7))
        bench.run()
        bench.send(Self.confirmation)
        bench.pair(PeerID("C6:55:44:33:22:12/random")!, 1)
        #expect(bench.ended[1] == .failure(.command(.pairDevice, .busy)))
        bench.awaitTurn(2)
        bench.perform(bench.coordinator.load(nil))
        #expect(bench.kernel().isEmpty && bench.turns.isEmpty)
        bench.replyAboutCentral(.no)
        bench.run()
        #expect(bench.turns == [2] && bench.centrals == [.failure(.pairing(.refusedHere(.justWorks)))])
        #expect(bench.sent.suffix(2).map { $0.prefix(8) } == ["30000300", "13000300"])
    }

    @Test func anotherProgramThatPreventsPairingIsReported() throws {
        var bench = try Self.bench()
        bench.perform(bench.coordinator.allowCentralPairing(Self.permission, 7))
        bench.run()
        let before = bench.sent.count
        bench.settings &= ~0x10
        bench.send("06000300 0400 010a0000")
        bench.run()
        #expect(bench.cleared == [true] && bench.coordinator.hasOtherManager)
        #expect(bench.sent.dropFirst(before) == ["09000300 0100 01", "18000300 0100 00"])
        #expect(bench.rested == [7] && bench.restFailures == 0)
        // A response that nobody waits for.
        bench.send("06000300 0400 010a0000")
        bench.refuse()
        #expect(bench.restFailures == 1)
    }

    /// The kernel's next question comes before the task that waits for its turn runs.
    @Test func centralsThatFollowEachOtherDoNotKeepThisSideWaiting() throws {
        var bench = try Self.bench()
        bench.perform(bench.coordinator.allowCentralPairing(Self.permission, 7))
        bench.run()
        bench.send(Self.confirmation)
        bench.coordinator.pairingRequested()
        bench.awaitTurn(2)
        bench.replyAboutCentral(.no)
        bench.run()
        #expect(bench.turns == [2])
        bench.send(Self.confirmation)
        bench.run()
        #expect(!bench.coordinator.isPairing && bench.sent.last == "1d000300 0700 1122334455c602")
        bench.pair(PeerID("C6:55:44:33:22:12/random")!, 2)
        #expect(bench.ended[2] == nil && bench.coordinator.isPairing)
        bench.passDeadline()
        bench.run()
        // It may be repeated by another pairing of this side.
        bench.coordinator.pairingRequestEnded()
        bench.passDeadline()
        bench.run()
        #expect(bench.ended[2] != nil && !bench.coordinator.isPairing)
        bench.send(Self.confirmation)
        #expect(bench.coordinator.isPairing)
    }

    @Test func theLossOfTheInterfaceEndsThePairingOfACentral() throws {
        var bench = try Self.bench()
        bench.perform(bench.coordinator.allowCentralPairing(Self.permission, 7))
        bench.run()
        bench.send(Self.confirmation)
        bench.perform(bench.coordinator.close())
        #expect(bench.centrals == [.failure(.pairing(.adapterLost))] && !bench.coordinator.isPairing)
        // Centrals may pair again as soon as the adapter is managed again.
        try bench.open()
        bench.perform(bench.coordinator.manage(ManagementSetup.Plan(powersOn: true), 9))
        bench.run()
        #expect(bench.sent.count { $0 == "09000300 0100 01" } == 2)
    }
}

/// A coordinator for adapter 3, and a kernel that responds to commands of the setup when a test has it do so.
private struct Bench: ~Copyable {
    let coordinator: SecurityCoordinator
    /// Settings of the adapter as Read Controller Information reports them.
    var settings: UInt32 = 0
    private(set) var ended: [UInt64: Result<PairingExchange.Outcome, PairingExchange.Failure>] = [:]
    private(set) var turns: [UInt64] = []
    private(set) var managed: [Bool] = []
    private(set) var restFailures = 0
    private(set) var cleared: [Bool] = []
    /// How often another manager was reported.
    private(set) var others = 0
    /// The peers whose Security Requests were reported.
    private(set) var requested: [PeerID] = []
    /// The tasks to which it was reported whether a peer is unpaired, with that.
    private(set) var unpaired: [UInt64: Bool] = [:]
    /// All packets to the kernel.
    private(set) var sent: [String] = []
    /// The ends of the pairings of centrals.
    private(set) var centrals: [Result<PairingExchange.Outcome, PairingResponder.Failure>] = []
    /// The tasks to which it was reported that centrals may pair.
    private(set) var rested: [UInt64] = []
    private var unanswered: [[UInt8]] = []
    private var question: UInt64 = 0
    private var questionAboutCentral: UInt64 = 0
    private var far: LinkSocket?
    private let time: Lock<BootInstant>
    /// The bonds as they are stored.
    let records: Lock<[BondRecord]>

    init() throws {
        let records = Lock<[BondRecord]>([])
        self.records = records
        let time = Lock(BootInstant(nanoseconds: 100_000_000_000))
        self.time = time
        coordinator = SecurityCoordinator(bonds: { records.withLock { $0 } }) { time.withLock { $0 } }
        far = nil
        try open()
    }

    var now: BootInstant { time.withLock { $0 } }

    mutating func open() throws {
        let (near, far) = try LinkSocket.pair()
        coordinator.open(ManagementSocket(adopting: near), adapter: 3)
        self.far = LinkSocket(adopting: far)
        unanswered = []
    }

    mutating func setUp() {
        perform(coordinator.manage(ManagementSetup.Plan(powersOn: true), 99))
        run()
        sent = []
    }

    /// Begins a pairing on a link that is not encrypted, up to Pair Device.
    mutating func pair(_ peer: PeerID, _ waiter: UInt64, deadline: Duration = .seconds(25)) {
        perform(
            coordinator.pair(
                PairingExchange.Demand(peer: peer, capability: .noInputNoOutput, deadline: now + deadline), waiter))
        if deadline > .seconds(2) { run(besides: [0x19]) }
    }

    mutating func awaitTurn(_ waiter: UInt64) { coordinator.awaitTurn(waiter) }

    mutating func reply(_ reply: PairingExchange.Reply) { perform(coordinator.replied(reply, to: question)) }

    mutating func replyAboutCentral(_ reply: PairingExchange.Reply) {
        perform(coordinator.replied(reply, aboutCentral: questionAboutCentral))
    }

    mutating func passDeadline() {
        guard let deadline = coordinator.nextDeadline else { return }
        time.withLock { $0 = max($0, deadline) }
        perform(coordinator.timePassed())
        take()
    }

    /// The packets that the kernel was sent since the last time, and has not responded to.
    mutating func kernel() -> [String] {
        take()
        defer { unanswered = [] }
        return unanswered.map(Self.text)
    }

    /// Sends a packet as the kernel.
    mutating func send(_ packet: String) {
        _ = far?.send(bytes(packet))
        read()
    }

    /// Responds to everything but commands with these codes.
    mutating func run(besides codes: Set<UInt8> = []) {
        take()
        while let index = unanswered.firstIndex(where: { !codes.contains($0[0]) }) {
            respond(to: unanswered.remove(at: index))
            take()
        }
    }

    /// Responds to the next command.
    mutating func respond() {
        take()
        if !unanswered.isEmpty { respond(to: unanswered.removeFirst()) }
    }

    /// Rejects the next command.
    mutating func refuse() {
        take()
        guard !unanswered.isEmpty else { return }
        _ = far?.send([2, 0, 3, 0, 3, 0, unanswered.removeFirst()[0], 0, 0x0B])
        read()
    }

    private mutating func respond(to packet: [UInt8]) {
        var returned: [UInt8] = []
        let bit: UInt32? = [0x05: 1 << 0, 0x09: 1 << 4, 0x0D: 1 << 9, 0x2D: 1 << 11][packet[0]]
        if let bit {
            settings = packet[6] == 0 ? settings & ~bit : settings | bit
            returned = Self.number(settings)
        } else if packet[0] == 0x04 {
            returned = [UInt8](repeating: 0, count: 9) + Self.number(0xBE11) + Self.number(settings)
            returned += [UInt8](repeating: 0, count: 263)
        } else if packet[0] >= 0x19, packet[0] < 0x20 {
            returned = Array(packet[6..<13])
        }
        let length = returned.count + 3
        _ = far?.send([1, 0, 3, 0, UInt8(length & 0xFF), UInt8(length >> 8), packet[0], 0, 0] + returned)
        read()
    }

    private static func number(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(value >> (8 * $0) & 0xFF) } }

    private mutating func take() {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while case .packet(let count, _)? = far?.receive(into: &buffer) {
            unanswered.append(Array(buffer.prefix(count)))
            sent.append(Self.text(Array(buffer.prefix(count))))
        }
    }

    private mutating func read() {
        var actions: [SecurityCoordinator.Action] = []
        coordinator.readable { actions += $0 }
        perform(actions)
    }

    mutating func perform(_ actions: [SecurityCoordinator.Action]) {
        for action in actions {
            switch action {
            case .paired(let waiter, let result): ended[waiter] = result
            case .turn(let waiter): turns.append(waiter)
            case .managed(_, .success): managed.append(true)
            case .managed(_, .failure): managed.append(false)
            case .readSecurity: perform(coordinator.securityRead(SocketSecurity(level: .low, keySize: 0)))
            case .ask(_, let number): question = number
            case .askAboutCentral(_, _, let number): questionAboutCentral = number
            case .readCentralSecurity:
                perform(coordinator.centralSecurityRead(SocketSecurity(level: .medium, keySize: 16)))
            case .storeCentral: perform(coordinator.centralStored(true))
            case .centralPaired(_, let result): centrals.append(result)
            case .rested(let waiter, nil): rested.append(waiter)
            case .restFailed: restFailures += 1
            case .changedByOthers(.bondableCleared(let isSetAgain)): cleared.append(isSetAgain)
            case .changedByOthers(.otherManager): others += 1
            case .keyRemoved(let peer): perform(coordinator.loadRemovedKey(of: peer))
            case .requested(let peer): requested.append(peer)
            case .unpaired(let waiter, let failure): unpaired[waiter] = failure == nil
            default: break
            }
        }
    }

    /// The header in two words, the parameters after the length: peer and the rest.
    private static func text(_ packet: [UInt8]) -> String {
        var words = [packet[0..<4], packet[4..<6]]
        let rest = packet.dropFirst(6)
        words += rest.count > 7 ? [rest.prefix(7), rest.dropFirst(7)] : [rest]
        return words.map { Hex.encode(Array($0)) }.filter { !$0.isEmpty }.joined(separator: " ")
    }
}

private func bytes(_ hex: String) -> [UInt8] { (try? Hex.decode(hex)) ?? [] }
