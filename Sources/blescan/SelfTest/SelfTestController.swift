import BLECore

/// What a self-test has learned of the controller, and what its checks use of that.
final class SelfTestController {
    private(set) var commands: HCISupportedCommands?
    private(set) var features: LEFeatures?
    /// How the controller scans; `nil` before that is known, or if it cannot.
    private(set) var scanner: ScanSession.Controller?
    private(set) var connectsExtended = false
    /// The LE event mask that the scans need, where the kernel's may lack something.
    private(set) var wantedMask: LEEventMask?

    /// The controller has reported what it can do; `nil` for what it has not reported.
    func reported(_ features: LEFeatures?, _ commands: HCISupportedCommands?) {
        self.features = features
        self.commands = commands
        connectsExtended = commands?.hasExtendedConnect ?? false
    }

    /// The scans use this address of the controller, or a random one if it has none.
    func scans(from address: BluetoothAddress?) {
        guard let features else { return }
        scanner = ScanSession.Controller(
            features: features, commands: commands, ownAddressType: address ?? .zero == .zero ? .random : .public)
    }

    /// Has the scans use the legacy commands from now on; returns how the controller scans then.
    func useLegacyScan() -> ScanSession.Controller? {
        scanner?.hasExtendedScan = false
        return scanner
    }

    /// Switching the scan on and off does not work.
    func cannotScan() { scanner = nil }

    /// The controller lists the extended connect and refuses it.
    func refusesExtendedConnect() { connectsExtended = false }

    /// Decides whether the LE event mask must be set: not if the one that the kernel has set, as far as that was seen,
    /// contains all that is needed.
    func compareMask(of kernel: LEEventMask?) {
        guard let features else { return }
        let needed = LEEventMask(features: features, commands: commands).union(kernel ?? [])
        if kernel.map({ !$0.isSuperset(of: needed) }) ?? true { wantedMask = needed }
    }
}
