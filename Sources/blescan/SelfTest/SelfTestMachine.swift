import BLELinux
import BareBLE

/// The machine whose adapter is tested: this one, or a virtual one.
struct SelfTestMachine: Sendable {
    /// The files about an adapter that the doctor does not read.
    struct Device: Hashable, Sendable {
        var bcdDevice: String?
        var driver: String?
    }

    let system: AdapterSystem
    let loop: EventLoop
    /// Collects what is known without commands to the controllers, with all adapters of the machine.
    let facts: @Sendable () async -> SystemFacts
    /// The USB device of an adapter, as it is now.
    let usb: @Sendable (_ adapter: String) -> USBDevice?
    let device: @Sendable (_ adapter: String) -> Device
    let distribution: String?
    /// The number of links that are up on an adapter, of all programs.
    let links: @Sendable (UInt16) -> Int
    /// The messages of the kernel about controllers; empty without permission.
    let kernelLog: @Sendable () -> [String]

    /// A central of this machine.
    func central(_ configuration: Configuration) -> Central {
        Central(
            configuration,
            adapter: Adapter(
                configuration.adapter, loop: loop, logger: configuration.logger, trace: configuration.traceHCI,
                security: nil, addressHash: nil, system: system))
    }

    /// This machine.
    static func kernel() -> SelfTestMachine {
        EventLoop.shared.start()
        return SelfTestMachine(
            system: .kernel, loop: .shared,
            facts: {
                var facts = SystemFacts(root: "", access: RootAccess.current.withLock { $0 })
                // The first one is no choice, and therefore no error.
                facts.radio = (try? RadioProbe.kernelFacts(.first)) ?? RadioFacts()
                await RadioProbe.ask(&facts.radio, mayCommand: false, scanning: nil)
                return facts
            },
            usb: { USBDevice(adapter: "/sys/class/bluetooth/\($0)") },
            device: { name in
                let folder = "/sys/class/bluetooth/\(name)/device"
                return Device(
                    bcdDevice: SystemFiles.text(folder + "/../bcdDevice"),
                    driver: SystemFiles.destination(ofLink: folder + "/driver")?.split(separator: "/").last.map(
                        String.init))
            },
            distribution: (SystemFiles.text("/etc/os-release") ?? "").split(separator: "\n").lazy
                .compactMap { String($0).dropped(prefix: "PRETTY_NAME=") }.first?
                .replacing("\"", with: ""),
            links: { index in (try? Controllers.links(of: index))?.count { $0.isConnected } ?? 0 },
            kernelLog: {
                let log = RootAccess.current.withLock { $0 }?.kernelLog ?? KernelLog()
                return log?.messages { KernelTrouble($0) != nil } ?? []
            })
    }
}
