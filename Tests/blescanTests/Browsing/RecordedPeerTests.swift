import BLECapture
import BLECore
import BareBLE
import Foundation
import TestSupport
import Testing

@testable import blescan

/// What a recorded link shows of its peer.
@Suite struct RecordedPeerTests {
    /// The PDUs of a client that discovers a battery, as in the specification's layouts, and uses it.
    private static let visit: [(isSent: Bool, hex: String)] = [
        (true, "020502"), (false, "03f700"),
        // Read By Group Type: 0001-0003 is 1800, 0004-ffff is 180f.
        (true, "100100ffff0028"), (false, "1106010003000018" + "0400ffff0f18"),
        (true, "08010003000328"), (false, "090702000203" + "00002a"),
        (true, "080400ffff0328"), (false, "0907" + "05001a0600192a"),
        (true, "040700ffff"), (false, "050107000229"),
        (true, "0a0300"), (false, "0b48524d"),
        (true, "0a0600"), (false, "0b40"),
        (true, "1207000100"), (false, "13"),
        (false, "1b06003f"), (false, "1b06003e"),
        (true, "0a0700"), (false, "010a070002"),
    ]

    private static func played(_ pdus: [(isSent: Bool, hex: String)]) -> (peer: RecordedPeer, events: [LinkEvent]) {
        var peer = RecordedPeer()
        let events = pdus.flatMap { peer.take(Hex.bytes($0.hex), isSent: $0.isSent) }
        return (peer, events)
    }

    @Test func aRecordedLinkHasItsAttributesAndValues() {
        let (peer, events) = Self.played(Self.visit)
        #expect(peer.database.services.map(\.uuid) == [0x1800, 0x180F])
        #expect(peer.database.characteristics.map(\.valueHandle) == [0x0003, 0x0006])
        #expect(peer.database.characteristics.map(\.properties) == [.read, [.read, .write, .notify]])
        #expect(peer.database.descriptors.map(\.handle) == [0x0007])
        #expect(peer.database.characteristic(containing: 0x0007)?.uuid == 0x2A19)
        var screen = BrowseScreen(
            nil, isRecorded: true, in: ScreenArea(columns: 80, rows: 24, Browsed.plain), at: .zero)
        for event in events { screen.take(event, at: .zero) }
        #expect(screen.name == "HRM")
        #expect(screen.value(of: 0x0006).count == 2)
        guard case .value([0x3E])? = screen.value(of: 0x0006).reading else {
            Issue.record("the last one is shown")
            return
        }
        guard case .refused(let error)? = screen.value(of: 0x0007).reading else {
            Issue.record("the refusal is shown")
            return
        }
        #expect(error.attError == .readNotPermitted)
    }

    @Test func partsOfAValueAreJoined() {
        let (_, events) = Self.played([
            (true, "0a0300"), (false, "0b616263"), (true, "0c03000300"), (false, "0d6465"),
            // A part that does not follow what is known.
            (true, "0c03000900"), (false, "0d66"),
        ])
        guard events.count == 2, case .value(0x0003, let bytes, .read) = events[1] else {
            Issue.record("\(events)")
            return
        }
        #expect(String(decoding: bytes, as: UTF8.self) == "abcde")
    }

    /// The peer asks as well: its requests, and the responses to them, end no request of the client.
    @Test func aLinkWithBothRolesShowsWhatTheClientReads() {
        let (_, events) = Self.played([(true, "0a0300"), (false, "020502"), (true, "03f700"), (false, "0b616263")])
        guard case .value(0x0003, [0x61, 0x62, 0x63], .read)? = events.last else {
            Issue.record("\(events)")
            return
        }
    }

    /// Each service claims all handles after its first one.
    @Test func servicesThatOverlapEndBeforeTheNextOne() {
        let (peer, _) = Self.played([
            (true, "100100ffff0028"), (false, "1106" + "0100ffff0018" + "0200ffff0f18" + "0500ffff0a18"),
            (true, "080100ffff0328"), (false, "0907" + "03000204002a19"),
        ])
        #expect(peer.database.services.map(\.handles) == [0x0001...0x0001, 0x0002...0x0004, 0x0005...0xFFFF])
        #expect(peer.database.service(containing: 0x0004)?.uuid == 0x180F)
    }

    /// Two declarations have the value handle 0005, a third one 0007.
    @Test func theArrowPassesDeclarationsWithTheSameValueHandle() {
        let (_, events) = Self.played([
            (true, "100100ffff0028"), (false, "1106" + "0100ffff0f18"),
            (true, "080100ffff0328"), (false, "0907" + "0200020500002a" + "0400020500012a" + "0600020700192a"),
        ])
        var screen = BrowseScreen(
            nil, isRecorded: true, in: ScreenArea(columns: 80, rows: 24, Browsed.plain), at: .zero)
        for event in events { screen.take(event, at: .zero) }
        #expect(screen.attributes.map(\.handle) == [0x0001, 0x0005, 0x0007])
        _ = screen.press(.home, at: .zero)
        for _ in 0..<2 { _ = screen.press(.down, at: .zero) }
        #expect(screen.selected == 0x0007)
    }

    /// Building the database takes long, and a recording may have any number of discoveries.
    @Test func aDiscoveryWithoutNewsIsNoEvent() {
        func databases(_ events: [LinkEvent]) -> Int {
            events.count { event in
                if case .discovered = event { true } else { false }
            }
        }
        var (peer, events) = Self.played(Self.visit)
        #expect(databases(events) == 4)
        events = Self.visit.flatMap { peer.take(Hex.bytes($0.hex), isSent: $0.isSent) }
        #expect(databases(events) == 0)
        // The value of the battery is at another handle.
        events = peer.take(Hex.bytes("080400ffff0328"), isSent: true)
        events += peer.take(Hex.bytes("090705001a0700192a"), isSent: false)
        #expect(databases(events) == 1)
        #expect(peer.database.characteristics.map(\.valueHandle) == [0x0003, 0x0007])
    }

    @Test func aFullListOfAttributesTakesNoMore() {
        func attributes(_ handles: ClosedRange<Int>) -> [UInt8] {
            let header: [UInt8] = [0x05, 0x01]
            return header + handles.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8), 0x34, 0x12] as [UInt8] }
        }
        let limit = GATTDatabase.attributeLimit
        var peer = RecordedPeer()
        for (handles, isNews) in [(1...limit, true), (limit + 1...limit + 10, false)] {
            _ = peer.take(Hex.bytes("040100ffff"), isSent: true)
            #expect(peer.take(attributes(handles), isSent: false).isEmpty != isNews)
        }
        #expect(peer.database.descriptors.count == limit)
    }

    @Test func anyBytesAreTolerated() {
        for pdu in Self.visit {
            let bytes = Hex.bytes(pdu.hex)
            for length in 0..<bytes.count {
                var (peer, _) = Self.played(Self.visit)
                for isSent in [true, false] { _ = peer.take(Array(bytes.prefix(length)), isSent: isSent) }
                _ = peer.take(bytes, isSent: !pdu.isSent)
                #expect(peer.database.services.count <= 4)
            }
        }
    }

    /// The links of conformance tests, which nobody here has made.
    @Test func dialoguesOfConformanceTestsAreReplayed() throws {
        let folder = RepositoryFiles.root.appending(path: "Fixtures/att").path
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".dialogue") }
        #expect(!names.isEmpty)
        for name in names {
            let dialogue = try Dialogue(try RepositoryFiles.text("Fixtures/att/\(name)"))
            var (peer, screen) = (
                RecordedPeer(),
                BrowseScreen(nil, isRecorded: true, in: ScreenArea(columns: 80, rows: 24, Browsed.plain), at: .zero)
            )
            for step in dialogue.steps {
                switch step.event {
                case .sent(let pdu): for event in peer.take(pdu, isSent: true) { screen.take(event, at: .zero) }
                case .received(let pdu): for event in peer.take(pdu, isSent: false) { screen.take(event, at: .zero) }
                case .wait, .linkLost: continue
                }
            }
            #expect(screen.frame(at: .zero).count == 24, "\(name)")
        }
    }
}

/// The live table with the screen of a link.
@Suite struct ScanBrowserTests {
    private static let address = "C3:5A:19:0B:7E:21"
    private static let peer = PeerID(address: BluetoothAddress(rawValue: 0xC35A_190B_7E21), type: .random)

    private static func browser(_ links: ScanBrowser.Links, isConnectable: Bool = true) -> (ScanBrowser, BootInstant) {
        let air = Air()
        air.hear(address, -50, Air.named("HRM"), isConnectable: isConnectable)
        air.pass(.seconds(2))
        return (ScanBrowser(air.screen, links), air.now)
    }

    private static func text(_ browser: inout ScanBrowser, _ now: BootInstant) -> String {
        browser.frame(at: now).map(\.text).joined(separator: "\n")
    }

    @Test func enterAndCConnect() {
        var (browser, now) = Self.browser(.live)
        #expect(browser.press(.enter, at: now) == .none)
        #expect(Self.text(&browser, now).contains("c connect"))
        #expect(browser.press(.character("c"), at: now) == .link(.connect(Browsed.peer)))
        browser.take(.connected(mtu: 247), at: now)
        browser.take(.discovered(Browsed.belt), at: now)
        #expect(Self.text(&browser, now).contains("Heart Rate Measurement"))
        // The table goes on.
        browser.timePassed(at: now + .seconds(1))
        browser.resize(columns: 60, rows: 15)
        #expect(browser.frame(at: now).count == 15)
        #expect(browser.press(.character("d"), at: now) == .link(.disconnect))
        #expect(Self.text(&browser, now).contains("ADVERTISEMENT"), "the page of the device is back")
        #expect(browser.press(.character("q"), at: now) == .quit)
    }

    /// Values of a link are selected to be copied, which the terminal does.
    @Test func theMouseIsTheTablesAlone() {
        var (browser, now) = Self.browser(.live)
        #expect(browser.press(.character("m"), at: now) == .none)
        #expect(browser.usesMouse)
        #expect(browser.press(.down, at: now) == .none)
        #expect(browser.press(.character("c"), at: now) == .link(.connect(Browsed.peer)))
        #expect(!browser.usesMouse)
        #expect(browser.press(.character("q"), at: now) == .link(.disconnect))
        #expect(browser.usesMouse)
    }

    @Test func aDeviceThatCannotBeConnectedToIsReported() {
        for (links, isConnectable, words) in [
            (ScanBrowser.Links.live, false, "not connectable"), (.recorded, true, "no link with this device"),
            (.unavailable("--redact masks the addresses"), true, "--redact masks"),
        ] {
            var (browser, now) = Self.browser(links, isConnectable: isConnectable)
            _ = browser.press(.enter, at: now)
            #expect(browser.press(.character("c"), at: now) == .none)
            #expect(Self.text(&browser, now).contains(words))
            #expect(browser.press(.down, at: now) == .none)
            #expect(!Self.text(&browser, now).contains(words), "until the next key")
        }
    }

    @Test func aRecordedLinkIsShownAndGoesOn() {
        var (browser, now) = Self.browser(.recorded)
        browser.take(Hex.bytes("0a0300"), isSent: true, ofLinkWith: Self.peer, at: now)
        browser.take(Hex.bytes("0b48524d"), isSent: false, ofLinkWith: Self.peer, at: now)
        _ = browser.press(.down, at: now)
        #expect(browser.press(.character("c"), at: now) == .none)
        #expect(Self.text(&browser, now).contains("recorded"))
        #expect(Self.text(&browser, now).contains("\"HRM\""))
        browser.take(Hex.bytes("1b03004142"), isSent: false, ofLinkWith: Self.peer, at: now)
        browser.take(Hex.bytes("1b03004344"), isSent: false, ofLinkWith: nil, at: now)
        #expect(Self.text(&browser, now).contains("\"AB\"") && !Self.text(&browser, now).contains("\"CD\""))
        #expect(browser.press(.escape, at: now) == .none)
        #expect(Self.text(&browser, now).contains("RSSI"))
    }

    /// It is opened while the recording is read again, from what was there before.
    @Test func afterASeekBackALinkHasNothingOfWhatFollows() {
        var (browser, now) = Self.browser(.recorded)
        let blank = browser
        browser.take(Hex.bytes("0a0300"), isSent: true, ofLinkWith: Self.peer, at: now)
        browser.take(Hex.bytes("0b48524d"), isSent: false, ofLinkWith: Self.peer, at: now)
        let earlier = browser
        browser.take(Hex.bytes("1b03004142"), isSent: false, ofLinkWith: Self.peer, at: now)
        _ = browser.press(.down, at: now)
        _ = browser.press(.character("c"), at: now)
        #expect(Self.text(&browser, now).contains("\"AB\""))
        browser.show(earlier, at: now)
        #expect(Self.text(&browser, now).contains("\"HRM\"") && !Self.text(&browser, now).contains("\"AB\""))
        browser.take(Hex.bytes("1b03004344"), isSent: false, ofLinkWith: Self.peer, at: now)
        #expect(Self.text(&browser, now).contains("\"CD\""))
        browser.show(blank, at: now)
        #expect(Self.text(&browser, now).contains("so far the recording has no link with this device"))
    }
}
