/// The first byte of every ATT PDU: its method, with the command and authentication flags.
///
/// The set is open: any byte is valid, and unnamed values still have a `kind`.
///
/// Spec: Core Vol 3 Part F, 3.3.1 and 3.4.8.
package struct ATTOpcode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The raw value.
    package let rawValue: UInt8

    /// Creates an opcode from its raw value.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The type of a PDU.
    package enum Kind: Hashable, Sendable {
        /// Requires a response; at most one may be outstanding in each direction.
        case request
        /// Completes a request.
        case response
        /// Has no response.
        case command
        /// Carries values and is not acknowledged.
        case notification
        /// Carries a value and requires a confirmation; at most one may be outstanding.
        case indication
        /// Acknowledges an indication.
        case confirmation
    }

    /// The type of the PDU. Unnamed opcodes are classified by the command flag, then odd (response) or even (request).
    package var kind: Kind {
        if isCommand { return .command }
        switch self {
        case .handleValueNotification, .multipleHandleValueNotification: return .notification
        case .handleValueIndication: return .indication
        case .handleValueConfirmation: return .confirmation
        default: return rawValue & 1 == 0 ? .request : .response
        }
    }

    /// A Boolean value that indicates whether the command flag (bit 6) is set. A receiver ignores commands that it does
    /// not support and never responds to one.
    package var isCommand: Bool { rawValue & 0x40 != 0 }

    /// A Boolean value that indicates whether the PDU ends with a 12-byte signature (bit 7).
    package var isSigned: Bool { rawValue & 0x80 != 0 }

    /// A Boolean value that indicates whether the receiver must send a response or an Error Response.
    package var isRequest: Bool { kind == .request }

    /// A Boolean value that indicates whether the PDU completes a request.
    package var isResponse: Bool { kind == .response }

    /// The opcode of the response to this request, or `nil` if this is not a request.
    package var response: ATTOpcode? {
        isRequest ? ATTOpcode(rawValue: rawValue | 1) : nil
    }

    /// The specification's name, such as `ATT_READ_REQ`, or `nil` for unassigned values.
    package var specificationName: String? {
        switch self {
        case .errorResponse: "ATT_ERROR_RSP"
        case .exchangeMTURequest: "ATT_EXCHANGE_MTU_REQ"
        case .exchangeMTUResponse: "ATT_EXCHANGE_MTU_RSP"
        case .findInformationRequest: "ATT_FIND_INFORMATION_REQ"
        case .findInformationResponse: "ATT_FIND_INFORMATION_RSP"
        case .findByTypeValueRequest: "ATT_FIND_BY_TYPE_VALUE_REQ"
        case .findByTypeValueResponse: "ATT_FIND_BY_TYPE_VALUE_RSP"
        case .readByTypeRequest: "ATT_READ_BY_TYPE_REQ"
        case .readByTypeResponse: "ATT_READ_BY_TYPE_RSP"
        case .readRequest: "ATT_READ_REQ"
        case .readResponse: "ATT_READ_RSP"
        case .readBlobRequest: "ATT_READ_BLOB_REQ"
        case .readBlobResponse: "ATT_READ_BLOB_RSP"
        case .readMultipleRequest: "ATT_READ_MULTIPLE_REQ"
        case .readMultipleResponse: "ATT_READ_MULTIPLE_RSP"
        case .readByGroupTypeRequest: "ATT_READ_BY_GROUP_TYPE_REQ"
        case .readByGroupTypeResponse: "ATT_READ_BY_GROUP_TYPE_RSP"
        case .readMultipleVariableRequest: "ATT_READ_MULTIPLE_VARIABLE_REQ"
        case .readMultipleVariableResponse: "ATT_READ_MULTIPLE_VARIABLE_RSP"
        case .writeRequest: "ATT_WRITE_REQ"
        case .writeResponse: "ATT_WRITE_RSP"
        case .writeCommand: "ATT_WRITE_CMD"
        case .signedWriteCommand: "ATT_SIGNED_WRITE_CMD"
        case .prepareWriteRequest: "ATT_PREPARE_WRITE_REQ"
        case .prepareWriteResponse: "ATT_PREPARE_WRITE_RSP"
        case .executeWriteRequest: "ATT_EXECUTE_WRITE_REQ"
        case .executeWriteResponse: "ATT_EXECUTE_WRITE_RSP"
        case .handleValueNotification: "ATT_HANDLE_VALUE_NTF"
        case .handleValueIndication: "ATT_HANDLE_VALUE_IND"
        case .handleValueConfirmation: "ATT_HANDLE_VALUE_CFM"
        case .multipleHandleValueNotification: "ATT_MULTIPLE_HANDLE_VALUE_NTF"
        default: nil
        }
    }

    /// The specification's name, or the raw value, such as "0x2a".
    package var description: String {
        specificationName ?? "0x\(Hex.encode([rawValue]))"
    }
}

extension ATTOpcode {
    /// ATT_ERROR_RSP, 0x01.
    package static let errorResponse = ATTOpcode(rawValue: 0x01)
    /// ATT_EXCHANGE_MTU_REQ, 0x02.
    package static let exchangeMTURequest = ATTOpcode(rawValue: 0x02)
    /// ATT_EXCHANGE_MTU_RSP, 0x03.
    package static let exchangeMTUResponse = ATTOpcode(rawValue: 0x03)
    /// ATT_FIND_INFORMATION_REQ, 0x04.
    package static let findInformationRequest = ATTOpcode(rawValue: 0x04)
    /// ATT_FIND_INFORMATION_RSP, 0x05.
    package static let findInformationResponse = ATTOpcode(rawValue: 0x05)
    /// ATT_FIND_BY_TYPE_VALUE_REQ, 0x06.
    package static let findByTypeValueRequest = ATTOpcode(rawValue: 0x06)
    /// ATT_FIND_BY_TYPE_VALUE_RSP, 0x07.
    package static let findByTypeValueResponse = ATTOpcode(rawValue: 0x07)
    /// ATT_READ_BY_TYPE_REQ, 0x08.
    package static let readByTypeRequest = ATTOpcode(rawValue: 0x08)
    /// ATT_READ_BY_TYPE_RSP, 0x09.
    package static let readByTypeResponse = ATTOpcode(rawValue: 0x09)
    /// ATT_READ_REQ, 0x0A.
    package static let readRequest = ATTOpcode(rawValue: 0x0A)
    /// ATT_READ_RSP, 0x0B.
    package static let readResponse = ATTOpcode(rawValue: 0x0B)
    /// ATT_READ_BLOB_REQ, 0x0C.
    package static let readBlobRequest = ATTOpcode(rawValue: 0x0C)
    /// ATT_READ_BLOB_RSP, 0x0D.
    package static let readBlobResponse = ATTOpcode(rawValue: 0x0D)
    /// ATT_READ_MULTIPLE_REQ, 0x0E.
    package static let readMultipleRequest = ATTOpcode(rawValue: 0x0E)
    /// ATT_READ_MULTIPLE_RSP, 0x0F.
    package static let readMultipleResponse = ATTOpcode(rawValue: 0x0F)
    /// ATT_READ_BY_GROUP_TYPE_REQ, 0x10.
    package static let readByGroupTypeRequest = ATTOpcode(rawValue: 0x10)
    /// ATT_READ_BY_GROUP_TYPE_RSP, 0x11.
    package static let readByGroupTypeResponse = ATTOpcode(rawValue: 0x11)
    /// ATT_WRITE_REQ, 0x12.
    package static let writeRequest = ATTOpcode(rawValue: 0x12)
    /// ATT_WRITE_RSP, 0x13.
    package static let writeResponse = ATTOpcode(rawValue: 0x13)
    /// ATT_PREPARE_WRITE_REQ, 0x16.
    package static let prepareWriteRequest = ATTOpcode(rawValue: 0x16)
    /// ATT_PREPARE_WRITE_RSP, 0x17.
    package static let prepareWriteResponse = ATTOpcode(rawValue: 0x17)
    /// ATT_EXECUTE_WRITE_REQ, 0x18.
    package static let executeWriteRequest = ATTOpcode(rawValue: 0x18)
    /// ATT_EXECUTE_WRITE_RSP, 0x19.
    package static let executeWriteResponse = ATTOpcode(rawValue: 0x19)
    /// ATT_HANDLE_VALUE_NTF, 0x1B.
    package static let handleValueNotification = ATTOpcode(rawValue: 0x1B)
    /// ATT_HANDLE_VALUE_IND, 0x1D.
    package static let handleValueIndication = ATTOpcode(rawValue: 0x1D)
    /// ATT_HANDLE_VALUE_CFM, 0x1E.
    package static let handleValueConfirmation = ATTOpcode(rawValue: 0x1E)
    /// ATT_READ_MULTIPLE_VARIABLE_REQ, 0x20.
    package static let readMultipleVariableRequest = ATTOpcode(rawValue: 0x20)
    /// ATT_READ_MULTIPLE_VARIABLE_RSP, 0x21.
    package static let readMultipleVariableResponse = ATTOpcode(rawValue: 0x21)
    /// ATT_MULTIPLE_HANDLE_VALUE_NTF, 0x23.
    package static let multipleHandleValueNotification = ATTOpcode(rawValue: 0x23)
    /// ATT_WRITE_CMD, 0x52.
    package static let writeCommand = ATTOpcode(rawValue: 0x52)
    /// ATT_SIGNED_WRITE_CMD, 0xD2.
    package static let signedWriteCommand = ATTOpcode(rawValue: 0xD2)
}
