import BLECore
import BLELinux
import TestSupport
import Testing

/// What tells one adapter's hardware from another's, on pretended machines.
@Suite struct AdapterHardwareTests {
    @Test(
        .row("S18"),
        arguments: [
            ("usb:v0A12p0001d8891dcE0dsc01dp01icE0isc01ip01in00", "usb:v0A12p0001"),
            // The revision, which an update of the firmware changes, does not matter.
            ("usb:v0A12p0001d0100dcE0dsc01dp01icE0isc01ip01in00", "usb:v0A12p0001"),
            ("of:NbluetoothT(null)Cbrcm,bcm43438-bt", "of:NbluetoothT(null)Cbrcm,bcm43438-bt"),
            ("usb:v0A1", "usb:v0A1"), ("", "virtual"),
        ])
    func theHardwareIsItsVendorAndProduct(modalias: String, expected: String) {
        var tree = FakeTree()
        tree.write("sys/class/bluetooth/hci0/device/modalias", modalias)
        let path = tree.path
        func adapter(_ index: UInt16) -> ControllerInfo {
            ControllerInfo(index: index, name: "hci\(index)", address: .zero, isUp: true)
        }
        #expect(AdapterHardware.identifier(of: adapter(0), root: path) == expected)
        #expect(AdapterHardware.identifier(of: adapter(1), root: path) == "virtual", "it has no such file")
    }
}
