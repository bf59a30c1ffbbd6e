import BLECore
import Testing

/// One packet and what it means.
struct ATTGoldenPDU: Sendable, CustomTestStringConvertible {
    let hex: String
    let packet: ATTPacket

    init(_ hex: String, _ packet: ATTPacket) {
        self.hex = hex
        self.packet = packet
    }

    var bytes: [UInt8] { (try? Hex.decode(hex)) ?? [] }
    var testDescription: String { hex }

    /// At least one of each kind.
    static let all = exchange + discovery + reads + writes + values

    // Bytes: unit tests of BlueZ (test-gatt.c, test-mcp.c) unless said otherwise.
    static let exchange = [
        ATTGoldenPDU(
            "010618f00a",
            .errorResponse(
                ATTErrorResponse(requestOpcode: .findByTypeValueRequest, handle: 0xF018, code: .attributeNotFound))),
        ATTGoldenPDU("021700", .exchangeMTURequest(ATTExchangeMTURequest(mtu: 23))),
        ATTGoldenPDU("030002", .exchangeMTUResponse(ATTExchangeMTUResponse(mtu: 512))),
        ATTGoldenPDU("ff00", .unknown(ATTOpcode(rawValue: 0xFF), [0])),
    ]

    static let discovery = [
        ATTGoldenPDU("0404000500", .findInformationRequest(ATTFindInformationRequest(startHandle: 4, endHandle: 5))),
        ATTGoldenPDU(
            "050104000129",
            .findInformationResponse(ATTFindInformationResponse(entries: [.init(handle: 4, type: 0x2901)]))),
        // Mynewt NimBLE's discovery tests, laid out by the specification.
        ATTGoldenPDU(
            "0502340000112233445566778899aabbccddeeff",
            .findInformationResponse(
                ATTFindInformationResponse(entries: [
                    .init(handle: 0x34, type: BluetoothUUID(high: 0xFFEE_DDCC_BBAA_9988, low: 0x7766_5544_3322_1100))
                ]))),
        ATTGoldenPDU(
            "060100ffff00280018",
            .findByTypeValueRequest(
                ATTFindByTypeValueRequest(startHandle: 1, endHandle: 0xFFFF, type: 0x2800, value: [0x00, 0x18]))),
        ATTGoldenPDU(
            "0790009600c000dd00",
            .findByTypeValueResponse(
                ATTFindByTypeValueResponse(entries: [
                    .init(startHandle: 0x90, endHandle: 0x96), .init(startHandle: 0xC0, endHandle: 0xDD),
                ]))),
        ATTGoldenPDU(
            "080100ffff0228", .readByTypeRequest(ATTReadByTypeRequest(startHandle: 1, endHandle: 0xFFFF, type: 0x2802))),
        ATTGoldenPDU(
            "090811f0010010000a18",
            .readByTypeResponse(
                ATTReadByTypeResponse(entries: [.init(handle: 0xF011, value: [0x01, 0x00, 0x10, 0x00, 0x0A, 0x18])]))),
        ATTGoldenPDU(
            "100100ffff0028",
            .readByGroupTypeRequest(ATTReadByGroupTypeRequest(startHandle: 1, endHandle: 0xFFFF, type: 0x2800))),
        ATTGoldenPDU(
            "110610f018f00018ffffffff0a18",
            .readByGroupTypeResponse(
                ATTReadByGroupTypeResponse(entries: [
                    .init(startHandle: 0xF010, endHandle: 0xF018, value: [0x00, 0x18]),
                    .init(startHandle: 0xFFFF, endHandle: 0xFFFF, value: [0x0A, 0x18]),
                ]))),
    ]

    // The lists of variable length: laid out by the specification, 3.4.4.11 and 3.4.4.12.
    static let reads = [
        ATTGoldenPDU("0a0300", .readRequest(ATTReadRequest(handle: 3))),
        ATTGoldenPDU("0b01", .readResponse(ATTReadResponse(value: [1]))),
        ATTGoldenPDU("0b", .readResponse(ATTReadResponse(value: []))),
        ATTGoldenPDU("0cd300f000", .readBlobRequest(ATTReadBlobRequest(handle: 0xD3, offset: 0xF0))),
        ATTGoldenPDU("0d787878", .readBlobResponse(ATTReadBlobResponse(part: [0x78, 0x78, 0x78]))),
        ATTGoldenPDU("0d", .readBlobResponse(ATTReadBlobResponse(part: []))),
        ATTGoldenPDU("0e15f0f00f", .readMultipleRequest(ATTReadMultipleRequest(handles: [0xF015, 0x0FF0]))),
        ATTGoldenPDU("0f010203", .readMultipleResponse(ATTReadMultipleResponse(values: [1, 2, 3]))),
        ATTGoldenPDU("2003000700", .readMultipleVariableRequest(ATTReadMultipleVariableRequest(handles: [3, 7]))),
        ATTGoldenPDU(
            "210200010200000100ff",
            .readMultipleVariableResponse(ATTReadMultipleVariableResponse(values: [[1, 2], [], [0xFF]]))),
    ]

    static let writes = [
        ATTGoldenPDU("1204000100", .writeRequest(ATTWriteRequest(handle: 4, value: [1, 0]))),
        ATTGoldenPDU("13", .writeResponse(ATTWriteResponse())),
        ATTGoldenPDU("52200002", .writeCommand(ATTWriteCommand(handle: 0x20, value: [2]))),
        ATTGoldenPDU(
            "d2070001020300000000311f0acd1c3a5b0a",
            .signedWriteCommand(
                ATTSignedWriteCommand(
                    handle: 7, value: [1, 2, 3],
                    signature: [0, 0, 0, 0, 0x31, 0x1F, 0x0A, 0xCD, 0x1C, 0x3A, 0x5B, 0x0A]))),
        ATTGoldenPDU(
            "1603001200ff", .prepareWriteRequest(ATTPrepareWriteRequest(handle: 3, offset: 0x12, part: [0xFF]))),
        ATTGoldenPDU(
            "1703001200ff", .prepareWriteResponse(ATTPrepareWriteResponse(handle: 3, offset: 0x12, part: [0xFF]))),
        ATTGoldenPDU("1800", .executeWriteRequest(ATTExecuteWriteRequest(.cancel))),
        ATTGoldenPDU("1801", .executeWriteRequest(ATTExecuteWriteRequest(.write))),
        ATTGoldenPDU("19", .executeWriteResponse(ATTExecuteWriteResponse())),
    ]

    // The indication, its confirmation and the list: laid out by the specification, 3.4.7.2 to 3.4.7.4.
    static let values = [
        ATTGoldenPDU("1b20000201", .handleValueNotification(ATTHandleValueNotification(handle: 0x20, value: [2, 1]))),
        ATTGoldenPDU("1b0600", .handleValueNotification(ATTHandleValueNotification(handle: 6, value: []))),
        ATTGoldenPDU("1d0300ff", .handleValueIndication(ATTHandleValueIndication(handle: 3, value: [0xFF]))),
        ATTGoldenPDU("1e", .handleValueConfirmation(ATTHandleValueConfirmation())),
        ATTGoldenPDU(
            "23030001000104000200ffee",
            .multipleHandleValueNotification(
                ATTMultipleHandleValueNotification(entries: [
                    .init(handle: 3, value: [1]), .init(handle: 4, value: [0xFF, 0xEE]),
                ]))),
    ]
}
