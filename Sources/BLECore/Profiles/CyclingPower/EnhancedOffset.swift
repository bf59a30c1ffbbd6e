/// What an enhanced offset compensation took as zero.
///
///     force or torque 2 | company 2 | length 1 | manufacturer's data, so many bytes
///
/// What stands behind the manufacturer's data is skipped: meters are about that end it with a zero byte.
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5, Start Enhanced Offset Compensation.
public struct EnhancedOffset: GATTReadable, Hashable, Sendable {
    /// What was taken as zero: newtons, or 1/32 newton metres where the meter is torque based.
    public let offset: Int16
    /// The manufacturer's company identifier.
    public let company: UInt16
    /// What the manufacturer says besides.
    public let manufacturerData: [UInt8]
    /// What the specification calls the procedure.
    public static var formatName: String { "Enhanced Offset Compensation" }

    /// Reads the parameter of the answer.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        offset = try reader.read()
        company = try reader.read()
        let length: UInt8 = try reader.read()
        guard let data = reader.array(Int(length)) else { throw reader.tooShort }
        manufacturerData = data
        _ = reader.rest()
    }
}
