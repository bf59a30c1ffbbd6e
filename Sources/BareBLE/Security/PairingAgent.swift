public import BLECore

/// A number of six digits that two devices pair with.
public struct Passkey: Hashable, Sendable, CustomStringConvertible {
    /// The number, 0 to 999,999.
    public let number: Int

    /// Returns `nil` unless the number is 0 to 999,999.
    public init?(_ number: Int) {
        guard (0...999_999).contains(number) else { return nil }
        self.number = number
    }

    /// Parses one to six digits, such as "012345".
    public init?(_ text: some StringProtocol) {
        guard (1...6).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(text)
        else { return nil }
        self.number = number
    }

    /// Six digits, as a device shows them.
    public var description: String {
        let digits = String(number)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }
}

extension PairingAgent {
    /// A peer's out-of-band data, such as from NFC or a printed code, for pairing by LE Secure Connections.
    ///
    /// The values are secret; no description shows them.
    ///
    /// Spec: Core Vol 3 Part H, 2.3.5.6.4.
    public struct OutOfBandData: Hashable, Sendable, CustomStringConvertible {
        package let values: PairingExchange.OutOfBandValues

        /// Creates the data from the peer's confirmation and random value, 16 bytes each in transmission order, least
        /// significant first, as AD types 0x22 and 0x23 have them. Returns `nil` for other lengths.
        public init?(confirmation: [UInt8], random: [UInt8]) {
            guard let confirmation = Secret128(confirmation.span), let random = Secret128(random.span) else {
                return nil
            }
            values = PairingExchange.OutOfBandValues(confirmation: confirmation, random: random)
        }

        /// The kind of the value, without the value.
        public var description: String { "out-of-band data" }
    }
}

/// The abilities of a program to show values to its user and ask for them while it pairs.
///
/// The closures that are there decide how the devices make sure of each other, together with what the peer can do: with
/// none of them the link is encrypted, and the peer is not authenticated. They run on the event loop and must await,
/// not block. Each is called at most once in a pairing; when the pairing ends, its task is cancelled.
///
/// | closures | announced as |
/// |---|---|
/// | none | NoInputNoOutput |
/// | `show` | DisplayOnly |
/// | `compare`, with or without `show` | DisplayYesNo |
/// | `enter`, without both of the others | KeyboardOnly |
/// | `show`, `compare`, `enter` | KeyboardDisplay |
///
/// Spec: IO capabilities, Core Vol 3 Part H, 2.3.2.
public struct PairingAgent: Sendable {
    /// Shows the passkey that has to be entered at the peer. It may return before that has been done.
    public var show: (@Sendable (_ peer: PeerID, _ passkey: Passkey) async -> Void)?
    /// Returns whether the peer shows the same number.
    public var compare: (@Sendable (_ peer: PeerID, _ number: Passkey) async -> Bool)?
    /// Returns the passkey that the peer shows or has printed on it; `nil` to stop.
    public var enter: (@Sendable (_ peer: PeerID) async -> Passkey?)?
    /// Returns whether to pair with nothing to compare; without this closure, `pair` itself is the consent, unless
    /// `outOfBand` is there: a peer that does not use the data could be any device, and is refused then.
    public var confirm: (@Sendable (_ peer: PeerID) async -> Bool)?
    /// The peer's out-of-band data. It replaces the closures if the peer has LE Secure Connections.
    public var outOfBand: OutOfBandData?

    /// Creates an agent.
    public init(
        show: (@Sendable (_ peer: PeerID, _ passkey: Passkey) async -> Void)? = nil,
        compare: (@Sendable (_ peer: PeerID, _ number: Passkey) async -> Bool)? = nil,
        enter: (@Sendable (_ peer: PeerID) async -> Passkey?)? = nil,
        confirm: (@Sendable (_ peer: PeerID) async -> Bool)? = nil, outOfBand: OutOfBandData? = nil
    ) {
        self.show = show
        self.compare = compare
        self.enter = enter
        self.confirm = confirm
        self.outOfBand = outOfBand
    }

    /// An agent that shows and asks nothing.
    public static var justWorks: PairingAgent { PairingAgent() }

    /// An agent that enters a passkey that is known before, such as one printed on the peer. It refuses a peer that
    /// does not ask for it: any device could be that one.
    public static func passkey(_ passkey: Passkey) -> PairingAgent {
        PairingAgent(enter: { _ in passkey }, confirm: { _ in false })
    }

    var capability: IOCapability {
        if enter != nil { return show != nil && compare != nil ? .keyboardDisplay : .keyboardOnly }
        if compare != nil { return .displayYesNo }
        return show != nil ? .displayOnly : .noInputNoOutput
    }

    /// Asks what the kernel asks.
    func reply(to question: PairingExchange.Question, about peer: PeerID) async -> PairingExchange.Reply {
        switch question {
        case .justWorks:
            guard let confirm else { return outOfBand == nil ? .yes : .no }
            return await confirm(peer) ? .yes : .no
        case .compare(let number):
            guard let compare, let number = Passkey(Int(number)) else { return .no }
            return await compare(peer, number) ? .yes : .no
        case .enter:
            guard let passkey = await enter?(peer) else { return .no }
            return .passkey(UInt32(passkey.number))
        case .show(let passkey):
            guard let show, let passkey = Passkey(Int(passkey)) else { return .no }
            await show(peer, passkey)
            return .yes
        }
    }
}

extension PairingOptions {
    /// The security that a pairing must achieve.
    public enum RequiredSecurity: Hashable, Sendable {
        /// Encryption. Nothing excludes a man in the middle while the devices are paired.
        case encrypted
        /// A passkey, also by LE legacy pairing, which an eavesdropper can determine.
        case legacyPasskey
        /// LE Secure Connections with protection against a man in the middle.
        case authenticated

        var level: BondRecord.Level {
            switch self {
            case .encrypted: .encrypted
            case .legacyPasskey: .authenticated
            case .authenticated: .secureConnections
            }
        }
    }

    /// The condition under which a pairing replaces a bond. A bond is never replaced by a weaker one.
    public enum Replacement: Hashable, Sendable {
        /// Never: a bonded peer is not paired again.
        case never
        /// Where the peer has rejected the bond's key.
        case lostByPeer
        /// Always.
        case always
    }
}

/// The options of a pairing.
public struct PairingOptions: Sendable {
    /// The agent that shows values and asks the user.
    public var agent: PairingAgent
    /// The security that the pairing must achieve; with less it fails and leaves no bond.
    public var require: RequiredSecurity
    /// The condition under which an existing bond is replaced.
    public var replacing: Replacement
    /// A name for the bond, for people; at most 128 bytes.
    public var name: String?
    /// The time limit of the pairing, including the user's replies. The protocol itself ends a pairing in which nothing
    /// happens for 30 s, so a question without a reply for 25 s is rejected.
    public var timeout: Duration

    /// Creates options, with default values for those not given.
    public init(
        agent: PairingAgent = .justWorks, require: RequiredSecurity = .encrypted,
        replacing: Replacement = .never, name: String? = nil, timeout: Duration = .seconds(25)
    ) {
        self.agent = agent
        self.require = require
        self.replacing = replacing
        self.name = name
        self.timeout = timeout
    }
}
