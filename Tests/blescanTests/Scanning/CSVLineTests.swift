import BLECore
import TestSupport
import Testing

@testable import blescan

/// Lines of a scan for spreadsheets.
@Suite struct CSVLineTests {
    private func lines(_ name: String, _ fields: [CSVField], _ data: [UInt8] = []) -> [String] {
        var table = DeviceTable()
        let report = AdvertisingReport(
            address: BluetoothAddress("D0:35:33:33:44:03"), addressType: .random, properties: [.legacy, .connectable],
            rssi: -41, data: Air.named(name) + data)
        let outcome = table.record(report, at: .zero)
        var lines = ScanLines(format: .csv, scanner: "attic", fields: fields)
        let time = Duration.milliseconds(1_795_248_000_123)
        let all =
            [lines.header].compactMap(\.self)
            + lines.lines(of: table[outcome?.place ?? 0], .found, adapter: "hci0", at: time)
        return all.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func theHeaderComesOnce() {
        #expect(
            lines("GVH5105_4403", CSVField.usual, Array(Air.govee.suffix(14))) == [
                "t,address,addressKind,name,rssi,services,temperature,humidity,battery,decoded",
                "2026-11-21T08:00:00.123Z,D0:35:33:33:44:03,static,GVH5105_4403,-41,ec88,19.0,48.8,100,"
                    + "\"Govee H5105: temperature 19.0 °C, humidity 48.8 %, battery 100 %\"",
            ])
    }

    /// Nothing that a device calls itself is a formula, another cell, another line, or controls a terminal.
    @Test(arguments: [
        ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM", "'@SUM"),
        ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\r\n=b", "a\\u{d}\\u{a}=b"), ("\t=b", "'\\u{9}=b"),
        ("\u{1B}[31m", "\\u{1b}[31m"), ("a,\u{301}b", "\"a,\u{301}b\""), ("\"\u{301}", "\"\"\"\u{301}\""),
        ("=\u{301}cmd", "'=\u{301}cmd"), ("\u{FF1D}1", "'\u{FF1D}1"), (" =1", "' =1"),
        ("'=1", "''=1"), ("'", "''"), ("'\u{301}x", "''\u{301}x"), (" '=1", " '=1"), ("it's", "it's"),
    ])
    func namesAreText(_ name: String, _ cell: String) {
        #expect(lines(name, [.name, .rssi]).last == cell + ",-41")
    }

    @Test(
        arguments: [
            (.number("heart rate", 72, "bpm"), "72"), (.scaled("temperature", 2571, exponent: -2, "°C"), "25.71"),
            (ValueField("voltage", .float(0.5), unit: "V"), "0.5"), (ValueField("voltage", .float(.infinity)), ""),
            (ValueField("temperature", .missing("not known")), ""), (ValueField("contact", .flag(false)), "false"),
            (ValueField("type", .named(3, "ear")), "ear"), (ValueField(.quoted("=1")), "'=1"),
            (ValueField("RR", .list([.integer(1), .integer(2)]), unit: "s"), "\"1 s, 2 s\""),
        ] as [(ValueField, String)])
    func quantitiesAreNumbersAndCodesAreWords(_ field: ValueField, _ cell: String) {
        #expect(CSVLine.value(field) == cell)
    }

    /// A line without characters would be none for many readers.
    @Test func anEmptyCellThatIsAloneIsInQuotes() {
        #expect(lines("x", [.identity]) == ["identity", "\"\""])
        #expect(lines("x", [.identity, .responseHex]) == ["identity,scanResponseHex", ","])
    }

    @Test func fieldsAreChosen() throws {
        let fields = try FieldsArgument(argument: "rssi,connectable,decoded.counter,event,scanResponseHex").fields
        #expect(lines("x", fields) == ["rssi,connectable,decoded.counter,event,scanResponseHex", "-41,true,,found,"])
        let error = try #require(throws: BadValue.self) { try FieldsArgument(argument: "t,tea") }
        #expect(error.description.hasPrefix("there is no field 'tea'. The fields are t, event, address,"))
        #expect(throws: BadValue.self) { try FieldsArgument(argument: "") }
    }

    @Test(arguments: [
        ["--fields", "t"], ["--format", "csv", "--heartbeat", "1s"], ["--format", "json", "--fields", "t"],
    ])
    func optionsFitTogether(_ options: [String]) async throws {
        #expect(try await BuiltProgram.run(["scan"] + options).status == 64)
    }
}
