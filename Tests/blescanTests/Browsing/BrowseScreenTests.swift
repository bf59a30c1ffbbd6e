import ArgumentParser
import BLECore
import BareBLE
import BareBLETestKit
import Testing

@testable import blescan

/// A screen of attributes, and the keys that are pressed on it.
struct Browsed {
    static let plain = ScreenLook(isColoured: false, isUnicode: true)
    static let peer = PeerArgument.address(BluetoothAddress(rawValue: 0xC35A_190B_7E21), .random)

    /// A belt: the handles are those of its services' order.
    static let belt = GATTDatabase(
        services: [
            GATTService(handles: 0x0001...0x0003, uuid: 0x1800), GATTService(handles: 0x0004...0x000B, uuid: 0x180D),
            GATTService(handles: 0x000C...0x000F, uuid: 0x180F),
            GATTService(handles: 0x0010...0xFFFF, uuid: BluetoothUUID("6e400001-b5a3-f393-e0a9-e50e24dcca9e")),
        ],
        characteristics: [
            characteristic(0x0003, [.read], 0x2A00), characteristic(0x0006, [.notify], 0x2A37),
            characteristic(0x0009, [.read], 0x2A38), characteristic(0x000B, [.write], 0x2A39),
            characteristic(0x000E, [.read, .notify], 0x2A19),
            characteristic(
                0x0012, [.write, .writeWithoutResponse], BluetoothUUID("6e400002-b5a3-f393-e0a9-e50e24dcca9e")),
            characteristic(0x0014, [.writeWithoutResponse, .indicate], 0xFFF1),
        ],
        descriptors: [
            GATTDescriptor(handle: 0x0007, uuid: 0x2902), GATTDescriptor(handle: 0x000F, uuid: 0x2902),
        ])

    private static func characteristic(
        _ handle: AttributeHandle, _ properties: CharacteristicProperties, _ uuid: BluetoothUUID
    ) -> GATTCharacteristic {
        GATTCharacteristic(
            declarationHandle: handle - 1, valueHandle: handle,
            endHandle: [0x0006, 0x000E].contains(handle) ? handle + 1 : handle, properties: properties, uuid: uuid)
    }

    private(set) var screen: BrowseScreen
    private(set) var now = BootInstant(nanoseconds: 1_000_000_000_000)

    init(
        _ peer: PeerArgument? = Self.peer, isRecorded: Bool = false, linkOptions: [String] = [],
        _ look: ScreenLook = Self.plain, columns: Int = 80, rows: Int = 24
    ) {
        screen = BrowseScreen(
            peer, isRecorded: isRecorded, linkOptions: linkOptions,
            in: ScreenArea(columns: columns, rows: rows, look), at: now)
    }

    /// The belt with its first values.
    static func connected(_ look: ScreenLook = Self.plain, columns: Int = 80, rows: Int = 24) -> Browsed {
        var browsed = Browsed(Browsed.peer, look, columns: columns, rows: rows)
        browsed.take(.connected(mtu: 247), .discovered(belt))
        browsed.take(
            .value(0x0003, Array("Virtual HRM".utf8), .read), .value(0x0007, [0, 0], .read),
            .value(0x0009, [1], .read), .value(0x000E, [87], .read),
            .unreadable(0x000F, BLEError(.refusedByPeer, during: "read", because: "refused: read not permitted")))
        return browsed
    }

    mutating func take(_ events: LinkEvent...) {
        for event in events { screen.take(event, at: now) }
    }

    mutating func pass(_ duration: Duration) { now = now + duration }

    @discardableResult
    mutating func press(_ keys: ScreenKey...) -> ScreenAction {
        var action = ScreenAction.none
        for key in keys { action = screen.press(key, at: now) }
        return action
    }

    mutating func type(_ text: String) {
        for scalar in text.unicodeScalars { press(.character(scalar)) }
    }

    /// Selects an attribute.
    mutating func select(_ handle: AttributeHandle) {
        press(.home)
        for _ in 0..<100 where screen.selected != handle { press(.down) }
    }

    mutating func resize(columns: Int, rows: Int) { screen.resize(columns: columns, rows: rows) }

    mutating func frame() -> [ScreenLine] { screen.frame(at: now) }

    mutating func lines() -> [String] {
        frame().map { line in
            var text = line.text
            while text.hasSuffix(" ") { text.removeLast() }
            return text
        }
    }

    mutating func text() -> String { lines().joined(separator: "\n") }
}

/// The screen of a peer's attributes as files that people can read, and what its keys do.
@Suite struct BrowseScreenTests {
    @Test(arguments: [(40, 20), (80, 24), (120, 30), (200, 50)]) func aVisitFitsEveryTerminal(
        _ columns: Int, _ rows: Int
    ) throws {
        var browsed = Browsed(columns: columns, rows: rows)
        var text = ""
        func add(_ title: String, _ browsed: inout Browsed) {
            text += "== \(title)\n" + browsed.text() + "\n"
        }
        browsed.pass(.seconds(3))
        add("connecting", &browsed)
        browsed = .connected(columns: columns, rows: rows)
        add("connected", &browsed)
        browsed.select(0x0006)
        #expect(browsed.press(.character("s")) == .link(.subscribe(0x0006)))
        browsed.take(.subscribed(0x0006))
        for rate in 70..<75 as Range<UInt8> { browsed.take(.value(0x0006, [0x16, rate, 0x41, 0x03], .sent)) }
        add("subscribed", &browsed)
        browsed.select(0x0012)
        browsed.press(.character("w"))
        browsed.type("--text 'hi there'")
        add("typing", &browsed)
        browsed.press(.enter)
        browsed.take(.written(0x0012, byteCount: 8, .withResponse))
        add("written", &browsed)
        browsed.take(
            .failed(
                0x0012,
                Failure(message: "could not write 0x0012: the peer refuses it", hint: "Try again.", status: .refused)))
        add("refused", &browsed)
        browsed.press(.character("?"))
        add("keys", &browsed)
        browsed.press(.escape)
        browsed.take(
            .ended(
                Failure(
                    message: "could not keep the link (C3:5A:19:0B:7E:21/random): the peer ended the link",
                    hint: "c connects again.", status: .linkLost)))
        add("lost", &browsed)
        try Golden.expect(text, matches: "browse-\(columns).txt")
    }

    /// The numbers of the former attribute are no numbers of the one that has its handle now.
    @Test func anotherAttributeAtAHandleHasNoValueYet() {
        var browsed = Browsed.connected()
        for rate in 70..<75 as Range<UInt8> { browsed.take(.value(0x0006, [0x16, rate, 0x41, 0x03], .sent)) }
        browsed.take(.ended(nil))
        browsed.press(.character("c"))
        let belt = Browsed.belt
        browsed.take(
            .connected(mtu: 247),
            .discovered(
                GATTDatabase(
                    services: belt.services,
                    characteristics: belt.characteristics.map { characteristic in
                        GATTCharacteristic(
                            declarationHandle: characteristic.declarationHandle,
                            valueHandle: characteristic.valueHandle, endHandle: characteristic.endHandle,
                            properties: characteristic.properties,
                            uuid: characteristic.valueHandle == 0x0006 ? 0x2A19 : characteristic.uuid)
                    }, descriptors: belt.descriptors)))
        let (changed, other) = (browsed.screen.value(of: 0x0006), browsed.screen.value(of: 0x000E))
        let (isUnknown, isKept) = (changed.reading == nil, other.reading != nil)
        #expect(isUnknown && changed.count == 0)
        #expect(isKept, "the others stay until they are read")
    }

    /// As far as there is room; of another link nothing is known yet.
    @Test func theSignalOfTheLinkIsShown() {
        var browsed = Browsed.connected()
        browsed.take(.strength(-60), .strength(-50))
        #expect(browsed.lines()[0].contains("  connected  MTU 247  -50 dBm ▅▆  "), "\(browsed.lines()[0])")
        browsed.resize(columns: 40, rows: 20)
        #expect(browsed.lines()[0].contains("  connected  -50 dBm"), "\(browsed.lines()[0])")
        browsed.resize(columns: 200, rows: 20)
        browsed.take(.strength(-100), .strength(-36))
        for _ in 0..<20 { browsed.take(.strength(-36)) }
        #expect(browsed.lines()[0].contains("-36 dBm ████████  "), "\(browsed.lines()[0])")
        browsed.take(.ended(nil))
        #expect(!browsed.lines()[0].contains("dBm"))
        browsed.take(.connected(mtu: 23), .discovered(Browsed.belt))
        #expect(!browsed.lines()[0].contains("dBm"))
    }

    /// What is folded stays so for the next link, and the selected attribute is always shown.
    @Test func servicesAreFolded() {
        var browsed = Browsed.connected()
        func isShown() -> Bool {
            let lines = browsed.lines()
            return lines.contains { $0.dropFirst(2).hasPrefix("  Battery Level 2a19") }
        }
        #expect(isShown())
        browsed.select(0x000E)
        browsed.press(.left)
        #expect(browsed.screen.selected == 0x000C)
        let folded = browsed.lines()
        #expect(folded.contains { $0.hasPrefix(">▸Battery 180f") }, "\(folded)")
        #expect(!isShown())
        browsed.press(.down)
        #expect(browsed.screen.selected == 0x0010, "the next service")
        browsed.press(.up, .right)
        #expect(browsed.screen.selected == 0x000C)
        #expect(isShown())
        browsed.press(.left)
        browsed.take(.ended(nil), .connected(mtu: 23), .discovered(Browsed.belt))
        #expect(!isShown())
        browsed.take(.discovered(GATTDatabase()))
        #expect(browsed.screen.selected == nil)
    }

    /// The battery level is what users look for in the Battery service.
    @Test(arguments: [40, 80, 200]) func aFoldedServiceHasItsOnlyReadableValue(_ columns: Int) {
        var browsed = Browsed.connected(columns: columns)
        func row(_ title: String) -> String { browsed.lines().first { $0.dropFirst(2).hasPrefix(title) } ?? "" }
        let unfolded = row("  Battery Level")
        browsed.select(0x000E)
        browsed.press(.left)
        let folded = row("Battery 180f")
        #expect(folded.hasPrefix(">▸Battery 180f  ") && folded.hasSuffix("  87 %"), "\(folded)")
        #expect(folded.count == unfolded.count, "in the column of the values")
        browsed.take(.value(0x000E, [86], .sent))
        #expect(row("Battery 180f").hasSuffix("  86 %"))
        browsed.take(
            .unreadable(0x000E, BLEError(.refusedByPeer, during: "read", because: "refused: read not permitted")))
        #expect(row("Battery 180f").contains("  ! refused: read"))
        browsed.press(.right)
        let again = row("Battery 180f")
        #expect(again == "> Battery 180f", "its characteristics are shown")
        browsed.select(0x0012)
        browsed.press(.left)
        #expect(row("Nordic UART 6e4").hasPrefix(">▸Nordic UART 6e400001-b5a3-f393-e0a9-e"), "nothing can be read")
    }

    @Test func aFoldedServiceHasNoneOfSeveralValues() {
        let readable: [(handle: AttributeHandle, uuid: BluetoothUUID)] = [
            (0x0003, 0x2A24), (0x0005, 0x2A25), (0x0008, 0x2A19),
        ]
        let vendor = BluetoothUUID("6e400001-b5a3-f393-e0a9-e50e24dcca9e")
        let database = GATTDatabase(
            services: [
                GATTService(handles: 0x0001...0x0005, uuid: 0x180A),
                GATTService(handles: 0x0006...0xFFFF, uuid: vendor),
            ],
            characteristics: readable.map { row in
                GATTCharacteristic(
                    declarationHandle: row.handle - 1, valueHandle: row.handle, endHandle: row.handle,
                    properties: [.read], uuid: row.uuid)
            })
        var browsed = Browsed(columns: 40)
        browsed.take(
            .connected(mtu: 23), .discovered(database), .value(0x0003, Array("M1".utf8), .read),
            .value(0x0005, Array("77".utf8), .read))
        browsed.select(0x0003)
        browsed.press(.left)
        browsed.select(0x0008)
        browsed.press(.left)
        let unread = browsed.lines()
        #expect(unread[1] == " ▸Device Information 180a")
        #expect(unread[2] == ">▸Nordic UART 6e400001-b5a3-f393-e0a9-e…", "it was not read yet")
        browsed.take(.value(0x0008, [87], .read))
        let read = browsed.lines()
        #expect(read[2] == ">▸Nordic UART 6e400001-b5a3-f393-…  87 %", "the value stays whole")
    }

    /// Below 100 columns the value itself has the room.
    @Test func theRowOfAWideScreenHasTheNumbersAndTheAge() {
        var browsed = Browsed.connected(columns: 100)
        func row(_ title: String) -> String { browsed.lines().first { $0.contains(title) } ?? "" }
        #expect(row("Battery Level").hasSuffix("  RN 87 %"), "the peer has sent nothing")
        browsed.take(.subscribed(0x000E), .value(0x000E, [85], .sent), .value(0x000E, [86], .sent))
        browsed.pass(.seconds(3))
        let battery = row("Battery Level")
        #expect(battery.hasSuffix("  █▁▅         3s ago ×2"), "\(battery)")
        #expect(ScreenText.width(battery) == 100)
        #expect(row("Body Sensor").hasSuffix("  chest"), "it is not sent")
        browsed.take(.ended(nil))
        browsed.pass(.seconds(97))
        #expect(row("Battery Level").hasSuffix("  █▁▅        1min ago ×2"), "it stays")
        browsed.resize(columns: 99, rows: 24)
        let narrow = row("Battery Level")
        #expect(narrow.hasSuffix("  ×2") && !narrow.contains("ago") && !narrow.contains("▁"), "\(narrow)")
    }

    /// The values of a recording come all at once: none has an age.
    @Test func theRowOfARecordingHasNoAge() {
        var browsed = Browsed(isRecorded: true, columns: 120)
        browsed.take(.discovered(Browsed.belt), .value(0x000E, [85], .sent), .value(0x000E, [86], .sent))
        let row = browsed.lines().first { $0.contains("Battery Level") } ?? ""
        #expect(row.hasSuffix("  ▁█         ×2"), "\(row)")
    }

    /// A measurement that fails must not leave the former strength on the screen.
    @Test func aSignalThatIsUnknownIsShownAsSuch() {
        var browsed = Browsed.connected()
        browsed.take(.strength(nil))
        #expect(!browsed.lines()[0].contains("dBm"), "none was ever known")
        browsed.take(.strength(-60), .strength(nil))
        #expect(browsed.lines()[0].contains("  connected  MTU 247  ? dBm ▅"), "\(browsed.lines()[0])")
        browsed.resize(columns: 40, rows: 20)
        #expect(browsed.lines()[0].contains("  connected  ? dBm"), "\(browsed.lines()[0])")
        browsed.resize(columns: 80, rows: 20)
        browsed.take(.strength(-50))
        #expect(browsed.lines()[0].contains("  connected  MTU 247  -50 dBm ▅ ▆  "), "\(browsed.lines()[0])")
    }

    /// A battery level that can be read, written and sent.
    private static let writable = GATTDatabase(
        services: [GATTService(handles: 0x0001...0xFFFF, uuid: 0x180F)],
        characteristics: [
            GATTCharacteristic(
                declarationHandle: 0x0002, valueHandle: 0x0003, endHandle: 0x0004,
                properties: [.read, .write, .notify], uuid: 0x2A19)
        ], descriptors: [GATTDescriptor(handle: 0x0004, uuid: 0x2902)])

    /// The level is 87 %, and a write of 50 has begun.
    private static func writing() -> Browsed {
        var browsed = Browsed()
        browsed.take(
            .connected(mtu: 247), .discovered(writable), .value(0x0003, [87], .read), .value(0x0004, [0, 0], .read))
        browsed.select(0x0003)
        browsed.press(.character("w"))
        browsed.type("32")
        #expect(browsed.press(.enter) == .link(.write(0x0003, [50], .withResponse)))
        return browsed
    }

    private static func row(_ browsed: inout Browsed) -> String {
        browsed.lines().first { $0.contains("Battery Level 2a19") } ?? ""
    }

    /// What the peer made of the write is not known.
    @Test func aValueFromBeforeAWriteIsMarked() {
        var browsed = Self.writing()
        browsed.take(.written(0x0003, byteCount: 1, .withResponse))
        #expect(Self.row(&browsed).hasSuffix("was 87 %"), "\(Self.row(&browsed))")
        #expect(browsed.text().contains("from before the last write; r reads it again"))
        #expect(browsed.press(.character("r")) == .link(.read(0x0003)))
        browsed.take(.value(0x0003, [50], .read))
        #expect(Self.row(&browsed).hasSuffix(" 50 %") && !browsed.text().contains("from before"))
    }

    @Test func aValueThatIsSentAfterAWriteIsNew() {
        var browsed = Self.writing()
        browsed.take(.written(0x0003, byteCount: 1, .withResponse), .value(0x0003, [50], .sent))
        #expect(!browsed.text().contains("was 87 %") && !browsed.text().contains("from before"))
        // Some peers send it before their response.
        browsed = Self.writing()
        browsed.take(.value(0x0003, [50], .sent), .written(0x0003, byteCount: 1, .withResponse))
        #expect(!browsed.text().contains("was 50 %") && !browsed.text().contains("from before"))
        browsed.press(.character("w"))
        browsed.type("31")
        browsed.press(.enter)
        browsed.take(.written(0x0003, byteCount: 1, .withResponse))
        #expect(Self.row(&browsed).contains("was 50 %"), "after another write it is a former one")
    }

    /// A refused write has changed nothing; one without a response, or that the link has cut off, may have.
    @Test func aWriteThatFailsOrIsCutOff() {
        var browsed = Self.writing()
        browsed.take(.failed(0x0003, Failure(message: "no", status: .refused)))
        #expect(Self.row(&browsed).hasSuffix(" 87 %") && !browsed.text().contains("was 87 %"))
        browsed = Self.writing()
        browsed.take(.failed(0x0003, Failure(message: "late", status: .timedOut), mayBeCarriedOut: true))
        #expect(Self.row(&browsed).hasSuffix("was 87 %"))
        #expect(browsed.text().contains("from before the last write; r reads it again"))
        browsed.press(.character("r"))
        browsed.take(.value(0x0003, [87], .read))
        browsed.press(.character("r"))
        browsed.take(.failed(0x0003, Failure(message: "late", status: .timedOut), mayBeCarriedOut: true))
        #expect(Self.row(&browsed).hasSuffix(" 87 %") && !browsed.text().contains("was 87 %"), "a read changes nothing")
        browsed = Self.writing()
        browsed.take(.ended(nil))
        #expect(Self.row(&browsed).hasSuffix("was 87 %"))
        #expect(browsed.text().contains("from before the last write") && !browsed.text().contains("r reads it"))
    }

    @Test func aConfigurationIsWrittenAndMarked() {
        var browsed = Browsed.connected()
        browsed.select(0x0007)
        #expect(browsed.lines().last == "r read · w write · y copy · x hex · d back · ? keys")
        browsed.press(.character("w"))
        browsed.type("0100")
        #expect(browsed.press(.enter) == .link(.write(0x0007, [1, 0], .withResponse)))
        browsed.take(.written(0x0007, byteCount: 2, .withResponse))
        #expect(browsed.lines().contains { $0.hasSuffix("was off") })
        browsed.take(.value(0x0007, [1, 0], .read))
        #expect(browsed.lines().contains { $0.hasSuffix("notifications on") })
        browsed.take(.value(0x0007, [0, 0], .read))
        #expect(!browsed.text().contains("mean"), "its bits are no numbers")
    }

    /// A peer that responds in several parts sends them one after the other.
    @Test func theLastValuesWithoutANumberAreListed() {
        var browsed = Browsed.connected()
        browsed.select(0x0014)
        browsed.take(.subscribed(0x0014))
        for number in 1...5 as ClosedRange<UInt8> { browsed.take(.value(0x0014, [0xDD, number], .sent)) }
        let lines = browsed.lines()
        let place = lines.firstIndex(of: "        dd05") ?? 0
        #expect(lines[place...].prefix(3) == ["        dd05", "     ×4 dd04", "     ×3 dd03"], "\(lines)")
        #expect(!browsed.text().contains("dd02"))
        // What is read is none of them.
        browsed.take(.value(0x0014, [0xEE, 0xEE], .read))
        #expect(browsed.lines().contains("     ×5 dd05"))
        browsed.resize(columns: 80, rows: 12)
        #expect(browsed.lines().contains { $0.hasPrefix("0x0014  fff1") }, "the attribute is named in less room too")
    }

    @Test func theLastWriteIsRepeated() {
        var browsed = Browsed.connected()
        browsed.select(0x0012)
        browsed.press(.character("w"), .up)
        #expect(browsed.screen.typed == "", "there is none")
        browsed.type("--text hi")
        browsed.press(.enter)
        browsed.take(.written(0x0012, byteCount: 2, .withResponse))
        browsed.press(.character("w"))
        #expect(browsed.lines().last == "write 0x0012: ▏  Enter writes · Up repeats the last one · Esc cancels")
        browsed.type("05")
        browsed.press(.up)
        #expect(browsed.screen.typed == "--text hi")
        #expect(browsed.press(.enter) == .link(.write(0x0012, Array("hi".utf8), .withResponse)))
        browsed.select(0x0014)
        browsed.press(.character("w"), .up)
        #expect(browsed.screen.typed == "", "another attribute")
    }

    /// The response to a write is what the peer sends: the command for a shell waits for it.
    @Test func aWriteBesideASubscriptionIsOneCommand() {
        var browsed = Browsed(linkOptions: ["--adapter", "hci1"])
        browsed.take(.connected(mtu: 23), .discovered(Browsed.belt), .subscribed(0x0014), .subscribed(0x0006))
        browsed.select(0x0012)
        browsed.press(.character("w"))
        browsed.type("05a0")
        let peer = "C3:5A:19:0B:7E:21/random"
        let command = "blescan notify \(peer) 0x0014 --after 0x0012=05a0 --adapter hci1"
        #expect(browsed.screen.command?.text == command, "not of another service")
        // `--after` writes with a response where there is one.
        browsed.type(" --without-response")
        #expect(
            browsed.screen.command?.text
                == "blescan write \(peer) 0x0012 --hex 05a0 --without-response --adapter hci1")
        browsed.press(.clear)
        browsed.type("05a0")
        browsed.press(.enter)
        #expect(browsed.screen.command?.text == command, "after it too")
    }

    /// The numbers of the selected attribute stay on the screen, and so does the time of the last one.
    @Test func theNumbersOfAValueAreDrawn() {
        var browsed = Browsed.connected()
        browsed.select(0x000E)
        #expect(!browsed.text().contains("mean"), "one number is no course")
        browsed.take(.value(0x000E, [85], .sent), .value(0x000E, [86], .sentAfter(dropped: 1)))
        browsed.pass(.seconds(3))
        #expect(browsed.lines().contains("        3s ago  min 85  mean 86  max 87  █▁▅"), "\(browsed.text())")
        browsed.select(0x0009)
        #expect(!browsed.text().contains("mean"))
        browsed.select(0x000E)
        browsed.take(.ended(nil))
        #expect(browsed.text().contains("3s ago  min 85  mean 86  max 87"))
    }

    @Test func coloursDoNotChangeTheText() {
        var (coloured, plain) = (
            Browsed.connected(ScreenLook(isColoured: true, isUnicode: true)), Browsed.connected()
        )
        for key in [ScreenKey.down, .down, .character("s")] {
            coloured.press(key)
            plain.press(key)
        }
        let sequences = coloured.frame().map(\.sequences)
        #expect(sequences.joined().contains("\u{1B}[32m"))
        let bare = sequences.map { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "").replacing(/\ +$/, with: "") }
        #expect(bare == plain.lines())
    }

    @Test func asciiIsEnough() {
        var browsed = Browsed.connected(ScreenLook(isColoured: false, isUnicode: false))
        browsed.press(.down, .character("s"))
        browsed.take(.subscribed(0x0006), .value(0x0006, [0x16, 70], .sent))
        browsed.press(.end, .character("w"))
        browsed.type("--text hé")
        for view in ["typing", "keys"] {
            #expect(browsed.text().utf8.allSatisfy { $0 < 0x80 }, "\(view): \(browsed.text())")
            browsed.press(.escape, .character("?"))
        }
    }

    /// Where `…` is three columns, the number of bytes and the descriptions of the keys have their room too.
    @Test func nothingIsCutInASCII() {
        var browsed = Browsed(.demo("long-value"), ScreenLook(isColoured: false, isUnicode: false), rows: 60)
        let (database, values) = AttributeScreenTests.attributes(of: .longValue)
        browsed.take(.connected(mtu: 517), .discovered(database))
        for (handle, value) in values { browsed.take(.value(handle, value, .read)) }
        for columns in 40...140 as ClosedRange<Int> {
            browsed.resize(columns: columns, rows: 60)
            let rows = browsed.lines()
            #expect(rows.contains { $0.contains("... (512 bytes)") }, "\(columns)")
            #expect(rows.allSatisfy { !$0.contains("... (512") || $0.hasSuffix("... (512 bytes)") }, "\(columns)")
            browsed.press(.character("?"))
            #expect(browsed.lines().allSatisfy { !$0.contains("~") && $0.count <= columns }, "\(browsed.text())")
            browsed.press(.escape)
        }
    }

    /// The frame has the screen's size, whatever that is, and no line is wider.
    @Test func everySizeIsKept() {
        var browsed = Browsed.connected()
        browsed.take(
            .discovered(AttributeScreenTests.database), .value(0x0022, Array(repeating: 0xAB, count: 512), .sent))
        for columns in [1, 2, 11, 29, 30, 61, 80, 300] {
            for rows in [1, 2, 3, 4, 5, 8, 12, 24] {
                browsed.resize(columns: columns, rows: rows)
                for keys in [
                    [], [.end], [.character("x")], [.character("w")], [.character("a")], [.enter],
                    [.escape], [.character("?")], [.escape, .escape],
                ] as [[ScreenKey]] {
                    for key in keys { browsed.press(key) }
                    let frame = browsed.frame()
                    #expect(frame.count == rows)
                    #expect(frame.allSatisfy { ScreenText.width($0.text) <= columns && $0.width <= columns })
                }
            }
        }
    }

    @Test func theSelectedAttributeIsOnTheScreen() {
        var browsed = Browsed.connected(rows: 9)
        for key in [ScreenKey.end, .home, .pageDown, .pageDown, .up, .pageUp, .down] {
            browsed.press(key)
            #expect(browsed.lines().filter { $0.hasPrefix(">") }.count == 1, "\(key)")
        }
    }

    @Test func readingIsRequestedOnceUntilItsResult() {
        var browsed = Browsed.connected()
        browsed.select(0x000E)
        #expect(browsed.press(.enter) == .link(.read(0x000E)))
        #expect(browsed.text().contains("…"))
        #expect(browsed.press(.character("r")) == .none)
        browsed.take(.value(0x000E, [86], .read))
        #expect(browsed.text().contains("86 %"))
        #expect(browsed.press(.character("r")) == .link(.read(0x000E)))
        let failure = Failure(message: "no", status: .refused)
        browsed.take(.failed(0x000E, failure))
        #expect(browsed.screen.notice == .failed(failure))
        #expect(browsed.press(.character("r")) == .link(.read(0x000E)), "a failure ends it too")
    }

    /// All values are read once, at first, and operations run between these reads.
    @Test func aReadEndsNoOtherOperationOfTheAttribute() {
        var browsed = Browsed.connected()
        browsed.select(0x000E)
        #expect(browsed.press(.character("s")) == .link(.subscribe(0x000E)))
        browsed.take(.value(0x000E, [87], .read))
        #expect(browsed.press(.character("s")) == .none, "it would be subscribed to twice")
        browsed.take(.unreadable(0x000E, BLEError(.timedOut, during: "read", because: "there was no response")))
        #expect(browsed.press(.character("s")) == .none)
        browsed.take(.subscribed(0x000E))
        #expect(browsed.press(.character("s")) == .link(.unsubscribe(0x000E)))
    }

    @Test func valuesChangeInPlaceAndAreCounted() {
        var browsed = Browsed.connected(ScreenLook(isColoured: true, isUnicode: true))
        browsed.select(0x000E)
        #expect(browsed.press(.character("s")) == .link(.subscribe(0x000E)))
        browsed.take(.subscribed(0x000E), .value(0x000E, [86], .sent), .value(0x000E, [85], .sentAfter(dropped: 3)))
        #expect(browsed.text().contains("×2") && browsed.text().contains("3 dropped"))
        browsed.select(0x0003)
        let row = { (browsed: inout Browsed) in browsed.frame().first { $0.text.contains("85 %") }?.sequences ?? "" }
        #expect(row(&browsed).contains("\u{1B}[1;32m85 %"), "fresh")
        browsed.pass(.seconds(3))
        #expect(row(&browsed).contains("\u{1B}[32m85 %"), "no longer fresh")
        browsed.select(0x000E)
        #expect(browsed.press(.character("s")) == .link(.unsubscribe(0x000E)))
        browsed.take(.unsubscribed(0x000E))
        #expect(!browsed.text().contains("●"))
    }

    @Test func aSubscriptionIsSeenInItsDescriptor() {
        var browsed = Browsed.connected(columns: 120, rows: 50)
        let row = { (browsed: inout Browsed) in browsed.lines().first { $0.contains("client configuration") } ?? "" }
        #expect(row(&browsed).hasSuffix("off"))
        browsed.take(.subscribed(0x0006))
        #expect(row(&browsed).hasSuffix("notifications on"))
        // Read by the user.
        browsed.take(.value(0x0007, [1, 0], .read), .unsubscribed(0x0006))
        #expect(row(&browsed).hasSuffix("off"))
        browsed.take(.subscribed(0x0006), .ended(nil))
        #expect(row(&browsed).hasSuffix("2902"), "it is not known any longer")
        browsed.take(.subscribed(0x000E))
        #expect(browsed.text().contains("read not permitted"), "what cannot be read is still reported")
    }

    @Test(arguments: [
        ("05a0", "05a0", Peripheral.WriteKind.withResponse), ("05:a0", "05a0", .withResponse),
        ("--text 'a b'", "612062", .withResponse),
        ("--u16 500", "f401", .withResponse), ("--i8 -2", "fe", .withResponse),
        ("0x05a0 --without-response", "05a0", .withoutResponse),
    ])
    func valuesAreTypedInTheFormsOfWrite(_ line: String, _ bytes: String, _ kind: Peripheral.WriteKind) {
        var browsed = Browsed.connected()
        browsed.select(0x0012)
        browsed.press(.character("w"))
        browsed.type(line)
        let option = kind == .withoutResponse ? " --without-response" : ""
        let command = "blescan write C3:5A:19:0B:7E:21/random 0x0012 --hex \(bytes)\(option)"
        #expect(browsed.screen.command?.text == command)
        #expect(browsed.press(.enter) == .link(.write(0x0012, Hex.bytes(bytes), kind)))
        #expect(browsed.screen.typed == nil)
        #expect(browsed.screen.command?.text == command, "after it too")
    }

    @Test(arguments: [
        ("0g", "'g' is not a hex digit"), ("abc", "odd number of digits"), ("", "there is no value"),
        ("  ", "there is no value"),
        ("--u8 300", "255"), ("--text 'a", "a quote has no end"), ("--file /etc/passwd", "cannot be typed here"),
        ("--bogus 1", "exactly one form"), ("--help", "there is no value"),
    ])
    func aLineThatIsNoValueStays(_ line: String, _ words: String) {
        var browsed = Browsed.connected()
        browsed.select(0x0012)
        browsed.press(.character("w"))
        browsed.type(line)
        #expect(browsed.press(.enter) == .none)
        #expect(browsed.screen.typed == line)
        guard case .failed(let failure)? = browsed.screen.notice else {
            Issue.record("nothing is reported")
            return
        }
        #expect("\(failure.message) \(failure.hint ?? "")".contains(words), "\(failure)")
        #expect(failure.hint != nil)
        browsed.press(.escape)
        #expect(browsed.screen.typed == nil)
        #expect(browsed.press(.character("r")) == .link(.read(0x0012)), "nothing is pending")
    }

    @Test func aValueIsWrittenWithoutResponseWhereNothingElseIsPossible() {
        var browsed = Browsed.connected()
        browsed.select(0x0014)
        browsed.press(.character("w"))
        browsed.type("01")
        #expect(browsed.press(.enter) == .link(.write(0x0014, [1], .withoutResponse)))
    }

    @Test func theTypedLineIsEdited() {
        var browsed = Browsed.connected()
        browsed.select(0x0012)
        browsed.press(.character("w"))
        browsed.type("qd?05")
        browsed.press(.backspace)
        #expect(browsed.screen.typed == "qd?0", "keys are characters here")
        browsed.press(.clear)
        #expect(browsed.screen.typed == "")
        browsed.press(.backspace)
        #expect(browsed.screen.typed == nil)
    }

    @Test(arguments: [
        (0x0006, "w", "not writable"), (0x0009, "s", "not sent by the peer"), (0x0007, "s", "not sent by the peer"),
        (0x0004, "r", "has no value"),
    ])
    func anOperationThatAnAttributeDoesNotAllowIsReported(_ handle: AttributeHandle, _ key: String, _ words: String) {
        var browsed = Browsed.connected()
        browsed.select(handle)
        #expect(browsed.press(.character(Unicode.Scalar(key) ?? "?")) == .none)
        #expect(browsed.text().contains(words))
    }

    @Test func aLostLinkLeavesTheValues() {
        var browsed = Browsed.connected()
        browsed.select(0x0006)
        browsed.press(.character("s"))
        browsed.take(.subscribed(0x0006))
        browsed.press(.character("r"))
        browsed.take(.ended(Failure(message: "the link has ended", hint: "c connects again.", status: .linkLost)))
        let text = browsed.text()
        #expect(text.contains("disconnected") && text.contains("87 %") && text.contains("! the link has ended"))
        #expect(!text.contains("●") && !text.contains("…"))
        #expect(browsed.press(.character("r")) == .none)
        #expect(browsed.text().contains("there is no link"))
        #expect(browsed.press(.character("c")) == .link(.connect(Browsed.peer)))
        #expect(browsed.press(.character("c")) == .none, "once")
        browsed.take(.connected(mtu: 23), .discovered(Browsed.belt))
        #expect(browsed.screen.selected == 0x0006, "the user has chosen it")
        #expect(browsed.text().contains("connected  MTU 23"))
    }

    /// Its digits are no keys because the link has ended meanwhile.
    @Test func aValueThatIsTypedStaysAtTheEndOfTheLink() {
        var browsed = Browsed.connected()
        browsed.select(0x0012)
        browsed.press(.character("w"))
        browsed.type("05")
        #expect(browsed.text().contains("Enter writes · Esc cancels"))
        browsed.take(.ended(Failure(message: "the link has ended", hint: "c connects again.", status: .linkLost)))
        let text = browsed.text()
        #expect(text.contains("! the link has ended"))
        #expect(text.contains("Esc cancels") && !text.contains("Enter writes"))
        #expect(browsed.press(.character("d")) == .none && browsed.press(.character("c")) == .none)
        #expect(browsed.screen.typed == "05dc")
        #expect(browsed.press(.enter) == .none)
        #expect(browsed.screen.typed == "05dc" && browsed.text().contains("there is no link"))
        browsed.press(.escape)
        #expect(browsed.press(.character("c")) == .link(.connect(Browsed.peer)))
    }

    @Test func aRecordingRequestsNothing() {
        var browsed = Browsed(isRecorded: true)
        browsed.take(.discovered(Browsed.belt), .value(0x000E, [87], .read), .value(0x0042, [1, 2], .sent))
        for key in [ScreenKey.enter, .character("r"), .character("w"), .character("s"), .character("c")] {
            #expect(browsed.press(key) == .none)
            #expect(browsed.text().contains("this is a recording"))
        }
        #expect(browsed.text().contains("attribute 0x0042"), "a client may know what it has not discovered")
        browsed.take(.discovered(Browsed.belt))
        #expect(browsed.text().contains("attribute 0x0042"))
        #expect(browsed.press(.character("q")) == .quit)
    }

    @Test(arguments: [ScreenKey.escape, .character("q"), .character("d")]) func theKeysForLeavingCloseHelpFirst(
        _ key: ScreenKey
    ) {
        var browsed = Browsed.connected()
        browsed.press(.character("?"))
        #expect(browsed.press(key) == .none, "first the help")
        #expect(browsed.press(key) == .quit)
    }

    @Test func nothingOfADeviceControlsTheTerminal() {
        var browsed = Browsed.connected(ScreenLook(isColoured: false, isUnicode: true))
        let evil = "\u{1B}]52;c;ZXZpbA==\u{7}\u{1B}[2J\u{9B}31m\u{202E}x\r\n"
        browsed.take(
            .value(0x0003, Array(evil.utf8), .read), .value(0x0006, Array(evil.utf8), .sent),
            .failed(0x0003, Failure(message: evil, hint: evil, status: .refused)))
        for key in [
            ScreenKey.home, .down, .down, .down, .end, .character("x"), .character("w"),
            .escape, .character("x"), .home, .left,
        ] {
            browsed.press(key)
            let text = browsed.frame().map(\.sequences).joined()
            #expect(text.unicodeScalars.allSatisfy { !$0.isUnprintable }, "\(key)")
        }
    }

    @Test func theEquivalentCommandIsCopied() {
        var browsed = Browsed.connected()
        browsed.select(0x000E)
        #expect(browsed.press(.character("y")) == .copy("blescan read C3:5A:19:0B:7E:21/random 0x000e"))
        browsed.press(.character("s"))
        #expect(browsed.press(.character("y")) == .copy("blescan notify C3:5A:19:0B:7E:21/random 0x000e"))
        browsed.select(0x000C)
        #expect(
            browsed.press(.character("y")) == .copy("blescan explore C3:5A:19:0B:7E:21/random --service 180f"))
        var strange = Browsed(.unix("/tmp/it's \u{1B}[31m;rm -rf"))
        strange.take(.connected(mtu: 23), .discovered(Browsed.belt))
        #expect(
            strange.press(.character("y")) == .copy(#"blescan read 'unix:/tmp/it'\''s "# + "\u{1B}[31m;rm -rf' 0x0003"))
        #expect(strange.frame().map(\.sequences).joined().unicodeScalars.allSatisfy { !$0.isUnprintable })
    }

    /// Through another adapter, or with other bonds, another device may be found, or none.
    @Test func theEquivalentCommandMakesTheSameLink() throws {
        let options = try ConnectionOptions.parse([
            "--adapter", "hci1", "--bonds", "/srv/my bonds", "--timeout", "5s", "--mtu", "100", "--cache", "belt.cache",
            "--no-bond",
        ]).linkWords
        var browsed = Browsed(linkOptions: options)
        browsed.take(.connected(mtu: 23), .discovered(Browsed.belt))
        browsed.select(0x0012)
        let link =
            "--adapter hci1 --bonds '/srv/my bonds' --timeout 5s --mtu 100 --cache belt.cache --no-bond"
        #expect(
            browsed.press(.character("y"))
                == .copy("blescan write C3:5A:19:0B:7E:21/random 0x0012 --hex BYTES \(link)"))
        browsed.press(.character("w"))
        browsed.type("05 --without-response")
        #expect(
            browsed.screen.command?.text
                == "blescan write C3:5A:19:0B:7E:21/random 0x0012 --hex 05 --without-response \(link)")
        browsed.press(.clear)
        browsed.type("--file x")
        browsed.press(.enter)
        #expect(browsed.text().contains("--file PATH --adapter hci1"))
    }

    @Test func theAttemptIsShownWithItsTime() {
        var browsed = Browsed(.address(BluetoothAddress(rawValue: 0xC35A_190B_7E21), nil))
        browsed.pass(.seconds(2))
        #expect(browsed.text().contains("scanning for it 2 s"))
        browsed.take(.found)
        #expect(browsed.text().contains("connecting 2 s"))
        browsed.take(.connected(mtu: 23))
        #expect(browsed.text().contains("discovering"))
        #expect(browsed.press(.character("r")) == .none, "nothing to read yet")
    }

    /// --plain is an option of `scan` alone.
    @Test func whereThereIsNoScreenAnotherCommandIsNamed() {
        #expect(BrowseScreen.withoutScreen.contains("blescan explore"))
        #expect(ScanBrowser.withoutScreen.contains("scan --plain"))
        #expect(ScanBrowser.withoutScreen.contains("replay --as-scan"))
    }

    @Test func aNameIsShownWithoutTheZerosAtItsEnd() {
        var browsed = Browsed.connected()
        browsed.take(.value(0x0003, [0x42, 0x65, 0x6C, 0x74, 0x00, 0x00], .read))
        #expect(browsed.screen.name == "Belt")
        browsed.take(.value(0x0003, [0x00], .read))
        #expect(browsed.screen.name == nil, "there is none in the table")
    }
}
