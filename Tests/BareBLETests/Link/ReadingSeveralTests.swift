import BareBLE
import BareBLETestKit
import Testing

/// The requests by which several values are read at once, and parts of values. The packets are written after the
/// layouts in Core Vol 3 Part F, 3.4.4.
@Suite(.timeLimit(.minutes(10))) struct ReadingSeveralTests {
    private let central = Central()

    private func attach(_ script: String, mtu: Int = 23) async throws -> (Peripheral, ScriptedPeripheral) {
        let peer = ScriptedPeripheral(try Dialogue(script))
        return (try await central.attach(descriptor: peer.connect(), ConnectOptions(mtu: mtu)), peer)
    }

    /// Read Multiple takes two handles or more, so a single value is read by itself.
    @Test func aSingleValueOfKnownLengthIsReadByItself() async throws {
        let (device, peer) = try await attach("< 0a 0300\n> 0b 0102")
        #expect(try await device.readAll([3], lengths: [2]).map(\.bytes) == [[1, 2]])
        await device.disconnect()
        #expect(await peer.report.isComplete)
        let (other, cut) = try await attach("< 0a 0300\n> 0b 01")
        await #expect(throws: error(.malformedReply)) {
            _ = try await other.readAll([3], lengths: [2])
        }
        await other.disconnect()
        #expect(await cut.report.isComplete)
    }

    // MARK: By type

    @Test func everyValueOfATypeIsRead() async throws {
        let twins = VirtualDevice(name: "Twins", services: [.battery(level: 1), .battery(level: 2)])
        let device = try await central.attach(to: VirtualPeripheral(twins))
        #expect(try await device.readAll(0x2A19).map(\.bytes) == [[1], [2]])
        #expect(try await device.readAll(0x2A19, limit: 1).map(\.handle) == [3])
        #expect(try await device.readAll(0x2A19, in: 4...0xFFFF).map(\.bytes) == [[2]])
        await #expect(throws: error(.attributeNotFound)) {
            _ = try await device.readAll(0x2A37)
        }
    }

    /// 19 bytes are all that fits beside a handle at the smallest MTU; the rest is asked for from there on.
    @Test func aCutValueIsReadToItsEnd() async throws {
        let (device, peer) = try await attach(
            """
            < 08 0100 ffff f1ff
            > 09 15 0300 000102030405060708090a0b0c0d0e0f101112
            < 08 0400 ffff f1ff
            > 01 08 0400 0a
            < 0c 0300 1300
            > 0d 1314
            """)
        let found = try await device.readAll(0xFFF1)
        #expect(found.map(\.bytes) == [Array(0...0x14)])
        #expect(await peer.report.isComplete)
    }

    @Test func aValueThatOnlyLooksCutIsWhole() async throws {
        let (device, peer) = try await attach(
            """
            < 08 0100 ffff f1ff
            > 09 15 0300 000102030405060708090a0b0c0d0e0f101112
            < 08 0400 ffff f1ff
            > 01 08 0400 0a
            < 0c 0300 1300
            > 01 0c 0300 07
            """)
        #expect(try await device.readAll(0xFFF1).map(\.bytes) == [Array(0...0x12)])
        #expect(await peer.report.isComplete)
    }

    /// A peer may read no parts of values that fit a Read Response, of 22 bytes here: Bumble's server does not. Whether
    /// there is more than the 19 bytes is not known then.
    @Test(arguments: ["", "1314"]) func aCutValueOfWhichNoPartsAreReadIsReadAsAWhole(rest: String) async throws {
        let (device, peer) = try await attach(
            """
            < 08 0100 ffff f1ff
            > 09 15 0300 000102030405060708090a0b0c0d0e0f101112
            < 08 0400 ffff f1ff
            > 01 08 0400 0a
            < 0c 0300 1300
            > 01 0c 0300 0b
            < 0a 0300
            > 0b 000102030405060708090a0b0c0d0e0f101112\(rest)
            """)
        let expected: [UInt8] = rest.isEmpty ? Array(0...0x12) : Array(0...0x14)
        #expect(try await device.readAll(0xFFF1).map(\.bytes) == [expected])
        #expect(await peer.report.isComplete)
    }

    // MARK: From an offset

    @Test func readingBeginsAtAnOffset() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.longValue), ConnectOptions(mtu: 23))
        let expected = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
        #expect(try await device.read(.uuid(0xFFF1), from: 100) == Array(expected.dropFirst(100)))
        #expect(try await device.read(.uuid(0xFFF1), from: 0) == expected)
        #expect(try await device.read(.uuid(0xFFF1), from: 512) == [])
    }

    @Test func anOffsetAfterTheEndIsRefused() async throws {
        let (device, peer) = try await attach("< 0c 0300 0500\n> 01 0c 0300 07")
        let refused = await #expect(throws: BLEError.self) { try await device.read(.handle(3), from: 5) }
        #expect(refused?.attError == .invalidOffset)
        let invalid = error(.invalidArgument)
        await #expect(throws: invalid) { try await device.read(.handle(3), from: 513) }
        await #expect(throws: invalid) { try await device.read(.handle(3), from: -1) }
        #expect(await peer.report.isComplete)
    }

    @Test func aPartIsWrittenAtAnOffset() async throws {
        let (device, peer) = try await attach(
            """
            < 16 0700 0a00 0102
            > 17 0700 0a00 0102
            < 18 01
            > 19
            """)
        try await device.write([1, 2], to: .handle(7), at: 10)
        await #expect(throws: error(.tooLong)) {
            try await device.write([1, 2], to: .handle(7), at: 511)
        }
        await #expect(throws: error(.invalidArgument)) {
            try await device.write([], to: .handle(7), at: 1_000)
        }
        #expect(await peer.report.isComplete)
    }

    // MARK: Read Multiple

    @Test func valuesOfKnownLengthAreDistinguished() async throws {
        let (device, peer) = try await attach(
            """
            < 0e 0300 0500 0700
            > 0f 0102030405
            < 0e 0300 0500
            > 0f 010203
            < 0e 0300 0500
            > 0f 01
            < 0e 0300 0500
            > 0f 01020304
            """)
        #expect(try await device.readJoined([3, 5, 7]) == [1, 2, 3, 4, 5])
        let values = try await device.readAll([3, 5], lengths: [1])
        #expect(values.map(\.handle) == [3, 5])
        #expect(values.map(\.bytes) == [[1], [2, 3]])
        for _ in 0..<2 {
            await #expect(throws: error(.malformedReply)) {
                _ = try await device.readAll([3, 5], lengths: [1, 2])
            }
        }
        #expect(await peer.report.isComplete)
    }

    @Test func whatCannotBeAskedIsNotAsked() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral, ConnectOptions(mtu: 23))
        let invalid = error(.invalidArgument)
        await #expect(throws: invalid) { _ = try await device.readJoined([]) }
        await #expect(throws: invalid) { _ = try await device.readJoined(Array(1...12)) }
        await #expect(throws: invalid) { _ = try await device.readAll([]) }
        await #expect(throws: invalid) { _ = try await device.readAll([3, 5], lengths: []) }
        await #expect(throws: invalid) { _ = try await device.writeReliably([]) }
        await #expect(throws: error(.tooLong)) {
            _ = try await device.readAll([3, 5], lengths: [20, 3])
        }
        #expect(await peripheral.receivedCount == 0)
    }

    /// The first response has room for the first value and 16 bytes of the second; the third value is read by itself.
    @Test func whatFindsNoRoomIsReadAfterwards() async throws {
        let (device, peer) = try await attach(
            """
            < 20 0300 0500 0700
            > 21 0200 aabb 1200 000102030405060708090a0b0c0d0e0f
            < 0c 0500 1000
            > 0d 1011
            < 0a 0700
            > 0b cc
            """)
        let values = try await device.readAll([3, 5, 7])
        #expect(values.map(\.handle) == [3, 5, 7])
        #expect(values.map(\.bytes) == [[0xAA, 0xBB], Array(0...0x11), [0xCC]])
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }

    /// reliability.md's row for this response: too few values, and lengths that lie, in a packet with room.
    @Test(arguments: ["21 0200 aabb", "21 0200 aabb 0500 01", "21 0200 aabb 01", "21"])
    func aResponseThatDoesNotAddUpIsMalformed(response: String) async throws {
        let (device, peer) = try await attach("< 20 0300 0500\n> \(response)")
        await #expect(throws: error(.malformedReply)) {
            _ = try await device.readAll([3, 5])
        }
        #expect(await device.isConnected)
        #expect(await peer.report.isComplete)
    }

    @Test func anUnsupportedRequestFailsWithTheErrorOfThePeer() async throws {
        let (device, peer) = try await attach("< 20 0300 0500\n> 01 20 0000 06")
        let error = await #expect(throws: BLEError.self) { _ = try await device.readAll([3, 5]) }
        #expect(error?.attError == .requestNotSupported)
        #expect(await peer.report.isComplete)
    }

    // MARK: An MTU that changes

    /// The peer asks for a smaller MTU in the middle: its piece fills the packet of then, so it is not the last one.
    @Test func aSmallerMTUDoesNotCutALongValueOff() async throws {
        let first = String(repeating: "aa", count: 99)
        let second = String(repeating: "bb", count: 22)
        let (device, peer) = try await attach(
            """
            < 02 6400
            > 03 6400
            < 0a 0300
            > 0b \(first)
            < 0c 0300 6300
            > 02 1700
            < 03 6400
            > 0d \(second)
            < 0c 0300 7900
            > 0d cc
            """, mtu: 100)
        let value = try await device.read(.handle(3))
        #expect(value.count == 99 + 22 + 1)
        #expect(await device.mtu == 23)
        let report = await peer.report
        #expect(report.isComplete, "\(report)")
    }
}
