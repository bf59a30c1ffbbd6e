/// The hardware of an adapter, as far as the kernel shows it to any program: its bus, and its vendor and product there.
package enum AdapterHardware {
    /// Returns the identifier of an adapter's hardware: `usb:v0A12p0001` for a USB device, the kernel's alias for the
    /// device on another bus, or the name of the bus where the device has none, such as `virtual`.
    ///
    /// It does not contain the port, which changes when the same dongle is plugged in elsewhere, nor the revision,
    /// which an update of the firmware may change.
    ///
    /// - Parameter root: The folder in which `/sys` is; empty for this machine.
    package static func identifier(of adapter: ControllerInfo, root: String = "") -> String {
        if let alias = SystemFiles.text("\(root)/sys/class/bluetooth/\(adapter.name)/device/modalias"), !alias.isEmpty {
            return alias.hasPrefix("usb:v") ? String(alias.prefix(usbLength)) : alias
        }
        return adapter.bus.map { "\($0)" } ?? "unknown"
    }

    /// Returns a Boolean value that indicates whether the kernel may suspend the USB device of an adapter, after which
    /// reports are lost (row W61).
    ///
    /// - Parameter root: The folder in which `/sys` is; empty for this machine.
    package static func mayBeSuspended(_ adapter: String, root: String = "") -> Bool {
        // The adapter's device is the interface of the driver, in the folder of the USB device.
        let usb = "\(root)/sys/class/bluetooth/\(adapter)/device/.."
        return SystemFiles.text(usb + "/idVendor") != nil && SystemFiles.text(usb + "/power/control") == "auto"
    }

    /// The length of `usb:vVVVVpPPPP`.
    private static let usbLength = 14
}
