import BLECore
import Testing

@testable import blescan

/// The live table as files that people can read.
@Suite struct ScanScreenTests {
    private static let plain = ScreenLook(isColoured: false, isUnicode: true)
    private static let ascii = ScreenLook(isColoured: false, isUnicode: false)
    private static let coloured = ScreenLook(isColoured: true, isUnicode: true)

    @Test(arguments: [200, 130, 120, 100, 80, 60, 40, 30, 20]) func theTableFitsEveryWidth(_ columns: Int) throws {
        let air = Air.street(columns: columns)
        try Golden.expect(Self.framed(air.lines(), columns), matches: "screen-\(columns).txt")
    }

    @Test func asciiIsEnough() throws {
        let air = Air.street(Self.ascii, columns: 130)
        air.press(.down)
        let text = Self.framed(air.lines(), 130)
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
        try Golden.expect(text, matches: "screen-ascii.txt")
    }

    @Test func coloursDoNotChangeTheText() throws {
        let (air, plain) = (Air.street(Self.coloured, columns: 130), Air.street(columns: 130))
        air.press(.down)
        plain.press(.down)
        let sequences = air.frame().map(\.sequences)
        try Golden.expect(
            Self.framed(sequences.map { $0.replacing("\u{1B}", with: "\\e") }, 130), matches: "screen-coloured.txt")
        let bare = sequences.map { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "").replacing(/\ +$/, with: "") }
        #expect(bare == plain.lines())
    }

    @Test func aDeviceHasAScreenOfItsOwn() throws {
        let air = Air.street(columns: 100)
        air.screen.resize(columns: 100, rows: 20)
        air.press(.down, .down, .enter)
        try Golden.expect(Self.framed(air.lines(), 100), matches: "screen-device.txt")
        air.screen.resize(columns: 100, rows: 6)
        air.press(.end)
        #expect(air.lines().last?.contains("HRM-Pro") == true, "the last structure is the last line")
        air.press(.escape)
        #expect(air.screen.view == .table)
    }

    @Test func changedBytesStandOutOnADevicesPage() {
        func marked(_ air: Air) -> [String] { air.frame().map(\.sequences).filter { $0.contains("\u{1B}[1;33m") } }
        let (air, address) = (Air(Self.coloured, columns: 100, rows: 20), "C0:00:00:00:00:01")
        air.hear(address, -50, Hex.bytes("02010606ffffff010203"))
        air.pass(.seconds(3))
        air.press(.down, .enter)
        #expect(marked(air).isEmpty)
        // One digit of one byte; what is repeated does not change that.
        for _ in 0..<2 {
            air.hear(address, -50, Hex.bytes("02010606ffffff010703"))
            #expect(marked(air).count == 1)
            #expect(marked(air).first?.hasSuffix(" 01\u{1B}[1;33m07\u{1B}[0m03") == true, "\(marked(air))")
        }
        // A structure more: its line, and no other.
        air.hear(address, -50, Hex.bytes("020106020a0406ffffff010703"))
        #expect(marked(air).count == 1)
        #expect(marked(air).first?.contains("0a TX power               \u{1B}[1;33m04") == true, "\(marked(air))")
    }

    @Test func structuresStandBelowTheSelectedRow() throws {
        let air = Air.street(columns: 100)
        air.press(.down, .down, .character("r"))
        try Golden.expect(Self.framed(air.lines(), 100), matches: "screen-structures.txt")
    }

    @Test func theKeysAreListed() throws {
        let air = Air.street(columns: 100)
        air.screen.resize(columns: 100, rows: 17)
        air.press(.character("?"))
        try Golden.expect(Self.framed(air.lines(), 100), matches: "screen-keys.txt")
        #expect(air.lines().contains { $0.contains("/temp") }, "measurements are filtered by their names")
        air.press(.down)
        #expect(air.screen.view != .table)
        air.press(.character("x"))
        #expect(air.screen.view == .table)
    }

    @Test func theKeysAreListedAsAWholeOnAnOrdinaryTerminal() throws {
        let air = Air.street(columns: 80)
        air.screen.resize(columns: 80, rows: 24)
        air.press(.character("?"))
        try Golden.expect(Self.framed(air.lines(), 80), matches: "screen-keys-80.txt")
    }

    /// The frame has the screen's size, whatever that is, and no line is wider.
    @Test func everySizeIsKept() {
        let air = Air.street(columns: 100)
        for columns in [1, 2, 5, 11, 20, 21, 40, 61, 79, 80, 81, 120, 300] {
            for rows in [1, 2, 3, 4, 5, 24] {
                for keys in [[], [.down], [.character("r")], [.enter], [.escape, .character("/")], [.character("?")]]
                    as [[ScreenKey]]
                {
                    air.screen.resize(columns: columns, rows: rows)
                    for key in keys { air.press(key) }
                    let frame = air.frame()
                    #expect(frame.count == rows)
                    #expect(frame.allSatisfy { ScreenText.width($0.text) <= columns && $0.width <= columns })
                }
                air.press(.escape, .escape, .escape)
            }
        }
    }

    @Test func anEmptyAirIsAnEmptyTable() {
        let air = Air(columns: 80, rows: 4)
        #expect(
            air.lines() == [
                "hci0  active scan  0 devices  0 adv/s  0 dropped                 ? keys · q quit",
                " RSSI↓             ADDRESS            NAME        DATA                     SEEN", "", "",
            ])
        air.press(.down, .enter, .character("r"), .pageDown, .end)
        #expect(air.screen.view == .table)
    }

    /// Where devices without measurements are not shown; on a narrow screen in as many lines as there is room for.
    @Test(arguments: [(80, 4, 1), (40, 6, 2), (20, 5, 3)])
    func anEmptyTableOfSensorsNamesItsFilter(_ columns: Int, _ rows: Int, _ count: Int) {
        let air = Air()
        air.screen = ScanScreen(Air.heading, Self.plain, onlySensors: true, columns: columns, rows: rows)
        let text = "no device with measurements is heard at this time; others are not shown"
        let words = air.lines().dropFirst(2).prefix(count).joined(separator: " ")
        #expect(words == (columns == 20 ? "no device with measurements is heard at this time;" : text))
        #expect(air.lines().count == rows)
        #expect(air.screen.heading.mode == "active scan of sensors")
        air.press(.enter)
        #expect(air.screen.notice == text)
        air.screen.begin(at: air.now, canGoBack: true)
        air.press(.enter)
        #expect(air.screen.notice == text + "; l lists the recorded links")
        air.press(.escape)
        air.hear("A4:C1:38:56:53:84", -41, Hex.bytes("12161a1884535638c1a4a00a7412730b47060e"), type: .public)
        #expect(!air.lines().contains { $0.hasPrefix("no device with") })
    }

    @Test func lookFollowsTheEnvironment() {
        func look(_ environment: [String: String], _ choice: ColorChoice = .auto) -> ScreenLook {
            ScreenLook(choice) { environment[$0] }
        }
        #expect(look(["TERM": "xterm", "LANG": "de_DE.UTF-8"]) == Self.coloured)
        #expect(look(["LANG": "C.utf8"]).isUnicode)
        #expect(
            look(["TERM": "xterm", "LANG": "en_US.UTF-8", "LC_ALL": "C"])
                == ScreenLook(isColoured: true, isUnicode: false))
        #expect(look(["LC_CTYPE": "de_DE.UTF-8@euro", "LANG": "C", "LC_ALL": ""]).isUnicode)
        #expect(!look(["LANG": "de_DE.ISO-8859-1"]).isUnicode)
        #expect(!look([:]).isUnicode)
        #expect(!look(["TERM": "xterm", "NO_COLOR": "1"]).isColoured)
        #expect(look(["TERM": "xterm", "NO_COLOR": ""]).isColoured, "an empty one says nothing")
        #expect(!look(["TERM": "dumb"]).isColoured)
        #expect(!look(["TERM": ""]).isColoured && !look([:]).isColoured, "nothing is known of the terminal")
        #expect(look(["NO_COLOR": "1", "TERM": "dumb"], .always).isColoured)
        #expect(!look(["TERM": "xterm"], .never).isColoured)
    }

    /// The painter writes only differences, and everything after the terminal has lost its content.
    @Test func onlyWhatHasChangedIsWritten() {
        let air = Air.street(columns: 100)
        var painter = ScreenPainter()
        let whole = painter.bytes(for: air.frame())
        let nothing = painter.bytes(for: air.frame())
        #expect(nothing.isEmpty)
        air.press(.down)
        let change = painter.bytes(for: air.frame())
        #expect(!change.isEmpty && change.count < whole.count / 3)
        painter.forget()
        let again = painter.bytes(for: air.frame())
        #expect(again.count >= whole.count)
        #expect(!String(decoding: again, as: UTF8.self).contains("\u{1B}[2J"), "clearing it all would flicker")
    }

    /// Returns the lines between the edges of the screen.
    private static func framed(_ lines: [String], _ columns: Int) -> String {
        "\(columns) columns\n" + lines.joined(separator: "\n") + "\n"
    }
}
