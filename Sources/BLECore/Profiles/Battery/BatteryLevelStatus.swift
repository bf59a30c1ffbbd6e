/// What a battery is doing, and what feeds it.
///
///     flags 1 | power state 2 | identifier 2, if flagged | level 1, if flagged | additional status 1, if flagged
///
/// Spec: Battery Level Status (0x2BED), Battery Service 1.1, 3.2; GATT Specification Supplement.
public struct BatteryLevelStatus: GATTReadable, Hashable, Sendable {
    /// An answer that a device may not know.
    public enum Answer: UInt8, Hashable, Sendable {
        /// No.
        case no
        /// Yes.
        case yes
        /// The device does not know.
        case unknown
        /// A code that the specification keeps for later.
        case reserved
    }

    /// Whether the battery is being filled or emptied.
    public enum ChargeState: UInt8, Hashable, Sendable {
        /// The device does not know.
        case unknown
        /// It is being charged.
        case charging
        /// It feeds the device.
        case dischargingActive
        /// It loses charge without feeding the device.
        case dischargingInactive
    }

    /// How full the battery is, in words.
    public enum ChargeLevel: UInt8, Hashable, Sendable {
        /// The device does not know.
        case unknown
        /// Full enough.
        case good
        /// Should be charged soon.
        case low
        /// Must be charged now.
        case critical
    }

    /// How a battery is charged.
    public struct ChargingType: RawRepresentable, Hashable, Sendable {
        /// The number that is sent, 0 to 7.
        public let rawValue: UInt8

        /// The type with this number.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The type in lowercase words; `nil` for a number that is not assigned.
        public var name: String? { assignedName }

        /// The device does not know, or the battery is not charged.
        public static let unknownOrNotCharging = Self(rawValue: 0)
        /// With a constant current.
        public static let constantCurrent = Self(rawValue: 1)
        /// With a constant voltage.
        public static let constantVoltage = Self(rawValue: 2)
        /// With as much as a full battery loses.
        public static let trickle = Self(rawValue: 3)
        /// With the voltage that keeps a battery full.
        public static let float = Self(rawValue: 4)
    }

    /// The 16 bits of the power state as they are sent.
    public let powerState: UInt16
    /// Which battery it is: a number from the SIG's namespace descriptions, if given.
    public let identifier: UInt16?
    /// How full the battery is, if given.
    public let level: BatteryLevel?
    /// The bits of the additional status as they are sent, if given.
    public let additionalStatus: UInt8?
    /// The specification's name.
    public static var formatName: String { "Battery Level Status" }

    /// Reads one status.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 3, reading: &reader)
        powerState = try reader.read()
        identifier = try reader.read(if: flags[0])
        level = try reader.read(if: flags[1])
        additionalStatus = try reader.read(if: flags[2])
        reader.skipReserved(flags)
    }

    /// Whether the battery is there.
    public var isPresent: Bool { powerState & 1 != 0 }
    /// Whether a wire feeds the device.
    public var wiredPower: Answer { Answer(rawValue: bits(1, 0b11)) ?? .reserved }
    /// Whether the device is fed without a wire.
    public var wirelessPower: Answer { Answer(rawValue: bits(3, 0b11)) ?? .reserved }
    /// Whether the battery is being filled or emptied.
    public var chargeState: ChargeState { ChargeState(rawValue: bits(5, 0b11)) ?? .unknown }
    /// How full the battery is, in words.
    public var chargeLevel: ChargeLevel { ChargeLevel(rawValue: bits(7, 0b11)) ?? .unknown }
    /// How it is charged.
    public var chargingType: ChargingType { ChargingType(rawValue: bits(9, 0b111)) }
    /// Charging failed because of the battery.
    public var hasChargingFaultOfBattery: Bool { bits(12, 1) != 0 }
    /// Charging failed because of the power source.
    public var hasChargingFaultOfPowerSource: Bool { bits(13, 1) != 0 }
    /// Charging failed for another reason.
    public var hasOtherChargingFault: Bool { bits(14, 1) != 0 }
    /// Whether the battery needs service, if given.
    public var needsService: Answer? { additionalStatus.map { Answer(rawValue: $0 & 0b11) ?? .reserved } }
    /// Whether the battery itself is faulty, if given; no also where the device does not know.
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
