import BLECore
import BLEProfiles
import BareBLECrypto
import Testing

/// Advertisements of sensors that encrypt, with keys that their publishers have published too.
@Suite struct AdvertisementKeyTests {
    struct Vector: Sendable {
        let address: String
        let key: String
        let payload: String
        let text: String
    }

    /// Payloads, keys and values from the tests of Bluetooth-Devices/bthome-ble (test_parser_v2.py) and xiaomi-ble
    /// (test_parser.py); the values also as bthome-ble 3.25.0 and xiaomi-ble 1.21.2 decode them. The doors and the idle
    /// time are there as states: opening, no opening, no motion.
    static let sealed = [
        Vector(
            address: "54:48:E6:8F:80:A5", key: "231d39c1d7cc1ab1aee224cd096db932",
            payload: "1216d2fc41a47266c95f730011223378237214",
            text: "BTHome: temperature 25.06 °C, humidity 50.55 %"),
        Vector(
            address: "5A:58:2D:34:12:5F", key: "814aac74c4f17b6c1581e1ab87816b99",
            payload: "1a1695fe5858480b685f12342d585a0b1841e2aa000e00a4964fb5",
            text: "Xiaomi CGG1: humidity 59.6 %, counter 104"),
        Vector(
            address: "58:2D:34:12:20:89", key: "a3bfe9853dd85a620debe3620caaa351",
            payload: "1a1695fe58586f0607892012342d585f176dd54f0200002fa453fa",
            text: "Xiaomi CGDK2: temperature 22.6 °C, counter 7"),
        Vector(
            address: "A4:C1:38:05:8E:E9", key: "7475a4a77584401780ffc3ee62dd353c",
            payload: "191695fe5859eb2a9ee98e0538c1a4d07ad3e338000033635d10",
            text: "Xiaomi 0x2aeb: battery 100 %, counter 158"),
        Vector(
            address: "A4:C1:38:05:8E:E9", key: "7475a4a77584401780ffc3ee62dd353c",
            payload: "1a1695fe5859eb2ac1e98e0538c1a40759530f8d380000b77a70f8",
            text: "Xiaomi 0x2aeb: idle time 60 s, counter 193"),
        // Without its address in the frame.
        Vector(
            address: "A4:C1:38:05:8E:E9", key: "7475a4a77584401780ffc3ee62dd353c",
            payload: "161695fe4859eb2ac2fce02ca0b43af2380000a2d9f05f",
            text: "Xiaomi 0x2aeb: motion, illuminance 228 lx, counter 194"),
        Vector(
            address: "A4:C1:38:66:E5:67", key: "0fdcc30fe9289254876b5ef7c11ef1f0",
            payload: "191695fe585989189a67e56638c1a49dd97af3260000c8a60bd5",
            text: "Xiaomi 0x1889: door open, counter 154"),
        Vector(
            address: "A4:C1:38:66:E5:67", key: "0fdcc30fe9289254876b5ef7c11ef1f0",
            payload: "191695fe585989187567e56638c1a469ddf3a1260000a24a1b45",
            text: "Xiaomi 0x1889: door closed, counter 117"),
    ]

    /// Records, keys and values from the tests of keshavdv/victron-ble, of the devices with these names, and as
    /// victron-ble 0.9.3 decodes them: earlier versions of it read the temperature of VE.Bus from other bits. The
    /// addresses are invented, and take no part.
    static let victron = [
        Vector(
            address: "C0:00:00:00:00:01", key: "adeccb947395801a4dd45a2eaa44bf17",
            payload: "100242a0016207adceb37b605d7e0ee21b24df5c",
            text: "Victron BlueSolar MPPT 75/15: solar charger, absorption, voltage 13.88 V, current 1.4 A, "
                + "yield today 0.03 kWh, solar power 19 W, load 0.0 A"),
        Vector(
            address: "C0:00:00:00:00:02", key: "aff4d0995b7d1e176c0c33ecb9e70dcd",
            payload: "100289a302b040af925d09a4d89aa0128bdef48c6298a9",
            text: "Victron SmartShunt 500A/50mV: battery monitor, battery 50.0 %, voltage 12.53 V, current 0.000 A, "
                + "consumed -50.0 Ah"),
        Vector(
            address: "C0:00:00:00:00:03", key: "aff4d0995b7d1e176c0c33ecb9e70dcd",
            payload: "100289a30d787fafde83ccec982199fd815286",
            text: "Victron SmartShunt 500A/50mV: DC energy meter, meter -3, voltage 12.52 V, current 0.000 A, "
                + "starter voltage -0.01 V"),
        Vector(
            address: "C0:00:00:00:00:04", key: "64ba49f1a8562e45197a8e1fe50d7658",
            payload: "1000c0a304121d64ca8d442b90bbdf6a8cba",
            text: "Victron Orion Smart 12V/12V-18A: DC/DC converter, off, input voltage 13.15 V, "
                + "output voltage not known, off reason 0x80"),
        Vector(
            address: "C0:00:00:00:00:05", key: "c129cf8f75c3fe5a1655b481e205fb7d",
            payload: "100030a308f926c1b5170a0d2280335bf12d5ed083",
            text: "Victron Blue Smart IP22 Charger 12/30: AC charger, storage, voltage 13.49 V, current 0.4 A, "
                + "temperature 21 °C"),
        Vector(
            address: "C0:00:00:00:00:06", key: "fac570d66380b797a5b7543758be00e4",
            payload: "1080b0a3093523fadedea38b1af8bcbde91ca8b6dbb60e",
            text: "Victron Smart BatteryProtect 12/24V-65A: battery protect, active, output on, input voltage 13.07 V, "
                + "output voltage 13.07 V"),
        Vector(
            address: "C0:00:00:00:00:07", key: "da3f5fa2860cb1cf86ba7a6d1d16b9dd",
            payload: "100380270c1252dad26f0b8eb39162074d140df410",
            text: "Victron MultiPlus-II 12/3000/120-50 2x120V: VE.Bus, float, voltage 14.45 V, current 23.2 A, "
                + "AC input 1, ac input power 1459 W, ac output power 1046 W, temperature 32 °C"),
        Vector(
            address: "C0:00:00:00:00:07", key: "da3f5fa2860cb1cf86ba7a6d1d16b9dd",
            payload: "100380270ce1b2dabd34912a6ecec963899227a220",
            text: "Victron MultiPlus-II 12/3000/120-50 2x120V: VE.Bus, inverting, voltage 12.43 V, current -5.9 A, "
                + "no AC input, ac input power 0 W, ac output power 45 W, temperature 30 °C"),
    ].map { vector in
        let length = String(vector.payload.count / 2 + 3, radix: 16)
        let payload = (length.count < 2 ? "0" : "") + length + "ffe102" + vector.payload
        return Vector(address: vector.address, key: vector.key, payload: payload, text: vector.text)
    }

    static let all = sealed + victron

    private func keys(_ key: String, for address: String) throws -> AdvertisementKeys {
        var keys = AdvertisementKeys { $0.plaintext }
        let isKey = keys.set(try Hex.decode(key), for: try #require(BluetoothAddress(address)))
        #expect(isKey)
        return keys
    }

    private func decoded(
        _ vector: Vector, _ keys: AdvertisementKeys, from address: String? = nil
    ) throws -> DecodedAdvertisement {
        let data = AdvertisingData(try Hex.decode(vector.payload))
        let sender = try #require(BluetoothAddress(address ?? vector.address))
        return try #require(data.decoded(with: keys, from: sender).first)
    }

    @Test(arguments: all.indices)
    func theKeyOpens(index: Int) throws {
        let vector = Self.all[index]
        let result = try decoded(vector, try keys(vector.key, for: vector.address))
        #expect(result.description == vector.text)
        #expect(result.encryption == .decrypted && !result.isEncrypted)
    }

    @Test(arguments: all.indices)
    func withoutItsKeyItIsEncrypted(index: Int) throws {
        let vector = Self.all[index]
        let other = try keys(vector.key, for: "00:11:22:33:44:55")
        for result in [
            try decoded(vector, other), try #require(AdvertisingData(try Hex.decode(vector.payload)).decoded.first),
        ] {
            #expect(result.encryption == .noKey && result.isEncrypted)
            #expect(result.description.hasSuffix("encrypted"), "\(result)")
            #expect(result["temperature"] == nil && result["voltage"] == nil && result["humidity"] == nil)
        }
    }

    @Test(arguments: all.indices)
    func aWrongKeyIsReported(index: Int) throws {
        let vector = Self.all[index]
        let wrong = try keys("ee" + vector.key.dropFirst(2), for: vector.address)
        let result = try decoded(vector, wrong)
        #expect(result.encryption == .wrongKey && result.isEncrypted)
        #expect(result.description.contains("wrong key"), "\(result)")
        #expect(result["temperature"] == nil && result["voltage"] == nil && result["humidity"] == nil)
    }

    /// In hexadecimal text there is no address: the key that fits is the one.
    @Test(arguments: all.indices)
    func withoutASenderEveryKeyIsTried(index: Int) throws {
        let vector = Self.all[index]
        var keys = try keys(vector.key, for: vector.address)
        keys.set([UInt8](repeating: 0xEE, count: 16), for: BluetoothAddress(rawValue: 1))
        let data = AdvertisingData(try Hex.decode(vector.payload))
        let result = try #require(data.decoded(with: keys, from: nil).first)
        #expect(result.description == vector.text)
    }

    /// The key of the address in a frame is used before that of the frame's sender.
    @Test func theAddressInTheFrameCounts() throws {
        let vector = Self.sealed[1]
        let key = try keys(vector.key, for: vector.address)
        #expect(try decoded(vector, key, from: "00:11:22:33:44:55").description == vector.text)
        let other = try keys(vector.key, for: "00:11:22:33:44:55")
        #expect(try decoded(vector, other, from: "00:11:22:33:44:55").description == vector.text)
    }

    /// Versions 2 and 3 have no message check: their keys are of 12 bytes, and no key of 16 opens them
    /// (xiaomi-ble, test_Xiaomi_YLKG07YL_press).
    @Test func earlierVersionsStayEncrypted() throws {
        let payload = "181695fe5830b603d28b98c54124f8c3491476757e00000099"
        let address = "F8:24:41:C5:98:8B"
        let vector = Vector(address: address, key: "", payload: payload, text: "")
        let result = try decoded(vector, try keys("b853075158487ca39a5b5ea900000000", for: address))
        #expect(result.encryption == .noKey)
    }

    /// Between its records, a Victron device advertises its model alone; recorded by wcbonner/GoveeBTTempLogger.
    @Test(
        arguments: [
            ("07ffe102100005a3", "Victron 0xa305"), ("07ffe10210000ac0", "Victron 0xc00a"),
            ("19ffe10202955fc89997bcc508a43f30aeb6b1672b56ae905ac2", nil),
        ] as [(String, String?)])
    func aVictronDeviceWithoutARecordShowsItsModel(_ payload: String, _ text: String?) throws {
        #expect(AdvertisingData(try Hex.decode(payload)).decoded.first?.description == text)
    }

    @Test func aKeyHas16Bytes() {
        var keys = AdvertisementKeys { $0.plaintext }
        for count in [0, 12, 15, 17, 32] {
            let isKey = keys.set([UInt8](repeating: 1, count: count), for: BluetoothAddress(rawValue: 1))
            #expect(!isKey)
        }
        #expect(keys.count == 0)
    }

    /// Whatever is cut off or flipped, and whatever a cipher makes of it: no trap, and fields that can be found.
    @Test func damagedDataHasOnlyNamedFields() throws {
        for vector in Self.all {
            var keys = [try keys(vector.key, for: vector.address)]
            let address = try #require(BluetoothAddress(vector.address))
            let plain: [@Sendable (EncryptedMessage) -> [UInt8]?] = [
                { _ in [] }, { $0.bytes }, { $0.bytes + $0.bytes }, { _ in [UInt8](repeating: 0xFF, count: 40) },
            ]
            for cipher in plain {
                var other = AdvertisementKeys(cipher: cipher)
                other.set(try Hex.decode(vector.key), for: address)
                keys.append(other)
            }
            let whole = try Hex.decode(vector.payload)
            for keys in keys {
                for index in whole.indices {
                    var bytes = whole
                    bytes[index] ^= 0xFF
                    read(bytes, keys, address)
                    guard index > 3 else { continue }
                    var cut = Array(whole[..<index])
                    cut[0] = UInt8(cut.count - 1)
                    read(cut, keys, address)
                }
            }
        }
    }

    private func read(_ bytes: [UInt8], _ keys: AdvertisementKeys, _ address: BluetoothAddress) {
        for sender in [address, nil] {
            for result in AdvertisingData(bytes).decoded(with: keys, from: sender) {
                #expect(!result.description.isEmpty)
                for field in result.fields where field.name.isEmpty || result[field.name] != field {
                    Issue.record("\(Hex.encode(bytes)): a field that cannot be found: \(result)")
                }
            }
        }
    }
}
