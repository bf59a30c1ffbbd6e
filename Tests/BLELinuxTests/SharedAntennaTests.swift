import BLELinux
import TestSupport
import Testing

/// Which adapters likely share their antennas with Wi-Fi, on pretended machines.
@Suite struct SharedAntennaTests {
    private static let uart = "serial/serial0-0"
    private static let sdio = "mmc1/mmc1:0001:1"
    private static let usb = "usb1/1-3/1-3:1.0"
    private static let stick = "usb1/1-4/1-4:1.0"

    /// The kernel's files, as they are on a machine with these devices.
    private func machine(_ adapter: String, _ wireless: String?, isUp: Bool = true) -> FakeTree {
        var tree = FakeTree()
        for device in [adapter, wireless].compactMap(\.self) { tree.write("\(device)/uevent", "") }
        for (device, removable) in [("usb1/1-3", "fixed"), ("usb1/1-4", "removable")] {
            tree.write("\(device)/idVendor", "8087")
            tree.write("\(device)/removable", removable)
        }
        tree.write("sys/class/bluetooth/hci0/address", "")
        tree.link("sys/class/bluetooth/hci0/device", to: "\(tree.path)/\(adapter)")
        tree.write("sys/class/net/lo/operstate", "up")
        guard let wireless else { return tree }
        tree.write("sys/class/net/wlan0/phy80211/name", "phy0")
        tree.write("sys/class/net/wlan0/operstate", isUp ? "up" : "down")
        tree.link("sys/class/net/wlan0/device", to: "\(tree.path)/\(wireless)")
        return tree
    }

    @Test(
        .row("W50"),
        arguments: [
            (uart, sdio, true), (usb, sdio, true), (stick, sdio, false), (uart, stick, false), (usb, nil, false),
        ] as [(String, String?, Bool)])
    func whatIsBuiltInShares(adapter: String, wireless: String?, expected: Bool) {
        let tree = machine(adapter, wireless)
        let path = tree.path
        #expect(SharedAntenna.isLikely(of: "hci0", root: path) == expected)
        #expect(!SharedAntenna.isLikely(of: "hci1", root: path))
    }

    @Test func wirelessThatIsOffNeedsNoTime() {
        let tree = machine(Self.uart, Self.sdio, isUp: false)
        let path = tree.path
        #expect(!SharedAntenna.isLikely(of: "hci0", root: path))
    }
}
