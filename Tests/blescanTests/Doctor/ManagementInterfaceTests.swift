import Testing

@testable import blescan

/// The two packets of the kernel that are read here, byte by byte from the layouts in BlueZ's mgmt-api and btmon's sources;
/// the kernel tests read them from the kernel.
@Suite struct ManagementInterfaceTests {
    private static let information: [UInt8] =
        [0x01, 0x00, 0x03, 0x00, 0x1B, 0x01, 0x04, 0x00, 0x00]
        + [0x02, 0x1A, 0x9B, 0x70, 0xF3, 0x5C, 0x09, 0x0F, 0x00, 0xFF, 0xBE, 0x00, 0x00, 0x81, 0x0A, 0x00, 0x00]
        + [UInt8](repeating: 0, count: 3 + 249 + 11)

    private func answer(_ bytes: [UInt8], about index: UInt16 = 3) -> (facts: ManagementFacts?, status: UInt8)? {
        ManagementInterface.answer(in: bytes.span, about: index)
    }

    @Test func informationIsRead() throws {
        let read = self.answer(Self.information)
        let answer = try #require(read)
        #expect(answer.status == 0)
        #expect(
            answer.facts == ManagementFacts(version: 9, company: 15, supported: 0xBEFF, current: 0x0A81))
        #expect(answer.facts?.has(.powered) == true)
        #expect(answer.facts?.has(.lowEnergy) == true)
        #expect(answer.facts?.has(.privacy) == false)
        #expect(answer.facts?.can(.privacy) == true)
    }

    // Row O31.
    @Test func refusalsAndOthersAnswersAreToldApart() throws {
        // Command Status with Invalid Index, as for an adapter that another program has to itself.
        let found = answer([0x02, 0x00, 0x03, 0x00, 0x03, 0x00, 0x04, 0x00, 0x11])
        let refusal = try #require(found)
        #expect(refusal.facts == nil && refusal.status == 0x11)
        #expect(answer(Self.information, about: 4) == nil)
        // Of another command.
        #expect(answer([0x01, 0x00, 0x03, 0x00, 0x1B, 0x01, 0x05, 0x00, 0x00] + Self.information.dropFirst(9)) == nil)
        // Index Added.
        #expect(answer([0x04, 0x00, 0x03, 0x00, 0x00, 0x00]) == nil)
    }

    @Test func openersAreRead() {
        func packet(_ channel: UInt8, _ index: [UInt8], _ name: String) -> [UInt8] {
            let text = Array(name.utf8) + [UInt8](repeating: 0, count: 16 - name.utf8.count)
            return [14, 0] + index + [30, 0] + [7, 0, 0, 0, channel, 0, 2, 22, 0, 1, 0, 0, 0, 16] + text
        }
        func opener(_ bytes: [UInt8]) -> SocketOpener? { ManagementInterface.opener(in: bytes.span) }
        #expect(
            opener(packet(0, [1, 0], "hcitool")) == SocketOpener(program: "hcitool", kind: .raw, adapter: 1))
        #expect(opener(packet(1, [0, 0], "bumble")) == SocketOpener(program: "bumble", kind: .user, adapter: 0))
        #expect(
            opener(packet(2, [0xFF, 0xFF], "bluetoothd")) == SocketOpener(program: "bluetoothd", kind: .management))
        #expect(opener(packet(9, [0, 0], "new")) == nil)
        // A new adapter.
        #expect(opener([0, 0, 0, 0, 16, 0] + [UInt8](repeating: 0, count: 16)) == nil)
    }

    // Row O31.
    @Test func nothingTraps() {
        let openerPacket: [UInt8] = [14, 0, 0, 0, 30, 0, 7, 0, 0, 0, 0, 0, 2, 22, 0, 1, 0, 0, 0, 3, 97, 98, 99]
        for packet in [Self.information, openerPacket] {
            for length in 0...packet.count {
                let start = Array(packet.prefix(length))
                _ = ManagementInterface.answer(in: start.span, about: 3)
                _ = ManagementInterface.opener(in: start.span)
            }
            for position in packet.indices.prefix(40) {
                var flipped = packet
                flipped[position] ^= 0xFF
                _ = ManagementInterface.answer(in: flipped.span, about: 3)
                _ = ManagementInterface.opener(in: flipped.span)
            }
        }
    }
}
