public import BLECore

/// The range and resolution of a fitness machine's resistance setting.
///
///     minimum 2 | maximum 2 | increment 2, in units of 0.1
///     minimum 1 | maximum 1 | increment 1, in units of 10, in later versions
///
/// Spec: Supported Resistance Level Range (0x2AD6), Fitness Machine Service 1.0, 4.13; GATT Specification Supplement.
public struct SupportedResistanceLevelRange: GATTReadable, Hashable, Sendable {
    /// The smallest level.
    public let minimum: Double
    /// The largest level.
    public let maximum: Double
    /// The smallest increment.
    public let increment: Double
    /// The specification's name.
    public static var formatName: String { "Supported Resistance Level Range" }

    /// Reads the range. A value of 3 bytes has the encoding of later versions.
    ///
    /// - Throws: `MalformedPacket` if there are fewer than 3 bytes, or 4 or 5.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let isLaterVersion = reader.remaining == 3
        if isLaterVersion {
            minimum = Double(try reader.read(UInt8.self)) * 10
            maximum = Double(try reader.read(UInt8.self)) * 10
            increment = Double(try reader.read(UInt8.self)) * 10
        } else {
            minimum = try reader.read(Int16.self, per: 10)
            maximum = try reader.read(Int16.self, per: 10)
            increment = try reader.read(UInt16.self, per: 10)
        }
    }
}

extension SupportedResistanceLevelRange: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("minimum", minimum, places: 1)
        list.add("maximum", maximum, places: 1)
        list.add("increment", increment, places: 1)
        return list.fields
    }
}

extension CharacteristicKey where Value == SupportedResistanceLevelRange {
    /// Supported Resistance Level Range, 0x2AD6.
    public static var supportedResistanceLevelRange: Self { Self(0x2AD6) }
}
