// The server role of a virtual device: the library's own `GATTServer` and `ServerDatabase`,
// and the application that they ask.
//
// Responsibilities: make the decisions that a server leaves to its application, as the `VirtualDevice` describes them;
// turn the actions of the server into PDUs; keep values and counters over links.
//
// Invariants:
// - Requests, permissions, prepared writes, client configurations and indications are the `GATTServer`'s. Nothing here
//   reads a PDU or makes one, so what a client under test meets is what a client of the library meets. Peers that
//   violate the protocol change the PDUs outside of it (`VirtualPeripheral.behave`).
// - There is one link at a time. `disconnected` replaces the server of the link.
// - It knows neither time nor sockets: decisions and the room to send come at once,
//   and a client may take any time to confirm.

public import BLECore

/// The server role of the Attribute Protocol as a state machine: one PDU in, the PDUs to send out.
///
/// Spec: Core Vol 3 Part F, 3.4.
public struct AttributeServer: Sendable {
    private var device: VirtualApplication
    private var server: GATTServer
    private let limits: GATTServer.Limits
    /// The counters of the links that have ended.
    private var earlier = (requests: 0, errors: 0)
    /// The security of the client's link.
    package private(set) var linkSecurity = VirtualLinkSecurity.none
    /// A Boolean value that indicates whether the server has closed the link: the client has broken the protocol.
    package private(set) var hasClosed = false

    /// Creates a server of `device`.
    public init(_ device: VirtualDevice) {
        self.init(VirtualApplication(device), maximumMTU: device.maximumMTU)
    }

    /// Creates a server of any attributes, which are kept and written as they are.
    package init(_ database: ServerDatabase, maximumMTU: UInt16) {
        self.init(VirtualApplication(database: database), maximumMTU: maximumMTU)
    }

    private init(_ device: VirtualApplication, maximumMTU: UInt16) {
        self.device = device
        var limits = GATTServer.Limits(mtu: maximumMTU)
        limits.waitingIndications = .max
        self.limits = limits
        server = GATTServer(limits: limits)
    }

    // MARK: PDUs

    /// The MTU in effect; 23 until the client requests another.
    public var mtu: UInt16 { server.mtu }

    /// The number of requests handled, over all connections, without commands and confirmations.
    public var requestCount: Int { earlier.requests + server.statistics.requests }

    /// The number of Error Responses sent.
    public var errorCount: Int { earlier.errors + server.statistics.errors }

    /// Processes one PDU from the client and returns the PDUs to send, in order.
    public mutating func received(_ pdu: [UInt8]) -> [[UInt8]] {
        perform(server.received(pdu, in: &device.database, at: .zero))
    }

    /// Returns the PDU that notifies or indicates `value`, depending on the client's configuration. What the client
    /// cannot receive of the value is cut off.
    ///
    /// `nil` if the client has not subscribed, or if an earlier indication is unconfirmed; in the latter case, the
    /// value is sent after the confirmation.
    public mutating func send(_ value: [UInt8], of handle: AttributeHandle) -> [UInt8]? {
        let part = Array(value.prefix(server.maximumUpdateLength))
        return perform(server.update(part, of: handle, id: .init(0), in: device.database).actions).first
    }

    /// Performs the actions of the server. Returns the PDUs to send.
    private mutating func perform(_ actions: [GATTServer.Action]) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        var echoes: [VirtualApplication.Echo] = []
        var actions = actions[...]
        while let action = actions.popFirst() {
            switch action {
            case .send(let packet):
                packets.append(packet)
                actions += server.sent(in: device.database, at: .zero)
            case .ask(let token, let question, _):
                let result = device.decide(question, &echoes)
                actions += server.finished(token, result, in: &device.database, at: .zero)
            case .close: hasClosed = true
            case .store, .configured, .wrote, .dropped, .notified, .finish, .readyToUpdate: break
            }
        }
        // A written value comes back, and its replies come, after the response to the write.
        for echo in echoes {
            guard let handle = handle(of: echo.uuid) else { continue }
            let values = echo.isDivided ? echo.value.parts(upTo: server.maximumUpdateLength) : [echo.value]
            for value in values {
                if let packet = send(value, of: handle) { packets.append(packet) }
            }
        }
        return packets
    }

    // MARK: Values

    /// Returns the handle of the first value with this UUID.
    public func handle(of uuid: BluetoothUUID) -> AttributeHandle? {
        device.database.handle(of: uuid)
    }

    /// Returns the current value of a handle.
    public func value(of handle: AttributeHandle) -> [UInt8]? {
        server.value(of: handle, in: device.database) ?? device.database[handle]?.value
    }

    /// Replaces the value of a handle, as the device itself may do at any time.
    public mutating func setValue(_ value: [UInt8], of handle: AttributeHandle) {
        device.database.setValue(value, of: handle)
    }

    /// Returns a Boolean value that indicates whether the client is subscribed to the characteristic with this value
    /// handle.
    public func isSubscribed(to handle: AttributeHandle) -> Bool {
        !server.configuration(of: handle, in: device.database).isEmpty
    }

    /// The number of attributes.
    package var attributeCount: Int { device.database.count }

    /// The handles of the values that have a plan, in their order.
    var plannedHandles: [AttributeHandle] { device.plannedHandles }

    /// The plan of the value at `handle`.
    func plan(of handle: AttributeHandle) -> NotifyPlan? { device.plan(of: handle) }

    // MARK: Changes of services

    /// Serves `device` from now on. Values and client configurations of unchanged services are preserved.
    ///
    /// - Returns: The handle range of the change, in whole services before and after it, or `nil` if nothing changed.
    public mutating func changeServices(to device: VirtualDevice) -> ClosedRange<AttributeHandle>? {
        changeServices(to: device, isAnnounced: false)?.range
    }

    /// The same, and indicates the change to a client that has subscribed to it, if `isAnnounced` is true.
    mutating func changeServices(
        to device: VirtualDevice, isAnnounced: Bool
    ) -> (range: ClosedRange<AttributeHandle>, packets: [[UInt8]])? {
        guard let range = self.device.change(to: VirtualApplication(device)) else { return nil }
        let actions = server.databaseChanged(range, isAnnounced: isAnnounced, in: self.device.database, at: .zero)
        return (range, perform(actions))
    }

    /// A number that changes with the services.
    var checksum: UInt32 { device.database.checksum }

    /// Returns one Database Out Of Sync error to a client with robust caching, as after a change that it missed.
    public mutating func becomeUnaware() {
        server.becomeUnaware()
    }

    // MARK: The link

    /// Sets the security of the link.
    ///
    /// - Parameters:
    ///   - security: The security.
    ///   - isBonded: Whether the device has a key by which the client could encrypt the link, or has encrypted it.
    ///   - record: What the device remembers of the client, which has proven its identity.
    /// - Returns: The PDUs to send.
    package mutating func secure(
        _ security: VirtualLinkSecurity, isBonded: Bool, record: ClientRecord? = nil
    ) -> [[UInt8]] {
        linkSecurity = security
        var packets: [[UInt8]] = []
        if let record { packets = perform(server.identified(record, in: device.database, at: .zero)) }
        let client = ClientSecurity(
            keySize: UInt8(clamping: security.keySize), isAuthenticated: security.isAuthenticated, isBonded: isBonded)
        return packets + perform(server.securityChanged(client, in: device.database, at: .zero))
    }

    /// What the device remembers of a bonded client after the link.
    var record: ClientRecord { server.record(device.database) }

    /// Discards the state of the connection that has ended.
    public mutating func disconnected() {
        earlier = (requestCount, errorCount)
        server = GATTServer(limits: limits)
        hasClosed = false
        linkSecurity = .none
    }

    /// Restores the initial values of the device; the counters are preserved.
    mutating func restart(_ device: VirtualDevice) {
        self.device = VirtualApplication(device)
        disconnected()
    }
}
