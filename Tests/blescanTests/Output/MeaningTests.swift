import BLECore
import Testing

@testable import blescan

/// Values by the layouts of their specifications; none of them comes from an encoder of ours.
@Suite struct MeaningTests {
    @Test(
        arguments: [
            (0x2A19, "64", "100 %"), (0x2A19, "6400", nil), (0x2A01, "4103", "Heart Rate Belt"), (0x2A01, "41", nil),
            (0x2A37, "0648", "heart rate 72 bpm, skin contact"), (0x2A37, "0448", "heart rate 72 bpm, no skin contact"),
            (0x2A37, "01ff00", "heart rate 255 bpm"), (0x2A37, "08480a00", "heart rate 72 bpm, 10 kJ"),
            (0x2A37, "104801030004", "heart rate 72 bpm, RR 0.751 s, RR 1.000 s"),
            (0x2A37, "", nil), (0x2A37, "06", nil), (0x2A37, "01ff", nil), (0x2A37, "08480a", nil),
            (0x2A38, "01", "chest"), (0x2A38, "07", nil), (0x2A38, "", nil),
            (0x2902, "0000", "off"), (0x2902, "0100", "notifications on"), (0x2902, "0200", "indications on"),
            (0x2902, "0300", "both on"), (0x2902, "01", nil),
            (0x2A04, "180028000000a401", "interval 30.00 ms to 50.00 ms, latency 0, time-out 4200 ms"),
            (0x2A04, "ffffffff0000ffff", "interval any to any, latency 0, any time-out"), (0x2A04, "1800", nil),
            (0x2A50, "0159000100", nil),
            (0x2A50, "01590001000200", "company 0x0059 Nordic Semiconductor ASA, product 0x0001, version 0x0002"),
            (0x2A50, "026d0434120001", "USB vendor 0x046d, product 0x1234, version 0x0100"),
            (0x2A50, "03590001000200", nil),
            (0x2A6E, "0b0a", "25.71 °C"), (0x2A6E, "9cff", "-1.00 °C"), (0x2A6E, "fbff", "-0.05 °C"),
            (0x2A6F, "c409", "25.00 %"),
            (0x2A00, "4c616d70", "\"Lamp\""), (0x2A00, "4c", nil), (0x2A00, "4c00", nil),
            (0x2A00, "c3a4c3b6", "\"äö\""),
            (0x2A00, "c3a4c3", nil), (0x2A00, "4ce280ae70", nil),
        ] as [(UInt16, String, String?)])
    func text(_ uuid: UInt16, _ hex: String, _ expected: String?) throws {
        #expect(Meaning.text(of: try Hex.decode(hex), uuid: BluetoothUUID(uuid)) == expected)
    }

    /// No value of any length or content stops the program.
    @Test func anyBytesAreSafe() {
        var generator = SystemRandomNumberGenerator()
        for uuid: UInt16 in [0x2A01, 0x2A04, 0x2A19, 0x2A37, 0x2A38, 0x2A50, 0x2A6E, 0x2A6F, 0x2902, 0x2A00] {
            for length in 0...40 {
                for fill: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
                    var value = [UInt8](repeating: fill, count: length)
                    if length > 0 { value[0] = .random(in: .min ... .max, using: &generator) }
                    _ = Meaning.text(of: value, uuid: BluetoothUUID(uuid))
                    _ = Meaning.json(of: value, uuid: BluetoothUUID(uuid))
                }
            }
        }
    }
}
