import BLECore
import BLEProfiles
import Testing

/// Redaction of what devices advertise: in their own address and name, and in the data of makers and services.
@Suite struct AdvertisementRedactionTests {
    /// The address on air; payloads have another one, as those of devices with private addresses.
    private let onAir = PeerID(address: BluetoothAddress(rawValue: 0x5494_5E9F_64C4), type: .random)

    private func scanResult(_ payload: [UInt8], _ peer: PeerID, identity: PeerID? = nil) -> ScanResult {
        var table = DeviceTable()
        let report = AdvertisingReport(
            address: peer.address, addressType: peer.type, properties: [.legacy], rssi: -50, data: payload)
        let place = table.record(report, of: identity, at: .zero)?.place ?? 0
        return table[place]
    }

    @Test func anIdentityIsReplacedAndStaysOne() throws {
        var redaction = AdvertisementRedaction()
        let identity = PeerID(address: BluetoothAddress(rawValue: 0xA4C1_3856_5384), type: .public)
        let other = PeerID(address: BluetoothAddress(rawValue: 0x7712_FB36_5BCF), type: .random)
        let masked = [onAir, other].map { redaction.redacted(scanResult([], $0, identity: identity)) }
        let shown = masked.map { $0.identity?.address.description }
        #expect(shown == ["A4:C1:38:00:00:02", "A4:C1:38:00:00:02"])
        #expect(masked.map { $0.peer?.address.description } == ["40:00:00:00:00:01", "40:00:00:00:00:03"])
        #expect(masked.map(\.id).allSatisfy { $0 == masked.first?.id })
    }

    private func bytes(_ hex: String) -> [UInt8] {
        (try? Hex.decode(hex)) ?? []
    }

    private func payload(_ hex: String) -> [UInt8] {
        let structure = bytes(hex)
        return [UInt8(structure.count)] + structure
    }

    /// The formats that have the device's address, each laid out by its own documentation, with A4:C1:38:56:53:84 in
    /// it; what is masked is the last three bytes, by the number of the second address that was met.
    @Test(arguments: [
        // ATC1441's and pvvx's README: the address first, big-endian there, little-endian here.
        ("161a18 a4c138565384 00a22f5f0bf819", "161a18 a4c138000002 00a22f5f0bf819"),
        ("161a18 84535638c1a4 00a7 1273 0b47 06 0e 00", "161a18 02000038c1a4 00a7 1273 0b47 06 0e 00"),
        // docs.ruuvi.com, formats 5 and C5: the address last, big-endian.
        (
            "ff9904 05 12fc 5394 c37c 0004fffc040c ac36 42 00cd a4c138565384",
            "ff9904 05 12fc 5394 c37c 0004fffc040c ac36 42 00cd a4c138000002"
        ),
        (
            "ff9904 c5 12fc 5394 c37c ac36 42 00cd a4c138565384",
            "ff9904 c5 12fc 5394 c37c ac36 42 00cd a4c138000002"
        ),
        // MiBeacon: after control, product and counter, where bit 4 says so; BTHome: bit 1.
        ("1695fe 5020 aa01 64 84535638c1a4 0d1004", "1695fe 5020 aa01 64 02000038c1a4 0d1004"),
        ("1695fe 4020 aa01 64 84535638c1a4", "1695fe 4020 aa01 64 84535638c1a4"),
        ("16d2fc 42 84535638c1a4 0161", "16d2fc 42 02000038c1a4 0161"),
        ("16d2fc 40 84535638c1a4", "16d2fc 40 84535638c1a4"),
        // [MS-CDP] and Swift Pair: address and name to the end.
        ("ff0600 01 09 21 02 84535638c1a400 4950", "ff0600 01 09 21 02 787878787878787878"),
        ("ff0600 01 09 20 22 33eba028", "ff0600 01 09 20 22 33eba028"),
        ("ff0600 03 00 80 44656d6f", "ff0600 03 00 80 78787878"),
        // Target addresses, each of them, and an LE Bluetooth Device Address.
        ("17 84535638c1a4 85535638c1a4", "17 02000038c1a4 03000038c1a4"),
        ("1b 84535638c1a4 00", "1b 02000038c1a4 00"),
        // Random ones: only the two top bits stay.
        ("18 84535638c1e4", "18 0200000000c0"),
        ("1b 84535638c1e4 01", "1b 0200000000c0 01"),
    ]) func knownFieldsAreMasked(_ shown: String, _ redacted: String) {
        var redaction = AdvertisementRedaction()
        let masked = redaction.redacted(scanResult(payload(shown), onAir))
        #expect(masked.advertisement?.data == payload(redacted))
        #expect(masked.peer?.description == "40:00:00:00:00:01/random")
    }

    /// The identifiers of beacons, trackers and accessories, each laid out by its own documentation. What remains is
    /// the number of each, in the order of appearance; powers and states stay.
    @Test(arguments: [
        // Apple's Proximity Beacon Specification: UUID, major, minor, power; and a truncated one.
        (
            "ff4c00 0215 e2c56db5dffb48d2b060d0f5a71096e0 0064 0007 c5",
            "ff4c00 0215 00000000000000000000000000000001 0002 0003 c5"
        ),
        ("ff4c00 0215 e2c56db5dffb48d2b060", "ff4c00 0215 00000000000000000001"),
        // AltBeacon 1.0: two equal halves have one number.
        (
            "ff1801 beac e2c56db5dffb48d2b060d0f5a71096e0 0064 0064 c5 00",
            "ff1801 beac 00000000000000000000000000000001 0002 0002 c5 00"
        ),
        // Eddystone-UID with its reserved bytes; a URL is no identifier.
        ("16aafe 00 ee 8b0ca750095477cb3e77 0123456789ab 0000", "16aafe 00 ee 00000000000000000001 000000000002 0000"),
        ("16aafe 10 ee 03 676f6f2e676c", "16aafe 10 ee 03 676f6f2e676c"),
        ("16edfe 0200 847a6fce6bc39474", "16edfe 0200 0000000000000001"),
        // HAP R2 7.4.2: the regular message with its setup hash, and the encrypted notification.
        (
            "ff4c00 0631 01 112233445566 0500 0100 01 02 aabbccdd",
            "ff4c00 0631 01 000000000001 0500 0100 01 02 00000002"
        ),
        (
            "ff4c00 1136 112233445566 000102030405060708090a0b 0c0d0e0f",
            "ff4c00 1136 000000000001 000102030405060708090a0b 0c0d0e0f"
        ),
        // Other messages of Apple's, also those before it, stay.
        ("ff4c00 1002 0b00 0631 01 112233445566", "ff4c00 1002 0b00 0631 01 000000000001"),
        (
            "ff4c00 01 063101112233445566778899aabbccdd",
            "ff4c00 01 063101112233445566778899aabbccdd"
        ),
    ]) func lastingIdentifiersBecomeNumbers(_ shown: String, _ redacted: String) {
        var redaction = AdvertisementRedaction()
        let masked = redaction.redacted(scanResult(payload(shown), onAir))
        #expect(masked.advertisement?.data == payload(redacted))
        // The same identifier keeps its number.
        #expect(redaction.redacted(scanResult(payload(shown), onAir)).advertisement?.data == payload(redacted))
    }

    @Test func theOwnAddressAndNameAreMaskedEverywhere() {
        var redaction = AdvertisementRedaction()
        // Name "Lampe"; then a maker's data with the address in both orders, and the name in capitals.
        let shown = bytes("06094c616d7065") + payload("ffffff c4649f5e9454 54945e9f64c4 4c414d5045")
        let masked = redaction.redacted(scanResult(shown, onAir))
        let name = Array("(name 1)".utf8)
        #expect(
            masked.advertisement?.data
                == [UInt8(name.count + 1), 9] + name + payload("ffffff 010000000040 400000000001 7878787878"))
        #expect(masked.rssi == -50 && masked.count == 1)
    }

    /// Advertisements of Fixtures/adv/meanings.txt: a Govee H5105 and an H5178, a ThermoPro TP357, an Inkbird; and the
    /// ThermoPro under a name without its model.
    @Test(arguments: [
        ("0d09475648353130355f34343033 09ff0100010102e81864", "GVH5105_(name 1)"),
        ("0a09423531373843353435 0cff010001010003a00f640000", "GVH5178_(name 1)"),
        ("0d09545033353720283241303129 07ffc2170127022c", "TP357 (name 1)"),
        ("0409737073 0aff9c08f41000ba4e6408", "sps"), ("06095450332028 07ffc2170127022c", "TP3 (name 1)"),
    ])
    func theModelThatTheFormatIsRecognizedByStays(_ shown: String, _ name: String) {
        var redaction = AdvertisementRedaction()
        let scanResult = scanResult(bytes(shown), onAir)
        let masked = redaction.redacted(scanResult)
        #expect(masked.name == name)
        #expect(!masked.decoded.isEmpty && masked.decoded == scanResult.decoded)
    }

    /// No data of the format; digits that are a part of something else; another sensor of the same maker.
    @Test(arguments: [
        "0d09475648353130355f34343033", "0d09475648353130355f34343033 09ff0100010202e81864",
        "0d09475620506f73742035313035 09ff88ec0002d0174200", "050953313035 09ff88ec0002d0174200",
    ])
    func anotherNameIsMaskedWhole(_ shown: String) {
        var redaction = AdvertisementRedaction()
        #expect(redaction.redacted(scanResult(bytes(shown), onAir)).name == "(name 1)")
    }

    @Test func everyLengthIsMaskedWithoutATrap() {
        var redaction = AdvertisementRedaction()
        for hex in [
            "161a18a4c13856538400a22f5f0bf819", "ff990405138a5f61c4f0ffe4ffdc0414c5b6ec29b3a4c138565384",
            "1695fe5020aa016484535638c1a4", "ff06000109210284535638c1a4004950",
            "ff4c000215e2c56db5dffb48d2b060d0f5a71096e000640007c5", "ff1801beace2c56db5dffb48d2b060d0f5a71096e0",
            "16aafe00ee8b0ca750095477cb3e770123456789ab", "16edfe0200847a6fce6bc39474",
            "ff4c0006310111223344556605000100",
        ] {
            let whole = bytes(hex)
            for length in 0...whole.count {
                let shown = [UInt8(length)] + whole.prefix(length)
                #expect(redaction.redacted(scanResult(shown, onAir)).advertisement?.data.count == shown.count)
                for left in 0..<length { _ = redaction.redacted(scanResult(Array(shown.prefix(left)), onAir)) }
            }
        }
    }
}
