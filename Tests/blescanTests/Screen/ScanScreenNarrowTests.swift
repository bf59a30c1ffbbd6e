import BLECore
import Testing

@testable import blescan

/// The parts of heading, help and details that remain on a small screen.
@Suite struct ScanScreenNarrowTests {

    @Test(arguments: [
        (100, "hci0 5C:F3:70:9B:1A:02  active scan  5 devices  8 adv/s  3 dropped                   ? keys · q quit"),
        (79, "hci0  active scan  5 devices  8 adv/s  3 dropped                ? keys · q quit"),
        (54, "active scan  5 devices  3 dropped      ? keys · q quit"),
        (46, "5 devices  8 adv/s  3 dropped  ? keys · q quit"), (38, "5 devices  3 dropped   ? keys · q quit"),
        (30, "5 devices  3 dropped    ? keys"), (20, "5 devices     ? keys"), (12, "? keys"), (3, "? …"),
    ]) func theWayToTheKeysStaysLongest(_ columns: Int, _ line: String) {
        #expect(Air.street(columns: columns).lines().first == line)
    }

    @Test(arguments: [
        (120, "three-devices.btsnoop  end of the recording  5 devices  8 adv/s  3 dropped   q quit · s sort"),
        (94, "three-devices.btsnoop  end of the recording  5 devices  8 adv/s  3 dropped     ? keys · q quit"),
        (86, "three-devices.b…  end of the recording  5 devices  8 adv/s  3 dropped  ? keys · q quit"),
        (76, "three-devices.…  end of the recording  5 devices  3 dropped  ? keys · q quit"),
        (62, "end of the recording  5 devices  3 dropped     ? keys · q quit"),
        (58, "ended  5 devices  8 adv/s  3 dropped       ? keys · q quit"),
        (46, "ended  5 devices  3 dropped    ? keys · q quit"),
    ]) func theEndOfARecordingIsReportedBeforeItsName(_ columns: Int, _ line: String) {
        let air = Air.street(columns: columns, heading: .init(source: "three-devices.btsnoop", mode: "recording"))
        air.screen.finish("end of the recording", brief: "ended", at: air.now)
        #expect(air.lines().first?.hasPrefix(line) == true, "\(columns)")
    }

    @Test(arguments: [
        (120, "three-devices.btsnoop  recording ×10 at 0:39  5 devices  8 adv/s  3 dropped  q quit · s sort"),
        (80, "three-devices.bts…  recording ×10 at 0:39  5 devices  3 dropped  ? keys · q quit"),
        (40, "at 0:39  5 devices  3 dropped     ? keys"), (30, "5 devices  3 dropped    ? keys"),
    ]) func thePositionInARecordingStaysAfterItsName(_ columns: Int, _ line: String) {
        let heading = ScanScreen.Heading(source: "three-devices.btsnoop", address: nil, mode: "recording ×10")
        let air = Air.street(columns: columns, heading: heading)
        air.screen.begin(at: air.now + .seconds(-39), canGoBack: true)
        #expect(air.lines().first?.hasPrefix(line) == true, "\(columns)")
    }

    @Test(arguments: [(60, true), (45, false), (40, false), (20, false), (10, false)])
    func theWayBackFromADeviceStays(_ columns: Int, _ hasBoth: Bool) {
        let air = Air.street(columns: columns)
        air.press(.down, .down, .enter)
        let title = air.lines()[0]
        #expect(title.hasSuffix(hasBoth ? "Esc back · q quit" : columns >= 18 ? "Esc back" : "…"))
        #expect(title.hasPrefix("F2:0B:9"))
    }

    /// All of it can be read, by arrows, at any size.
    @Test(arguments: [(100, 10), (60, 8), (39, 10), (24, 6), (16, 4)])
    func theHelpCanBeScrolled(_ columns: Int, _ rows: Int) {
        let air = Air.street(columns: columns)
        air.screen.resize(columns: columns, rows: rows)
        air.press(.character("?"))
        #expect(air.lines()[0].contains("q quit"))
        var words: [String] = []
        var last: [String] = []
        for _ in 0..<200 {
            let shown = Array(air.lines().dropFirst())
            #expect(!shown.contains { $0.hasSuffix("…") })
            words += (last.isEmpty ? shown : shown == last ? [] : shown.suffix(1)).flatMap {
                $0.split(separator: " ").map(String.init)
            }
            last = shown
            air.press(.down)
        }
        let text = words.joined(separator: " ")
        #expect(text.contains("Home and End") && text.contains("in the headings: what the table is sorted by"))
        #expect(text.hasSuffix("after the address: one of the device's advertising sets"))
        air.press(.home)
        #expect(air.lines()[1].contains("q  ^C"))
        air.press(.character("x"))
        #expect(air.screen.view == .table)
    }

    /// Neither an empty line nor a number without its unit, such as where a value does not fit below its first line.
    @Test(arguments: 40...60) func theTableOfADeviceHasNoEmptyLines(_ columns: Int) throws {
        let air = Air(columns: columns, rows: 60)
        let tag = Hex.bytes("1bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f")
        air.hear("C0:00:00:00:00:01", -50, tag)
        air.pass(.seconds(3))
        air.press(.down, .enter)
        let lines = air.lines()
        let start = try #require(lines.firstIndex { $0.hasPrefix(" LEN") })
        let end = try #require(lines.lastIndex { !$0.isEmpty })
        let table = lines[start...end]
        #expect(table.count > 5 && !table.contains(""), "\(lines)")
        #expect(!table.contains { $0.hasSuffix(" 1000.44") || $0.hasSuffix(" 53.49") }, "\(lines)")
        #expect(table.contains { $0.contains("1000.44 hPa") })
    }

    /// The structures of the selected device go on below, as on its page.
    @Test(arguments: [40, 60, 80]) func structuresAreWrapped(_ columns: Int) {
        let air = Air(columns: columns, rows: 24)
        air.hear("C0:00:00:00:00:01", -50, Air.named("KitchenSensor12345678"))
        air.hear("C0:00:00:00:00:02", -60, Air.named("Other"))
        air.pass(.seconds(3))
        air.press(.down, .character("r"))
        let lines = air.lines()
        #expect(lines.contains { $0.hasSuffix(" \"KitchenSensor12345678\"") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("   -60") }, "the next row is below")
        #expect(air.frame().allSatisfy { $0.width <= columns })
    }
}
