import BLECore
import Testing

@testable import blescan

/// Texts of devices, most of which are malicious.
@Suite struct ScreenTextTests {
    private static let unicode = ScreenLook(isColoured: false, isUnicode: true)
    private static let ascii = ScreenLook(isColoured: false, isUnicode: false)

    private static let hostile = [
        "\u{1B}[2J\u{1B}]0;owned\u{07}", "\u{9B}31mred", "a\rb\nc\td\u{8}e", "\u{202E}evil\u{2066}x\u{2069}",
        "\u{200F}\u{200B}\u{FEFF}",
        "Z" + String(repeating: "\u{0301}\u{0489}", count: 200), "\u{0301}\u{0302}\u{0303}", "\u{2028}\u{2029}\u{85}",
        "日本語の名前がとても長い装置です", "👨‍👩‍👧‍👦👍🏽🇩🇪❤️", "ｆｕｌｌ　ｗｉｄｔｈ", "한국어", "\u{E000}\u{10FFFF}", "नमस्ते", "ﷺﷺﷺ",
    ]

    @Test(arguments: hostile) func nothingSteersTheTerminal(_ name: String) {
        for look in [Self.unicode, Self.ascii] {
            let air = Air(look, columns: 80, rows: 8)
            air.hear("C0:00:00:00:00:01", -50, Air.named(name))
            air.hear("C0:00:00:00:00:02", -60, Air.named("Neighbour"))
            air.press(.down, .character("r"))
            for open in [false, true] {
                if open { air.press(.enter) }
                for line in air.frame() {
                    #expect(ScreenText.width(line.text) <= 80)
                    // The columns after uncertain text are positioned by number, all else is text.
                    let rest = line.sequences.replacing(/\u{1B}\[[0-9]+G/, with: "")
                    for scalar in rest.unicodeScalars {
                        let category = scalar.properties.generalCategory
                        #expect(
                            ![.control, .format, .lineSeparator, .paragraphSeparator, .privateUse].contains(category))
                        #expect(look.isUnicode || scalar.isASCII)
                    }
                }
            }
        }
    }

    /// The widths are those of Unicode's East Asian Width and of `wcwidth` in glibc 2.36.
    @Test(arguments: [
        ("Kitchen", 7), ("Küche", 5), ("日本", 4), ("e\u{0301}", 1), ("👍", 2), ("ｆｕ", 4), ("한", 2), ("ไทย", 3),
        ("░█▍", 3), ("", 0),
        ("\u{1112}\u{1161}", 2), ("☃", 1), ("⌚", 2),
    ]) func widthsAreThoseOfTerminals(_ text: String, _ width: Int) {
        #expect(ScreenText.width(text) == width)
    }

    @Test func marksAreLimited() {
        let shown = ScreenText.shown("Z" + String(repeating: "\u{0301}", count: 500) + "!", Self.unicode)
        #expect(shown.unicodeScalars.count == 4)
        #expect(ScreenText.shown("\u{0301}a", Self.unicode) == "\\u{301}a")
    }

    @Test func whatIsTooLongIsCut() {
        #expect(ScreenText.clipped("Kitchen", to: 7, Self.unicode) == "Kitchen")
        #expect(ScreenText.clipped("Kitchen", to: 4, Self.unicode) == "Kit…")
        #expect(ScreenText.clipped("Kitchen", to: 4, Self.ascii) == "Kit~")
        #expect(ScreenText.clipped("日本語", to: 4, Self.unicode) == "日…", "half a character is none")
        #expect(ScreenText.clipped("日本語", to: 1, Self.unicode) == "…")
        #expect(ScreenText.clipped("日本語", to: 0, Self.unicode) == "")
        #expect(ScreenText.clippedInFront("AA:BB:CC", to: 6, Self.unicode) == "…BB:CC")
    }

    @Test func wideNamesLeaveTheColumnsWhereTheyAre() {
        let air = Air(columns: 100, rows: 6)
        air.hear("C0:00:00:00:00:01", -50, Air.named("日本語の名前"))
        air.hear("C0:00:00:00:00:02", -60, Air.named("Kitchen"))
        let rows = air.frame()[2...3]
        #expect(rows.allSatisfy { $0.width == 99 })
        // Whatever width the terminal assigns to the name, the last column begins at the right place.
        #expect(rows.contains { $0.sequences.contains(/語の名前\u{1B}\[[0-9]+G/) })
    }

    @Test func asciiReplacesOrEscapesOtherCharacters() {
        #expect(ScreenText.shown("Heart Rate · 21.4 °C", Self.ascii) == "Heart Rate | 21.4 deg C")
        #expect(ScreenText.shown("Küche", Self.ascii) == "K\\u{fc}che")
    }

    private func scanResult(named name: String) throws -> ScanResult {
        var table = DeviceTable()
        let report = AdvertisingReport(
            address: BluetoothAddress(rawValue: 0xC000_0000_0001), addressType: .random,
            properties: [.legacy, .connectable], rssi: -40, data: Air.named(name))
        let outcome = table.record(report, at: .zero)
        let place = try #require(outcome?.place)
        return table[place]
    }

    /// In printed lines too.
    @Test(arguments: ["Thermo", "日本語", "e\u{301}t\u{301}e\u{301}"]) func aNameFillsItsColumn(_ name: String) throws {
        let scanResult = try scanResult(named: name)
        let line = DeviceLine(scanResult)
        for (text, column) in [
            (PlainLine.text(of: scanResult, at: "08:00"), 60), (line.text, 54), (line.styled.plain, 54),
        ] {
            let place = try #require(text.firstRange(of: "connectable"))
            #expect(ScreenText.width(String(text[..<place.lowerBound])) == column, "\(text)")
        }
    }

    /// Many devices fill their names with zeros.
    @Test(arguments: [("Lamp\0\0", "Lamp"), ("\0", "(empty)"), ("  ", "\"  \""), ("a\0b", "a\\u{0}b")])
    func aPaddedNameIsShownAsInTheTable(_ name: String, _ shown: String) throws {
        let scanResult = try scanResult(named: name)
        for text in [PlainLine.text(of: scanResult, at: ""), DeviceLine(scanResult).text] {
            #expect(text.contains("  static    \(shown)  "), "\(text)")
        }
    }
}
