import BLECore
import Foundation
import TestSupport
import Testing

@Suite struct ATTCodeTests {
    @Test func everyErrorHasANameAndASentence() {
        for byte in UInt8.min...UInt8.max {
            let code = ATTErrorCode(rawValue: byte)
            #expect(!code.name.isEmpty)
            #expect(code.sentence.hasSuffix("."))
            #expect(code.description.contains("0x\(Hex.encode([byte]))"))
            #expect(code.isApplicationError == (0x80...0x9F).contains(byte))
            #expect(code.isCommonProfileError == (byte >= 0xE0))
        }
        #expect(ATTErrorCode.invalidHandle.description == "Invalid Handle (0x01)")
        #expect(ATTErrorCode.readNotPermitted.sentence == "The value is not readable.")
        #expect(ATTErrorCode.writeNotPermitted.sentence == "The value is not writable.")
        #expect(ATTErrorCode(rawValue: 0x85).description == "Application Error 0x85")
        #expect(ATTErrorCode(rawValue: 0xE5).description == "Common Profile Error 0xe5")
        #expect(ATTErrorCode(rawValue: 0x00).description == "Reserved Error 0x00")
    }

    @Test func securityCanChangeFourOfThem() {
        let codes = (UInt8.min...UInt8.max).filter { ATTErrorCode(rawValue: $0).asksForSecurity }
        #expect(codes == [0x05, 0x08, 0x0C, 0x0F])
        #expect(Set(codes.compactMap { ATTErrorCode(rawValue: $0).requiredSecurity }) == Set(SecurityLevel.allCases))
    }

    @Test func opcodesHaveTheirParts() {
        #expect(ATTOpcode.readRequest.kind == .request)
        #expect(ATTOpcode.readRequest.response == .readResponse)
        #expect(ATTOpcode.readMultipleVariableRequest.response == .readMultipleVariableResponse)
        #expect(ATTOpcode.errorResponse.kind == .response)
        #expect(ATTOpcode.errorResponse.response == nil)
        #expect(ATTOpcode.writeCommand.kind == .command)
        #expect(ATTOpcode.signedWriteCommand.kind == .command)
        #expect(ATTOpcode.signedWriteCommand.isSigned)
        #expect(!ATTOpcode.writeCommand.isSigned)
        #expect(ATTOpcode.handleValueNotification.kind == .notification)
        #expect(ATTOpcode.multipleHandleValueNotification.kind == .notification)
        #expect(ATTOpcode.handleValueIndication.kind == .indication)
        #expect(ATTOpcode.handleValueConfirmation.kind == .confirmation)
        #expect(ATTOpcode.handleValueConfirmation.response == nil)
        #expect(ATTOpcode(rawValue: 0x2A).kind == .request)
        #expect(ATTOpcode(rawValue: 0x6A).kind == .command)
        #expect(ATTOpcode(rawValue: 0x2B).isResponse)
        #expect(ATTOpcode(rawValue: 0x2A).description == "0x2a")
        #expect(ATTOpcode.readRequest.description == "ATT_READ_REQ")
    }
}

/// Names against those that other decoders print.
@Suite(.enabled(if: SharedVectors.available(for: "ATTAssignedNumberTests")))
struct ATTAssignedNumberTests {
    private struct Named: Decodable {
        var name: String?
        var bluez: String?
    }

    @Test func errorsHaveTheNamesThatOtherDecodersPrint() throws {
        let names = try JSONDecoder().decode(
            [String: Named].self, from: SharedVectors.data("assigned_numbers/att_error_codes.json"))
        // Wireshark abbreviates one, and gives another the name of its profile.
        let differing: Set<UInt8> = [0x0C, 0xFD]
        for (key, named) in names {
            guard let byte = UInt8(key, radix: 16), let name = named.name, !differing.contains(byte) else { continue }
            let code = ATTErrorCode(rawValue: byte)
            guard byte <= 0x13 || byte >= 0xE0 else { continue }
            #expect(code.name.lowercased() == name.lowercased(), "0x\(key)")
        }
    }

    @Test func opcodesHaveTheNamesThatOtherDecodersPrint() throws {
        let names = try JSONDecoder().decode(
            [String: String].self, from: SharedVectors.data("assigned_numbers/att_opcodes.json"))
        #expect(names.count == 28)
        for key in names.keys {
            let byte = try #require(UInt8(key, radix: 16))
            #expect(ATTOpcode(rawValue: byte).specificationName != nil, "0x\(key)")
        }
    }
}
