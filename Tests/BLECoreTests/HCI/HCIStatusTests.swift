import BLECore
import Foundation
import TestSupport
import Testing

@Suite struct HCIStatusTests {
    @Test func everyCodeHasANameAndASentence() {
        let reserved: Set<UInt8> = [0x2B, 0x31, 0x33]
        for code in UInt8(0)...0x45 where !reserved.contains(code) {
            let status = HCIStatus(rawValue: code)
            #expect(status.name != "Unknown Status", "\(code)")
            #expect(status.sentence.hasSuffix("."))
        }
        for code in reserved.union([0x46, 0xFF]) { #expect(HCIStatus(rawValue: code).name == "Unknown Status") }
        #expect(HCIStatus.connectionTimeout.description == "Connection Timeout (0x08)")
        #expect(HCIOpcode.leSetScanEnable.description == "LE Set Scan Enable (0x200c)")
    }

    @Test(.enabled(if: SharedVectors.available(for: "HCIStatusTests"))) func namesAreTheAssignedOnes() throws {
        struct Entry: Decodable { let name: String? }
        let codes = try JSONDecoder().decode(
            [String: Entry].self, from: SharedVectors.data("assigned_numbers/hci_error_codes.json"))
        // The specification says LMP/LL where the list has two spellings, and dropped "Directed" from 0x3C in version
        // 5.
        let respelled: Set<UInt8> = [0x1A, 0x23, 0x3C]
        for (code, entry) in codes {
            let value = try #require(UInt8(code, radix: 16))
            guard let name = entry.name, !respelled.contains(value) else { continue }
            #expect(HCIStatus(rawValue: value).name == name)
        }
    }

    @Test(.enabled(if: SharedVectors.available(for: "HCIOpcodeTests"))) func opcodesAreTheAssignedOnes() throws {
        let names = try JSONDecoder().decode(
            [String: String].self, from: SharedVectors.data("assigned_numbers/hci_command_opcodes.json"))
        for (text, name) in names {
            let opcode = HCIOpcode(rawValue: try #require(UInt16(text, radix: 16)))
            guard let ours = opcode.name else { continue }
            #expect(spelled(ours) == spelled(name), "\(text)")
        }
    }

    /// Lists shorten some names of the specification, and have an old one; what is left must agree.
    private func spelled(_ name: String) -> String {
        name.lowercased().replacing("_", with: " ").replacing(" information", with: "").replacing(
            "supported ", with: ""
        )
        .replacing("host supported", with: "host support").replacing("local features", with: "local")
        .replacing("start encryption", with: "enable encryption")
        .replacing("advertise enable", with: "advertising enable")
    }
}
