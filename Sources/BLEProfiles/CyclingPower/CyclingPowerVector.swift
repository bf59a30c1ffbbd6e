public import BLECore

/// The forces or torques of one crank revolution, sampled at even intervals.
///
///     flags 1 | bit 0: cranks 4 | bit 1: first angle 2 | bit 2: forces of 2 | bit 3: torques of 2
///     bits 4 and 5: the direction
///
/// Spec: Cycling Power Vector (0x2A64), Cycling Power Service 1.1, 3.3.
public struct CyclingPowerVector: GATTReadable, Hashable, Sendable {
    /// The direction in which the force is measured.
    public enum Direction: UInt8, Hashable, Sendable {
        /// Unknown.
        case unknown
        /// Tangential to the pedal's path.
        case tangential
        /// Along the crank.
        case radial
        /// Lateral to the bicycle.
        case lateral
    }

    /// The crank revolutions.
    public let crank: CrankRevolutions?
    /// The angle of the first sample, in degrees from the top.
    public let firstAngle: UInt16?
    /// The forces in newtons, oldest first.
    public let forces: [Int16]
    /// The torques in newton metres, with a resolution of 1/32, oldest first.
    public let torques: [Double]
    /// The direction in which the force is measured.
    public let direction: Direction
    /// The specification's name.
    public static var formatName: String { "Cycling Power Vector" }

    /// Reads one vector. The forces or torques extend to the end of the value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early, or if both forces and torques are flagged.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 6, reading: &reader)
        if flags[2] && flags[3] { throw reader.invalid("flags: forces or torques") }
        crank = try reader.read(if: flags[0])
        firstAngle = try reader.read(if: flags[1])
        let magnitudes: [Int16] = flags[2] || flags[3] ? try reader.readToEnd() : []
        forces = flags[2] ? magnitudes : []
        torques = flags[3] ? magnitudes.map { Double($0) / 32 } : []
        direction = Direction(rawValue: (flags[4] ? 1 : 0) | (flags[5] ? 2 : 0)) ?? .unknown
        reader.skipReserved(flags)
    }
}

extension CyclingPowerVector: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add(crank)
        list.add("first angle", firstAngle, "°")
        switch direction {
        case .unknown: break
        case .tangential: list.add("direction", text: "tangential")
        case .radial: list.add("direction", text: "radial")
        case .lateral: list.add("direction", text: "lateral")
        }
        list.add("forces", forces.map { .integer(Int64($0)) }, "N")
        list.add("torques", torques.compactMap { FieldList.decimal($0, places: 5) }, "Nm")
        return list.fields
    }
}

extension CharacteristicKey where Value == CyclingPowerVector {
    /// Cycling Power Vector, 0x2A64.
    public static var cyclingPowerVector: Self { Self(0x2A64) }
}
