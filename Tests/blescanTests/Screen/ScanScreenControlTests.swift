import BLECore
import Testing

@testable import blescan

/// What the keys and the width of the terminal do with the table.
@Suite struct ScanScreenControlTests {
    private static func three() -> Air {
        let air = Air()
        air.hear("C0:00:00:00:00:03", -80, Air.named("Far"))
        air.hear("C0:00:00:00:00:01", -50, Air.named("Near"))
        air.hear("C0:00:00:00:00:02", -65)
        air.pass(.seconds(3))
        return air
    }

    @Test func aFrozenTableDoesNotMove() {
        let air = Self.three()
        let before = air.lines().dropFirst()
        air.press(.character(" "))
        for _ in 0..<20 { air.hear("C0:00:00:00:00:03", -30, Air.named("Far")) }
        air.hear("C0:00:00:00:00:04", -20, Air.named("New"))
        air.pass(.seconds(200))
        #expect(air.lines()[0].contains("FROZEN"))
        #expect(Array(air.lines().dropFirst()) == Array(before))
        air.press(.character("p"))
        #expect(!air.lines()[0].contains("FROZEN"))
        air.hear("C0:00:00:00:00:05", -20, Air.named("Next"))
        air.pass(.seconds(3))
        #expect(air.order() == ["Next"], "the silent have gone meanwhile")
    }

    @Test func aFrozenDeviceCanBeRead() {
        let air = Self.three()
        air.press(.character(" "), .down, .enter)
        air.pass(.seconds(500))
        #expect(air.lines()[0].contains("Near"))
        air.press(.escape)
        #expect(air.order() == ["Near", "C0:00:00:00:00:02", "Far"])
    }

    @Test(arguments: [("[", -10), ("]", 10), ("{", -60), ("}", 60)] as [(Unicode.Scalar, Int)])
    func aRecordingIsSought(_ key: Unicode.Scalar, _ seconds: Int) {
        let air = Self.three()
        #expect(air.action(.character(key)) == .none, "what is on air cannot be sought")
        air.screen.begin(at: air.now, canGoBack: true)
        #expect(air.action(.character(key)) == .seek(.seconds(seconds)))
        air.press(.down, .enter)
        #expect(air.action(.character(key)) == .seek(.seconds(seconds)))
        #expect(air.lines()[0].contains("Near"))
        air.press(.escape, .character("/"))
        #expect(air.action(.character(key)) == .none)
        #expect(air.screen.filter.unicodeScalars.elementsEqual([key]))
        air.press(.escape, .character("?"))
        #expect(air.lines().contains(" [ ]  { }    back and forward in the recording: 10 s, 1 min; ends a freeze"))
        #expect(air.action(.character(key)) == .none)
        #expect(air.screen.view == .table)
    }

    /// The recording is read again meanwhile.
    @Test func aTableThatIsFrozenDuringASeekStaysSo() {
        let (air, earlier) = (Self.three(), Air())
        earlier.hear("C0:00:00:00:00:01", -50, Air.named("Near"))
        air.press(.character(" "))
        air.screen.show(earlier.screen, at: earlier.now)
        #expect(air.order() == ["Near"])
        air.hear("C0:00:00:00:00:04", -20, Air.named("New"))
        air.pass(.seconds(3))
        #expect(air.lines()[0].contains("FROZEN"))
        #expect(air.order() == ["Near"])
    }

    @Test func aRecordingFromAPipeOnlyGoesForward() {
        let air = Self.three()
        air.screen.begin(at: air.now, canGoBack: false)
        #expect(air.action(.character("[")) == .none)
        #expect(air.lines().last == "the recording does not come from a file, and cannot be read again")
        #expect(air.action(.character("]")) == .seek(.seconds(10)))
        #expect(air.lines().last == "")
    }

    @Test(arguments: [
        (0, "0:00"), (59, "0:59"), (62, "1:02"), (3599, "59:59"), (3600, "1:00:00"), (90_125, "25:02:05"),
    ])
    func thePositionIsATime(_ seconds: Int, _ position: String) {
        let air = Self.three()
        #expect(air.screen.position(at: air.now) == nil)
        air.screen.begin(at: air.now, canGoBack: true)
        #expect(air.screen.position(at: air.now + .seconds(seconds)) == position)
        #expect(air.screen.position(at: air.now + .seconds(-5)) == "0:00")
    }

    @Test func theOrderIsReversed() {
        let air = Self.three()
        air.press(.character("S"))
        #expect(air.order() == ["Far", "C0:00:00:00:00:02", "Near"])
        #expect(air.lines()[1].contains("RSSI↑"))
        air.press(.character("S"))
        #expect(air.order() == ["Near", "C0:00:00:00:00:02", "Far"])
    }

    /// Also when the order is reversed: what is sorted by is what is looked for.
    @Test func whatHasNothingToSortByIsLast() {
        let air = Self.three()
        air.hear("C0:00:00:00:00:04", nil, Air.named("Mute"))
        air.pass(.seconds(3))
        #expect(air.order() == ["Near", "C0:00:00:00:00:02", "Far", "Mute"])
        air.press(.character("S"))
        #expect(air.order() == ["Far", "C0:00:00:00:00:02", "Near", "Mute"])
        air.press(.character("s"))
        #expect(air.order() == ["Near", "Mute", "Far", "C0:00:00:00:00:02"])
        air.press(.character("S"))
        #expect(air.order() == ["Far", "Mute", "Near", "C0:00:00:00:00:02"])
    }

    /// What a device says goes last: at 40 columns a thermometer can still be read, with the end of its address before.
    @Test(arguments: [
        (69, "D0:35:33:33:44:03", 22), (68, "…33:44:03", 22), (60, "…33:44:03", 21), (55, "…33:44:03", 16),
        (40, nil, 19), (37, nil, 16), (29, nil, 8),
    ])
    func theDataStaysLongest(_ columns: Int, _ address: String?, _ width: Int) throws {
        let air = Air(columns: columns, rows: 6)
        air.hear("D0:35:33:33:44:03", -50, Air.govee)
        let row = air.lines()[2]
        #expect(row.contains(width < 16 ? "19.0 °C" : "19.0 °C  48.8 %"), "\(row)")
        #expect(row.contains("33:44:03") == (address != nil) && row.contains(address ?? ""), "\(row)")
        #expect(ScreenColumn.layout(for: columns - 1).first { $0.column == .data }?.width ?? 0 >= width)
    }

    /// The others get the room.
    @Test(
        arguments: [
            ("1", "RSSI↓  ADDRESS"), ("2", "RSSI↓             TYPE"), ("3", "ADDRESS            NAME"),
            ("4", "TYPE      DATA"),
            ("6", "SEEN"), ("7", "EVERY"),
        ] as [(Unicode.Scalar, String)])
    func aColumnIsHiddenByItsNumber(_ key: Unicode.Scalar, _ heading: String) throws {
        let air = Air(columns: 120, rows: 8)
        air.hear("D0:35:33:33:44:03", -50, Air.govee)
        let column = try #require(ScreenColumn(key: .character(key)))
        let before = air.lines()[1]
        air.press(.character(key))
        let layout = ScreenColumn.layout(for: 119, without: [column])
        #expect(!layout.contains { $0.column == column })
        #expect(layout.reduce(0) { $0 + $1.column.gap + $1.width } == 119, "the width is used")
        #expect(air.lines()[1].contains(heading), "\(air.lines()[1])")
        #expect(air.lines().last == "\(column.title) is hidden; the same key shows it again")
        air.press(.character(key))
        #expect(air.lines()[1] == before)
        #expect(air.lines().last == "")
    }

    @Test(arguments: [20, 29, 40, 60, 80, 120]) func hiddenColumnsStayHiddenAtAnyWidth(_ columns: Int) {
        for column in ScreenColumn.numbered {
            let layout = ScreenColumn.layout(for: columns - 1, hasSets: true, without: [column])
            #expect(!layout.contains { $0.column == column })
            #expect(layout.reduce(0) { $0 + $1.column.gap + $1.width } <= columns - 1)
        }
        let bare = ScreenColumn.layout(for: columns - 1, without: Set(ScreenColumn.numbered))
        #expect(bare.map { $0.column } == [.strength])
    }

    /// A device without a name can still be distinguished.
    @Test func theNameIsTheAddressWhereThatIsHidden() {
        let air = Self.three()
        air.press(.character("2"))
        #expect(air.lines()[3].contains("00:00:02"), "\(air.lines()[3])")
    }

    @Test func aColumnWithoutRoomIsReported() {
        let air = Air(columns: 60, rows: 8)
        air.press(.character("6"), .character("6"))
        #expect(air.lines().last == "there is no room for EVERY on 60 columns")
    }

    @Test func digitsAreTextInTheFilter() {
        let air = Self.three()
        air.press(.character("/"), .character("3"), .click(column: 3, row: 3))
        #expect(air.screen.filter == "3")
        #expect(air.screen.hiddenColumns.isEmpty)
        #expect(air.screen.selected == nil)
    }

    @Test func aClickSelectsAndAnotherOpens() throws {
        let air = Self.three()
        _ = air.lines()
        air.press(.click(column: 10, row: 3))
        let id = try #require(air.screen.selected)
        #expect(id.peer?.address.description == "C0:00:00:00:00:02")
        #expect(air.screen.view == .table)
        air.press(.click(column: 10, row: 3))
        #expect(air.screen.view == .device(id, line: 0))
        air.press(.click(column: 10, row: 3))
        #expect(air.screen.view == .device(id, line: 0))
        air.press(.click(column: 10, row: 0))
        #expect(air.screen.view == .table)
    }

    /// The structures of the selected device belong to it; nothing is below the last row.
    @Test func aClickMeetsTheRowThatIsThere() {
        let air = Self.three()
        air.press(.down, .character("r"))
        _ = air.lines()
        let drawn = air.lines()
        for (row, line) in drawn.enumerated() where line.contains("C0:00:00:00:00:0") {
            let place = ScanView(air.screen, at: air.now).place(column: 10, row: row)
            guard case .device(let id)? = place else {
                Issue.record("row \(row) is no device")
                continue
            }
            #expect(line.contains(id.peer?.address.description ?? "anonymous"))
        }
        let view = ScanView(air.screen, at: air.now)
        #expect(view.place(column: 10, row: 3) == view.place(column: 10, row: 2), "a structure of the first device")
        for row in [-1, 0, 11, 500] { #expect(view.place(column: 10, row: row) == nil) }
    }

    @Test func aClickOnAHeadingSorts() throws {
        let air = Self.three()
        let heading = air.lines()[1]
        let name = try #require(heading.firstRange(of: "NAME"))
        let column = heading.distance(from: heading.startIndex, to: name.lowerBound)
        air.press(.click(column: column, row: 1))
        #expect(air.order() == ["Far", "Near", "C0:00:00:00:00:02"])
        air.press(.click(column: column, row: 1))
        #expect(air.order() == ["Near", "Far", "C0:00:00:00:00:02"])
        air.press(.click(column: 8, row: 1))
        #expect(air.screen.order == .strength && !air.screen.isReversed, "the bar is a strength too")
        let data = try #require(heading.firstRange(of: "DATA"))
        air.press(.click(column: heading.distance(from: heading.startIndex, to: data.lowerBound), row: 1))
        #expect(air.screen.order == .strength)
    }

    @Test func aClickOnAMessageIsOnNoRow() {
        let air = Air(columns: 100, rows: 4)
        air.hear("C0:00:00:00:00:01", -50, Air.named("Near"))
        air.hear("C0:00:00:00:00:02", -65, Air.named("Far"))
        air.pass(.seconds(3))
        #expect(air.lines()[3].contains("Far"))
        air.press(.character("m"))
        #expect(air.lines()[3].hasPrefix("the mouse selects rows"))
        air.press(.click(column: 10, row: 3))
        #expect(air.screen.selected == nil)
        #expect(air.lines()[3].contains("Far"))
        air.press(.click(column: 10, row: 3))
        #expect(air.screen.selected?.peer?.address.description == "C0:00:00:00:00:02")
    }

    /// Otherwise a key that can do nothing would seem to be broken while a filter is there.
    @Test func aMessageIsAboveTheFilter() {
        let air = Self.three()
        air.press(.character("/"))
        air.type("Near")
        air.press(.enter, .character("6"))
        #expect(
            air.lines().suffix(2) == [
                "EVERY is hidden; the same key shows it again", "/Near  1 of 3 devices  / change · Esc clear",
            ])
        air.press(.down)
        #expect(air.lines()[10] == "")
    }

    @Test func theMouseIsUsedOnRequest() {
        let air = Self.three()
        #expect(!air.screen.usesMouse)
        air.press(.character("m"))
        #expect(air.screen.usesMouse)
        #expect(air.lines().last == "the mouse selects rows; m leaves it to the terminal, to copy text")
        air.press(.character("m"))
        #expect(!air.screen.usesMouse)
        // Text is selected on the page of a device too.
        air.press(.down, .enter, .character("m"))
        #expect(air.screen.usesMouse)
        if case .device = air.screen.view {} else { Issue.record("\(air.screen.view)") }
    }

    @Test func setsAreDistinguishedWhereverThereIsAnAddress() {
        for columns in [55, 60, 68, 80, 120] {
            let layout = ScreenColumn.layout(for: columns - 1, hasSets: true)
            #expect(layout.reduce(0) { $0 + $1.column.gap + $1.width } <= columns - 1)
            #expect(layout.contains { $0.column == .address && $0.width >= 9 })
        }
    }

    @Test func theUnnamedAreHidden() {
        let air = Self.three()
        air.press(.character("d"))
        #expect(air.order() == ["Near", "Far"])
        #expect(air.lines().last == "2 of 3 devices  with a name or measurements · d show all")
        // Many thermometers have no name.
        air.hear("C0:00:00:00:00:04", -85, Hex.bytes("1816cdfd8818072240342d5801041701ca0002016107027227"))
        #expect(air.order() == ["Near", "Far", "C0:00:00:00:00:04"])
        air.press(.character("d"))
        #expect(air.order().count == 4)
    }

    /// What the table is sorted by is what it shows.
    @Test func theStrengthsShownAreInOrder() throws {
        let air = Air(columns: 100, rows: 12)
        for round in 0..<60 {
            for device in 1...5 {
                let strength = Int8(-50 - 3 * device + (round * device * 7) % 11 - 5)
                air.hear("C0:00:00:00:00:0\(device)", strength)
            }
            air.pass(.milliseconds(300))
            guard round > 10 else { continue }
            let shown = air.lines()[2...6].compactMap { Int($0.split(separator: " ").first ?? "") }
            #expect(shown.count == 5 && shown == shown.sorted(by: >))
        }
    }

    @Test func aWideTerminalIsUsed() {
        let air = Air(columns: 200, rows: 12)
        air.hear("C0:00:00:00:00:01", -50, Air.named(String(repeating: "n", count: 18)))
        let heading = air.lines()[1]
        #expect(heading.count == 199, "the columns end at the right edge")
    }

    @Test(arguments: [60, 80, 120]) func theKeysCanAlwaysBeFound(_ columns: Int) {
        let air = Air(
            columns: columns, rows: 12,
            heading: .init(source: "a-capture-with-a-very-long-name-indeed.btsnoop", mode: "recording"))
        air.screen.finish("end of the recording, which is cut off", brief: "cut off", at: air.now)
        #expect(air.lines()[0].contains("? keys"), "\(air.lines()[0])")
    }

    /// No word of a device is cut on its page, however narrow the terminal.
    @Test(arguments: [30, 40, 60, 80]) func thePageOfADeviceIsWrapped(_ columns: Int) {
        let air = Air(columns: columns, rows: 60)
        air.hear("D0:35:33:33:44:03", -50, Air.govee)
        air.press(.down, .enter)
        let text = air.lines().dropFirst().joined(separator: " ").split(separator: " ").joined()
        #expect(text.contains("battery100%"))
        #expect(!text.contains("…"))
    }

    @Test func neighboursAreReachedFromThePage() {
        let air = Self.three()
        air.press(.down, .enter, .right)
        #expect(air.lines()[0].hasPrefix("C0:00:00:00:00:02"))
        air.press(.right, .right)
        #expect(air.lines()[0].hasPrefix("C0:00:00:00:00:03"))
        air.press(.left, .left, .left)
        #expect(air.lines()[0].hasPrefix("C0:00:00:00:00:01"))
    }

    /// A sensor that alternates between a measurement and a beacon shows the measurement first, always.
    @Test func aMeasurementStaysShownBesideABeacon() {
        let air = Air(columns: 120, rows: 12)
        let beacon: [UInt8] = [26, 0xFF, 0x4C, 0, 2, 0x15] + [UInt8](repeating: 7, count: 16) + [0, 1, 0, 2, 0xC5]
        for round in 0..<6 {
            air.hear("D0:35:33:33:44:03", -50, round % 2 == 0 ? Air.govee : beacon)
            air.pass(.milliseconds(500))
            #expect(air.lines()[2].contains("19.0 °C  48.8 %  battery 100 %"), "\(air.lines()[2])")
        }
    }

    /// What is repeated stays, however long ago it was new.
    @Test func whatIsRepeatedStays() {
        let air = Air(columns: 120, rows: 12)
        for _ in 0..<75 {
            air.hear("D0:35:33:33:44:03", -50, Air.govee)
            air.pass(.seconds(1))
        }
        air.hear("D0:35:33:33:44:03", -50, [2, 1, 6, 5, 0xFF, 0x34, 0x12, 1, 2])
        #expect(air.lines()[2].contains("19.0 °C"), "\(air.lines()[2])")
        air.pass(.seconds(70))
        air.hear("D0:35:33:33:44:03", -50, [2, 1, 6, 5, 0xFF, 0x34, 0x12, 1, 3])
        #expect(!air.lines()[2].contains("19.0 °C"))
    }

    /// What a user wants to know is found by its name, also where the table shows the value alone; in 80 columns its
    /// value can be read.
    @Test(arguments: ["temp", "govee", "°c"]) func aThermometerIsFoundInTheStreet(_ text: String) throws {
        let air = Air(columns: 80, rows: 24)
        for number in 10..<60 {
            air.hear("C0:00:00:00:00:\(number)", Int8(-30 - number / 2), Air.named("Device \(number)"))
        }
        air.hear("D0:35:33:33:44:03", -95, Air.govee)
        air.pass(.seconds(3))
        #expect(!air.lines().contains { $0.contains("19.0 °C") }, "the table is longer than the screen")
        air.press(.character("/"))
        air.type(text)
        air.press(.enter)
        #expect(air.order().count == 1)
        #expect(air.lines()[2].contains("19.0 °C  48.8 %"), "\(air.lines()[2])")
    }

    /// A key that can do nothing reports why.
    @Test(arguments: [ScreenKey.enter, .character("c")]) func withoutADeviceTheReasonIsReported(_ key: ScreenKey) {
        let air = Air()
        #expect(air.action(key) == .none)
        #expect(air.lines().last == "no device is heard at the moment")
        air.screen.begin(at: air.now, canGoBack: true)
        #expect(air.action(key) == .none)
        #expect(air.lines().last == "no device is heard at this time of the recording; l lists the recorded links")
        air.hear("C0:00:00:00:00:01", -50)
        air.press(.character("d"))
        #expect(air.action(key) == .none)
        #expect(air.lines().suffix(2).first == "all devices are hidden; d shows them")
        air.press(.character("/"))
        air.type("far")
        air.press(.enter)
        #expect(air.action(key) == .none)
        #expect(air.lines().suffix(2).first == "no device matches the filter; Esc clears it")
    }

    @Test func aRecordingHasKeysOfItsOwn() {
        let air = Air(columns: 80, rows: 24)
        air.hear("C0:00:00:00:00:01", -50, isConnectable: true)
        air.pass(.seconds(2))
        air.press(.down, .enter)
        #expect(air.lines()[0].contains("c connect · Esc back"))
        air.screen.begin(at: air.now, canGoBack: true)
        #expect(air.lines()[0].contains("c recorded link · Esc back"))
        air.press(.character("?"))
        let keys = air.lines()
        #expect(keys[0].contains("KEYS") && !keys[0].contains("more"), "all of them are on an ordinary terminal")
        #expect(keys.contains(" c           show what was recorded of a link with the device"))
        #expect(keys.contains(" l           list the recorded links"))
        #expect(!keys.contains { $0.contains("connect to the device") })
    }

    @Test func connectingNeedsASelection() {
        let reason = "no device is selected; the arrows select one"
        let air = Self.three()
        #expect(air.action(.character("c")) == .none)
        #expect(air.lines().last == reason)
        air.press(.down)
        #expect(air.action(.character("c")) != .none)
        #expect(!air.lines().contains(reason))
    }

    @Test func shortIntervalsHaveMilliseconds() {
        #expect(DeviceLine.seconds(.milliseconds(20)) == "20 ms")
        #expect(DeviceLine.seconds(.milliseconds(2540)) == "2.5 s")
    }
}

extension Air {
    /// The advertisement of a Govee H5105.
    static let govee: [UInt8] =
        [2, 1, 6] + named("GVH5105_4403") + [3, 3, 0x88, 0xEC, 9, 0xFF, 1, 0, 1, 1, 2, 0xE8, 0x18, 0x64]
}
