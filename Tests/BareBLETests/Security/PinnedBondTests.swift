import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Bonds that are for one adapter's hardware, and adapters that are not shared with other programs.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct PinnedBondTests {
    private static let dongle = "usb:v0A12p0001"
    private static let other = "usb:v0BDAp8771"

    private func bench(_ time: VirtualTime, pins: Bool = true) async throws -> SecurityBench {
        let bench = try await SecurityBench(time, configure: { $0.pinsAdapter = pins })
        await bench.radio.replaceHardware(Self.dongle)
        try await bench.pair()
        return bench
    }

    /// Another dongle with the same address is plugged in.
    private func swap(_ bench: SecurityBench, for hardware: String) async throws {
        await bench.radio.unplug()
        try await bench.central.clock.sleep(for: .seconds(3))
        await bench.radio.replaceHardware(hardware)
        await bench.radio.plugIn(isUp: true)
        try await bench.central.clock.sleep(for: .seconds(3))
        _ = try await bench.central.ready(powerOn: true)
    }

    @Test(.row("S18"), arguments: [[.commands, .administration], [.commands]] as [VirtualPermissions])
    func thePinnedKeysAreUsedOnTheirHardwareAlone(permissions: VirtualPermissions) async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            /// A program that begins now, with these permissions.
            func daemon() async -> Central {
                await bench.radio.setPermissions(permissions)
                return SecurityBench.central(bench.radio, bench.bonds)
            }
            try await swap(bench, for: Self.other)
            let requests = await bench.device.requestCount
            let other = await daemon()
            await #expect(throws: error(.adapterMismatch)) { _ = try await other.connect(bench.id) }
            #expect(await bench.device.requestCount == requests, "nothing is sent to it")
            await bench.radio.setPermissions([.commands, .administration])
            try await swap(bench, for: Self.dongle)
            let peripheral = try await daemon().connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            #expect(try await peripheral.read(0xFFF1) == [7])
            #expect(await bench.device.pairingCount == 1)
            await peripheral.disconnect()
        }
    }

    @Test(.row("S18")) func theKernelIsNotGivenThePinnedKeysForOtherHardware() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            #expect(await bench.radio.longTermKeys().count == 1)
            try await swap(bench, for: Self.other)
            #expect(await bench.radio.longTermKeys().isEmpty)
            try await swap(bench, for: Self.dongle)
            #expect(await bench.radio.longTermKeys().count == 1)
        }
    }

    @Test(.row("S18")) func bondsThatAreNotPinnedAreUsedOnAnyHardware() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time, pins: false)
            try await swap(bench, for: Self.other)
            let peripheral = try await bench.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    @Test(.row("S18")) func aPinnedBondIsReplacedOnlyWhereThatIsAllowed() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            try await swap(bench, for: Self.other)
            let options = ConnectOptions(security: .none)
            let peripheral = try await bench.central.connect(bench.id, options)
            await #expect(throws: error(.adapterMismatch)) { try await peripheral.pair() }
            #expect(await bench.device.pairingCount == 1)
            try await peripheral.pair(PairingOptions(replacing: .always))
            await peripheral.disconnect()
            let again = try await bench.central.connect(bench.id)
            #expect(await again.security.isEncrypted)
            await again.disconnect()
            try await swap(bench, for: Self.dongle)
            await #expect(throws: error(.adapterMismatch)) { _ = try await bench.central.connect(bench.id) }
        }
    }

    @Test(.row("S18")) func aSessionWithAPinnedBondEndsOnOtherHardware() async throws {
        try await VirtualTime.run { time in
            let bench = try await bench(time)
            try await swap(bench, for: Self.other)
            let session = try await bench.central.session(with: bench.id)
            await #expect(throws: error(.adapterMismatch)) { try await session.ready() }
            await session.disconnect()
        }
    }

    // MARK: Other programs

    @Test func anExclusiveAdapterIsRefusedBesideBluetoothd() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.sharing = .exclusive })
            try await bench.pair()
            await bench.radio.runBluetoothd(true)
            await #expect(throws: error(.adapterShared)) { _ = try await bench.central.ready(powerOn: true) }
            await #expect(throws: error(.adapterShared)) { _ = try await bench.central.connect(bench.id) }
            let peripheral = try await bench.central.connect(bench.id, ConnectOptions(security: .none))
            #expect(try await peripheral.read(0xFFF2) == [8], "what needs no security works")
            await #expect(throws: error(.adapterShared)) {
                try await peripheral.pair(PairingOptions(replacing: .always))
            }
            await peripheral.disconnect()
            await bench.radio.runBluetoothd(false)
            _ = try await bench.central.ready(powerOn: true)
            let encrypted = try await bench.central.connect(bench.id)
            #expect(await encrypted.security.isEncrypted)
            await encrypted.disconnect()
        }
    }

    @Test func aSharedAdapterIsUsedBesideBluetoothd() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            await bench.radio.runBluetoothd(true)
            _ = try await bench.central.ready(powerOn: true)
            try await bench.pair()
            let peripheral = try await bench.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }
}
