// A machine's Bluetooth without hardware: adapters whose controllers respond with real HCI bytes, and the air between
// them and the peripherals. The library is used in full: it sends commands to these adapters as to the kernel's, and a
// link is a descriptor with a peripheral at its other end.
//
// Responsibilities: deliver each advertisement to the listening controllers; connect attempts with their peers; keep
// the links, and end them as the air, the peer, the adapter or the program does; report the adapters' state like the
// kernel.
//
// Invariants:
// - Everything runs on the loop of the centrals that use it. Only kernel requests from any thread are behind a lock.
// - A connected peripheral does not advertise. It has one link at a time.
// - Advertising events are at multiples of the interval after the peripheral was placed; without a listener there is
//   no timer.
// - A link ends once. Its event is sent before its descriptor closes, as in the kernel.
// - A link without a socket for 2 s ends, and so does one whose socket is closed; one that a central has made, after 4.2 s.
// - While a program listens, each new link is handed to its socket. Of several listening sockets the newest one gets it.

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
/// each. For the peripheral role, it has centrals of its own (`addCentral(as:proximity:)`), which hear what the adapters
/// advertise and connect.
public actor VirtualRadio {
    /// The time that a link stays up without a socket.
    static let unattachedTime: Duration = .seconds(2)

    package nonisolated let loop: EventLoop
    nonisolated let machine: Lock<Machine>

    var controllers: [UInt16: RunningController] = [:]
    /// In the order of placement, which is also the order of reception.
    var placements: [Placement] = []
    var advertisingTimer: TimerID?
    /// In the order in which they were added, which is also the order in which they hear.
    var centrals: [PlacedCentral] = []
    var hearingTimer: TimerID?
    /// The oldest one first.
    var listeners: [Listener] = []
    /// The unplugged adapters.
    var unplugged: [(index: UInt16, controller: VirtualController)] = []
    var lastClient: UInt64 = 0
    /// The sockets on which changes of adapters are announced; `nil` if they are not.
    var announcements: [UInt64: PeerLink]?
    var management = VirtualManagement()
    /// Whether bluetoothd is seen to have the management interface open.
    var runsBluetoothd = false
    var managementSockets: [UInt64: PeerLink] = [:]
    /// The number of packets that programs have sent to the management interface.
    package internal(set) var managementCommands = 0
    var encryptionTime = VirtualRadio.usualEncryptionTime
    /// The links of the programs' sockets, by descriptor.
    var sockets: [Int32: VirtualManagement.LinkName] = [:]
    var pairingTimeouts: [VirtualManagement.LinkName: TimerID] = [:]
    var lastPrivateAddress: UInt32 = 0
    /// Called with each HCI packet: before a command is handled, and after an event was sent.
    var exchanged: (@Sendable (_ isCommand: Bool) -> Void)?
    private var lastAddress: UInt64 = 0

    /// The kernel's view of the machine.
    struct Machine {
        var adapters: [ControllerInfo] = []
        var permissions: VirtualPermissions = [.commands, .administration]
        /// The adapters with LE disabled.
        var withoutLowEnergy: Set<UInt16> = []
        /// The names of the adapters that share their antennas with Wi-Fi.
        var besideWiFi: Set<String> = []
        /// What the hardware of adapters is, by their names.
        var hardware: [String: String] = [:]
    }

    /// A controller with its listeners and links.
    struct RunningController {
        var controller: VirtualController
        var clients: [UInt64: Client] = [:]
        var links: [ConnectionHandle: RadioLink] = [:]
        /// The peers of links that only the controller knows.
        var hiddenPeers: [VirtualPeripheral] = []
        /// Connections left to the kernel.
        var kernelCalls: [KernelCall] = []
        /// The instants of the next advertising events, by the handles of the sets that are on air.
        var airTimes: [UInt8: BootInstant] = [:]
        /// True if it ignores commands.
        var isSilent = false
        /// True if the kernel has set the controller up since it was switched on.
        var isSetUp = true

        /// A controller that the kernel has set up.
        init(_ address: BluetoothAddress, _ personality: VirtualPersonality) {
            controller = VirtualController(address: address, personality: personality)
            controller.kernelSetsUp()
        }

        /// A controller that was plugged in.
        init(returning controller: VirtualController, isUp: Bool) {
            self.controller = controller
            self.controller.replugged()
            isSetUp = isUp
            if isUp { self.controller.kernelSetsUp() }
        }
    }

    /// The pair of sockets of one program.
    struct Client {
        let commands: PeerLink
        let reports: PeerLink
    }

    /// The device at the other end of a link.
    enum Partner {
        case peripheral(VirtualPeripheral)
        case central(VirtualCentral)
    }

    struct RadioLink {
        let partner: Partner
        let peer: PeerID
        var isAttached = false
        /// True if the other device was reset and has no state of the link.
        var isForgotten = false
        var isEncrypted = false
        /// The far end of a socket that waits for the link's encryption.
        var waiting: LinkEndpoint?
        /// The socket's error at the end, if no event reports it.
        let fate: Lock<Int32?>
        /// The timer that ends the link, unless it is cancelled.
        var timer: TimerID?

        var peripheral: VirtualPeripheral? {
            if case .peripheral(let peripheral) = partner { peripheral } else { nil }
        }

        var central: VirtualCentral? {
            if case .central(let central) = partner { central } else { nil }
        }
    }

    struct KernelCall {
        let peer: PeerID
        let end: LinkEndpoint
        let descriptor: Int32
        let security: SocketSecurity.Level?
        let fate: Lock<Int32?>
    }

    /// A placed peripheral.
    struct Placement {
        let peripheral: VirtualPeripheral
        var peer: PeerID
        var advertisement: VirtualAdvertisement?
        var proximity: VirtualProximity
        /// True if a link prevents advertising.
        var isLinked = false
        /// The instant of the first advertising event.
        var start: BootInstant
        /// The instant of the next advertising event.
        var due: BootInstant
        var connectionDelay: Duration = .zero
        /// The statuses of the next connection attempts.
        var refusals: [HCIStatus] = []
        /// True while a connection attempt is being completed.
        var isAnswering = false
    }

    /// Creates a radio with one adapter, on the library's own thread and in real time.
    public init() {
        self.init(loop: .shared)
        loop.start()
    }

    /// Creates a radio with one adapter in a virtual time.
    public init(time: VirtualTime) {
        self.init(loop: time.loop)
    }

    private init(loop: EventLoop) {
        self.loop = loop
        let info = ControllerInfo(index: 0, name: "hci0", address: Self.address(of: 0), isUp: true)
        machine = Lock(Machine(adapters: [info]))
        controllers[0] = RunningController(Self.address(of: 0), .bluetooth5)
        _ = management.adapterAdded(0, Self.address(of: 0), isUp: true)
    }

    isolated deinit {
        for socket in managementSockets.values { socket.close() }
        for timer in pairingTimeouts.values { loop.cancel(timer) }
        if let advertisingTimer { loop.cancel(advertisingTimer) }
        if let hearingTimer { loop.cancel(hearingTimer) }
        for listener in listeners { listener.announcements.close() }
        for controller in controllers.values {
            for client in controller.clients.values {
                client.commands.close()
                client.reports.close()
            }
            for link in controller.links.values { if let timer = link.timer { loop.cancel(timer) } }
        }
    }

    /// The executor of the radio's loop, which is that of the centrals that use it.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    static func address(of number: UInt16) -> BluetoothAddress {
        BluetoothAddress(rawValue: 0x00AA_0100_0042 + UInt64(number))
    }

    /// Returns an unused static random address.
    func newAddress() -> PeerID {
        lastAddress += 1
        return PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0000 + lastAddress), type: .random)
    }
}

/// The far end of a connection that the kernel completes.
final class LinkEndpoint: Sendable {
    private let socket: Lock<Int32>

    init(_ descriptor: Int32) {
        socket = Lock(descriptor)
    }

    deinit {
        let descriptor = take()
        if descriptor >= 0 { _ = LinkSocket(adopting: descriptor) }
    }

    /// True if the other end was closed.
    var isHungUp: Bool {
        socket.withLock { descriptor in
            let link = LinkSocket(adopting: descriptor)
            let isHungUp = link.isHungUp
            _ = link.release()
            return isHungUp
        }
    }

    /// Closes it, so that the other end has no error but the reported one.
    func close() {
        let descriptor = take()
        guard descriptor >= 0 else { return }
        var link = LinkSocket(adopting: descriptor)
        // Unread packets would make the end a reset.
        while link.receivePacket() != nil {}
    }

    /// Returns the descriptor, which the caller owns from now on, or -1 if it was taken before.
    func take() -> Int32 {
        socket.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
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
