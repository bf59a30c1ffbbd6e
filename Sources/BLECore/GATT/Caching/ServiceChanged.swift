/// A peer's word that its services are not what they were, and where.
///
///     first handle 2 | last handle 2
///
/// A first handle of 0 is taken for 1: peers that mean everything send it.
///
/// Spec: Service Changed, Core Vol 3 Part G, 7.1.
public struct ServiceChanged: Hashable, Sendable {
    /// What kind of characteristic sends it.
    public static let uuid: BluetoothUUID = 0x2A05

    /// The handles whose meaning may have changed.
    public let handles: ClosedRange<AttributeHandle>

    /// A change of these handles.
    public init(handles: ClosedRange<AttributeHandle>) {
        self.handles = handles
    }

    /// Reads the value.
    ///
    /// - Throws: `MalformedPacket` for another length than 4, and for a range that ends before it begins.
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
