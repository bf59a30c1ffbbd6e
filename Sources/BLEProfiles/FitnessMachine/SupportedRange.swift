public import BLECore

/// The range and resolution of a fitness machine's setting.
///
///     minimum | maximum | increment, each as wide as the quantity
///
/// Spec: Fitness Machine Service 1.0, 4.11 to 4.15.
public struct SupportedRange<Quantity: SupportedQuantity>: GATTReadable, Hashable, Sendable {
    /// The smallest value.
    public let minimum: Double
    /// The largest value.
    public let maximum: Double
    /// The smallest increment.
    public let increment: Double
    /// The specification's name.
    public static var formatName: String { "Supported \(Quantity.name) Range" }

    /// Reads the range.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        minimum = try reader.read(Quantity.Bound.self, per: Quantity.countsPerUnit)
        maximum = try reader.read(Quantity.Bound.self, per: Quantity.countsPerUnit)
        increment = try reader.read(Quantity.Increment.self, per: Quantity.countsPerUnit)
    }
}

extension SupportedRange: DescribedValue {
    package var fields: [ValueField] {
        let places = Quantity.countsPerUnit > 10 ? 2 : (Quantity.countsPerUnit > 1 ? 1 : 0)
        var list = FieldList()
        list.add("minimum", minimum, places: places, Quantity.unit)
        list.add("maximum", maximum, places: places, Quantity.unit)
        list.add("increment", increment, places: places, Quantity.unit)
        return list.fields
    }
}

/// A quantity that a fitness machine can be set to.
public protocol SupportedQuantity {
    /// The encoding of the minimum and the maximum.
    associatedtype Bound: FixedWidthInteger & GATTReadable
    /// The encoding of the increment.
    associatedtype Increment: FixedWidthInteger & GATTReadable
    /// The number of counts per unit.
    static var countsPerUnit: Double { get }
    /// The unit.
    static var unit: String { get }
    /// The specification's name.
    static var name: String { get }
}

/// A speed in kilometres per hour.
public enum SupportedSpeed: SupportedQuantity {
    /// 0.01 km/h in 2 bytes.
    public typealias Bound = UInt16
    /// 0.01 km/h in 2 bytes.
    public typealias Increment = UInt16
    /// 100.
    public static var countsPerUnit: Double { 100 }
    /// "km/h".
    public static var unit: String { "km/h" }
    /// "Speed".
    public static var name: String { "Speed" }
}

/// A slope in percent.
public enum SupportedInclination: SupportedQuantity {
    /// 0.1 % in 2 bytes, with sign.
    public typealias Bound = Int16
    /// 0.1 % in 2 bytes.
    public typealias Increment = UInt16
    /// 10.
    public static var countsPerUnit: Double { 10 }
    /// "%".
    public static var unit: String { "%" }
    /// "Inclination".
    public static var name: String { "Inclination" }
}

/// A heart rate in beats per minute.
public enum SupportedHeartRate: SupportedQuantity {
    /// 1 bpm in 1 byte.
    public typealias Bound = UInt8
    /// 1 bpm in 1 byte.
    public typealias Increment = UInt8
    /// 1.
    public static var countsPerUnit: Double { 1 }
    /// "bpm".
    public static var unit: String { "bpm" }
    /// "Heart Rate".
    public static var name: String { "Heart Rate" }
}

/// A power in watts.
public enum SupportedPower: SupportedQuantity {
    /// 1 W in 2 bytes, with sign.
    public typealias Bound = Int16
    /// 1 W in 2 bytes.
    public typealias Increment = UInt16
    /// 1.
    public static var countsPerUnit: Double { 1 }
    /// "W".
    public static var unit: String { "W" }
    /// "Power".
    public static var name: String { "Power" }
}

extension CharacteristicKey where Value == SupportedRange<SupportedSpeed> {
    /// Supported Speed Range, 0x2AD4.
    public static var supportedSpeedRange: Self { Self(0x2AD4) }
}

extension CharacteristicKey where Value == SupportedRange<SupportedInclination> {
    /// Supported Inclination Range, 0x2AD5.
    public static var supportedInclinationRange: Self { Self(0x2AD5) }
}

extension CharacteristicKey where Value == SupportedRange<SupportedHeartRate> {
    /// Supported Heart Rate Range, 0x2AD7.
    public static var supportedHeartRateRange: Self { Self(0x2AD7) }
}

extension CharacteristicKey where Value == SupportedRange<SupportedPower> {
    /// Supported Power Range, 0x2AD8.
    public static var supportedPowerRange: Self { Self(0x2AD8) }
}
