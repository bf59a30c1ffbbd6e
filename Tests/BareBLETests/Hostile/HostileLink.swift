import BareBLE
import BareBLETestKit

/// A link to a peer that misbehaves, and another link that must not notice.
struct HostileLink {
    let peer: RespondingPeer
    let device: Peripheral
    private let bystander: Bystander

    init(
        _ database: ServerDatabase = ServerDatabase(attributes: []), mtu: Int = 23,
        configuration: Configuration = Configuration(),
        intercept: @escaping RecordedServer.Intercept = { _ in nil }
    ) async throws {
        let central = Central(configuration)
        // On the same thread, but within the time limit of the protocol.
        bystander = try await Bystander(Central())
        peer = RespondingPeer(RecordedServer(database, mtu: mtu, intercept: intercept))
        device = try await central.attach(
            descriptor: try await peer.connect(), name: "hostile", ConnectOptions(mtu: mtu))
    }

    /// Ends the link, and looks after the other one.
    func end() async throws {
        await device.disconnect()
        try await bystander.check()
    }

    /// Waits until the peer has been sent so many packets that begin with `opcode`.
    func wait(for count: Int, of opcode: UInt8) async {
        while await peer.received.count(where: { $0.first == opcode }) < count, !Task.isCancelled { await Task.yield() }
    }

    /// The outcome of a call, as a code; `nil` when it did what it should.
    static func code(_ call: () async throws(BLEError) -> Void) async -> BLEError.Code? {
        do throws(BLEError) {
            try await call()
            return nil
        } catch {
            return error.code
        }
    }

    // MARK: Attributes

    /// A service with one characteristic, whose value at 3 can be read, written, notified and indicated, and
    /// descriptors at the handles after it.
    static func database(configurations: Int = 1, others: Int = 0) -> ServerDatabase {
        let last = UInt16(3 + configurations + others)
        var service = ServerAttribute(handle: 1, type: .primaryServiceDeclaration, value: [0x0F, 0x18])
        service.role = .group(end: last)
        var attributes = [
            service,
            ServerAttribute(handle: 2, type: .characteristicDeclaration, value: [0x3A, 3, 0, 0x19, 0x2A]),
            ServerAttribute(handle: 3, type: 0x2A19, value: [0x64]),
        ]
        for handle in UInt16(4)..<UInt16(4 + configurations + others) {
            let isConfiguration = handle < 4 + configurations
            attributes.append(ServerAttribute(handle: handle, type: isConfiguration ? 0x2902 : 0x2901, value: [0, 0]))
        }
        for index in attributes.indices { attributes[index].writeMethods = [.request, .command] }
        return ServerDatabase(attributes: attributes)
    }
}
