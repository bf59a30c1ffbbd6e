internal import BareBLE

extension CoreBluetoothHost {
    /// The way in which devices pair, and the questions to their users.
    ///
    /// A device that refuses an operation for lack of security is paired, and the operation is repeated once. The
    /// closures that are there decide how the devices make sure of each other, together with what the device can do:
    /// with none of them the link is encrypted, and nothing proves who the device is. They run on the event loop of the
    /// library, so they must await and not block, and are each called at most once in a pairing. Passkeys are texts of
    /// six digits, and devices are named by `CBPeer.identifier`. Pairing needs CAP_NET_ADMIN.
    ///
    /// Spec: IO capabilities, Core Vol 3 Part H, 2.3.2.
    public struct Pairing: Sendable {
        /// The directory of the bonds. Access to it is access to the links. While it cannot be opened, every connection
        /// fails with the reason: it would not be known which links must be encrypted.
        public var directory: String
        /// A Boolean value that indicates whether centrals may pair with this program, for characteristics and channels
        /// that demand encryption: while there are such ones, and a manager advertises or a central is connected.
        /// Without any closure every central in range may, three of them in a minute; with closures but without
        /// `confirm`, those with which nothing can be compared may not.
        public var allowsCentrals = false
        /// Shows the passkey that has to be entered at the device.
        public var show: (@Sendable (_ device: UUID, _ passkey: String) async -> Void)?
        /// Returns whether the device shows the same number.
        public var compare: (@Sendable (_ device: UUID, _ number: String) async -> Bool)?
        /// Returns the passkey that the device shows, or that is printed on it; `nil` to stop.
        public var enter: (@Sendable (_ device: UUID) async -> String?)?
        /// Returns whether to pair with nothing to compare; without this closure, it is done.
        public var confirm: (@Sendable (_ device: UUID) async -> Bool)?

        /// Creates settings that ask nobody.
        public init(directory: String) {
            self.directory = directory
        }

        var agent: PairingAgent {
            var agent = PairingAgent.justWorks
            if let show { agent.show = { await show(PeerIdentifier.uuid(of: $0), $1.description) } }
            if let compare { agent.compare = { await compare(PeerIdentifier.uuid(of: $0), $1.description) } }
            if let enter {
                agent.enter = { peer in
                    guard let text = await enter(PeerIdentifier.uuid(of: peer)) else { return nil }
                    return Passkey(text)
                }
            }
            if let confirm { agent.confirm = { await confirm(PeerIdentifier.uuid(of: $0)) } }
            return agent
        }

        /// The way in which centrals may pair; `nil` if they may not.
        var centralOptions: CentralPairingOptions? {
            guard allowsCentrals else { return nil }
            let asksNobody = show == nil && compare == nil && enter == nil
            return CentralPairingOptions(agent: agent, acceptsUnconfirmed: asksNobody && confirm == nil)
        }
    }
}
