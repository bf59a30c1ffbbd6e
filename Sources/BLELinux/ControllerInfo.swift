package import BLECore

/// One adapter as the kernel describes it.
package struct ControllerInfo: Hashable, Sendable {
    /// The bus of a controller.
    package enum Bus: UInt8, Hashable, Sendable {
        case virtual, usb, pcCard, uart, rs232, pci, sdio, spi, i2c, smd, virtio, ipc
    }

    /// The current index: after a reset or replugging the same adapter may have another one.
    package let index: UInt16
    /// The kernel's name of the adapter, such as `hci0`.
    package let name: String
    /// The public address, or the static random one that was set; zero before the kernel has read it.
    package let address: BluetoothAddress
    /// The kernel's flags, a bit each.
    package let flags: UInt32
    /// The bus; `nil` for one that is unknown here.
    package let bus: Bus?

    /// The adapter is up. In the two seconds after plugging in it runs without being up.
    package var isUp: Bool { flags & 1 != 0 }
    /// The controller has power and a transport.
    package var isRunning: Bool { flags & 4 != 0 }

    /// Creates the description of an adapter that stands in for one of the kernel's.
    package init(index: UInt16, name: String, address: BluetoothAddress, isUp: Bool) {
        self.index = index
        self.name = name
        self.address = address
        flags = isUp ? 5 : 0
        bus = .virtual
    }

    /// Decodes `hci_dev_info`: index 2, name 8, address 6, flags 4, type 1, and unused fields.
    init(_ record: KernelRecord) {
        index = record.load(UInt16.self, at: 0)
        name = String(decoding: record.bytes.dropFirst(2).prefix(8).prefix { $0 != 0 }, as: UTF8.self)
        address = record.address(at: 10)
        flags = record.load(UInt32.self, at: 16)
        bus = Bus(rawValue: record.load(UInt8.self, at: 20) & 0x0F)
    }
}

/// One LE link of an adapter, whichever program made it.
package struct ControllerLink: Hashable, Sendable {
    /// The controller's number for the link, as events and commands use it.
    package let handle: UInt16
    /// The peer's address; the kernel does not report its type here.
    package let address: BluetoothAddress
    /// A Boolean value that indicates whether this host made the link, and so is its central.
    package let isCentral: Bool
    /// A Boolean value that indicates whether the link is up, rather than being made or ended.
    package let isConnected: Bool
}
