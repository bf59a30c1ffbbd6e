// A machine's Bluetooth without hardware: adapters in which a controller answers real HCI bytes, and the air between them and the
// peripherals. Nothing of the library is left out: its adapter sends commands to this one as to the kernel's, and a link is a
// descriptor with a peripheral at its other end.
//
// Duties: deliver each advertisement to the controllers that listen; let calls find their peers; keep the links, and end them as the
// air, the peer, the adapter or the program does; say what the kernel would say of the adapters.
//
// Invariants
// - Everything lives on the loop of the centrals that use it. Only what the kernel is asked from any thread is behind a lock.
// - A peripheral that is linked does not advertise. It has one link at a time.
// - Advertisements keep their own beat, n times the interval after the peripheral was placed; while nobody listens there is no timer.
// - A link ends once. Its event goes out before its descriptor closes, as the kernel has it.
// - A link that no socket is attached to within 2 s goes down, and so does one whose socket is gone.

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
/// It begins with one adapter, `hci0`, that is on. Its peripherals advertise, are connected to, go away and come back; the adapter can
/// be switched off, reset and pulled out. Several centrals may share it, or have an adapter each.
public actor VirtualRadio {
    /// How long a link stays up that no socket is attached to.
    static let unattachedTime: Duration = .seconds(2)

    package nonisolated let loop: EventLoop
    nonisolated let machine: Lock<Machine>

    var controllers: [UInt16: RunningController] = [:]
    /// In the order in which they were placed, which is the order in which they are heard.
    var placements: [Placement] = []
    var advertisingTimer: TimerID?
    /// The adapters that were pulled out.
    var unplugged: [(index: UInt16, controller: VirtualController)] = []
    var lastClient: UInt64 = 0
    /// Told of each HCI packet: of a command before it is answered, of an event after it was sent.
    var exchanged: (@Sendable (_ isCommand: Bool) -> Void)?
    private var lastAddress: UInt64 = 0

    /// What the kernel says of the machine.
    struct Machine {
        var adapters: [ControllerInfo] = []
        var permissions: VirtualPermissions = [.commands, .administration]
        /// The adapters whose LE side is off.
        var withoutLowEnergy: Set<UInt16> = []
    }

    /// One controller with those who listen to it, and its links.
    struct RunningController {
        var controller: VirtualController
        var clients: [UInt64: Client] = [:]
        var links: [ConnectionHandle: RadioLink] = [:]
        /// Connects that were left to the kernel.
        var kernelCalls: [KernelCall] = []
        /// Whether it leaves commands unanswered.
        var isSilent = false
    }

    /// One program's pair of sockets.
    struct Client {
        let commands: PeerLink
        let reports: PeerLink
    }

    struct RadioLink {
        let peripheral: VirtualPeripheral
        let peer: PeerID
        var isAttached = false
        /// Whether the peripheral was reset and knows nothing of it any more.
        var isForgotten = false
        /// What the socket ends with, where no event tells.
        let fate: Lock<Int32?>
        /// When the link ends by itself, unless something happens.
        var timer: TimerID?
    }

    struct KernelCall {
        let peer: PeerID
        let end: LinkEndpoint
        let fate: Lock<Int32?>
    }

    /// A peripheral in the air.
    struct Placement {
        let peripheral: VirtualPeripheral
        var peer: PeerID
        var advertisement: VirtualAdvertisement?
        var proximity: VirtualProximity
        /// Whether a link keeps it from advertising.
        var isLinked = false
        /// When it advertises first, or did.
        var start: BootInstant
        /// When it advertises next.
        var due: BootInstant
        var connectionDelay: Duration = .zero
        /// What the next calls end with.
        var refusals: [HCIStatus] = []
        /// Whether a call has reached it and is being answered.
        var isAnswering = false
    }

    /// A radio with one adapter, on the library's own thread and in real time.
    public init() {
        self.init(loop: .shared)
        loop.start()
    }

    /// A radio with one adapter, in a virtual time.
    public init(time: VirtualTime) {
        self.init(loop: time.loop)
    }

    private init(loop: EventLoop) {
        self.loop = loop
        let info = ControllerInfo(index: 0, name: "hci0", address: Self.address(of: 0), isUp: true)
        machine = Lock(Machine(adapters: [info]))
        controllers[0] = RunningController(
            controller: VirtualController(address: Self.address(of: 0), isExtended: true))
    }

    isolated deinit {
        if let advertisingTimer { loop.cancel(advertisingTimer) }
        for controller in controllers.values {
            for client in controller.clients.values {
                client.commands.close()
                client.reports.close()
            }
            for link in controller.links.values { if let timer = link.timer { loop.cancel(timer) } }
        }
    }

    /// Isolates the radio to its loop, which is that of the centrals that use it.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    static func address(of number: UInt16) -> BluetoothAddress {
        BluetoothAddress(rawValue: 0x00AA_0100_0042 + UInt64(number))
    }

    /// An address that no other peripheral here has, of the static random kind.
    func newAddress() -> PeerID {
        lastAddress += 1
        return PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0000 + lastAddress), type: .random)
    }
}

/// The far end of a connect that the kernel has to answer.
final class LinkEndpoint: Sendable {
    private let socket: Lock<Int32>

    init(_ descriptor: Int32) {
        socket = Lock(descriptor)
    }

    deinit {
        let descriptor = take()
        if descriptor >= 0 { _ = LinkSocket(adopting: descriptor) }
    }

    /// The descriptor, which the caller owns from now on; -1 when it was taken before.
    func take() -> Int32 {
        socket.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
    }
}

extension Central {
    /// A central on the adapters of a virtual radio, in the time that the radio lives in.
    public init(_ configuration: Configuration = Configuration(), radio: VirtualRadio) {
        self.init(
            configuration,
            adapter: Adapter(
                configuration.adapter, loop: radio.loop, logger: configuration.logger,
                trace: configuration.traceHCI, system: radio.system))
    }
}
