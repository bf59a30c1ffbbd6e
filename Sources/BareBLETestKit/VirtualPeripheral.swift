// A GATT server in this process, on one end of a SEQPACKET socketpair. To the code under test, the other end is
// indistinguishable from an L2CAP link.
//
// Responsibilities: move PDUs between the socket and the `AttributeServer`, run the notify plans, keep a transcript,
// and misbehave on request: respond late, not at all, or disconnect.
//
// Invariants:
// - Everything runs on one loop, that of the test kit or of a virtual time. The actor is isolated to it, so a
//   readable socket enters it at once.
// - There is one link at a time. Values outlive it; of a client, only what a bond keeps does.
// - A link keeps its peripheral alive: it is released when it has no references and no client is connected.

public import BLECore
package import BLELinux

/// A GATT server for testing a client without a radio.
///
///     let peripheral = VirtualPeripheral(.heartRate)
///     let descriptor = try await peripheral.connect()     // the client's end
public actor VirtualPeripheral {
    /// The maximum number of PDUs in the transcript; later ones are only counted.
    public static let transcriptLength = 65_536

    package nonisolated let loop: EventLoop
    private let latency: Duration
    private var server: AttributeServer
    private var device: VirtualDevice
    private var link: PeerLink?
    /// What becomes of the data of the link; `nil` where all of it arrives.
    private var dataPath: LinkDataPath?
    /// A link that the device forgot on reset, which the client does not know yet.
    private var forgottenLink: PeerLink?
    /// Called before the device ends its link.
    private var hangingUp: (@Sendable () -> Void)?
    /// Called when the client's end is closed.
    private var clientGone: (@Sendable () -> Void)?
    private var isResponding = true
    /// Called when the device sends a Security Request.
    private var requestingSecurity: (@Sendable (VirtualSecurityRequest) -> Void)?
    private var bonds = VirtualBonds()
    private let channels: VirtualChannels
    private var plans: [AttributeHandle: RunningPlan] = [:]
    private var steps: [Dialogue.Step] = []
    private var keepsTranscript = true
    /// Overrides the PDUs that are sent in response to a client's PDU.
    private var behaviour: Behaviour?
    /// Called with each PDU that the client has sent, before the response, and with each PDU that was sent to it.
    private var exchanged: (@Sendable (_ isClients: Bool) -> Void)?
    /// The number of links so far.
    public private(set) var connectionCount = 0
    /// The number of PDUs received from clients, over all connections.
    public private(set) var receivedCount = 0

    /// Returns the PDUs to send in response to a client's PDU, each with its delay; `respond` returns the server's own
    /// responses to a PDU.
    package typealias Behaviour =
        @Sendable (_ pdu: [UInt8], _ respond: @Sendable ([UInt8]) -> [[UInt8]]) -> [(delay: Duration, pdu: [UInt8])]

    private struct RunningPlan {
        var sent = 0
        var timer: TimerID?
    }

    /// Creates a peripheral that serves `device` and responds `latency` after each request, on a thread of the test
    /// kit.
    public init(_ device: VirtualDevice, latency: Duration = .zero) {
        self.init(device, latency: latency, loop: .peers)
    }

    /// Creates a peripheral in the virtual time of the central under test.
    public init(_ device: VirtualDevice, latency: Duration = .zero, time: VirtualTime) {
        self.init(device, latency: latency, loop: time.loop)
    }

    package init(_ device: VirtualDevice, latency: Duration, loop: EventLoop) {
        self.latency = latency
        self.loop = loop
        self.device = device
        channels = VirtualChannels(on: loop)
        server = AttributeServer(device)
    }

    /// The executor of the peripheral's loop: the test kit's thread, or that of its virtual time.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor owns its loop. The loop's handlers already run on the actor: they enter it with `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    // MARK: The link

    /// Opens a link and returns the client's end of it, which the caller owns.
    ///
    /// - Throws: `TestLinkError` if it is already connected, or if the system has no descriptors left.
    public func connect() throws(TestLinkError) -> Int32 {
        guard link == nil else { throw .connectedAlready }
        let (link, other) = try PeerLink.open(on: loop)
        dataPath = nil
        begin(link)
        return other
    }

    private func begin(_ link: PeerLink) {
        self.link = link
        connectionCount += 1
        isResponding = true
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

    /// Disconnects the link; outstanding requests get no response.
    public func disconnect() {
        guard let link else { return }
        clientGone = nil
        hangingUp.take()?()
        // The radio has ended it in the meantime.
        guard self.link != nil else { return }
        link.close()
        self.link = nil
        channels.endAll()
        endPlans()
        endSecurity()
        renewServer()
        record(.linkLost)
    }

    /// A Boolean value that indicates whether a client is connected.
    public var isConnected: Bool { link != nil }

    /// Prepares the server for the next link, whose client may have bonded.
    private func renewServer() {
        server.disconnected()
        _ = server.secure(.none, isBonded: isBonded)
    }

    /// True if there is a link; a radio may encrypt one that has no socket yet.
    private var isLinked: Bool { link != nil || server.linkSecurity.isEncrypted }

    /// Stops responding; requests are still read.
    public func stopResponding() {
        isResponding = false
    }

    /// The former name of `stopResponding()`.
    @available(*, deprecated, renamed: "stopResponding()")
    public func stopAnswering() { stopResponding() }

    /// The former name of `resumeResponding()`.
    @available(*, deprecated, renamed: "resumeResponding()")
    public func resumeAnswering() { resumeResponding() }

    /// Responds again. Requests received in the meantime get no response.
    public func resumeResponding() {
        isResponding = true
    }

    // MARK: Values

    /// Notifies or indicates a value of the first characteristic with this UUID, and stores it as the value for reads.
    ///
    /// - Returns: `true` if the client was subscribed; otherwise nothing was sent.
    /// - Throws: `TestLinkError.noSuchCharacteristic` if the device has no such characteristic.
    @discardableResult
    public func notify(_ uuid: BluetoothUUID, _ value: [UInt8]) throws(TestLinkError) -> Bool {
        let handle = try handle(of: uuid)
        server.setValue(value, of: handle)
        guard link != nil, server.isSubscribed(to: handle) else { return false }
        if let pdu = server.send(value, of: handle) { send(pdu) }
        return true
    }

    /// Returns the current value of the first characteristic with this UUID.
    ///
    /// - Throws: `TestLinkError.noSuchCharacteristic` if the device has no such characteristic.
    public func value(_ uuid: BluetoothUUID) throws(TestLinkError) -> [UInt8] {
        server.value(of: try handle(of: uuid)) ?? []
    }

    /// Serves `device` from now on, as after a firmware update, and indicates the change to a subscribed client. It
    /// pairs as before, unless `device` describes how.
    ///
    /// - Parameters:
    ///   - device: The device to serve.
    ///   - isAnnounced: Pass `false` to send no Service Changed indication.
    /// - Returns: The handle range of the change, or `nil` if nothing changed.
    @discardableResult
    public func changeServices(to device: VirtualDevice, isAnnounced: Bool = true) -> ClosedRange<AttributeHandle>? {
        let security = self.device.security
        self.device = device
        if device.security == nil { self.device.security = security }
        guard let (range, pdus) = server.changeServices(to: device, isAnnounced: isAnnounced) else { return nil }
        bonds.databaseChanged(range, checksum: server.checksum, isAnnounced: isAnnounced)
        guard isLinked else {
            // The next client has never known other services.
            renewServer()
            return range
        }
        send(pdus)
        updatePlans()
        return range
    }

    /// Rejects the next request of a client with robust caching with Database Out Of Sync.
    public func becomeUnaware() {
        if isLinked { server.becomeUnaware() }
    }

    /// Overrides the server's responses, for peers that violate the protocol; `nil` removes the override.
    package func behave(_ behaviour: Behaviour?) {
        self.behaviour = behaviour
    }

    /// Sends any PDU unchecked, for peers that violate the protocol.
    public func send(raw pdu: [UInt8]) {
        send(pdu)
    }

    // MARK: Channels

    /// Sets what the device does with the L2CAP channels that a central opens to a PSM; `nil` to refuse them, as it
    /// does for every PSM at first. It has an effect on a virtual radio only, and for channels that are opened later.
    ///
    /// - Parameters:
    ///   - psm: The PSM, 0x0080 to 0x00FF, or one that the Bluetooth SIG has assigned.
    ///   - reaction: The reaction, which is kept over links and resets.
    public func setReaction(toChannels psm: UInt16, _ reaction: VirtualChannelReaction?) {
        channels.react(to: psm, reaction)
    }

    /// Returns the next channel that the device has accepted; `nil` if there is none in time, and when the task was
    /// cancelled. Channels wait here, also such as have ended meanwhile.
    public func nextChannel(within timeout: Duration = .seconds(30)) async -> VirtualChannel? {
        await channels.next(until: loop.now() + timeout)
    }

    /// Returns the level of the link that channels to a PSM need.
    func neededLevel(ofChannels psm: UInt16) -> SocketSecurity.Level { channels.neededLevel(psm) }

    /// A central opens a channel. Returns its end, and whether it waits for the device; `nil` if the device refuses it.
    ///
    /// - Parameter isHeard: Whether the device receives the request.
    func channelRequested(
        _ psm: UInt16, isHeard: Bool
    ) -> Result<(descriptor: Int32, isConnecting: Bool)?, TestLinkError> {
        do throws(TestLinkError) {
            return .success(try channels.requested(psm, isHeard: isHeard && link != nil))
        } catch {
            return .failure(error)
        }
    }

    // MARK: Statistics

    /// The number of requests handled, over all connections.
    public var requestCount: Int { server.requestCount }

    /// The number of Error Responses sent.
    public var errorCount: Int { server.errorCount }

    /// The negotiated MTU, 23 without an exchange.
    public var mtu: UInt16 { server.mtu }

    /// Returns a Boolean value that indicates whether the client is subscribed to the first characteristic with this
    /// UUID.
    public func isSubscribed(to uuid: BluetoothUUID) -> Bool {
        server.handle(of: uuid).map { server.isSubscribed(to: $0) } ?? false
    }

    /// All PDUs exchanged, from the client's point of view: `<` is what the client sent.
    public var transcript: Dialogue {
        Dialogue(steps: steps)
    }

    // MARK: Security

    /// The way in which the device pairs; `nil` if it cannot.
    public var security: VirtualSecurity? { device.security }

    /// Changes how the device pairs from now on; `nil` if it no longer can. Bonds are kept.
    public func setSecurity(_ security: VirtualSecurity?) {
        device.security = security
    }

    /// A Boolean value that indicates whether the device keeps the key of a central.
    public var isBonded: Bool { !bonds.isEmpty }

    /// The keys of the bonds, in the order of the addresses of the centrals.
    package var bondKeys: [VirtualKey] { bonds.stored }

    /// The security of the link.
    public var linkSecurity: VirtualLinkSecurity { server.linkSecurity }

    /// The passkey or the number that the device showed, or its user entered, in the last pairing: at most six digits.
    public var shownNumber: UInt32? { bonds.shownNumber }

    /// The number of pairings that have encrypted a link.
    public var pairingCount: Int { bonds.pairings }

    /// The number of times that the key of a bond has encrypted a link.
    public var encryptionCount: Int { bonds.encryptions }

    /// Removes all bonds, as the device's own "forget" does. The link stays as it is.
    public func forgetBonds() {
        bonds.forgetAll()
        send(server.secure(server.linkSecurity, isBonded: false))
    }

    /// Replaces the key of each bond with another one, so that no central's key fits any more.
    public func replaceBondKeys() {
        bonds.replaceKeys()
    }

    /// Sends a Security Request to the central; it has an effect on a virtual radio only.
    public func requestSecurity(_ request: VirtualSecurityRequest = VirtualSecurityRequest()) {
        requestingSecurity?(request)
    }

    /// Sets the security of the link, as if the central had encrypted it: for devices without a virtual radio.
    public func setLinkSecurity(_ security: VirtualLinkSecurity) {
        send(server.secure(security, isBonded: isBonded))
    }

    /// Stores what a bond keeps over links.
    private func endSecurity() {
        requestingSecurity = nil
        bonds.linkEnded(server.record, keepsConfigurations: device.security?.keepsConfigurations ?? true)
    }

    // MARK: For the radio

    /// Adopts one end of a link that a virtual radio has established, whose controller may lose data.
    package func connect(
        over descriptor: Int32, losing loss: VirtualPersonality.DataLoss? = nil,
        hangingUp: @Sendable @escaping () -> Void, clientGone: @Sendable @escaping () -> Void
    ) {
        dataPath = loss.map { LinkDataPath($0) }
        self.hangingUp = hangingUp
        self.clientGone = clientGone
        begin(PeerLink(adopting: descriptor, on: loop))
    }

    /// Handles the end of the link by the radio.
    package func connectionLost() {
        hangingUp = nil
        clientGone = nil
        disconnect()
        // A link without a socket may have been encrypted as well.
        endSecurity()
        renewServer()
    }

    /// Handles the end, by the radio, of the link that `restart` forgot.
    package func forgottenConnectionLost() {
        forgottenLink?.close()
        forgottenLink = nil
    }

    /// Suspends the link because the peripheral is out of range, or resumes it.
    package func hold(_ isHeld: Bool) {
        if isHeld { link?.hold() } else { link?.release() }
        channels.hold(isHeld)
    }

    /// Loses all state but the description, as without a battery: the link is dead but not disconnected.
    package func restart() {
        hangingUp = nil
        clientGone = nil
        forgottenLink?.close()
        forgottenLink = link.take()
        forgottenLink?.hold()
        channels.endAll()
        endPlans()
        endSecurity()
        server.restart(device)
        renewServer()
        record(.linkLost)
    }

    /// A pairing has encrypted the link.
    package func paired(_ security: VirtualLinkSecurity, with central: BluetoothAddress, _ bond: VirtualBond?) {
        bonds.paired(with: central, bond)
        send(server.secure(security, isBonded: bond != nil))
    }

    /// A central encrypts the link with this key.
    package func encrypted(with key: VirtualKey, by central: BluetoothAddress) -> VirtualEncryption {
        switch bonds.encrypt(with: key, by: central) {
        case .found(let security, let record):
            send(server.secure(security, isBonded: true, record: record))
            updatePlans()
            return .encrypted
        case .keyMissing: return .keyMissing
        case .otherKey: return .otherKey
        }
    }

    package func show(_ number: UInt32) {
        bonds.show(number)
    }

    /// Calls a handler with each Security Request of the device, until the link ends.
    package func onSecurityRequest(_ handler: @escaping @Sendable (VirtualSecurityRequest) -> Void) {
        requestingSecurity = handler
    }

    /// Calls a handler on the loop with each PDU: before the response to a client's, and after the peripheral's own was
    /// sent.
    package func observe(_ handler: (@Sendable (_ isClients: Bool) -> Void)?) {
        exchanged = handler
    }

    // MARK: Internals

    private func handle(of uuid: BluetoothUUID) throws(TestLinkError) -> AttributeHandle {
        guard let handle = server.handle(of: uuid) else { throw .noSuchCharacteristic(uuid.description) }
        return handle
    }

    private func received(_ pdu: [UInt8]) {
        if dataPath?.losesSent(at: loop.now()) == true { return }
        receivedCount += 1
        record(.sent(pdu))
        exchanged?(true)
        guard isResponding, link != nil else { return }
        if let behaviour { return behave(behaviour, pdu) }
        guard latency > .zero else { return respond(to: pdu) }
        later(latency) { $0.respond(to: pdu) }
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
        served()
    }

    /// Runs `body` after a delay, if the link is still the same.
    private func later(_ delay: Duration, _ body: @escaping @Sendable (isolated VirtualPeripheral) -> Void) {
        let connection = connectionCount
        _ = loop.schedule(at: loop.now() + delay) { [weak self] in
            self?.assumeIsolated { peripheral in
                if peripheral.connectionCount == connection, peripheral.isConnected { body(peripheral) }
            }
        }
    }

    private func respond(to pdu: [UInt8]) {
        send(server.received(pdu))
        served()
    }

    /// Does what follows a PDU of the client.
    private func served() {
        if server.hasClosed { disconnect() } else { updatePlans() }
    }

    private func send(_ pdus: [[UInt8]]) {
        for pdu in pdus { send(pdu) }
    }

    private func send(_ pdu: [UInt8]) {
        guard link != nil else { return }
        switch dataPath?.received() ?? .arrives {
        case .arrives: transmit(pdu)
        case .comesLate(let delay): later(delay) { $0.transmit(pdu) }
        case .isLost: break
        }
    }

    private func transmit(_ pdu: [UInt8]) {
        guard let link else { return }
        record(.received(pdu))
        link.send(pdu)
        exchanged?(false)
    }

    private func record(_ event: Dialogue.Event) {
        if keepsTranscript, steps.count < Self.transcriptLength { steps.append(Dialogue.Step(event)) }
    }

    /// Stops the transcript, so that memory does not grow over days.
    package func keepNoTranscript() {
        keepsTranscript = false
    }

    private func endPlans() {
        for plan in plans.values { plan.timer.map(loop.cancel) }
        plans = [:]
    }

    private func updatePlans() {
        for handle in server.plannedHandles {
            let isWanted = server.isSubscribed(to: handle)
            if isWanted, plans[handle] == nil {
                plans[handle] = RunningPlan()
                next(of: handle)
            } else if !isWanted, let plan = plans.removeValue(forKey: handle) {
                plan.timer.map(loop.cancel)
            }
        }
    }

    private func next(of handle: AttributeHandle) {
        guard link != nil, var running = plans[handle], let plan = server.plan(of: handle), !plan.values.isEmpty,
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
