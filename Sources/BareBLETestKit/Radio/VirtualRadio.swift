// A machine's Bluetooth without hardware: adapters whose controllers respond with real HCI bytes, and the air between
// them and the peripherals. The library is used in full: it sends commands to these adapters as to the kernel's, and a
// link is a descriptor with a peripheral at its other end.
//
// | owner | what it owns |
// |---|---|
// | `VirtualMachine` | the kernel's view of the adapters and permissions, protected by a lock |
// | `RadioAdapters`, `RadioAdapter` | the adapters; of each its controller, programs, and times of advertising |
// | `RadioLinks` | the links, the sockets and the timers that they have |
// | `RadioListeners` | the listening sockets, and the links that wait there |
// | `RadioChannelListeners` | the listeners for channels, and the links of the channels that wait there |
// | `PlacedPeripherals`, `PlacedCentrals` | the devices in the air, and when they are heard or hear |
// | `AdapterAnnouncements` | the sockets on which changes of adapters are announced |
// | `VirtualManagement`, `ManagementSockets`, `SecurityTimers` | the kernel's Security Manager, its sockets and times |
//
// What is left here: deliver each advertisement to the listening controllers; connect attempts with their peers; end
// the links as the air, the peer, the adapter or the program does; report the adapters' state like the kernel.
//
// Invariants:
// - Everything runs on the loop of the centrals that use it. Only `VirtualMachine`, which any thread may use, has a
//   lock.
// - A connected peripheral does not advertise. It has one link at a time.
// - Advertising events are at multiples of the interval after the peripheral was placed; without a listener there is
//   no timer.
// - A link ends once. Its event is sent before its descriptor closes, as in the kernel.
// - A link without a socket for 2 s ends, and so does one whose socket is closed; one that a central has made,
//   after 4.2 s.
// - While a program listens, each new link is handed to its socket. Of several listening sockets the newest one gets
//   it.

internal import BLECore
package import BLELinux
public import BareBLE

/// Adapters without hardware, and the peripherals around them.
///
///     try await VirtualTime.run { time in
///         let radio = VirtualRadio(time: time)
///         let belt = await radio.add(.heartRate)
///         let central = Central(radio: radio)
///         let (device, _) = try await central.connect(toFirst: .services(0x180D))
///         await radio.move(belt, to: .outOfRange)
///         #expect(await device.disconnected() == .supervisionTimeout)
///     }
///
/// It starts with one adapter, `hci0`, which is switched on. Peripherals advertise, accept connections, disappear and
/// return; the adapter can be switched off, reset and unplugged. Several centrals may share it, or have one adapter
/// each. For the peripheral role, it has centrals of its own (`addCentral(as:proximity:)`), which hear what the
/// adapters advertise and connect.
public actor VirtualRadio {
    typealias LinkName = VirtualManagement.LinkName

    package nonisolated let loop: EventLoop
    nonisolated let machine: Lock<VirtualMachine>

    let adapters: RadioAdapters
    let links: RadioLinks
    let listeners = RadioListeners()
    let channelListeners = RadioChannelListeners()
    let peripherals: PlacedPeripherals
    let centrals: PlacedCentrals
    let announcements = AdapterAnnouncements()
    let management = VirtualManagement()
    let managementSockets = ManagementSockets()
    let securityTimers: SecurityTimers
    /// The levels of security that the kernel wants for the channels that peripherals have refused, by the descriptors
    /// of their sockets.
    var wantedLevels: [Int32: SocketSecurity.Level] = [:]
    /// Called with each HCI packet: before a command is handled, and after an event was sent.
    private var exchanged: (@Sendable (_ isCommand: Bool) -> Void)?
    private var lastSocket: UInt64 = 0
    private var lastAddress: UInt64 = 0
    private var lastPrivateAddress: UInt32 = 0

    /// Creates a radio with one adapter: inside `VirtualTime.run` in that time, elsewhere on the library's own thread
    /// and in real time.
    public init() {
        if let time = VirtualTime.current {
            self.init(loop: time.loop)
        } else {
            self.init(loop: .shared)
            loop.start()
        }
    }

    /// Creates a radio with one adapter in a virtual time.
    public init(time: VirtualTime) {
        self.init(loop: time.loop)
    }

    private init(loop: EventLoop) {
        self.loop = loop
        links = RadioLinks(on: loop)
        peripherals = PlacedPeripherals(on: loop)
        centrals = PlacedCentrals(on: loop)
        securityTimers = SecurityTimers(on: loop)
        let address = Self.address(of: 0)
        machine = Lock(VirtualMachine(ControllerInfo(index: 0, name: "hci0", address: address, isUp: true)))
        adapters = RadioAdapters(RadioAdapter(0, address, .bluetooth5))
        _ = management.adapterAdded(0, address, isUp: true)
    }

    isolated deinit {
        managementSockets.closeAll()
        securityTimers.cancelTimeouts { _ in false }
        peripherals.cancelTimer()
        centrals.cancelTimer()
        listeners.close()
        for adapter in adapters.all { adapter.closeSockets() }
        links.cancelTimers()
    }

    /// The executor of the radio's loop, which is that of the centrals that use it.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Returns the address of the adapter with this number.
    package static func address(of number: UInt16) -> BluetoothAddress {
        BluetoothAddress(rawValue: 0x00AA_0100_0042 + UInt64(number))
    }

    /// Returns an unused static random address.
    func newAddress() -> PeerID {
        lastAddress += 1
        return PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0000 + lastAddress), type: .random)
    }

    /// Returns the next private address of an identity.
    func newPrivateAddress(of identity: VirtualIdentity) -> PeerID {
        lastPrivateAddress &+= 1
        let address = PrivateAddress.address(
            Secret128(padding: identity.key), prand: lastPrivateAddress &* 0x9E37_79B1 >> 4)
        return PeerID(address: address, type: .random)
    }

    /// Returns an unused number for the sockets of a program.
    func newSocket() -> UInt64 {
        lastSocket += 1
        return lastSocket
    }

    // MARK: Observing

    /// The number of packets that programs have sent to the management interface.
    package var managementCommands: Int { managementSockets.packetCount }

    /// Calls a handler on the loop with each HCI packet: before a command is handled, and after an event was sent.
    package func observe(_ handler: (@Sendable (_ isCommand: Bool) -> Void)?) {
        exchanged = handler
    }

    /// A program has sent a command, or every program was sent an event.
    func packetExchanged(isCommand: Bool) {
        exchanged?(isCommand)
    }
}

extension Central {
    /// Creates a central on the adapters of a virtual radio, in the time of the radio.
    public init(_ configuration: Configuration = Configuration(), radio: VirtualRadio) {
        self.init(
            configuration,
            adapter: Adapter(
                configuration.adapter, loop: radio.loop, logger: configuration.logger,
                trace: configuration.traceHCI, security: configuration.security,
                addressHash: configuration.addressHash, recovery: configuration.recovery,
                maximumLinks: configuration.maximumLinks, preferredPHYs: configuration.preferredPHYs,
                system: radio.system))
    }
}
