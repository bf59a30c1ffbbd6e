extension GATTDescriptor {
    /// The format in which a value is decoded and shown (descriptor 0x2904). It describes values that no program knows.
    ///
    ///     format 1 | exponent 1 | unit 2 | namespace 1 | description 2
    ///
    /// Spec: Characteristic Presentation Format, Core Vol 3 Part G, 3.3.3.5; the numbers are in Assigned Numbers, 2.4
    /// and 3.5.
    public struct PresentationFormat: GATTReadable, GATTWritable, Hashable, Sendable {
        /// The kind of number or text, such as 0x06 for `uint16`.
        public var format: UInt8
        /// The power of ten by which an integer is multiplied; other formats ignore it.
        public var exponent: Int8
        /// The unit, such as 0x272F for degrees Celsius.
        public var unit: BluetoothUUID
        /// The organization that assigns the numbers of `description`; 1 is the Bluetooth SIG.
        public var namespace: UInt8
        /// The subject of the value, by a number of the namespace, such as 0x010D for "inside"; 0 is unknown.
        public var description: UInt16
        /// The specification's name.
        public static var formatName: String { "Characteristic Presentation Format" }

        /// Creates a presentation format.
        public init(
            format: UInt8, exponent: Int8 = 0, unit: BluetoothUUID = 0x2700, namespace: UInt8 = 1,
            description: UInt16 = 0
        ) {
            self.format = format
            self.exponent = exponent
            self.unit = unit
            self.namespace = namespace
            self.description = description
        }

        /// Decodes 7 bytes.
        ///
        /// - Throws: `MalformedPacket` if there are fewer.
        public init(reading reader: inout ByteReader) throws(MalformedPacket) {
            format = try reader.read()
            exponent = try reader.read()
            unit = BluetoothUUID(try reader.read(UInt16.self))
            namespace = try reader.read()
            description = try reader.read()
        }

        /// Appends 7 bytes; a unit without a 16-bit form becomes 0x2700, "unitless".
        public func write(to writer: inout ByteWriter) {
            writer.u8(format)
            writer.i8(exponent)
            writer.u16(unit.short ?? 0x2700)
            writer.u8(namespace)
            writer.u16(description)
        }

        /// The name of the format, such as "uint16"; `nil` for an unassigned number.
        public var typeName: String? { AssignedNumbers.formatName(format) }

        /// The name of the unit, such as "Celsius temperature (degree Celsius)"; `nil` for an unassigned number.
        public var unitName: String? { AssignedNumbers.unitName(unit) }
    }
}

/// The former name of `GATTDescriptor.PresentationFormat`.
@available(*, deprecated, renamed: "GATTDescriptor.PresentationFormat")
public typealias CharacteristicPresentationFormat = GATTDescriptor.PresentationFormat

extension GATTDescriptor.PresentationFormat: DescribedValue {
    package var fields: [ValueField] {
        var fields = [ValueField("format", .text(typeName ?? "0x" + Hex.encode([format])))]
        if exponent != 0 { fields.append(.number("exponent", exponent)) }
        if unit != 0x2700 { fields.append(ValueField("unit", .text(unitName ?? unit.description))) }
        if namespace > 1 { fields.append(.number("namespace", namespace)) }
        if description != 0 { fields.append(.number("description", description)) }
        return fields
    }
}
