extension ByteWriter {
    /// Appends a value.
    public mutating func write(_ value: some GATTWritable) {
        value.write(to: &self)
    }

    /// Appends a value if there is one. The reader needs a flag to know of its presence.
    public mutating func write<Value: GATTWritable>(ifPresent value: Value?) {
        if let value { write(value) }
    }

    /// Appends a number in the given byte order.
    public mutating func write<Number: FixedWidthInteger & GATTWritable>(_ number: Number, order: ByteOrder) {
        write(order == .bigEndian ? number.byteSwapped : number)
    }
}
