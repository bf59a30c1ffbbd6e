import BLECore
import BLELinux
import BareBLE
import Logging
import Testing

/// A controller behind socketpairs: it answers commands as the specification says, and its radio is what a test makes of it.
actor StandInController {
    static let ownAddress = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    nonisolated let loop: EventLoop
    private var commands: LinkSocket?
    private var reports: LinkSocket?
    private(set) var isScanning = false
    private var isCalling = false
    private var buffer = [UInt8](repeating: 0, count: 512)
    private var waiters: [(Int, CheckedContinuation<Void, Never>)] = []
    private(set) var received: [HCIOpcode] = []
    /// Peers that can be called, with the handles of their links.
    var peers: [BluetoothAddress: ConnectionHandle] = [:]
    /// What a command is answered with instead of success, as often as listed.
    var statuses: [HCIOpcode: [HCIStatus]] = [:]
    /// Commands that get no answer at all.
    var ignored: Set<HCIOpcode> = []
    /// What calls end with, once each, before they succeed.
    var callFailures: [HCIStatus] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(loop: EventLoop = .shared) {
        self.loop = loop
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
        if let descriptor = commands?.descriptor { loop.letGo(descriptor) }
        commands = nil
        reports = nil
        isScanning = false
    }

    func set(_ change: @Sendable (isolated StandInController) -> Void) { change(self) }

    /// Waits until so many commands have come in since the start.
    func commandsArrived(_ count: Int) async {
        if received.count >= count { return }
        await withCheckedContinuation { waiters.append((count, $0)) }
    }

    func advertise(_ address: BluetoothAddress, _ data: [UInt8], eventType: UInt8 = 0, rssi: Int8 = -55) {
        var writer = ByteWriter()
        writer.array([0x01, eventType, 0x01])
        writer.u48(address.rawValue)
        writer.u8(UInt8(data.count))
        writer.array(data)
        writer.i8(rssi)
        event(0x3E, [0x02] + writer.bytes, asReport: true)
    }

    /// Sends bytes as they are, as a report.
    func sendRaw(_ packet: [UInt8]) { _ = reports?.send(packet) }

    func foreign(_ opcode: HCIOpcode) {
        event(0x0E, [1, UInt8(opcode.rawValue & 0xFF), UInt8(opcode.rawValue >> 8), 0])
    }

    func endLink(_ handle: ConnectionHandle, _ reason: HCIStatus) {
        event(0x05, [0, UInt8(handle & 0xFF), UInt8(handle >> 8), reason.rawValue])
    }

    private func readable() {
        while let count = receive() {
            guard let packet = try? HCICommandPacket(buffer.span.extracting(1..<count)) else { continue }
            answer(packet)
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

    private func answer(_ command: HCICommandPacket) {
        guard !ignored.contains(command.opcode) else { return }
        if var list = statuses[command.opcode], !list.isEmpty {
            let status = list.removeFirst()
            statuses[command.opcode] = list
            if !status.isSuccess { return complete(command.opcode, [status.rawValue]) }
        }
        switch command.opcode {
        case .leReadLocalFeatures: complete(command.opcode, [0] + [UInt8](repeating: 0, count: 8))
        case .readLocalSupportedCommands: complete(command.opcode, [0] + [UInt8](repeating: 0xFF, count: 64))
        case .readAddress: complete(command.opcode, [0] + Self.ownAddress.littleEndianBytes)
        case .leSetScanParameters: complete(command.opcode, [isScanning ? 0x0C : 0])
        case .leSetScanEnable:
            isScanning = command.parameters.first == 1
            complete(command.opcode, [0])
        case .leCreateConnection: call(command)
        case .leCreateConnectionCancel:
            complete(command.opcode, [isCalling ? 0 : 0x0C])
            if isCalling { connectionComplete(.unknownConnection, handle: 0, .zero) }
        case .disconnect:
            status(command.opcode, .success)
            if let low = command.parameters.first, let high = command.parameters.dropFirst().first {
                endLink(UInt16(low) | UInt16(high) << 8, .localHostTerminated)
            }
        case .leConnectionUpdate, .leSetPHY: status(command.opcode, .success)
        case .leReadPHY: complete(command.opcode, [0] + command.parameters + [2, 1])
        case .readRSSI: complete(command.opcode, [0] + command.parameters + [0xC8])
        default: complete(command.opcode, [0])
        }
    }

    private func call(_ command: HCICommandPacket) {
        guard !isCalling else { return status(command.opcode, .commandDisallowed) }
        // A controller that scans does not call: what many real ones do.
        guard !isScanning else { return status(command.opcode, .commandDisallowed) }
        status(command.opcode, .success)
        isCalling = true
        var reader = ByteReader(command.parameters.span)
        guard reader.skip(6), let address = reader.address() else { return }
        if !callFailures.isEmpty { return connectionComplete(callFailures.removeFirst(), handle: 0, address) }
        if let handle = peers[address] { connectionComplete(.success, handle: handle, address) }
    }

    private func connectionComplete(_ status: HCIStatus, handle: ConnectionHandle, _ peer: BluetoothAddress) {
        isCalling = false
        event(
            0x3E,
            [0x01, status.rawValue, UInt8(handle & 0xFF), UInt8(handle >> 8), 0, 1] + peer.littleEndianBytes
                + [24, 0, 0, 0, 0xF4, 1, 0], asReport: true)
    }

    private func complete(_ opcode: HCIOpcode, _ returned: [UInt8]) {
        event(0x0E, [1, UInt8(opcode.rawValue & 0xFF), UInt8(opcode.rawValue >> 8)] + returned)
    }

    private func status(_ opcode: HCIOpcode, _ status: HCIStatus) {
        event(0x0F, [status.rawValue, 1, UInt8(opcode.rawValue & 0xFF), UInt8(opcode.rawValue >> 8)])
    }

    private func event(_ code: UInt8, _ parameters: [UInt8], asReport: Bool = false) {
        let packet = [0x04, code, UInt8(parameters.count)] + parameters
        if asReport { _ = reports?.send(packet) } else { _ = commands?.send(packet) }
    }
}
