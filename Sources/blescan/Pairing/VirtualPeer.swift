import BLECore
import BareBLE
import BareBLETestKit

/// A virtual device of the command line.
struct VirtualPeer: Sendable {
    let device: VirtualDevice

    /// The device of this name; `nil` if there is none.
    init?(named name: String) {
        guard let preset = VirtualDevice.presets.first(where: { $0.name == name }) else { return nil }
        device = preset.device
    }

    /// The device of a peer; `nil` if that is none, or there is none of its name.
    init?(_ peer: PeerArgument) {
        guard case .demo(let name) = peer else { return nil }
        self.init(named: name)
    }

    /// The adapter of the virtual radio that bonds with one are made by.
    static let adapter = VirtualRadio.address(of: 0)

    /// The identity of one, which is the only device of its radio.
    static let identity = PeerID(address: BluetoothAddress(rawValue: 0xC0FF_EE00_0001), type: .random)

    /// Whether it has values for paired devices alone.
    var isProtected: Bool { device.security != nil }

    /// The passkey that it always shows; `nil` if it shows none, or another one each time.
    var passkey: String? {
        guard let digits = device.security?.passkey.map({ String($0) }) else { return nil }
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    /// Returns the failure of a command whose peer would have this name.
    static func absence(of name: String) -> Failure {
        Failure(message: "there is no demo:\(name)", hint: advice(for: name), status: .usage)
    }

    /// Returns what helps where there is none of this name.
    static func advice(for name: String) -> String {
        let near = NearNames.slips(name, in: VirtualDevice.presets.map { $0.name }).map { "demo:" + $0 }
        return near.isEmpty ? "The virtual devices are \(names)." : "Did you mean \(NearNames.list(near))?"
    }

    /// The names of all of them, as on the command line.
    static var names: String { VirtualDevice.presets.map { "demo:" + $0.name }.joined(separator: ", ") }
}
