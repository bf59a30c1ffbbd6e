import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Logging
import TestSupport
import Testing

/// Controllers that deviate from the specification, as real ones do.
@Suite(.timeLimit(.minutes(5))) struct ControllerPersonalityTests {
    /// Which controllers a device is found, connected to, read and found again with.
    @Test(
        .row("W01", "W03", "W04", "W05", "W07"),
        arguments: [
            "bluetooth5", "bluetooth4", "rtl8761bOnKernel72", "rtl8761bu", "rtl8761buWithoutLegacyScan", "ats2851",
            "wcn3990", "bcm4345c0", "bcm43438", "csr8510", "csr8510Clone", "intelAX200", "intelAX201", "bcm4378",
            "zephyrUSB", "intelAX210",
        ])
    func aDeviceIsFoundAndRead(name: String) async throws {
        try await run(personality(name)) { time, _, central in
            let (device, found) = try await central.connect(toFirst: .services(0x180D))
            #expect(found.name == "Virtual HRM")
            #expect(try await device.read(0x2A38) == [1])
            await device.disconnect()
            #expect(
                try await central.collect(.services(0x180D), for: .seconds(5), count: 1).first?.name == "Virtual HRM")
            #expect(await central.statistics.stalls == 0)
            #expect(await central.statistics.losses == 0)
        }
    }

    /// Another program uses the legacy commands: they are the ones that the controller knows until it is switched off.
    @Test(.row("W07", "W11")) func theCommandsInUseAreUsedForEverything() async throws {
        try await run(try personality("intelAX201")) { time, radio, central in
            try await central.ready()
            await radio.foreign(HCICommandPacket(LESetScanEnable(isEnabled: false)))
            let (device, found) = try await central.connect(toFirst: .services(0x180D))
            #expect(found.name == "Virtual HRM")
            await device.disconnect()
            let peer = try #require(found.peer)
            let again = try await central.connect(peer)
            #expect(try await again.read(0x2A38) == [1])
            await again.disconnect()
            let local = LocalPeripheral(on: central)
            let advertisement = try await local.advertise([.localName("Legacy")])
            #expect(await radio.advertisements().count == 1)
            await advertisement.stop()
            await local.stop()
            // After a power cycle it has no set of its own any more.
            await radio.powerOff()
            await radio.powerOn()
            #expect(try await central.collect(.services(0x180D), for: .seconds(5), count: 1).count == 1)
        }
    }

    /// The commands that a controller lists decide which are used, not its version, which nothing reads.
    @Test(.row("W08"), arguments: ["bcm4345c0", "bluetooth5"]) func theListedCommandsDecide(name: String) async throws {
        let opcodes = Lock<Set<UInt16>>([])
        var configuration = Configuration()
        configuration.traceHCI = { packet in
            guard packet.type == .command, packet.bytes.count > 1 else { return }
            let opcode = UInt16(packet.bytes[0]) | UInt16(packet.bytes[1]) << 8
            opcodes.withLock { _ = $0.insert(opcode) }
        }
        try await run(personality(name), configuration) { _, _, central in
            let (device, _) = try await central.connect(toFirst: .services(0x180D))
            await device.disconnect()
        }
        // LE Set Scan Enable and LE Create Connection, and the extended ones.
        let (legacy, extended): (Set<UInt16>, Set<UInt16>) = ([0x200C, 0x200D], [0x2042, 0x2043])
        let sent = opcodes.withLock { $0 }
        #expect(sent.isSuperset(of: name == "bluetooth5" ? extended : legacy))
        #expect(sent.isDisjoint(with: name == "bluetooth5" ? legacy : extended))
        // Read Local Version Information.
        #expect(!sent.contains(0x1001))
    }

    /// Commands that are listed and unknown are tried once after each power-up, and not again until the next one.
    @Test(.row("W04")) func unknownCommandsAreTriedOnceAfterAPowerUp() async throws {
        // LE Set Extended Scan Parameters, LE Set Extended Scan Enable and LE Extended Create Connection.
        let opcodes = Lock<[UInt16]>([])
        var configuration = Configuration()
        configuration.traceHCI = { packet in
            guard packet.type == .command, packet.bytes.count > 1 else { return }
            let opcode = UInt16(packet.bytes[0]) | UInt16(packet.bytes[1]) << 8
            if (0x2041...0x2043).contains(opcode) { opcodes.withLock { $0.append(opcode) } }
        }
        try await run(personality("ats2851"), configuration) { time, radio, central in
            for _ in 1...2 {
                for _ in 1...3 {
                    let (device, _) = try await central.connect(toFirst: .services(0x180D))
                    #expect(try await device.read(0x2A38) == [1])
                    await device.disconnect()
                }
                // The first command of the scan has shown that the legacy ones are to be used, for connects too.
                #expect(opcodes.withLock { $0 } == [0x2042])
                await radio.powerOff()
                // The adapter is looked at.
                _ = try? await central.collect(for: .seconds(1))
                opcodes.withLock { $0 = [] }
                await radio.powerOn()
                try await time.clock.sleep(for: .seconds(5))
            }
        }
    }

    /// The adapter's public address is used, and a controller that demands another one is reported with its status.
    @Test(.row("W12")) func aRefusedOwnAddressIsReported() async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.responses[0x2042] = .statusIfEnabling(.invalidParameters)
        let types = Lock<Set<UInt8>>([])
        var configuration = Configuration()
        configuration.traceHCI = { packet in
            // LE Set Extended Scan Parameters begins with the type of the own address.
            guard packet.type == .command, packet.bytes.starts(with: [0x41, 0x20]) else { return }
            types.withLock { _ = $0.insert(packet.bytes[3]) }
        }
        try await run(personality, configuration) { _, _, central in
            let error = await #expect(throws: BLEError.self) { _ = try await central.collect(for: .seconds(1)) }
            #expect(error?.code == .system)
            #expect(error?.hciStatus == .invalidParameters)
        }
        #expect(types.withLock { $0 } == [0])
    }

    /// A controller that accepts the scan and never reports anything is set up again, and then reported.
    @Test(.row("W19")) func aControllerThatNeverReportsIsReported() async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.deafness = VirtualPersonality.Deafness(afterReports: 0, recovery: .driver)
        try await run(personality) { time, _, central in
            let silence = RecoveryPolicy.Reason.silence(.seconds(90))
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            let first = try await events.next()
            #expect(first == .began(.rescan, because: silence))
            #expect(await central.statistics.stalls == 1)
            #expect(try await events.next() == .began(.eventMasks, because: silence))
            #expect(try await events.next() == .exhausted(because: silence, next: nil))
        }
    }

    /// Beside a link, too, a scan listens a tenth of the time where Wi-Fi is to have the rest.
    @Test(.row("W33")) func aScanBesideALinkCanLeaveWiFiTime() async throws {
        let parameters = Lock<Set<[UInt8]>>([])
        var configuration = Configuration()
        configuration.traceHCI = { packet in
            guard packet.type == .command, packet.bytes.starts(with: [0x41, 0x20]) else { return }
            // What LE Set Extended Scan Parameters says of 1M: passive, the interval and the window.
            parameters.withLock { _ = $0.insert(Array(packet.bytes.dropFirst(6))) }
        }
        try await run(.bluetooth5, configuration) { _, radio, central in
            let device = try await central.connect(try #require(await radio.id(of: radio.add(.battery))))
            #expect(try await !central.collect(.any, .coexist, for: .seconds(5)).isEmpty)
            #expect(await device.isConnected)
        }
        // 300 ms and 30 ms, in units of 0.625 ms.
        #expect(parameters.withLock { $0 } == [[0, 0xE0, 0x01, 0x30, 0x00]])
    }

    /// What a slow link has discovered before it broke down needs no second discovery.
    @Test(.row("W51")) func whatASlowLinkHasDiscoveredIsKept() async throws {
        try await run(personality("bcm4345c0")) { time, radio, central in
            let battery = await radio.add(.battery, latency: .milliseconds(400))
            let peer = try #require(await radio.id(of: battery))
            var cache: GATTCache?
            var times: [Duration] = []
            for _ in 1...2 {
                let device = try await central.connect(peer, ConnectOptions(cache: cache, validation: .whenPossible))
                let before = time.now
                try await device.discover(level: .full)
                times.append(time.now - before)
                cache = try await device.cache()
                await radio.disconnect(battery, because: .connectionTimeout)
                #expect(await device.disconnected() == .supervisionTimeout)
            }
            #expect(times[0] > .seconds(1))
            #expect(times[1] < .milliseconds(400))
        }
    }

    /// The set in use is kept where a connect is refused for another reason.
    @Test func oneRefusedConnectDoesNotEndAllConnects() async throws {
        let usual = try personality("intelAX201")
        var refusing = usual
        refusing.responses[0x2043] = .status(.invalidParameters)
        try await run(refusing) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            let before = time.now
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(error?.code == .system)
            #expect(error?.hciStatus == .invalidParameters)
            #expect(time.now - before < .seconds(1))
            await radio.setPersonality(usual)
            try await time.clock.sleep(for: .seconds(1))
            let link = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            #expect(try await link.read(0x2A38) == [1])
        }
    }

    /// Another program sets the mask of Bluetooth 4.0 under a running scan.
    @Test(.row("W10")) func reportsThatAnotherProgramMasksContinue() async throws {
        try await run(.bluetooth5) { time, radio, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            await radio.foreign(HCICommandPacket(LESetEventMask(LEEventMask(rawValue: 0x1F))))
            let before = time.now
            for _ in 1...20 { _ = try await heard.next() }
            #expect(time.now - before < .seconds(10))
            #expect(await central.statistics.maskedEvents == 1)
        }
    }

    /// A reset past the kernel leaves the masks at their defaults: no LE event at all.
    @Test(.row("W72")) func reportsComeAgainAfterAResetPastTheKernel() async throws {
        try await run(.bluetooth5) { time, radio, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            await radio.reset()
            let before = time.now
            for _ in 1...20 { _ = try await heard.next() }
            #expect(time.now - before < .seconds(10))
        }
    }

    /// One that came before the program began is found by the silence.
    @Test(.row("W72")) func reportsComeAgainAfterAnUnobservedReset() async throws {
        try await run(.bluetooth5) { _, radio, central in
            await radio.reset()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            #expect(await central.statistics.stalls == 1)
        }
    }

    /// What one program of this library sets, another one leaves alone.
    @Test(.row("W10")) func twoProgramsDoNotFollowEachOther() async throws {
        try await run(.bluetooth5) { _, radio, first in
            let second = Central(radio: radio)
            for central in [first, second, first, second] { _ = try await central.collect(for: .seconds(2)) }
            #expect(await first.statistics.maskedEvents == 0)
            #expect(await second.statistics.maskedEvents == 0)
        }
    }

    /// While a link is up the controller does not scan; when it ends, it does at once.
    @Test(.row("W02")) func aScanContinuesWhenTheLinkThatPreventsItHasEnded() async throws {
        try await run(personality("rtl8761bu")) { time, radio, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            let other = await radio.add(.battery)
            let peer = try #require(await radio.id(of: other))
            let device = try await central.connect(peer)
            // The retries are 30 s apart by now.
            try await time.clock.sleep(for: .seconds(120))
            let before = time.now
            await device.disconnect()
            while let event = try await heard.next() {
                if case .updated(let result) = event, result.lastSeen >= before { break }
            }
            #expect(time.now - before < .seconds(3))
        }
    }

    /// An attempt ends at once while the controller advertises for another program.
    @Test(.row("W39")) func anAttemptThatEndsBesideAnAdvertisementIsRepeated() async throws {
        try await run(personality("bcm4345c0")) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            let other = LocalPeripheral(on: Central(radio: radio))
            let advertisement = try await other.advertise([.localName("Other")])
            async let link = central.connect(peer, ConnectOptions(timeout: .seconds(8)))
            try await time.clock.sleep(for: .milliseconds(400))
            await advertisement.stop()
            let device = try await link
            #expect(try await device.read(0x2A38) == [1])
        }
    }

    /// The kernel drops what comes ahead of the link. Its peer waits for a response: the link is made again, once,
    /// because the next one may lose its request too.
    @Test(.row("W44")) func aLinkWhosePeerHasLostItsRequestIsMadeAgainOnce() async throws {
        for (name, isEarly) in [("intelAX210", true), ("bluetooth5", false)] {
            // LE Extended Create Connection, and Disconnect.
            let opcodes = Lock<[UInt16]>([])
            var configuration = Configuration()
            configuration.traceHCI = { packet in
                guard packet.type == .command, packet.bytes.count > 1 else { return }
                let opcode = UInt16(packet.bytes[0]) | UInt16(packet.bytes[1]) << 8
                if opcode == 0x2043 || opcode == 0x0406 { opcodes.withLock { $0.append(opcode) } }
            }
            try await run(try personality(name), configuration) { time, radio, central in
                let battery = await radio.add(.battery)
                let link = try await central.connect(try #require(await radio.id(of: battery)))
                #expect(opcodes.withLock { $0 } == (isEarly ? [0x2043, 0x0406, 0x2043] : [0x2043]))
                #expect(await central.statistics.packetsAheadOfLinks == (isEarly ? 2 : 0))
                #expect(try await link.read(0x2A19).count == 1)
                try await time.clock.sleep(for: .seconds(60))
                #expect(await link.isConnected)
                #expect(await central.statistics.suspectedLinks == 0)
                await link.disconnect()
            }
        }
    }

    /// Without the time for another link, this one is used.
    @Test(.row("W44")) func aLinkIsNotMadeAgainAtTheEndOfTheTime() async throws {
        try await run(try personality("intelAX210")) { time, radio, central in
            let peer = try #require(await radio.id(of: radio.add(.battery)))
            let link = try await central.connect(peer, ConnectOptions(timeout: .seconds(3)))
            #expect(await central.statistics.packetsAheadOfLinks == 1)
            #expect(try await link.read(0x2A19).count == 1)
        }
    }

    /// Links come up, and nothing comes on them: the first request fails, and the error names what may be at fault.
    @Test(.row("W54")) func aLinkOnWhichNothingArrivesNamesTheAdapter() async throws {
        var personality = try personality("csr8510Clone")
        personality.losesData = .received
        try await run(personality) { time, radio, central in
            let peer = try #require(await radio.id(of: radio.add(.battery)))
            let first = await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(first?.code == .timedOut)
            #expect(first?.hint?.contains("`blescan doctor`") == true)
            // Without an exchange of the MTU, and with the time of the protocol.
            let device = try await central.connect(peer, ConnectOptions(timeout: .seconds(5), mtu: 23))
            let second = await #expect(throws: BLEError.self) {
                _ = try await device.read(0x2A19, timeout: .seconds(60))
            }
            #expect(second?.code == .disconnected)
            #expect(second?.hint?.contains("`blescan doctor`") == true)
            #expect(await device.disconnected() == .attTimeout)
        }
    }

    /// After a reset past the kernel, that sends no LE data before the adapter was off and on: the error of a link on
    /// which nothing comes says so, as long as it may be the cause.
    @Test(.row("W72")) func aResetAfterWhichNoDataComesIsNamed() async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.losesData = .received
        try await run(personality) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            for isReset in [false, true, false] {
                if isReset { await radio.reset() }
                try await time.clock.sleep(for: .seconds(1))
                let error = await #expect(throws: BLEError.self) {
                    _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
                }
                #expect(error?.code == .timedOut)
                let hint = error?.hint ?? ""
                #expect(hint.contains("`hciconfig hci0 down && hciconfig hci0 up`") == isReset)
                #expect(hint.contains("`blescan doctor`") == !isReset)
                await radio.powerOff()
                // The adapter is looked at every two seconds while it is used.
                _ = try? await central.collect(for: .seconds(1))
                await radio.powerOn()
                try await central.ready()
            }
        }
    }

    /// Beside another program's attempt, BCM43438 refuses with an error of the link layer: the connect has its turn
    /// when that attempt is over.
    @Test(.row("W38")) func aSecondAttemptWaitsForTheFirstHoweverItIsRefused() async throws {
        try await run(personality("bcm43438")) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0777), type: .random)
            await radio.foreign(HCICommandPacket(LECreateConnection(LEInitiation(peer: absent))))
            // Its response is read.
            try await time.clock.sleep(for: .seconds(1))
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(2)))
            }
            #expect(error?.code == .busy)
            #expect(error?.reason.contains("another program") == true)
            async let link = central.connect(peer, ConnectOptions(timeout: .seconds(8)))
            try await time.clock.sleep(for: .seconds(3))
            await radio.foreign(HCICommandPacket(LECreateConnectionCancel()))
            let device = try await link
            #expect(try await device.read(0x2A38) == [1])
        }
    }

    /// A clone of the CSR8510 does not advertise beside a link of this program to a peripheral either:
    /// it does when that has ended.
    @Test(.row("W40")) func anAdvertisementThatALinkPreventsContinuesAtItsEnd() async throws {
        try await run(personality("csr8510Clone")) { time, radio, central in
            let local = LocalPeripheral(on: central)
            let advertisement = try await local.advertise([.localName("Clone")])
            let (device, _) = try await central.connect(toFirst: .services(0x180D))
            try await time.clock.sleep(for: .seconds(120))
            #expect(await radio.advertisements().isEmpty)
            #expect(await advertisement.state == .paused("the controller has no room for another link"))
            await device.disconnect()
            try await time.clock.sleep(for: .seconds(1))
            #expect(await advertisement.state == .on)
            #expect(await radio.advertisements().count == 1)
            await advertisement.stop()
            // One that begins beside a link is refused by name.
            let again = try await central.connect(try #require(device.id))
            let error = await #expect(throws: BLEError.self) {
                _ = try await local.advertise([.localName("Clone")])
            }
            #expect(error?.code == .busy && error?.hciStatus == .commandDisallowed)
            #expect(error?.reason.contains("with 1 link up") == true)
            await again.disconnect()
            let later = try await local.advertise([.localName("Clone")])
            #expect(await radio.advertisements().count == 1)
            await later.stop()
            await local.stop()
        }
    }

    /// Events that come after what follows them end nothing, and are no links of others.
    @Test(.row("W34"), arguments: [1, 2, 3]) func eventsOutOfOrderAreTolerated(period: Int) async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.reordersEvery = period
        try await run(personality) { time, radio, central in
            for _ in 1...5 {
                let (device, _) = try await central.connect(toFirst: .services(0x180D))
                #expect(try await device.read(0x2A38) == [1])
                await device.disconnect()
            }
            #expect(await central.statistics.suspectedLinks == 0)
            #expect(await central.statistics.losses == 0)
        }
    }

    /// The controller and the peer have a link; the kernel and all programs have missed its beginning.
    @Test(.row("W52")) func aLinkThatOnlyTheControllerHasIsSuspectedAndReported() async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.hiddenLinks = 1
        try await run(personality) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(error?.code == .timedOut)
            #expect(error?.reason.contains("has not reported how the connection attempt ended") == true)
            #expect(error?.hint?.contains("hciconfig hci0 down") == true)
            #expect(await central.statistics.suspectedLinks == 1)
            // The controller knows the peer: it has a link to it, which is the same one.
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(await central.statistics.suspectedLinks == 1)
            await radio.powerOff()
            await radio.powerOn()
            // The kernel's reset is read.
            try await time.clock.sleep(for: .seconds(1))
            let link = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            #expect(try await link.read(0x2A38) == [1])
            #expect(await central.statistics.suspectedLinks == 1)
        }
        // A device that is not there is no link.
        try await run(.bluetooth4) { _, radio, central in
            let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0777), type: .random)
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(await central.statistics.suspectedLinks == 0)
        }
    }

    /// The kernel has a link that the controller has ended: the next command for it shows that,
    /// and the link ends for all.
    @Test(.row("W34")) func aLinkWhoseEndWasLostEndsWithTheNextCommandForIt() async throws {
        try await run(.bluetooth5) { time, radio, central in
            let battery = await radio.add(.battery)
            let peer = try #require(await radio.id(of: battery))
            let device = try await central.connect(peer)
            await radio.endUnnoticed(battery)
            try await time.clock.sleep(for: .seconds(60))
            #expect(await device.isConnected)
            let error = await #expect(throws: BLEError.self) { _ = try await device.rssi() }
            #expect(error?.hciStatus == .unknownConnection)
            let before = time.now
            #expect(await device.disconnected()?.hciStatus == .unknownConnection)
            #expect(time.now - before < .seconds(2))
            #expect(await central.statistics.unreportedEnds == 1)
            let again = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            #expect(try await again.read(0x2A19).count == 1)
            #expect(await central.statistics.unreportedEnds == 1)
        }
    }

    /// A report of the end that is only late is the report.
    @Test(.row("W34")) func anEndThatIsReportedLateIsNotTakenForALostOne() async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.reordersEvery = 1
        try await run(personality) { time, radio, central in
            let battery = await radio.add(.battery)
            let device = try await central.connect(try #require(await radio.id(of: battery)))
            await radio.disconnect(battery)
            await #expect(throws: BLEError.self) { _ = try await device.rssi() }
            _ = await device.disconnected()
            try await time.clock.sleep(for: .seconds(5))
            #expect(await central.statistics.unreportedEnds == 0)
        }
    }

    /// The kernel's driver knows that the coded PHY does not work: it is listed, and left out.
    @Test(.row("W13"), arguments: ["intelAX200", "intelAX201"])
    func aCodedPHYThatDoesNotWorkIsNotUsed(name: String) async throws {
        let phys = Lock<[UInt8]>([])
        var configuration = Configuration()
        configuration.traceHCI = { packet in
            guard packet.type == .command, packet.bytes.starts(with: [0x41, 0x20]) else { return }
            phys.withLock { $0.append(packet.bytes[5]) }
        }
        try await run(personality(name), configuration) { _, _, central in
            let found = try await central.collect(.any, .longRange, for: .seconds(2))
            #expect(found.count == 1)
        }
        #expect(phys.withLock { $0 } == [LEPHYs.le1M.rawValue])
    }

    /// A change to 2M by the controllers themselves breaks links: a preference for 1M prevents it, after each power-up.
    @Test(.row("W46")) func linksKeepTo1MWhereThatIsPreferred() async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.losesLinksOn2M = true
        for preferred in [nil, LEPHYs.le1M] {
            var configuration = Configuration()
            configuration.preferredPHYs = preferred
            try await run(personality, configuration) { time, radio, central in
                let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
                for _ in 1...2 {
                    let device = try await central.connect(peer)
                    try await time.clock.sleep(for: .seconds(20))
                    #expect(await device.isConnected == (preferred != nil))
                    await device.disconnect()
                    await radio.powerOff()
                    try await time.clock.sleep(for: .seconds(3))
                    await radio.powerOn()
                    try await time.clock.sleep(for: .seconds(3))
                }
            }
        }
    }

    /// A connect beyond the configured number waits for the end of a link, and fails by name at its time-out.
    @Test(.row("W48", "W49")) func noMoreLinksAreUsedThanConfigured() async throws {
        var configuration = Configuration()
        configuration.maximumLinks = 2
        try await run(.bluetooth5, configuration) { time, radio, central in
            var links: [Peripheral] = []
            for _ in 1...2 {
                let peer = try #require(await radio.id(of: radio.add(.battery)))
                links.append(try await central.connect(peer))
            }
            let third = try #require(await radio.id(of: radio.add(.battery)))
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(third, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(error?.code == .busy)
            #expect(error?.reason == "2 links up, and 2 may be")
            let waiting = time.task { _ = try await central.connect(third, ConnectOptions(timeout: .seconds(60))) }
            try await time.clock.sleep(for: .seconds(30))
            let before = time.now
            await links[0].disconnect()
            try await waiting.value
            #expect(time.now - before < .seconds(2))
        }
    }

    /// A connect that waits for room keeps none away that needs none, and lets go when its task is cancelled.
    @Test(.row("W49")) func aConnectThatWaitsForRoomKeepsNoTurn() async throws {
        var configuration = Configuration()
        configuration.maximumLinks = 1
        try await run(.bluetooth5, configuration) { time, radio, central in
            let first = try #require(await radio.id(of: radio.add(.battery)))
            let second = try #require(await radio.id(of: radio.add(.battery)))
            let device = try await central.connect(first)
            let waiting = time.task { _ = try await central.connect(second, ConnectOptions(timeout: nil)) }
            try await time.clock.sleep(for: .seconds(1))
            // Another that would wait fails for the same reason, not because the first one has the turn.
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(second, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(error?.code == .busy)
            await device.disconnect()
            try await waiting.value
            #expect(await central.statistics.suspectedLinks == 0)
        }
    }

    /// After a refusal, the next connect waits for the end of a link before it is refused too.
    @Test(.row("W49")) func aLimitIsLearntFromARefusal() async throws {
        var personality = try personality("bcm4345c0")
        personality.linkLimit = 1
        try await run(personality) { time, radio, central in
            let first = try await central.connect(try #require(await radio.id(of: radio.add(.battery))))
            let second = try #require(await radio.id(of: radio.add(.battery)))
            for time in [Duration.zero, .seconds(4)] {
                let before = radio.loop.now()
                let error = await #expect(throws: BLEError.self) {
                    _ = try await central.connect(second, ConnectOptions(timeout: .seconds(15)))
                }
                #expect(error?.code == .busy)
                #expect(error?.reason.contains("with 1 link up") == true)
                let took = radio.loop.now() - before
                #expect(took >= time && took < time + .seconds(3))
            }
            let waiting = time.task { _ = try await central.connect(second, ConnectOptions(timeout: .seconds(15))) }
            try await time.clock.sleep(for: .seconds(1))
            await first.disconnect()
            try await waiting.value
        }
    }

    /// Beside Wi-Fi on the same antenna the controller listens a quarter of the time while it initiates,
    /// and half elsewhere.
    @Test(.row("W50"), arguments: [true, false]) func initiatingLeavesWiFiTime(isShared: Bool) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(.bluetooth4)
            await radio.setSharedAntenna(isShared)
            await radio.add(.heartRate)
            let windows = Lock<[UInt16]>([])
            var configuration = Configuration()
            configuration.traceHCI = { packet in
                guard packet.type == .command, packet.bytes.starts(with: [0x0D, 0x20]) else { return }
                windows.withLock { $0.append(UInt16(packet.bytes[5]) | UInt16(packet.bytes[6]) << 8) }
            }
            let central = Central(configuration, radio: radio)
            let (device, _) = try await central.connect(toFirst: .services(0x180D))
            await device.disconnect()
            #expect(windows.withLock { $0 } == [isShared ? 24 : 48])
        }
    }

    /// At the limit of links, however the controller says it.
    @Test(.row("W49"), arguments: ["csr8510", "bcm4345c0", "csr8510Clone"])
    func aLinkBeyondTheLimitIsRefusedByName(name: String) async throws {
        var personality = try personality(name)
        personality.linkLimit = 2
        try await run(personality) { _, radio, central in
            var links: [Peripheral] = []
            for _ in 1...2 {
                let peer = try #require(await radio.id(of: radio.add(.battery)))
                links.append(try await central.connect(peer))
            }
            let third = try #require(await radio.id(of: radio.add(.battery)))
            let expected: BLEError.Code = name == "csr8510Clone" ? .timedOut : .busy
            let failure = await #expect(throws: BLEError.self) {
                _ = try await central.connect(third, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(failure?.code == expected)
            let text = expected == .busy ? failure?.reason : failure?.hint
            #expect(text?.contains(expected == .busy ? "with 2 links up" : "2 links are up") == true)
            await links[0].disconnect()
            let late = try await central.connect(third, ConnectOptions(timeout: .seconds(5)))
            await late.disconnect()
        }
    }

    /// A controller that goes deaf is set up again after 90 s; the milder ones receive again then.
    @Test(.row("W29", "W32"), arguments: [VirtualPersonality.Recovery.rescan, .eventMask])
    func aControllerThatStopsReportingIsSetUpAgain(recovery: VirtualPersonality.Recovery) async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.deafness = VirtualPersonality.Deafness(afterReports: 5, recovery: recovery)
        try await run(personality) { _, _, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...8 { _ = try await heard.next() }
            #expect(await central.statistics.stalls == 1)
        }
    }

    /// The kernel masks the reports with each power-up.
    @Test(.row("W01")) func reportsComeAfterAPowerCycleToo() async throws {
        try await run(personality("rtl8761bOnKernel72")) { time, radio, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...3 {
                _ = try await heard.next()
                await radio.powerOff()
                try await time.clock.sleep(for: .seconds(5))
                await radio.powerOn()
                while let event = try await heard.next(), event != .resumed {}
            }
            #expect(await central.statistics.maskedEvents == 0)
        }
    }

    /// Responses that are too short.
    @Test(.row("W06")) func aControllerWithShortResponsesAdvertises() async throws {
        try await run(personality("wcn3990")) { _, radio, central in
            let local = LocalPeripheral(on: central)
            let advertisement = try await local.advertise([.localName("Short")])
            #expect(await radio.advertisements().count == 1)
            await advertisement.stop()
            await local.stop()
        }
    }

    /// What needs a power cycle, or to be unplugged, is reported again and again, and hears after that.
    @Test(.row("W29", "W56"), arguments: ["raspberryPiGoneDeaf", "rtl8761buGoneDeaf"])
    func aControllerThatNeedsMoreIsReported(name: String) async throws {
        try await run(personality(name)) { time, radio, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...20 { _ = try await heard.next() }
            try await time.clock.sleep(for: .seconds(300))
            #expect(await central.statistics.stalls == 3)
            if name == "raspberryPiGoneDeaf" {
                await radio.powerOff()
                try await time.clock.sleep(for: .seconds(5))
                await radio.powerOn()
            } else {
                await radio.unplug()
                try await time.clock.sleep(for: .seconds(5))
                await radio.plugIn(isUp: true)
            }
            while let event = try await heard.next(), event != .resumed {}
            #expect(try await heard.next() != nil)
        }
    }

    /// A driver that resets the USB device after a command without a response: the adapter has another name then.
    @Test(.row("W17")) func anAdapterThatItsDriverHasResetIsFoundAgain() async throws {
        var personality = VirtualPersonality.bluetooth5
        // LE Set Extended Scan Enable.
        personality.responses = [0x2042: .silence]
        personality.isResetWhenSilent = true
        try await run(personality) { time, radio, central in
            let peer = try #require(await radio.id(of: radio.add(.battery)))
            await #expect(throws: BLEError.self) { _ = try await central.collect(for: .seconds(1)) }
            try await time.clock.sleep(for: .seconds(10))
            let device = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            #expect(try await device.read(0x2A19).count == 1)
            #expect(await central.adapter.name != "hci0")
            await device.disconnect()
        }
    }

    /// Controllers that remember too few devices, or none, while they filter duplicates.
    @Test(.row("W21", "W22"), arguments: ["zephyrUSB", "bluetooth5"])
    func repetitionsThatAControllerLetsThroughAreFilteredHere(name: String) async throws {
        let requests = Lock<[UInt8]>([])
        var configuration = Configuration()
        configuration.traceHCI = { packet in
            // LE Set Extended Scan Enable, with 1 for a scan that begins.
            guard packet.type == .command, packet.bytes.starts(with: [0x42, 0x20, 6, 1]) else { return }
            requests.withLock { $0.append(packet.bytes[4]) }
        }
        try await run(personality(name), configuration) { time, radio, central in
            for _ in 1...19 { await radio.add(.battery) }
            let settings = try ScanSettings(isActive: false, filtersDuplicatesInController: true)
            var found = 0
            for try await event in central.scan(.any, settings, duration: .seconds(30)) {
                if case .found = event { found += 1 } else { Issue.record("\(event)") }
            }
            #expect(found == 20)
            #expect(await central.statistics.reports > 60, "the controller repeats them")
        }
        #expect(requests.withLock { $0 } == [1], "it was asked to filter")
    }

    /// The controller's own reason, which the kernel has no number for.
    @Test(.row("W47")) func aCodedLinkThatTheControllerGivesUpHasItsReason() async throws {
        try await run(.bluetooth5) { time, radio, central in
            let battery = await radio.add(.battery)
            let device = try await central.connect(try #require(await radio.id(of: battery)))
            let phy = try await device.requestPHY(.leCoded)
            #expect(phy.transmit == .leCoded && phy.receive == .leCoded)
            try await time.clock.sleep(for: .seconds(40))
            await radio.disconnect(battery, because: .linkResponseTimeout)
            #expect(await device.disconnected()?.hciStatus == .linkResponseTimeout)
        }
    }

    /// The kernel masks the ends of links while the machine is suspended: a socket then ends without an event.
    @Test(.row("W60")) func aLinkThatHasEndedInASuspendIsMadeAgain() async throws {
        try await run(.bluetooth5) { time, radio, central in
            let battery = await radio.add(.battery)
            let session = try await central.session(with: try #require(await radio.id(of: battery)))
            let device = try await session.ready()
            time.loop.jump(by: .seconds(3600))
            await radio.finishEnd(of: battery, because: .connectionTimeout)
            let awake = time.now
            #expect(await device.disconnected() != nil)
            let again = try await session.ready()
            #expect(again !== device)
            #expect(try await again.read(0x2A19).count == 1)
            #expect(time.now - awake < .seconds(60))
            await session.disconnect()
        }
    }

    /// The kernel loads the firmware first: the caller waits for that, and the loop goes on meanwhile.
    @Test(.row("W62")) func aSlowPowerUpIsWaitedFor() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.powerOff()
            let (hasBegun, isLoaded, isReady) = (Lock(false), Lock(false), Lock(false))
            defer { isLoaded.withLock { $0 = true } }
            let central = Central(radio: radio) { system in
                let powerUp = system.powerUp
                system.powerUp = { index throws(SystemCallError) in
                    hasBegun.withLock { $0 = true }
                    while !isLoaded.withLock(\.self) { sched_yield() }
                    try powerUp(index)
                }
            }
            let ready = time.task {
                try await central.ready(powerOn: true)
                isReady.withLock { $0 = true }
            }
            while !hasBegun.withLock(\.self), !Task.isCancelled { await Task.yield() }
            #expect(await central.adapterState == .poweredOff)
            #expect(!isReady.withLock { $0 })
            isLoaded.withLock { $0 = true }
            try await ready.value
            #expect(await central.adapterState == .poweredOn)
        }
    }

    /// The kernel's error for an adapter that it cannot switch on, and the hint.
    @Test(
        .row("W57"),
        arguments: [
            (EOPNOTSUPP, BLEError.Code.adapterDown, "btmgmt -i hci0 public-addr ADDRESS"), (EIO, .system, "dmesg"),
        ])
    func anAdapterThatCannotBeSwitchedOnReportsTheReason(errno: Int32, code: BLEError.Code, hint: String) async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.powerOff()
            let central = Central(radio: radio) { system in
                system.powerUp = { _ throws(SystemCallError) in throw SystemCallError(call: "HCIDEVUP", errno: errno) }
            }
            let error = await #expect(throws: BLEError.self) { try await central.ready(powerOn: true) }
            #expect(error?.code == code && error?.errorNumber == errno)
            #expect(error?.hint?.contains(hint) == true)
            expectNoFile(error?.hint)
        }
    }

    /// A daemon's log is where somebody looks for why reports are lost.
    @Test(.row("W61"), arguments: [false, true]) func anAdapterThatMayBeSuspendedIsLogged(isAuto: Bool) async throws {
        let log = KeptLog(from: .notice, detail: "power/control")
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var configuration = Configuration()
            configuration.logger = log.logger
            let central = Central(configuration, radio: radio) { system in
                system.mayBeSuspended = { name in isAuto && name == "hci0" }
            }
            try await central.ready()
            _ = try await central.collect(for: .seconds(1))
        }
        let lines = log.all.filter { $0.contains("may suspend the adapter") }
        #expect(lines.count == (isAuto ? 1 : 0))
        #expect(lines.allSatisfy { $0.hasSuffix(": auto") })
    }

    /// Without CAP_NET_RAW a link keeps the kernel's parameters: the error of its end names them, and what helps.
    @Test(.row("W42"), arguments: [true, false])
    func theEndOfALinkOfTheKernelNamesItsTimeout(mayCommand: Bool) async throws {
        try await run(.bluetooth5) { _, radio, central in
            await radio.setPermissions(mayCommand ? [.commands] : [])
            let device = await radio.add(.battery)
            let peer = try #require(await radio.id(of: device))
            let link = try await central.connect(peer)
            await radio.move(device, to: .outOfRange)
            #expect(await link.disconnected() == .supervisionTimeout)
            let error = await #expect(throws: BLEError.self) { _ = try await link.read(0x2A19) }
            #expect(error?.code == .disconnected)
            #expect(error?.hint?.hasPrefix("Move closer") == true)
            #expect(error?.hint?.contains("420 ms") == !mayCommand)
            #expect(error?.hint?.contains("cap_net_raw") == !mayCommand)
        }
    }

    /// After `HCIDEVRESET` the kernel sends no LE data until the adapter was switched off and on.
    @Test func noAdviceResetsTheAdapter() async throws {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPermissions([])
            let central = Central(radio: radio)
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(absent, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(error?.code == .timedOut)
            #expect(error?.hint?.contains("`hciconfig hci0 down && hciconfig hci0 up`") == true)
        }
        for (path, text) in try RepositoryFiles.sources(of: ["BareBLE", "BLECore", "BLELinux"]) {
            #expect(!text.contains("reset the adapter"), "\(path)")
        }
    }

    private func personality(_ name: String) throws -> VirtualPersonality {
        try #require(VirtualPersonality.all.first { $0.name == name }?.personality)
    }

    private func run(
        _ personality: VirtualPersonality, _ configuration: Configuration = Configuration(),
        _ body: @escaping @Sendable (VirtualTime, VirtualRadio, Central) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            await radio.add(.heartRate)
            try await body(time, radio, Central(configuration, radio: radio))
        }
    }
}
