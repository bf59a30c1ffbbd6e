package import BLECore

/// One adapter as the kernel describes it.
package struct ControllerInfo: Hashable, Sendable {
    /// How a controller is attached.
    package enum Bus: UInt8, Hashable, Sendable {
        case virtual, usb, pcCard, uart, rs232, pci, sdio, spi, i2c, smd, virtio, ipc
    }

    /// The number of the moment: after a reset or replugging the same adapter may have another one.
    package let index: UInt16
    /// The kernel's name for it, such as `hci0`.
    package let name: String
    /// Its public address, or the static random one it was given; zero before the kernel has asked it.
    package let address: BluetoothAddress
    /// The kernel's flags, a bit each.
    package let flags: UInt32
    /// How it is attached; `nil` for ways not known here.
    package let bus: Bus?

    /// On, and meant to stay so. In the two seconds after plugging in an adapter runs without being up.
    package var isUp: Bool { flags & 1 != 0 }
    /// The controller has power and a transport.
    package var isRunning: Bool { flags & 4 != 0 }

    /// An adapter that stands in for one of the kernel's.
    package init(index: UInt16, name: String, address: BluetoothAddress, isUp: Bool) {
        self.index = index
        self.name = name
        self.address = address
        flags = isUp ? 5 : 0
        bus = .virtual
    }

    /// Reads `hci_dev_info`: index 2, name 8, address 6, flags 4, type 1, and more that is not needed.
    init(_ record: KernelRecord) {
        index = record.load(UInt16.self, at: 0)
        name = String(decoding: record.bytes.dropFirst(2).prefix(8).prefix { $0 != 0 }, as: UTF8.self)
        address = record.address(at: 10)
        flags = record.load(UInt32.self, at: 16)
        bus = Bus(rawValue: record.load(UInt8.self, at: 20) & 0x0F)
    }
}

/// One LE link of an adapter, whoever made it.
package struct ControllerLink: Hashable, Sendable {
    /// The controller's number for the link, as events and commands use it.
    package let handle: UInt16
    /// The peer's address; the kernel does not tell its type here.
    package let address: BluetoothAddress
    /// Whether this host made the link, and so is its central.
    package let isCentral: Bool
    /// Whether the link is up, rather than being made or ended.
    package let isConnected: Bool
}
