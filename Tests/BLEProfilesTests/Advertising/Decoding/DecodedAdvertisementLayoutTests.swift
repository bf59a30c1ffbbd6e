import BLECore
import BLEProfiles
import Testing

/// Formats that no other decoder here reads: payloads put together from the layouts in the formats' descriptions, or
/// recorded ones whose bytes the test reads by the layout.
@Suite struct DecodedAdvertisementLayoutTests {
    private func meanings(_ hex: String) throws -> [String] {
        AdvertisingData(try Hex.decode(hex)).decoded.map(\.description)
    }

    /// Google's Fast Pair pages: a model, an account key filter with salt, and the battery notification.
    @Test(arguments: [
        ("06162cfe001122", "Fast Pair: ready to pair, model 0x001122"),
        ("0a162cfe00400a4288101142", "Fast Pair: paired with accounts"),
        (
            "0e162cfe00400a42881011423364e455",
            "Fast Pair: paired with accounts, left battery 100 %, right battery 100 %, case battery 85 %"
        ),
        (
            "0f162cfe00400a4288101142334064ff",
            "Fast Pair: paired with accounts, left battery 64 %, right battery 100 %, case battery not known"
        ),
        ("06162cfe0110", ""), ("05162cfe0040", ""),
    ])
    func fastPairIsNamed(_ hex: String, _ text: String) throws {
        #expect(try meanings(Self.sized(hex)) == (text.isEmpty ? [] : [text]))
    }

    /// Microsoft's Swift Pair page; the first two beacons are recorded (vectors, s00192 and s00193).
    @Test(arguments: [
        ("1eff06000109202233eba028d1ed173d372c271528c7185f032ed39cee844d", "Microsoft CDP: Windows desktop"),
        ("1eff0600010f2022122ea519d73d7580b762da4dea48ea9ad2e4ec6b1a9659", "Microsoft CDP: Windows laptop"),
        (
            "1aff06000109210200f35089e6aa5a4950434f4d2d3434373834",
            #"Microsoft CDP: Windows desktop, name "IPCOM-44784""#
        ),
        ("09ff060003008044656d6f", #"Swift Pair: over LE, name "Demo""#),
        ("06ff0600030080", "Swift Pair: over LE"),
        ("05ff060003018044656d6f", #"Swift Pair: over LE and BR/EDR, name "Demo""#),
        ("05ff0600030280112233445566040424", "Swift Pair: over BR/EDR"),
        ("05ff060003028011223344556604", ""), ("05ff0600030380", ""),
    ])
    func microsoftsBeaconsAreNamed(_ hex: String, _ text: String) throws {
        #expect(try meanings(Self.sized(hex)) == (text.isEmpty ? [] : [text]))
    }

    /// The layouts of "Who Can Find My Devices?", AirGuard, the Find Hub specification and the paper on Samsung's
    /// network, with invented keys.
    @Test(arguments: [
        ("ff4c0012191000112233445566778899aabbccddeeff001122334455000000", ""),
        (
            "ff4c00121910" + String(repeating: "ab", count: 22) + "0100",
            "Find My: AirTag, away from its owner, battery full"
        ),
        ("ff4c0012026501", "Find My: accessory, near its owner, battery medium"),
        (
            "16aafe40" + String(repeating: "cd", count: 20),
            "Find Hub: " + String(repeating: "cd", count: 20)
        ),
        (
            "16aafe41" + String(repeating: "cd", count: 20) + "00",
            "Find Hub: " + String(repeating: "cd", count: 20) + ", away from its owner"
        ),
        ("16aafe40cdcd", ""),
        ("165afd15c01e02952d5176b370041ab5000000104a1caa", "SmartTag: near its owner, 952d5176b370041a"),
        ("165afd12c11e02696bbe83b1476efab3000000c976be8f", "SmartTag: away from its owner, 696bbe83b1476efa"),
        ("165afd12c11e", ""),
        ("16edfe0200847a6fce6bc39474", "Tile: 847a6fce6bc39474"), ("16edfeabcd", "Tile"),
    ])
    func trackersAreNamedByTheirNetwork(_ hex: String, _ text: String) throws {
        #expect(try meanings(Self.sized("00" + hex)) == (text.isEmpty ? [] : [text]))
    }

    /// Messages of Apple's devices, recorded; the layouts by furiousMAC/continuity, HomeKit's by its specification.
    @Test(arguments: [
        ("ff4c001006341ea9302f4c", "Apple: nearby info"),
        ("ff4c001005031c8a4567", "Apple: nearby info, screen off"),
        ("ff4c000c0e081730a873dd01df6b1b032ba6c01006441da5e42348", "Apple: Handoff, nearby info"),
        ("ff4c000f09a0332f134804f9daf010024b0c", "Apple: nearby action, nearby info, in use"),
        ("ff4c00063100426ae1cd514f060028000502f2488802", "Apple: HomeKit, paired, category 6"),
        ("ff4c000100000000000000000000200000000000", "Apple: services in the background"),
        ("ff4c0016080008754bf0f7f4ee", ""), ("ff4c001006341ea930", ""), ("ff4c00a441e5", ""),
    ])
    func applesMessagesAreNamed(_ hex: String, _ text: String) throws {
        #expect(try meanings(Self.sized("00" + hex)) == (text.isEmpty ? [] : [text]))
    }

    /// The data is there, and says that a key is needed: nothing is guessed.
    @Test(arguments: [
        ("161a1811d603fbfa7b6dfb1e26fd", "ATC thermometer: encrypted"),
        ("16d2fc41a47266c95f730011223378237214", "BTHome: encrypted"),
        ("1695fe48590312a41b776e7c96add7000000f2bf545b", "Xiaomi XMWSDJ04MMC: counter 164, the rest is encrypted"),
        ("ff990408" + String(repeating: "5a", count: 23), "RuuviTag: encrypted"),
        ("16aafe2001" + String(repeating: "5a", count: 16), "Eddystone TLM: encrypted"),
    ])
    func encryptedDataIsReportedAndNotGuessed(_ hex: String, _ text: String) throws {
        let data = AdvertisingData(try Hex.decode(Self.sized("00" + hex)))
        #expect(data.decoded.map(\.description) == [text])
        #expect(data.decoded.first?.isEncrypted == true)
    }

    /// What only one of the golden decoders says in words: buttons, doors, texts (bthome.io, format v2, examples).
    @Test(arguments: [
        ("16d2fc443a01", "BTHome: button pressed"),
        ("16d2fc403c0105", "BTHome: dimmer -5 steps"),
        ("16d2fc401a01", "BTHome: door open"), ("16d2fc401a00", "BTHome: door closed"),
        ("16d2fc402101", "BTHome: motion"), ("16d2fc401002", ""),
        ("16d2fc40530c48656c6c6f20576f726c6421", #"BTHome: text "Hello World!""#),
        ("16d2fc400109025d09025d08", "BTHome: battery 9 %, temperature 23.97 °C, temperature 2 21.41 °C"),
        ("16d2fc400109fe11", "BTHome: battery 9 %"), ("16d2fc4002ca", ""), ("16d2fc2002ca09", ""),
        ("1695fe503053013f7450e94124f8011003000000", "Xiaomi YLYK01YL: button 0 pressed, counter 63"),
        ("1695fe5020aa01da219335342d580d1004fe0048", ""),
        ("16003d4810e1", ""), ("163dfd48c0e1", "SwitchBot Bot: off, battery 97 %"),
    ])
    func eventsAndTextsAreDescribedInWords(_ hex: String, _ text: String) throws {
        #expect(try meanings(Self.sized("00" + hex)) == (text.isEmpty ? [] : [text]))
    }

    /// A sensor that failed sends the battery's upper bit (govee-ble); a name distinguishes the model from
    /// Nokia's phones.
    @Test func aFailedSensorHasNoValues() throws {
        #expect(
            try meanings("0d09475648353037355f3533393909ff88ec0002201 5e400".replacing(" ", with: "")) == [
                "Govee H5075: temperature not known, humidity not known, battery 100 %"
            ])
        #expect(try meanings("09ff0100010102e05061").isEmpty)
    }

    /// The hexadecimal digits of one structure, with the length that they have.
    private static func sized(_ hex: String) -> String {
        Hex.encode([UInt8(hex.utf8.count / 2 - 1)]) + hex.dropFirst(2)
    }
}
