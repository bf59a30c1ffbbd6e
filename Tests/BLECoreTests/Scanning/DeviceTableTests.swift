import BLECore
import TestSupport
import Testing

@Suite struct DeviceTableTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    @Test(.row("A11")) func alternatingPayloadsMakeOneEntry() throws {
        var table = DeviceTable()
        let response = report(1, [3, 9, 65, 66], [.scanResponse, .scannable, .legacy])
        #expect(record(response, &table, at: start)?.change == .new)
        var now = start
        for round in 0..<100 {
            now = now + .milliseconds(100)
            let outcome = try #require(record(report(1, [2, 1, UInt8(round)]), &table, at: now))
            #expect(outcome.change == .changed)
            #expect(record(response, &table, at: now)?.change == .same)
        }
        #expect(table.count == 1)
        let scanResult = try #require(table[AdvertiserID(response)])
        #expect(scanResult.count == 201)
        #expect(scanResult.advertisement?.data == [2, 1, 99])
        #expect(scanResult.scanResponse?.data == [3, 9, 65, 66])
        #expect(scanResult.interval == .milliseconds(100))
        #expect(scanResult.firstSeen == start && scanResult.lastSeen == now)
    }

    @Test(.row("A11", "H09")) func setsAndAddressTypesAreSeparateEntries() throws {
        var table = DeviceTable()
        let plain = report(1, [])
        var set = report(1, [])
        set.sid = 3
        var other = report(1, [])
        other.addressType = .public
        var anonymous = AdvertisingReport(address: nil, addressType: nil)
        anonymous.sid = 3
        for one in [plain, set, other, anonymous] {
            #expect(record(one, &table, at: start)?.change == .new)
        }
        #expect(table.count == 4)
        // Without an address there is no peer, and above all not 00:00:00:00:00:00.
        let nobody = try #require(table[AdvertiserID(anonymous)])
        #expect(nobody.peer == nil && !nobody.isConnectable)
    }

    /// A million of them where the code is optimised, as in the run with the address sanitizer.
    @Test(.row("A12")) func memoryIsBoundedAndPinnedEntriesStay() throws {
        #if DEBUG
        let count = 100_000
        #else
        let count = 1_000_000
        #endif
        var table = DeviceTable()
        let wanted = report(7, [])
        table.pin([try #require(wanted.peer)])
        _ = table.record(wanted, at: start)
        var mostEntries = 0
        for number in 0..<count {
            let address = UInt64(number) &* 0x9E37_79B9_7F4A % 0xFFFF_FFFF_FFF1 + 8
            _ = table.record(report(address, [1, 2, 3]), at: start + .microseconds(number))
            mostEntries = max(mostEntries, table.count)
        }
        #expect(mostEntries == DeviceTable.capacity)
        #expect(table[AdvertiserID(wanted)] != nil)
        #expect(table.evictions == count + 1 - DeviceTable.capacity)
    }

    @Test(.row("A12")) func theOneSilentForLongestGoes() throws {
        var table = DeviceTable(capacity: 3)
        for number in 1...3 { _ = table.record(report(UInt64(number), []), at: start) }
        _ = table.record(report(1, []), at: start)
        let outcome = try #require(record(report(4, []), &table, at: start))
        #expect(outcome.evicted.map(\.id) == [AdvertiserID(report(2, []))])
        #expect(table.scanResults.map { $0.peer?.address.rawValue } == [4, 1, 3])
        table.pin(Set([report(4, []), report(1, []), report(3, [])].compactMap(\.peer)))
        #expect(record(report(5, []), &table, at: start) == nil)
        #expect(table.refusals == 1)
    }

    /// Long payloads of strangers take no more room than the table is meant to have.
    @Test(.row("A12", "H17")) func longPayloadsMakeRoomForEachOther() throws {
        var table = DeviceTable()
        let wanted = report(0, [UInt8](repeating: 0, count: 1_650))
        table.pin([try #require(wanted.peer)])
        _ = table.record(wanted, at: start)
        let long = [UInt8](repeating: 1, count: 1_650)
        let fitting = DeviceTable.payloadLimit / 1_650
        var evicted: [AdvertiserID] = []
        for number in 1...UInt64(2 * fitting) {
            evicted += try #require(record(report(number, long), &table, at: start)).evicted.map(\.id)
            #expect(table.count == min(Int(number) + 1, fitting))
        }
        // The oldest first, and not the one that somebody looks for.
        #expect(evicted == (1...UInt64(fitting + 1)).map { AdvertiserID(report($0, [])) })
        #expect(table[AdvertiserID(wanted)] != nil)
        #expect(table.evictions == fitting + 1)
        // A device that says more than before makes room as well, and takes none from itself.
        let short = (1...1_000).map { report(UInt64(100_000 + $0), [1]) }
        for one in short { _ = table.record(one, at: start) }
        let last = report(101_000, [UInt8](repeating: 2, count: 1_650))
        let outcome = try #require(record(last, &table, at: start))
        #expect(outcome.evicted.count == 1 && outcome.change == .changed)
        #expect(table[AdvertiserID(last)]?.advertisement?.data.count == 1_650)
        #expect(table.scanResults.reduce(0) { $0 + $1.payloadLength } <= DeviceTable.payloadLimit)
        // What expires gives its room back.
        _ = table.expire(olderThan: start + .seconds(1))
        #expect(table.count == 1)
        for number in 1..<UInt64(fitting) {
            #expect(try #require(record(report(number, long), &table, at: start)).evicted.isEmpty)
        }
    }

    @Test func theSilentExpire() throws {
        var table = DeviceTable()
        for number in 1...4 { _ = table.record(report(UInt64(number), []), at: start + .seconds(number)) }
        table.pin([try #require(report(1, []).peer)])
        let lost = table.expire(olderThan: start + .seconds(3))
        #expect(lost.map { $0.peer?.address.rawValue } == [2])
        #expect(table.count == 3)
        _ = table.record(report(2, []), at: start + .seconds(9))
        #expect(table.scanResults.map { $0.peer?.address.rawValue } == [2, 4, 3, 1])
    }

    @Test func strengthIsSmoothedAndMayBeMissing() throws {
        var table = DeviceTable()
        for rssi: Int8? in [-60, -80, nil, -60] {
            var one = report(1, [])
            one.rssi = rssi
            _ = table.record(one, at: start)
        }
        let scanResult = try #require(table[AdvertiserID(report(1, []))])
        #expect(scanResult.rssi == -60)
        #expect(scanResult.averageRSSI == -63.75)
    }

    @Test func theIntervalIsTheMedianOfGapsThatAreGaps() throws {
        var table = DeviceTable()
        var now = start
        // Three channels of one advertisement, a gap of 100 ms, one missed, one long silence.
        for gap: Duration in [
            .zero, .milliseconds(1), .milliseconds(1), .milliseconds(100), .milliseconds(200),
            .milliseconds(100), .seconds(600), .milliseconds(101),
        ] {
            now = now + gap
            _ = table.record(report(1, []), at: now)
        }
        let interval = try #require(table[AdvertiserID(report(1, []))]?.interval)
        #expect(interval == .milliseconds(100))
    }

    // MARK: Identities

    private var identity: PeerID { PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random) }

    @Test func anIdentityHasOneEntryWithTheAddressOnAir() throws {
        var table = DeviceTable()
        for number in 0..<10 as Range<UInt64> {
            let outcome = try #require(
                record(report(0x4000_0000_0000 + number, [2, 1, 6]), of: identity, &table, at: start))
            // The data is the same; the address is news, because connects use it.
            #expect(outcome.change == (number == 0 ? .new : .changed) && outcome.evicted.isEmpty)
            let same = table.record(report(0x4000_0000_0000 + number, [2, 1, 6]), of: identity, at: start)
            #expect(same?.change == .same)
        }
        #expect(table.count == 1)
        let scanResult = try #require(table[AdvertiserID(peer: identity)])
        #expect(scanResult.count == 20 && scanResult.identity == identity && scanResult.id.peer == identity)
        #expect(scanResult.peer?.address.rawValue == 0x4000_0000_0009)
        #expect(table.newest(of: identity) == scanResult)
        #expect(table.newest(of: try #require(scanResult.peer)) == scanResult)
        #expect(table.newest(of: try #require(report(0x4000_0000_0008, []).peer)) == nil)
        // Without privacy it is the same device, and needs no other identity.
        let plain = try #require(record(report(identity.address.rawValue, [2, 1, 6]), &table, at: start))
        #expect(table.count == 1 && plain.change == .changed)
        #expect(table[plain.place].peer == identity && table[plain.place].identity == nil)
    }

    @Test func anEntryOfTheTimeBeforeTheKeyGivesWay() throws {
        var table = DeviceTable(capacity: 2)
        let (known, other) = (report(0x4000_0000_0001, [1]), report(2, []))
        for one in [known, other] { _ = table.record(one, at: start) }
        table.pin([try #require(known.peer)])
        let outcome = try #require(record(known, of: identity, &table, at: start))
        #expect(outcome.change == .new && outcome.evicted.map(\.id) == [AdvertiserID(known)])
        #expect(table.count == 2 && table.evictions == 0 && table[AdvertiserID(other)] != nil)
    }

    @Test func aPinOnTheIdentityHoldsWhateverTheAddress() throws {
        var table = DeviceTable(capacity: 2)
        table.pin([identity])
        _ = table.record(report(0x4000_0000_0001, []), of: identity, at: start)
        for number in 2...9 as ClosedRange<UInt64> { _ = table.record(report(number, []), at: start) }
        let expired = table.expire(olderThan: start + .seconds(1))
        #expect(table.newest(of: identity) != nil && expired.count == 1)
    }

    @Test func theDevicesOfAKeyThatIsGoneGo() throws {
        var table = DeviceTable()
        let kept = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0002), type: .random)
        _ = table.record(report(0x4000_0000_0001, [1, 2]), of: identity, at: start)
        _ = table.record(report(0x4000_0000_0002, []), of: kept, at: start)
        _ = table.record(report(3, []), at: start)
        let gone = table.remove(identities: { $0 != kept })
        #expect(gone.map(\.identity) == [identity] && table.count == 2)
        #expect(table.scanResults.map(\.id.peer?.address.rawValue) == [3, kept.address.rawValue])
    }

    @Test(.row("H17")) func aFloodFromManyDevicesKeepsTheNewestOfEach() throws {
        var table = DeviceTable()
        for number in 0..<5000 {
            let payload = [2, 1, UInt8(truncatingIfNeeded: number)]
            _ = table.record(report(UInt64(number % 50), payload), at: start + .microseconds(200 * number))
        }
        #expect(table.count == 50)
        for scanResult in table.scanResults { #expect(scanResult.count == 100) }
        #expect(table[AdvertiserID(report(49, []))]?.advertisement?.data == [2, 1, UInt8(truncatingIfNeeded: 4999)])
    }
}

func record(
    _ report: AdvertisingReport, of identity: PeerID? = nil, _ table: inout DeviceTable, at now: BootInstant
) -> DeviceTable.Outcome? {
    table.record(report, of: identity, at: now)
}

/// A report of a random address with this number.
func report(
    _ address: UInt64, _ data: [UInt8],
    _ properties: AdvertisingReport.Properties = [.connectable, .scannable, .legacy]
) -> AdvertisingReport {
    AdvertisingReport(
        address: BluetoothAddress(rawValue: address), addressType: .random, properties: properties, rssi: -50,
        data: data)
}
