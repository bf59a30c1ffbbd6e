import BLECore
import TestSupport
import Testing

/// Packets as Core Vol 4 Part E, 5.4.2 and Vol 3 Part A, 3.1 lay them out: handle with the flag of a first packet from
/// the controller, length, then the length and the channel of the frame.
@Suite(.row("W44")) struct LinkDataTests {
    @Test(arguments: [
        // ATT_EXCHANGE_MTU_REQ for 517, ATT_READ_BY_GROUP_TYPE_REQ, ATT_HANDLE_VALUE_IND, SMP_SECURITY_REQUEST.
        ("4020" + "0700" + "0300" + "0400" + "020502", true),
        ("4020" + "0b00" + "0700" + "0400" + "100100ffff0028", true),
        ("4020" + "0800" + "0400" + "0400" + "1d100001", true),
        ("4020" + "0600" + "0200" + "0600" + "0b05", true),
        // ATT_HANDLE_VALUE_NTF, ATT_EXCHANGE_MTU_RSP, ATT_WRITE_CMD, ATT_HANDLE_VALUE_CFM, SMP_PAIRING_FAILED.
        ("4020" + "0800" + "0400" + "0400" + "1b100001", false),
        ("4020" + "0700" + "0300" + "0400" + "030502", false),
        ("4020" + "0800" + "0400" + "0400" + "52100001", false),
        ("4020" + "0500" + "0100" + "0400" + "1e", false),
        ("4020" + "0600" + "0200" + "0600" + "0505", false),
        // L2CAP_CONNECTION_PARAMETER_UPDATE_REQ, and a packet that continues a frame.
        ("4020" + "1000" + "0c00" + "0500" + "12010800060006000000f401", false),
        ("4010" + "0700" + "0300" + "0400" + "020502", false),
    ])
    func whatNeedsAResponseIsKnownByItsChannelAndOpcode(hex: String, needsResponse: Bool) throws {
        let packet = bytes(hex)
        let parsed = LinkData(packet.span)
        let data = try #require(parsed)
        #expect(data.handle == 0x0040)
        #expect(data.needsResponse == needsResponse)
        // SMP_SECURITY_REQUEST.
        #expect(data.needsEncryption == hex.hasSuffix("06000b05"))
        // Cut anywhere, it needs none before its opcode is there.
        for count in packet.indices {
            let cut = LinkData(packet.span.extracting(first: count))
            #expect((cut == nil) == (count < 4))
            #expect(cut?.needsResponse ?? false == (needsResponse && count > 8))
        }
    }
}
