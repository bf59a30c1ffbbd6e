import BLECore
import BLEProfiles
import BareBLE
import BareBLETestKit
import Testing

@testable import blescan

/// The tree of `explore` on terminals of any width.
@Suite struct AttributeScreenTests {
    private static let widths = [30, 40, 60, 79, 80, 100, 120, 200]

    /// A peer with all that is difficult to lay out.
    static let database = GATTDatabase(
        services: [
            GATTService(handles: 0x0001...0x000F, uuid: 0x180A, isPrimary: true),
            GATTService(
                handles: 0x0010...0x001F, uuid: BluetoothUUID("6e400001-b5a3-f393-e0a9-e50e24dcca9e"),
                isPrimary: true),
            GATTService(
                handles: 0x0020...0xFFFF, uuid: BluetoothUUID("9d5a0001-3c7e-4b1f-8a26-e4710c95b3d8"),
                isPrimary: false),
        ],
        characteristics: [
            GATTCharacteristic(
                declarationHandle: 0x0002, valueHandle: 0x0003, endHandle: 0x000F, properties: [.read], uuid: 0x2A23),
            GATTCharacteristic(
                declarationHandle: 0x0011, valueHandle: 0x0012, endHandle: 0x001F,
                properties: [.write, .writeWithoutResponse],
                uuid: BluetoothUUID("6e400002-b5a3-f393-e0a9-e50e24dcca9e")),
            GATTCharacteristic(
                declarationHandle: 0x0021, valueHandle: 0x0022, endHandle: 0xFFFF,
                properties: [.read, .write, .notify, .indicate, .broadcast, .extendedProperties],
                uuid: BluetoothUUID("9d5a0002-3c7e-4b1f-8a26-e4710c95b3d8")),
        ],
        descriptors: [GATTDescriptor(handle: 0x0023, uuid: 0x2902)])

    /// Returns the attributes of a virtual device and what can be read of them, with the handles that `VirtualDevice`
    /// describes.
    static func attributes(
        of device: VirtualDevice
    ) -> (database: GATTDatabase, values: [AttributeHandle: [UInt8]]) {
        var services: [GATTService] = []
        var characteristics: [GATTCharacteristic] = []
        var descriptors: [GATTDescriptor] = []
        var values: [AttributeHandle: [UInt8]] = [:]
        var last: AttributeHandle = 0
        for service in device.services {
            let first = last + 1
            last = first
            for characteristic in service.characteristics {
                let declaration = last + 1
                last += 2
                if characteristic.properties.contains(.read) { values[last] = characteristic.value }
                let valueHandle = last
                let configurations =
                    characteristic.properties.canSubscribe ? [VirtualDescriptor(0x2902, value: [0, 0])] : []
                for descriptor in configurations + characteristic.descriptors {
                    last += 1
                    values[last] = descriptor.value
                    descriptors.append(GATTDescriptor(handle: last, uuid: descriptor.uuid))
                }
                characteristics.append(
                    GATTCharacteristic(
                        declarationHandle: declaration, valueHandle: valueHandle, endHandle: last,
                        properties: characteristic.properties, uuid: characteristic.uuid))
            }
            services.append(GATTService(handles: first...last, uuid: service.uuid, isPrimary: true))
        }
        return (
            GATTDatabase(services: services, characteristics: characteristics, descriptors: descriptors), values
        )
    }

    /// A device whose values have units beyond ASCII.
    private static let thermometer = VirtualDevice(
        name: "Thermometer",
        services: [
            VirtualService(
                0x181A,
                [
                    VirtualCharacteristic(0x2A6E, .read, value: [0x66, 0x08]),
                    VirtualCharacteristic(0x2A71, .read, value: [0x66, 0x08]),
                    VirtualCharacteristic(0x2A00, .read, value: Array("Küche … 21 °C, a name that is long".utf8)),
                ])
        ])

    /// Where `…` is three columns, and `°` four.
    @Test(arguments: ["heart-rate", "long-value", "thermometer"]) func noLineIsWiderInASCII(_ name: String) {
        let device = VirtualPeer(named: name)?.device ?? Self.thermometer
        let (database, values) = Self.attributes(of: device)
        let readings = values.mapValues { AttributeTree.Reading.value($0) }
        for width in 30...140 as ClosedRange<Int> {
            let screen = AttributeScreen(
                AttributeTree(
                    peer: "demo:\(name)", kind: nil, mtu: 517, connecting: .milliseconds(80),
                    discovering: .milliseconds(120), isFromCache: false, isUnchecked: false, discoveryRequests: 9,
                    allRequests: 15, database: database, services: database.services, values: readings,
                    interruption: nil, pairingAdvice: nil),
                width: width, spelled: \.ascii)
            for line in screen.styled {
                #expect(line.width <= width && line.plain.utf8.allSatisfy { $0 < 0x80 }, "\(width): \(line.plain)")
            }
        }
    }

    private static func screen(_ width: Int?) -> AttributeScreen {
        let values: [AttributeHandle: AttributeTree.Reading] = [
            0x0003: .value([1, 2, 3, 4, 5, 6, 7, 8]),
            0x0022: .value((0..<200).map { UInt8(truncatingIfNeeded: $0) | 0x80 }),
            0x0023: .refused(
                BLEError(
                    .insufficientSecurity, subject: "peer", during: "read",
                    because: "refused: insufficient authentication",
                    attError: .insufficientAuthentication)),
        ]
        return AttributeScreen(
            AttributeTree(
                peer: "C3:5A:19:0B:7E:21", kind: .static, mtu: 247, connecting: .milliseconds(80),
                discovering: .milliseconds(120), isFromCache: false, isUnchecked: false, discoveryRequests: 9,
                allRequests: 15, database: database, services: database.services, values: values, interruption: nil,
                pairingAdvice: "`blescan pair C3:5A:19:0B:7E:21`"), width: width, spelled: { $0 })
    }

    @Test(arguments: widths) func noLineIsWider(_ width: Int) {
        for line in Self.screen(width).styled {
            #expect(line.width <= width && ScreenText.width(line.plain) <= width, "\(line.plain)")
        }
    }

    /// As in `explore` of `talk`, which reads none, and where all values are short: the headings fit too.
    @Test(arguments: [[], [1]] as [[UInt8]]) func theHeadingsFit(_ value: [UInt8]) throws {
        let values: [AttributeHandle: AttributeTree.Reading] = value.isEmpty ? [:] : [0x0003: .value(value)]
        for width in 30...160 as ClosedRange<Int> {
            let screen = AttributeScreen(
                AttributeTree(
                    peer: "demo:uart", kind: nil, mtu: 23, connecting: .zero, discovering: .zero, isFromCache: false,
                    isUnchecked: false, discoveryRequests: 0, allRequests: 0, database: Self.database,
                    services: Self.database.services, values: values, interruption: nil, pairingAdvice: nil),
                width: width, spelled: { $0 })
            for line in screen.table { #expect(line.width <= width, "\(width): \(line.plain)") }
            let heading = try #require(screen.table.first).plain
            #expect(heading.hasPrefix("HANDLE") && !(value.isEmpty && heading.contains("VALUE")), "\(heading)")
        }
    }

    /// However narrow, the reading of a System ID is whole, and bytes are not cut in the middle.
    @Test(arguments: widths) func theMeaningStays(_ width: Int) {
        let lines = Self.screen(width).lines
        let text = lines.joined().filter { $0 != " " }
        #expect(text.contains("08:07:06:05:04"), "\(lines)")
        for line in lines {
            guard let cut = line.firstRange(of: "…") else { continue }
            let digits = line[..<cut.lowerBound].reversed().prefix { $0.isHexDigit }
            #expect(digits.count.isMultiple(of: 2), "\(line)")
        }
    }

    @Test(arguments: widths.filter { $0 >= 60 }) func uuidsAreWhole(_ width: Int) {
        let lines = Self.screen(width).lines
        for uuid in ["6e400001", "6e400002", "9d5a0001", "9d5a0002"] {
            #expect(lines.contains { $0.contains(uuid + "-") && !$0.contains("…-") }, "\(uuid)")
        }
    }

    @Test func lettersAreExplained() {
        let narrow = Self.screen(80).lines
        #expect(narrow.contains { $0.contains("Ww") })
        #expect(narrow.joined(separator: " ").contains("w write-without-response"))
        let wide = Self.screen(nil).lines
        #expect(wide.contains { $0.contains("write write-without-response") })
        #expect(!wide.contains { $0.hasPrefix("R read") })
    }

    @Test(arguments: [40, 80, 120]) func aWholePeerPrintsAsRecorded(_ width: Int) throws {
        try Golden.expect(Self.screen(width).lines.joined(separator: "\n") + "\n", matches: "explore-\(width).txt")
    }

    @Test func stylesAreLeftOutWithoutColours() {
        let line = StyledText("green", .green)
        #expect(line.painted(ScreenLook(isColoured: false, isUnicode: true)) == "green")
        #expect(line.painted(ScreenLook(isColoured: true, isUnicode: true)) == "\u{1B}[32mgreen\u{1B}[0m")
    }

    /// A path or a name may contain any character.
    @Test func textInALineCannotControlTheTerminal() {
        var line = StyledText("unix:/tmp/\u{1B}[2J")
        line.add("\u{9B}31m\u{202E}é", .bold)
        #expect(line.plain == #"unix:/tmp/\u{1b}[2J\u{9b}31m\u{202e}é"#)
        #expect(line.width == line.plain.count)
    }
}

@Suite struct WrappingTests {
    @Test(arguments: 1...30) func noLineIsWiderAndNothingIsLost(_ limit: Int) {
        let text = "a value of several words, 温度計 and 6e400002-b5a3-f393-e0a9-e50e24dcca9e"
        let lines = text.wrapped(to: limit)
        // One character of two columns cannot be divided.
        #expect(lines.allSatisfy { ScreenText.width($0) <= max(2, limit) })
        #expect(lines.joined().filter { $0 != " " } == text.filter { $0 != " " })
    }

    @Test func aNumberStaysWithItsUnit() {
        let text = "1.0 s, 1.2 s on average, between 10.0 s and 50.0 s"
        #expect(text.wrapped(to: 38) == ["1.0 s, 1.2 s on average, between", "10.0 s and 50.0 s"])
        #expect("pressure 1000.44 hPa, 8 µg/m³ and 3".wrapped(to: 18) == ["pressure", "1000.44 hPa,", "8 µg/m³ and 3"])
        #expect(
            "movements 66, sequence 205, 3 devices".wrapped(to: 29) == ["movements 66, sequence 205, 3", "devices"])
        #expect("50.0 s".wrapped(to: 5) == ["50.0", "s"], "not where they do not fit together")
    }

    /// Blanks are no words: a long word after them begins no second line, and no line ends with them.
    @Test func blanksAreKeptOnlyBetweenWordsOfALine() {
        #expect("      0512fc5394c37c00".wrapped(to: 10) == ["0512fc5394", "c37c00"])
        #expect("  27  ff".wrapped(to: 10) == ["  27  ff"])
        #expect("0499      Ruuvi Innovations".wrapped(to: 12) == ["0499", "Ruuvi", "Innovations"])
        #expect("".wrapped(to: 3) == [""] && "    ".wrapped(to: 3) == [""])
    }

    /// The value begins in column 32, and where there is no room below it, goes on near the edge.
    @Test func aRowOfATableGoesOnWhereThereIsRoom() {
        let row = "  27  ff Manufacturer data      0499  Ruuvi Innovations Ltd."
        let bytes = String(repeating: " ", count: 32) + "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f"
        #expect(
            row.wrapped(to: 40, indent: 32) == ["  27  ff Manufacturer data      0499", "  Ruuvi Innovations Ltd."])
        #expect(
            bytes.wrapped(to: 40, indent: 32) == ["  0512fc5394c37c0004fffc040cac364200cdcb", "  b8334c884f"])
        #expect(bytes.wrapped(to: 52, indent: 32).allSatisfy { $0.hasPrefix(bytes.prefix(32)) && !$0.hasSuffix(" ") })
    }

    /// A text with wide characters and a tab, which is no plain text: its bytes are shown too.
    @Test(arguments: 12...60) func noValueIsWiderThanItsRoom(_ room: Int) {
        let bytes = Array("温\t度計".utf8)
        let value = ValueText(bytes, ValueDescription.of(bytes, uuid: 0x2A00), spelled: { $0 })
        #expect(value.whole.contains("e6b8a909"))
        #expect(value.lines(in: room).allSatisfy { ScreenText.width($0) <= room }, "\(value.lines(in: room))")
    }
}
