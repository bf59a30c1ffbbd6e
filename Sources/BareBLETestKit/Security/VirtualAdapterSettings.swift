internal import BLECore

// The kernel's settings of one adapter, and the consequences that one has for another.
//
// Invariants
// - There is a Security Manager only if the adapter was switched on while under management. In its first two seconds
//   after it was plugged in, an adapter that seems to be off is on: HCIDEVUP keeps it so, without a Security Manager.
// - One Set Powered is executed at a time, from `beginPowering` to `powerChanged`.

/// The settings of an adapter of a virtual machine.
struct VirtualAdapterSettings {
    private static let supported: ManagementSettings = [
        .powered, .connectable, .discoverable, .bondable, .lowEnergy, .advertising, .secureConnections, .debugKeys,
        .privacy, .staticAddress, .phyConfiguration,
    ]

    private let address: BluetoothAddress
    private(set) var isUp: Bool
    private var hasLowEnergy: Bool
    private(set) var isManaged = false
    private(set) var hasSecurityManager = false
    private(set) var isBondable = true
    /// 0 off, 1 preferred, 2 required.
    private(set) var secureConnections: UInt8 = 0
    private var isPrivate = false
    private(set) var capability = IOCapability.noInputNoOutput
    /// The socket whose Set Powered is being executed.
    private var powering: UInt64?
    /// The number of the time in which the adapter is on, though it seems to be off.
    private var grace: UInt64?

    init(address: BluetoothAddress, isUp: Bool, hasLowEnergy: Bool) {
        self.address = address
        self.isUp = isUp
        self.hasLowEnergy = hasLowEnergy
    }

    // MARK: What programs read

    var flags: ManagementSettings {
        var flags: ManagementSettings = []
        if isUp { flags.insert(.powered) }
        if isBondable { flags.insert(.bondable) }
        if hasLowEnergy { flags.insert(.lowEnergy) }
        if secureConnections > 0 { flags.insert(.secureConnections) }
        if isPrivate { flags.insert(.privacy) }
        return flags
    }

    /// The flags, as commands that set them return them.
    var flagBytes: [UInt8] {
        var writer = ByteWriter()
        writer.u32(flags.rawValue)
        return writer.bytes
    }

    /// What Read Controller Information returns.
    var information: [UInt8] {
        var writer = ByteWriter()
        writer.u48(address.rawValue)
        // Bluetooth 5.2, no company.
        writer.u8(0x0B)
        writer.u16(0xFFFF)
        writer.u32(Self.supported.rawValue)
        writer.u32(flags.rawValue)
        writer.u24(0)
        writer.array(Array("virtual".utf8) + [UInt8](repeating: 0, count: 249 + 11 - 7))
        return writer.bytes
    }

    // MARK: What programs set

    /// Puts the adapter under management, as the first command that names it does.
    mutating func manage() {
        guard !isManaged else { return }
        isManaged = true
        isBondable = false
    }

    /// Changes a setting; returns `false` for a value that it cannot have.
    mutating func set(_ code: ManagementCommandCode, _ value: UInt8) -> Bool {
        switch code {
        case .setBondable where value <= 1: isBondable = value == 1
        case .setLowEnergy where value == 1: hasLowEnergy = true
        case .setSecureConnections where value <= 2: secureConnections = value
        case .setPrivacy where value <= 2: isPrivate = value > 0
        default: return false
        }
        return true
    }

    /// Changes what the user can do; returns `false` for a value that does not exist.
    mutating func setCapability(_ value: UInt8) -> Bool {
        guard let capability = IOCapability(rawValue: value) else { return false }
        self.capability = capability
        return true
    }

    mutating func lowEnergyChanged(_ isOn: Bool) { hasLowEnergy = isOn }

    /// Makes the adapter bondable or not, which puts it under management.
    mutating func bondableChanged(_ isOn: Bool) {
        manage()
        isBondable = isOn
    }

    // MARK: Power

    /// Whether a Set Powered is being executed.
    var isPowering: Bool { powering != nil }

    /// Begins to execute the Set Powered of a socket.
    mutating func beginPowering(for socket: UInt64) { powering = socket }

    /// The adapter is on or off; returns whether that is a change, and the socket that has asked for it.
    mutating func powerChanged(_ isUp: Bool) -> (isChange: Bool, requester: UInt64?) {
        let requester = powering
        powering = nil
        guard self.isUp != isUp else { return (false, requester) }
        self.isUp = isUp
        // HCIDEVUP only keeps on what is on, and nothing is set up.
        let isKeptOn = grace != nil && requester == nil
        hasSecurityManager = isUp && isManaged && !isKeptOn
        grace = nil
        return (true, requester)
    }

    /// The adapter was plugged in, and is on for a while, though it seems to be off.
    mutating func graceBegan(number: UInt64) { grace = number }

    mutating func graceEnded(number: UInt64) {
        if grace == number { grace = nil }
    }
}
