/// The controllers whose coded PHY does not work although they list it: a scan that uses it hears nothing, and a
/// connection attempt with it fails (row W13).
///
/// The kernel's drivers flag them with HCI_QUIRK_BROKEN_LE_CODED, and the kernel then leaves that PHY out. It reports
/// that only to programs with CAP_NET_ADMIN, and only since 6.6, so the flagged ones are known here by the identifiers
/// of their devices, which any program may read: Intel's up to AX201 (`btintel.c` flags the variants SfP, WsP, JfP,
/// ThP, HrP and CcP; their identifiers are in `btusb.c`), and Apple's BCM4378, BCM4387 and BCM4388 (`hci_bcm4377.c`).
package enum CodedPHYDefect {
    /// Returns a Boolean value that indicates whether the adapter's controller is one of them.
    ///
    /// - Parameter root: The folder in which `/sys` is; empty for this machine.
    package static func isKnown(of adapter: String, root: String = "") -> Bool {
        SystemFiles.text("\(root)/sys/class/bluetooth/\(adapter)/device/modalias").map { isKnown(modalias: $0) }
            ?? false
    }

    /// The kernel names a device by its bus, its vendor and its product: `usb:v8087p0029…`, `pci:v000014E4d00005F69…`.
    private static func isKnown(modalias: String) -> Bool {
        names.contains { modalias.hasPrefix($0) }
    }

    private static let names = [
        // 8260 and 8265, 3168, 9560; 9260, AX201, AX200.
        "usb:v8087p0A2B", "usb:v8087p0AA7", "usb:v8087p0AAA", "usb:v8087p0025", "usb:v8087p0026", "usb:v8087p0029",
        // BCM4378, BCM4387, BCM4388.
        "pci:v000014E4d00005F69", "pci:v000014E4d00005F71", "pci:v000014E4d00005F72",
    ]
}
