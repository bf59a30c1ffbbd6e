import BLECore
import TestSupport
import Testing

@Suite(.row("W66")) struct OtherAdvertisingTests {
    private static let enable = HCIOpcode.leSetExtendedAdvertisingEnable

    /// A command of another program, by its parameters, and the response to it.
    private func complete(
        _ opcode: HCIOpcode, _ parameters: [UInt8], _ status: HCIStatus = .success, _ others: inout OtherAdvertising
    ) {
        others.received(HCICommandPacket(opcode: opcode, parameters: parameters))
        others.completed(opcode, status)
    }

    @Test func theAdvertiserIsOnAirFromTheResponseOn() {
        var others = OtherAdvertising()
        others.received(HCICommandPacket(LESetAdvertisingEnable(isEnabled: true)))
        #expect(!others.isOnAir)
        others.completed(.leSetAdvertisingEnable, .success)
        #expect(others.isOnAir)
        // Of another command, and of one whose parameters were not seen, nothing follows.
        others.completed(.leSetAdvertisingEnable, .success)
        others.completed(Self.enable, .success)
        complete(.leSetAdvertisingEnable, [0], .commandDisallowed, &others)
        #expect(others.isOnAir)
        complete(.leSetAdvertisingEnable, [0], .success, &others)
        #expect(!others.isOnAir)
    }

    /// Nothing reports that the one advertiser has ended but the link, or the command that this program sends.
    @Test(arguments: [true, false]) func theOneAdvertiserEndsByALinkOrByThisProgram(isLink: Bool) throws {
        var others = OtherAdvertising()
        complete(.leSetAdvertisingEnable, [1], .success, &others)
        if isLink {
            others.received(try AdvertiseRun.link(isCentral: true))
            #expect(others.isOnAir)
            others.received(try AdvertiseRun.link(isCentral: false))
        } else {
            others.taken(by: .leSetAdvertisingEnable)
        }
        #expect(!others.isOnAir)
    }

    /// Directed advertising at a high duty cycle lasts for 1.28 s: Core Vol 4 Part E, 7.8.5 and 7.7.65.1.
    @Test func theOneAdvertiserEndsWhereNoCentralConnectsInTime() throws {
        var others = OtherAdvertising()
        complete(.leSetAdvertisingEnable, [1], .success, &others)
        // Unknown Connection Identifier: an attempt of this side was cancelled.
        others.received(try AdvertiseRun.link(isCentral: false, status: "02"))
        #expect(others.isOnAir)
        others.received(try AdvertiseRun.link(isCentral: false, status: "3c"))
        #expect(!others.isOnAir)
    }

    @Test func eachSetEndsByItself() throws {
        var others = OtherAdvertising()
        // Two sets, with a duration each.
        complete(Self.enable, [1, 2, 0x01, 0, 0, 0, 0x02, 0x10, 0x27, 5], .success, &others)
        complete(Self.enable, [0, 1, 0x01, 0, 0, 0], .success, &others)
        #expect(others.isOnAir)
        others.received(try AdvertiseRun.link(isCentral: false))
        others.taken(by: .leSetAdvertisingEnable)
        #expect(others.isOnAir)
        others.ended(0x02)
        #expect(!others.isOnAir)
        // No set means all of them.
        complete(Self.enable, [1, 1, 0x03, 0, 0, 0], .success, &others)
        complete(Self.enable, [0, 0], .success, &others)
        #expect(!others.isOnAir)
    }

    /// Layouts of Core Vol 4 Part E, 7.8.56 and 7.8.59.
    @Test func theSetsThatACommandNamesAreThoseThatItConcerns() {
        let cases: [(HCIOpcode, [UInt8], Set<UInt8>?)] = [
            (Self.enable, [1, 2, 0x01, 0, 0, 0, 0x02, 0x10, 0x27, 5], [1, 2]),
            (Self.enable, [0, 1, 0xE1, 0, 0, 0], [0xE1]),
            (Self.enable, [0, 0], nil), (Self.enable, [0, 2, 0x01, 0, 0, 0, 0x02], nil), (Self.enable, [], nil),
            (.leRemoveAdvertisingSet, [3], [3]), (.leRemoveAdvertisingSet, [], nil),
            (.leSetAdvertisingEnable, [1], nil),
        ]
        for (opcode, parameters, expected) in cases {
            var others = OtherAdvertising()
            others.received(HCICommandPacket(opcode: opcode, parameters: parameters))
            #expect(others.completed(opcode, .success) == expected)
            #expect(others.completed(opcode, .success) == nil, "the second one was not seen")
        }
    }

    @Test func parametersThatAreCutOffAreReadAsFarAsTheyGo() {
        var others = OtherAdvertising()
        let parameters: [UInt8] = [1, 2, 0x01, 0, 0, 0, 0x02]
        for count in 0..<6 { complete(Self.enable, Array(parameters.prefix(count)), .success, &others) }
        complete(.leSetAdvertisingEnable, [], .success, &others)
        #expect(!others.isOnAir)
        complete(Self.enable, parameters, .success, &others)
        #expect(others.isOnAir)
        others.ended(0x01)
        #expect(!others.isOnAir)
    }
}
