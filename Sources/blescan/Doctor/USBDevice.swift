import BLELinux

/// The USB device of an adapter, as the kernel's files describe it.
struct USBDevice: Hashable, Sendable {
    /// The vendor and the product, such as `0a12:0001`.
    let identifier: String
    /// Whether the kernel may suspend it: `auto` or `on`; `nil` if that cannot be read.
    let control: String?
    /// The state, such as `active` or `suspended`; `nil` if it cannot be read.
    let status: String?

    /// Reads the files; `nil` if the adapter is not on USB, or the files cannot be read.
    ///
    /// - Parameter adapter: The adapter's folder in `/sys/class/bluetooth`.
    init?(adapter: String) {
        // Its device is the interface of the driver, which is in the folder of the USB device.
        let folder = adapter + "/device/.."
        guard let vendor = SystemFiles.text(folder + "/idVendor"),
            let product = SystemFiles.text(folder + "/idProduct"),
            [vendor, product].allSatisfy({ $0.count == 4 && $0.allSatisfy(\.isHexDigit) })
        else { return nil }
        identifier = "\(vendor):\(product)"
        control = SystemFiles.text(folder + "/power/control")
        status = SystemFiles.text(folder + "/power/runtime_status")
    }

    var vendor: Substring { identifier.prefix(4) }
    var product: Substring { identifier.suffix(4) }
}
