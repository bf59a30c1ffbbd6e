internal import BLECore
internal import CBluetooth

/// A block of memory that an ioctl reads and fills, in the machine's byte order.
///
/// Offsets consist of constants of the kernel's headers, and of a number of entries limited to the record's capacity:
/// each field lies within the record, and no peer affects where.
struct KernelRecord {
    private(set) var bytes: [UInt8]

    init(count: Int) {
        bytes = [UInt8](repeating: 0, count: count)
    }

    /// For tests: a record as the kernel would leave it.
    init(_ bytes: [UInt8], paddedTo count: Int) {
        self.bytes = bytes + [UInt8](repeating: 0, count: max(0, count - bytes.count))
    }

    mutating func store(_ value: UInt16, at offset: Int) {
        unsafe bytes.withUnsafeMutableBytes { unsafe $0.storeBytes(of: value, toByteOffset: offset, as: UInt16.self) }
    }

    func load<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
        unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }

    func address(at offset: Int) -> BluetoothAddress {
        var value: UInt64 = 0
        for index in 0..<6 { value |= UInt64(bytes[offset + index]) << UInt64(8 * index) }
        return BluetoothAddress(rawValue: value)
    }

    mutating func ioctl(_ socket: Int32, _ request: UInt) -> Int32 {
        unsafe bytes.withUnsafeMutableBytes { unsafe ble_ioctl_pointer(socket, request, $0.baseAddress) }
    }
}
