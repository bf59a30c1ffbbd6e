import TestSupport
import Testing

@testable import BLECore

@Suite struct RestorationStateTests {
    /// Put together and sealed with Python's struct and zlib, from the layouts in `RestorationState+Bytes.swift` and
    /// `ScanSettings+Bytes.swift`.
    private static let golden = """
        424c455301e50000000142000001aa000200025544332211c0010065cd1d00000000005847f80d000000000000000000d03f\
        0700000000e40b5402000000ffffffffffffffff00d6117e03000000b900011800280000002a000100020002372a020d18ff\
        ff00109ecadc240ee5a9e093f3a3b50300406e00010001015544332211000000e40b540200000000ac23fc06000000ffffff\
        ffffffffff000000000100000101a00030000102009435770000000000060000d6117e030000000200020d18020f18000001\
        00025544332211c0000001004c0001004c00020215000001000368756200000102616201ba01f4729e8f
        """

    private static func sample() throws -> RestorationState {
        let belt = PeerID(address: BluetoothAddress(rawValue: 0xC011_2233_4455), type: .random)
        let scale = PeerID(address: BluetoothAddress(rawValue: 0x0011_2233_4455), type: .public)
        var filter = ScanFilter.services(0x180D, 0x180F)
        filter.peers = [belt]
        filter.companies = [0x004C]
        filter.manufacturerData = [.init(company: 0x004C, prefix: [0x02, 0x15])]
        filter.names = ["hub"]
        filter.namePrefix = "ab"
        filter.minimumRSSI = -70
        filter.connectableOnly = true
        let settings = ScanSettings.balanced.matching(filter).duplicates(.every(.seconds(2))).rssiDelta(6)
        return RestorationState(
            adapter: BluetoothAddress(rawValue: 0x00AA_0100_0042),
            peers: [
                RestorationState.Peer(
                    belt,
                    reconnect: .backoff(
                        initial: .milliseconds(500), max: .seconds(60), jitter: 0.25, attempts: 7),
                    readyTimeout: nil, mtu: 185,
                    parameters: try ConnectionParameters(
                        interval: .milliseconds(30)...(.milliseconds(50)), supervisionTimeout: .milliseconds(420)),
                    validation: .whenPossible, observesServiceChanges: false,
                    subscriptions: [
                        RestorationState.Subscription(0x2A37, service: 0x180D),
                        RestorationState.Subscription(
                            BluetoothUUID(high: 0x6E40_0003_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E), index: 1,
                            prefersIndications: true),
                    ]),
                RestorationState.Peer(scale, reconnect: .never, timeout: nil),
            ], scan: RestorationState.Scan(settings, lostAfter: .seconds(15)))
    }

    @Test func bytesAreAsLaidOut() throws {
        let golden = try Hex.decode(Self.golden)
        let sample = try Self.sample()
        #expect(try RestorationState(bytes: golden) == sample)
        #expect(sample.bytes == golden)
        #expect(try RestorationState(bytes: RestorationState().bytes) == RestorationState())
    }

    @Test func aPartOfANameIsKept() throws {
        for (prefix, part) in [("ab", "ub"), (nil, "ub"), ("ab", nil), (nil, nil)] as [(String?, String?)] {
            var filter = ScanFilter()
            (filter.namePrefix, filter.nameContains) = (prefix, part)
            let state = RestorationState(scan: RestorationState.Scan(ScanSettings.balanced.matching(filter)))
            #expect(try RestorationState(bytes: state.bytes) == state)
        }
    }

    @Test func timesOfRecoverySurvive() throws {
        var state = try Self.sample()
        state.recoveryTimes = Array(1_790_000_000...1_790_000_009)
        #expect(try RestorationState(bytes: state.bytes).recoveryTimes == Array(1_790_000_002...1_790_000_009))
        state.recoveryTimes = []
        #expect(try state.bytes == Hex.decode(Self.golden))
        #expect(throws: MalformedPacket.self) {
            // More than a state keeps, in a file that is intact.
            let body = Array(state.bytes.dropFirst(9).dropLast(4))
            _ = try RestorationState(
                bytes: RestorationState.form.enclose(body + [9] + [UInt8](repeating: 1, count: 72)))
        }
    }

    private let boot = BootIdentifier("01234567-89ab-cdef-fedc-ba9876543210")

    private func instant(_ seconds: Int64) -> BootInstant { .zero + .seconds(seconds) }

    /// The state of a boot in which two runs began, the first of them 5 s before that boot.
    private func stateOfRuns(_ boot: BootIdentifier?) -> RestorationState {
        var state = RestorationState()
        state.setRecoveryRuns(
            [instant(-5), instant(55)], at: MachineTime(now: instant(95), timeOfDay: 1_790_000_100, boot: boot))
        return state
    }

    /// Put together and sealed with Python's struct and zlib, from the layout in `RestorationState+Bytes.swift`.
    @Test func timesOfABootAreAsLaidOut() throws {
        let golden = try Hex.decode(
            "424c455302360000000000000002803bb16a00000000bc3bb16a00000000efcdab89674523011032547698badcfe"
                + "000efad5feffffff006641ce0c0000000054cf1ea1")
        let state = stateOfRuns(boot)
        #expect(boot != nil && state.bytes == golden)
        #expect(try RestorationState(bytes: golden) == state)
        #expect(throws: MalformedPacket.self) {
            // The second time is missing.
            let body = Array(golden.dropFirst(9).dropLast(4 + 9))
            _ = try RestorationState(bytes: RestorationState.form.enclose(body))
        }
        #expect(BootIdentifier("") == nil && BootIdentifier("01234567-89ab-cdef-fedc-ba987654321") == nil)
        #expect(
            BootIdentifier("01234567-89ab-cdef-fedc-ba98765432100") == nil && BootIdentifier("no identifier") == nil)
    }

    /// After a restart of the machine its adapters are as its system has switched them.
    @Test func thatAStepHasLeftTheAdapterOffHoldsForTheBoot() throws {
        let time = MachineTime(now: instant(95), timeOfDay: 1_790_000_100, boot: boot)
        var state = RestorationState()
        state.setRecoveryRuns([instant(-5), instant(55)], isAdapterLeftOff: true, at: time)
        let golden = try Hex.decode(
            "424c455302360000000000000002803bb16a00000000bc3bb16a00000000efcdab89674523011032547698badcfe"
                + "000efad5feffffff006641ce0c00000001c2ff19d6")
        #expect(state.bytes == golden)
        let read = try RestorationState(bytes: golden)
        #expect(read.isAdapterLeftOff(at: time))
        #expect(!stateOfRuns(boot).isAdapterLeftOff(at: time))
        let other = BootIdentifier("11111111-1111-1111-1111-111111111111")
        #expect(!read.isAdapterLeftOff(at: MachineTime(now: instant(95), timeOfDay: 1_790_000_100, boot: other)))
    }

    /// A run whose step was refused is none: a helper program that was killed in it counts as one that has refused it.
    @Test func thatTheAdapterIsOffIsKeptWithoutARun() throws {
        let time = MachineTime(now: instant(95), timeOfDay: 1_790_000_100, boot: boot)
        var state = RestorationState()
        state.setRecoveryRuns([], isAdapterLeftOff: true, at: time)
        // By Python's struct and zlib, too.
        let golden = try Hex.decode(
            "424c455302160000000000000000efcdab89674523011032547698badcfe01a252ce35")
        #expect(state.bytes == golden)
        let read = try RestorationState(bytes: golden)
        #expect(read == state && read.isAdapterLeftOff(at: time) && read.recoveryRuns(at: time).isEmpty)
        state.setRecoveryRuns([], isAdapterLeftOff: false, at: time)
        #expect(state.bytes == RestorationState().bytes)
    }

    /// 0.1.0 takes only what it knows for intact, and reads what has nothing else.
    @Test func onlyWhatVersion1DoesNotHaveIsOfVersion2() throws {
        var states = try [RestorationState](repeating: Self.sample(), count: 4)
        states[1].recoveryTimes = [1_790_000_000]
        states[2].peers[1].requiresBond = true
        var filter = ScanFilter()
        filter.nameContains = "ub"
        states[3].scan = RestorationState.Scan(ScanSettings.balanced.matching(filter))
        #expect(states.map { $0.bytes[4] } == [1, 2, 2, 2])
        for state in states { #expect(try RestorationState(bytes: state.bytes) == state) }
    }

    /// Programs between 0.1.0 and 0.2.0 have stored the times in version 1.
    @Test func timesInVersion1AreRead() throws {
        let golden = try Hex.decode(
            "424c455301360000000000000002803bb16a00000000bc3bb16a00000000efcdab89674523011032547698badcfe"
                + "000efad5feffffff006641ce0c0000000047c1ca1a")
        #expect(try RestorationState(bytes: golden) == stateOfRuns(boot))
    }

    /// A clock that is set ahead would end a pause, and one that is set back would begin it again at every restart.
    @Test(arguments: [1_790_000_700, 1_890_000_000, 0] as [UInt64])
    func withinABootTheTimeOfDayDoesNotCount(timeOfDay: UInt64) throws {
        let state = try RestorationState(bytes: stateOfRuns(boot).bytes)
        let time = MachineTime(now: instant(695), timeOfDay: timeOfDay, boot: boot)
        #expect(state.hasRecoveryRuns(of: time))
        #expect(state.recoveryRuns(at: time) == [instant(-5), instant(55)])
    }

    /// A run of another boot began before this one, by as much as the time of day says.
    @Test(
        arguments: [(1_790_000_200, [-100, -40]), (1_790_000_050, [-60, 0]), (0, [-60, 0])] as [(UInt64, [Int64])])
    func acrossBootsTheTimeOfDayCountsForOnePauseAtMost(timeOfDay: UInt64, expected: [Int64]) {
        let state = stateOfRuns(BootIdentifier("11111111-1111-1111-1111-111111111111"))
        for uptime in [100, 5] as [Int64] {
            let time = MachineTime(now: instant(uptime), timeOfDay: timeOfDay, boot: boot)
            #expect(!state.hasRecoveryRuns(of: time))
            let runs = state.recoveryRuns(at: time)
            let known = timeOfDay == 1_790_000_200 && uptime == 5
            #expect(runs == (known ? [instant(-195), instant(-135)] : expected.map(instant)))
        }
    }

    /// The last run counts as if it had just begun, and the others as long before it as they were.
    @Test func ofAnEarlierVersionTheTimeOfDayCounts() throws {
        let state = try RestorationState(bytes: stateOfRuns(nil).bytes)
        var time = MachineTime(now: instant(1_000), timeOfDay: 1_790_000_100, boot: boot)
        #expect(state.recoveryRuns(at: time) == [instant(900), instant(960)])
        time = MachineTime(now: instant(1_000), timeOfDay: 90, boot: boot)
        #expect(state.recoveryRuns(at: time) == [instant(940), instant(1_000)])
        // Stored again, they do not follow the clock of that day any more.
        var stored = state
        stored.setRecoveryRuns(state.recoveryRuns(at: time), at: time)
        let later = MachineTime(now: instant(1_600), timeOfDay: 3, boot: boot)
        #expect(stored.recoveryRuns(at: later) == [instant(940), instant(1_000)])
    }

    @Test func everySettingSurvives() throws {
        var state = try Self.sample()
        var scan = try #require(state.scan)
        for duplicates in [.all, .changed, .every(.milliseconds(1))] as [ScanSettings.Duplicates] {
            for preset in [.balanced, .passive, .lowLatency, .coexist, .longRange] as [ScanSettings] {
                scan.settings = preset.duplicates(duplicates)
                scan.settings.filtersDuplicatesInController = true
                scan.settings.filter.addresses = [BluetoothAddress(rawValue: 5), BluetoothAddress(rawValue: 6)]
                scan.settings.filter.solicitedServices = [0x1812]
                scan.settings.filter.serviceData = [.init(service: 0xFEAA, prefix: [0x00]), .init(service: 0xFD6F)]
                scan.settings.filter.excluding = [PeerID(address: BluetoothAddress(rawValue: 9), type: .public)]
                scan.lostAfter = nil
                state.scan = scan
                #expect(try RestorationState(bytes: state.bytes) == state)
            }
        }
        for policy in [.never, .custom, .backoff(jitter: 0), .backoff(attempts: 0)] as [ReconnectPolicy] {
            state.peers[0].reconnect = policy
            #expect(try RestorationState(bytes: state.bytes) == state)
        }
    }

    /// What the writer takes the reader takes, or one odd option would cost a daemon all that it wants.
    @Test func oddOptionsDoNotDamageTheFile() throws {
        var state = try Self.sample()
        let jitters: [(Double, Double)] = [(1.5, 1), (-1, 0), (.nan, 0), (.infinity, 1), (-.infinity, 0), (0.3, 0.3)]
        for (given, stored) in jitters {
            state.peers[0].reconnect = .backoff(jitter: given)
            let read = try RestorationState(bytes: state.bytes)
            #expect(read.peers[0].reconnect == .backoff(jitter: stored))
        }
        state.peers[0].reconnect = .backoff(initial: .seconds(-1), max: .seconds(-1), attempts: -1)
        #expect(try RestorationState(bytes: state.bytes).peers.count == state.peers.count)
        // 105 ms are more than two intervals of 50 ms; the 100 ms that are stored are not.
        let parameters = try ConnectionParameters(
            interval: .milliseconds(30)...(.milliseconds(50)), supervisionTimeout: .milliseconds(105))
        state.peers[0].parameters = parameters
        #expect(try RestorationState(bytes: state.bytes).peers[0].parameters == parameters)
    }

    @Test(.row("O25")) func everyTruncationAndFlipIsReported() throws {
        let bytes = try Self.sample().bytes
        for count in bytes.indices {
            #expect(throws: MalformedPacket.self) { try RestorationState(bytes: Array(bytes.prefix(count))) }
        }
        #expect(throws: MalformedPacket.self) { try RestorationState(bytes: bytes + [0]) }
        for index in bytes.indices {
            for bit in 0..<8 as Range<UInt8> {
                var flipped = bytes
                flipped[index] ^= 1 << bit
                do throws(MalformedPacket) {
                    _ = try RestorationState(bytes: flipped)
                    Issue.record("bit \(bit) of byte \(index)")
                } catch {
                    #expect(!RestorationState.isOtherVersion(error), "damage is no new version")
                }
            }
        }
    }

    @Test func whatWouldBeCutIsReported() throws {
        #expect(try Self.sample().excess == nil)
        let limit = RestorationState.limit
        let many = (0...limit).map { UInt64($0) }
        let peers = many.map { PeerID(address: BluetoothAddress(rawValue: $0), type: .public) }
        let long = [UInt8](repeating: 7, count: 256)
        var state = RestorationState(peers: peers.map { RestorationState.Peer($0) })
        #expect(state.excess == "1025 peers")
        state.peers.removeLast()
        #expect(state.excess == nil)
        #expect(try RestorationState(bytes: state.bytes) == state)
        state.peers[0].subscriptions = many.map { RestorationState.Subscription(0x2A37, index: Int($0)) }
        #expect(state.excess == "1025 subscriptions of one peer")
        state.peers[0].subscriptions.removeLast()
        var filters = [ScanFilter](repeating: ScanFilter(), count: 13)
        filters[0].services = Set(many.map { BluetoothUUID(UInt16($0)) })
        filters[1].solicitedServices = filters[0].services
        filters[2].peers = Set(peers)
        filters[3].addresses = Set(many.map { BluetoothAddress(rawValue: $0) })
        filters[4].companies = Set(many.map { UInt16($0) })
        filters[5].manufacturerData = Set(many.map { .init(company: UInt16($0), prefix: []) })
        filters[6].serviceData = Set(many.map { .init(service: BluetoothUUID(UInt16($0)), prefix: []) })
        filters[7].names = Set(many.map { "\($0)" })
        filters[8].excluding = Set(peers)
        filters[9].manufacturerData = [.init(company: 1, prefix: long)]
        filters[10].serviceData = [.init(service: 0x180D, prefix: long)]
        filters[11].names = [String(repeating: "n", count: 256)]
        filters[12].namePrefix = String(repeating: "n", count: 256)
        for filter in filters {
            state.scan = RestorationState.Scan(ScanSettings.balanced.matching(filter))
            #expect(state.excess != nil)
            #expect(try RestorationState(bytes: state.bytes) != state, "something is cut")
        }
    }

    @Test(.row("O25")) func aNewVersionIsDistinguishedFromDamage() throws {
        var bytes = try Self.sample().bytes
        bytes[4] = 3
        do throws(MalformedPacket) {
            _ = try RestorationState(bytes: Self.sealed(bytes))
            Issue.record("version 3 was read")
        } catch {
            #expect(RestorationState.isOtherVersion(error))
        }
    }

    /// Bytes whose checksum is right and whose content is not: what is accepted is written as it was read.
    @Test(.row("O25")) func madeUpContentDoesNoHarm() throws {
        let bytes = try Self.sample().bytes
        var accepted = 0
        for index in 9..<(bytes.count - 4) {
            for value in [0, 1, 2, 3, 16, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = value
                guard let state = try? RestorationState(bytes: Self.sealed(changed)) else { continue }
                accepted += 1
                #expect((try? RestorationState(bytes: state.bytes)) == state)
                for peer in state.peers { _ = peer.reconnect.pause(afterFailures: 3, number: 70, chance: .max) }
            }
        }
        #expect(accepted > 100)
        for count in 9..<bytes.count - 4 {
            #expect(throws: MalformedPacket.self) {
                try RestorationState(bytes: Self.sealed(Array(bytes.prefix(count)) + [0, 0, 0, 0]))
            }
        }
    }

    /// Repaired, the name would be three times as long, and cut when it is stored again.
    @Test(.row("O25")) func aNameThatIsNoTextIsRefused() {
        let name = String(repeating: "x", count: 255)
        var filters = ["names": ScanFilter(), "name prefix": ScanFilter()]
        filters["names"]?.names = [name]
        filters["name prefix"]?.namePrefix = name
        for (field, filter) in filters {
            let state = RestorationState(scan: RestorationState.Scan(ScanSettings.balanced.matching(filter)))
            let bytes = state.bytes.map { $0 == 0x78 ? 0xFF : $0 }
            do throws(MalformedPacket) {
                _ = try RestorationState(bytes: Self.sealed(bytes))
                Issue.record("no text was read as \(field)")
            } catch {
                #expect(error.reason == .invalidField(field))
            }
        }
    }

    private static func sealed(_ bytes: [UInt8]) -> [UInt8] {
        var sealed = Array(bytes.dropLast(4))
        let length = UInt16(truncatingIfNeeded: sealed.count - 9)
        sealed.replaceSubrange(5..<9, with: [UInt8(length & 0xFF), UInt8(length >> 8), 0, 0])
        let checksum = CRC32.checksum(sealed)
        return sealed + (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * $0)) }
    }
}
