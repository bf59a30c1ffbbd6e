import BLECore

@testable import blescan

/// The devices on the air, and the live table that receives their reports.
final class Air {
    private var table = DeviceTable()
    var screen: ScanScreen
    var now = BootInstant(nanoseconds: 1_000_000_000_000)

    static let heading = ScanScreen.Heading(source: "hci0", address: "5C:F3:70:9B:1A:02", mode: "active scan")

    init(
        _ look: ScreenLook = ScreenLook(isColoured: false, isUnicode: true), columns: Int = 100, rows: Int = 12,
        heading: ScanScreen.Heading = Air.heading
    ) {
        screen = ScanScreen(heading, look, columns: columns, rows: rows)
    }

    /// Delivers a report.
    func hear(
        _ address: String, _ rssi: Int8?, _ data: [UInt8] = [], type: AddressType = .random, isResponse: Bool = false,
        isConnectable: Bool = false, identity: PeerID? = nil
    ) {
        var properties: AdvertisingReport.Properties = isResponse ? [.scanResponse, .legacy] : [.legacy]
        if isConnectable { properties.insert(.connectable) }
        let report = AdvertisingReport(
            address: BluetoothAddress(address), addressType: type, properties: properties, rssi: rssi, data: data)
        guard let outcome = table.record(report, of: identity, at: now) else { return }
        screen.take(table[outcome.place])
    }

    /// Advances the time, and notifies the screen.
    func pass(_ duration: Duration) {
        now = now + duration
        screen.timePassed(at: now)
    }

    func press(_ keys: ScreenKey...) {
        for key in keys { _ = screen.press(key, at: now) }
    }

    func type(_ text: String) {
        for scalar in text.unicodeScalars { press(.character(scalar)) }
    }

    /// Presses a key; returns the action that it requests.
    func action(_ key: ScreenKey) -> ScreenAction { screen.press(key, at: now) }

    /// Returns the present screen.
    func frame() -> [ScreenLine] { screen.frame(at: now) }

    /// Returns the lines as they can be read, without what follows the last character of a line.
    func lines() -> [String] {
        frame().map { line in
            var text = line.text
            while text.hasSuffix(" ") { text.removeLast() }
            return text
        }
    }

    /// Returns the rows of the table, from top to bottom: the names, or the addresses of devices without one.
    func order() -> [String] {
        screen.visible.map { id in
            screen.devices[id]?.name ?? id.peer?.address.description ?? "anonymous"
        }
    }

    /// Returns the advertising data of a device that sends only its name.
    static func named(_ name: String) -> [UInt8] {
        let bytes = Array(name.utf8.prefix(60))
        return [UInt8(bytes.count + 1), 0x09] + bytes
    }

    /// Creates the five devices of the table's design.
    static func street(
        _ look: ScreenLook = ScreenLook(isColoured: false, isUnicode: true), columns: Int,
        heading: ScanScreen.Heading = Air.heading
    ) -> Air {
        let air = Air(look, columns: columns, heading: heading)
        let windows = Hex.bytes("1eff06000109200e2b8f6e4d1ac53a2f0b1d9c4e77a1b2c3d4e5f60718293a")
        air.hear("6E:10:42:A7:5B:2C", -90, windows)
        air.pass(.milliseconds(1100))
        air.hear("6E:10:42:A7:5B:2C", -90, windows)
        // The other four are received for ten more seconds.
        air.pass(.seconds(28))
        for round in 0..<100 {
            let steady = Int8(round % 3 - 1)
            if round % 25 == 0 {
                air.hear(
                    "A4:C1:38:56:53:84", -41 + steady,
                    Hex.bytes("12161a1884535638c1a4a00a7412730b47060e") + named("ATC_565384"), type: .public)
            }
            if round % 10 == 0 {
                air.hear(
                    "F2:0B:91:6C:33:D0", -58 + steady, Hex.bytes("02010605030d180f18") + named("HRM-Pro"),
                    isConnectable: true)
            }
            if round % 2 == 0 {
                // It comes nearer.
                air.hear("54:94:5E:9F:64:C4", -83 + Int8(round / 5), Hex.bytes("02011a0aff4c0010050b1c9a7d3e"))
            }
            if round % 5 == 0, round < 90 {
                air.hear(
                    "DC:23:4D:8E:70:11", -77 + steady, Hex.bytes("0201060303f0ff") + named("Feeder"), type: .public,
                    isConnectable: true)
            }
            air.pass(.milliseconds(100))
        }
        air.screen.lose(3)
        air.screen.sort(at: air.now)
        return air
    }
}

extension Hex {
    /// Returns the bytes of text that is known to be hexadecimal.
    static func bytes(_ text: String) -> [UInt8] { (try? decode(text)) ?? [] }
}
