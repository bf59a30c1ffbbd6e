public import BLECore

/// A status change of a fitness machine, caused at the machine or by another device.
///
///     opcode 1 | parameter, if any
///
/// Spec: Fitness Machine Status (0x2ADA), Fitness Machine Service 1.0, 4.17.
public enum FitnessMachineStatus: GATTReadable, Hashable, Sendable {
    /// The progress of a spin-down calibration.
    public struct SpinDown: RawRepresentable, Hashable, Sendable {
        /// The raw value.
        public let rawValue: UInt8

        /// Creates a value from its raw value. Unknown values are preserved.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The name in lowercase, or `nil` if the value is not assigned.
        public var name: String? { assignedName }

        /// The machine requests a calibration.
        public static let requested = Self(rawValue: 1)
        /// Success.
        public static let success = Self(rawValue: 2)
        /// Error.
        public static let error = Self(rawValue: 3)
        /// The user must stop pedalling.
        public static let stopPedalling = Self(rawValue: 4)
    }

    /// The machine was reset.
    case reset
    /// The user stopped the machine.
    case stopped
    /// The user paused the machine.
    case paused
    /// The safety key was removed.
    case stoppedBySafetyKey
    /// The user started or resumed the machine.
    case started
    /// A target was changed.
    case targetChanged(FitnessMachineTarget)
    /// The spin-down calibration progressed.
    case spinDown(SpinDown)
    /// Control was lost to another client and must be requested again.
    case controlPermissionLost
    /// A status of a later version: the opcode and the bytes after it.
    case other(UInt8, [UInt8])
    /// The specification's name.
    public static var formatName: String { "Fitness Machine Status" }

    /// Reads one status.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
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
    /// Fitness Machine Status, 0x2ADA: notified on every change.
    public static var fitnessMachineStatus: Self { Self(0x2ADA) }
}
