// A GATT server in this process, on one end of a SEQPACKET socketpair: what the code under test has on the other end cannot
// be told from an L2CAP link.
//
// Duties: move PDUs between the socket and the `AttributeServer`, run the notify plans, keep a transcript, and misbehave on
// request: answer late, not at all, or hang up.
//
// Invariants
// - Everything runs on one loop, that of the test kit or of a virtual time; the actor is isolated to it, so a readable socket
//   enters it at once.
// - One link at a time. Values survive it, client configurations do not.
// - A link keeps its peripheral alive: it goes away when nobody holds it and no client is connected.

public import BLECore
package import BLELinux

/// A GATT server to test a client against, without a radio.
///
///     let peripheral = VirtualPeripheral(.heartRate)
///     let descriptor = try await peripheral.connect()     // the client's end
public actor VirtualPeripheral {
    /// How many PDUs the transcript keeps; later ones are only counted.
    public static let transcriptLength = 65_536

    package nonisolated let loop: EventLoop
    private let latency: Duration
    var server: AttributeServer
    var device: VirtualDevice
    var link: PeerLink?
    /// A link that the device forgot when it was reset; the client does not know of that yet.
    var forgottenLink: PeerLink?
    /// Told that the device ended its link, before it does.
    var hangingUp: (@Sendable () -> Void)?
    /// Told that the client's end is gone.
    var clientGone: (@Sendable () -> Void)?
    private var answers = true
    var plans: [AttributeHandle: RunningPlan] = [:]
    private var steps: [Dialogue.Step] = []
    private var keepsTranscript = true
    /// Decides what is sent because of a PDU of the client's, instead of the server.
    private var behaviour: Behaviour?
    /// Told of each PDU that the client has sent, before it is answered, and of each that was sent to it.
    var exchanged: (@Sendable (_ isClients: Bool) -> Void)?
    /// How many links the peripheral has had.
    public private(set) var connectionCount = 0
    /// How many PDUs the client has sent, over all connections.
    public private(set) var receivedCount = 0

    /// What is sent because of a PDU of the client's, and how much later each; `answer` is what the server makes of a PDU.
    package typealias Behaviour =
        @Sendable (_ pdu: [UInt8], _ answer: @Sendable ([UInt8]) -> [[UInt8]]) -> [(delay: Duration, pdu: [UInt8])]

    struct RunningPlan {
        var sent = 0
        var timer: TimerID?
    }

    /// A peripheral that serves `device` and answers `latency` after each request, on a thread of the test kit's own.
    public init(_ device: VirtualDevice, latency: Duration = .zero) {
        self.init(device, latency: latency, loop: .peers)
    }

    /// A peripheral that lives in a virtual time, as the central that it is tested with must do.
    public init(_ device: VirtualDevice, latency: Duration = .zero, time: VirtualTime) {
        self.init(device, latency: latency, loop: time.loop)
    }

    package init(_ device: VirtualDevice, latency: Duration, loop: EventLoop) {
        self.latency = latency
        self.loop = loop
        self.device = device
        server = AttributeServer(device)
    }

    /// Isolates the peripheral to its loop: the test kit's own thread, or that of its virtual time.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds its loop. The loop's handlers are inside the actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    // MARK: The link

    /// Opens a link; returns the client's end of it, which the caller owns.
    ///
    /// - Throws: `TestLinkError` when it is connected already, or when the system has no descriptors left.
    public func connect() throws(TestLinkError) -> Int32 {
        guard link == nil else { throw .connectedAlready }
        let (link, other) = try PeerLink.open(on: loop)
        begin(link)
        return other
    }

    func begin(_ link: PeerLink) {
        self.link = link
        connectionCount += 1
        answers = true
        link.start(
            packet: { pdu in self.assumeIsolated { $0.received(pdu) } },
            ended: {
                self.assumeIsolated { peripheral in
                    let gone = peripheral.clientGone.take()
                    peripheral.hangingUp = nil
                    peripheral.disconnect()
                    gone?()
                }
            })
    }

    /// Ends the link; what the client has sent and was not answered stays unanswered.
    public func disconnect() {
        guard let link else { return }
        clientGone = nil
        hangingUp.take()?()
        // The radio has ended it meanwhile.
        guard self.link != nil else { return }
        link.close()
        self.link = nil
        for plan in plans.values { plan.timer.map(loop.cancel) }
        plans = [:]
        server.disconnected()
        record(.linkLost)
    }

    /// Whether a client is connected.
    public var isConnected: Bool { link != nil }

    /// From now on the peripheral reads requests, and says nothing to them.
    public func stopAnswering() {
        answers = false
    }

    /// Ends `stopAnswering`. What went unanswered meanwhile stays so.
    public func resumeAnswering() {
        answers = true
    }

    // MARK: Values

    /// Sends a value of the first characteristic of that kind, and keeps it as the value that reads give.
    ///
    /// - Returns: Whether the client had asked for it; else nothing was sent.
    /// - Throws: `TestLinkError.noSuchCharacteristic`.
    @discardableResult
    public func notify(_ uuid: BluetoothUUID, _ value: [UInt8]) throws(TestLinkError) -> Bool {
        let handle = try handle(of: uuid)
        server.setValue(value, of: handle)
        guard link != nil, server.isSubscribed(to: handle) else { return false }
        if let pdu = server.send(value, of: handle) { send(pdu) }
        return true
    }

    /// The value that the first characteristic of that kind has now.
    ///
    /// - Throws: `TestLinkError.noSuchCharacteristic`.
    public func value(_ uuid: BluetoothUUID) throws(TestLinkError) -> [UInt8] {
        server.value(of: try handle(of: uuid)) ?? []
    }

    /// Serves `device` from now on, as after an update of its software, and announces it to a client that has asked for that.
    ///
    /// - Parameters:
    ///   - device: what it serves.
    ///   - isAnnounced: whether the client is told at all.
    /// - Returns: The handles that changed; `nil` when nothing did.
    @discardableResult
    public func changeServices(to device: VirtualDevice, isAnnounced: Bool = true) -> ClosedRange<AttributeHandle>? {
        self.device = device
        guard let range = server.changeServices(to: device) else { return nil }
        if isAnnounced, let handle = server.handle(of: 0x2A05) {
            let value = range.lowerBound.littleEndianBytes + range.upperBound.littleEndianBytes
            if link != nil, let pdu = server.send(value, of: handle) { send(pdu) }
        }
        updatePlans()
        return range
    }

    /// Refuses the next request of a client that asked for robust caching with Database Out Of Sync.
    public func becomeUnaware() {
        server.becomeUnaware()
    }

    /// Puts something between the client and the server, for peers that break the rules; `nil` takes it away.
    package func behave(_ behaviour: Behaviour?) {
        self.behaviour = behaviour
    }

    /// Sends any PDU as it is, for peers that break the rules.
    public func send(raw pdu: [UInt8]) {
        send(pdu)
    }

    // MARK: What happened

    /// How many requests were answered, over all connections.
    public var requestCount: Int { server.requestCount }

    /// How many requests were answered with an Error Response.
    public var errorCount: Int { server.errorCount }

    /// The MTU that was agreed on, 23 without an exchange.
    public var mtu: UInt16 { server.mtu }

    /// Whether the client has asked for the values of the first characteristic of that kind.
    public func isSubscribed(to uuid: BluetoothUUID) -> Bool {
        server.handle(of: uuid).map { server.isSubscribed(to: $0) } ?? false
    }

    /// Everything that was exchanged, from the client's side: `<` is what the client sent.
    public var transcript: Dialogue {
        Dialogue(steps: steps)
    }

    // MARK: Inside

    private func handle(of uuid: BluetoothUUID) throws(TestLinkError) -> AttributeHandle {
        guard let handle = server.handle(of: uuid) else { throw .noSuchCharacteristic(uuid.description) }
        return handle
    }

    private func received(_ pdu: [UInt8]) {
        receivedCount += 1
        record(.sent(pdu))
        exchanged?(true)
        guard answers, link != nil else { return }
        if let behaviour { return behave(behaviour, pdu) }
        guard latency > .zero else { return answer(pdu) }
        later(latency) { $0.answer(pdu) }
    }

    private func behave(_ behaviour: Behaviour, _ pdu: [UInt8]) {
        for reaction in behaviour(pdu, { pdu in self.assumeIsolated { $0.server.received(pdu) } }) {
            let delay = latency + reaction.delay
            guard delay > .zero else {
                send(reaction.pdu)
                continue
            }
            later(delay) { $0.send(reaction.pdu) }
        }
        updatePlans()
    }

    /// Does something after a while, if the link is still the same.
    private func later(_ delay: Duration, _ body: @escaping @Sendable (isolated VirtualPeripheral) -> Void) {
        let connection = connectionCount
        _ = loop.schedule(at: loop.now() + delay) { [weak self] in
            self?.assumeIsolated { peripheral in
                if peripheral.connectionCount == connection, peripheral.isConnected { body(peripheral) }
            }
        }
    }

    private func answer(_ pdu: [UInt8]) {
        for answer in server.received(pdu) { send(answer) }
        updatePlans()
    }

    private func send(_ pdu: [UInt8]) {
        guard let link else { return }
        record(.received(pdu))
        link.send(pdu)
        exchanged?(false)
    }

    func record(_ event: Dialogue.Event) {
        if keepsTranscript, steps.count < Self.transcriptLength { steps.append(Dialogue.Step(event)) }
    }

    /// From now on nothing is written down, so that memory does not grow over days.
    package func keepNoTranscript() {
        keepsTranscript = false
    }

    private func updatePlans() {
        for attribute in server.table.attributes where attribute.plan != nil {
            let isWanted = server.isSubscribed(to: attribute.handle)
            if isWanted, plans[attribute.handle] == nil {
                plans[attribute.handle] = RunningPlan()
                next(of: attribute.handle)
            } else if !isWanted, let plan = plans.removeValue(forKey: attribute.handle) {
                plan.timer.map(loop.cancel)
            }
        }
    }

    private func next(of handle: AttributeHandle) {
        guard link != nil, var running = plans[handle], let plan = server.table[handle]?.plan, !plan.values.isEmpty,
            running.sent < plan.count ?? .max
        else { return }
        let value = plan.values[running.sent % plan.values.count]
        server.setValue(value, of: handle)
        running.sent += 1
        running.timer = loop.schedule(at: loop.now() + plan.interval) { [weak self] in
            self?.assumeIsolated { $0.next(of: handle) }
        }
        plans[handle] = running
        if let pdu = server.send(value, of: handle) { send(pdu) }
    }
}
