// The server role of the Attribute Protocol as a state machine: one PDU in, the PDUs to send out.
//
// Responsibilities: send exactly one response or Error Response to every request; execute commands without a response;
// keep the state of one connection (the MTU, prepared writes, client configurations, the unconfirmed indication) and
// discard it when the link ends; keep values across connections.
//
// Invariants:
// - No response is longer than the MTU in effect when its request arrived.
// - At most one indication is unconfirmed; the next ones are queued.
// - It knows neither time nor sockets: `VirtualPeripheral` moves the bytes, and tests call it directly.
//
// It is written for tests, so it follows the specification strictly and is not lenient beyond it.

public import BLECore

/// The server role of the Attribute Protocol as a state machine: one PDU in, the PDUs to send out.
///
/// Spec: Core Vol 3 Part F, 3.4.
public struct AttributeServer: Sendable {
    /// The maximum number of prepared writes.
    static let prepareQueueLength = 64
    /// The maximum length of an attribute value, in bytes.
    static let longestValue = 512

    package var table: AttributeTable
    private let maximumMTU: UInt16
    /// The MTU in effect; 23 until the client requests another.
    public private(set) var mtu: UInt16 = 23
    /// The number of requests handled, over all connections, without commands and confirmations.
    public private(set) var requestCount = 0
    /// The number of Error Responses sent.
    public private(set) var errorCount = 0

    /// The security of the client's link.
    package var linkSecurity = VirtualLinkSecurity.none
    /// Whether the device has a key by which the client could encrypt the link.
    package var isBonded = false

    var prepared: [ATTPrepareWriteRequest] = []
    private var waitingIndications: [[UInt8]] = []
    private var awaitsConfirmation = false
    /// The client's awareness of the last change of the services.
    var awareness = Awareness.aware

    /// Creates a server of `device`.
    public init(_ device: VirtualDevice) {
        self.init(table: AttributeTable(device), maximumMTU: device.maximumMTU)
    }

    package init(table: AttributeTable, maximumMTU: UInt16) {
        self.table = table
        self.maximumMTU = min(max(maximumMTU, 23), 517)
    }

    /// Processes one PDU from the client and returns the PDUs to send, in order.
    public mutating func received(_ pdu: [UInt8]) -> [[UInt8]] {
        guard let first = pdu.first else { return [] }
        let opcode = ATTOpcode(rawValue: first)
        if opcode == .handleValueConfirmation { return confirmed() }
        var pushed: [[UInt8]] = []
        let result = respond(to: pdu, opcode, &pushed)
        guard opcode.isRequest else { return pushed }
        requestCount += 1
        switch result {
        case .success(let response):
            return [response] + pushed
        case .failure(let refusal):
            errorCount += 1
            let response = ATTErrorResponse(requestOpcode: opcode, handle: refusal.handle, code: refusal.code)
            return [response.bytes] + pushed
        }
    }

    /// Returns the PDU that notifies or indicates `value`, depending on the client's configuration.
    ///
    /// `nil` if the client has not subscribed, or if an earlier indication is unconfirmed; in the latter case, the
    /// value is sent after the confirmation.
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

    /// Returns the handle of the first value with this UUID.
    public func handle(of uuid: BluetoothUUID) -> AttributeHandle? {
        table.valueHandle(of: uuid)
    }

    /// Returns the current value of a handle.
    public func value(of handle: AttributeHandle) -> [UInt8]? {
        table[handle]?.value
    }

    /// Replaces the value of a handle, as the device itself may do at any time.
    public mutating func setValue(_ value: [UInt8], of handle: AttributeHandle) {
        table[handle]?.value = value
    }

    /// Returns a Boolean value that indicates whether the client is subscribed to the characteristic with this value
    /// handle.
    public func isSubscribed(to handle: AttributeHandle) -> Bool {
        configuration(of: handle).map { $0 & 3 != 0 } ?? false
    }

    /// Discards the state of the connection that has ended.
    public mutating func disconnected() {
        mtu = 23
        prepared = []
        waitingIndications = []
        awaitsConfirmation = false
        awareness = .aware
        linkSecurity = .none
        for attribute in table.attributes {
            if case .clientConfiguration = attribute.role { table[attribute.handle]?.value = [0, 0] }
            if attribute.type == 0x2B29 { table[attribute.handle]?.value = [0] }
        }
    }

    /// Restores the initial values of the device; the counters are preserved.
    mutating func restart(_ device: VirtualDevice) {
        table = AttributeTable(device)
        disconnected()
    }

    // MARK: Requests

    /// The reason for rejecting a request, and the handle.
    struct Refusal: Error {
        var code: ATTErrorCode
        var handle: AttributeHandle = 0
    }

    /// Rejects an access that the security of the link does not permit.
    func checkPermitted(_ attribute: ServedAttribute) throws(Refusal) {
        if let code = attribute.protection.refusal(over: linkSecurity, isBonded: isBonded) {
            throw Refusal(code: code, handle: attribute.handle)
        }
    }

    private mutating func respond(
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
        // The only indication that a client may miss is that of a change.
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
