import BLECore
import Testing

@Suite struct ATTPacketTests {
    @Test(arguments: UInt8.min...UInt8.max) func whatIsDiscardedEndsThePeersWaitAndNothingElse(first: UInt8) {
        let reply = ATTPacket.reply(toDiscarded: [first, 0x03, 0x00])
        let isCommand = first & 0x40 != 0
        switch first {
        case 0x1D: #expect(reply == [0x1E])
        case _ where !isCommand && first.isMultiple(of: 2) && first != 0x1E:
            #expect(reply == [0x01, first, 0x00, 0x00, 0x06])
        default: #expect(reply == nil)
        }
    }

    @Test func anEmptyPacketNeedsNoReply() {
        #expect(ATTPacket.reply(toDiscarded: []) == nil)
    }

    @Test(arguments: ATTGoldenPDU.all) func aPacketHasTheExpectedBytesBothWays(golden: ATTGoldenPDU) throws {
        #expect(try ATTPacket(golden.bytes) == golden.packet)
        #expect(Hex.encode(golden.packet.bytes) == golden.hex)
        #expect(golden.packet.opcode.rawValue == golden.bytes.first)
    }

    @Test func everyNamedOpcodeHasAGoldenPacket() {
        let named = (UInt8.min...UInt8.max).map(ATTOpcode.init).filter { $0.specificationName != nil }
        #expect(named.count == 31)
        #expect(Set(named).subtracting(ATTGoldenPDU.all.map(\.packet.opcode)).isEmpty)
    }

    @Test(arguments: ATTGoldenPDU.all) func truncatedAtEveryLengthItIsAnErrorOrAShorterValue(golden: ATTGoldenPDU) {
        for count in 0..<golden.bytes.count {
            decodeAndCompare(Array(golden.bytes.prefix(count)))
        }
    }

    @Test(arguments: ATTGoldenPDU.all) func flippedInEveryBitItNeverTraps(golden: ATTGoldenPDU) {
        for position in golden.bytes.indices {
            for bit in 0..<8 {
                var bytes = golden.bytes
                bytes[position] ^= 1 << UInt8(bit)
                decodeAndCompare(bytes)
            }
        }
    }

    @Test(arguments: ATTGoldenPDU.all) func lengthsAtTheirEndsNeverTrap(golden: ATTGoldenPDU) {
        for position in golden.bytes.indices {
            for value in [0x00, 0x01, 0x7F, 0x80, 0xFF] as [UInt8] {
                var bytes = golden.bytes
                bytes[position] = value
                decodeAndCompare(bytes)
                decodeAndCompare(bytes + [value])
                _ = try? ATTReadMultipleVariableResponse(bytes, mtu: UInt16(bytes.count))
            }
        }
    }

    /// What decodes has lost nothing: it encodes to the same bytes, except for a type written in the longer form.
    private func decodeAndCompare(_ bytes: [UInt8]) {
        guard let packet = try? ATTPacket(bytes) else { return }
        switch packet {
        case .readByTypeRequest, .readByGroupTypeRequest: #expect(packet.bytes.count <= bytes.count)
        default: #expect(packet.bytes == bytes)
        }
    }

    @Test(arguments: ATTGoldenPDU.all) func leftoversAreAnErrorWhereTheLengthIsFixed(golden: ATTGoldenPDU) {
        let longer = golden.bytes + [0xA5]
        switch golden.packet {
        case .errorResponse, .exchangeMTURequest, .exchangeMTUResponse, .findInformationRequest,
            .findInformationResponse,
            .findByTypeValueResponse, .readByTypeRequest, .readByTypeResponse, .readRequest, .readBlobRequest,
            .readMultipleRequest, .readByGroupTypeRequest, .readByGroupTypeResponse, .readMultipleVariableRequest,
            .readMultipleVariableResponse, .writeResponse, .executeWriteRequest, .executeWriteResponse,
            .handleValueConfirmation, .multipleHandleValueNotification:
            #expect(throws: MalformedPacket.self) { try ATTPacket(longer) }
        case .findByTypeValueRequest, .readResponse, .readBlobResponse, .readMultipleResponse, .writeRequest,
            .writeCommand, .signedWriteCommand, .prepareWriteRequest, .prepareWriteResponse, .handleValueNotification,
            .handleValueIndication, .unknown:
            #expect((try? ATTPacket(longer))?.bytes == longer)
        }
    }

    @Test func anErrorNamesThePacketAndThePlace() {
        #expect(throws: MalformedPacket(format: "ATT_READ_REQ", offset: 0, reason: .wrongOpcode(0x0B))) {
            try ATTReadRequest([0x0B, 3, 0])
        }
        #expect(throws: MalformedPacket(format: "ATT_READ_REQ", offset: 3, reason: .trailingBytes(2))) {
            try ATTReadRequest([0x0A, 3, 0, 1, 2])
        }
        #expect(throws: MalformedPacket(format: "ATT_READ_REQ", offset: 1, reason: .tooShort)) {
            try ATTReadRequest([0x0A, 3])
        }
        #expect(throws: MalformedPacket(format: "ATT_READ_REQ", offset: 0, reason: .tooShort)) {
            try ATTReadRequest([])
        }
        #expect(throws: MalformedPacket(format: "ATT PDU", offset: 0, reason: .tooShort)) { try ATTPacket([]) }
    }
}
