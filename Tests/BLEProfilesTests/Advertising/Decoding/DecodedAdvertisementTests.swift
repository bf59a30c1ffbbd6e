import BLECore
import BLEProfiles
import Foundation
import TestSupport
import Testing

/// What recorded advertisements say, against Fixtures/adv/meanings.txt: there stands what other decoders, each named,
/// make of the same bytes.
@Suite struct DecodedAdvertisementTests {
    struct Golden: Sendable, CustomStringConvertible {
        let payload: [UInt8]
        let kind: String
        let fields: [(name: String, value: String)]
        var description: String { "\(kind) \(Hex.encode(payload))" }
    }

    static let goldens: [Golden] = {
        let file = RepositoryFiles.root.appending(path: "Fixtures/adv/meanings.txt")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
            let columns = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard columns.count == 3, let payload = try? Hex.decode(columns[0]) else { return nil }
            let fields = columns[2].split(separator: ", ").map { $0.split(separator: "=") }
            return Golden(
                payload: payload, kind: columns[1],
                fields: fields.compactMap { $0.count == 2 ? (String($0[0]), String($0[1])) : nil })
        }
    }()

    @Test func everyGoldenIsRead() throws {
        #expect(Self.goldens.count > 10)
        for golden in Self.goldens { try compare(golden) }
    }

    private func compare(_ golden: Golden) throws {
        let meanings = AdvertisingData(golden.payload).decoded
        guard let meaning = meanings.first(where: { $0.kind.rawValue == golden.kind }) else {
            Issue.record("\(golden): \(meanings)")
            return
        }
        #expect(Set(meaning.fields.map(\.name)).count == meaning.fields.count, "\(golden): a name twice")
        for (name, value) in golden.fields {
            let field = meaning[name]
            let agrees =
                if let wanted = Double(value), let number = field?.number {
                    // Some of the other decoders round to two places.
                    abs(number - wanted) <= 0.005_001
                } else {
                    field?.text.replacing("-", with: "").hasSuffix(value.replacing("-", with: "")) == true
                }
            #expect(agrees, "\(golden): \(name) is \(value), ours: \(meaning)")
        }
    }

    /// Whatever is cut off or flipped: no trap, and no field without a name to find it by.
    @Test func damagedDataHasOnlyNamedFields() {
        for golden in Self.goldens {
            var bytes = golden.payload
            for index in bytes.indices {
                read(Array(bytes[..<index]))
                for mask in [0x01, 0x80, 0xFF] as [UInt8] {
                    bytes[index] ^= mask
                    read(bytes)
                    bytes[index] ^= mask
                }
            }
            for structure in AdvertisingData(golden.payload).structures {
                for length in structure.value.indices {
                    let cut = AdvertisingData.Structure(type: structure.type, value: Array(structure.value[..<length]))
                    read(AdvertisingData(joining: [cut]).bytes)
                }
            }
        }
    }

    private func read(_ bytes: [UInt8]) {
        for meaning in AdvertisingData(bytes).decoded {
            #expect(!meaning.title.isEmpty && !meaning.description.isEmpty && !meaning.kind.rawValue.isEmpty)
            for field in meaning.fields where field.name.isEmpty || meaning[field.name] != field {
                Issue.record("\(Hex.encode(bytes)): a field that cannot be found: \(meaning)")
            }
        }
    }

    /// The layouts' own examples of what a device does not know (docs.ruuvi.com, data format 5, test vectors).
    @Test func whatADeviceDoesNotKnowIsNoNumber() throws {
        let data = AdvertisingData(
            try Hex.decode("1bff9904058000ffffffff800080008000ffffffffffffffffffffff"))
        let meaning = try #require(data.decoded.first)
        #expect(meaning.kind == .ruuviTag && meaning["temperature"] != nil)
        #expect(meaning.fields.allSatisfy { $0.number == nil }, "\(meaning)")
    }

    /// docs.ruuvi.com, data format 5, test vectors: the largest values.
    @Test func theLargestValuesAreRead() throws {
        let data = AdvertisingData(
            try Hex.decode("1bff9904057ffffffefffe7fff7fff7fffffdefefffecbb8334c884f"))
        let meaning = try #require(data.decoded.first)
        #expect(meaning["temperature"]?.number == 163.835 && meaning["humidity"]?.number == 163.8350)
        #expect(meaning["pressure"]?.number == 1155.34 && meaning["voltage"]?.number == 3.646)
        #expect(meaning["acceleration x"]?.number == 32.767 && meaning["tx power"]?.number == 20)
        #expect(meaning["movements"]?.number == 254 && meaning["sequence"]?.number == 65534)
    }

    /// docs.ruuvi.com, data format 5, test vectors: valid data, and the same with one step more, and below zero. The
    /// steps of 0.005 °C and 0.0025 % are no digits.
    @Test(arguments: [
        ("12fc5394", "temperature 24.30 °C, humidity 53.49 %", 24.3, 53.49),
        ("12fd5395", "temperature 24.31 °C, humidity 53.49 %", 24.305, 53.4925),
        ("ffff5396", "temperature -0.01 °C, humidity 53.50 %", -0.005, 53.495),
    ])
    func aRuuviTagIsShownWithTwoPlaces(
        _ values: String, _ text: String, _ temperature: Double, _ humidity: Double
    ) throws {
        let data = AdvertisingData(try Hex.decode("1bff990405\(values)c37c0004fffc040cac364200cdcbb8334c884f"))
        let meaning = try #require(data.decoded.first)
        #expect(meaning.description.hasPrefix("RuuviTag: \(text), pressure 1000.44 hPa, voltage 2.977 V, "))
        #expect(meaning["temperature"]?.number == temperature && meaning["humidity"]?.number == humidity)
    }

    /// Service data of a development kit of Nordic's, as `bluetoothctl info` has shown it: the SDK's default
    /// discriminator, 3840, and a test vendor.
    @Test func aMatterDeviceThatWaitsToBeCommissionedIsDecoded() throws {
        let meaning = try #require(
            AdvertisingData(try Hex.decode("0b16f6ff00000ff1ff108000")).decoded.first { $0.kind == .matter })
        #expect(meaning["discriminator"]?.number == 3840)
        #expect(meaning["vendor"]?.text == "vendor 0xfff1")
        #expect(meaning["product"]?.text == "product 0x8010")
        // Another operation, a version that nobody knows, and a payload that is cut off.
        for other in ["0b16f6ff01000ff1ff108000", "0b16f6ff00001ff1ff108000", "0a16f6ff00000ff1ff1080"] {
            #expect(!AdvertisingData(try Hex.decode(other)).decoded.contains { $0.kind == .matter }, "\(other)")
        }
    }

    /// The manufacturer data in the tests of Home Assistant's integration, whose device is a Wave Plus of model 2930.
    @Test func anAirthingsReportsItsModelAndSerialNumber() throws {
        let meaning = try #require(
            AdvertisingData(try Hex.decode("09ff3403e42fa5ae0900")).decoded.first { $0.kind == .airthings })
        #expect(meaning.title == "Airthings Wave Plus")
        #expect(meaning["serial number"]?.number == 2_930_061_284)
        #expect(!AdvertisingData(try Hex.decode("09ff3403e42f05000900")).decoded.contains { $0.kind == .airthings })
    }

    /// AltBeacon's own example layout with other identifiers (Protocol Specification 1.0); the vectors have such
    /// beacons.
    @Test func anAltBeaconIsRead() throws {
        let data = AdvertisingData(
            try Hex.decode("1bff1801beac2f234454cf6d4a0fadf2f4911ba9ffa600010002c509"))
        let beacon = try #require(data.altBeacon)
        #expect(beacon.measuredPower == -59 && beacon.reserved == 9 && beacon.identifier.count == 20)
        #expect(
            data.decoded.map(\.description) == [
                "AltBeacon: 2f234454-cf6d-4a0f-adf2-f4911ba9ffa6, major 1, minor 2, power at 1 m -59 dBm"
            ])
    }
}
