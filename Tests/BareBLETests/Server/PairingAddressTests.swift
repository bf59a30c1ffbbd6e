import BLECore
import BLELinux
import BareBLE
import Logging
import TestSupport
import Testing

@testable import BareBLETestKit

/// The address that the kernel pairs with, where another program's advertising instance has changed it. The virtual
/// kernel pairs with any: Tests/VM/guest/test_centrals.py has what depends on it.
@Suite(.timeLimit(.minutes(5))) struct PairingAddressTests {
    private static let removed: UInt8 = 0x24

    /// Another program that uses the management interface.
    private final class OtherProgram: @unchecked Sendable {
        private var socket: LinkSocket
        private let bench: PairingBench

        init(_ bench: PairingBench) async throws {
            self.bench = bench
            socket = LinkSocket(adopting: try await bench.radio.openManagement().get())
        }

        /// Adds an instance that is not connectable, and has it on air.
        func add(_ number: UInt8) async throws {
            var parameters = [UInt8](repeating: 0, count: 18)
            parameters[0] = number
            try await send([0x54, 0, 0, 0, 18, 0] + parameters)
            try await send([0x55, 0, 0, 0, 6, 0, number, 3, 0, 2, 1, 6])
        }

        func remove(_ number: UInt8) async throws {
            try await send([0x3F, 0, 0, 0, 1, 0, number])
        }

        private func send(_ packet: [UInt8]) async throws {
            let outcome = socket.send(packet)
            #expect(outcome == .sent)
            try await bench.sleep(.seconds(3))
        }

        /// Returns what other programs have done to instances since the last call: the code of each event, Advertising
        /// Added (0x23) or Advertising Removed (0x24), and the number.
        func changes() async throws -> [[UInt8]] {
            try await bench.sleep(.seconds(3))
            var found: [[UInt8]] = []
            while let packet = socket.receivePacket() {
                guard let code = packet.first, let number = packet.last, code == 0x23 || code == 0x24 else { continue }
                found.append([code, number])
            }
            return found
        }
    }

    @Test func whereCentralsMayPairAnInstanceIsRemovedThatWasNeverOnAir() async throws {
        try await PairingBench.run { bench in
            let other = try await OtherProgram(bench)
            #expect(try await other.changes().isEmpty, "nobody may pair")
            try await bench.local.allowPairing(.justWorks)
            // Its own, without Advertising Added before.
            #expect(try await other.changes() == [[Self.removed, 4]])
            #expect(await bench.radio.instances().isEmpty)
            #expect(await bench.radio.advertisements().map(\.set) == [0xE0])
            let phone = try await bench.connect()
            try await bench.pair(phone)
            #expect(await bench.paired().count == 1)
        }
    }

    @Test func itIsRepeatedForEachInstanceThatAnotherProgramAddsOrRemoves() async throws {
        try await PairingBench.run { bench in
            let other = try await OtherProgram(bench)
            try await bench.local.allowPairing(.justWorks)
            #expect(try await other.changes() == [[Self.removed, 4]])
            try await other.add(1)
            #expect(try await other.changes() == [[Self.removed, 4]])
            #expect(await bench.radio.instances() == [1], "the other program's stays")
            try await other.remove(1)
            #expect(try await other.changes() == [[Self.removed, 4]])
            await bench.local.refusePairing()
            try await other.add(1)
            try await other.remove(1)
            #expect(try await other.changes().isEmpty, "nobody may pair any more")
        }
    }

    @Test func itIsRepeatedForAnInstanceOfThisProgramThatIsNotConnectable() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let other = try await OtherProgram(bench)
            var beacon = Advertisement([.localName("Beacon")], kind: .nonconnectable)
            beacon.backEnd = .management
            let lease = try await bench.local.advertise(beacon)
            // The beacon has the number 4.
            #expect(try await other.changes() == [[0x23, 4], [Self.removed, 3]])
            #expect(await bench.radio.instances() == [4])
            await lease.stop()
        }
    }

    /// The kernel does not list it, and adding it would replace it.
    @Test func anInstanceThatWasSeenIsNotReplacedBesideBluetoothd() async throws {
        try await PairingBench.run { bench in
            await bench.radio.runBluetoothd(true)
            try await bench.local.allowPairing(.justWorks)
            let other = try await OtherProgram(bench)
            try await other.add(4)
            var beacon = Advertisement([.localName("Beacon")], kind: .nonconnectable)
            beacon.backEnd = .management
            let lease = try await bench.local.advertise(beacon)
            #expect(Set(await bench.radio.instances()) == [3, 4])
            await lease.stop()
            _ = try await other.changes()
            #expect(await bench.radio.instances() == [4])
        }
    }

    /// Its removal by this program is reported to others alone.
    @Test func aNumberThatThisProgramHasReplacedAndRemovedIsFree() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let other = try await OtherProgram(bench)
            try await other.add(4)
            var advertisement = Advertisement([.localName("Bench")])
            advertisement.backEnd = .management
            let lease = try await bench.local.advertise(advertisement)
            await lease.stop()
            #expect(await bench.radio.instances().isEmpty)
            _ = try await other.changes()
            try await other.add(1)
            #expect(try await other.changes() == [[Self.removed, 4]])
        }
    }

    /// The address may be the right one all the same.
    @Test func withoutAFreeInstanceItIsLoggedOnceAndCentralsMayPair() async throws {
        let log = KeptLog(detail: "reason")
        try await PairingBench.run {
            $0.logger = log.logger
        } _: { bench in
            await bench.radio.limitInstances(to: 2)
            let other = try await OtherProgram(bench)
            try await other.add(1)
            try await other.add(2)
            try await bench.local.allowPairing(.justWorks)
            #expect(try await other.changes().isEmpty)
            #expect(log.all.count { $0.hasPrefix("pairings fail if an advertisement") } == 1)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            #expect(await bench.paired().count == 1)
        }
    }

    /// Another program may have added an instance before this one has found the adapter.
    @Test func itIsRepeatedForAnAdapterThatIsPluggedInAgain() async throws {
        try await PairingBench.run { bench in
            let other = try await OtherProgram(bench)
            try await bench.local.allowPairing(.justWorks)
            #expect(try await other.changes() == [[Self.removed, 4]])
            await bench.radio.unplug()
            try await bench.sleep(.seconds(5))
            await bench.radio.plugIn(isUp: true)
            try await bench.sleep(.seconds(5))
            #expect(try await other.changes() == [[Self.removed, 4]])
        }
    }

    /// The socket is opened again by itself.
    @Test func itIsRepeatedAfterTheManagementInterfaceWasLost() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            await bench.radio.closeManagement()
            await bench.time.settle()
            let other = try await OtherProgram(bench)
            _ = try await other.changes()
            try await other.add(1)
            #expect(try await other.changes() == [[Self.removed, 4]])
        }
    }
}
