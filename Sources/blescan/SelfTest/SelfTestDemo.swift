import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// A virtual machine with one adapter that imitates a controller, and devices around it, for `--adapter demo:NAME`.
enum SelfTestDemo {
    /// The imitations, as on the command line.
    static var allNames: [String] { VirtualPersonality.all.map { "demo:\($0.name)" } }
    /// The same in a sentence.
    static var names: String { allNames.joined(separator: ", ") }

    /// Runs `body` with such a machine, in virtual time; `nil` if there is no imitation of this name.
    static func run<Value: Sendable>(
        _ name: String, _ body: @concurrent @Sendable @escaping (SelfTestMachine) async throws -> Value
    ) async throws -> Value? {
        guard let personality = VirtualPersonality.all.first(where: { $0.name == name })?.personality else {
            return nil
        }
        return try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            for device in [VirtualDevice.heartRate, .battery, .uart] { await radio.add(device) }
            return try await body(SelfTestMachine(radio: radio, time: time))
        }
    }
}

extension SelfTestMachine {
    /// The machine of a virtual radio.
    init(radio: VirtualRadio, time: VirtualTime) {
        let system = radio.system
        self.init(
            system: system, loop: time.loop, isVirtual: true,
            facts: {
                var facts = SystemFacts()
                facts.kernelRelease = "virtual"
                facts.privileges = system.privileges()
                facts.radio.adapters = ((try? system.list()) ?? []).map { adapter in
                    AdapterFacts(
                        index: adapter.index, name: adapter.name, address: adapter.address.description,
                        isUp: adapter.isUp, isRunning: adapter.isRunning, bus: "virtual")
                }
                facts.radio.openers = []
                return facts
            },
            usb: { _ in nil }, device: { _ in Device() }, gateway: { _ in nil }, distribution: nil,
            silence: { _ in }, kernelLog: { [] })
    }
}
