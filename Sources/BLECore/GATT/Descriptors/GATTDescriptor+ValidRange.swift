extension GATTDescriptor {
    /// The bounds of a value, both included (descriptor 0x2906).
    ///
    ///     lower bound n | upper bound n        n: as many bytes as the characteristic's value has
    ///
    /// Spec: Valid Range, GATT Specification Supplement; Environmental Sensing Service 1.0, 3.1.2.5.
    public struct ValidRange: GATTReadable, GATTWritable, Hashable, Sendable {
        /// The smallest value, in the characteristic's format.
        public var lower: [UInt8]
        /// The largest value, in the characteristic's format.
        public var upper: [UInt8]
        /// The specification's name.
        public static var formatName: String { "Valid Range" }

        /// Creates a range between two values in the characteristic's format.
        public init(lower: [UInt8], upper: [UInt8]) {
            self.lower = lower
            self.upper = upper
        }

        /// Decodes all remaining bytes: the first half is the lower bound, the second half the upper.
        ///
        /// - Throws: `MalformedPacket` for an empty value and for an odd number of bytes.
        public init(reading reader: inout ByteReader) throws(MalformedPacket) {
            guard !reader.isAtEnd, reader.remaining.isMultiple(of: 2) else { throw reader.tooShort }
            lower = try reader.readBytes(reader.remaining / 2)
            upper = reader.rest()
        }

        /// Appends both bounds.
        public func write(to writer: inout ByteWriter) {
            writer.array(lower)
            writer.array(upper)
        }

        /// Returns the bounds as values of the characteristic's type.
        ///
        /// - Throws: `MalformedPacket` if a bound does not fit the type.
        public func bounds<Value: GATTReadable>(
            as type: Value.Type = Value.self
        ) throws(MalformedPacket) -> (lower: Value, upper: Value) {
            (try Value(value: lower), try Value(value: upper))
        }
    }
}

/// The former name of `GATTDescriptor.ValidRange`.
@available(*, deprecated, renamed: "GATTDescriptor.ValidRange")
public typealias ValidRange = GATTDescriptor.ValidRange

extension GATTDescriptor.ValidRange: DescribedValue {
    package var fields: [ValueField] {
        [
            ValueField("from", .text("0x" + Hex.encode(lower.reversed()))),
            ValueField("to", .text("0x" + Hex.encode(upper.reversed()))),
        ]
    }
}
