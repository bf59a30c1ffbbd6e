/// What has happened to a fitness machine, at the machine itself or by another device.
///
///     op code 1 | parameter, as far as there is one
///
/// Spec: Fitness Machine Status (0x2ADA), Fitness Machine Service 1.0, 4.17.
public enum FitnessMachineStatus: GATTReadable, Hashable, Sendable {
    /// How a calibration by letting the wheel run out goes on.
    public struct SpinDown: RawRepresentable, Hashable, Sendable {
        /// The number that is sent.
        public let rawValue: UInt8

        /// The code with this number.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The meaning in lowercase words; `nil` for a number that is not assigned.
        public var name: String? { assignedName }

        /// The machine asks for it.
        public static let requested = Self(rawValue: 1)
        /// Done.
        public static let success = Self(rawValue: 2)
        /// Failed.
        public static let error = Self(rawValue: 3)
        /// Somebody must stop pedalling now.
        public static let stopPedalling = Self(rawValue: 4)
    }

    /// The machine was reset.
    case reset
    /// Somebody stopped it.
    case stopped
    /// Somebody paused it.
    case paused
    /// The safety key was pulled.
    case stoppedBySafetyKey
    /// Somebody started it, or let it go on.
    case started
    /// Somebody set it to this.
    case targetChanged(FitnessMachineTarget)
    /// A calibration goes on.
    case spinDown(SpinDown)
    /// Somebody else has taken control: it must be asked for again.
    case controlPermissionLost
    /// Something of a later version: the op code and what follows it.
    case other(UInt8, [UInt8])
    /// The specification's name.
    public static var formatName: String { "Fitness Machine Status" }

    /// Reads one status.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let opCode: UInt8 = try reader.read()
        switch opCode {
        case 0x01: self = .reset
        case 0x02:
            switch try reader.read(UInt8.self) {
            case 1: self = .stopped
            case 2: self = .paused
            case let reason: self = .other(opCode, [reason])
            }
        case 0x03: self = .stoppedBySafetyKey
        case 0x04: self = .started
        case 0x14: self = .spinDown(SpinDown(rawValue: try reader.read()))
        case 0xFF: self = .controlPermissionLost
        default:
            if let kind = Self.target(of: opCode) {
                self = .targetChanged(try FitnessMachineTarget(kind, reading: &reader))
            } else {
                self = .other(opCode, reader.rest())
            }
        }
    }

    private static func target(of opCode: UInt8) -> FitnessMachineTarget.Kind? {
        switch opCode {
        case 0x05...0x13: FitnessMachineTarget.Kind(rawValue: opCode &- 0x05)
        case 0x15: .cadence
        default: nil
        }
    }
}

extension FitnessMachineStatus.SpinDown: NamedCode {
    package static var names: [String] { ["", "requested", "success", "error", "stop pedalling"] }
}

extension FitnessMachineStatus: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        switch self {
        case .reset: list.add("machine", text: "reset")
        case .stopped: list.add("machine", text: "stopped")
        case .paused: list.add("machine", text: "paused")
        case .stoppedBySafetyKey: list.add("machine", text: "stopped by safety key")
        case .started: list.add("machine", text: "started")
        case .targetChanged(let target): target.add(to: &list)
        case .spinDown(let step): list.add("spin down", step)
        case .controlPermissionLost: list.add("machine", text: "control permission lost")
        case .other(let opCode, let parameter): list.add("machine", text: "status \(Hex.encode([opCode] + parameter))")
        }
        return list.fields
    }
}

extension CharacteristicKey where Value == FitnessMachineStatus {
    /// Fitness Machine Status, 0x2ADA: notified when something happens.
    public static var fitnessMachineStatus: Self { Self(0x2ADA) }
}
