/// The way in which centrals may pair with a local peripheral.
///
/// The closures of the agent decide how the devices make sure of each other, as in a pairing that this side begins. A
/// central that has no bond begins when an attribute is refused to it, or when its user demands it.
public struct CentralPairingOptions: Sendable {
    /// The agent that shows values and asks the user. Its `confirm` decides about a pairing with nothing to compare.
    public var agent: PairingAgent
    /// The security that a pairing must achieve; with less it fails and leaves no bond.
    public var require: PairingOptions.RequiredSecurity
    /// A Boolean value that indicates whether a pairing with nothing to compare is accepted where the agent has no
    /// `confirm`: then every central in range may bond, three of them in a minute.
    public var acceptsUnconfirmed: Bool
    /// Returns whether a central that pairs again gets another bond in place of the one that is passed: it has lost
    /// that one, or is another device with its address. Without this closure it is refused.
    public var replace: (@Sendable (_ bond: Bond) async -> Bool)?
    /// The time limit of a pairing, including the user's replies. The protocol itself ends a pairing in which nothing
    /// happens for 30 s, so a question without a reply for 25 s is rejected.
    public var timeout: Duration

    /// Creates options, with default values for those not given.
    public init(
        agent: PairingAgent, require: PairingOptions.RequiredSecurity = .encrypted, acceptsUnconfirmed: Bool = false,
        replace: (@Sendable (_ bond: Bond) async -> Bool)? = nil, timeout: Duration = .seconds(25)
    ) {
        self.agent = agent
        self.require = require
        self.acceptsUnconfirmed = acceptsUnconfirmed
        self.replace = replace
        self.timeout = timeout
    }

    /// Options that accept every central that pairs, with nothing to compare, three of them in a minute.
    public static var justWorks: CentralPairingOptions {
        CentralPairingOptions(agent: .justWorks, acceptsUnconfirmed: true)
    }
}
