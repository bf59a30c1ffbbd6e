/// Any Attribute Protocol PDU, for code that handles both directions: printers, servers and recordings.
///
/// PDUs with undefined opcodes are preserved as bytes.
///
/// Spec: Core Vol 3 Part F, 3.4.
package enum ATTPacket: Hashable, Sendable {
    /// See `ATTErrorResponse`.
    case errorResponse(ATTErrorResponse)
    /// See `ATTExchangeMTURequest`.
    case exchangeMTURequest(ATTExchangeMTURequest)
    /// See `ATTExchangeMTUResponse`.
    case exchangeMTUResponse(ATTExchangeMTUResponse)
    /// See `ATTFindInformationRequest`.
    case findInformationRequest(ATTFindInformationRequest)
    /// See `ATTFindInformationResponse`.
    case findInformationResponse(ATTFindInformationResponse)
    /// See `ATTFindByTypeValueRequest`.
    case findByTypeValueRequest(ATTFindByTypeValueRequest)
    /// See `ATTFindByTypeValueResponse`.
    case findByTypeValueResponse(ATTFindByTypeValueResponse)
    /// See `ATTReadByTypeRequest`.
    case readByTypeRequest(ATTReadByTypeRequest)
    /// See `ATTReadByTypeResponse`.
    case readByTypeResponse(ATTReadByTypeResponse)
    /// See `ATTReadRequest`.
    case readRequest(ATTReadRequest)
    /// See `ATTReadResponse`.
    case readResponse(ATTReadResponse)
    /// See `ATTReadBlobRequest`.
    case readBlobRequest(ATTReadBlobRequest)
    /// See `ATTReadBlobResponse`.
    case readBlobResponse(ATTReadBlobResponse)
    /// See `ATTReadMultipleRequest`.
    case readMultipleRequest(ATTReadMultipleRequest)
    /// See `ATTReadMultipleResponse`.
    case readMultipleResponse(ATTReadMultipleResponse)
    /// See `ATTReadByGroupTypeRequest`.
    case readByGroupTypeRequest(ATTReadByGroupTypeRequest)
    /// See `ATTReadByGroupTypeResponse`.
    case readByGroupTypeResponse(ATTReadByGroupTypeResponse)
    /// See `ATTWriteRequest`.
    case writeRequest(ATTWriteRequest)
    /// See `ATTWriteResponse`.
    case writeResponse(ATTWriteResponse)
    /// See `ATTPrepareWriteRequest`.
    case prepareWriteRequest(ATTPrepareWriteRequest)
    /// See `ATTPrepareWriteResponse`.
    case prepareWriteResponse(ATTPrepareWriteResponse)
    /// See `ATTExecuteWriteRequest`.
    case executeWriteRequest(ATTExecuteWriteRequest)
    /// See `ATTExecuteWriteResponse`.
    case executeWriteResponse(ATTExecuteWriteResponse)
    /// See `ATTHandleValueNotification`.
    case handleValueNotification(ATTHandleValueNotification)
    /// See `ATTHandleValueIndication`.
    case handleValueIndication(ATTHandleValueIndication)
    /// See `ATTHandleValueConfirmation`.
    case handleValueConfirmation(ATTHandleValueConfirmation)
    /// See `ATTReadMultipleVariableRequest`.
    case readMultipleVariableRequest(ATTReadMultipleVariableRequest)
    /// See `ATTReadMultipleVariableResponse`.
    case readMultipleVariableResponse(ATTReadMultipleVariableResponse)
    /// See `ATTMultipleHandleValueNotification`.
    case multipleHandleValueNotification(ATTMultipleHandleValueNotification)
    /// See `ATTWriteCommand`.
    case writeCommand(ATTWriteCommand)
    /// See `ATTSignedWriteCommand`.
    case signedWriteCommand(ATTSignedWriteCommand)
    /// An opcode that the specification does not define, with the bytes after it.
    case unknown(ATTOpcode, [UInt8])

    /// Decodes a PDU.
    ///
    /// - Throws: `MalformedPacket` if the PDU is empty or does not match its opcode.
    package init(_ pdu: [UInt8]) throws(MalformedPacket) {
        guard let first = pdu.first else { throw MalformedPacket("ATT PDU", at: 0, .tooShort) }
        let opcode = ATTOpcode(rawValue: first)
        switch opcode {
        case .errorResponse: self = .errorResponse(try ATTErrorResponse(pdu))
        case .exchangeMTURequest: self = .exchangeMTURequest(try ATTExchangeMTURequest(pdu))
        case .exchangeMTUResponse: self = .exchangeMTUResponse(try ATTExchangeMTUResponse(pdu))
        case .findInformationRequest: self = .findInformationRequest(try ATTFindInformationRequest(pdu))
        case .findInformationResponse: self = .findInformationResponse(try ATTFindInformationResponse(pdu))
        case .findByTypeValueRequest: self = .findByTypeValueRequest(try ATTFindByTypeValueRequest(pdu))
        case .findByTypeValueResponse: self = .findByTypeValueResponse(try ATTFindByTypeValueResponse(pdu))
        case .readByTypeRequest: self = .readByTypeRequest(try ATTReadByTypeRequest(pdu))
        case .readByTypeResponse: self = .readByTypeResponse(try ATTReadByTypeResponse(pdu))
        case .readRequest: self = .readRequest(try ATTReadRequest(pdu))
        case .readResponse: self = .readResponse(try ATTReadResponse(pdu))
        case .readBlobRequest: self = .readBlobRequest(try ATTReadBlobRequest(pdu))
        case .readBlobResponse: self = .readBlobResponse(try ATTReadBlobResponse(pdu))
        case .readMultipleRequest: self = .readMultipleRequest(try ATTReadMultipleRequest(pdu))
        case .readMultipleResponse: self = .readMultipleResponse(try ATTReadMultipleResponse(pdu))
        case .readByGroupTypeRequest: self = .readByGroupTypeRequest(try ATTReadByGroupTypeRequest(pdu))
        case .readByGroupTypeResponse: self = .readByGroupTypeResponse(try ATTReadByGroupTypeResponse(pdu))
        case .writeRequest: self = .writeRequest(try ATTWriteRequest(pdu))
        case .writeResponse: self = .writeResponse(try ATTWriteResponse(pdu))
        case .prepareWriteRequest: self = .prepareWriteRequest(try ATTPrepareWriteRequest(pdu))
        case .prepareWriteResponse: self = .prepareWriteResponse(try ATTPrepareWriteResponse(pdu))
        case .executeWriteRequest: self = .executeWriteRequest(try ATTExecuteWriteRequest(pdu))
        case .executeWriteResponse: self = .executeWriteResponse(try ATTExecuteWriteResponse(pdu))
        case .handleValueNotification: self = .handleValueNotification(try ATTHandleValueNotification(pdu))
        case .handleValueIndication: self = .handleValueIndication(try ATTHandleValueIndication(pdu))
        case .handleValueConfirmation: self = .handleValueConfirmation(try ATTHandleValueConfirmation(pdu))
        case .readMultipleVariableRequest: self = .readMultipleVariableRequest(try ATTReadMultipleVariableRequest(pdu))
        case .readMultipleVariableResponse:
            self = .readMultipleVariableResponse(try ATTReadMultipleVariableResponse(pdu))
        case .multipleHandleValueNotification:
            self = .multipleHandleValueNotification(try ATTMultipleHandleValueNotification(pdu))
        case .writeCommand: self = .writeCommand(try ATTWriteCommand(pdu))
        case .signedWriteCommand: self = .signedWriteCommand(try ATTSignedWriteCommand(pdu))
        default: self = .unknown(opcode, Array(pdu.dropFirst()))
        }
    }

    /// The PDU's opcode.
    package var opcode: ATTOpcode {
        switch self {
        case .unknown(let opcode, _): opcode
        case .errorResponse: ATTErrorResponse.opcode
        case .exchangeMTURequest: ATTExchangeMTURequest.opcode
        case .exchangeMTUResponse: ATTExchangeMTUResponse.opcode
        case .findInformationRequest: ATTFindInformationRequest.opcode
        case .findInformationResponse: ATTFindInformationResponse.opcode
        case .findByTypeValueRequest: ATTFindByTypeValueRequest.opcode
        case .findByTypeValueResponse: ATTFindByTypeValueResponse.opcode
        case .readByTypeRequest: ATTReadByTypeRequest.opcode
        case .readByTypeResponse: ATTReadByTypeResponse.opcode
        case .readRequest: ATTReadRequest.opcode
        case .readResponse: ATTReadResponse.opcode
        case .readBlobRequest: ATTReadBlobRequest.opcode
        case .readBlobResponse: ATTReadBlobResponse.opcode
        case .readMultipleRequest: ATTReadMultipleRequest.opcode
        case .readMultipleResponse: ATTReadMultipleResponse.opcode
        case .readByGroupTypeRequest: ATTReadByGroupTypeRequest.opcode
        case .readByGroupTypeResponse: ATTReadByGroupTypeResponse.opcode
        case .writeRequest: ATTWriteRequest.opcode
        case .writeResponse: ATTWriteResponse.opcode
        case .prepareWriteRequest: ATTPrepareWriteRequest.opcode
        case .prepareWriteResponse: ATTPrepareWriteResponse.opcode
        case .executeWriteRequest: ATTExecuteWriteRequest.opcode
        case .executeWriteResponse: ATTExecuteWriteResponse.opcode
        case .handleValueNotification: ATTHandleValueNotification.opcode
        case .handleValueIndication: ATTHandleValueIndication.opcode
        case .handleValueConfirmation: ATTHandleValueConfirmation.opcode
        case .readMultipleVariableRequest: ATTReadMultipleVariableRequest.opcode
        case .readMultipleVariableResponse: ATTReadMultipleVariableResponse.opcode
        case .multipleHandleValueNotification: ATTMultipleHandleValueNotification.opcode
        case .writeCommand: ATTWriteCommand.opcode
        case .signedWriteCommand: ATTSignedWriteCommand.opcode
        }
    }

    /// The encoded PDU.
    package var bytes: [UInt8] {
        switch self {
        case .unknown(let opcode, let parameters): [opcode.rawValue] + parameters
        case .errorResponse(let pdu): pdu.bytes
        case .exchangeMTURequest(let pdu): pdu.bytes
        case .exchangeMTUResponse(let pdu): pdu.bytes
        case .findInformationRequest(let pdu): pdu.bytes
        case .findInformationResponse(let pdu): pdu.bytes
        case .findByTypeValueRequest(let pdu): pdu.bytes
        case .findByTypeValueResponse(let pdu): pdu.bytes
        case .readByTypeRequest(let pdu): pdu.bytes
        case .readByTypeResponse(let pdu): pdu.bytes
        case .readRequest(let pdu): pdu.bytes
        case .readResponse(let pdu): pdu.bytes
        case .readBlobRequest(let pdu): pdu.bytes
        case .readBlobResponse(let pdu): pdu.bytes
        case .readMultipleRequest(let pdu): pdu.bytes
        case .readMultipleResponse(let pdu): pdu.bytes
        case .readByGroupTypeRequest(let pdu): pdu.bytes
        case .readByGroupTypeResponse(let pdu): pdu.bytes
        case .writeRequest(let pdu): pdu.bytes
        case .writeResponse(let pdu): pdu.bytes
        case .prepareWriteRequest(let pdu): pdu.bytes
        case .prepareWriteResponse(let pdu): pdu.bytes
        case .executeWriteRequest(let pdu): pdu.bytes
        case .executeWriteResponse(let pdu): pdu.bytes
        case .handleValueNotification(let pdu): pdu.bytes
        case .handleValueIndication(let pdu): pdu.bytes
        case .handleValueConfirmation(let pdu): pdu.bytes
        case .readMultipleVariableRequest(let pdu): pdu.bytes
        case .readMultipleVariableResponse(let pdu): pdu.bytes
        case .multipleHandleValueNotification(let pdu): pdu.bytes
        case .writeCommand(let pdu): pdu.bytes
        case .signedWriteCommand(let pdu): pdu.bytes
        }
    }
}

extension ATTPacket {
    /// Returns the reply that ends the peer's wait for a packet that was discarded; `nil` for a packet that needs none.
    ///
    /// A request gets an Error Response (Request Not Supported), an indication its confirmation: neither discloses
    /// anything.
    ///
    /// Spec: Core Vol 3 Part F, 3.3.2 (sequential protocol), 3.4.1.1, 3.4.7.3.
    package static func reply(toDiscarded packet: [UInt8]) -> [UInt8]? {
        guard let opcode = packet.first.map(ATTOpcode.init(rawValue:)) else { return nil }
        switch opcode.kind {
        case .request: return ATTErrorResponse(requestOpcode: opcode, handle: 0, code: .requestNotSupported).bytes
        case .indication: return ATTHandleValueConfirmation().bytes
        case .response, .command, .notification, .confirmation: return nil
        }
    }
}
