import BLECore
import Testing

@testable import blescan

/// The table's rows while devices are received and keys are pressed.
@Suite struct ScanScreenBehaviourTests {
    private static let near = "C0:00:00:00:00:01"
    private static let middle = "C0:00:00:00:00:02"
    private static let far = "C0:00:00:00:00:03"

    /// Three devices, the nearest first.
    private static func three() -> Air {
        let air = Air()
        air.hear(far, -80, Air.named("Far"))
        air.hear(near, -50, Air.named("Near"))
        air.hear(middle, -65, Air.named("middle"))
        air.pass(.seconds(3))
        return air
    }

    @Test func rowsDoNotJump() {
        let air = Self.three()
        #expect(air.order() == ["Near", "middle", "Far"])
        // The two nearest have the same strength, and vary.
        for round in 0..<400 {
            air.hear(Self.near, round % 2 == 0 ? -57 : -52, Air.named("Near"))
            air.hear(Self.middle, round % 2 == 0 ? -60 : -66, Air.named("middle"))
            air.pass(.milliseconds(50))
            #expect(air.order() == ["Near", "middle", "Far"])
        }
    }

    /// A bonded device has one row, with the address that does not change.
    @Test func anIdentityHasOneRow() {
        let air = Air()
        let identity = PeerID(address: BluetoothAddress(rawValue: 0xA4C1_3856_5384), type: .public)
        for number in 0..<10 { air.hear("40:00:00:00:00:0\(number)", -50, identity: identity) }
        air.pass(.seconds(3))
        #expect(air.order() == ["A4:C1:38:56:53:84"])
        #expect(air.lines().contains { $0.contains("A4:C1:38:56:53:84") })
        air.press(.down, .enter)
        #expect(air.lines().contains { $0.contains("on air    40:00:00:00:00:09") })
    }

    @Test func aDeviceThatComesNearerMovesUp() {
        let air = Self.three()
        for _ in 0..<20 { air.hear(Self.far, -40, Air.named("Far")) }
        air.pass(.milliseconds(100))
        #expect(air.order() == ["Near", "middle", "Far"], "not before it is time")
        air.pass(ScanScreen.sortPause)
        #expect(air.order() == ["Far", "Near", "middle"])
    }

    @Test func newcomersStandLastUntilItIsTime() {
        let air = Self.three()
        air.hear("C0:00:00:00:00:04", -30, Air.named("Loud"))
        air.pass(.milliseconds(100))
        #expect(air.order().last == "Loud")
        air.pass(ScanScreen.sortPause)
        #expect(air.order().first == "Loud")
    }

    /// A recording of a second has no other time for its order.
    @Test func newcomersFindTheirPlaceAtTheBeginning() {
        let air = Air()
        air.hear(Self.middle, -65, Air.named("middle"))
        air.pass(.milliseconds(100))
        air.hear(Self.near, -50, Air.named("Near"))
        air.pass(.milliseconds(100))
        #expect(air.order() == ["Near", "middle"])
        air.hear(Self.far, -80, Air.named("Far"))
        for _ in 0..<20 { air.hear(Self.middle, -40, Air.named("middle")) }
        air.pass(.milliseconds(100))
        for _ in 0..<20 { air.hear(Self.far, -30, Air.named("Far")) }
        air.pass(.milliseconds(100))
        #expect(air.order() == ["middle", "Near", "Far"], "only a new row sorts the others")
    }

    @Test func theOrderCanBeChanged() {
        let air = Self.three()
        air.press(.character("s"))
        #expect(air.order() == ["Far", "middle", "Near"], "by name, whatever the case")
        air.press(.character("s"))
        #expect(air.order() == ["Near", "middle", "Far"], "by address")
        air.pass(.seconds(15))
        air.hear(Self.far, -80, Air.named("Far"))
        air.press(.character("s"))
        #expect(air.order().first == "Far", "by who was heard last")
        air.press(.character("s"))
        #expect(air.order() == ["Near", "middle", "Far"])
    }

    @Test func theSilentFadeAndGo() throws {
        let air = Self.three()
        air.press(.end)
        func styles() -> [ScreenStyle] { air.frame()[2...4].map(\.style) }
        air.pass(.seconds(20))
        air.hear(Self.near, -50, Air.named("Near"))
        #expect(styles() == [[], [], .reverse])
        air.pass(.seconds(10))
        #expect(styles() == [[], .dim, .reverse])
        #expect(air.lines()[3].hasSuffix("33s"))
        air.pass(.seconds(90))
        #expect(air.lines()[3].hasSuffix("2min"))
        air.pass(.seconds(60))
        #expect(air.order() == ["Near"])
        #expect(air.screen.selected?.peer?.address == BluetoothAddress(Self.near), "the selection goes to who is left")
        air.pass(.seconds(300))
        #expect(air.order().isEmpty)
        #expect(air.screen.selected == nil)
    }

    @Test func theDeviceOnThePageStaysInTheList() {
        let air = Self.three()
        air.press(.down, .enter)
        air.pass(.seconds(600))
        #expect(air.order() == ["Near"])
        #expect(air.lines()[3].contains("10min ago"))
        air.press(.escape)
        air.pass(.seconds(1))
        #expect(air.order().isEmpty)
    }

    /// The scan goes on to count a device that the table has dropped.
    @Test func theNumbersOfAPageAreOfTheSameTime() {
        let air = Air()
        for _ in 0..<10 { air.hear(Self.near, -80, Air.named("Near")) }
        air.pass(ScanScreen.goesAfter)
        #expect(air.order().isEmpty)
        for strength: Int8 in [-46, -45] { air.hear(Self.near, strength, Air.named("Near")) }
        air.press(.down, .enter)
        #expect(air.lines()[1] == "RSSI      -45 dBm, -46 on average, between -46 and -45", "\(air.lines())")
        #expect(air.lines()[3] == "packets   2, the first now, the last now", "\(air.lines())")
        air.pass(.seconds(2))
        air.hear(Self.near, -40, Air.named("Near"))
        #expect(air.lines()[1] == "RSSI      -40 dBm, -44 on average, between -46 and -40", "\(air.lines())")
        #expect(air.lines()[3] == "packets   3, the first 2s ago, the last now", "\(air.lines())")
    }

    @Test func theSelectionIsADeviceNotAPlace() {
        let air = Self.three()
        air.press(.down, .down)
        #expect(air.lines()[3].hasPrefix(">"))
        for _ in 0..<20 { air.hear(Self.middle, -30, Air.named("middle")) }
        air.pass(ScanScreen.sortPause)
        #expect(air.lines()[2].hasPrefix(">") && air.lines()[2].contains("middle"))
        air.press(.escape)
        #expect(!air.lines().contains { $0.hasPrefix(">") })
    }

    @Test func theFilterIsTyped() {
        let air = Self.three()
        air.press(.character("/"))
        air.type("MIDx")
        #expect(air.lines().last == "/MIDx▏  0 of 3 devices  Enter keep · Esc clear")
        air.press(.backspace, .enter)
        #expect(air.order() == ["middle"])
        #expect(air.lines().last == "/MID  1 of 3 devices  / change · Esc clear")
        // The typed text is a filter, not a key.
        air.press(.character("f"))
        air.type("q")
        #expect(air.screen.filter == "MIDq")
        air.press(.clear)
        #expect(air.screen.filter.isEmpty && air.screen.isTyping)
        air.type("00:03")
        #expect(air.order() == ["Far"], "addresses can be found as well")
        air.press(.escape)
        #expect(air.order().count == 3)
        #expect(air.lines().last == "")
    }

    @Test func whatTheFilterHidesIsNotOpened() {
        let air = Self.three()
        air.press(.down)
        #expect(air.screen.selected?.peer?.address == BluetoothAddress(Self.near))
        air.press(.character("/"))
        air.type("far")
        air.press(.enter)
        #expect(air.screen.selected?.peer?.address == BluetoothAddress(Self.far), "the selection is visible")
        air.press(.enter)
        #expect(air.lines()[0].hasPrefix(Self.far))
        air.press(.escape, .character("/"))
        air.type("x")
        air.press(.enter, .enter)
        #expect(air.screen.view == .table && air.screen.selected == nil, "there is nothing to open")
    }

    /// A selected device may send different data later.
    @Test func whatTheFilterDoesNotMatchAnyMoreIsNotOpened() {
        let air = Self.three()
        air.press(.character("/"))
        air.type("r")
        air.press(.enter, .down)
        #expect(air.screen.selected?.peer?.address == BluetoothAddress(Self.near))
        air.hear(Self.near, -50, Air.named("Other"))
        air.hear(Self.near, -50, Air.named("Nobody"))
        air.press(.enter)
        #expect(air.lines()[0].hasPrefix(Self.far))
    }

    /// Names of devices that fill a field of fixed length.
    @Test(arguments: [
        ("Lamp\0\0\0", "Lamp"), ("", "(empty)"), ("\0\0", "(empty)"), ("   ", "\"   \""), (" \0", "\" \""),
        ("a\0b", "a\0b"), (" a ", " a "),
    ]) func namesArePlain(_ said: String, _ shown: String) {
        let air = Air()
        air.hear(Self.near, -50, Air.named(said))
        #expect(air.order() == [shown])
        #expect(!air.lines()[2].contains("\\u{0}") || said == "a\0b")
        air.hear(Self.near, -50, Air.named("else"))
        air.hear(Self.near, -50, Air.named(said))
        #expect(air.order() == [shown])
    }

    @Test func keysMoveOverManyRows() {
        let air = Air(columns: 80, rows: 8)
        for number in 10..<60 { air.hear("C0:00:00:00:00:\(number)", Int8(-20 - number), Air.named("N\(number)")) }
        air.pass(.seconds(3))
        func marked() -> String? { air.lines().first { $0.hasPrefix(">") } }
        air.press(.down)
        #expect(marked()?.contains("N10") == true)
        air.press(.pageDown, .character("j"))
        #expect(marked()?.contains("N16") == true)
        air.press(.end)
        #expect(marked()?.contains("N59") == true)
        air.press(.character("k"), .pageUp, .up)
        #expect(marked()?.contains("N52") == true)
        air.press(.home)
        #expect(marked()?.contains("N10") == true)
        air.press(.up)
        #expect(marked()?.contains("N10") == true)
        air.press(.end, .character("r"))
        #expect(marked() != nil, "its structures do not push it out")
    }

    @Test func onlyTheUserQuits() {
        let air = Self.three()
        for key in [.down, .enter, .escape, .character("x"), .clear, .character("/"), .character("q")] as [ScreenKey] {
            #expect(air.action(key) == .none)
        }
        air.press(.escape)
        #expect(air.action(.redraw) == .redraw)
        #expect(air.action(.character("q")) == .quit)
    }

    @Test func trendsAreReported() {
        let air = Self.three()
        for step in 0..<10 { air.hear(Self.far, -80 + Int8(3 * step), Air.named("Far")) }
        for step in 0..<10 { air.hear(Self.near, -50 - Int8(3 * step), Air.named("Near")) }
        let rows = air.lines()[2...4]
        #expect(rows.contains { $0.contains("▴") && $0.contains("Far") })
        #expect(rows.contains { $0.contains("▾") && $0.contains("Near") })
        #expect(rows.contains { $0.contains("·") && $0.contains("middle") })
    }

    @Test func theRateIsThatOfTheLastSeconds() {
        let air = Air()
        for _ in 0..<100 {
            air.hear(Self.near, -50)
            air.pass(.milliseconds(50))
        }
        #expect(air.lines()[0].contains("  20 adv/s  "))
        air.pass(.seconds(10))
        #expect(air.lines()[0].contains("  0 adv/s  "))
    }

    @Test func theLastWordsCount() {
        let air = Self.three()
        air.screen.lose(7)
        #expect(air.screen.closing(after: .seconds(70)) == "3 devices at the end, 3 advertisements in 70 s, 7 dropped")
        #expect(air.screen.closing(after: .seconds(8000)).contains(" in 2 h"))
    }
}
