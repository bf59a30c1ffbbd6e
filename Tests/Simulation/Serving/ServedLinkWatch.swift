import BLECore
import BareBLE

/// Looks at each packet of a served link, and returns what must not be.
///
/// What it knows of the protocol is written here and not taken from the server: opcodes, the MTU, the one open request,
/// the one unconfirmed indication, and bytes that only encrypted links may carry.
struct ServedLinkWatch {
    /// A byte that only the values of protected attributes contain three times in a row.
    static let secret: UInt8 = 0xE7

    let peer: PeerID?
    private let ownMTU: Int
    private(set) var hasEnded = false
    private var mtu = 23
    private var nextMTU: Int?
    private var isMTUExchanged = false
    private var ownOffer: Int?
    /// The opcode of the request without a response.
    private var open: UInt8?
    private var hasUnconfirmed = false
    /// Whether the central has broken the protocol so that the link has to end.
    private(set) var isBroken = false
    private var isEncrypted = false
    private var encryptedUntil: BootInstant?

    init(peer: PeerID?, ownMTU: Int) {
        self.peer = peer
        self.ownMTU = ownMTU
    }

    mutating func encryptionChanged(_ isEncrypted: Bool, at now: BootInstant) {
        self.isEncrypted = isEncrypted
        // What is sent in the same instant may have been on its way.
        if !isEncrypted { encryptedUntil = now }
    }

    mutating func see(_ event: TracedLink.Event) -> String? {
        switch event {
        case .ended:
            if hasEnded { return "a link ended twice" }
            hasEnded = true
            return nil
        case .pdu(let pdu):
            if hasEnded { return "a packet after the end of its link" }
            if pdu.isOutgoing { return sent(pdu.bytes, at: pdu.time) }
            received(pdu.bytes)
            return nil
        }
    }

    private mutating func received(_ pdu: [UInt8]) {
        guard let opcode = pdu.first else { return }
        if opcode == 0x1E { hasUnconfirmed = false }
        if opcode == 0x03, pdu.count == 3, let ownOffer {
            mtu = max(23, min(ownOffer, Int(pdu[1]) | Int(pdu[2]) << 8))
            isMTUExchanged = true
        }
        guard Self.isRequest(opcode) else { return }
        if open != nil || pdu.count > max(mtu, ownMTU) { isBroken = true }
        open = opcode
        if opcode == 0x02, pdu.count == 3, !isMTUExchanged {
            nextMTU = max(23, min(ownMTU, Int(pdu[1]) | Int(pdu[2]) << 8))
        }
    }

    private mutating func sent(_ pdu: [UInt8], at now: BootInstant) -> String? {
        guard let opcode = pdu.first else { return "an empty packet was sent" }
        if pdu.count > mtu { return "\(pdu.count) bytes were sent, and the MTU is \(mtu)" }
        if Self.hasSecret(pdu), !isEncrypted, encryptedUntil != now { return "a protected value was sent unencrypted" }
        if opcode == 0x02, pdu.count == 3 { ownOffer = Int(pdu[1]) | Int(pdu[2]) << 8 }
        if opcode == 0x1D {
            if hasUnconfirmed { return "an indication was sent before the last one was confirmed" }
            hasUnconfirmed = true
        }
        guard Self.isResponse(opcode), !isBroken else { return nil }
        guard let request = open else { return "a response without a request: \(Hex.encode(pdu))" }
        open = nil
        if opcode == 0x01 {
            guard pdu.count == 5, pdu[1] == request else { return "an error for another request: \(Hex.encode(pdu))" }
            return nil
        }
        guard opcode == request + 1 else { return "a response to another request: \(Hex.encode(pdu))" }
        if opcode == 0x03, let nextMTU {
            mtu = nextMTU
            self.nextMTU = nil
            isMTUExchanged = true
        }
        return nil
    }

    private static func isResponse(_ opcode: UInt8) -> Bool {
        [0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x13, 0x17, 0x19, 0x21].contains(opcode)
    }

    /// A command has bit 6. What is neither defined nor a command is a request that is refused.
    private static func isRequest(_ opcode: UInt8) -> Bool {
        opcode & 0x40 == 0 && !isResponse(opcode) && ![0x1B, 0x1D, 0x1E, 0x23].contains(opcode)
    }

    private static func hasSecret(_ pdu: [UInt8]) -> Bool {
        var run = 0
        for byte in pdu {
            run = byte == secret ? run + 1 : 0
            if run == 3 { return true }
        }
        return false
    }
}

/// Looks at the events of a local peripheral, and returns what must not be.
struct ServerEventWatch {
    private var subscriptions: [ConnectedCentral.ID: Set<AttributeHandle>] = [:]
    private var ended: Set<ConnectedCentral.ID> = []
    private(set) var droppedEvents = 0

    /// The links that have begun and not ended.
    var openLinks: Int { subscriptions.count }

    mutating func see(_ event: LocalPeripheral.Event) -> String? {
        switch event {
        case .connected(let central):
            guard subscriptions[central.id] == nil, !ended.contains(central.id) else { return "connected twice" }
            subscriptions[central.id] = []
        case .disconnected(let central, _):
            guard let left = subscriptions.removeValue(forKey: central.id) else {
                return droppedEvents > 0 ? nil : "disconnected without a link"
            }
            ended.insert(central.id)
            if droppedEvents == 0, !left.isEmpty { return "a link ended before its subscriptions" }
        case .subscribed(let central, let characteristic, _):
            guard subscriptions[central.id] != nil || droppedEvents > 0 else { return "subscribed without a link" }
            let isNew = subscriptions[central.id, default: []].insert(characteristic.id).inserted
            if !isNew, droppedEvents == 0 { return "subscribed twice" }
        case .unsubscribed(let central, let characteristic):
            let was = subscriptions[central.id]?.remove(characteristic.id) != nil
            if !was, droppedEvents == 0 { return "unsubscribed without a subscription" }
        case .written(let written):
            if subscriptions[written.central.id] == nil, droppedEvents == 0 { return "a write without a link" }
        case .writeDropped(let central, _):
            if subscriptions[central.id] == nil, droppedEvents == 0 { return "a write without a link" }
        case .paired, .pairingFailed: return "a pairing that nobody has allowed"
        case .dropped(let count): droppedEvents += count
        }
        return nil
    }
}
