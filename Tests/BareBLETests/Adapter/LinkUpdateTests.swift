import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Connection parameters and PHYs of a link, read and asked for.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct LinkUpdateTests {
    private let address = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private var peer: PeerID { PeerID(address: address, type: .random) }
    // Layout of Core Vol 4 Part E, 7.7.65.3 by hand: 7.5 ms, no latency, 5 s; the handle of the stand-in's link.
    private let fast: [UInt8] = [0x04, 0x3E, 10, 0x03, 0x00, 0x40, 0x00, 6, 0, 0, 0, 0xF4, 0x01]
    // The same with Unacceptable Connection Parameters.
    private let refused: [UInt8] = [0x04, 0x3E, 10, 0x03, 0x3B, 0x40, 0x00, 0, 0, 0, 0, 0, 0]
    // Layout of 7.7.65.12: 2M both ways.
    private let twoMegabit: [UInt8] = [0x04, 0x3E, 6, 0x0C, 0x00, 0x40, 0x00, 2, 2]

    @Test func theFirstParametersAreThoseOfTheConnection() async throws {
        let (bench, link) = try await linked()
        let parameters = try await link.parameters()
        #expect(parameters.interval == .milliseconds(30)...(.milliseconds(30)))
        #expect(parameters.latency == 0 && parameters.supervisionTimeout == .seconds(5))
        // The peer may have them changed; this side did not request it.
        await bench.controller.sendRaw([0x04, 0x3E, 10, 0x03, 0x00, 0x40, 0x00, 80, 0, 2, 0, 0x58, 0x02])
        while try await link.parameters() == parameters, !Task.isCancelled { await Task.yield() }
        #expect(try await link.parameters().latency == 2)
        // A change that failed changes nothing, and other links are no concern of ours.
        await bench.controller.sendRaw(refused)
        await bench.controller.sendRaw([0x04, 0x3E, 10, 0x03, 0x00, 0x41, 0x00, 6, 0, 0, 0, 0xF4, 0x01])
        #expect(try await link.parameters().supervisionTimeout == .seconds(6))
    }

    @Test func askedForParametersAreAwaited() async throws {
        let (bench, link) = try await linked()
        async let changed = link.requestParameters(.fast, .seconds(5))
        await bench.controller.commandsArrived(5)
        await bench.controller.sendRaw(fast)
        #expect(try await changed.interval.lowerBound == .microseconds(7500))
        #expect(try await link.parameters().interval.upperBound == .microseconds(7500))
        #expect(await bench.sent.last == .leConnectionUpdate)
    }

    @Test func aRefusalIsThePeers() async throws {
        let (bench, link) = try await linked()
        let change = testTask { () async throws(BLEError) in try await link.requestParameters(.fast, .seconds(5)) }
        await bench.controller.commandsArrived(5)
        await bench.controller.sendRaw(refused)
        await fails(.refusedByPeer, .unacceptableConnectionParameters) { _ = try await change.value }
        await bench.controller.set { $0.statuses[.leConnectionUpdate] = [.invalidParameters, .unknownConnection] }
        await fails(.invalidArgument, .invalidParameters) { _ = try await link.requestParameters(.fast, .seconds(5)) }
        await fails(.disconnected, .unknownConnection) { _ = try await link.requestParameters(.fast, .seconds(5)) }
    }

    /// Both sides have begun at the same moment: it is requested once more, after four intervals of 30 ms.
    @Test(.row("W53"), arguments: [HCIStatus.linkProcedureCollision, .differentTransactionCollision])
    func aChangeThatHasCollidedIsRequestedOnceMore(status: HCIStatus) async throws {
        let (bench, link) = try await linked()
        let collision: [UInt8] = [0x04, 0x3E, 10, 0x03, status.rawValue, 0x40, 0x00, 0, 0, 0, 0, 0, 0]
        let change = testTask { () async throws(BLEError) in try await link.requestParameters(.fast, .seconds(5)) }
        await bench.controller.commandsArrived(5)
        let before = bench.clock.now
        await bench.controller.sendRaw(collision)
        await bench.controller.commandsArrived(6)
        let pause = bench.clock.now - before
        #expect(pause >= .milliseconds(120) && pause < .milliseconds(200))
        await bench.controller.sendRaw(fast)
        #expect(try await change.value.interval.lowerBound == .microseconds(7500))
        // A PHY too, and no third time.
        let phy = testTask { () async throws(BLEError) in try await link.requestPHY(.le2M, .le2M, .seconds(5)) }
        for count in [7, 8] {
            await bench.controller.commandsArrived(count)
            await bench.controller.sendRaw([0x04, 0x3E, 6, 0x0C, status.rawValue, 0x40, 0x00, 1, 1])
        }
        await fails(.refusedByPeer, status) { _ = try await phy.value }
        #expect(await bench.sent.suffix(4) == [.leConnectionUpdate, .leConnectionUpdate, .leSetPHY, .leSetPHY])
    }

    @Test func changesOfOneLinkTakeTurns() async throws {
        let (bench, link) = try await linked()
        await fails(.timedOut) { _ = try await link.requestParameters(.fast, .milliseconds(20)) }
        // That one is still out: its late end is not the next one's.
        let next = testTask { () async throws(BLEError) in try await link.requestParameters(.lowPower, .seconds(5)) }
        async let hurried: Void = fails(.timedOut) { _ = try await link.requestParameters(.fast, .milliseconds(20)) }
        await hurried
        #expect(await bench.sent.count == 5)
        await bench.controller.sendRaw(fast)
        await bench.controller.commandsArrived(6)
        await bench.controller.sendRaw([0x04, 0x3E, 10, 0x03, 0x00, 0x40, 0x00, 80, 0, 2, 0, 0x58, 0x02])
        #expect(try await next.value.latency == 2)
        // A cancelled one that waits is never sent; a PHY does not wait for parameters.
        let out = testTask { () async throws(BLEError) in try await link.requestParameters(.fast, .seconds(5)) }
        await bench.controller.commandsArrived(7)
        let waiting = testTask { () async throws(BLEError) in try await link.requestParameters(.balanced, .seconds(5)) }
        waiting.cancel()
        await fails(.cancelled) { _ = try await waiting.value }
        let phy = testTask { () async throws(BLEError) in try await link.requestPHY(.le2M, [.le1M, .le2M], .seconds(5))
        }
        await bench.controller.commandsArrived(8)
        await bench.controller.sendRaw(twoMegabit)
        #expect(try await phy.value == Peripheral.LinkPHY(transmit: .le2M, receive: .le2M))
        await bench.controller.sendRaw(fast)
        _ = try await out.value
        #expect(await bench.sent.suffix(3) == [.leConnectionUpdate, .leConnectionUpdate, .leSetPHY])
    }

    @Test func theEndOfTheLinkEndsAChange() async throws {
        let (bench, link) = try await linked()
        let change = testTask { () async throws(BLEError) in try await link.requestPHY(.leCoded, .leCoded, .seconds(5))
        }
        let next = testTask { () async throws(BLEError) in try await link.requestPHY(.le1M, .le1M, .seconds(5)) }
        await bench.controller.commandsArrived(5)
        await bench.controller.endLink(0x40, .connectionTimeout)
        await fails(.disconnected) { _ = try await change.value }
        await fails(.disconnected) { _ = try await next.value }
        await fails(.disconnected) { _ = try await link.parameters() }
        await fails(.disconnected) { _ = try await link.phy() }
        do {
            _ = try await link.rssi()
            Issue.record("no error")
        } catch {
            #expect(error.code == .disconnected && error.subject == "\(peer)" && error.hint != nil, "\(error)")
        }
    }

    /// The link is up: what is missing is the controller's number for it, which a socketpair does not report.
    @Test func aLinkWithoutANumberIsNotOver() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock { $0.isLinked = true }
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls
        await fails(.notSupported) { _ = try await link.rssi() }
        await fails(.notSupported) { _ = try await link.parameters() }
    }

    @Test(.row("O02")) func soDoesTheAdapters() async throws {
        let (bench, link) = try await linked()
        let change = testTask { () async throws(BLEError) in try await link.requestParameters(.fast, .seconds(5)) }
        await bench.controller.commandsArrived(5)
        bench.kernel.withLock { $0.controllers = [] }
        await bench.controller.unplug()
        await fails(.noAdapter) { _ = try await change.value }
    }

    @Test func thePHYIsAskedFor() async throws {
        let (bench, link) = try await linked()
        #expect(try await link.phy() == Peripheral.LinkPHY(transmit: .le2M, receive: .le1M))
        await bench.controller.set { $0.statuses = [.leReadPHY: [.unknownCommand], .leSetPHY: [.unsupportedFeature]] }
        await fails(.notSupported, .unknownCommand) { _ = try await link.phy() }
        await fails(.notSupported, .unsupportedFeature) { _ = try await link.requestPHY(.leCoded, [], .seconds(5)) }
    }

    @Test func withoutTheCapabilityNothingIsKnown() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock { $0.capabilities = 0 }
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls
        await fails(.notPermitted) { _ = try await link.parameters() }
        await fails(.notPermitted) { _ = try await link.requestParameters(.fast, .seconds(5)) }
        await fails(.notPermitted) { _ = try await link.phy() }
        await fails(.notPermitted) { _ = try await link.requestPHY(.le2M, .le2M, .seconds(5)) }
    }

    @Test func aLinkWithoutARadioHasNone() async throws {
        let time = try #require(VirtualTimeTrait.time)
        let device = VirtualPeripheral(.battery, time: time)
        let link = try await Central(time: time).attach(descriptor: device.connect())
        await fails(.notSupported) { _ = try await link.connectionParameters() }
        await fails(.notSupported) { try await link.requestConnectionParameters(.fast) }
        await fails(.notSupported) { _ = try await link.phy() }
        await fails(.notSupported) { try await link.requestPHY(.le2M) }
        await link.disconnect()
    }

    private func linked() async throws -> (AdapterBench, LinkControls) {
        let bench = try await AdapterBench()
        let address = address
        await bench.controller.set { $0.peers = [address: 0x40] }
        return (bench, try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls)
    }

    private func fails(
        _ code: BLEError.Code, _ status: HCIStatus? = nil, location: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("no error", sourceLocation: location)
        } catch let error as BLEError {
            #expect(error.code == code, "\(error)", sourceLocation: location)
            #expect(error.hciStatus == status, "\(error)", sourceLocation: location)
        } catch {
            Issue.record(error, sourceLocation: location)
        }
    }
}
