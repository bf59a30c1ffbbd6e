import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Logging

/// A controller behind socketpairs that sends the given reports, beside the test kit's responses to commands.
actor ReportSource {
    private var controller = VirtualController(address: address, isExtended: true)
    private var commands: PeerLink?
    private var reports: LinkSocket?
    /// The number of times that the socket had no room for a report, which the kernel would have dropped.
    private(set) var refusals = 0

    private static let address = BluetoothAddress(rawValue: 0x00AA_0100_0042)

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe EventLoop.peers.asUnownedSerialExecutor()
    }

    /// An adapter that this is the controller of.
    func adapter() throws -> Adapter {
        EventLoop.shared.start()
        let (commands, theirs) = try PeerLink.open(on: .peers)
        let (reports, theirReports) = try LinkSocket.pair()
        self.commands = commands
        self.reports = LinkSocket(adopting: reports)
        commands.start(
            packet: { [weak self] packet in self?.assumeIsolated { $0.received(packet) } }, ended: {})
        var system = AdapterSystem.kernel
        let info = ControllerInfo(index: 0, name: "hci0", address: Self.address, isUp: true)
        system.list = { () throws(SystemCallError) in [info] }
        system.info = { _ throws(SystemCallError) in info }
        system.open = { _ throws(SystemCallError) in
            AdapterSockets(commands: HCISocket(adopting: theirs), reports: HCISocket(adopting: theirReports))
        }
        system.privileges = { Privileges(effective: 1 << 12 | 1 << 13) }
        return Adapter(
            .first, loop: .shared, logger: Logger(label: "load") { _ in SwiftLogNoOpLogHandler() }, system: system)
    }

    /// Reports an advertisement of the device with this number; waits for room where there is none.
    func report(_ number: Int, _ data: [UInt8], rssi: Int8 = -60) {
        let packet = VirtualController.report(of: Self.peer(number), eventType: 0, data: data, rssi: rssi)
        while reports?.send(packet) == .wouldBlock {
            refusals += 1
            ShortPause.take()
        }
    }

    static func peer(_ number: Int) -> PeerID {
        PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0000 + UInt64(number)), type: .random)
    }

    private func received(_ packet: [UInt8]) {
        guard let command = try? HCICommandPacket(packet.span.extracting(droppingFirst: 1)) else { return }
        for case .send(let event) in controller.received(command) {
            if event.dropFirst().first == 0x3E { _ = reports?.send(event) } else { commands?.send(event) }
        }
    }
}
