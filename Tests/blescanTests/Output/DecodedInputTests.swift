import BLECore
import TestSupport
import Testing

@testable import blescan

/// `blescan decode`: the keys are a contract, so whole lines are compared. The sample payload is the one of the manual;
/// events are recorded ones from vectors/advertising or follow the layouts in Core Vol 4 Part E, 7.7.65.
@Suite struct DecodedInputTests {
    private func json(_ line: String) -> String {
        JSONLine(DecodedInput(line: line)).text + "\n"
    }

    private func table(_ line: String) -> String {
        var text = ""
        AdvertisementTable.append(DecodedInput(line: line), to: &text)
        return text
    }

    private let sample = "0201041AFF590000150112233445566778899AABBCCDDEEFF0FFFFFFFFC3"

    @Test func theSampleIsPrintedAsJSON() {
        #expect(
            json(sample)
                == #"{"v":1,"hex":"0201041aff590000150112233445566778899aabbccddeeff0ffffffffc3","flags":4,"#
                + #""manufacturerData":{"0059":"00150112233445566778899aabbccddeeff0ffffffffc3"},"#
                + #""structures":[[1,"04"],[255,"590000150112233445566778899aabbccddeeff0ffffffffc3"]]}"# + "\n")
    }

    @Test func theSampleIsPrintedAsATable() {
        #expect(
            table(sample) == """
                 LEN  TYPE                      VALUE
                   2  01 Flags                  04  BR/EDR not supported
                  26  ff Manufacturer data      0059  Nordic Semiconductor ASA
                                                0015 0112233445566778899aabbccddeeff0 ffff ffff c3

                """)
    }

    @Test func everyKeyHasItsPlace() {
        let line =
            "020106" + "03084142" + "0409414243" + "020AF4" + "03194103" + "05030D180F18"
            + "11079ECADC240EE5A9E093F3A3B50100406E"
            + "03141218" + "04160F1864" + "04FF4C0001"
        #expect(
            json(line)
                == #"{"v":1,"hex":"\#(line.lowercased())","flags":6,"localName":"ABC","shortName":"AB","#
                + #""txPower":-12,"appearance":833,"#
                + #""serviceUUIDs":["180d","180f","6e400001-b5a3-f393-e0a9-e50e24dcca9e"],"solicitedUUIDs":["1812"],"#
                + #""serviceData":{"180f":"64"},"manufacturerData":{"004c":"01"},"#
                + #""structures":[[1,"06"],[8,"4142"],[9,"414243"],[10,"f4"],[25,"4103"],[3,"0d180f18"],"#
                + #"[7,"9ecadc240ee5a9e093f3a3b50100406e"],[20,"1218"],[22,"0f1864"],[255,"4c0001"]]}"# + "\n")
    }

    @Test func aCutPayloadKeepsWhatIsGood() {
        #expect(
            json("020106 1EFF4C")
                == #"{"v":1,"hex":"0201061eff4c","flags":6,"structures":[[1,"06"]],"#
                + #""error":"the structure at byte 3 is cut off: 28 bytes are missing"}"#
                + "\n")
    }

    @Test(arguments: [
        ("02010g", "'g' is not a hex digit"), ("02010", "the last byte has one digit only"),
    ])
    func linesThatAreNotHexadecimal(line: String, reason: String) {
        #expect(json(line) == #"{"v":1,"structures":[],"error":"not hexadecimal: \#(reason)","code":"badData"}"# + "\n")
    }

    /// A recorded event, s00191 of the vectors.
    @Test func aRecordedEventIsDecoded() {
        let line =
            "043e390d01130001a218efd680410100ff7fae0000000000000000001f02011a1bff4c000c0e081730a873dd01df6b1b032ba6c01006441da5e42348"
        #expect(
            json(line)
                == #"{"v":1,"reports":[{"address":"41:80:D6:EF:18:A2","addressType":"random","#
                + #""addressKind":"private","rssi":-82,"eventType":19,"#
                + #""connectable":true,"scannable":true,"primaryPHY":1,"sid":null,"#
                + #""hex":"02011a1bff4c000c0e081730a873dd01df6b1b032ba6c01006441da5e42348","flags":26,"#
                + #""manufacturerData":{"004c":"0c0e081730a873dd01df6b1b032ba6c01006441da5e42348"},"#
                + #""decoded":[{"format":"apple-continuity","title":"Apple","values":{"messages":["Handoff","nearby info"]}}],"#
                + #""structures":[[1,"1a"],[255,"4c000c0e081730a873dd01df6b1b032ba6c01006441da5e42348"]]}]}"# + "\n")
        #expect(table(line).hasPrefix("41:80:D6:EF:18:A2 private  -82 dBm  connectable  scannable\n LEN"))
    }

    /// Malformed events: the first is s00856 of the vectors, which has contradictory lengths.
    @Test(arguments: [
        ("043e2102010301ffeeddccbbaa1e0201061aff4c000215fda50693a4e24fb1afcfc6eb07", "1 announced report is cut off"),
        ("043e", "the event ends before its subevent code"),
        ("043e0101", "LE subevent 0x01 carries no advertising reports"),
        ("043e0b0201000001020304050600", "1 announced report is cut off"),
        (
            "043e0b0201000001020304050600c0",
            "the event states 11 bytes of parameters and has 12; 1 announced report is cut off"
        ),
    ])
    func aMalformedEventNamesItsProblem(line: String, problem: String) {
        let end = #""reports":[],"error":"\#(problem)","code":"badData"}"# + "\n"
        #expect(json(line).hasSuffix(end), "\(json(line))")
    }

    @Test func oversizedLegacyReportsAreShownWithAnError() {
        let data = "20FF" + String(repeating: "00", count: 31)
        let line = json("043E2D02010000010203040506" + "21" + data + "C0")
        #expect(line.contains(#""address":"06:05:04:03:02:01""#) && line.contains("more than the 31 bytes"))
    }

    @Test func hostileNamesAreEscaped() {
        let line = json("0A09221B0AE280AE5C0042")
        #expect(line.contains(##""localName":"\"\u001b\n\u202e\\\u0000B""##), "\(line)")
        #expect(table("0A09221B0AE280AE5C0042").contains(#"\u{1b}\u{a}\u{202e}\"#))
    }

    /// A name with a soft hyphen, annotation marks, an invisible tag, and a private-use character: RFC 8259, 7 defines
    /// how those beyond 16 bits are escaped.
    @Test(.row("O37")) func whatHasNoShapeIsEscapedInJSONToo() {
        let name = "L\u{ad}a\u{fff9}m\u{fffb}p\u{e0041}e\u{e000} ä🔥"
        let bytes = Array(name.utf8)
        let line = json(Hex.encode([UInt8(bytes.count + 1), 0x09] + bytes))
        #expect(line.contains(#""localName":"L\u00ada\ufff9m\ufffbp\udb40\udc41e\ue000 ä🔥""#), "\(line)")
        for scalar in line.unicodeScalars { #expect(scalar == "\n" || !scalar.isUnprintable) }
    }

    /// A RuuviTag's steps of 0.005 °C and 0.0025 %.
    @Test func objectsHaveTheExactNumbers() {
        let line = "1bff99040512fd5395c37c0004fffc040cac364200cdcbb8334c884f"
        #expect(json(line).contains(#""values":{"temperature":24.305,"humidity":53.4925,"pressure":1000.44,"#))
        #expect(table(line).contains("RuuviTag: temperature 24.31 °C, humidity 53.49 %, pressure 1000.44 hPa, "))
    }

    /// The rule for plain lines is that for JSON.
    @Test(.row("O37")) func whatHasNoShapeIsEscapedInTheTableToo() {
        let text = table("0C09F3A08181E280AE7461671B")
        #expect(text.contains(##""\u{e0041}\u{202e}tag\u{1b}""##), "\(text)")
    }

    @Test func theFirstOfTwoValuesCounts() {
        #expect(json("04FF4C000104FF4C0002").contains(#""manufacturerData":{"004c":"01"}"#))
    }
}
