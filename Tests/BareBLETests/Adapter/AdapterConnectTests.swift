import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

@Suite(.virtualTime, .timeLimit(.minutes(10))) struct AdapterConnectTests {
    private let address = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private var peer: PeerID { PeerID(address: address, type: .random) }

    @Test func aConnectInitiatesAndAttaches() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        #expect(link.handle == 0x40)
        #expect(try await link.controls.rssi() == -56)
        #expect(bench.kernel.withLock { $0.connects } == 1)
        await link.controls.disconnect()
        #expect(await bench.sent.last == .disconnect)
        #expect(await link.controls.lastReason() == .localHostTerminated)
        // The handle may belong to another link by now.
        await #expect(throws: error(.disconnected)) { try await link.controls.rssi() }
    }

    /// The kernel does not know of such a reset, so the socket stays as it is.
    @Test(.row("H15")) func aResetByAnotherProgramEndsTheLinksThatItTookAway() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let central = Central(adapter: bench.adapter)
        let device = try await central.connect(peer, ConnectOptions(mtu: 23, observesServiceChanges: false))
        async let unanswered: Void = {
            await #expect(throws: error(.disconnected)) {
                try await device.read(.handle(3))
            }
        }()
        await bench.controller.foreign(.reset)
        #expect(await device.disconnected() == .adapterLost)
        await unanswered
        // The next one does not hear of it.
        let again = try await central.connect(peer, ConnectOptions(mtu: 23, observesServiceChanges: false))
        #expect(await again.isConnected)
        await again.disconnect()
    }

    /// The kernel drops events where a program is stopped until its sockets are full. It ends the socket of the link
    /// all the same. Another program may keep the link.
    @Test(arguments: [true, false]) func aLinkWhoseEndWasNotReportedEndsAfterItsSocket(isKept: Bool) async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let central = Central(adapter: bench.adapter)
        let device = try await central.connect(peer, ConnectOptions(mtu: 23, observesServiceChanges: false))
        let count = await bench.sent.count
        bench.kernel.withLock {
            $0.isLinked = isKept
            $0.farEnds = []
        }
        _ = await device.disconnected()
        #expect(await central.statistics.unreportedEnds == 0, "the report may be late")
        try await bench.clock.sleep(for: .seconds(2))
        #expect(await central.statistics.unreportedEnds == (isKept ? 0 : 1))
        #expect(await bench.sent.count == count, "the handle may be another program's")
    }

    /// Whatever the kernel has reported when its list is read can be read then.
    @Test func aReportThatArrivesUntilTheLinksAreListedIsNotMissing() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let central = Central(adapter: bench.adapter)
        let device = try await central.connect(peer, ConnectOptions(mtu: 23, observesServiceChanges: false))
        let controller = bench.controller
        bench.kernel.withLock {
            $0.isLinked = false
            $0.farEnds = []
            $0.whenListed = { controller.assumeIsolated { $0.endLink(0x40, .remoteUserTerminated) } }
        }
        _ = await device.disconnected()
        try await bench.clock.sleep(for: .seconds(2))
        #expect(bench.kernel.withLock { $0.whenListed == nil }, "the links were listed")
        #expect(await central.statistics.unreportedEnds == 0)
    }

    @Test func theScanMakesWayAndContinues() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        let link = try await bench.adapter.connect(peer, parameters: .fast, timeout: .seconds(5))
        #expect(link.handle == 0x40)
        await deliveries.wait { $0 == [.notice(.resumed)] }
        let around = await bench.sent.dropFirst(6)
        #expect(
            around == [
                .leSetScanEnable, .leCreateConnection, .leSetScanEnable, .leSetScanParameters, .leSetScanEnable,
            ])
        await bench.adapter.unsubscribe(scan)
    }

    @Test(.row("L07")) func theDeadlineCancelsTheAttempt() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await fails(.timedOut, bench, peer, timeout: .seconds(2))
            #expect(await bench.sent.suffix(2) == [.leCreateConnection, .leCreateConnectionCancel])
            // And the next attempt works at once.
            await reachable(bench)
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            #expect(link.handle == 0x40)
        }
    }

    /// The kernel waits for the features of the peer, which some controllers report after 20 s. The connect has its own
    /// time, names what it has waited for, and leaves no link of its own; the kernel may have one of another program.
    @Test(.row("W43"), arguments: [true, false])
    func aLinkThatTheKernelKeepsBackEndsWithTheConnect(isOurs: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await reachable(bench)
            bench.kernel.withLock {
                $0.holdsLinks = true
                $0.isLinked = !isOurs
            }
            let before = time.now
            do throws(BLEError) {
                _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
                Issue.record("there is no socket")
            } catch {
                #expect(error.code == .timedOut)
                #expect(error.reason == "the link was up, and the kernel did not let this program use it in time")
            }
            #expect(time.now - before < .seconds(8))
            #expect(await bench.sent.contains(.leCreateConnection) == isOurs)
            if isOurs { #expect(await bench.sent.last == .disconnect) }
            bench.kernel.withLock {
                $0.holdsLinks = false
                $0.isLinked = false
            }
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            #expect(link.handle == 0x40)
        }
    }

    @Test(.row("L07")) func cancellationCancelsTheAttempt() async throws {
        let bench = try await AdapterBench()
        let task = testTask {
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(30))
            return link.handle
        }
        await bench.controller.commandsArrived(4)
        task.cancel()
        await #expect(throws: error(.cancelled)) { try await task.value }
        #expect(await bench.sent.last == .leCreateConnectionCancel)
    }

    @Test(.row("W41")) func aLinkThatFailsToBeEstablishedIsTriedAgain() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        await bench.controller.set {
            $0.attemptFailures = [.connectionFailedToBeEstablished, .connectionFailedToBeEstablished]
        }
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        #expect(link.handle == 0x40)
        await bench.controller.set { $0.attemptFailures = Array(repeating: .connectionFailedToBeEstablished, count: 4) }
        await fails(.connectFailed, bench, peer, timeout: .seconds(5), status: .connectionFailedToBeEstablished)
    }

    /// Both events wait, and the end may be read first: no socket is to be had for a link that is gone.
    @Test(.row("W41")) func aLinkThatEndsAtOnceIsRetried() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await reachable(bench)
            let ends = [HCIStatus](repeating: .connectionFailedToBeEstablished, count: 4)
            await bench.controller.set { $0.earlyEnds = ends }
            await fails(.connectFailed, bench, peer, timeout: .seconds(5), status: .connectionFailedToBeEstablished)
            #expect(bench.kernel.withLock { $0.connects } == 0)
            await bench.controller.set { $0.earlyEnds = ends.dropLast() }
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            #expect(link.handle == 0x40)
            #expect(bench.kernel.withLock { $0.connects } == 1)
            #expect(await bench.sent.filter { $0 == .leCreateConnection }.count == 8)
        }
    }

    /// It may end while the kernel has not filed it yet: a socket would then have the kernel look for the peer.
    @Test func aLinkToAPrivateAddressThatEndsBeforeItIsFiledIsRetried() async throws {
        let bench = try await AdapterBench()
        let address = BluetoothAddress(rawValue: 0x4000_0000_0007)
        await bench.controller.set { $0.peers = [address: 0x40] }
        async let found = handle(bench, address)
        await bench.until { bench.kernel.withLock { $0.nameLookups } > 0 }
        await bench.controller.endLink(0x40, .remoteUserTerminated)
        #expect(try await found == 0x40)
        #expect(await bench.sent.count { $0 == .leCreateConnection } == 2)
        #expect(bench.kernel.withLock { $0.connects } == 1)
    }

    /// Its end may be read before the kernel handles it, which lets the socket attach.
    @Test func aLinkThatEndsWhileASocketAttachesIsRetried() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        bench.kernel.withLock { $0.holdsLinks = true }
        async let found = handle(bench, address)
        await bench.until { bench.kernel.withLock { !$0.farEnds.isEmpty } }
        bench.kernel.withLock { $0.holdsLinks = false }
        await bench.controller.endLink(0x40, .remoteUserTerminated)
        bench.kernel.withLock { $0.farEnds.first?.drain() }
        #expect(try await found == 0x40)
        #expect(await bench.sent.count { $0 == .leCreateConnection } == 2)
        #expect(bench.kernel.withLock { $0.connects } == 2)
    }

    @Test func aLinkWhoseEndIsNotReadYetWhenASocketHasAttachedIsRetried() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let controller = bench.controller
        bench.kernel.withLock {
            $0.whenAttached = { controller.assumeIsolated { $0.endLink(0x40, .remoteUserTerminated) } }
        }
        #expect(try await handle(bench, address) == 0x40)
        #expect(await bench.sent.count { $0 == .leCreateConnection } == 2)
        #expect(bench.kernel.withLock { $0.connects } == 2)
    }

    @Test func anAdapterWhoseLossIsNotReadYetWhenASocketHasAttachedFailsTheConnect() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let (controller, kernel) = (bench.controller, bench.kernel)
        kernel.withLock {
            $0.whenAttached = {
                kernel.withLock { $0.controllers = [] }
                controller.assumeIsolated { $0.unplug() }
            }
        }
        await fails(.adapterDown, bench, peer)
        #expect(kernel.withLock { $0.connects } == 1)
    }

    /// Where links break down at once, or at the first missing packets.
    @Test(arguments: [HCIStatus.connectionFailedToBeEstablished, .connectionTimeout], [false, true])
    func wiFiOnTheSameAntennaIsNamedWhereLinksBreakDown(status: HCIStatus, isShared: Bool) async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        bench.kernel.withLock { $0.sharesAntenna = isShared }
        for isReported in [false, true] {
            await bench.controller.set {
                $0.attemptFailures = isReported ? Array(repeating: status, count: 4) : []
                $0.earlyEnds = isReported ? [] : Array(repeating: status, count: 4)
            }
            let error = await #expect(throws: BLEError.self) {
                _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            }
            #expect(error?.hciStatus == status)
            #expect(error?.hint?.contains("Wi-Fi") == isShared)
        }
    }

    /// A controller that lists the extended command and does not know it, by each status that reports this.
    @Test(.row("W05"), arguments: [HCIStatus.unknownCommand, .unsupportedFeature, .invalidParameters])
    func anUnknownExtendedConnectIsReplacedForGood(status: HCIStatus) async throws {
        let bench = try await AdapterBench(isExtended: true)
        await reachable(bench)
        await bench.controller.set { $0.statuses[.leExtendedCreateConnection] = [status] }
        for _ in 1...2 {
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            await link.controls.disconnect()
        }
        let calls = await bench.sent.filter { $0 == .leExtendedCreateConnection || $0 == .leCreateConnection }
        #expect(calls == [.leExtendedCreateConnection, .leCreateConnection, .leCreateConnection])
    }

    /// Where the legacy command is refused as well, the extended one was not the reason.
    @Test func parametersThatNoCommandIsAcceptedWithReplaceNothing() async throws {
        let bench = try await AdapterBench(isExtended: true)
        await reachable(bench)
        await bench.controller.set {
            $0.statuses = [
                .leExtendedCreateConnection: [.invalidParameters], .leCreateConnection: [.invalidParameters],
            ]
        }
        await fails(.system, bench, peer, timeout: .seconds(5), status: .invalidParameters)
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        await link.controls.disconnect()
        let calls = await bench.sent.filter { $0 == .leExtendedCreateConnection || $0 == .leCreateConnection }
        #expect(calls == [.leExtendedCreateConnection, .leCreateConnection, .leExtendedCreateConnection])
    }

    /// A controller that keeps to the extended commands disallows the legacy one, which replaces nothing then.
    @Test(arguments: [HCIStatus.unsupportedFeature, .invalidParameters])
    func aDisallowedLegacyConnectReplacesNothing(status: HCIStatus) async throws {
        let bench = try await AdapterBench(isExtended: true)
        await reachable(bench)
        await bench.controller.set {
            $0.statuses = [
                .leExtendedCreateConnection: [status],
                .leCreateConnection: Array(repeating: .commandDisallowed, count: 100),
            ]
        }
        let begin = bench.controller.loop.now()
        await fails(.system, bench, peer, timeout: .seconds(5), status: status)
        #expect(bench.controller.loop.now() < begin + .seconds(1))
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        await link.controls.disconnect()
        let calls = await bench.sent.filter { $0 == .leExtendedCreateConnection || $0 == .leCreateConnection }
        #expect(calls == [.leExtendedCreateConnection, .leCreateConnection, .leExtendedCreateConnection])
    }

    @Test func otherFailuresAreReported() async throws {
        let bench = try await AdapterBench()
        let limits: [HCIStatus] = [
            .connectionLimitExceeded, .connectionRejectedLimitedResources, .memoryCapacityExceeded,
        ]
        for status in limits {
            await bench.controller.set { $0.attemptFailures = [status] }
            await fails(.busy, bench, peer, timeout: .seconds(5), status: status)
        }
        await bench.controller.set { $0.statuses[.leCreateConnection] = [.invalidParameters] }
        await fails(.system, bench, peer, timeout: .seconds(5), status: .invalidParameters)
        await fails(
            .invalidArgument, bench, PeerID(address: StandInController.ownAddress, type: .public))
    }

    /// Some controllers do not initiate while a scan runs, and nobody connects then.
    @Test func theErrorOfAnAttemptThatIsDisallowedNamesAConnectOnlyWhereOneWasSeen() async throws {
        let bench = try await AdapterBench()
        await bench.controller.set {
            $0.statuses[.leCreateConnection] = Array(repeating: .commandDisallowed, count: 100)
        }
        let unseen = await #expect(throws: BLEError.self) {
            _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(1))
        }
        #expect(unseen?.code == .busy && unseen?.reason.contains("a scan or a connect of another program") == true)
        #expect(unseen?.hint?.hasPrefix("Stop that program's scan or connect") == true)
        // Its response cannot be taken for that to the legacy command.
        await bench.controller.foreign(.leExtendedCreateConnection)
        let seen = await #expect(throws: BLEError.self) {
            _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(1))
        }
        #expect(seen?.code == .busy && seen?.reason.contains("initiating another connection") == true)
        #expect(seen?.hint?.hasPrefix("Stop that program's connect") == true)
    }

    @Test func aLinkThatCannotBeAttachedToIsEnded() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        bench.kernel.withLock { $0.connectErrors = [111] }
        await fails(.lowEnergyOff, bench, peer, timeout: .seconds(5))
        #expect(await bench.sent.last == .disconnect)
    }

    /// EBUSY: another program's socket was handed the channel of the fresh link.
    @Test(.row("L03")) func aLinkLostToAnotherProgramIsMadeByTheKernel() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        bench.kernel.withLock { $0.connectErrors = [16] }
        _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        #expect(bench.kernel.withLock { $0.connects } == 2)
        // The kernel may wait for reports that only somebody's scan brings; none continues afterwards.
        await bench.controller.commandsArrived(8)
        #expect(
            await bench.sent.dropFirst(3) == [
                .leCreateConnection, .disconnect, .leSetScanParameters, .leSetScanEnable, .leSetScanEnable,
            ])
        #expect(await !bench.controller.isScanning)
    }

    /// The kernel's own links end when they are not heard for 420 ms.
    @Test(.row("W42"), arguments: [420, 5000]) func aLinkThatTheKernelHasMadeIsChanged(timeout: Int) async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        let parameters = try ConnectionParameters(
            interval: .milliseconds(30)...(.milliseconds(50)), supervisionTimeout: .milliseconds(timeout))
        await bench.controller.sendRaw(
            VirtualController.connectionComplete(.success, 0x41, peer, parameters, isEnhanced: false))
        bench.kernel.withLock {
            $0.connectErrors = [16]
            $0.reportedHandle = 0x41
        }
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5)).controls
        #expect(try await link.parameters().supervisionTimeout == .milliseconds(timeout))
        guard timeout < 5000 else {
            try await bench.clock.sleep(for: .seconds(1))
            #expect(await !bench.sent.contains(.leConnectionUpdate))
            return
        }
        await bench.controller.commandsArrived(9)
        // Layout of Core Vol 4 Part E, 7.7.65.3 by hand: 30 ms, no latency, 5 s.
        await bench.controller.sendRaw([0x04, 0x3E, 10, 0x03, 0x00, 0x41, 0x00, 24, 0, 0, 0, 0xF4, 0x01])
        try await bench.until { try await link.parameters().supervisionTimeout == .seconds(5) }
        #expect(await bench.sent.count { $0 == .leConnectionUpdate } == 1)
    }

    @Test(.row("L03")) func aProgramThatTakesEveryLinkIsNamed() async throws {
        let bench = try await AdapterBench()
        await reachable(bench)
        bench.kernel.withLock { $0.connectErrors = Array(repeating: 16, count: 20) }
        do throws(BLEError) {
            _ = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(20))
            Issue.record("connected")
        } catch {
            #expect(error.code == .busy && error.errorNumber == 16)
            #expect(error.hint?.contains("bluetoothd") == true)
        }
        // Nothing of it stays: the next connect works.
        bench.kernel.withLock { $0.connectErrors = [] }
        #expect(try await handle(bench, address) == 0x40)
    }

    /// The kernel has the old link until the controller has reported its end; it must not be used meanwhile.
    @Test func aLinkThatIsBeingEndedIsOverBeforeTheNext() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await reachable(bench)
            let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
            await bench.controller.set { $0.holdsEnds = true }
            bench.kernel.withLock { $0.isLinked = true }
            await link.controls.disconnect()
            // One that gives up leaves the wait to the next one.
            let hurried = time.task { try await handle(bench, address) }
            try await time.clock.sleep(for: .milliseconds(10))
            hurried.cancel()
            await #expect(throws: error(.cancelled)) { try await hurried.value }
            async let again = handle(bench, address)
            // The controller needs an interval or two.
            try await time.clock.sleep(for: .milliseconds(100))
            #expect(bench.kernel.withLock { $0.connects } == 1)
            bench.kernel.withLock { $0.isLinked = false }
            await bench.controller.endLink(0x40, .localHostTerminated)
            #expect(try await again == 0x40)
            #expect(await bench.sent.dropFirst(3) == [.leCreateConnection, .disconnect, .leCreateConnection])
        }
    }

    /// Its caller does not wait for its end, and the kernel has it until then.
    @Test func aLinkThatCameUpDespiteTheCancelIsOverBeforeTheNext() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await bench.controller.set {
                $0.respondsToCancelsWithLinks = true
                $0.holdsEnds = true
            }
            let unwanted = time.task { _ = try await handle(bench, address) }
            await bench.controller.commandsArrived(4)
            await reachable(bench)
            bench.kernel.withLock { $0.isLinked = true }
            unwanted.cancel()
            await #expect(throws: error(.cancelled)) { try await unwanted.value }
            async let again = handle(bench, address)
            try await time.clock.sleep(for: .milliseconds(100))
            #expect(bench.kernel.withLock { $0.connects } == 0)
            bench.kernel.withLock { $0.isLinked = false }
            await bench.controller.endLink(0x40, .localHostTerminated)
            #expect(try await again == 0x40)
            let expected: [HCIOpcode] = [
                .leCreateConnection, .leCreateConnectionCancel, .disconnect, .leCreateConnection,
            ]
            #expect(await bench.sent.dropFirst(3) == expected[...])
        }
    }

    @Test(.row("O14")) func connectsTakeTurns() async throws {
        let bench = try await AdapterBench()
        let other = BluetoothAddress(rawValue: 0xC000_0000_0008)
        await bench.controller.set {
            $0.peers = [BluetoothAddress(rawValue: 0xC000_0000_0007): 0x40, other: 0x41]
        }
        async let first = handle(bench, address)
        async let second = handle(bench, other)
        #expect(try await [first, second] == [0x40, 0x41])
        // A turn that does not come in time, and one whose caller was cancelled.
        let nobody = BluetoothAddress(rawValue: 0xC000_0000_0009)
        let absent = testTask { try await handle(bench, nobody, timeout: .seconds(3_600)) }
        await bench.controller.commandsArrived(6)
        let hurried = testTask { try await handle(bench, address, timeout: .milliseconds(50)) }
        let unwanted = testTask { try await handle(bench, address) }
        unwanted.cancel()
        await #expect(throws: error(.timedOut)) { try await hurried.value }
        await #expect(throws: error(.cancelled)) { try await unwanted.value }
        // The turn ends with the one who has it, whenever that is.
        absent.cancel()
        await #expect(throws: error(.cancelled)) { try await absent.value }
        #expect(try await handle(bench, address) == 0x40)
    }

    @Test func withoutTheCapabilityTheKernelConnects() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock {
            $0.capabilities = 0
            $0.connectErrors = [16]
        }
        let link = try await bench.adapter.connect(peer, parameters: nil, timeout: .seconds(5))
        #expect(link.handle == nil)
        #expect(bench.kernel.withLock { $0.connects } == 2)
        #expect(await bench.sent.isEmpty)
        bench.kernel.withLock { $0.connectErrors = [111] }
        await fails(.lowEnergyOff, bench, peer, timeout: .seconds(5))
    }

    @Test(.row("O02")) func theAdapterMayGoInTheMiddle() async throws {
        let bench = try await AdapterBench()
        let task = testTask { try await handle(bench, address) }
        await bench.controller.commandsArrived(4)
        bench.kernel.withLock { $0.controllers = [] }
        await bench.controller.unplug()
        await #expect(throws: error(.adapterDown)) { try await task.value }
    }

    private func reachable(_ bench: AdapterBench) async {
        let address = address
        await bench.controller.set { $0.peers = [address: 0x40] }
    }

    private func handle(
        _ bench: AdapterBench, _ address: BluetoothAddress, timeout: Duration = .seconds(5)
    ) async throws(BLEError) -> ConnectionHandle? {
        let link = try await bench.adapter.connect(
            PeerID(address: address, type: .random), parameters: nil, timeout: timeout)
        return link.handle
    }

    private func fails(
        _ code: BLEError.Code, _ bench: AdapterBench, _ peer: PeerID, timeout: Duration = .seconds(5),
        status: HCIStatus? = nil
    ) async {
        do throws(BLEError) {
            _ = try await bench.adapter.connect(peer, parameters: nil, timeout: timeout)
            Issue.record("\(code) was expected")
        } catch {
            #expect(error.code == code, "\(error)")
            #expect(error.hciStatus == status)
        }
    }
}
