import BLELinux
import TestSupport
import Testing

/// Which controllers have a coded PHY that does not work, on pretended machines.
@Suite struct CodedPHYDefectTests {
    /// The names are those that the kernel gives to the devices: for USB, that of the interface of the driver.
    @Test(
        .row("W13"),
        arguments: [
            ("usb:v8087p0029d0001dcE0dsc01dp01icE0isc01ip01in00", true),
            ("usb:v8087p0A2Bd0001dcE0dsc01dp01icE0isc01ip01in00", true),
            // AX210.
            ("usb:v8087p0032d0000dcE0dsc01dp01icE0isc01ip01in00", false),
            ("usb:v0BDAp8771d0200dcE0dsc01dp01icE0isc01ip01in00", false),
            ("pci:v000014E4d00005F69sv0000106Bsd00004387bc02sc80i00", true),
            // BCM4377.
            ("pci:v000014E4d00005FA0sv0000106Bsd00007BF4bc02sc80i00", false), ("", false),
        ])
    func theFlaggedOnesAreKnownByTheirDevices(modalias: String, expected: Bool) {
        var tree = FakeTree()
        tree.write("sys/class/bluetooth/hci0/device/modalias", modalias)
        let path = tree.path
        #expect(CodedPHYDefect.isKnown(of: "hci0", root: path) == expected)
        #expect(!CodedPHYDefect.isKnown(of: "hci1", root: path))
    }
}
