import BLECore
import BLELinux
import BareBLE
import Testing

@testable import BareBLETestKit

/// One end of a socket of the virtual kernel: hexadecimal out, hexadecimal in.
final class RawSocket {
    private var socket: LinkSocket

    init(_ descriptor: Int32) {
        socket = LinkSocket(adopting: descriptor)
    }

    func send(_ hex: String) throws {
        #expect(socket.send(try Hex.decode(hex)) == .sent)
    }

    /// Everything that has arrived.
    func received() -> [String] {
        var packets: [String] = []
        while let packet = socket.receivePacket() { packets.append(Hex.encode(packet)) }
        return packets
    }
}

/// An adapter of a virtual radio and one device, used by raw packets without the library.
///
/// The peer is C6:55:44:33:22:11, random, unless it has a private address.
final class KernelSecurityBench {
    /// The peer, as packets of the management interface name it.
    static let peer = "1122334455c602"
    static let id = PeerID(address: BluetoothAddress(rawValue: 0xC655_4433_2211), type: .random)

    let time: VirtualTime
    let radio: VirtualRadio
    let device: VirtualPeripheral
    /// A management socket with all rights.
    let management: RawSocket
    let commands: RawSocket
    /// The socket of the link.
    var link: LinkSocket?
    private let reports: RawSocket
    private let own: BluetoothAddress

    init(
        _ time: VirtualTime, _ security: VirtualSecurity?, at peer: PeerID = KernelSecurityBench.id
    ) async throws {
        self.time = time
        radio = VirtualRadio(time: time)
        var description = VirtualDevice(
            name: "Lock",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, .read, value: [1], protection: .encrypted),
                        VirtualCharacteristic(0xFFF2, .read, value: [2], protection: .authenticated),
                        VirtualCharacteristic(0xFFF3, [.read, .notify], value: [3], protection: .encrypted),
                    ])
            ])
        description.security = security
        device = radio.peripheral(description)
        await radio.place(device, as: peer, advertising: VirtualAdvertisement(description))
        management = RawSocket(try await radio.openManagement().get())
        let (commands, reports) = try await radio.open(0).get()
        self.commands = RawSocket(commands)
        self.reports = RawSocket(reports)
        own = VirtualRadio.address(of: 0)
    }

    /// Another management socket.
    func anotherSocket(isTrusted: Bool = true) async throws -> RawSocket {
        RawSocket(try await radio.openManagement(isTrusted: isTrusted).get())
    }

    /// Sends a packet, waits, and returns everything that has come on the management socket.
    func exchange(_ hex: String, for duration: Duration = .zero) async throws -> [String] {
        try management.send(hex)
        await pass(duration)
        return management.received()
    }

    func pass(_ duration: Duration) async {
        try? await time.clock.sleep(for: max(duration, .nanoseconds(1)))
        await time.settle()
    }

    /// Puts the adapter under management, with identities and bonds allowed, and powers it on.
    func manage(isBondable: Bool = true, secureConnections: Int = 1, capability: Int = 3) async throws {
        for command in [
            "0500000001 0000", "0d00000001 0001", "2d00000001 000\(secureConnections)",
            "0900000001 000\(isBondable ? 1 : 0)", "1800000001 000\(capability)", "30000000 0200 0000",
            "13000000 0200 0000", "0500000001 0001",
        ] {
            let packets = try await exchange(command)
            #expect(packets.contains { $0.hasPrefix("01000000") && $0.dropFirst(16).hasPrefix("00") }, "\(command)")
        }
    }

    /// Makes a link by a raw command, and returns once it is up.
    func initiate(_ peer: PeerID = KernelSecurityBench.id) async throws {
        let address = Hex.encode(peer.address.littleEndianBytes)
        let type = peer.type == .public ? "00" : "01"
        try commands.send("010d2019 60003000 00 \(type) \(address) 00 18002800 0000 d007 00000000")
        await pass(.milliseconds(150))
        #expect(reports.received().contains { $0.hasPrefix("043e13010040") })
        _ = commands.received()
    }

    /// Attaches a socket to the link.
    func attach(_ peer: PeerID = KernelSecurityBench.id, level: SocketSecurity.Level? = nil) throws {
        link = try radio.system.connect(own, .public, peer, .seconds(20), level)
    }

    /// The descriptor of the link's socket.
    var descriptor: Int32 { link?.descriptor ?? -1 }

    func security() throws -> SocketSecurity { try radio.system.security(descriptor) }

    /// Reads the value of a characteristic over the link.
    func read(_ handle: Int) async -> String {
        _ = link?.send([0x0A, UInt8(handle), 0])
        await pass(.milliseconds(50))
        return link?.receivePacket().map { Hex.encode($0) } ?? "none"
    }

    /// A link with a socket, and the adapter under management.
    func linked(isBondable: Bool = true, secureConnections: Int = 1) async throws {
        try await manage(isBondable: isBondable, secureConnections: secureConnections)
        try await initiate()
        try attach()
        _ = management.received()
    }

    /// Pairs by Just Works, and returns the events but the question.
    @discardableResult
    func pair() async throws -> [String] {
        let question = try await exchange("19000000 0800 \(Self.peer) 03", for: .milliseconds(50))
        #expect(question.count == 1 && question[0].hasPrefix("0f0000000c00\(Self.peer)01"))
        let events = try await exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(100))
        return events
    }

    /// Ends the link from this side.
    func disconnect() async throws {
        try commands.send("01060403 4000 13")
        await pass(.milliseconds(10))
        link = nil
        _ = management.received()
        _ = commands.received()
    }
}

/// A packet as one word, from parts.
func packet(_ parts: String...) -> String { parts.joined().filter { $0 != " " } }
