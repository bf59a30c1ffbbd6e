import BLECore
import TestSupport
import Testing

/// The layout is that of Core Vol 3 Part G, 7.1; the everything-changed value is what BlueZ's and Bumble's servers
/// send.
@Suite struct ServiceChangedTests {
    @Test(
        arguments: [
            ("0100ffff", 1...0xFFFF), ("0c001000", 0x0C...0x10), ("07000700", 7...7), ("ffffffff", 0xFFFF...0xFFFF),
            ("0000ffff", 1...0xFFFF), ("00000100", 1...1),
        ] as [(String, ClosedRange<AttributeHandle>)])
    func theHandleRangeIsRead(hex: String, handles: ClosedRange<AttributeHandle>) throws {
        #expect(try ServiceChanged(Hex.decode(hex)).handles == handles)
    }

    @Test(.row("G19"), arguments: ["", "01", "0100", "0100ff", "0100ffff00", "02000100", "ffff0000", "00000000"])
    func aMalformedHandleRangeIsRefused(hex: String) throws {
        let bytes = try Hex.decode(hex)
        #expect(throws: MalformedPacket.self) { try ServiceChanged(bytes) }
    }
}
