import BLECore
import Foundation
import TestSupport
import Testing

@Suite struct AssignedNumbersTests {
    @Test func wellKnownNumbersHaveTheirNames() {
        #expect(AssignedNumbers.serviceName(0x180F) == "Battery")
        #expect(AssignedNumbers.characteristicName(0x2A37) == "Heart Rate Measurement")
        #expect(AssignedNumbers.descriptorName(0x2902) == "Client Characteristic Configuration")
        #expect(AssignedNumbers.companyName(0x0059) == "Nordic Semiconductor ASA")
        #expect(AssignedNumbers.appearanceName(0x0341) == "Heart Rate Belt")
        #expect(AssignedNumbers.appearanceName(0x037F) == "Heart Rate Sensor", "an unknown subcategory")
        #expect(AssignedNumbers.adTypeName(0xFF) == "Manufacturer Specific Data")
        #expect(AssignedNumbers.name(of: 0x2800) == "Primary Service")
        #expect(AssignedNumbers.name(of: 0xFEAA) == "Google LLC")
        #expect(AssignedNumbers.formatName(0x06) == "uint16")
        #expect(AssignedNumbers.uriScheme(0x16) == "http:")
    }

    @Test func unknownNumbersHaveNoName() throws {
        #expect(AssignedNumbers.serviceName(0x0000) == nil)
        #expect(AssignedNumbers.serviceName(0xFFFF) == nil)
        #expect(AssignedNumbers.name(of: BluetoothUUID(high: 0, low: 0)) == nil)
        #expect(AssignedNumbers.name(of: BluetoothUUID(high: .max, low: .max)) == nil)
        #expect(AssignedNumbers.companyName(0xFFFF) == nil)
    }

    @Test func vendorsUUIDs() throws {
        let uart: BluetoothUUID = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
        #expect(AssignedNumbers.serviceName(uart) == "Nordic UART")
        #expect(AssignedNumbers.service(named: "nordic-uart") == uart)
    }

    @Test(arguments: ["battery-level", "battery_level", "Battery Level", "BATTERYLEVEL", "org battery level"])
    func aCharacteristicIsFoundByEachFormOfItsName(text: String) {
        #expect(AssignedNumbers.characteristic(named: text) == (text.hasPrefix("org") ? nil : 0x2A19))
    }

    @Test func servicesAndDescriptorsAreFoundByName() {
        #expect(AssignedNumbers.uuid(named: "heart_rate_measurement") == 0x2A37)
        #expect(AssignedNumbers.uuid(named: "heart-rate") == 0x180D)
        #expect(AssignedNumbers.service(named: "battery-service") == 0x180F)
        #expect(AssignedNumbers.service(named: "Heart Rate Service") == 0x180D)
        #expect(
            AssignedNumbers.service(named: "generic-access") == 0x1800
                && AssignedNumbers.service(named: "gap") == 0x1800)
        #expect(AssignedNumbers.characteristic(named: "gap.device_name") == 0x2A00)
        #expect(AssignedNumbers.descriptor(named: "client-characteristic-configuration") == 0x2902)
        #expect(AssignedNumbers.uuid(named: "") == nil)
        #expect(AssignedNumbers.uuid(named: "---") == nil)
        #expect(AssignedNumbers.uuid(named: "2a19") == nil)
    }
}

/// The tables against the independently packaged lists of vectors/assigned_numbers.
@Suite(.enabled(if: SharedVectors.available(for: "AssignedNumbersVectorTests")))
struct AssignedNumbersVectorTests {
    struct Named: Decodable {
        let name: String
    }

    private func names(_ file: String) throws -> [String: String] {
        let data = try SharedVectors.data("assigned_numbers/\(file).json")
        if let plain = try? JSONDecoder().decode([String: String].self, from: data) { return plain }
        return try JSONDecoder().decode([String: Named].self, from: data).mapValues(\.name)
    }

    private func differing(_ list: String) throws -> Set<String> {
        struct Difference: Decodable {
            let code: String
        }
        let data = try SharedVectors.data("assigned_numbers/name_differences.json")
        return Set(try JSONDecoder().decode([String: [Difference]].self, from: data)[list, default: []].map(\.code))
    }

    private func check(_ file: String, _ nameOf: (UInt16) -> String?) throws {
        let expected = try names(file)
        let allowed = try differing(file)
        #expect(!expected.isEmpty)
        for (code, name) in expected where !code.contains("-") {
            let number = try #require(UInt16(code, radix: 16))
            let ours = nameOf(number)
            #expect(ours != nil, "\(file) \(code) is missing")
            if ours != name && !allowed.contains(code) && ours?.filter(\.isLetter) != plain(name) {
                Issue.record("\(file) \(code): \(ours ?? "-"), not \(name)")
            }
        }
        let known = Set(expected.keys.compactMap { UInt16($0, radix: 16) })
        guard file != "appearance_values", file != "ad_types", let last = known.max() else { return }
        for number in (known.min() ?? 0)...(last + 1) where !known.contains(number) {
            #expect(nameOf(number) == nil, "\(file) \(number) is too much")
        }
    }

    /// The lists carry LaTeX in two names.
    private func plain(_ name: String) -> String {
        name.replacing("\\textsubscript", with: "").filter(\.isLetter)
    }

    @Test func everyServiceHasItsAssignedName() throws {
        try check("services") { AssignedNumbers.serviceName(BluetoothUUID($0)) }
    }
    @Test func everyCharacteristicHasItsAssignedName() throws {
        try check("characteristics") { AssignedNumbers.characteristicName(BluetoothUUID($0)) }
    }
    @Test func everyDescriptorHasItsAssignedName() throws {
        try check("descriptors") { AssignedNumbers.descriptorName(BluetoothUUID($0)) }
    }
    @Test func everyDeclarationHasItsAssignedName() throws {
        try check("declarations") { AssignedNumbers.declarationName(BluetoothUUID($0)) }
    }
    @Test func everyUnitHasItsAssignedName() throws {
        try check("units") { AssignedNumbers.unitName(BluetoothUUID($0)) }
    }
    @Test func everyCompanyHasItsAssignedName() throws { try check("company_ids") { AssignedNumbers.companyName($0) } }
    @Test func everyAppearanceHasItsAssignedName() throws {
        try check("appearance_values") { AssignedNumbers.appearanceName($0) }
    }
    @Test func everyADTypeHasItsAssignedName() throws {
        try check("ad_types") { AssignedNumbers.adTypeName(UInt8(truncatingIfNeeded: $0)) }
    }

    @Test func everyMemberUUIDHasItsAssignedName() throws {
        for file in ["member_uuids", "sdo_uuids"] {
            for (code, name) in try names(file) {
                let number = try #require(UInt16(code, radix: 16))
                #expect(AssignedNumbers.memberName(BluetoothUUID(number)) == name.replacing("  ", with: " "))
            }
        }
    }

    @Test func everyURISchemeHasItsAssignedName() throws {
        for (code, name) in try names("uri_schemes") where code != "0001" {
            #expect(AssignedNumbers.uriScheme(try #require(UInt16(code, radix: 16))) == name)
        }
    }

    /// The numbers must be ones that Nordic's list knows as well; names differ in wording.
    @Test func vendorUUIDsAreThoseOfNordicsList() throws {
        struct Lists: Decodable {
            let services: [String: Named]
            let characteristics: [String: Named]
        }
        let lists = try JSONDecoder().decode(
            Lists.self, from: SharedVectors.data("assigned_numbers/vendor_uuids_128.json"))
        let services = lists.services.keys.filter { BluetoothUUID($0).flatMap(AssignedNumbers.serviceName) != nil }
        let others = lists.characteristics.keys.filter {
            BluetoothUUID($0).flatMap(AssignedNumbers.characteristicName) != nil
        }
        #expect(services.count == 23 && others.count == 48, "\(services.count) \(others.count)")
    }
}
