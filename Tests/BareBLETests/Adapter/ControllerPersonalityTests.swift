import BLECore
import BareBLE
import BareBLETestKit
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
            "zephyrUSB",
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
            let lease = try await local.advertise([.localName("Legacy")])
            #expect(await radio.advertisements().count == 1)
            await lease.stop()
            await local.stop()
            // After a power cycle it has no set of its own any more.
            await radio.powerOff()
            await radio.powerOn()
            #expect(try await central.collect(.services(0x180D), for: .seconds(5), count: 1).count == 1)
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
    @Test(.row("W72")) func reportsComeAfterAResetThatNobodySaw() async throws {
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
            let lease = try await other.advertise([.localName("Other")])
            async let link = central.connect(peer, ConnectOptions(timeout: .seconds(8)))
            try await time.clock.sleep(for: .milliseconds(400))
            await lease.stop()
            let device = try await link
            #expect(try await device.read(0x2A38) == [1])
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
            await #expect(throws: BLEError(expected, during: "", because: "")) {
                _ = try await central.connect(third, ConnectOptions(timeout: .seconds(5)))
            }
            await links[0].disconnect()
            let late = try await central.connect(third, ConnectOptions(timeout: .seconds(5)))
            await late.disconnect()
        }
    }

    /// A controller that goes deaf is set up again after 90 s; the milder ones receive again then.
    @Test(.row("W29", "W32"), arguments: [VirtualPersonality.Recovery.rescan, .eventMask])
    func aDeafControllerIsSetUpAgain(recovery: VirtualPersonality.Recovery) async throws {
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
    @Test(.row("W06")) func aControllerThatSaysTooLittleAdvertises() async throws {
        try await run(personality("wcn3990")) { _, radio, central in
            let local = LocalPeripheral(on: central)
            let lease = try await local.advertise([.localName("Short")])
            #expect(await radio.advertisements().count == 1)
            await lease.stop()
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

    private func personality(_ name: String) throws -> VirtualPersonality {
        try #require(VirtualPersonality.all.first { $0.name == name }?.personality)
    }

    private func run(
        _ personality: VirtualPersonality,
        _ body: @escaping @Sendable (VirtualTime, VirtualRadio, Central) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            await radio.add(.heartRate)
            try await body(time, radio, Central(radio: radio))
        }
    }
}
