public import BLECore

/// The charging state and the power sources of a battery.
///
///     flags 1 | power state 2 | identifier 2, if flagged | level 1, if flagged | additional status 1, if flagged
///
/// Spec: Battery Level Status (0x2BED), Battery Service 1.1, 3.2; GATT Specification Supplement.
public struct BatteryLevelStatus: GATTReadable, Hashable, Sendable {
    /// A yes-or-no answer that may be unknown.
    public enum Answer: UInt8, Hashable, Sendable {
        /// No.
        case no
        /// Yes.
        case yes
        /// Unknown.
        case unknown
        /// A code reserved for future use.
        case reserved
    }

    /// The direction in which the battery's charge changes.
    public enum ChargeState: UInt8, Hashable, Sendable {
        /// Unknown.
        case unknown
        /// Charging.
        case charging
        /// Discharging while powering the device.
        case dischargingActive
        /// Discharging without powering the device.
        case dischargingInactive
    }

    /// The charge level as a word.
    public enum ChargeLevel: UInt8, Hashable, Sendable {
        /// Unknown.
        case unknown
        /// The level is good.
        case good
        /// The battery should be charged soon.
        case low
        /// The battery must be charged now.
        case critical
    }

    /// The method by which a battery is charged.
    public struct ChargingType: RawRepresentable, Hashable, Sendable {
        /// The number that is sent, 0 to 7.
        public let rawValue: UInt8

        /// Creates a type from its raw value. Unknown values are preserved.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The name in lowercase, or `nil` if the value is not assigned.
        public var name: String? { assignedName }

        /// Unknown, or the battery is not charging.
        public static let unknownOrNotCharging = Self(rawValue: 0)
        /// Constant current.
        public static let constantCurrent = Self(rawValue: 1)
        /// Constant voltage.
        public static let constantVoltage = Self(rawValue: 2)
        /// Trickle charge: a current that compensates for self-discharge.
        public static let trickle = Self(rawValue: 3)
        /// Float charge: a voltage that keeps the battery full.
        public static let float = Self(rawValue: 4)
    }

    /// The raw 16 bits of the power state.
    public let powerState: UInt16
    /// The battery's identifier, a number from the SIG's namespace descriptions, if present.
    public let identifier: UInt16?
    /// The charge level, if present.
    public let level: BatteryLevel?
    /// The raw bits of the additional status, if present.
    public let additionalStatus: UInt8?
    /// The specification's name.
    public static var formatName: String { "Battery Level Status" }

    /// Reads one status.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 3, reading: &reader)
        powerState = try reader.read()
        identifier = try reader.read(if: flags[0])
        level = try reader.read(if: flags[1])
        additionalStatus = try reader.read(if: flags[2])
        reader.skipReserved(flags)
    }

    /// A Boolean value that indicates whether the battery is present.
    public var isPresent: Bool { powerState & 1 != 0 }
    /// The presence of a wired external power source.
    public var wiredPower: Answer { Answer(rawValue: bits(1, 0b11)) ?? .reserved }
    /// The presence of a wireless external power source.
    public var wirelessPower: Answer { Answer(rawValue: bits(3, 0b11)) ?? .reserved }
    /// The direction in which the battery's charge changes.
    public var chargeState: ChargeState { ChargeState(rawValue: bits(5, 0b11)) ?? .unknown }
    /// The charge level as a word.
    public var chargeLevel: ChargeLevel { ChargeLevel(rawValue: bits(7, 0b11)) ?? .unknown }
    /// The method by which the battery is charged.
    public var chargingType: ChargingType { ChargingType(rawValue: bits(9, 0b111)) }
    /// A Boolean value that indicates whether charging failed because of the battery.
    public var hasChargingFaultOfBattery: Bool { bits(12, 1) != 0 }
    /// A Boolean value that indicates whether charging failed because of the power source.
    public var hasChargingFaultOfPowerSource: Bool { bits(13, 1) != 0 }
    /// A Boolean value that indicates whether charging failed for another reason.
    public var hasOtherChargingFault: Bool { bits(14, 1) != 0 }
    /// The need for service, if present.
    public var needsService: Answer? { additionalStatus.map { Answer(rawValue: $0 & 0b11) ?? .reserved } }
    /// A Boolean value that indicates whether the battery itself is faulty, if present; `false` also if the device does
    /// not know.
    public var hasBatteryFault: Bool? { additionalStatus.map { $0 & 0b100 != 0 } }

    private func bits(_ first: Int, _ mask: UInt16) -> UInt8 {
        UInt8(truncatingIfNeeded: powerState >> UInt16(first) & mask)
    }
}

extension BatteryLevelStatus.ChargingType: NamedCode {
    package static var names: [String] {
        ["unknown or not charging", "constant current", "constant voltage", "trickle", "float"]
    }
}

extension BatteryLevelStatus: DescribedValue {
    package var fields: [ValueField] {
        guard isPresent else { return [ValueField("battery", .flag(false))] }
        var fields: [ValueField] = []
        if let level { fields.append(.number("level", level.percentage, "%")) }
        switch chargeState {
        case .unknown: break
        case .charging: fields.append(ValueField("state", .text("charging")))
        case .dischargingActive: fields.append(ValueField("state", .text("discharging")))
        case .dischargingInactive: fields.append(ValueField("state", .text("not in use")))
        }
        switch chargeLevel {
        case .unknown: break
        case .good: fields.append(ValueField("charge", .text("good")))
        case .low: fields.append(ValueField("charge", .text("low")))
        case .critical: fields.append(ValueField("charge", .text("critical")))
        }
        if wiredPower == .yes { fields.append(ValueField("wired power", .flag(true))) }
        if wirelessPower == .yes { fields.append(ValueField("wireless power", .flag(true))) }
        if chargingType != .unknownOrNotCharging { fields.append(ValueField("charging", chargingType.content)) }
        var faults: [ValueField.Content] = []
        if hasChargingFaultOfBattery { faults.append(.text("battery")) }
        if hasChargingFaultOfPowerSource { faults.append(.text("power source")) }
        if hasOtherChargingFault { faults.append(.text("other")) }
        if !faults.isEmpty { fields.append(ValueField("charging fault", .list(faults))) }
        if hasBatteryFault == true { fields.append(ValueField("battery fault", .flag(true))) }
        if needsService == .yes { fields.append(ValueField("service needed", .flag(true))) }
        if fields.isEmpty { fields.append(ValueField("battery", .flag(true))) }
        return fields
    }
}

extension CharacteristicKey where Value == BatteryLevelStatus {
    /// Battery Level Status, 0x2BED.
    public static var batteryLevelStatus: Self { Self(0x2BED) }
}
