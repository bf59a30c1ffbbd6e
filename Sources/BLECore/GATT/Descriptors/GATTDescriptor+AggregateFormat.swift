extension GATTDescriptor {
    /// The parts of which a value consists (descriptor 0x2905). They follow each other without gaps.
    ///
    ///     handles of presentation formats, 2 each
    ///
    /// Spec: Characteristic Aggregate Format, Core Vol 3 Part G, 3.3.3.6.
    public struct AggregateFormat: GATTReadable, GATTWritable, Hashable, Sendable {
        /// The handles of the parts' presentation formats (0x2904), in the order of the parts.
        public var handles: [AttributeHandle]
        /// The specification's name.
        public static var formatName: String { "Characteristic Aggregate Format" }

        /// Creates an aggregate of the parts whose presentation formats have these handles.
        public init(handles: [AttributeHandle]) {
            self.handles = handles
        }

        /// Decodes handles up to the end of the value.
        ///
        /// - Throws: `MalformedPacket` if the last one is truncated.
        public init(reading reader: inout ByteReader) throws(MalformedPacket) {
            handles = try reader.readToEnd(AttributeHandle.self)
        }

        /// Appends the handles.
        public func write(to writer: inout ByteWriter) {
            for handle in handles { writer.write(handle) }
        }
    }
}

/// The former name of `GATTDescriptor.AggregateFormat`.
@available(*, deprecated, renamed: "GATTDescriptor.AggregateFormat")
public typealias CharacteristicAggregateFormat = GATTDescriptor.AggregateFormat

extension GATTDescriptor.AggregateFormat: DescribedValue {
    package var fields: [ValueField] {
        var items: [ValueField.Content] = []
        for handle in handles {
            let bytes = [UInt8(truncatingIfNeeded: handle >> 8), UInt8(truncatingIfNeeded: handle)]
            items.append(.named(Int64(handle), "0x" + Hex.encode(bytes)))
        }
        return [ValueField("format at", .list(items))]
    }
}
