import BLECore
import TestSupport
import Testing

@Suite struct LinkStateTests {
    /// Put together and sealed with Python's struct and zlib, from the layout in `LinkState+Bytes.swift`.
    private static let golden = """
        424c454c013c0000000266554433221103687562b900f7000502b900f7000a0300000015cd5b070000000001030305020102\
        00040005000e02052a080009000100000000007a662d79
        """

    private static let sample: LinkState = {
        var state = LinkState(
            peer: PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_5566), type: .random), name: "hub")
        state.client.queue.mtu = 185
        state.client.queue.receiveLimit = 247
        state.client.queue.exchangedMTU = 185
        state.client.queue.peerMTU = 247
        state.client.queue.unanswered = ATTQueue.Remains.Unanswered(
            opcode: .readRequest, handle: 3, offeredMTU: nil, end: BootInstant(nanoseconds: 123_456_789))
        state.client.queue.confirmationsDue = 1
        state.client.queue.response = [0x03, 0x05, 0x02]
        state.client.mayHoldPreparedWrites = true
        state.subscriptions = [
            subscription(4, 5, isInferred: true, .indication, 0x2A05, isWanted: false),
            subscription(8, 9, isInferred: false, .notification, nil, isWanted: true),
        ]
        return state
    }()

    private static func subscription(
        _ value: AttributeHandle, _ descriptor: AttributeHandle, isInferred: Bool, _ kind: Subscriptions.Kind,
        _ uuid: BluetoothUUID?, isWanted: Bool
    ) -> LinkState.Subscription {
        LinkState.Subscription(
            valueHandle: value,
            configuration: GATTDescriptor(
                handle: descriptor, uuid: .clientCharacteristicConfiguration, isInferred: isInferred),
            kind: kind, uuid: uuid, isWanted: isWanted, isOwn: !isWanted)
    }

    @Test func bytesAreAsLaidOut() throws {
        let golden = try Hex.decode(Self.golden)
        #expect(try LinkState(bytes: golden) == Self.sample)
        #expect(Self.sample.bytes == golden)
    }

    @Test func aCacheGoesAlong() throws {
        var state = Self.sample
        state.cache = GATTCache(
            database: GATTDatabase(services: [GATTService(handles: 1...5, uuid: 0x1801)]), coverage: .whole(.full),
            databaseHash: [UInt8](repeating: 7, count: 16))
        #expect(try LinkState(bytes: state.bytes) == state)
        state.peer = nil
        state.client = GATTClient.Remains()
        state.subscriptions = []
        #expect(try LinkState(bytes: state.bytes) == state)
    }

    @Test(.row("O25")) func everyTruncationAndFlipIsReported() {
        let bytes = Self.sample.bytes
        for count in bytes.indices { #expect(throws: MalformedPacket.self) { try Self.read(bytes.prefix(count)) } }
        #expect(throws: MalformedPacket.self) { try Self.read(bytes + [0]) }
        for index in bytes.indices {
            for bit in 0..<8 as Range<UInt8> {
                var flipped = bytes
                flipped[index] ^= 1 << bit
                #expect(throws: MalformedPacket.self) { try Self.read(flipped[...]) }
            }
        }
    }

    /// Bytes whose checksum is right and whose content is not: what is accepted can be worked with.
    @Test(.row("O25")) func madeUpContentDoesNoHarm() {
        let bytes = Self.sample.bytes
        var accepted = 0
        for index in 9..<(bytes.count - 4) {
            for value in [0, 1, 2, 3, 16, 22, 23, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = value
                guard let state = try? LinkState(bytes: Self.sealed(changed)) else { continue }
                accepted += 1
                #expect((try? LinkState(bytes: state.bytes)) == state)
                let now = BootInstant(nanoseconds: .max / 2)
                var client = GATTClient(limits: ATTQueue.Limits(), remains: state.client, at: now)
                _ = client.resume(at: now)
                _ = client.sent(at: now)
                _ = client.received([0x0B, 1], at: now)
                _ = client.timePassed(now + .seconds(40))
            }
        }
        #expect(accepted > 50)
        for count in 9..<bytes.count - 4 {
            #expect(throws: MalformedPacket.self) {
                try LinkState(bytes: Self.sealed(Array(bytes.prefix(count)) + [0, 0, 0, 0]))
            }
        }
    }

    /// Repaired, the name would be three times as long, and cut when it is handed over again.
    @Test(.row("O25")) func aNameThatIsNoTextIsRefused() {
        let state = LinkState(peer: nil, name: String(repeating: "x", count: 255))
        let bytes = state.bytes.map { $0 == 0x78 ? 0xFF : $0 }
        do throws(MalformedPacket) {
            _ = try LinkState(bytes: Self.sealed(bytes))
            Issue.record("no text was read as a name")
        } catch {
            #expect(error.reason == .invalidField("name"))
        }
    }

    private static func read(_ bytes: ArraySlice<UInt8>) throws(MalformedPacket) {
        _ = try LinkState(bytes: Array(bytes))
    }

    private static func sealed(_ bytes: [UInt8]) -> [UInt8] {
        var sealed = Array(bytes.dropLast(4))
        let length = UInt16(truncatingIfNeeded: sealed.count - 9)
        sealed.replaceSubrange(5..<9, with: [UInt8(length & 0xFF), UInt8(length >> 8), 0, 0])
        let checksum = CRC32.checksum(sealed)
        return sealed + (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * $0)) }
    }
}
