/// A check whether Bluetooth and Wi-Fi use one antenna: while a controller listens without a break, the Wi-Fi beside it
/// gets no time, and the reverse (row W50).
///
/// The kernel does not report it. A controller that is built in, and a Wi-Fi radio that is built in too, are one chip
/// on single-board computers and one card in laptops; what is plugged in has an antenna of its own.
package enum SharedAntenna {
    /// Returns a Boolean value that indicates whether the adapter likely shares its antenna with a Wi-Fi radio that is
    /// up.
    ///
    /// - Parameter root: The folder in which `/sys` is; empty for this machine.
    package static func isLikely(of adapter: String, root: String = "") -> Bool {
        guard isBuiltIn("\(root)/sys/class/bluetooth/\(adapter)/device") else { return false }
        let folder = root + "/sys/class/net"
        return SystemFiles.names(in: folder).contains { name in
            let interface = "\(folder)/\(name)"
            let isWireless =
                SystemFiles.isFolder(interface + "/wireless") || SystemFiles.isFolder(interface + "/phy80211")
            return isWireless && SystemFiles.text(interface + "/operstate") == "up" && isBuiltIn(interface + "/device")
        }
    }

    /// Whether a device is there, and not at a connector of USB. What has no device, such as a simulated adapter, is
    /// not built in.
    private static func isBuiltIn(_ device: String) -> Bool {
        guard SystemFiles.isFolder(device) else { return false }
        // On USB it is the interface of a driver, in the folder of the device.
        let usb = device + "/.."
        guard SystemFiles.text(usb + "/idVendor") != nil else { return true }
        return SystemFiles.text(usb + "/removable") == "fixed"
    }
}
