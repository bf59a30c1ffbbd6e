import BLECore
import TestSupport
import Testing

@Suite struct DeviceListTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    @Test func arrivalsAndDeparturesAreReportedOnce() throws {
        var list = DeviceList()
        #expect(change(of: &list) == nil)
        list.heard(try scanResult(1))
        list.heard(try scanResult(2))
        #expect(numbers(list.devices) == [1, 2])
        let came = try #require(change(of: &list))
        #expect(numbers(came.arrived) == [1, 2] && came.left.isEmpty && came.moved.isEmpty)
        #expect(change(of: &list) == nil)
        list.heard(try scanResult(1))
        #expect(!list.hasNews)
        list.lost(try scanResult(1))
        list.lost(try scanResult(1))
        let went = try #require(change(of: &list))
        #expect(numbers(went.left) == [1] && went.left.first?.isPresent == false && went.arrived.isEmpty)
        #expect(numbers(list.devices) == [2])
        #expect(change(of: &list) == nil)
    }

    /// What a difference costs does not grow with the list.
    @Test func onlyChangedEntriesAreLookedAt() throws {
        var list = DeviceList()
        for number in 1...100 { list.heard(try scanResult(UInt64(number))) }
        #expect(list.unreportedCount == 100)
        #expect(change(of: &list)?.arrived.count == 100 && list.unreportedCount == 0)
        list.heard(try scanResult(7))
        #expect(list.unreportedCount == 0)
        list.lost(try scanResult(7))
        list.heard(try scanResult(101))
        #expect(list.unreportedCount == 2)
        let news = try #require(change(of: &list))
        #expect(numbers(news.left) == [7] && numbers(news.arrived) == [101])
    }

    @Test func aDeviceThatArrivesAndLeavesBetweenTwoChangesIsNotReported() throws {
        var list = DeviceList()
        list.heard(try scanResult(1))
        list.lost(try scanResult(1))
        #expect(!list.hasNews && change(of: &list) == nil && list.devices.isEmpty)
        list.heard(try scanResult(1))
        _ = change(of: &list)
        list.lost(try scanResult(1))
        list.heard(try scanResult(1))
        #expect(change(of: &list) == nil)
        #expect(numbers(list.devices) == [1])
        list.lost(try scanResult(1))
        #expect(numbers(try #require(change(of: &list)).left) == [1])
    }

    @Test func pinnedDevicesStayAsAbsent() throws {
        var list = DeviceList()
        let known = try scanResult(1)
        let peer = try #require(known.peer)
        list.pin(peer)
        #expect(list.device(peer) == nil)
        list.heard(known)
        _ = change(of: &list)
        list.lost(known)
        #expect(numbers(try #require(change(of: &list)).left) == [1])
        #expect(list.device(peer)?.isPresent == false && list.devices.count == 1 && list.count == 1)
        list.heard(known)
        let back = try #require(change(of: &list))
        #expect(numbers(back.arrived) == [1] && back.left.isEmpty)
        list.lost(known)
        list.unpin(peer)
        #expect(list.devices.isEmpty)
        #expect(numbers(try #require(change(of: &list)).left) == [1])
        // One that is unpinned while it is here goes when it is lost.
        list.pin(peer)
        list.heard(known)
        list.unpin(peer)
        #expect(list.devices.count == 1)
        list.lost(known)
        #expect(list.devices.isEmpty)
    }

    @Test func anIdentityIsOneDeviceWhateverItsAddress() throws {
        let identity = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
        var list = DeviceList()
        var table = DeviceTable()
        list.pin(identity)
        for number in 1...3 as ClosedRange<UInt64> {
            let outcome = try #require(
                record(report(0x4000_0000_0000 + number, []), of: identity, &table, at: start + .seconds(Int(number))))
            list.heard(table[outcome.place])
        }
        #expect(numbers(try #require(change(of: &list)).arrived) == [0x4000_0000_0003])
        let device = try #require(list.device(identity))
        #expect(device.identity == identity && list.count == 1)
        #expect(list.device(try #require(device.peer)) == device)
        list.lost(device.scanResult)
        #expect(list.device(identity)?.isPresent == false)
        list.unpin(identity)
        #expect(list.count == 0)
    }

    @Test func levelsThatChangeAreReportedAsMoved() throws {
        var list = DeviceList(Proximity.Settings(halfLife: .zero))
        list.heard(try scanResult(1, rssi: -60))
        _ = change(of: &list)
        list.heard(try scanResult(1, rssi: -62, at: .seconds(1)))
        #expect(change(of: &list) == nil)
        list.heard(try scanResult(1, rssi: -90, at: .seconds(2)))
        let away = try #require(change(of: &list))
        #expect(away.moved.map(\.proximity.level) == [.far] && away.arrived.isEmpty)
        // There and back again is no news.
        list.heard(try scanResult(1, rssi: -60, at: .seconds(3)))
        list.heard(try scanResult(1, rssi: -90, at: .seconds(4)))
        #expect(change(of: &list) == nil)
        // One that was lost begins again.
        list.lost(try scanResult(1))
        list.heard(try scanResult(1, rssi: -40, at: .seconds(5)))
        #expect(list.devices.first?.proximity.strength == -40)
    }

    @Test func setsOfADeviceAreEntriesOfTheirOwn() throws {
        var list = DeviceList()
        var set = report(1, [])
        set.sid = 3
        list.heard(try scanResult(1))
        list.heard(try scanResult(set, at: .seconds(1)))
        let peer = try #require(report(1, []).peer)
        #expect(list.count == 2)
        #expect(list.devices.count == 2 && list.device(peer)?.scanResult.id.sid == 3)
    }

    @Test(.row("A12")) func memoryStaysBoundedWhateverIsOnAirWithoutAReader() throws {
        var table = DeviceTable(capacity: 64)
        var gate = ScanGate(.balanced)
        var list = DeviceList()
        var told = 0
        for number in 0..<20_000 {
            let outcome = try #require(record(report(UInt64(number), []), &table, at: start))
            for evicted in outcome.evicted where gate.forget(evicted.id) { list.lost(evicted) }
            if gate.admit(table[outcome.place], outcome.change, at: start, listened: .zero) != nil {
                list.heard(table[outcome.place])
            }
            if number % 500 == 0 { #expect(list.devices.count <= 64) }
            if number == 10_000 { told = change(of: &list)?.arrived.count ?? 0 }
        }
        let last = try #require(change(of: &list))
        #expect(told == 64 && last.left.count == 64 && last.arrived.count == 64)
    }

    @Test func theBlocklistForgetsTheFirst() {
        var peers = RecentPeers(capacity: 2)
        let all = (1...3).map { PeerID(address: BluetoothAddress(rawValue: $0), type: .random) }
        let evicted = [0, 1, 0, 2].map { peers.insert(all[$0]) }
        #expect(evicted == [nil, nil, nil, all[0]])
        #expect(peers.peers == [all[1], all[2]] && !peers.contains(all[0]))
        peers.remove(all[1])
        peers.remove(all[0])
        #expect(peers.peers == [all[2]])
        peers.removeAll()
        #expect(peers.peers.isEmpty && !peers.contains(all[2]))
    }

    /// Macros cannot call what mutates.
    private func change(of list: inout DeviceList) -> DeviceListChange? { list.takeChange() }

    private func scanResult(_ number: UInt64, rssi: Int8 = -60, at time: Duration = .zero) throws -> ScanResult {
        var one = report(number, [])
        one.rssi = rssi
        return try scanResult(one, at: time)
    }

    private func scanResult(_ report: AdvertisingReport, at time: Duration) throws -> ScanResult {
        var table = DeviceTable()
        let outcome = try #require(record(report, &table, at: start + time))
        return table[outcome.place]
    }

    private func numbers(_ devices: [MonitoredDevice]) -> [UInt64?] { devices.map { $0.peer?.address.rawValue } }
}
