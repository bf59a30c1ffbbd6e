import BLECore
import BLELinux
import BareBLE

/// The second adapter of a self-test: it advertises, accepts links, and serves a small table.
///
/// Its advertisements are marked with a number each: 1 a connectable one that every device hears, 2 an extended one, 3
/// an extended one with 228 bytes.
final class SelfTestPeer: Sendable {
    /// What the central under test has written.
    struct Received: Hashable, Sendable {
        var count = 0
        var bytes = 0
        /// Values whose number was not the next one.
        var gaps = 0
        fileprivate var last: UInt32?
    }

    private struct State {
        var received = Received()
        var leases: [Advertisement.Lease] = []
        var marks: Set<UInt8> = []
        var wasSwitchedOn = false
        /// It was switched off to set it up again, and could not be switched on.
        var isLeftOff = false
        /// Whether others could bond with it before; `nil` where that cannot be read.
        var wasBondable: Bool?
    }

    static let service: BluetoothUUID = BluetoothUUID(high: 0x5E1F_7E57_0001_4B1F, low: 0x8A26_E471_0C95_B3D8)
    static let notified: BluetoothUUID = BluetoothUUID(high: 0x5E1F_7E57_0002_4B1F, low: 0x8A26_E471_0C95_B3D8)
    static let written: BluetoothUUID = BluetoothUUID(high: 0x5E1F_7E57_0003_4B1F, low: 0x8A26_E471_0C95_B3D8)
    /// The company identifier for tests, and what follows it in the marks.
    private static let company: UInt16 = 0xFFFF
    private static let prefix: [UInt8] = [0x5E, 0x1F]

    let adapter: AdapterFacts
    let local: LocalPeripheral
    private let machine: SelfTestMachine
    private let central: Central
    private let state = Lock(State())

    init(_ adapter: AdapterFacts, on machine: SelfTestMachine) {
        self.adapter = adapter
        self.machine = machine
        central = machine.central(on: adapter.name)
        local = LocalPeripheral(LocalPeripheral.Settings(name: "self-test"), on: central)
    }

    /// Returns the number of one of these advertisements.
    static func mark(in report: AdvertisingReport) -> UInt8? {
        guard let data = report.advertisingData.manufacturerData(of: company), data.count > prefix.count,
            data.starts(with: prefix)
        else { return nil }
        return data[prefix.count]
    }

    /// Begins to advertise. The extended advertisements are left out where the controller has none. After a failure
    /// `stop()` restores the adapter.
    ///
    /// - Throws: `Failure` if it cannot serve.
    func start() async throws(Failure) {
        try await switchOn()
        do throws(BLEError) {
            try await local.publish(table)
            try await advertise()
        } catch {
            throw failure("\(error)", ExitStatus(error))
        }
    }

    /// Notes what the adapter is found as, and switches it on.
    private func switchOn() async throws(Failure) {
        let claim: RecoveryClaim?
        do throws(SelfTestPowerFailure) {
            claim = try machine.claimPower(of: adapter.index)
        } catch {
            throw failure("\(error)", error.status)
        }
        defer { withExtendedLifetime(claim) {} }
        let wasBondable = await machine.isBondable(adapter.index)
        let wasUp = (try? machine.system.info(adapter.index))?.isUp ?? true
        state.withLock { state in
            state.wasBondable = wasBondable
            state.wasSwitchedOn = !wasUp
        }
        do throws(BLEError) {
            try await central.ready(powerOn: true)
        } catch {
            throw failure("\(error)", ExitStatus(error))
        }
    }

    private func failure(_ reason: String, _ status: ExitStatus) -> Failure {
        Failure(message: "\(adapter.name) cannot be the peer: \(reason)", status: status)
    }

    /// The numbers of the advertisements that it has on air.
    var marks: Set<UInt8> { state.withLock { $0.marks } }

    /// Puts its advertisements on air.
    func advertise() async throws(BLEError) {
        let interval: ClosedRange<Duration> = .milliseconds(60)...(.milliseconds(90))
        let first = try await local.advertise(
            Advertisement(
                AdvertisementData([.flags([.generalDiscoverable, .classicNotSupported]), Self.element(1)]),
                interval: interval))
        state.withLock { state in
            state.leases.append(first)
            state.marks = [1]
        }
        for (mark, length) in [(UInt8(2), 20), (3, 228)] {
            // Flags have three bytes, and the head of manufacturer data has seven.
            let filler = [UInt8](repeating: mark, count: length - 7)
            let more = try? await local.advertise(
                Advertisement(
                    AdvertisementData([Self.element(mark, filler)]), kind: .nonconnectable, interval: interval,
                    usesExtendedPDUs: true))
            guard let more else { continue }
            state.withLock { state in
                state.leases.append(more)
                state.marks.update(with: mark)
            }
        }
    }

    private static func element(_ mark: UInt8, _ filler: [UInt8] = []) -> AdvertisementData.Element {
        .manufacturerData(prefix + [mark] + filler, company: company)
    }

    /// Takes its advertisements off air; links stay.
    func stopAdvertising() async {
        let leases = state.withLock { state in
            defer { (state.leases, state.marks) = ([], []) }
            return state.leases
        }
        for lease in leases { await lease.stop() }
    }

    /// Sets its controller up again, under a claim of the caller: after a reset past the kernel, that has no credits for
    /// data before the next power-up.
    func setUpAgain() async {
        Interrupt.beginStep()
        defer { Interrupt.endStep() }
        guard isThere, await machine.setPower(of: adapter.index, false) == nil else { return }
        let failure = await machine.setPower(of: adapter.index, true)
        state.withLock { $0.isLeftOff = failure != nil }
    }

    /// Whether the adapter was not unplugged: its number may be another one's.
    private var isThere: Bool {
        guard let now = try? machine.system.info(adapter.index) else { return false }
        let known = BluetoothAddress(adapter.address) ?? .zero
        return known == .zero || now.address == known
    }

    /// Ends its links and advertisements, and restores the adapter.
    ///
    /// - Returns: What could not be restored.
    func stop() async -> [String] {
        await stopAdvertising()
        await local.stop()
        guard isThere else { return [] }
        let found = state.withLock { $0 }
        var failures: [String] = []
        // What follows needs it on.
        if found.isLeftOff, !found.wasSwitchedOn { await restorePower(true, &failures) }
        if let management = adapter.management, management.can(.lowEnergy), !management.has(.lowEnergy) {
            let channel = SelfTestChannel(
                adapter.index, name: adapter.name, system: machine.system, loop: machine.loop, trace: nil)
            if (try? await channel.open()) != nil {
                _ = await channel.ask(HCICommandPacket(HCIWriteLEHostSupport(isSupported: false)))
                await channel.close()
            }
        }
        // The kernel makes an adapter bondable when it switches it on.
        if let wasBondable = found.wasBondable, !(await machine.restoreBondable(wasBondable, adapter.index)) {
            failures.append("\(adapter.name) could not be made \(wasBondable ? "bondable" : "not bondable") again")
        }
        if found.wasSwitchedOn { await restorePower(false, &failures) }
        return failures
    }

    private func restorePower(_ isOn: Bool, _ failures: inout [String]) async {
        guard let failure = await machine.restorePower(of: adapter.index, isOn) else { return }
        failures.append("\(adapter.name) could not be switched \(isOn ? "on" : "off") again: \(failure)")
    }

    // MARK: The table

    private var table: LocalService {
        LocalService(
            Self.service,
            [
                LocalCharacteristic(Self.notified, [.read, .notify], value: .stored([0])),
                LocalCharacteristic(
                    Self.written, .writeWithoutResponse,
                    value: .handled(write: { [state] request in
                        state.withLock { $0.received.add(request.value) }
                    })),
            ])
    }

    /// What was written since the last call.
    func takeReceived() -> Received {
        state.withLock { state in
            defer { state.received = Received() }
            return state.received
        }
    }

    /// A value of a length that begins with a number.
    static func value(_ number: UInt32, count: Int) -> [UInt8] {
        var writer = ByteWriter(reserving: count)
        writer.u32(number)
        writer.array([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: max(0, count - 4)))
        return writer.bytes
    }
}

extension SelfTestPeer.Received {
    /// Counts a value, which begins with its number.
    mutating func add(_ value: [UInt8]) {
        count += 1
        bytes += value.count
        var reader = ByteReader(value.span)
        guard let number = reader.u32() else { return }
        if let last, number != last &+ 1 { gaps += 1 }
        last = number
    }
}
