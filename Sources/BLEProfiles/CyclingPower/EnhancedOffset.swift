public import BLECore

/// The result of an enhanced offset compensation.
///
///     force or torque 2 | company 2 | length 1 | manufacturer data
///
/// Bytes after the manufacturer data are skipped: some meters append a zero byte.
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5, Start Enhanced Offset Compensation.
public struct EnhancedOffset: GATTReadable, Hashable, Sendable {
    /// The raw offset used as zero, in newtons, or in 1/32 Nm for a torque-based meter.
    public let offset: Int16
    /// The manufacturer's company identifier.
    public let company: UInt16
    /// The manufacturer-specific data.
    public let manufacturerData: [UInt8]
    /// The specification's name for the procedure.
    public static var formatName: String { "Enhanced Offset Compensation" }

    /// Reads the parameter of the response.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        offset = try reader.read()
        company = try reader.read()
        let length: UInt8 = try reader.read()
        guard let data = reader.array(Int(length)) else { throw reader.tooShort }
        manufacturerData = data
        _ = reader.rest()
    }
}
