public import BLECore
public import BareBLE
public import Foundation

/// All bytes of a value, undecoded: `CharacteristicKey<Data>(0xFFF1)`.
extension Data: GATTReadable, GATTWritable {
    /// The name of the format in errors.
    public static var formatName: String { "bytes" }

    /// Decodes all remaining bytes.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        self.init(reader.rest())
    }

    /// Appends the bytes.
    public func write(to writer: inout ByteWriter) {
        writer.array([UInt8](self))
    }
}

extension ReceivedValue {
    /// The value, at most 512 bytes.
    public var data: Data { Data(bytes) }
}

extension Peripheral {
    /// Writes a value.
    ///
    /// - Throws: `BLEError` as `write(_:to:_:timeout:)` does for bytes.
    public func write(
        _ value: Data, to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        timeout: Duration? = nil
    ) async throws(BLEError) {
        try await write([UInt8](value), to: characteristic, kind, timeout: timeout)
    }
}
