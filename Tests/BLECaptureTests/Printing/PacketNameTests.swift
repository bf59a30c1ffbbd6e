import BLECapture
import BLECore
import Testing

/// Names of packets as the specification has them: signals in Core Vol 3 Part A, 4, security in Part H, 3.3.
@Suite struct PacketNameTests {
    /// A frame of one byte and another on a channel.
    private func title(_ code: UInt8, channel: UInt8) -> String {
        var printer = PacketPrinter()
        let bytes: [UInt8] = [0x40, 0x20, 6, 0, 2, 0, channel, 0, code, 0]
        return printer.print(
            CapturedPacket(direction: .received, kind: .asynchronousData, bytes: bytes, timestamp: .zero)
        ).title
    }

    @Test(
        "Security",
        arguments: [
            (0x01, "Pairing Request"), (0x02, "Pairing Response"), (0x03, "Pairing Confirm"), (0x04, "Pairing Random"),
            (0x05, "Pairing Failed"), (0x06, "Encryption Information"), (0x07, "Central Identification"),
            (0x08, "Identity Information"), (0x09, "Identity Address Information"), (0x0A, "Signing Information"),
            (0x0B, "Security Request"), (0x0C, "Pairing Public Key"), (0x0D, "Pairing DHKey Check"),
            (0x0E, "Pairing Keypress Notification"), (0x0F, "packet"),
        ] as [(UInt8, String)])
    func packetsOfTheSecurityManagerAreNamed(_ code: UInt8, _ name: String) {
        #expect(title(code, channel: 6) == "Security Manager \(name) (0x\(Hex.encode([code])))")
    }

    @Test(
        "Signals",
        arguments: [
            (0x01, "Command Reject"), (0x06, "Disconnection Request"), (0x07, "Disconnection Response"),
            (0x12, "Connection Parameter Update Request"), (0x13, "Connection Parameter Update Response"),
            (0x14, "LE Credit Based Connection Request"), (0x15, "LE Credit Based Connection Response"),
            (0x16, "Flow Control Credit"), (0x17, "Credit Based Connection Request"),
            (0x18, "Credit Based Connection Response"), (0x19, "Credit Based Reconfigure Request"),
            (0x1A, "Credit Based Reconfigure Response"), (0x02, "packet"),
        ] as [(UInt8, String)])
    func signalsAreNamed(_ code: UInt8, _ name: String) {
        #expect(title(code, channel: 5) == "L2CAP \(name) (0x\(Hex.encode([code])))")
    }

    @Test("The error of a file that cannot be read has the reason")
    func theErrorOfAnUnreadableFileHasTheReason() {
        let errors: [(CaptureError, String)] = [
            (.notACapture, "not a capture file"), (.unsupportedDatalink(147), "link type 147"),
            (.unsupportedVersion(2), "version 2"), (.truncated(packetsRead: 41), "after 41"),
            (.corruptRecord(packetsRead: 42), "packet 42"),
        ]
        for (error, text) in errors { #expect(error.description.contains(text)) }
    }
}
