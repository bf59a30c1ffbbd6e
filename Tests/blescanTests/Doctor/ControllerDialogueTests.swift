import BLECore
import BLELinux
import TestSupport
import Testing

@testable import blescan

/// The examination of a controller, on a socket that stands in for the kernel's.
@Suite struct ControllerDialogueTests {
    /// Command Complete events in the layouts of the Core Specification, Vol 4 Part E: those of an RTL8761BU with its
    /// firmware loaded, whose list of commands has the extended ones. The other commands are unknown to it.
    private static let responses = [
        Hex.bytes("040e0c 01 0110 00 0a c6df 0a 5d00 22d9"),
        Hex.bytes("040e0c 01 0320 00 ff79010000000000"),
        Hex.bytes("040e44 01 0210 00") + [UInt8](repeating: 0, count: 37) + [0x60] + [UInt8](repeating: 0, count: 26),
        Hex.bytes("040e04 01 0f20 01"), Hex.bytes("040e04 01 2a20 01"), Hex.bytes("040e04 01 0220 01"),
        Hex.bytes("040e04 01 0910 01"),
    ]

    @Test func versionsAndCommandsAreRead() async throws {
        let (near, far) = try LinkSocket.pair()
        var dialogue = ControllerDialogue(adopting: HCISocket(adopting: near))
        let kernel = HCISocket(adopting: far)
        for response in Self.responses { #expect(kernel.send(response) == .sent) }
        let (facts, scanner) = await dialogue.describe()
        #expect(facts.version == VersionFacts(hciRevision: 0xDFC6, company: 93, linkSubversion: 0xD922))
        #expect(facts.listsExtendedScan == true && scanner?.hasExtendedScan == true)
        #expect(facts.failures.count == Self.responses.count - 3)
    }

    /// Two LE Advertising Reports, as a scan with legacy commands has them, and an LE Extended Advertising Report of a
    /// legacy PDU.
    @Test func reportsOfLegacyScansAreCounted() async throws {
        let (near, far) = try LinkSocket.pair()
        var dialogue = ControllerDialogue(adopting: HCISocket(adopting: near))
        let kernel = HCISocket(adopting: far)
        let legacy = Hex.bytes("043e0f 02 01 03 01 665544332211 03 020106 c8")
        let extended = Hex.bytes("043e1d 0d 01 1000 01 665544332211 01 00 ff 7f c8 0000 00 000000000000 03 020106")
        for event in [legacy, extended, legacy] { #expect(kernel.send(event) == .sent) }
        let heard = await dialogue.listen(for: .zero)
        #expect(heard.reports == 3 && heard.legacy == 3 && heard.fromLegacyScan == 2 && heard.addresses == 1)
    }
}
