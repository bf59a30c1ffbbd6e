// A central that uses a server under test: it hears advertisements, connects, and exchanges ATT packets. It has
// encoders and parsers of its own, apart from those of the library's client, so that one does not prove the other.
//
// Responsibilities: one link at a time, over a descriptor or through a `VirtualRadio`; requests with their responses;
// confirmations, unless they are switched off; what was received without a request; the transcript.
//
// Invariants:
// - One request of the methods below is outstanding, until its response comes or the link ends, also when its caller
//   waits no longer. `send(raw:)` sends anything at any time.
// - Every waiting call ends once: with its result, at its time limit, when its task is cancelled, or with the link.
// - A link keeps its central alive.

public import BLECore
internal import BLELinux
internal import BareBLE

/// A central for testing a server without a radio.
///
///     let local = LocalPeripheral(on: Central(radio: radio))
///     …                                                           // publish and advertise
///     let phone = await radio.addCentral()
///     try await phone.connect()
///     #expect(try await phone.read(0x2A38) == [1])
///
/// Without a radio, `open()` returns the server's end of a link, for `LocalPeripheral.attach(descriptor:name:)`.
public actor VirtualCentral {
    /// The maximum number of PDUs in the transcript; later ones are only counted.
    public static let transcriptLength = 65_536

    /// The time for which a response is awaited: that of the specification for a transaction.
    public static let responseTime = Duration.seconds(30)

    nonisolated let loop: EventLoop
    private weak var radio: VirtualRadio?
    private var address: PeerID?
    private var link: PeerLink?
    /// Ends the link on the radio, for a reason of this side.
    private var ending: (@Sendable (HCIStatus) -> Void)?
    private var clientGone: (@Sendable () -> Void)?
    private var wishes: [Wish] = []
    /// Whether a request has no response yet.
    private var isResponseDue = false
    private var isConfirming = true
    private var isHeld = false
    private var isOutOfRange = false
    private let channels: VirtualChannels
    /// Links that were forgotten on a reset, which the server does not know yet.
    private var forgotten: [PeerLink] = []
    private var received: [Value] = []
    private var unconfirmed = 0
    private var steps: [Dialogue.Step] = []
    private var lastReason: HCIStatus?

    private let hearing: Waiters<Result<HeardAdvertisement, VirtualCentralError>>
    private let responses: Waiters<Result<[UInt8], VirtualCentralError>>
    private let values: Waiters<Result<Void, VirtualCentralError>>
    private let ends: Waiters<HCIStatus>

    /// The ATT MTU of the link, 23 without an exchange.
    public private(set) var mtu: UInt16 = 23
    /// The services that `discover()` has found; they are kept over links.
    public private(set) var services: [Service] = []
    /// The number of responses that came without a request of this central.
    public private(set) var unexpectedResponseCount = 0
    /// The number of PDUs received, over all links.
    public private(set) var receivedCount = 0

    /// A call that waits for an advertisement.
    private struct Wish {
        let number: UInt64
        let isConnecting: Bool
        let isWanted: @Sendable (HeardAdvertisement) -> Bool
    }

    /// Creates a central on a thread of the test kit, for links over descriptors.
    public init() {
        self.init(loop: .peers, radio: nil, address: nil)
    }

    /// Creates a central in the virtual time of the server under test, for links over descriptors.
    public init(time: VirtualTime) {
        self.init(loop: time.loop, radio: nil, address: nil)
    }

    /// Creates a central that a radio has placed.
    init(on radio: VirtualRadio, as address: PeerID) {
        self.init(loop: radio.loop, radio: radio, address: address)
    }

    private init(loop: EventLoop, radio: VirtualRadio?, address: PeerID?) {
        self.loop = loop
        self.radio = radio
        self.address = address
        channels = VirtualChannels(on: loop)
        hearing = Waiters(on: loop)
        responses = Waiters(on: loop)
        values = Waiters(on: loop)
        ends = Waiters(on: loop)
    }

    /// The executor of the central's loop: the test kit's thread, or that of its virtual time.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor owns its loop. The loop's handlers already run on the actor: they enter it with `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// The central's address; `nil` without a radio.
    public var peer: PeerID? { address }

    /// A Boolean value that indicates whether there is a link.
    public var isConnected: Bool { link != nil }

    /// All PDUs exchanged, from the point of view of the server under test: `<` is what the server sent.
    public var transcript: Dialogue { Dialogue(steps: steps) }
}

// MARK: - Links

extension VirtualCentral {
    /// A value that has come without a request.
    public struct Value: Hashable, Sendable {
        /// The handle of the characteristic's value.
        public let handle: AttributeHandle
        /// The bytes.
        public let bytes: [UInt8]
        /// A Boolean value that indicates whether it came in an indication, which demands a confirmation.
        public let isIndication: Bool
    }

    /// Opens a link without a radio, and returns the server's end of it, which the caller owns.
    ///
    /// - Throws: `VirtualCentralError.connectedAlready`, or `.noSockets` if the system has no descriptors left.
    public func open() throws(VirtualCentralError) -> Int32 {
        guard link == nil else { throw .connectedAlready }
        do throws(TestLinkError) {
            let (link, other) = try PeerLink.open(on: loop)
            begin(link)
            return other
        } catch {
            guard case .noSocketPair(let errno) = error else { throw .connectedAlready }
            throw .noSockets(errno: errno)
        }
    }

    /// Waits for an advertisement, and returns it.
    ///
    /// - Parameters:
    ///   - timeout: The time limit.
    ///   - isWanted: Returns whether an advertisement is the one.
    /// - Throws: `VirtualCentralError.noRadio`, `.notHeard`, `.cancelled`.
    public func hear(
        within timeout: Duration = .seconds(10),
        _ isWanted: @escaping @Sendable (HeardAdvertisement) -> Bool = { _ in true }
    ) async throws(VirtualCentralError) -> HeardAdvertisement {
        try await wait(isConnecting: false, timeout, isWanted)
    }

    /// Connects to the first connectable advertisement that is heard and wanted, and returns it.
    ///
    /// If no program listens at that adapter, the link is there all the same, and nothing responds.
    ///
    /// - Parameters:
    ///   - timeout: The time limit.
    ///   - isWanted: Returns whether an advertisement is the one.
    /// - Throws: `VirtualCentralError.noRadio`, `.connectedAlready`, `.notHeard`, `.noSockets`, `.cancelled`.
    @discardableResult
    public func connect(
        within timeout: Duration = .seconds(10),
        _ isWanted: @escaping @Sendable (HeardAdvertisement) -> Bool = { _ in true }
    ) async throws(VirtualCentralError) -> HeardAdvertisement {
        guard link == nil else { throw .connectedAlready }
        return try await wait(isConnecting: true, timeout) { $0.isConnectable && isWanted($0) }
    }

    private func wait(
        isConnecting: Bool, _ timeout: Duration, _ isWanted: @escaping @Sendable (HeardAdvertisement) -> Bool
    ) async throws(VirtualCentralError) -> HeardAdvertisement {
        guard let radio else { throw .noRadio }
        var ownNumber: UInt64?
        let end = await hearing.wait(until: loop.now() + timeout) { number in
            ownNumber = number
            wishes.append(Wish(number: number, isConnecting: isConnecting, isWanted: isWanted))
            radio.assumeIsolated { $0.scheduleHearing() }
            return nil
        }
        wishes.removeAll { $0.number == ownNumber }
        switch end {
        case .resumed(let result): return try result.get()
        case .timedOut: throw .notHeard
        case .cancelled: throw .cancelled
        }
    }

    /// Disconnects, for a reason that the adapter then reports; does nothing without a link.
    public func disconnect(because reason: HCIStatus = .remoteUserTerminated) {
        if let ending { ending(reason) } else { linkEnded(.remoteUserTerminated, isForgotten: false) }
    }

    /// Waits for the end of the link, and returns the reason that this side's controller reports: Remote User
    /// Terminated Connection where the server has ended it. Without a link, it is that of the last one.
    public func disconnected() async -> HCIStatus {
        guard link != nil else { return lastReason ?? .unknownConnection }
        let end = await ends.wait { _ in link == nil ? lastReason ?? .unknownConnection : nil }
        if case .resumed(let reason) = end { return reason }
        return lastReason ?? .unknownConnection
    }

    /// Opens an L2CAP channel to a PSM of the program under test, on a virtual radio. It ends with the link.
    ///
    /// The program may close it at once: then `isOpen` becomes `false`, and there are no packets.
    ///
    /// - Throws: `VirtualCentralError.noRadio`, `.notConnected`; `.channelRefused` if no program listens to that PSM,
    ///   the link lacks the security that the listener demands, or 16 channels wait to be accepted; `.noSockets`.
    public func openChannel(psm: UInt16) throws(VirtualCentralError) -> VirtualChannel {
        guard let radio else { throw .noRadio }
        guard link != nil else { throw .notConnected }
        let descriptor = try radio.assumeIsolated { $0.openChannel(of: self, psm) }.get()
        let channel = VirtualChannel.adopt(descriptor, psm: psm, on: loop)
        channels.add(channel)
        return channel
    }

    /// Stops the link in both directions until `resume()`: nothing is read, and what is sent waits.
    ///
    /// The link stays up. Use `VirtualRadio.move(_:to:)` for a central that is lost after its supervision timeout.
    public func pause() {
        isHeld = true
        link?.hold()
    }

    /// Continues after `pause()`.
    public func resume() {
        isHeld = false
        if !isOutOfRange { link?.release() }
    }

    // MARK: The radio's side

    /// Whether a call waits for an advertisement.
    var isHearing: Bool { !wishes.isEmpty }

    /// An advertisement is heard. Returns whether to connect by it; `begin` or `failToConnect` follows.
    func hear(_ heard: HeardAdvertisement) -> Bool {
        for wish in wishes where !wish.isConnecting && wish.isWanted(heard) {
            hearing.resume(wish.number, .success(heard))
        }
        wishes.removeAll { !$0.isConnecting && $0.isWanted(heard) }
        return link == nil && wishes.contains { $0.isConnecting && $0.isWanted(heard) }
    }

    func failToConnect(errno: Int32) {
        for wish in wishes where wish.isConnecting { hearing.resume(wish.number, .failure(.noSockets(errno: errno))) }
    }

    /// A link is up.
    func begin(
        over descriptor: Int32, _ heard: HeardAdvertisement, ending: @Sendable @escaping (HCIStatus) -> Void,
        clientGone: @Sendable @escaping () -> Void
    ) {
        self.ending = ending
        self.clientGone = clientGone
        begin(PeerLink(adopting: descriptor, on: loop))
        let satisfied = wishes.filter { $0.isConnecting && $0.isWanted(heard) }
        wishes.removeAll { $0.isConnecting }
        for wish in satisfied { hearing.resume(wish.number, .success(heard)) }
    }

    func addressChanged(_ peer: PeerID) { address = peer }

    func hold(_ isOut: Bool) {
        isOutOfRange = isOut
        if isOut || isHeld { link?.hold() } else { link?.release() }
        channels.hold(isOut)
    }

    /// The link has ended; what the adapter's controller reports is the other side's view.
    func linkEnded(_ reason: HCIStatus, isForgotten: Bool) {
        guard !isForgotten else {
            // In the order in which they were forgotten.
            if !forgotten.isEmpty { forgotten.removeFirst().close() }
            return
        }
        guard let link else { return }
        link.close()
        ended(Self.ownView(of: reason))
    }

    /// Forgets the link, as after a reset.
    func forgetLink() {
        guard let link else { return }
        // The other end stays open until the radio ends the link.
        forgotten.append(link)
        link.hold()
        ended(.unspecified)
    }

    private static func ownView(of reason: HCIStatus) -> HCIStatus {
        switch reason {
        case .localHostTerminated: .remoteUserTerminated
        case .remoteUserTerminated: .localHostTerminated
        default: reason
        }
    }

    private func begin(_ link: PeerLink) {
        self.link = link
        isHeld = false
        mtu = 23
        isResponseDue = false
        received = []
        unconfirmed = 0
        link.start(
            packet: { pdu in self.assumeIsolated { $0.received(pdu) } },
            ended: { self.assumeIsolated { $0.serverClosed() } })
    }

    /// The server has closed its end. On a radio, its controller ends the link, now or later.
    private func serverClosed() {
        if let gone = clientGone.take() {
            gone()
        } else {
            ended(.remoteUserTerminated)
        }
    }

    private func ended(_ reason: HCIStatus) {
        guard link != nil else { return }
        link = nil
        channels.endAll()
        (ending, clientGone) = (nil, nil)
        lastReason = reason
        record(.linkLost)
        responses.resumeAll(.failure(.disconnected(reason)))
        values.resumeAll(.failure(.disconnected(reason)))
        ends.resumeAll(reason)
    }

    func setMTU(_ mtu: UInt16) { self.mtu = mtu }

    func setServices(_ services: [Service]) { self.services = services }

    private func record(_ event: Dialogue.Event) {
        if steps.count < Self.transcriptLength { steps.append(Dialogue.Step(event)) }
    }
}

// MARK: - Packets

extension VirtualCentral {
    /// Sends any PDU unchecked, for centrals that violate the protocol; does nothing without a link.
    public func send(raw pdu: [UInt8]) {
        guard let link else { return }
        record(.received(pdu))
        link.send(pdu)
    }

    /// Sends a request and returns its response; an Error Response is an error.
    ///
    /// The response to a request that has timed out, or whose task was cancelled, is discarded. Until it comes, further
    /// requests on the link fail with `.requestPending`.
    ///
    /// - Parameters:
    ///   - pdu: The request.
    ///   - timeout: The time limit.
    /// - Throws: `VirtualCentralError.refused` for an Error Response; `.notConnected`, `.requestPending`, `.timedOut`,
    ///   `.disconnected`, `.cancelled`.
    public func request(
        _ pdu: [UInt8], within timeout: Duration = responseTime
    ) async throws(VirtualCentralError) -> [UInt8] {
        guard link != nil else { throw .notConnected }
        guard !isResponseDue else { throw .requestPending }
        let end = await responses.wait(until: loop.now() + timeout) { _ in
            isResponseDue = true
            send(raw: pdu)
            return nil
        }
        switch end {
        case .resumed(let result): return try result.get()
        case .timedOut: throw .timedOut
        case .cancelled: throw .cancelled
        }
    }

    /// Sets whether indications are confirmed when they come, as they are unless it is switched off.
    public func confirmIndications(_ isConfirming: Bool) {
        self.isConfirming = isConfirming
    }

    /// Confirms the oldest indication that was not confirmed; does nothing if there is none.
    public func confirm() {
        guard unconfirmed > 0 else { return }
        unconfirmed -= 1
        send(raw: [0x1E])
    }

    /// Returns the next value that has come without a request.
    ///
    /// - Throws: `VirtualCentralError.notConnected`, `.timedOut`, `.disconnected`, `.cancelled`. Values that came
    ///   before the end of the link are returned first.
    public func nextValue(within timeout: Duration = responseTime) async throws(VirtualCentralError) -> Value {
        let deadline = loop.now() + timeout
        while received.isEmpty {
            guard link != nil else { throw .notConnected }
            let end = await values.wait(until: deadline) { _ in received.isEmpty ? nil : .success(()) }
            switch end {
            case .resumed(let result): try result.get()
            case .timedOut: throw .timedOut
            case .cancelled: throw .cancelled
            }
        }
        return received.removeFirst()
    }

    /// The values that have come without a request, and that `nextValue(within:)` has not returned.
    public var unreadValues: [Value] { received }

    private func received(_ pdu: [UInt8]) {
        receivedCount += 1
        record(.sent(pdu))
        switch pdu.first {
        case 0x1B: deliver(pdu, isIndication: false)
        case 0x1D:
            unconfirmed += 1
            deliver(pdu, isIndication: true)
            if isConfirming { confirm() }
        case 0x23: deliverSeveral(pdu)
        case 0x01: respond(pdu, Self.refusal(pdu).map { .failure($0) } ?? .failure(.malformed(pdu)))
        // Responses have odd opcodes below 0x1B; those that follow are of Prepare, Execute and Multiple Variable.
        case 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x13, 0x17, 0x19, 0x21: respond(pdu, .success(pdu))
        case 0x02, 0x04, 0x06, 0x08, 0x0A, 0x0C, 0x0E, 0x10, 0x12, 0x16, 0x18, 0x20:
            // This central serves nothing.
            send(raw: [0x01, pdu[0], 0, 0, 0x06])
        default: break
        }
    }

    private func respond(_ pdu: [UInt8], _ result: Result<[UInt8], VirtualCentralError>) {
        if !isResponseDue { unexpectedResponseCount += 1 }
        isResponseDue = false
        responses.resumeAll(result)
    }

    private static func refusal(_ pdu: [UInt8]) -> VirtualCentralError? {
        guard pdu.count == 5 else { return nil }
        return .refused(
            opcode: pdu[1], handle: UInt16(pdu[2]) | UInt16(pdu[3]) << 8, code: ATTErrorCode(rawValue: pdu[4]))
    }

    private func deliver(_ pdu: [UInt8], isIndication: Bool) {
        guard pdu.count >= 3 else { return }
        take(UInt16(pdu[1]) | UInt16(pdu[2]) << 8, Array(pdu.dropFirst(3)), isIndication)
    }

    private func deliverSeveral(_ pdu: [UInt8]) {
        var rest = pdu.dropFirst()
        while rest.count >= 4 {
            let head = Array(rest.prefix(4))
            let length = Int(head[2]) | Int(head[3]) << 8
            take(UInt16(head[0]) | UInt16(head[1]) << 8, Array(rest.dropFirst(4).prefix(length)), false)
            rest = rest.dropFirst(4 + length)
        }
    }

    private func take(_ handle: AttributeHandle, _ value: [UInt8], _ isIndication: Bool) {
        received.append(Value(handle: handle, bytes: value, isIndication: isIndication))
        values.resumeAll(.success(()))
    }
}

/// A failure of a `VirtualCentral`.
public enum VirtualCentralError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The central was not added to a radio.
    case noRadio
    /// The central has a link already.
    case connectedAlready
    /// No such advertisement was heard in time.
    case notHeard
    /// There is no link.
    case notConnected
    /// Another request waits for its response.
    case requestPending
    /// The server has sent an Error Response; with the opcode and the handle that it names.
    case refused(opcode: UInt8, handle: AttributeHandle, code: ATTErrorCode)
    /// The server has sent something that is not a response to the request; with its bytes.
    case malformed([UInt8])
    /// The server has no characteristic, or no client configuration, with this UUID.
    case noSuchAttribute(BluetoothUUID)
    /// The server accepts no channel to this PSM on this link.
    case channelRefused(psm: UInt16)
    /// Nothing came in time.
    case timedOut
    /// The link ended, for the reason that this side's controller reports.
    case disconnected(HCIStatus)
    /// The task was cancelled.
    case cancelled
    /// The system has no sockets left; with its error number.
    case noSockets(errno: Int32)

    /// A message that describes the failure.
    public var description: String {
        switch self {
        case .noRadio: "the central is on no radio; add it with `VirtualRadio.addCentral()`"
        case .connectedAlready: "the central has a link already; disconnect it first"
        case .notHeard: "no such advertisement was heard in time"
        case .notConnected: "the central has no link; connect it first"
        case .requestPending: "another request of the central waits for its response"
        case .refused(let opcode, let handle, let code):
            "the server refused request 0x\(Hex.encode([opcode])) for handle \(handle): \(code)"
        case .malformed(let pdu): "\(Hex.encode(pdu)) is no response to the request"
        case .noSuchAttribute(let uuid): "the server has no such attribute: \(uuid)"
        case .channelRefused(let psm): "the server accepts no channel to PSM 0x\(String(psm, radix: 16)) on this link"
        case .timedOut: "nothing came from the server in time"
        case .disconnected(let reason): "the link ended: \(reason)"
        case .cancelled: "the task was cancelled"
        case .noSockets(let errno): "the system gave no pair of sockets [errno \(errno)]"
        }
    }
}
