import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// A local peripheral, and centrals at the other ends of socket pairs, in virtual time.
struct ServerBench: Sendable {
    let time: VirtualTime
    let central: Central
    let local: LocalPeripheral

    static func run(
        maximumCentrals: Int = 16, idleLimit: Duration? = nil, isNameWritable: Bool = false, log: KeptLog? = nil,
        _ body: @Sendable @escaping (ServerBench) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            var configuration = Configuration()
            if let log { configuration.logger = log.logger }
            let central = Central(configuration, radio: VirtualRadio(time: time))
            var settings = LocalPeripheral.Settings(name: "Bench")
            settings.maximumCentrals = maximumCentrals
            settings.idleLimit = idleLimit
            settings.isNameWritable = isNameWritable
            let local = LocalPeripheral(settings, on: central)
            try await body(ServerBench(time: time, central: central, local: local))
            await local.stop()
        }
    }

    /// A service with one characteristic that notifies (0xFFF1) and one that indicates (0xFFF2).
    let sensor = LocalService(
        0xFFF0,
        [LocalCharacteristic(0xFFF1, [.read, .notify]), LocalCharacteristic(0xFFF2, [.read, .indicate])])

    /// Connects a client of this library.
    func connect(mtu: Int = 517) async throws -> Peripheral {
        let (ours, theirs) = try LinkSocket.pair()
        try await local.attach(descriptor: ours)
        return try await central.attach(descriptor: theirs, ConnectOptions(mtu: mtu))
    }

    /// Connects a central that sends and receives bytes alone.
    func raw() async throws -> RawCentral {
        let (ours, theirs) = try LinkSocket.pair()
        return RawCentral(
            id: try await local.attach(descriptor: ours), socket: LinkSocket(adopting: theirs), time: time)
    }

    /// Publishes the sensor, and subscribes to 0xFFF1 with a client of this library and with a central that has not
    /// exchanged the MTU.
    func subscribers() async throws -> (values: ValueSequence, raw: RawCentral) {
        try await local.publish(sensor)
        let device = try await connect()
        let values = try await device.subscribe(to: 0xFFF1)
        let raw = try await raw()
        await raw.configure(handle(0xFFF1), 1)
        return (values, raw)
    }

    /// Publishes 0xFFF1, which takes a time to be read.
    func publishSlowValue(after pause: Duration) async throws {
        let clock = central.clock
        try await local.publish(
            LocalService(
                0xFFF0,
                [
                    LocalCharacteristic(
                        0xFFF1, .read,
                        value: .handled { _ in
                            try await clock.sleep(for: pause)
                            return [1]
                        })
                ]))
    }

    /// Has a central prepare a write from the beginning of a value.
    func prepare(_ value: [UInt8], of uuid: BluetoothUUID, by central: RawCentral) async {
        let part: [UInt8] = await handle(uuid).bytes + [0, 0] + value
        let echo: [UInt8] = [0x17] + part
        #expect(await central.request([0x16] + part) == echo)
    }

    func handle(_ uuid: BluetoothUUID) async -> AttributeHandle {
        await local.publishedServices.flatMap(\.characteristics).first { $0.uuid == uuid }?.id ?? 0
    }
}

/// A central that sends and receives bytes alone, and reads only where a test calls `receive`.
final class RawCentral: @unchecked Sendable {
    let id: ConnectedCentral.ID
    private var socket: LinkSocket
    private let time: VirtualTime

    init(id: ConnectedCentral.ID, socket: consuming LinkSocket, time: VirtualTime) {
        self.id = id
        self.socket = socket
        self.time = time
    }

    func send(_ pdu: [UInt8]) {
        #expect(socket.send(pdu) == .sent)
    }

    /// Returns the next packet; `nil` if none has come once nothing is left to run.
    func receive() async -> [UInt8]? {
        await time.settle()
        return socket.receivePacket()
    }

    /// Returns the packets that wait in the socket.
    func takeAll() -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while let packet = socket.receivePacket() { packets.append(packet) }
        return packets
    }

    /// Sends a request, and returns the response.
    func request(_ pdu: [UInt8]) async -> [UInt8]? {
        send(pdu)
        return await receive()
    }

    /// Writes the client configuration of the value at a handle, which is in the next attribute.
    func configure(_ value: AttributeHandle, _ bits: UInt8) async {
        #expect(await request([0x12] + (value + 1).bytes + [bits, 0]) == [0x13])
    }
}

extension AttributeHandle {
    /// The bytes of a handle in a packet.
    var bytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)] }
}
