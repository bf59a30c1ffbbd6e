import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// An adapter that goes away while something begins on it, at each of its packets.
@Suite("Beginnings on an adapter that goes", .virtualTime, .timeLimit(.minutes(10))) struct AdapterLossTests {
    private let identification: [HCIOpcode] = [.leReadLocalFeatures, .readLocalSupportedCommands, .readAddress]
    private let start: [HCIOpcode] = [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable]

    // MARK: Scans

    /// The end of calls without a reason to last.
    private final class Outcomes: Sendable {
        private let all = Lock<[BLEError.Code?]>([])

        var codes: [BLEError.Code?] { all.withLock(\.self) }

        func record(_ body: () async throws -> Void) async {
            do {
                try await body()
                all.withLock { $0.append(nil) }
            } catch {
                all.withLock { $0.append((error as? BLEError)?.code) }
            }
        }
    }

    @Test(
        "Scans that begin end with an error, and the next one works", .row("O01", "O02", "O04"),
        arguments: [VirtualInterruption.powerOff("hci0"), .unplug("hci0"), .adapterReset("hci0")])
    func scansThatBeginEndWithAnErrorAndTheNextOneWorks(_ loss: VirtualInterruption) async throws {
        // Three questions, three commands, and the responses to all but the last: after that one the scan has begun.
        for packet in 1...11 {
            try await VirtualTime.run { time in
                let radio = VirtualRadio(time: time)
                let belt = await radio.add(.heartRate)
                let central = Central(radio: radio)
                let left = Lock(packet)
                await radio.observe { [weak radio, weak belt] _ in
                    let isDue = left.withLock { left in
                        left -= 1
                        return left == 0
                    }
                    guard isDue, let radio, let belt else { return }
                    radio.assumeIsolated { $0.happen(loss, to: belt) }
                }
                let outcomes = Outcomes()
                let tasks = (0..<2).map { _ in
                    time.task { await outcomes.record { _ = try await central.first(timeout: .seconds(10)) } }
                }
                try await time.clock.sleep(for: .seconds(60))
                #expect(left.withLock { $0 } <= 0, "it never came to packet \(packet)")
                #expect(outcomes.codes.count == 2, "at packet \(packet) somebody waits")
                let expected: [BLEError.Code?] =
                    switch loss {
                    case .unplug: [.adapterDown, .noAdapter]
                    // It is looked at every 2 s, which a command has as well.
                    case .powerOff: [.adapterDown, .timedOut]
                    default: [nil, .adapterDown]
                    }
                #expect(outcomes.codes.allSatisfy(expected.contains), "at packet \(packet): \(outcomes.codes)")
                for task in tasks { task.cancel() }
                await radio.observe(nil)
                await radio.powerOn()
                await radio.plugIn(isUp: true)
                _ = try await central.first(timeout: .seconds(10))
            }
        }
    }

    @Test("A restored scan reports that it could not begin")
    func restoredScan() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await bench.controller.set { $0.ignored = [.leSetScanParameters] }
            let monitor = time.task { _ = try await Central(adapter: bench.adapter).monitor() }
            await bench.controller.commandsArrived(identification.count + 2)
            bench.kernel.withLock { $0.controllers = [] }
            await bench.controller.unplug()
            await #expect(throws: error(.noAdapter)) { try await monitor.value }
        }
    }

    // MARK: What the controller can do

    /// The reasons for which one of the three responses does not reach the program.
    enum Trouble: CaseIterable {
        case cancelled, unplugged, late
    }

    @Test(
        "What had no response is requested again", arguments: Trouble.allCases,
        [HCIOpcode.readAddress, .readLocalSupportedCommands])
    func askedAgain(_ trouble: Trouble, _ silentTo: HCIOpcode) async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await bench.controller.set { $0.ignored = [silentTo] }
            let first = time.task { try await bench.adapter.prepare(during: "start") }
            let asked = silentTo == .readAddress ? identification : identification.dropLast()
            await bench.controller.commandsArrived(asked.count)
            switch trouble {
            case .cancelled:
                first.cancel()
                await #expect(throws: error(.cancelled)) { try await first.value }
            case .unplugged:
                await bench.controller.unplug()
                await #expect(throws: error(.adapterDown)) { try await first.value }
                let again = try await bench.controller.plugIn()
                bench.kernel.withLock { $0.descriptors = [again] }
            case .late:
                await #expect(throws: error(.timedOut)) { try await first.value }
            }
            await bench.controller.set { $0.ignored = [] }
            let scan = try await bench.adapter.subscribe(.balanced) { _ in }
            #expect(await bench.sent == asked + identification + start)
            await bench.adapter.unsubscribe(scan)
        }
    }

    @Test("A command for information that the controller refuses is not sent again")
    func aRefusedIdentificationCommandIsNotSentAgain() async throws {
        let bench = try await AdapterBench()
        await bench.controller.set {
            $0.statuses = [.readLocalSupportedCommands: [.unknownCommand], .readAddress: [.unknownCommand]]
        }
        for _ in 0..<2 { try await bench.adapter.prepare(during: "start") }
        #expect(await bench.sent == identification)
    }

    // MARK: Connects

    private func peer(_ number: UInt64) -> PeerID {
        PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0000 + number), type: .random)
    }

    @Test("Connects that wait for their turn fail with the first one", .row("O01", "O04"), arguments: [true, false])
    func connectsThatWaitForTheirTurnFailWithTheFirstOne(isPulledOut: Bool) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let outcomes = Outcomes()
            for number in 1...4 as ClosedRange<UInt64> {
                time.task { [self] in
                    await outcomes.record {
                        _ = try await central.connect(peer(number), ConnectOptions(timeout: .seconds(60)))
                    }
                }
            }
            try await time.clock.sleep(for: .seconds(1))
            if isPulledOut { await radio.unplug() } else { await radio.powerOff() }
            // It is looked at every 2 s.
            try await time.clock.sleep(for: .seconds(2))
            #expect(outcomes.codes.count == 4)
            // The call that is out ends with the controller; the others see that there is none.
            #expect(outcomes.codes.dropFirst().allSatisfy { $0 == (isPulledOut ? .noAdapter : .adapterDown) })
            #expect(await central.statistics.commandTimeouts == 0)
        }
    }

    @Test("A command to an adapter that is known to be off is not waited for", .row("O04"))
    func knownToBeOff() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let monitor = try await central.monitor()
            let began = time.now
            // The connect's first command ends the scan.
            await radio.observe { [weak radio] isCommand in
                guard isCommand, let radio else { return }
                radio.assumeIsolated { $0.powerOff() }
            }
            await #expect(throws: error(.adapterDown)) {
                try await central.connect(peer(1), ConnectOptions(timeout: .seconds(60)))
            }
            #expect(time.now - began <= .seconds(2))
            await radio.observe(nil)
            await monitor.stop()
        }
    }

    // MARK: Links

    @Test("Of two links that had a handle only the last one gets the report of a reset")
    func aResetIsReportedOnlyToTheLastLinkWithAHandle() async throws {
        try await VirtualTime.run { time in
            let address = BluetoothAddress(rawValue: 0xC000_0000_0007)
            let peer = PeerID(address: address, type: .random)
            let bench = try await AdapterBench(loop: time.loop)
            await bench.controller.set { $0.peers = [address: 0x40] }
            let told = Lock<[Int]>([])
            var links: [LinkControls] = []
            // The first one ends without a notice.
            for number in 1...2 {
                let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
                #expect(link.handle == 0x40)
                link.controls.watchLoss { _ in told.withLock { $0.append(number) } }
                links.append(link.controls)
            }
            await bench.controller.foreign(.reset)
            await time.settle()
            #expect(told.withLock(\.self) == [2])
        }
    }
}
