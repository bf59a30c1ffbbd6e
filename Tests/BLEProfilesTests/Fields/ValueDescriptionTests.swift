import BLECore
import BLEProfiles
import TestSupport
import Testing

/// Bytes and what they say. The bytes were read by a second program too, which found the same numbers: the parsers of
/// the PyPI package `bluetooth-sig` 0.6.0, for Current Time also the tests of eisaev/blevalueparser. Temperatures as
/// FLOAT are the example of the SIG's Personal Health Devices Transcoding White Paper (0xFF00016C is 36.4). Text with
/// zero bytes after it is what a Garmin device sent in a capture (FrankHJCuypers_fuut in the shared vectors).
@Suite struct ValueDescriptionTests {
    static let goldens: [(UInt16, String, String?)] = [
        (0x2A37, "0648", "heart rate 72 bpm, skin contact"), (0x2A37, "0448", "heart rate 72 bpm, no skin contact"),
        (0x2A37, "01ff00", "heart rate 255 bpm"), (0x2A37, "08480a00", "heart rate 72 bpm, energy 10 kJ"),
        (0x2A37, "104801030004", "heart rate 72 bpm, RR 0.751 s, RR 1.000 s"),
        (
            0x2A37, "1e5a0a00e80300042a03",
            "heart rate 90 bpm, skin contact, energy 10 kJ, RR 0.977 s, RR 1.000 s, RR 0.791 s"
        ),
        (0x2A37, "", nil), (0x2A37, "06", nil), (0x2A37, "01ff", nil), (0x2A37, "08480a", nil), (0x2A37, "104801", nil),
        // A bit that only a later version knows, and its field.
        (0x2A37, "2648ff", "heart rate 72 bpm, skin contact"), (0x2A37, "0648ff", nil),
        (0x2A1C, "086c0100ffff", "temperature 36.4 °C"), (0x2A1C, "006c0100ffff", nil),
        (0x2BED, "0aa100" + "4bff", "level 75 %, state charging, charge good"), (0x2BED, "02a1004bff", nil),
        (0x2A38, "01", "chest"), (0x2A38, "07", "code 7"), (0x2A38, "", nil), (0x2A39, "01", "reset energy expended"),
        (0x2A19, "64", "100 %"), (0x2A19, "6400", nil),
        (0x2BED, "03a10001004b", "level 75 %, state charging, charge good"),
        (0x2BED, "07210612014b01", "level 75 %, state charging, charging trickle, service needed"),
        (0x2BED, "000000", "no battery"),
        // The bits of the two kinds of faults as Zephyr's Battery Service packs them.
        (0x2BED, "000170", "charging fault battery, charging fault power source, charging fault other"),
        (0x2BED, "04010004", "battery fault"), (0x2BED, "04010000", "battery"),
        (0x2A50, "01590001000200", "company 0x0059 Nordic Semiconductor ASA, product 0x0001, version 0x0002"),
        (0x2A50, "026d0434120001", "USB vendor 0x046d, product 0x1234, version 0x0100"), (0x2A50, "0159000100", nil),
        (0x2A23, "123456feffabcdef", "ef:cd:ab:ff:fe:56:34:12"),
        (0x2A24, "36303231310000000000000000000000", "\"60211\""),
        (0x2A26, "322e35332e3200000000000000000000", "\"2.53.2\""),
        (0x2A25, "4c616d70", "\"Lamp\""), (0x2A27, "4c616d70", "\"Lamp\""), (0x2A28, "4c616d70", "\"Lamp\""),
        (0x2A29, "4c616d70", "\"Lamp\""),
        (0x2A1C, "006c0100ff", "temperature 36.4 °C"),
        (0x2A1C, "07da0300ffe3070415140e2d06", "temperature 98.6 °F, type mouth, time 2019-04-21 20:14:45"),
        (0x2A1E, "00ffff7f00", "temperature not a number"), (0x2A1C, "026c0100ffe307041514", nil),
        (0x2A1D, "09", "ear drum"), (0x2A21, "2c01", "300 s"),
        (0x2A6E, "0b0a", "25.71 °C"), (0x2A6E, "9cff", "-1.00 °C"), (0x2A6E, "fbff", "-0.05 °C"),
        (0x2A6E, "0080", "not known"), (0x2A6F, "c409", "25.00 %"), (0x2A6D, "7c750f00", "101311.6 Pa"),
        (0x2A6C, "10feff", "-4.96 m"), (0x2A76, "08", "8"), (0x2A7B, "f6", "-10 °C"), (0x2A7A, "20", "32 °C"),
        (0x2A79, "f0", "-16 °C"), (0x2A70, "3905", "13.37 m/s"), (0x2A71, "2823", "90.00 °"),
        (0x2A72, "3905", "13.37 m/s"), (0x2A73, "2823", "90.00 °"), (0x2A74, "0f", "1.5"),
        (0x2A77, "e803", "100.0 W/m²"), (0x2A78, "2c01", "0.300 m"), (0x2A75, "102700", "10000 /m³"),
        (0x2A2C, "2823", "90.00 °"), (0x2AA3, "05", "falling, then rising less"), (0x2AFB, "10270a", "6653.60 lx"),
        (0x2B8C, "9001", "400 ppm"), (0x2BE7, "f401", "500 ppb"), (0x2BD6, "19b0", "0.00025 kg/m³"),
        // Worked out by hand from the medical floats: the second program scales these gases otherwise.
        (0x2BD0, "19b0", "0.00025 kg/m³"), (0x2BD1, "2200", "34 ppb"), (0x2BD2, "19b0", "0.00025 kg/m³"),
        (0x2BD4, "19b0", "0.00025 kg/m³"), (0x2BD5, "19b0", "0.00025 kg/m³"), (0x2BD7, "19b0", "0.00025 kg/m³"),
        (0x2A2B, "e707010214160701ff01", "time 2023-01-02 20:22:07.996, day Monday, adjusted by hand"),
        (
            0x2A2B, "e70701021416070900" + "0f",
            "time 2023-01-02 20:22:07, day code 9, adjusted by hand, adjusted by a reference, adjusted new time zone, "
                + "adjusted daylight saving"
        ),
        (0x2A08, "e3070415140e2d", "2019-04-21 20:14:45"),
        (0x2A0C, "e707010214160701ff", "time 2023-01-02 20:22:07.996, day Monday"),
        (0x2A2B, "00000000000000000000", "time ????-??-?? 00:00:00"),
        (0x2A0F, "0404", "time zone 1.00 h, daylight saving 1.00 h"),
        (0x2A0F, "80ff", "time zone unknown, daylight saving unknown"),
        (
            0x2A14, "01100205",
            "source network time protocol, accuracy 2.000 s, days since update 2, hours since update 5"
        ),
        (0x2A01, "4103", "Heart Rate Belt"), (0x2A01, "41", nil),
        (
            0x2A04, "180028000000a401",
            "shortest interval 30.00 ms, longest interval 50.00 ms, latency 0, time-out 4200 ms"
        ),
        (0x2A04, "ffffffff0000ffff", "shortest interval any, longest interval any, latency 0, time-out any"),
        (0x2A00, "4c616d70", "\"Lamp\""), (0x2A00, "c3a4c3b6", "\"äö\""), (0x2A00, "c3a4c3", nil),
        (0x2902, "0000", "off"), (0x2902, "0100", "notifications on"), (0x2902, "0200", "indications on"),
        (0x2902, "0300", "both on"), (0x2902, "01", nil), (0x2903, "0100", "broadcasts on"),
        (0x2900, "0100", "reliable write, no writable description"),
        (0x2901, "4c616d70", "\"Lamp\""),
        (0x2904, "0efe2f27010000", "format sint16, exponent -2, unit Celsius temperature (degree Celsius)"),
        (0x2905, "03000500", "format at 0x0003, format at 0x0005"), (0x2906, "02000d00", "from 0x0002, to 0x000d"),
        (0x2906, "020d00", nil),
    ]

    @Test(arguments: goldens) func aValueIsDescribedInWords(_ uuid: UInt16, _ hex: String, _ expected: String?) throws {
        #expect(ValueDescription.of(uuid: BluetoothUUID(uuid), value: try Hex.decode(hex))?.text == expected)
    }

    @Test func fieldsHaveKeysForPrograms() throws {
        let description = ValueDescription.of(uuid: 0x2A37, value: try Hex.decode("1e5a0a00e803"))
        #expect(description?.fields.map(\.key) == ["heartRate", "skinContact", "energy", "rr"])
        let parameters = ValueDescription.of(uuid: 0x2A04, value: try Hex.decode("180028000000a401"))
        #expect(parameters?.fields.map(\.key) == ["shortestInterval", "longestInterval", "latency", "timeOut"])
    }

    /// Every type that describes itself: golden bytes cut at every length and with every bit turned, then plain
    /// nonsense.
    @Test func noBytesTrapAnyType() throws {
        var generator = SeededNumbers(seed: 0x2A37)
        for (uuid, hex, _) in Self.goldens {
            let bytes = try Hex.decode(hex)
            for length in 0...bytes.count { describe(uuid, Array(bytes.prefix(length))) }
            for bit in 0..<(8 * bytes.count) {
                var turned = bytes
                turned[bit / 8] ^= 1 << UInt8(bit % 8)
                describe(uuid, turned)
            }
        }
        for uuid in ValueDescription.knownUUIDs.sorted(by: { $0.description < $1.description }) {
            for length in 0...40 {
                for fill: UInt8 in [0, 1, 0x55, 0x7F, 0x80, 0xAA, 0xFF] {
                    var value = [UInt8](repeating: fill, count: length)
                    for _ in 0..<4 {
                        _ = ValueDescription.of(uuid: uuid, value: value)?.text
                        for index in value.indices where Bool.random(using: &generator) {
                            value[index] = .random(in: .min ... .max, using: &generator)
                        }
                    }
                }
            }
        }
    }

    private func describe(_ uuid: UInt16, _ bytes: [UInt8]) {
        _ = ValueDescription.of(uuid: BluetoothUUID(uuid), value: bytes)?.text
    }
}
