import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Logging
import Testing

/// The test kit's controller behind socketpairs: the test decides what is heard, and when an attempt or a change ends.
actor StandInController {
    static let ownAddress = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    nonisolated let loop: EventLoop
    private var commands: LinkSocket?
    private var reports: LinkSocket?
    private var controller: VirtualController
    private var buffer = [UInt8](repeating: 0, count: 512)
    private var waiters: [(Int, CheckedContinuation<Void, Never>)] = []
    /// The commands, apart from those that set event masks: these come beside any other, and are in `eventMasks`.
    private(set) var received: [HCIOpcode] = []
    private(set) var eventMasks: [HCICommandPacket] = []
    /// Peers that can be connected to, with the handles of their links.
    var peers: [BluetoothAddress: ConnectionHandle] = [:]
    /// What a command gets a response with instead of success, as often as listed.
    var statuses: [HCIOpcode: [HCIStatus]] = [:]
    /// Commands that get no response at all.
    var ignored: Set<HCIOpcode> = []
    /// Whether the peer is quicker than the cancel of an attempt.
    var respondsToCancelsWithLinks = false
    /// The statuses of attempts, once each, before they succeed.
    var attemptFailures: [HCIStatus] = []
    /// The reasons for which links end as soon as they are up, once each, before one lasts.
    var earlyEnds: [HCIStatus] = []
    /// Whether links stay for a while when they are to be ended: until `endLink`.
    var holdsEnds = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(loop: EventLoop, isExtended: Bool) {
        self.loop = loop
        controller = VirtualController(address: Self.ownAddress, isExtended: isExtended)
        loop.start()
    }

    /// Plugs the controller in.
    func plugIn() throws -> (commands: Int32, reports: Int32) {
        let (ours, theirs) = try LinkSocket.pair()
        let (ourReports, theirReports) = try LinkSocket.pair()
        commands = LinkSocket(adopting: ours)
        reports = LinkSocket(adopting: ourReports)
        loop.onReadable(ours) { [weak self] in self?.assumeIsolated { $0.readable() } }
        return (theirs, theirReports)
    }

    /// Pulls it out: both sockets close.
    func unplug() {
        if let descriptor = commands?.descriptor { loop.unregister(descriptor) }
        commands = nil
        reports = nil
        controller.reset()
    }

    var isScanning: Bool { controller.isScanning }
    var isInitiating: Bool { controller.attempt != nil }

    func set(_ change: @Sendable (isolated StandInController) -> Void) { change(self) }

    /// Waits until so many commands have come in since the start, or the test is over its limit.
    func commandsArrived(_ count: Int) async {
        await withTaskCancellationHandler {
            if received.count >= count || Task.isCancelled { return }
            await withCheckedContinuation { waiters.append((count, $0)) }
        } onCancel: {
            Task(executorPreference: loop) { await self.endWaits() }
        }
    }

    private func endWaits() {
        for (_, waiter) in waiters { waiter.resume() }
        waiters = []
    }

    func advertise(
        _ address: BluetoothAddress, _ data: [UInt8], type: AddressType = .random, eventType: UInt8 = 0,
        rssi: Int8 = -55
    ) {
        let peer = PeerID(address: address, type: type)
        send(VirtualController.report(of: peer, eventType: eventType, data: data, rssi: rssi))
    }

    /// Sends bytes as they are, as a report.
    func sendRaw(_ packet: [UInt8]) { _ = reports?.send(packet) }

    func foreign(_ opcode: HCIOpcode, _ status: HCIStatus = .success) {
        send(VirtualController.commandComplete(opcode, [status.rawValue]))
    }

    /// Another program sends a command, which the controller accepts.
    func foreign(_ command: some HCICommand) {
        send(command.bytes)
        foreign(command.opcode)
    }

    func endLink(_ handle: ConnectionHandle, _ reason: HCIStatus) {
        controller.linkEnded(handle)
        send(VirtualController.disconnectionComplete(handle, reason))
    }

    private func readable() {
        while let count = receive() {
            guard let packet = try? HCICommandPacket(buffer.span.extracting(1..<count)) else { continue }
            respond(packet)
            if packet.opcode == .setEventMask || packet.opcode == .leSetEventMask {
                eventMasks.append(packet)
                continue
            }
            received.append(packet.opcode)
            let due = waiters.filter { $0.0 <= received.count }
            waiters.removeAll { $0.0 <= received.count }
            for (_, waiter) in due { waiter.resume() }
        }
    }

    private func receive() -> Int? {
        guard case .packet(let count, _)? = commands?.receive(into: &buffer) else {
            if case .ended? = commands?.receive(into: &buffer) { unplug() }
            return nil
        }
        return count
    }

    private func respond(_ command: HCICommandPacket) {
        guard !ignored.contains(command.opcode) else { return }
        if var list = statuses[command.opcode], !list.isEmpty {
            let status = list.removeFirst()
            statuses[command.opcode] = list
            if !status.isSuccess { return send(VirtualController.commandComplete(command.opcode, [status.rawValue])) }
        }
        // Sockets are none of its business, so it does not know which links have ended.
        if command.opcode == .leCreateConnection {
            for handle in controller.links.keys { controller.linkEnded(handle) }
        }
        if command.opcode == .leCreateConnectionCancel, respondsToCancelsWithLinks {
            send(VirtualController.commandComplete(command.opcode, [0]))
            return completeAttempt()
        }
        perform(controller.received(command))
    }

    /// Forgets everything, as after a command of another program.
    func reset() { controller.reset() }

    private func perform(_ actions: [VirtualController.Action]) {
        for action in actions {
            switch action {
            case .send(let packet): send(packet)
            case .disconnect(let handle): if !holdsEnds { endLink(handle, .localHostTerminated) }
            case .listeningChanged: completeAttempt()
            // Tests report the end of a change themselves.
            case .update, .changePHY, .encrypt, .advertisingChanged, .sendLater, .unresponsive: continue
            }
        }
    }

    /// Completes the pending attempt, if its peer can be connected to.
    func completeAttempt() {
        guard let attempt = controller.attempt else { return }
        if !attemptFailures.isEmpty {
            return perform(controller.respond(attemptFailures.removeFirst(), rssi: 0).actions)
        }
        guard let handle = peers[attempt.peer.address] else { return }
        let actions = controller.respond(.success, rssi: -56, as: handle).actions
        controller.setPHY(.le2M, .le1M, of: handle)
        perform(actions)
        if !earlyEnds.isEmpty { endLink(handle, earlyEnds.removeFirst()) }
    }

    func send(_ packet: [UInt8]) {
        if packet.dropFirst().first == 0x3E { _ = reports?.send(packet) } else { _ = commands?.send(packet) }
    }
}
