import BLECore

// How a peer that is not honest treats a request. What it does is drawn from a stream of its own, request by request.

/// A peer's reaction to each PDU of the client.
struct Conduct {
    typealias Reaction = (delay: Duration, pdu: [UInt8])
    typealias Server = ([UInt8]) -> [[UInt8]]

    private let kind: Script.PeerKind
    private var numbers: Numbers
    private let violations: [Violation]
    private let quirks: [Quirk]
    /// The percentage of PDUs that are mishandled.
    private let badness: Int
    /// Its latest responses, to repeat them.
    private var said: [[UInt8]] = []
    private var servedReads = 0
    /// The number of responses from the client since its last request.
    private var reactions = 0
    /// The longest MTU of the device, and the one in force.
    private let ownMTU: Int
    private var mtu = 23

    init(_ kind: Script.PeerKind, mtu: UInt16, _ numbers: Numbers) {
        var numbers = numbers
        self.kind = kind
        ownMTU = Int(mtu)
        violations = numbers.some(of: Violation.allCases) + [numbers.pick(Violation.allCases)]
        quirks = (0..<numbers.pick(1...2)).map { _ in numbers.pick(Quirk.allCases) }
        badness = numbers.pick([3, 15, 60])
        self.numbers = numbers
    }

    /// What is sent because of a PDU; `seen` is called with what it does wrong.
    mutating func react(to pdu: [UInt8], _ server: Server, seen: (String) -> Void) -> [Reaction] {
        if pdu.first == ATTOpcode.exchangeMTURequest.rawValue, pdu.count == 3 {
            mtu = max(23, min(ownMTU, Int(pdu[1]) | Int(pdu[2]) << 8))
        }
        switch kind {
        case .honest, .amnesiac, .absent: return server(pdu).map { (.zero, $0) }
        case .slow: return slowly(pdu, server, seen)
        case .vendor: return oddly(pdu, server, seen)
        case .adversary:
            let responses = server(pdu)
            if let response = responses.first {
                said.append(response)
                if said.count > 8 { said.removeFirst() }
            }
            // Nothing slows it down as a radio would: a reaction to each response to a request of its own might
            // continue forever, in no time.
            let isRequest = pdu.first.map { ATTOpcode(rawValue: $0).isRequest } ?? false
            reactions = isRequest ? 0 : reactions + 1
            guard reactions < 100, numbers.chance(badness) else { return responses.map { (.zero, $0) } }
            let violation = numbers.pick(violations)
            seen("violation.\(violation.rawValue)")
            return violate(violation, pdu, responses).map { (.zero, $0) }
        }
    }

    /// Its unsolicited packets.
    mutating func provocation(seen: (String) -> Void) -> [[UInt8]] {
        let violation = numbers.pick(Violation.unasked)
        seen("violation.\(violation.rawValue)")
        return violate(violation, [], [])
    }

    private mutating func slowly(_ pdu: [UInt8], _ server: Server, _ seen: (String) -> Void) -> [Reaction] {
        let responses = server(pdu)
        guard !responses.isEmpty, numbers.chance(60) else { return responses.map { (.zero, $0) } }
        let delay = numbers.pick([300, 2000, 9000, 29_000, 29_999, 30_000, 30_001, 34_000])
        seen(delay < 30_000 ? "slow.within" : "slow.beyond")
        return responses.map { (.milliseconds(delay), $0) }
    }
}

// MARK: - What an adversary does

extension Conduct {
    /// A way to break the protocol.
    enum Violation: String, CaseIterable {
        case truncate, extend, flip, otherOpcode, otherError, refuse, silence, twice, strayBefore, oversized, empty,
            entryLength, repeated, randomBytes, handles
        case notifyUnknown, notifyShort, notifyLong, indications, badList, peerRequest, peerRequests, mtuRequest,
            unknownOpcode, serviceChanged, strayResponse, confirmation

        /// Those that need no request.
        static let unasked: [Violation] = [
            .notifyUnknown, .notifyShort, .notifyLong, .indications, .badList, .peerRequest, .peerRequests, .mtuRequest,
            .unknownOpcode, .serviceChanged, .strayResponse, .confirmation, .empty, .randomBytes,
        ]
    }

    private mutating func violate(_ violation: Violation, _ pdu: [UInt8], _ responses: [[UInt8]]) -> [[UInt8]] {
        let response = responses.first ?? []
        let others = Array(responses.dropFirst())
        switch violation {
        case .truncate: return [Array(response.prefix(numbers.pick(0...max(0, response.count - 1))))] + others
        case .extend: return [response + numbers.bytes(1...8)] + others
        case .flip: return [flipped(response)] + others
        case .otherOpcode:
            return [[numbers.pick([0x03, 0x05, 0x09, 0x0B, 0x11, 0x13, 0x17, 0x19])] + response.dropFirst()]
        case .otherError: return [[0x01, numbers.byte(), numbers.byte(), 0, numbers.byte()]]
        case .refuse: return [[0x01, pdu.first ?? 0, pdu.dropFirst().first ?? 0, 0, numbers.byte()]]
        case .silence: return []
        case .twice: return [response, response] + others
        case .strayBefore: return [stray()] + responses
        case .oversized:
            return [response + [UInt8](repeating: 0xEE, count: mtu + 1)]
        case .empty: return [[]] + responses
        case .entryLength: return [response.prefix(1) + [numbers.byte()] + response.dropFirst(2)] + others
        case .repeated: return [said.first ?? response] + others
        case .randomBytes: return [numbers.bytes(0...40)]
        case .handles:
            var changed = response
            for place in changed.indices where place > 1 && numbers.chance(40) {
                changed[place] = numbers.pick([0, 1, 0xFF, changed[place] &+ 1])
            }
            return [changed] + others
        default: return unasked(violation) + responses
        }
    }

    private mutating func unasked(_ violation: Violation) -> [[UInt8]] {
        switch violation {
        case .notifyUnknown: return [[0x1B, numbers.byte(), numbers.pick([0, 0xFF]), 1, 2, 3]]
        case .notifyShort: return (0..<numbers.pick(1...20)).map { _ in [numbers.pick([0x1B, 0x1D]), 1] }
        case .notifyLong:
            return [[0x1B, numbers.byte(), 0] + [UInt8](repeating: 1, count: numbers.pick([mtu, 513, 700]))]
        case .indications: return (0..<numbers.pick(1...5)).map { _ in [0x1D, numbers.byte(), 0, 7] }
        case .badList: return [[0x23, 3, 0, 0xFF, 0, 0xAA]]
        case .peerRequest: return [[numbers.pick([0x04, 0x06, 0x08, 0x0A, 0x10]), 1, 0, 0xFF, 0xFF, 0, 0x28]]
        case .peerRequests: return (0..<numbers.pick(2...8)).map { _ in [0x0A, 3, 0] }
        case .mtuRequest: return [[0x02, numbers.byte(), numbers.byte()]]
        case .unknownOpcode: return [[numbers.pick([0x2A, 0x6A, 0xFF, 0x00, 0xD2, 0x52]), 1, 2]]
        case .serviceChanged:
            return (0..<numbers.pick(1...12)).map { _ in
                [0x1D, UInt8(numbers.pick(3...14)), 0] + numbers.bytes(4...4)
            }
        case .confirmation: return [[0x1E]]
        case .strayResponse: return [stray()]
        case .empty: return [[]]
        default: return [numbers.bytes(0...40)]
        }
    }

    private mutating func stray() -> [UInt8] {
        [numbers.pick([0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x13, 0x17, 0x19, 0x21])]
            + numbers.bytes(0...20)
    }

    private mutating func flipped(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return bytes }
        var bytes = bytes
        for _ in 0..<numbers.pick(1...3) { bytes[numbers.pick(0...bytes.count - 1)] ^= 1 << UInt8(numbers.pick(0...7)) }
        return bytes
    }
}

// MARK: - What devices on the market do

extension Conduct {
    /// A fault that was found in devices before.
    enum Quirk: String, CaseIterable {
        /// Discovery gets the same response again and again.
        case stuckDiscovery
        /// Lists whose entries have no length.
        case zeroLength
        /// The last group of each response ends at 0xFFFF.
        case openEnd
        /// A long value that never ends.
        case endlessValue
        case tinyMTU, hugeMTU
        /// Echoes of prepared writes that differ.
        case badEcho
        /// Reads are refused for lack of security, whatever the link is.
        case secured
        /// Errors name other handles.
        case otherHandle
        /// Every response is longer than the MTU.
        case oversized
        /// No way to agree on an MTU, to look for descriptors, or for services by their kind.
        case poor
        /// It says nothing more after some requests.
        case dies
        /// It forgets that a client has made up its mind: the queue of prepared writes is always full.
        case fullQueue
        /// Values longer than the MTU, by itself.
        case longValues
    }

    private mutating func oddly(_ pdu: [UInt8], _ server: Server, _ seen: (String) -> Void) -> [Reaction] {
        var responses: [[UInt8]]?
        for quirk in quirks {
            let honest = responses ?? []
            guard let changed = change(quirk, pdu, server, honest) else { continue }
            seen("quirk.\(quirk.rawValue)")
            responses = changed
        }
        return (responses ?? server(pdu)).map { (.zero, $0) }
    }

    /// What becomes of a response; `nil` when the quirk has nothing to do with the request.
    private mutating func change(
        _ quirk: Quirk, _ pdu: [UInt8], _ server: Server, _ changed: [[UInt8]]
    ) -> [[UInt8]]? {
        let opcode = pdu.first ?? 0
        func honest() -> [[UInt8]] { changed.isEmpty ? server(pdu) : changed }
        func refusal(_ code: UInt8) -> [[UInt8]] { [[0x01, opcode] + pdu.dropFirst().prefix(2) + [code]] }
        switch quirk {
        case .stuckDiscovery:
            guard [0x04, 0x08, 0x10].contains(opcode), pdu.count >= 5 else { return nil }
            return server([opcode, 1, 0] + pdu.dropFirst(3))
        case .zeroLength:
            guard opcode == 0x10 || opcode == 0x08 else { return nil }
            return honest().map { [$0[0], 0] + $0.dropFirst(2) }
        case .openEnd:
            guard opcode == 0x10 else { return nil }
            return honest().map { response in
                guard response.first == 0x11, response.count >= 6 else { return response }
                var response = response
                let last = response.count - Int(response[1])
                if last >= 2, last + 3 < response.count { (response[last + 2], response[last + 3]) = (0xFF, 0xFF) }
                return response
            }
        case .endlessValue:
            guard opcode == 0x0A || opcode == 0x0C else { return nil }
            return [[opcode + 1] + [UInt8](repeating: 0x55, count: mtu - 1)]
        case .tinyMTU: return opcode == 0x02 ? [[0x03, 5, 0]] : nil
        case .hugeMTU: return opcode == 0x02 ? [[0x03, 0xFF, 0xFF]] : nil
        case .badEcho:
            guard opcode == 0x16 else { return nil }
            return honest().map { $0.dropLast() + [0xBD] }
        case .secured: return opcode == 0x0A || opcode == 0x12 ? refusal(numbers.pick([0x05, 0x08, 0x0C, 0x0F])) : nil
        case .otherHandle:
            return honest().map { $0.first == 0x01 && $0.count == 5 ? [$0[0], $0[1], 0x77, 0x77, $0[4]] : $0 }
        case .oversized:
            guard opcode == 0x0A else { return nil }
            return [[0x0B] + [UInt8](repeating: 0x66, count: 600)]
        case .poor: return opcode == 0x02 || opcode == 0x04 || opcode == 0x06 ? refusal(0x06) : nil
        case .dies:
            servedReads += 1
            return servedReads > 12 ? [] : nil
        case .fullQueue: return opcode == 0x16 ? refusal(0x09) : nil
        case .longValues: return honest() + [[0x1B, 5, 0] + [UInt8](repeating: 3, count: 600)]
        }
    }
}
