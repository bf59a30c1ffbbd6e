extension ATTPacket {
    /// The purpose of a packet, in the terms of GATT's procedures, and which part of which attribute it concerns.
    package struct Summary: Hashable, Sendable {
        /// The purpose of a packet.
        package enum Purpose: Hashable, Sendable {
            /// Agreeing on the MTU.
            case mtuExchange
            /// Finding services, characteristics and descriptors.
            case discovery
            /// Reading values, by handle or by type.
            case read
            /// Writing values, at once or prepared.
            case write
            /// A value that the server sends by itself, or its confirmation.
            case notification
            /// An Error Response, whatever the request was for.
            case error
            /// An opcode that the specification does not define.
            case unknown
        }

        /// The purpose of the packet.
        package let purpose: Purpose
        /// The attribute, or the first one of a range; `nil` where the packet names none, or several.
        package var handle: AttributeHandle?
        /// The offset in the value, where a value is read or written in parts.
        package var offset: UInt16?
        /// The type of attribute that is searched for or read.
        package var type: BluetoothUUID?
    }

    /// The purpose of the packet.
    package var summary: Summary {
        switch self {
        case .errorResponse(let pdu): Summary(purpose: .error, handle: pdu.handle == 0 ? nil : pdu.handle)
        case .exchangeMTURequest, .exchangeMTUResponse: Summary(purpose: .mtuExchange)
        case .findInformationRequest(let pdu): Summary(purpose: .discovery, handle: pdu.startHandle)
        case .findByTypeValueRequest(let pdu):
            Summary(purpose: .discovery, handle: pdu.startHandle, type: BluetoothUUID(pdu.type))
        case .readByGroupTypeRequest(let pdu):
            Summary(purpose: .discovery, handle: pdu.startHandle, type: pdu.type)
        case .readByTypeRequest(let pdu):
            Summary(
                purpose: Self.declarations.contains(pdu.type) ? .discovery : .read, handle: pdu.startHandle,
                type: pdu.type)
        case .findInformationResponse, .findByTypeValueResponse, .readByGroupTypeResponse: Summary(purpose: .discovery)
        case .readRequest(let pdu): Summary(purpose: .read, handle: pdu.handle)
        case .readBlobRequest(let pdu): Summary(purpose: .read, handle: pdu.handle, offset: pdu.offset)
        case .readByTypeResponse, .readResponse, .readBlobResponse, .readMultipleRequest, .readMultipleResponse,
            .readMultipleVariableRequest, .readMultipleVariableResponse:
            Summary(purpose: .read)
        case .writeRequest(let pdu): Summary(purpose: .write, handle: pdu.handle)
        case .writeCommand(let pdu): Summary(purpose: .write, handle: pdu.handle)
        case .signedWriteCommand(let pdu): Summary(purpose: .write, handle: pdu.handle)
        case .prepareWriteRequest(let pdu): Summary(purpose: .write, handle: pdu.handle, offset: pdu.offset)
        case .prepareWriteResponse(let pdu): Summary(purpose: .write, handle: pdu.handle, offset: pdu.offset)
        case .writeResponse, .executeWriteRequest, .executeWriteResponse: Summary(purpose: .write)
        case .handleValueNotification(let pdu): Summary(purpose: .notification, handle: pdu.handle)
        case .handleValueIndication(let pdu): Summary(purpose: .notification, handle: pdu.handle)
        case .handleValueConfirmation, .multipleHandleValueNotification: Summary(purpose: .notification)
        case .unknown: Summary(purpose: .unknown)
        }
    }

    /// Primary and secondary service, include, characteristic: the types that a discovery reads.
    private static let declarations: [BluetoothUUID] = [0x2800, 0x2801, 0x2802, 0x2803]
}
