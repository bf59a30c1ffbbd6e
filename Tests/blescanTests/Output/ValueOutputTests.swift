import BLECore
import BLEProfiles
import Testing

@testable import blescan

/// The printed form of decoded values; the types' own tests cover their bytes.
@Suite struct ValueOutputTests {
    @Test(
        arguments: [
            (0x2A19, "64", "100 %", "100"), (0x2A01, "4103", "Heart Rate Belt", "833"),
            (0x2A38, "01", "chest", "1"), (0x2A38, "2a", "code 42", "42"),
            (0x2A6E, "0b0a", "25.71 °C", "25.71"), (0x2A6E, "0080", "not known", "null"),
            (0x2A00, "4c616d70", "\"Lamp\"", "\"Lamp\""), (0x2A00, "486100b12c", "\"Ha\"", "\"Ha\""),
            (0x2A24, "4c0000", "\"L\"", "\"L\""),
            (
                0x2A37, "1e480a000003", "heart rate 72 bpm, skin contact, energy 10 kJ, RR 0.750 s",
                #"{"heartRate":72,"skinContact":true,"energy":10,"rr":[0.750]}"#
            ),
            (
                0x2A50, "01590001000200", "company 0x0059 Nordic Semiconductor ASA, product 0x0001, version 0x0002",
                #"{"company":89,"product":1,"version":2}"#
            ),
            (
                0x2A0F, "80ff", "time zone unknown, daylight saving unknown",
                #"{"timeZone":null,"daylightSaving":null}"#
            ),
            (0x2902, "0100", "notifications on", "1"), (0x2A54, "0000", "none", "[]"),
        ] as [(UInt16, String, String, String)])
    func aKnownTypeIsDecoded(_ uuid: UInt16, _ hex: String, _ line: String, _ json: String) throws {
        let meaning = ValueDescription.of(try Hex.decode(hex), uuid: BluetoothUUID(uuid))
        #expect(meaning?.line == line)
        #expect(meaning?.json.text == json)
    }

    /// An unknown type, and bytes that do not fit their type: text is recognized, anything else is not.
    @Test(
        arguments: [
            (0xFFF1, "4c616d70", "\"Lamp\""), (0xFFF1, "c3a4c3b6", "\"äö\""), (0xFFF1, "4c", nil),
            (0xFFF1, "4c00", nil),
            (0xFFF1, "c3a4c3", nil), (0xFFF1, "4ce280ae70", nil), (0xFFF1, "", nil), (0x2A19, "4c616d70", "\"Lamp\""),
        ] as [(UInt16, String, String?)])
    func onlyTextIsRecognizedWithoutAType(_ uuid: UInt16, _ hex: String, _ line: String?) throws {
        #expect(ValueDescription.of(try Hex.decode(hex), uuid: BluetoothUUID(uuid))?.line == line)
        #expect(ValueDescription.of(try Hex.decode(hex), uuid: nil)?.line == line)
    }

    /// A right-to-left override in a device's name is shown as text and has no effect.
    @Test func namesCannotSteerTheTerminal() throws {
        #expect(ValueDescription.of(try Hex.decode("4ce280ae70"), uuid: 0x2A00)?.line == "\"L\\u{202e}p\"")
    }

    @Test func thePresentationFormatHelpsWithUnknownTypes() throws {
        let celsius = GATTDescriptor.PresentationFormat(format: 0x0E, exponent: -2, unit: 0x272F)
        let meaning = ValueDescription.of([0x0B, 0x0A], uuid: 0xFFF1, format: celsius)
        #expect(meaning?.line == "25.71 °C")
        #expect(meaning?.json.text == "25.71")
        #expect(ValueDescription.of([0x64], uuid: 0x2A19, format: celsius)?.line == "100 %")
        let volts = GATTDescriptor.PresentationFormat(format: 0x14, exponent: 0, unit: 0x2728)
        let half = ValueDescription.of([0, 0, 0, 0x3F], uuid: 0xFFF1, format: volts)
        #expect(half?.line == "0.5 V")
        #expect(half?.json.text == "0.5")
        let nothing = ValueDescription.of([0, 0, 0x80, 0x7F], uuid: 0xFFF1, format: volts)
        #expect(nothing?.line == "inf V")
        #expect(nothing?.json.text == "null")
    }
}
