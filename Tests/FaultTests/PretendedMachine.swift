import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Logging
import Testing

/// A machine with one adapter, as far as system calls show: the sockets that the code under test opens through the
/// library's own way to the kernel are ends of socket pairs, and this is at the other ends. It responds to commands as
/// a controller does, connects every peer that it is asked to, and is that peer too.
actor PretendedMachine {
    static let address = BluetoothAddress(rawValue: 0x00AA_0100_0042)
    static let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0007), type: .random)

    nonisolated let loop = EventLoop.peers
    private let plan: FaultPlan
    private var controller = VirtualController(address: PretendedMachine.address, isExtended: false)
    private var commands: LinkSocket?
    private var reports: LinkSocket?
    private var link: LinkSocket?
    /// The ends of links that are up silently.
    private var parked: [Int32] = []
    private var isSilent = false
    private var server = AttributeServer(FaultyLink.device)
    private var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
    private var isOn = false
    private(set) var received: [HCIOpcode] = []
    private(set) var linkCount = 0
    private var advertisements: UInt8 = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(_ plan: FaultPlan) {
        self.plan = plan
        plan.pretendBluetooth(Self.address.rawValue)
    }

    /// Looks for sockets of the code under test from now on, until `turnOff`.
    func turnOn() {
        isOn = true
        look()
    }

    func turnOff() {
        adoptAll()
        isOn = false
        disconnect()
        for descriptor in parked { MemoryFile.close(descriptor) }
        parked = []
        unplug()
    }

    /// Advertises, and says something else each time.
    func advertise() {
        advertisements &+= 1
        let data = [4, 0xFF, 0xFF, 0xFF, advertisements]
        _ = reports?.send(VirtualController.report(of: Self.peer, eventType: 0, data: data, rssi: -55))
    }

    /// A packet from the controller, as it is.
    func send(_ packet: [UInt8]) { _ = commands?.send(packet) }

    func notify(_ value: [UInt8]) throws {
        let handle = try #require(server.handle(of: FaultyLink.valueUUID))
        if let pdu = server.send(value, of: handle) { _ = link?.send(pdu) }
    }

    /// Ends the link.
    func disconnect() {
        if let descriptor = link?.descriptor { loop.unregister(descriptor) }
        link = nil
    }

    /// Says nothing on the link any more, which stays up. The next one is one more.
    func park() {
        guard let link = link.take() else { return }
        loop.unregister(link.descriptor)
        parked.append(link.release())
    }

    /// Makes the controller ignore all commands from now on.
    func fallSilent() { isSilent = true }

    private func unplug() {
        if let descriptor = commands?.descriptor { loop.unregister(descriptor) }
        commands = nil
        reports = nil
        controller.reset()
    }

    private func look() {
        guard isOn else { return }
        adoptAll()
        _ = loop.schedule(at: loop.now() + .milliseconds(1)) { [weak self] in
            self?.assumeIsolated { $0.look() }
        }
    }

    private func adoptAll() {
        while case let far = plan.takeFarEnd(ofProtocol: 1), far >= 0 { adopt(controller: far) }
        while case let far = plan.takeFarEnd(ofProtocol: 0), far >= 0 { adopt(link: far) }
    }

    /// The library opens two, the one for commands first.
    private func adopt(controller far: Int32) {
        // Opening the second one may have failed.
        if commands?.isHungUp == true { unplug() }
        guard commands != nil, reports == nil else {
            unplug()
            commands = LinkSocket(adopting: far)
            loop.onReadable(far) { [weak self] in self?.assumeIsolated { $0.commandsReadable() } }
            return
        }
        reports = LinkSocket(adopting: far)
    }

    private func adopt(link far: Int32) {
        disconnect()
        link = LinkSocket(adopting: far)
        linkCount += 1
        server = AttributeServer(FaultyLink.device)
        loop.onReadable(far) { [weak self] in self?.assumeIsolated { $0.linkReadable() } }
    }

    private func linkReadable() {
        while let input = link?.receive(into: &buffer) {
            switch input {
            case .packet(let count, _):
                for pdu in server.received(Array(buffer.prefix(count))) { _ = link?.send(pdu) }
            case .wouldBlock: return
            case .ended: return disconnect()
            }
        }
    }

    private func commandsReadable() {
        // What has a command to send has its socket for events too, and the response must not come before that is
        // looked at.
        adoptAll()
        while let input = commands?.receive(into: &buffer) {
            switch input {
            case .packet(let count, _):
                guard let command = try? HCICommandPacket(buffer.span.extracting(1..<count)) else { continue }
                received.append(command.opcode)
                if isSilent { continue }
                if command.opcode == .leCreateConnection {
                    for handle in controller.links.keys { controller.linkEnded(handle) }
                }
                perform(controller.received(command))
            case .wouldBlock: return
            case .ended: return unplug()
            }
        }
    }

    private func perform(_ actions: [VirtualController.Action]) {
        for action in actions {
            switch action {
            case .send(let packet): tell(packet)
            case .disconnect(let handle):
                controller.linkEnded(handle)
                tell(VirtualController.disconnectionComplete(handle, .localHostTerminated))
                disconnect()
            case .listeningChanged:
                if controller.attempt != nil { perform(controller.respond(.success, rssi: -50, as: 0x40).actions) }
            case .update, .changePHY, .encrypt, .advertisingChanged, .sendLater, .unresponsive: continue
            }
        }
    }

    private func tell(_ packet: [UInt8]) {
        if packet.dropFirst().first == 0x3E { _ = reports?.send(packet) } else { _ = commands?.send(packet) }
    }
}

/// An adapter that the library finds through its own system calls, all of which belong to a plan.
final class FaultyAdapter: Sendable {
    let plan: FaultPlan
    let loop: EventLoop
    let machine: PretendedMachine
    let adapter: Adapter
    let central: Central
    private let openBefore: Int

    init(mayCommand: Bool = true) async throws {
        let plan = try FaultPlan()
        self.plan = plan
        loop = plan.joined { EventLoop() }
        openBefore = plan.openCount
        loop.start()
        await plan.join(loop)
        machine = PretendedMachine(plan)
        await machine.turnOn()
        adapter = Self.adapter(on: loop, mayCommand: mayCommand)
        central = Central(Configuration(), adapter: adapter)
    }

    private static func adapter(on loop: EventLoop, mayCommand: Bool) -> Adapter {
        var system = AdapterSystem.kernel
        system.privileges = { Privileges(effective: mayCommand ? 1 << 12 | 1 << 13 : 0) }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return Adapter(.first, loop: loop, logger: logger, system: system)
    }

    /// The adapter as the next program on this machine finds it.
    func nextAdapter() -> Adapter { Self.adapter(on: loop, mayCommand: true) }

    /// Connects, reads, and disconnects.
    func visit() async throws(BLEError) {
        let options = ConnectOptions(timeout: .seconds(5))
        let device = try await central.connect(PretendedMachine.peer, options)
        do throws(BLEError) {
            let value = try await device.read(FaultyLink.value, timeout: .seconds(2))
            #expect(value == [64])
        } catch {
            await device.disconnect()
            throw error
        }
        await device.disconnect()
    }

    /// Scans until something is heard.
    func listen() async throws(BLEError) {
        let isHeard = Lock(false)
        let scan = try await adapter.subscribe(.balanced) { delivery in
            if case .found = delivery { isHeard.withLock { $0 = true } }
        }
        await heard(isHeard)
        await adapter.unsubscribe(scan)
    }

    /// Advertises until the code under test has noticed.
    func heard(_ isHeard: Lock<Bool>) async {
        while !isHeard.withLock(\.self), !Task.isCancelled {
            await machine.advertise()
            try? await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Releases everything, and checks for leftovers.
    func end() async {
        plan.clear()
        await adapter.unsubscribeAll()
        // An adapter that is unplugged is let go of.
        await machine.turnOff()
        while plan.openCount != openBefore, !Task.isCancelled { await Task.yield() }
        await plan.leave(loop)
        await loop.end()
    }
}
