internal import BLECore

/// What the ATT packets of each link have shown so far, for those that follow.
struct AttributeContext: Sendable {
    /// A request without a response.
    struct Request: Sendable {
        var opcode: ATTOpcode
        /// The requested type, if the response's layout depends on it.
        var type: BluetoothUUID?
        var timestamp: Duration?
    }

    private static let mostLinks = 64
    private static let mostAttributes = 4096

    private var openRequests: [L2CAPDirection: Request] = [:]
    private var attributeTypes: [PacketPrinter.Link: [AttributeHandle: BluetoothUUID]] = [:]

    // MARK: Requests

    /// A request was sent; it replaces an earlier one.
    mutating func begin(_ request: Request, from origin: L2CAPDirection) {
        if openRequests.count >= Self.mostLinks { openRequests.removeAll() }
        openRequests[origin] = request
    }

    /// Removes and returns the request that a response belongs to; `nil` if there is none.
    mutating func takeRequest(of response: ATTOpcode, from origin: L2CAPDirection) -> Request? {
        let client = L2CAPDirection(
            controller: origin.controller, connection: origin.connection,
            direction: origin.direction == .sent ? .received : .sent)
        guard let request = openRequests[client],
            response == .errorResponse || request.opcode.response == response
        else { return nil }
        openRequests[client] = nil
        return request
    }

    // MARK: Attributes

    /// The type of an attribute has become known.
    mutating func learn(_ handle: AttributeHandle, _ type: BluetoothUUID, _ link: PacketPrinter.Link) {
        if attributeTypes.count >= Self.mostLinks, attributeTypes[link] == nil { attributeTypes.removeAll() }
        guard attributeTypes[link, default: [:]].count < Self.mostAttributes else { return }
        attributeTypes[link, default: [:]][handle] = type
    }

    /// Returns the type of an attribute; `nil` if it is not known.
    func type(of handle: AttributeHandle, _ link: PacketPrinter.Link) -> BluetoothUUID? {
        attributeTypes[link]?[handle]
    }

    // MARK: The end

    /// A link has ended.
    mutating func forget(_ link: PacketPrinter.Link) {
        attributeTypes[link] = nil
        for direction in [CapturedPacket.Direction.sent, .received] {
            openRequests[
                L2CAPDirection(controller: link.controller, connection: link.connection, direction: direction)] = nil
        }
    }
}
