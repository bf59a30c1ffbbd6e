import BLECore
import BLELinux
import TestSupport
import Testing

/// What distinguishes one adapter's hardware from another's, on pretended machines.
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

    @Test(.row("W61"), arguments: [("auto", true), ("on", false)])
    func aUSBDeviceMayBeSuspended(control: String, expected: Bool) {
        var tree = FakeTree()
        tree.write("usb/idVendor", "0a12\n")
        tree.write("usb/power/control", "\(control)\n")
        tree.write("usb/1-1:1.0/interface", "")
        tree.write("serial/power/control", "auto\n")
        tree.write("serial/serial0-0/name", "")
        for (name, device) in [("hci0", "usb/1-1:1.0"), ("hci1", "serial/serial0-0")] {
            tree.write("sys/class/bluetooth/\(name)/address", "")
            tree.link("sys/class/bluetooth/\(name)/device", to: "\(tree.path)/\(device)")
        }
        let path = tree.path
        #expect(AdapterHardware.mayBeSuspended("hci0", root: path) == expected)
        for other in ["hci1", "hci2"] { #expect(!AdapterHardware.mayBeSuspended(other, root: path)) }
    }
}
