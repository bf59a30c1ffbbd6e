/// A peer's announcement that its services in a range of handles have changed.
///
///     first handle 2 | last handle 2
///
/// A first handle of 0 is read as 1: peers send it for the whole database.
///
/// Spec: Service Changed, Core Vol 3 Part G, 7.1.
public struct ServiceChanged: Hashable, Sendable {
    /// The UUID of the characteristic.
    public static let uuid: BluetoothUUID = 0x2A05

    /// The affected handles.
    public let handles: ClosedRange<AttributeHandle>

    /// Creates a change of these handles.
    public init(handles: ClosedRange<AttributeHandle>) {
        self.handles = handles
    }

    /// Decodes the value.
    ///
    /// - Throws: `MalformedPacket` for a length other than 4, and for a range that ends before it begins.
    public init(_ value: [UInt8]) throws(MalformedPacket) {
        var reader = ByteReader(value.span)
        guard let first = reader.u16(), let last = reader.u16() else {
            throw MalformedPacket("Service Changed", at: value.count, .tooShort)
        }
        try reader.finish("Service Changed")
        guard last > 0, first <= last else {
            throw MalformedPacket("Service Changed", at: 0, .invalidField("handle range"))
        }
        handles = max(1, first)...last
    }
}
