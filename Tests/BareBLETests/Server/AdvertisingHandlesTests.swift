import BLECore
import BLELinux
import BareBLETestKit
import Testing

@testable import BareBLE

/// Which advertising handles other processes may have.
@Suite(.timeLimit(.minutes(10))) struct AdvertisingHandlesTests {
    /// No adapter of a machine has this address, and no other test.
    private static let adapter = BluetoothAddress(rawValue: 0x00AA_7E57_0003)

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

        func start(_ plan: AdvertisingPlan) async {
            _ = await advertiser.start(plan, of: AdvertisingHandlesTests.adapter) { _ in }
        }

        func adapterDown() { _ = advertiser.adapterDown() }
    }

    /// The sets that are to be removed are forgotten with the adapter.
    @Test func anAdapterThatIsOffKeepsNoHandleOfACancelledStart() async throws {
        try await VirtualTime.run { time in
            let owner = Owner(on: time.loop)
            let plan = try AdvertisingPlan(
                AdvertisementData.Payload(advertisingData: [2, 1, 6], scanResponse: []), kind: .connectable,
                interval: .milliseconds(20)...(.milliseconds(40)))
            let starting = time.task { await owner.start(plan) }
            while await owner.outstanding == 0, !Task.isCancelled { await Task.yield() }
            starting.cancel()
            try await starting.value
            #expect(throws: HandleReservation.Failure.taken) { _ = try HandleReservation(0xE0, of: Self.adapter) }
            await owner.adapterDown()
            let other = try HandleReservation(0xE0, of: Self.adapter)
            _ = consume other
        }
    }
}
