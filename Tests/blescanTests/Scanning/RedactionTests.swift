import BLECore
import BLEProfiles
import Foundation
import Testing

@testable import blescan

/// The masked parts of `--redact`, and the remaining ones.
@Suite struct RedactionTests {
    private let address = BluetoothAddress(rawValue: 0xA4C1_3856_5384)

    private func scanResult(
        _ payload: [UInt8], response: [UInt8]? = nil, address: BluetoothAddress, type: AddressType = .public
    ) -> ScanResult {
        var table = DeviceTable()
        var place = 0
        for (data, isResponse) in [(payload, false), (response, true)] as [([UInt8]?, Bool)] {
            guard let data else { continue }
            let report = AdvertisingReport(
                address: address, addressType: type, properties: isResponse ? [.legacy, .scanResponse] : [.legacy],
                rssi: -50, data: data)
            place = table.record(report, at: .zero)?.place ?? 0
        }
        return table[place]
    }

    /// Returns everything that could be printed of a scan result.
    private func everything(_ scanResult: ScanResult) -> String {
        var text = PlainLine.text(of: scanResult, at: "") + DeviceLine(scanResult).text
        let origin = ScanLines.Origin(time: "", scanner: "", adapter: "", sequence: 0, dropped: 0)
        text += JSONLine(scanResult, event: .found, origin: origin).text
        for line in TheengsLine.lines(of: scanResult) { text += line.text }
        return text
    }

    private func redacted(_ payload: String, response: String? = nil) -> String {
        var redaction = AdvertisementRedaction()
        let scanResult = scanResult(
            AirCapture.bytes(payload), response: response.map(AirCapture.bytes), address: address)
        return everything(redaction.redacted(scanResult)).lowercased()
    }

    // Payloads of Fixtures/adv/meanings.txt and of the formats' descriptions, with this device's address in them.
    @Test(arguments: [
        // pvvx: the address first, in reversed byte order; ATC: in natural order.
        "12161a18845356 38c1a4 00a7 1273 0b47 060e 00", "10161a18a4c1385653 84 00a22f5f0bf819",
        // A RuuviTag ends with the address.
        "1bff990405138a5f61c4f0ffe4ffdc0414c5b6ec29b3a4c138565384",
        // MiBeacon and BTHome, in reversed byte order.
        "1516 95fe 5020 aa01 64 845356 38c1a4 0d1004 fe004802", "0c16 d2fc 42 845356 38c1a4 0161",
        // An LE Bluetooth Device Address, and one in data of an unknown format.
        "081b 845356 38c1a4 00", "0cff ffff 01 02 a4c138565384 03",
        // Names: complete, shortened, of a broadcast, and of Microsoft's.
        "0b09 4154435f 353635333834", "0508 4154435f", "0530 4154435f", "10ff 0600 03 00 80 4154435f 353635333834",
        // The name again, in manufacturer data.
        "0b09 4154435f 353635333834 0eff ffff 07 4154435f 353635333834",
        // In lower case, with two bytes per letter in either order, and in a URI with percent-encoding.
        "0b09 4154435f 353635333834 0eff ffff 07 6174635f 353635333834",
        "0b09 4154435f 353635333834 18ff ffff 07 4100540043005f00 350036003500330038003400",
        "0b09 4154435f 353635333834 18ff ffff 07 004100540043005f 003500360035003300380034",
        "0609 41544320 64 0a24 17 2f 61746325323064",
    ]) func neitherAddressNorNameIsLeft(_ payload: String) {
        let text = redacted(payload.replacing(" ", with: ""))
        for secret in [
            "a4:c1:38:56:53:84", "a4c138565384", "84535638c1a4", "565384", "atc_", "4154435f", "353635333834",
            "6174635f", "350036003500", "3500360035", "617463",
        ] {
            #expect(!text.contains(secret), "\(secret)")
        }
    }

    @Test func theNameOfTheResponseIsNotLeftInTheAdvertisement() {
        let text = redacted("0aff ffff 4c616d7065 0102".replacing(" ", with: ""), response: "06094c616d7065")
        #expect(!text.contains("4c616d7065") && !text.contains("lampe"))
        #expect(text.contains("(name 1)") && text.contains("7878787878"))
    }

    @Test func whatIdentifiesTheKindIsKept() {
        var redaction = AdvertisementRedaction()
        func alias(_ text: String, _ type: AddressType) -> String? {
            guard let address = BluetoothAddress(text) else { return nil }
            return redaction.redacted(scanResult([2, 1, 6], address: address, type: type)).peer?.description
        }
        #expect(alias("A4:C1:38:56:53:84", .public) == "A4:C1:38:00:00:01/public")
        #expect(alias("F2:0B:91:6C:33:D0", .random) == "C0:00:00:00:00:02/random")
        #expect(alias("54:94:5E:9F:64:C4", .random) == "40:00:00:00:00:03/random")
        #expect(alias("05:94:5E:9F:64:C4", .random) == "00:00:00:00:00:04/random")
        // The same device keeps its number.
        #expect(alias("F2:0B:91:6C:33:D0", .random) == "C0:00:00:00:00:02/random")
    }

    /// The fixture has an iBeacon; in every form its identifiers are the numbers 1, 2 and 3.
    @Test(arguments: [
        ["--format", "plain"], ["--format", "json"], ["--format", "theengs"],
        ["--format", "csv", "--fields", "address,services,hex,decoded"],
    ]) func noLineHasABeaconsIdentifiers(_ form: [String]) async throws {
        let arguments = ["replay", Fixtures.threeDevices, "--as-scan", "--redact"] + form
        let outcome = try await BuiltProgram.run(arguments)
        #expect(outcome.status == 0)
        for secret in ["b9407f30", "25556b57fe6d", "00010002c5", "major 1", "\"major\":1"] {
            #expect(!outcome.output.contains(secret), "\(secret)")
        }
        #expect(outcome.output.contains("0000000100020003c5"))
    }

    private static let link = Fixtures.folder.appending(path: "att/gar-cl-bv-05-c.dialogue").path

    /// Packets have addresses and values in clear.
    @Test(arguments: [[], ["--only", "att"], ["--json"], ["--check"], ["--as-fixture", "visit"]])
    func packetsAreNotPrintedAsIfTheyWereMasked(_ mode: [String]) async throws {
        let outcome = try await BuiltProgram.run(["replay", Self.link, "--redact"] + mode)
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(outcome.errors.contains("cannot be masked"), "\(outcome.errors)")
    }

    @Test func ofALinkAloneNothingIsPrinted() async throws {
        let outcome = try await BuiltProgram.run(["replay", Self.link, "--as-scan", "--redact"])
        #expect(outcome.status == 1 && outcome.output.isEmpty)
        #expect(outcome.errors.contains("with addresses and values in clear"), "\(outcome.errors)")
    }

    @Test func measurementsStayWhereTheNameTellsTheFormat() {
        let text = redacted("0d09475648353130355f3434303309ff0100010102e81864")
        #expect(text.contains("govee h5105: temperature 19.0 °c, humidity 48.8 %"))
        #expect(text.contains("gvh5105_(name 1)") && !text.contains("4403") && !text.contains("34343033"))
    }

    // Beacons and Tile trackers have identifiers, Microsoft's beacons names; some of Govee's thermometers are beacons too.
    @Test func valuesStayAsTheyWere() throws {
        var redaction = AdvertisementRedaction()
        for known in try Fixtures.meanings(by: "")
        where ![
            "swift-pair", "microsoft-cdp", "ibeacon", "altbeacon", "eddystone", "tile",
        ].contains(known.kind) {
            let scanResult = scanResult(AirCapture.bytes(known.payload), address: address)
            let masked = redaction.redacted(scanResult)
            let told = masked.decoded.filter { $0.kind != .iBeacon }
            #expect(told == scanResult.decoded.filter { $0.kind != .iBeacon }, "\(known.payload)")
            #expect(scanResult.serviceUUIDs == masked.serviceUUIDs)
        }
    }

    @Test func damagedPayloadsAreMaskedToo() throws {
        var redaction = AdvertisementRedaction()
        let name = "0b094154435f353635333834"
        for known in try Fixtures.meanings(by: "").prefix(60) {
            let bytes = AirCapture.bytes(known.payload + name)
            for length in 0...bytes.count {
                let masked = redaction.redacted(scanResult(Array(bytes.prefix(length)), address: address))
                // A truncated name is a name too.
                #expect(!everything(masked).lowercased().contains("4154435f"))
            }
            for index in bytes.indices {
                var flipped = bytes
                flipped[index] ^= 0xFF
                _ = redaction.redacted(scanResult(flipped, address: address))
            }
        }
    }
}
