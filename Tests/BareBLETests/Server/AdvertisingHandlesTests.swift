import BLECore
import BLELinux
import BareBLETestKit
import Testing

@testable import BareBLE

/// Which advertising handles other processes may have.
@Suite(.timeLimit(.minutes(10))) struct AdvertisingHandlesTests {
    /// No adapter of a machine has these addresses, and no other test.
    private static let adapter = BluetoothAddress(rawValue: 0x00AA_7E57_0003)
    private static let second = BluetoothAddress(rawValue: 0x00AA_7E57_0004)

    private static func plan() throws -> AdvertisingPlan {
        try AdvertisingPlan(
            AdvertisementData.Payload(advertisingData: [2, 1, 6], scanResponse: []), kind: .connectable,
            interval: .milliseconds(20)...(.milliseconds(40)))
    }

    /// Owns the sets of an adapter whose controller has not responded yet.
    private actor Owner {
        nonisolated let loop: EventLoop
        private let advertiser: AdvertiseCoordinator

        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

        init(on loop: EventLoop) {
            self.loop = loop
            let advertiser = AdvertiseCoordinator(on: loop) { handle, address in
                do throws(HandleReservation.Failure) {
                    return .reserved(HeldReservation(try HandleReservation(handle, of: address)))
                } catch {
                    return error == .taken ? .taken : .unknown
                }
            }
            advertiser.use(.extendedAdvertising, nil)
            advertiser.begin(maximumSets: 1, maximumDataLength: 31, isLegacy: false)
            self.advertiser = advertiser
        }

        var outstanding: Int { advertiser.outstanding }

        func start(_ plan: AdvertisingPlan, of adapter: BluetoothAddress) async {
            _ = await advertiser.start(plan, of: adapter) { _ in }
        }

        /// The controller has removed what may have been left at a handle.
        func removed() { _ = advertiser.commandFinished(.leRemoveAdvertisingSet, nil) }

        func adapterDown() { _ = advertiser.adapterDown() }
    }

    /// The sets that are to be removed are forgotten with the adapter.
    @Test func anAdapterThatIsOffKeepsNoHandleOfACancelledStart() async throws {
        try await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            let plan = try Self.plan()
            let starting = time.task { await owner.start(plan, of: Self.adapter) }
            while await owner.outstanding == 0, !Task.isCancelled { await Task.yield() }
            starting.cancel()
            try await starting.value
            #expect(throws: HandleReservation.Failure.taken) { _ = try HandleReservation(0xE0, of: Self.adapter) }
            await owner.adapterDown()
            let other = try HandleReservation(0xE0, of: Self.adapter)
            _ = consume other
        }
    }

    /// Another program may start one at the same moment.
    @Test func aStartKeepsItsOwnHandleAloneOnceNothingIsLookedFor() async throws {
        try await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            let plan = try Self.plan()
            let starting = time.task { await owner.start(plan, of: Self.second) }
            while await owner.outstanding == 0, !Task.isCancelled { await Task.yield() }
            #expect(throws: HandleReservation.Failure.taken) { _ = try HandleReservation(0xE1, of: Self.second) }
            await owner.removed()
            let other = try HandleReservation(0xE1, of: Self.second)
            #expect(throws: HandleReservation.Failure.taken) { _ = try HandleReservation(0xE0, of: Self.second) }
            _ = consume other
            starting.cancel()
            try await starting.value
            await owner.adapterDown()
        }
    }
}
