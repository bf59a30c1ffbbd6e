// The server's side of the Attribute Protocol as a value: a PDU in, the PDUs to send out.
//
// Duties: answer every request exactly once, with a response or an Error Response; carry out commands in silence; keep
// what belongs to one connection (the MTU, prepared writes, client configurations, the indication that waits for its
// confirmation) and forget it when the link ends; keep values over connections.
//
// Invariants
// - No answer is longer than the MTU in force when its request arrived.
// - One indication at most waits for its confirmation; the following ones queue up behind it.
// - Nothing in here knows the time or a socket: `VirtualPeripheral` moves the bytes, and tests call it directly.
//
// It is written for tests, so it does what the specification says and nothing kind besides.

public import BLECore

/// The server's side of the Attribute Protocol as a value: one PDU in, the PDUs to send out.
///
/// Spec: Core Vol 3 Part F, 3.4.
public struct AttributeServer: Sendable {
    /// How many prepared writes it keeps for one client.
    static let prepareQueueLength = 64
    /// The longest value that an attribute can have.
    static let longestValue = 512

    package var table: AttributeTable
    private let maximumMTU: UInt16
    /// The MTU in force, 23 until the client asks for another.
    public private(set) var mtu: UInt16 = 23
    /// How many requests have been answered, over all connections; commands and confirmations do not count.
    public private(set) var requestCount = 0
    /// How many requests were answered with an Error Response.
    public private(set) var errorCount = 0

    var prepared: [ATTPrepareWriteRequest] = []
    private var waitingIndications: [[UInt8]] = []
    private var awaitsConfirmation = false
    /// What the client knows of the last change of the services.
    var awareness = Awareness.aware

    /// A server of what `device` describes.
    public init(_ device: VirtualDevice) {
        self.init(table: AttributeTable(device), maximumMTU: device.maximumMTU)
    }

    package init(table: AttributeTable, maximumMTU: UInt16) {
        self.table = table
        self.maximumMTU = min(max(maximumMTU, 23), 517)
    }

    /// Takes one PDU from the client; returns what the server sends because of it, in order.
    public mutating func received(_ pdu: [UInt8]) -> [[UInt8]] {
        guard let first = pdu.first else { return [] }
        let opcode = ATTOpcode(rawValue: first)
        if opcode == .handleValueConfirmation { return confirmed() }
        var pushed: [[UInt8]] = []
        let answer = answer(to: pdu, opcode, &pushed)
        guard opcode.isRequest else { return pushed }
        requestCount += 1
        switch answer {
        case .success(let response):
            return [response] + pushed
        case .failure(let refusal):
            errorCount += 1
            let response = ATTErrorResponse(requestOpcode: opcode, handle: refusal.handle, code: refusal.code)
            return [response.bytes] + pushed
        }
    }

    /// The PDU that sends `value` unasked, as the client has asked for it.
    ///
    /// `nil` when the client has not asked, or when an earlier indication still waits for its confirmation; in that case
    /// the value follows as soon as that has come.
    public mutating func send(_ value: [UInt8], of handle: AttributeHandle) -> [UInt8]? {
        guard let configured = configuration(of: handle) else { return nil }
        let part = Array(value.prefix(Int(mtu) - 3))
        if configured & 1 != 0 { return ATTHandleValueNotification(handle: handle, value: part).bytes }
        guard configured & 2 != 0 else { return nil }
        let indication = ATTHandleValueIndication(handle: handle, value: part).bytes
        if awaitsConfirmation {
            waitingIndications.append(indication)
            return nil
        }
        awaitsConfirmation = true
        return indication
    }

    /// The handle of the first value of that kind.
    public func handle(of uuid: BluetoothUUID) -> AttributeHandle? {
        table.valueHandle(of: uuid)
    }

    /// The value under a handle, as the server keeps it.
    public func value(of handle: AttributeHandle) -> [UInt8]? {
        table[handle]?.value
    }

    /// Replaces the value under a handle, as the device itself may do at any time.
    public mutating func setValue(_ value: [UInt8], of handle: AttributeHandle) {
        table[handle]?.value = value
    }

    /// Whether the client has asked for the values of the characteristic with that value handle.
    public func isSubscribed(to handle: AttributeHandle) -> Bool {
        configuration(of: handle).map { $0 & 3 != 0 } ?? false
    }

    /// Forgets what belongs to the connection that has ended.
    public mutating func disconnected() {
        mtu = 23
        prepared = []
        waitingIndications = []
        awaitsConfirmation = false
        awareness = .aware
        for attribute in table.attributes {
            if case .clientConfiguration = attribute.role { table[attribute.handle]?.value = [0, 0] }
            if attribute.type == 0x2B29 { table[attribute.handle]?.value = [0] }
        }
    }

    /// Begins again with the values that the device is described with; what was counted stays.
    mutating func restart(_ device: VirtualDevice) {
        table = AttributeTable(device)
        disconnected()
    }

    // MARK: Requests

    /// Why a request is not carried out, and at which handle.
    struct Refusal: Error {
        var code: ATTErrorCode
        var handle: AttributeHandle = 0
    }

    private mutating func answer(
        to pdu: [UInt8], _ opcode: ATTOpcode, _ pushed: inout [[UInt8]]
    ) -> Result<[UInt8], Refusal> {
        do {
            return .success(try respond(to: try ATTPacket(pdu), &pushed))
        } catch let refusal as Refusal {
            return .failure(refusal)
        } catch {
            return .failure(Refusal(code: .invalidPDU))
        }
    }

    private mutating func respond(to packet: ATTPacket, _ pushed: inout [[UInt8]]) throws -> [UInt8] {
        try checkInSync(packet)
        switch packet {
        case .exchangeMTURequest(let request):
            mtu = max(23, min(request.mtu, maximumMTU))
            return ATTExchangeMTUResponse(mtu: maximumMTU).bytes
        case .findInformationRequest(let request): return try findInformation(request)
        case .findByTypeValueRequest(let request): return try findByTypeValue(request)
        case .readByTypeRequest(let request): return try readByType(request)
        case .readByGroupTypeRequest(let request): return try readByGroupType(request)
        case .readRequest(let request): return try read(request)
        case .readBlobRequest(let request): return try readBlob(request)
        case .readMultipleRequest(let request): return try readMultiple(request)
        case .readMultipleVariableRequest(let request): return try readMultipleVariable(request)
        case .writeRequest(let request):
            try write(request.value, to: request.handle, &pushed)
            return ATTWriteResponse().bytes
        case .writeCommand(let command):
            try write(command.value, to: command.handle, &pushed)
            return []
        case .prepareWriteRequest(let request): return try prepareWrite(request)
        case .executeWriteRequest(let request): return try executeWrite(request, &pushed)
        case .unknown: throw Refusal(code: .requestNotSupported)
        case .errorResponse, .exchangeMTUResponse, .findInformationResponse, .findByTypeValueResponse,
            .readByTypeResponse, .readResponse, .readBlobResponse, .readMultipleResponse, .readByGroupTypeResponse,
            .writeResponse, .prepareWriteResponse, .executeWriteResponse, .handleValueNotification,
            .handleValueIndication, .handleValueConfirmation, .readMultipleVariableResponse,
            .multipleHandleValueNotification, .signedWriteCommand:
            return []
        }
    }

    private mutating func confirmed() -> [[UInt8]] {
        guard awaitsConfirmation else { return [] }
        // The only indication that a client may miss without noticing is that of a change.
        awareness = .aware
        guard !waitingIndications.isEmpty else {
            awaitsConfirmation = false
            return []
        }
        return [waitingIndications.removeFirst()]
    }

    private func configuration(of handle: AttributeHandle) -> UInt8? {
        table.clientConfiguration(of: handle).flatMap { table[$0]?.value.first }
    }
}
