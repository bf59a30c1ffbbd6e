public import BLECore

/// A device's external appearance: a category in the upper ten bits, a subcategory in the lower six.
///
///     number 2
///
/// Spec: Appearance (0x2A01), Core Vol 3 Part C, 12.2; Assigned Numbers, 2.6.
public struct Appearance: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Appearance" }

    /// Creates an appearance from its raw value.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Reads 2 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        rawValue = try reader.read()
    }

    /// Appends 2 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u16(rawValue)
    }

    /// The name, such as "Heart Rate Belt". An unknown subcategory has the name of its category.
    public var name: String? { AssignedNumbers.appearanceName(rawValue) }
}

extension Appearance: DescribedValue {
    package var fields: [ValueField] {
        guard let name else { return [.number("", rawValue)] }
        return [ValueField(.named(Int64(rawValue), name))]
    }
}

extension CharacteristicKey where Value == Appearance {
    /// Appearance, 0x2A01.
    public static var appearance: Self { Self(0x2A01) }
}

extension CharacteristicKey where Value == String {
    /// Device Name, 0x2A00.
    public static var deviceName: Self { Self(0x2A00) }
}
