import TestSupport
import Testing

@testable import BLECore

/// Random packets, results, updates, changes and delays: what must hold in every order of them.
@Suite("GATT server: random packets") struct GATTServerRandomTests {
    @Test(
        "One response for each request within the MTU, nothing protected, bounded memory", .row("P06"),
        arguments: 0..<40)
    func randomPacketsGetOneResponseEachAndNothingProtected(_ seed: UInt64) throws {
        var random = SplitMix(seed)
        var client = try GATTServerExchangeTests.client(mtu: 64)
        client.decide = { _ in nil }
        var requests = 0
        var responses = 0
        var isOpen = true
        for _ in 0..<1_500 where isOpen {
            switch random.next() % 12 {
            case 0: _ = client.handlerReturns([.value([9]), .accepted, .rejected(.outOfRange)][Int(random.next() % 3)])
            case 1: client.update([1], of: AttributeHandle(random.next() % 42))
            case 2: client.hasRoom = false
            case 3: client.makeRoom()
            case 4: client.pass(.milliseconds(Int64(random.next() % 25_000)))
            case 5: try client.send("1e")
            case 6: client.secure(random.next() % 2 == 0 ? .none : ClientSecurity(keySize: 7))
            case 7 where random.next() % 8 == 0:
                try client.changeDatabase { try $0.publish([ServiceDefinition(0xFFF0)]).affected }
            default:
                let packet = random.packet()
                let opcode = packet.first.map(ATTOpcode.init(rawValue:))
                let isRequest = opcode.map { $0.isRequest || $0.isResponse && $0.specificationName == nil } ?? false
                if isRequest { requests += 1 }
                client.perform(client.server.received(packet, in: &client.database, at: client.now))
            }
            for packet in client.sent {
                let opcode = ATTOpcode(rawValue: packet[0])
                if opcode.isResponse { responses += 1 }
                #expect(packet.count <= Int(client.server.mtu))
                #expect(opcode.isResponse || opcode.kind == .notification || opcode.kind == .indication)
            }
            client.takeSent()
            #expect(responses <= requests)
            isOpen = client.closeReason == nil
            if isOpen { #expect(requests - responses <= 1) }
            #expect(client.server.heldBytes <= 128 << 10)
        }
        // The level of its attribute was never reached, so this value is as it was.
        #expect(client.database[23]?.value == [3])
        client.end()
        #expect(client.server.heldBytes == 0 && client.server.nextDeadline == nil)
    }

    /// A generator with the same numbers in every run.
    private struct SplitMix {
        private var state: UInt64

        init(_ seed: UInt64) {
            state = seed &* 0x9E37_79B9_7F4A_7C15
        }

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }

        /// Mostly well-formed: an opcode, a handle of the database, and a few bytes.
        mutating func packet() -> [UInt8] {
            let opcodes: [UInt8] = [
                0x02, 0x04, 0x06, 0x08, 0x0A, 0x0C, 0x0E, 0x10, 0x12, 0x12, 0x16, 0x16, 0x18, 0x20, 0x52, 0x52, 0xD2,
            ]
            let opcode = next() % 8 == 0 ? UInt8(next() & 0xFF) : opcodes[Int(next() % UInt64(opcodes.count))]
            var packet = [opcode, UInt8(next() % 42), 0]
            for _ in 0..<(next() % 4 == 0 ? next() % 61 : next() % 5) { packet.append(UInt8(next() % 43)) }
            return Array(packet.prefix(next() % 16 == 0 ? Int(next() % 3) : 64))
        }
    }
}
