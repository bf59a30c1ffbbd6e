import BLECore
import BLELinux
import BareBLE

/// The machine whose adapter is tested: this one, or a virtual one.
struct SelfTestMachine: Sendable {
    /// The files about an adapter that the doctor does not read.
    struct Device: Hashable, Sendable {
        var bcdDevice: String?
        var driver: String?
    }

    var system: AdapterSystem
    let loop: EventLoop
    var isVirtual = false
    /// Collects what is known without commands to the controllers, with all adapters of the machine.
    var facts: @Sendable () async -> SystemFacts
    /// The USB device of an adapter, as it is now.
    let usb: @Sendable (_ adapter: String) -> USBDevice?
    let device: @Sendable (_ adapter: String) -> Device
    /// The gateway over one of these interfaces, in the order of bytes of the network.
    let gateway: @Sendable (_ interfaces: [String]) -> UInt32?
    let distribution: String?
    /// Resets the controller of an adapter so that its links end without notice to their peers.
    let silence: @Sendable (UInt16) throws(SystemCallError) -> Void
    /// The messages of the kernel about controllers; empty without permission.
    let kernelLog: @Sendable () -> [String]
    /// Claims an adapter for the time of a self-test; `nil` if nothing is known of other programs.
    var claim: @Sendable (ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim? = { _ in nil }

    /// A central of this machine.
    func central(on adapter: String) -> Central {
        var configuration = Configuration()
        configuration.adapter = .named(adapter)
        return Central(
            configuration,
            adapter: Adapter(
                configuration.adapter, loop: loop, logger: configuration.logger, trace: configuration.traceHCI,
                system: isVirtual ? system : .kernel))
    }

    /// Whether devices may bond with an adapter, as far as the kernel is concerned; `nil` if that cannot be read.
    func isBondable(_ index: UInt16) async -> Bool? {
        guard var socket = try? system.openManagement(),
            let facts = await ManagementInterface.facts(of: index, from: &socket), facts.can(.bondable)
        else { return nil }
        return facts.has(.bondable)
    }

    /// Makes an adapter bondable or not, if it is not as `isOn` specifies; returns `false` where the kernel refuses it.
    func restoreBondable(_ isOn: Bool, _ index: UInt16) async -> Bool {
        guard let now = await isBondable(index), now != isOn else { return true }
        guard var socket = try? system.openManagement() else { return false }
        return await ManagementInterface.response(to: ManagementSetBondable(isOn), of: index, from: &socket) != nil
    }

    /// This machine.
    static func kernel() -> SelfTestMachine {
        EventLoop.shared.start()
        var system = AdapterSystem.kernel
        // The data of links too: they come in the order in which the kernel got them and the events.
        system.open = { index throws(SystemCallError) in
            let sockets = try AdapterSystem.kernel.open(index)
            try sockets.reports.setFilter(HCIFilter(events: [0x3E], data: true))
            return sockets
        }
        return SelfTestMachine(
            system: system, loop: .shared,
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
            gateway: { GatewayPing.gateway(over: $0, routes: SystemFiles.text("/proc/net/route") ?? "") },
            distribution: (SystemFiles.text("/etc/os-release") ?? "").split(separator: "\n").lazy
                .compactMap { String($0).dropped(prefix: "PRETTY_NAME=") }.first?
                .replacing("\"", with: ""),
            silence: { index throws(SystemCallError) in try Controllers.reset(index) },
            kernelLog: {
                let log = RootAccess.current.withLock { $0 }?.kernelLog ?? KernelLog()
                return log?.messages { KernelTrouble($0) != nil } ?? []
            },
            claim: { adapter throws(RecoveryFailure) in
                try RecoveryClaim.make(for: adapter, purpose: .selfTest)
            })
    }
}
