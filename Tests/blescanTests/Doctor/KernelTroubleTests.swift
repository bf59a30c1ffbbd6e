import Testing

@testable import blescan

/// The known kernels, and the known ones of their messages.
@Suite struct KernelTroubleTests {
    @Test(
        arguments: [
            ("6.1.0-55-amd64", KernelFault.closesTwice), ("6.1.0-56-cloud-amd64", .closesTwice),
            ("6.1.0-54-amd64", nil), ("6.1.192", nil), ("6.9.12", nil), ("6.10.0", .hangsAfterScans),
            ("6.12.57+deb13-amd64", .hangsAfterScans), ("7.2.13-amd64", .hangsAfterScans), ("5.15.0-1055-aws", nil),
            ("unknown", nil), ("", nil),
        ])
    func releases(_ release: String, _ fault: KernelFault?) {
        #expect(KernelFault(release: release) == fault)
    }

    /// The messages are those of users' reports.
    @Test(
        arguments: [
            ("Bluetooth: hci0: command 0x0c03 tx timeout", KernelTrouble.noResponse),
            ("Bluetooth: hci0: Opcode 0x0c1a failed: -110", .noResponse),
            ("Bluetooth: hci0: Reading Intel version command failed (-110)", .noResponse),
            ("Bluetooth: hci0: Opcode 0x200c failed: -16", .refused),
            ("Bluetooth: hci0: Frame reassembly failed (-84)", .broken),
            ("Bluetooth: hci0: Failed to load Intel firmware file intel/ibt-20-1-3.sfi (-2)", .firmware),
            ("Bluetooth: hci0: hardware error 0x35", .hardware),
            ("Bluetooth: Core ver 2.22", nil),
            ("iwlwifi 0000:00:14.3: Direct firmware load for iwlwifi-cc-a0-50.ucode failed with error -2", nil),
            ("usb 1-1: tx timeout", nil), ("xhci_hcd 0000:00:14.0: hardware error", nil),
        ])
    func messages(_ message: String, _ trouble: KernelTrouble?) {
        #expect(KernelTrouble(message) == trouble)
    }
}
