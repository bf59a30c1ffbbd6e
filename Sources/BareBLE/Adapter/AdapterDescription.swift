public import BLECore
package import BLELinux

/// An adapter of this machine as the kernel lists it at one moment.
///
/// `Central.adapters()` returns descriptions. A description does not change, and it is not a handle: the adapter may be
/// removed, switched or renumbered by the time it is used. `selector` selects it for a `Configuration`.
public struct AdapterDescription: Hashable, Sendable, CustomStringConvertible {
    /// The bus that connects an adapter with the machine.
    public struct Bus: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The bus's short name, such as `usb`.
        public let rawValue: String

        /// Creates a bus from its short name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The short name.
        public var description: String { rawValue }

        /// A USB device or module.
        public static let usb = Bus(rawValue: "usb")
        /// A serial line, as for the modules of most boards.
        public static let uart = Bus(rawValue: "uart")
        /// A PCI card.
        public static let pci = Bus(rawValue: "pci")
        /// An SDIO card or module.
        public static let sdio = Bus(rawValue: "sdio")
        /// A controller in software: the kernel's `vhci`, an emulator.
        public static let virtual = Bus(rawValue: "virtual")
    }

    /// The kernel's current number of the adapter, which may change after a reset or replugging.
    public let index: Int
    /// The kernel's name of the adapter, such as `hci0`, which contains the index.
    public let name: String
    /// The public address, or the configured static random one; `nil` if the adapter has none, or was never switched
    /// on.
    public let address: BluetoothAddress?
    /// A Boolean value that indicates whether the address is this adapter's alone, as far as can be seen: `false`
    /// without an address, with the default address of controllers that were not given their own, and where another
    /// adapter of this machine has the same.
    ///
    /// Bonds and restoration state are stored by the adapter's address. Where that is not its own,
    /// they fit other adapters too.
    public let hasOwnAddress: Bool
    /// The bus of the adapter; `nil` if the kernel does not report it.
    public let bus: Bus?
    /// A Boolean value that indicates whether the controller has power and responds.
    ///
    /// It is `true` for two seconds after plugging in, even if the adapter is down and stays so.
    public let isPowered: Bool
    /// A Boolean value that indicates whether the adapter is up, so that it can scan and connect.
    ///
    /// `Central.ready(powerOn:timeout:)` switches on an adapter that is down.
    public let isUp: Bool
    /// A Boolean value that indicates whether rfkill blocks the adapter.
    public let isBlocked: Bool

    /// A selector for this adapter: by its address, which is permanent, or by its name if it has none of its own.
    public var selector: AdapterSelector {
        if hasOwnAddress, let address { .address(address) } else { .named(name) }
    }

    /// A description in one line, such as `hci0 (00:1A:7D:DA:71:13), usb, up`.
    public var description: String {
        let state = isBlocked ? "blocked" : isUp ? "up" : "down"
        return ["\(name) (\(address.map { "\($0)" } ?? "no address"))", bus?.rawValue, state].compactMap(\.self)
            .joined(separator: ", ")
    }

    package init(_ info: ControllerInfo, among all: [ControllerInfo] = [], isBlocked: Bool) {
        index = Int(info.index)
        name = info.name
        address = info.address == .zero ? nil : info.address
        hasOwnAddress = info.hasOwnAddress(among: all)
        bus = info.bus.map { Bus(rawValue: "\($0)") }
        isPowered = info.isRunning
        isUp = info.isUp
        self.isBlocked = isBlocked
    }

    /// Returns the adapters of a system, by index.
    package static func list(_ system: AdapterSystem) throws(BLEError) -> [AdapterDescription] {
        do throws(SystemCallError) {
            let all = try system.list()
            return all.map { AdapterDescription($0, among: all, isBlocked: system.isBlocked($0.name)) }
        } catch {
            throw BLEError(error, subject: nil, during: "list the adapters")
        }
    }
}

extension Central {
    /// Returns the adapters of this machine, by index; empty if there is none.
    ///
    /// It requires no privileges and changes nothing: no adapter is opened or switched. `AdapterSelector.first` selects
    /// the first one. It returns at once; later changes are not reported.
    ///
    /// - Throws: `BLEError` with `.unsupported` if the kernel has no Bluetooth, or hides it from a container with its
    ///   own network namespace, `.notPermitted` if a filter forbids its sockets, `.system`.
    public static func adapters() throws(BLEError) -> [AdapterDescription] {
        try AdapterDescription.list(.kernel)
    }

    /// Returns the adapters of the system that this central uses: the kernel, or a stand-in for it.
    ///
    /// - Throws: As `adapters()`.
    package nonisolated func adaptersOfSystem() throws(BLEError) -> [AdapterDescription] {
        try AdapterDescription.list(adapter.system)
    }
}

extension ControllerInfo {
    /// Whether the adapter has an address that no other one has, as far as can be seen.
    func hasOwnAddress(among all: [ControllerInfo]) -> Bool {
        address != .zero && !address.isDefaultOfControllers
            && !all.contains { $0.index != index && $0.address == address }
    }
}
