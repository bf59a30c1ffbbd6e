import TestSupport
import Testing

@testable import BLECore

@Suite struct ServedLinkStateTests {
    /// Put together and sealed with Python's struct and zlib, from the layout in `ServedLinkState.swift`.
    private static let golden = """
        424c455601a00000000200010005001111111106000d0022222222b900f700010105024d0000000e00150002080012001500\
        15cd5b070000000002000900020011000100020009001400020001100000000200aabb100002000100cc49000000424c454c\
        013c0000000266554433221103687562b900f7000502b900f7000a0300000015cd5b07000000000103030502010200040005\
        000e02052a080009000100000000007a662d79c5eecf84
        """

    private static func sample() throws -> ServedLinkState {
        var server = GATTServer.Remains()
        (server.mtu, server.offeredMTU) = (185, 247)
        server.isMTUExchanged = true
        server.isEncrypted = true
        server.features = 5
        server.awareness = .notified
        server.signCounter = 77
        server.pendingChange = 14...21
        server.indication = .init(
            handle: 8, isServiceChanged: true, change: 18...21, deadline: BootInstant(nanoseconds: 123_456_789))
        server.configurations = [9: .indications, 17: .notifications]
        server.written = [9, 20]
        server.prepared = [
            ATTPrepareWriteRequest(handle: 16, offset: 0, part: [0xAA, 0xBB]),
            ATTPrepareWriteRequest(handle: 16, offset: 2, part: [0xCC]),
        ]
        server.isPreparedStale = true
        let outline = ServerOutline(services: [
            .init(handles: 1...5, checksum: 0x1111_1111), .init(handles: 6...13, checksum: 0x2222_2222),
        ])
        let bytes = try Hex.decode(golden)
        // The link has a form of its own, with tests of its own.
        return ServedLinkState(
            link: try LinkState(bytes: Array(bytes[96..<169])), server: server, outline: outline)
    }

    @Test func bytesAreAsLaidOut() throws {
        let golden = try Hex.decode(Self.golden)
        #expect(try ServedLinkState(bytes: golden) == Self.sample())
        #expect(try Self.sample().bytes == golden)
        let plain = ServedLinkState(
            link: LinkState(peer: nil, name: "x"), server: GATTServer.Remains(), outline: ServerOutline())
        #expect(try ServedLinkState(bytes: plain.bytes) == plain)
    }

    @Test(.row("O25")) func everyTruncationAndFlipIsReported() throws {
        let bytes = try Self.sample().bytes
        for count in bytes.indices {
            #expect(throws: MalformedPacket.self) { try ServedLinkState(bytes: Array(bytes.prefix(count))) }
        }
        for index in bytes.indices {
            for bit in 0..<8 as Range<UInt8> {
                var flipped = bytes
                flipped[index] ^= 1 << bit
                #expect(throws: MalformedPacket.self) { try ServedLinkState(bytes: flipped) }
            }
        }
    }

    /// Bytes whose checksum is right and whose content is not: what is accepted can be worked with.
    @Test(.row("O25")) func madeUpContentDoesNoHarm() throws {
        let bytes = try Self.sample().bytes
        var database = ServerDatabase(name: "Test", appearance: 0)
        var accepted = 0
        for index in 9..<(bytes.count - 4) {
            for value in [0, 1, 2, 3, 16, 23, 0x7F, 0x80, 0xFF] as [UInt8] {
                var changed = Array(bytes.dropLast(4))
                changed[index] = value
                let checksum = CRC32.checksum(changed)
                changed += (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * $0)) }
                guard let state = try? ServedLinkState(bytes: changed) else { continue }
                accepted += 1
                #expect((try? ServedLinkState(bytes: state.bytes)) == state)
                let now = BootInstant(nanoseconds: .max / 2)
                var server = GATTServer(
                    limits: GATTServer.Limits(), remains: state.server, change: 1...5, in: database, at: now)
                _ = server.resume(in: database)
                _ = server.sent(in: database, at: now)
                _ = server.received([0x0A, 3, 0], in: &database, at: now)
                _ = server.timePassed(in: database, at: now + .seconds(40))
                _ = server.ended(in: database)
            }
        }
        #expect(accepted > 50)
    }
}
