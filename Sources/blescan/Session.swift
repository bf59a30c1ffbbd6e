import BLECore
import BareBLE
import BareBLETestKit

/// A connection for the length of one command.
enum Session {
    /// Connects to `peer`, runs `body`, and disconnects whatever comes of it. ^C cancels `body`.
    static func run<Value: Sendable>(
        with peer: PeerArgument, _ options: ConnectionOptions,
        _ body: @Sendable @escaping (Peripheral) async throws -> Value
    ) async throws -> Value {
        let configuration = options.configuration
        let connectOptions = options.connectOptions
        return try await Interrupt.cancelling {
            let central = Central(configuration)
            return try await central.run {
                let peripheral = try await connect(central, to: peer, connectOptions)
                do {
                    let value = try await body(peripheral)
                    await peripheral.disconnect()
                    return value
                } catch {
                    await peripheral.disconnect()
                    throw error
                }
            }
        }
    }

    private static func connect(
        _ central: Central, to peer: PeerArgument, _ options: ConnectOptions
    ) async throws -> Peripheral {
        switch peer {
        case .unix(let path):
            return try await central.connect(toSocket: path, options)
        case .demo(let name):
            guard let preset = VirtualDevice.presets.first(where: { $0.name == name }) else {
                let names = VirtualDevice.presets.map { "demo:" + $0.name }.joined(separator: ", ")
                throw Failure(message: "there is no demo:\(name). The virtual devices are \(names).", status: .usage)
            }
            let descriptor = try await VirtualPeripheral(preset.device).connect()
            return try await central.attach(descriptor: descriptor, name: peer.description, options)
        case .address:
            throw Failure(message: "connecting over the radio comes with the adapter.", status: .noAdapter)
        }
    }
}
