/// Collects the bytes of one packet, little-endian. The buffer grows, so it cannot overrun.
///
/// Custom codecs (``GATTWritable``) use the writes in `ByteWriter+Values.swift`.
public struct ByteWriter: ~Copyable {
    /// The bytes written so far.
    public private(set) var bytes: [UInt8]

    /// Creates an empty writer with capacity for `capacity` bytes.
    public init(reserving capacity: Int = 32) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    package mutating func u8(_ value: UInt8) {
        bytes.append(value)
    }

    package mutating func i8(_ value: Int8) {
        bytes.append(UInt8(bitPattern: value))
    }

    package mutating func u16(_ value: UInt16) {
        littleEndian(UInt64(value), 2)
    }

    package mutating func u24(_ value: UInt32) {
        littleEndian(UInt64(value), 3)
    }

    package mutating func u32(_ value: UInt32) {
        littleEndian(UInt64(value), 4)
    }

    package mutating func u48(_ value: UInt64) {
        littleEndian(value, 6)
    }

    package mutating func u64(_ value: UInt64) {
        littleEndian(value, 8)
    }

    package mutating func array(_ value: [UInt8]) {
        bytes.append(contentsOf: value)
    }

    /// Appends the low `count` bytes of `value`.
    package mutating func littleEndian(_ value: UInt64, _ count: Int) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index))) }
    }
}
