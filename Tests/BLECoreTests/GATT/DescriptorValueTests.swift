import BLECore
import BLEProfiles
import Testing

/// Layouts and numbers by Core Vol 3 Part G, 3.3.3, and Assigned Numbers; the first presentation format is one of the
/// large database in BlueZ's tests.
@Suite struct DescriptorValueTests {
    @Test func aPresentationFormatIsRead() throws {
        let plain = try GATTDescriptor.PresentationFormat(value: Hex.decode("04000127010100"))
        #expect(plain == GATTDescriptor.PresentationFormat(format: 4, unit: 0x2701, description: 1))
        #expect(plain.typeName == "uint8")
        #expect(plain.unitName == "length (metre)")
        #expect(throws: MalformedPacket.self) {
            try GATTDescriptor.PresentationFormat(value: Hex.decode("000130011131"))
        }
        let celsius = try GATTDescriptor.PresentationFormat(value: Hex.decode("0efe2f27010d01"))
        #expect(celsius.exponent == -2)
        #expect(celsius.typeName == "sint16")
        #expect(celsius.unitName == "Celsius temperature (degree Celsius)")
        #expect(celsius.description == 0x010D)
        #expect(Hex.encode(celsius.valueBytes) == "0efe2f27010d01")
        #expect(celsius.value(of: [0x0B, 0x0A]) == .decimal(mantissa: 2571, exponent: -2))
        #expect(celsius.value(of: [0x0B, 0x0A])?.doubleValue == 25.71)
        #expect(celsius.value(of: [0x0B]) == nil)
        #expect(celsius.describe([0x0B, 0x0A])?.first?.text == "25.71 °C")
        let text = "format sint16, exponent -2, unit Celsius temperature (degree Celsius), description 269"
        #expect(ValueDescription.of(uuid: 0x2904, value: celsius.valueBytes)?.text == text)
    }

    /// Widths and signs as the format's names say.
    @Test(
        arguments: [
            (0x01, "01", .boolean(true)), (0x01, "02", nil), (0x02, "ff", .decimal(mantissa: 3, exponent: 0)),
            (0x03, "ff", .decimal(mantissa: 15, exponent: 0)), (0x04, "ff", .decimal(mantissa: 255, exponent: 1)),
            (0x05, "ffff", .decimal(mantissa: 4095, exponent: 1)),
            (0x06, "ffff", .decimal(mantissa: 65535, exponent: 1)),
            (0x07, "ffffff", .decimal(mantissa: 0xFF_FFFF, exponent: 1)),
            (0x08, "ffffffff", .decimal(mantissa: 0xFFFF_FFFF, exponent: 1)),
            (0x09, "ffffffffffff", .decimal(mantissa: 0xFFFF_FFFF_FFFF, exponent: 1)),
            (0x0A, "ffffffffffffff7f", .decimal(mantissa: .max, exponent: 1)), (0x0A, "ffffffffffffffff", nil),
            (0x0C, "ff", .decimal(mantissa: -1, exponent: 1)), (0x0D, "ff0f", .decimal(mantissa: -1, exponent: 1)),
            (0x0E, "ffff", .decimal(mantissa: -1, exponent: 1)),
            (0x0F, "000080", .decimal(mantissa: -0x80_0000, exponent: 1)),
            (0x10, "feffffff", .decimal(mantissa: -2, exponent: 1)),
            (0x11, "feffffffffff", .decimal(mantissa: -2, exponent: 1)),
            (0x12, "feffffffffffffff", .decimal(mantissa: -2, exponent: 1)), (0x14, "0000c03f", .float(1.5)),
            (0x15, "000000000000f83f", .float(1.5)), (0x16, "6cf1", .medical(.finite(mantissa: 364, exponent: -1))),
            (0x17, "6c0100ff", .medical(.finite(mantissa: 364, exponent: -1))), (0x19, "4c00", .text("L")),
            (0x1B, "00", nil), (0x04, "", nil), (0x00, "00", nil),
        ] as [(UInt8, String, GATTDescriptor.PresentedValue?)])
    func aValueIsDecodedByItsPresentationFormat(
        _ format: UInt8, _ hex: String, _ expected: GATTDescriptor.PresentedValue?
    ) throws {
        let format = GATTDescriptor.PresentationFormat(format: format, exponent: 1)
        #expect(format.value(of: try Hex.decode(hex)) == expected)
    }

    @Test func anyFormatTakesAnyBytes() {
        for format in UInt8.min ... .max {
            for length in 0...20 {
                for fill: UInt8 in [0, 0x7F, 0x80, 0xFF] {
                    let presentation = GATTDescriptor.PresentationFormat(format: format, exponent: -128, unit: 0x27C9)
                    _ = presentation.describe([UInt8](repeating: fill, count: length))?.first?.text
                }
            }
        }
    }

    @Test func bitsOfConfigurationsAreReadAndWritten() throws {
        #expect(try GATTDescriptor.ClientConfiguration(value: [3, 0]) == [.notifications, .indications])
        #expect(GATTDescriptor.ClientConfiguration.indications.valueBytes == [2, 0])
        #expect(try GATTDescriptor.ServerConfiguration(value: [1, 0]) == .broadcasts)
        #expect(try GATTDescriptor.ExtendedProperties(value: [3, 0]) == [.reliableWrite, .writableAuxiliaries])
        #expect(throws: MalformedPacket.self) { try GATTDescriptor.ExtendedProperties(value: [3]) }
    }

    @Test func aggregatesAndRangesAreRead() throws {
        #expect(try GATTDescriptor.AggregateFormat(value: [3, 0, 5, 1]).handles == [0x0003, 0x0105])
        #expect(throws: MalformedPacket.self) { try GATTDescriptor.AggregateFormat(value: [3, 0, 5]) }
        let range = try GATTDescriptor.ValidRange(value: [0xF6, 0xFF, 0x0A, 0x00])
        let bounds = try range.bounds(as: Int16.self)
        #expect(bounds.lower == -10)
        #expect(bounds.upper == 10)
        #expect(range.valueBytes == [0xF6, 0xFF, 0x0A, 0x00])
        #expect(throws: MalformedPacket.self) { try GATTDescriptor.ValidRange(value: []) }
        #expect(throws: MalformedPacket.self) { try range.bounds(as: UInt8.self) }
    }
}
