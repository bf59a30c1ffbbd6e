internal import BLECore
internal import BLELinux
internal import Glibc

/// The kernel's view of a virtual machine: its adapters, their hardware, and the permissions of the program.
///
/// System calls come from any thread, so the radio protects it with a lock.
struct VirtualMachine {
    /// In the order of their numbers.
    private(set) var adapters: [ControllerInfo]
    private(set) var permissions: VirtualPermissions = [.commands, .administration]
    /// Whether bluetoothd is seen to have the management interface open.
    private(set) var runsBluetoothd = false
    /// The adapters with LE disabled.
    private var withoutLowEnergy: Set<UInt16> = []
    /// The names of the adapters that share their antennas with Wi-Fi.
    private var besideWiFi: Set<String> = []
    /// The names of the adapters that the kernel's switch keeps off.
    private var blocked: Set<String> = []
    /// How many of the next attempts to switch an adapter on fail, by its name.
    private var powerUpFailures: [String: Int] = [:]
    /// How long an adapter is away after a step of recovery that takes it away, by its name.
    private var absences: [String: Duration] = [:]
    /// The identifiers of the hardware of adapters, by their names.
    private var hardware: [String: String] = [:]
    /// The adapters for which a program takes a step of recovery.
    private var recovered: Set<BluetoothAddress> = []

    init(_ adapter: ControllerInfo) {
        adapters = [adapter]
    }

    // MARK: Adapters

    mutating func add(_ adapter: ControllerInfo) {
        adapters.append(adapter)
        adapters.sort { $0.index < $1.index }
    }

    mutating func remove(_ index: UInt16) {
        adapters.removeAll { $0.index == index }
    }

    func adapter(_ index: UInt16) -> ControllerInfo? {
        adapters.first { $0.index == index }
    }

    func isUp(_ index: UInt16) -> Bool { adapter(index)?.isUp ?? false }

    /// Returns true if the adapter exists.
    mutating func setPower(of index: UInt16, _ isUp: Bool) -> Bool {
        guard let place = adapters.firstIndex(where: { $0.index == index }) else { return false }
        let known = adapters[place]
        adapters[place] = ControllerInfo(index: index, name: known.name, address: known.address, isUp: isUp)
        return true
    }

    func hasLowEnergy(_ index: UInt16) -> Bool { !withoutLowEnergy.contains(index) }

    mutating func setLowEnergy(of index: UInt16, _ isOn: Bool) {
        if isOn { withoutLowEnergy.remove(index) } else { withoutLowEnergy.update(with: index) }
    }

    func sharesAntenna(_ name: String) -> Bool { besideWiFi.contains(name) }

    mutating func setSharedAntenna(_ isShared: Bool, _ name: String) {
        if isShared { besideWiFi.update(with: name) } else { besideWiFi.remove(name) }
    }

    func isBlocked(_ name: String) -> Bool { blocked.contains(name) }

    mutating func block(_ isBlocked: Bool, _ name: String) {
        if isBlocked { blocked.update(with: name) } else { blocked.remove(name) }
    }

    mutating func failPowerUps(_ count: Int, _ name: String) { powerUpFailures[name] = count }

    /// Returns the error number with which the kernel cannot switch an adapter on; `nil` if it can.
    mutating func powerUpFailure(of index: UInt16) -> Int32? {
        guard let name = adapter(index)?.name else { return ENODEV }
        if isBlocked(name) { return ERFKILL }
        guard let left = powerUpFailures[name], left > 0 else { return nil }
        powerUpFailures[name] = left - 1
        return ETIMEDOUT
    }

    func absence(of name: String) -> Duration? { absences[name] }

    mutating func setAbsence(_ absence: Duration?, _ name: String) { absences[name] = absence }

    func hardware(of name: String) -> String { hardware[name] ?? "virtual" }

    mutating func replaceHardware(_ identifier: String, of name: String) {
        hardware[name] = identifier
    }

    // MARK: Programs

    mutating func setPermissions(_ permissions: VirtualPermissions) {
        self.permissions = permissions
    }

    mutating func runBluetoothd(_ runs: Bool) {
        runsBluetoothd = runs
    }

    /// Returns false if a program has claimed the adapter already.
    mutating func claimRecovery(of adapter: BluetoothAddress) -> Bool { recovered.insert(adapter).inserted }

    mutating func releaseRecovery(of adapter: BluetoothAddress) { recovered.remove(adapter) }

    /// Returns the error with which the kernel rejects a command to an adapter.
    func refusal(of index: UInt16) -> Int32? {
        guard permissions.contains(.commands) else { return EPERM }
        return isUp(index) ? nil : ENETDOWN
    }
}
