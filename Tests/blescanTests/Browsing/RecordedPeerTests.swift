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

    /// As Android reads the name: the client has found the service, and no characteristic in it. The name comes in two
    /// parts, with other bytes after its end.
    @Test func aValueThatIsReadByItsTypeHasItsPlace() throws {
        let (peer, events) = Self.played([
            (true, "100100ffff0028"), (false, "1106" + "010007000018" + "0f00160000ff"),
            (true, "080f0016000328"), (false, "0907" + "1000121100" + "01ff"),
            (true, "0801000700002a"),
            (false, "0915" + "0300" + "48616e73204261747465727900000000000000"),
            (true, "0c03001300"), (false, "0d" + "00b12c0000e52c00000000"),
        ])
        #expect(peer.database.characteristics.map(\.valueHandle) == [0x0003, 0x0011])
        #expect(peer.database.characteristics.first?.declarationHandle == 0x0002)
        var screen = BrowseScreen(
            nil, isRecorded: true, in: ScreenArea(columns: 80, rows: 24, Browsed.plain), at: .zero)
        for event in events { screen.take(event, at: .zero) }
        #expect(screen.attributes.map(\.handle) == [0x0001, 0x0003, 0x000F, 0x0011])
        #expect(screen.name == "Hans Battery")
        let lines = screen.frame(at: .zero).map(\.text)
        #expect(lines[1].contains("Generic Access 1800"), "\(lines)")
        #expect(lines[2].contains("Device Name 2a00") && lines[2].contains("\"Hans Battery\""), "\(lines)")
        #expect(!lines.contains { $0.contains("attribute 0x0003") })
    }

    /// A descriptor, an attribute whose declaration would be the one of its service, and one in no known service.
    @Test func whatIsReadByItsTypeTakesNoPlaceOfAnotherAttribute() {
        let (peer, events) = Self.played([
            (true, "100100ffff0028"), (false, "1106" + "010007000018"),
            (true, "080100ffff002a"), (false, "0904" + "02004142" + "09004344"),
            (true, "080100ffff0229"), (false, "0904" + "05000100"),
        ])
        #expect(peer.database.characteristics.isEmpty)
        #expect(peer.database.descriptors.map(\.handle) == [0x0002, 0x0005, 0x0009])
        var screen = BrowseScreen(
            nil, isRecorded: true, in: ScreenArea(columns: 80, rows: 24, Browsed.plain), at: .zero)
        for event in events { screen.take(event, at: .zero) }
        let names = screen.attributes.map(\.name)
        #expect(names == ["Generic Access", "Device Name", "client configuration", "Device Name"])
    }

    @Test func anAttributeOfWhichOnlyTheHandleIsKnownIsInItsService() {
        let reading: [(isSent: Bool, hex: String)] = [(true, "0a0200"), (false, "0b4142")]
        let (_, events) = Self.played(Self.visit + reading)
        var screen = BrowseScreen(
            nil, isRecorded: true, in: ScreenArea(columns: 80, rows: 24, Browsed.plain), at: .zero)
        for event in events { screen.take(event, at: .zero) }
        #expect(screen.attributes.map(\.handle) == [0x0001, 0x0002, 0x0003, 0x0004, 0x0006, 0x0007])
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

    /// A recording may have any number of links.
    @Test func aFullListOfLinksTakesNoMore() {
        var links = RecordedLinks()
        let area = ScreenArea(columns: 80, rows: 24, Browsed.plain)
        for number in 0..<4097 {
            #expect(!links.hasMore)
            links.take([0x1B, 0x03, 0x00, 0xDD], isSent: false, ofLink: number, with: nil, in: area, at: .zero)
        }
        #expect(links.hasMore && links.entries.count == 4096 && links.place(of: .link(4096)) == nil)
        links.take([0x1B, 0x03, 0x00, 0xDE], isSent: false, ofLink: 4095, with: nil, in: area, at: .zero)
        #expect(links.entries.last?.packetCount == 2, "those that are kept go on")
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

    /// Three links whose peer's address was not recorded, and no advertisement.
    private static func linksAlone(canGoBack: Bool = true) -> (ScanBrowser, BootInstant) {
        let air = Air()
        var browser = ScanBrowser(air.screen, .recorded)
        browser.begin(at: air.now, canGoBack: canGoBack)
        for link in 0..<3 {
            browser.take(Hex.bytes("0a0300"), isSent: true, ofLink: link, with: nil, at: air.now)
            browser.take(Hex.bytes("0b484\(link)"), isSent: false, ofLink: link, with: nil, at: air.now)
        }
        browser.showRecorded(.link(0))
        return (browser, air.now)
    }

    private static func press(_ browser: inout ScanBrowser, _ now: BootInstant, _ keys: ScreenKey...) -> ScreenAction {
        var action = ScreenAction.none
        for key in keys { action = browser.press(key, at: now) }
        return action
    }

    @Test func eachLinkOfARecordingWithoutAdvertisementsIsReached() {
        var (browser, now) = Self.linksAlone()
        let first = Self.text(&browser, now)
        #expect(first.contains("link 1  recorded at 0:00") && first.contains("\"H@\""), "\(first)")
        #expect(Self.press(&browser, now, .escape) == .none)
        let list = browser.frame(at: now).map(\.text)
        #expect(list[0].hasPrefix("3 links  active scan at 0:00  hci0"), "\(list)")
        #expect(list[1].hasPrefix(" LINK PEER"), "\(list)")
        #expect(list[2].hasPrefix(">1    not recorded") && list[4].hasPrefix(" 3    not recorded"), "\(list)")
        #expect(list.last?.contains("Enter shows the link") == true)
        #expect(Self.press(&browser, now, .end, .enter) == .none)
        let last = Self.text(&browser, now)
        #expect(last.contains("link 3  recorded") && last.contains("\"HB\"") && !last.contains("\"H@\""), "\(last)")
        #expect(Self.press(&browser, now, .escape, .up, .character("c")) == .none)
        #expect(Self.text(&browser, now).contains("\"HA\""))
        #expect(Self.press(&browser, now, .escape, .escape) == .none)
        #expect(Self.text(&browser, now).contains("no device is heard at this time of the recording; q quits"))
        #expect(Self.press(&browser, now, .character("?")) == .none)
        #expect(Self.text(&browser, now).contains("show what was recorded of it"))
        #expect(Self.press(&browser, now, .character("x")) == .none)
        #expect(Self.text(&browser, now).contains("3 links"))
        #expect(Self.press(&browser, now, .character("q")) == .quit)
    }

    /// Whatever the size of the terminal.
    @Test func theListKeepsTheSize() {
        var (browser, now) = Self.linksAlone()
        _ = Self.press(&browser, now, .escape)
        for columns in [1, 2, 11, 30, 52, 80, 300] {
            for rows in [1, 2, 3, 4, 5, 24] {
                browser.resize(columns: columns, rows: rows)
                for keys in [[.end], [.escape], [.character("?")], [.character("x")]] as [[ScreenKey]] {
                    for key in keys { _ = browser.press(key, at: now) }
                    let frame = browser.frame(at: now)
                    #expect(frame.count == rows)
                    #expect(frame.allSatisfy { ScreenText.width($0.text) <= columns && $0.width <= columns })
                }
            }
        }
    }

    /// On the page of a link and in the list as in the table, but not where the keys are described.
    @Test func theKeysThatMoveInTheRecordingWorkOnALink() {
        var (browser, now) = Self.linksAlone()
        #expect(Self.text(&browser, now).contains("[ ] move"))
        #expect(Self.press(&browser, now, .character("]")) == .seek(.seconds(10)))
        #expect(Self.press(&browser, now, .character("?")) == .none)
        let keys = Self.text(&browser, now)
        #expect(keys.contains("[ ]  { }") && !keys.contains("write: type bytes"), "\(keys)")
        #expect(Self.press(&browser, now, .character("{")) == .none)
        #expect(Self.press(&browser, now, .character("{")) == .seek(.seconds(-60)))
        #expect(Self.press(&browser, now, .escape, .character("[")) == .seek(.seconds(-10)))
        let reason = "the recording does not come from a file, and cannot be read again"
        (browser, now) = Self.linksAlone(canGoBack: false)
        #expect(Self.press(&browser, now, .character("[")) == .none)
        #expect(Self.text(&browser, now).contains(reason))
        #expect(Self.press(&browser, now, .escape, .character("[")) == .none)
        #expect(Self.text(&browser, now).contains(reason))
        #expect(Self.press(&browser, now, .character("}")) == .seek(.seconds(60)))
    }

    /// A peer has one entry for all of its links, and links that no device of the table has are in the list too.
    @Test func theTableHasAListOfTheLinks() {
        var (browser, now) = Self.browser(.recorded)
        #expect(Self.press(&browser, now, .character("l")) == .none)
        #expect(Self.text(&browser, now).contains("so far the recording has no links"))
        for link in 0..<2 {
            browser.take(Hex.bytes("0a0300"), isSent: true, ofLink: link, with: Self.peer, at: now)
            browser.take(Hex.bytes("0b48524d"), isSent: false, ofLink: link, with: Self.peer, at: now)
        }
        browser.take(Hex.bytes("0a0300"), isSent: true, ofLink: 2, with: nil, at: now)
        #expect(Self.press(&browser, now, .character("l")) == .none)
        let list = browser.frame(at: now).map(\.text)
        #expect(list[0].hasPrefix("2 links"), "\(list)")
        #expect(list[2].hasPrefix(">1    \(Self.address)") && list[2].contains("      2        4"), "\(list)")
        #expect(Self.press(&browser, now, .enter) == .none)
        #expect(Self.text(&browser, now).contains("\"HRM\""))
        #expect(Self.press(&browser, now, .escape) == .none)
        #expect(Self.text(&browser, now).contains("2 links"), "back where it was chosen")
        #expect(Self.press(&browser, now, .escape) == .none)
        #expect(Self.text(&browser, now).contains("RSSI"))
        (browser, now) = Self.browser(.unavailable("--redact masks the addresses"))
        #expect(Self.press(&browser, now, .character("l")) == .none)
        #expect(Self.text(&browser, now).contains("--redact masks"))
        (browser, now) = Self.browser(.live)
        #expect(Self.press(&browser, now, .character("l")) == .none)
        #expect(Self.text(&browser, now).contains("RSSI"))
    }

    /// What was transferred before it is opened counts too.
    @Test func aLinkThatIsOpenedLaterHasAllOfItsValues() {
        var (browser, now) = Self.browser(.recorded)
        for number in 1...5 {
            browser.take([0x1B, 0x03, 0x00, 0xDD, UInt8(number)], isSent: false, ofLink: 0, with: Self.peer, at: now)
        }
        _ = Self.press(&browser, now, .down, .character("c"))
        let text = Self.text(&browser, now)
        #expect(text.contains("×5") && text.contains("dd05"), "\(text)")
    }

    @Test func theSelectedAttributeStaysAfterASeekBack() {
        var (browser, now) = Self.browser(.recorded)
        for handle in ["03", "05"] {
            browser.take(Hex.bytes("0a\(handle)00"), isSent: true, ofLink: 0, with: Self.peer, at: now)
            browser.take(Hex.bytes("0b4142"), isSent: false, ofLink: 0, with: Self.peer, at: now)
        }
        let earlier = browser
        _ = Self.press(&browser, now, .down, .character("c"), .end)
        #expect(browser.link?.selected == 0x0005)
        browser.resize(columns: 60, rows: 15)
        browser.show(earlier, at: now)
        #expect(browser.link?.selected == 0x0005)
        #expect(browser.frame(at: now).count == 15)
    }

    @Test func aRecordedLinkIsShownAndGoesOn() {
        var (browser, now) = Self.browser(.recorded)
        browser.take(Hex.bytes("0a0300"), isSent: true, ofLink: 0, with: Self.peer, at: now)
        browser.take(Hex.bytes("0b48524d"), isSent: false, ofLink: 0, with: Self.peer, at: now)
        _ = browser.press(.down, at: now)
        #expect(browser.press(.character("c"), at: now) == .none)
        #expect(Self.text(&browser, now).contains("recorded"))
        #expect(Self.text(&browser, now).contains("\"HRM\""))
        browser.take(Hex.bytes("1b03004142"), isSent: false, ofLink: 0, with: Self.peer, at: now)
        browser.take(Hex.bytes("1b03004344"), isSent: false, ofLink: 1, with: nil, at: now)
        #expect(Self.text(&browser, now).contains("\"AB\"") && !Self.text(&browser, now).contains("\"CD\""))
        #expect(browser.press(.escape, at: now) == .none)
        #expect(Self.text(&browser, now).contains("RSSI"))
    }

    /// It is opened while the recording is read again, from what was there before.
    @Test func afterASeekBackALinkHasNothingOfWhatFollows() {
        var (browser, now) = Self.browser(.recorded)
        let blank = browser
        browser.take(Hex.bytes("0a0300"), isSent: true, ofLink: 0, with: Self.peer, at: now)
        browser.take(Hex.bytes("0b48524d"), isSent: false, ofLink: 0, with: Self.peer, at: now)
        let earlier = browser
        browser.take(Hex.bytes("1b03004142"), isSent: false, ofLink: 0, with: Self.peer, at: now)
        _ = browser.press(.down, at: now)
        _ = browser.press(.character("c"), at: now)
        #expect(Self.text(&browser, now).contains("\"AB\""))
        browser.show(earlier, at: now)
        #expect(Self.text(&browser, now).contains("\"HRM\"") && !Self.text(&browser, now).contains("\"AB\""))
        browser.take(Hex.bytes("1b03004344"), isSent: false, ofLink: 0, with: Self.peer, at: now)
        #expect(Self.text(&browser, now).contains("\"CD\""))
        browser.show(blank, at: now)
        #expect(Self.text(&browser, now).contains("so far the recording has no link with this device"))
    }
}
