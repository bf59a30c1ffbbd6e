/// The reason that an operation on a peer's attributes ended without a result.
///
/// None of these ends the link.
package enum GATTFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The peer refused a request. The handle is the one the peer named, which need not be the requested one.
    case att(request: ATTOpcode, handle: AttributeHandle, code: ATTErrorCode)
    /// The peer's response violates its format.
    case malformed(MalformedPacket)
    /// A discovery does not advance: the peer repeats itself, or requires more requests than it has attributes. The
    /// handle is the position of the discovery.
    case noProgress(at: AttributeHandle)
    /// The peer's response has a handle outside the requested range.
    case outOfRange(AttributeHandle)
    /// The peer has more attributes than a database may hold.
    case databaseTooLarge(limit: Int)
    /// In a strict discovery: the peer violated the specification.
    case quirk(GATTDatabase.Quirk)
    /// The value is longer than an attribute may be, in the peer or in the call. The part read so far is attached.
    case valueTooLong(partial: [UInt8])
    /// The peer's response to a prepared write differs from what was sent. Nothing was written.
    case reliableWriteMismatch(AttributeHandle)
    /// The peer sent surplus responses while a long value was read, twice in a row; the pieces cannot be distinguished.
    case surplusResponse(AttributeHandle)
    /// The value cannot be subscribed to: it has no Client Characteristic Configuration.
    case noCCCD(valueHandle: AttributeHandle)
    /// The peer has no attribute of this type.
    case attributeNotFound(BluetoothUUID)
    /// The call requests something that cannot be sent: no handles, or more than fit into one packet.
    case impossibleRequest(ATTOpcode)

    /// A sentence for users.
    package var description: String {
        switch self {
        case .att(let request, let handle, let code):
            "\(request) at handle \(Self.text(handle)) was refused: \(code). \(code.sentence)"
        case .malformed(let packet):
            "\(packet)"
        case .noProgress(let handle):
            "The device repeats itself instead of listing its attributes, at handle \(Self.text(handle))."
        case .outOfRange(let handle):
            "The device responded with handle \(Self.text(handle)), which was not requested."
        case .databaseTooLarge(let limit):
            "The device has more than \(limit) attributes."
        case .quirk(let quirk):
            "The device violates the specification: \(quirk)."
        case .valueTooLong(let partial):
            "The value is longer than an attribute may be (\(partial.count == 1 ? "1 byte is" : "\(partial.count) bytes are") known)."
        case .reliableWriteMismatch(let handle):
            "The device did not confirm the bytes to write at handle \(Self.text(handle)); nothing was written."
        case .surplusResponse(let handle):
            "The device sent surplus responses, so the value at handle \(Self.text(handle)) cannot be assembled."
        case .noCCCD(let handle):
            "The value at handle \(Self.text(handle)) cannot be subscribed to: it has no configuration descriptor."
        case .attributeNotFound(let uuid):
            "The device has no attribute \(uuid)."
        case .impossibleRequest(let opcode):
            "\(opcode) cannot be sent with these arguments."
        }
    }

    static func text(_ handle: AttributeHandle) -> String {
        "0x" + Hex.encode([UInt8(truncatingIfNeeded: handle >> 8), UInt8(truncatingIfNeeded: handle)])
    }
}

extension GATTFailure {
    init(_ error: ATTErrorResponse) {
        self = .att(request: error.requestOpcode, handle: error.handle, code: error.code)
    }
}
