import BLECore
import TestSupport
import Testing

/// Lists are taken as a whole or not at all.
@Suite struct ATTListTests {
    private func isMalformed(_ bytes: [UInt8]) -> Bool {
        do {
            _ = try ATTPacket(bytes)
            return false
        } catch {
            return true
        }
    }

    @Test(
        "a response without anything after its opcode is malformed, except for values", .row("T11"),
        arguments: [
            0x05, 0x07, 0x09, 0x11, 0x17, 0x01, 0x03, 0x21, 0x23,
        ] as [UInt8])
    func opcodeOnly(opcode: UInt8) {
        #expect(isMalformed([opcode]))
        #expect(!isMalformed([0x0B]))
    }

    @Test(
        "entry lengths that hold no entry, or do not divide the list", .row("G01"),
        arguments: [0, 1, 3, 5, 7, 19, 21, 255] as [UInt8])
    func impossibleEntryLengthsAreMalformed(length: UInt8) {
        for opcode in [0x09, 0x11] as [UInt8] {
            // Twelve bytes: two entries of 6, which none of these lengths divides but 3.
            let list: [UInt8] = [1, 0, 4, 0, 0, 0x18, 5, 0, 8, 0, 1, 0x18]
            #expect(isMalformed([opcode, length] + list) == !(opcode == 0x09 && length == 3))
            #expect(isMalformed([opcode, length]))
        }
    }

    @Test(
        "a list that is not a multiple of its entry", .row("G02"),
        arguments: [
            "09070200020300002a06", "0907", "09070200", "110601000400011805", "1106010004", "110601", "070100070008",
            "07010007", "05010400012908", "050104", "05",
        ])
    func aListThatIsNoMultipleOfItsEntryIsAnError(hex: String) throws {
        #expect(isMalformed(try Hex.decode(hex)))
    }

    @Test(
        "Find Information in a format that does not exist, or does not fit", .row("G13"),
        arguments: [
            "050004000129", "050304000129", "050204000129", "0502040001290500012906000129", "05ff04000129", "0501",
        ])
    func anUnknownFormatOfFindInformationIsAnError(hex: String) throws {
        #expect(isMalformed(try Hex.decode(hex)))
    }

    @Test(
        "Read Multiple Variable with a length beyond its end", .row("T28"),
        arguments: [
            "21", "2102", "21020001", "21020001020100", "21ffff", "210100aa05",
        ])
    func aLengthBeyondTheEndIsMalformed(hex: String) throws {
        let bytes = try Hex.decode(hex)
        #expect(isMalformed(bytes))
        #expect(throws: MalformedPacket.self) { try ATTReadMultipleVariableResponse(bytes, mtu: 23) }
    }

    // The specification, 3.4.4.12: only what fits into the packet is sent, under the length of the whole value.
    @Test func theLastVariableValueMayBeCutInAFullPacket() throws {
        let full: [UInt8] = [0x21, 0x02, 0x00, 0xAA, 0xBB, 0x20, 0x00] + [UInt8](repeating: 0x55, count: 16)
        let response = try ATTReadMultipleVariableResponse(full, mtu: 23)
        #expect(response.values == [[0xAA, 0xBB], [UInt8](repeating: 0x55, count: 16)])
        #expect(response.missing == 16)
        #expect(response.bytes == full)
        #expect(throws: MalformedPacket.self) { try ATTReadMultipleVariableResponse(full, mtu: 24) }
        let half: [UInt8] = [0x21, 0x13, 0x00] + [UInt8](repeating: 0x55, count: 19) + [0x05]
        #expect(try ATTReadMultipleVariableResponse(half, mtu: 23).values.count == 1)
        #expect(throws: MalformedPacket.self) { try ATTReadMultipleVariableResponse([0x0B], mtu: 23) }
        #expect(throws: MalformedPacket.self) { try ATTReadMultipleVariableResponse([], mtu: 23) }
    }

    @Test(
        "Multiple Handle Value Notification with a length beyond its end", .row("T21"),
        arguments: [
            "230300ff00aa", "2303000100aa04", "2303000100aa0400", "2303000100aa040001",
        ])
    func notificationLists(hex: String) throws {
        #expect(isMalformed(try Hex.decode(hex)))
    }

    @Test func typesHaveTwoOrSixteenBytes() {
        for count in 0...20 {
            let request = [0x08, 1, 0, 0xFF, 0xFF] + [UInt8](repeating: 0x28, count: count)
            #expect(isMalformed(request) == (count != 2 && count != 16))
        }
    }

    @Test func mixedTypesAreWrittenInTheLongForm() {
        let long = BluetoothUUID(high: 1, low: 2)
        let response = ATTFindInformationResponse(entries: [
            .init(handle: 1, type: 0x2901), .init(handle: 2, type: long),
        ])
        #expect(response.usesLongTypes)
        #expect(response.bytes.count == 2 + 2 * 18)
        #expect(Hex.encode(response.bytes.prefix(20)) == "05020100fb349b5f8000008000100000" + "01290000")
    }

    // BlueZ' client asks for short types in the long form too; the short one means the same.
    @Test func aLongFormOfAShortTypeIsTheSameType() throws {
        let bytes = try Hex.decode("080100ffff" + "fb349b5f80000080001000000328" + "0000")
        let request = try ATTReadByTypeRequest(bytes)
        #expect(request.type == 0x2803)
        #expect(Hex.encode(request.bytes) == "080100ffff0328")
    }
}
