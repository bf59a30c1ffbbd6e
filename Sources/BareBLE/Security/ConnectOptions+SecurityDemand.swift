internal import BLECore

extension ConnectOptions {
    /// The security that a link must have before it is used.
    ///
    /// With every demand but `.none` the link to a bonded peer is encrypted before its first byte; what arrives before
    /// that is discarded, because nothing proves who sent it.
    public enum SecurityDemand: Sendable {
        /// A bonded peer's link is encrypted; any other is not encrypted. Where such a peer is connected as a central,
        /// its link is used if the key of the bond encrypts it; otherwise the connect fails with `.notBonded`. To a
        /// peer whose bond could not be read it fails with `.unusableState`.
        ///
        /// A session demands `.bonded` once a link of it was to a bonded peer, also after a restart from its
        /// restoration state: without the bond it ends with `.notBonded`.
        case asBonded
        /// Nothing is encrypted, although the peer may be bonded: a device that uses its address may be at the other
        /// end.
        case none
        /// The peer must be bonded; otherwise the connect fails with `BLEError.Code.notBonded`, before anything is
        /// sent.
        case bonded
        /// A peer without a bond is paired before anything else is sent, which takes as long as
        /// `PairingOptions.timeout` at most. So is one whose bond the options replace; a session replaces with
        /// `.always` until a link has come up, and keeps that bond.
        case pairing(PairingOptions)

        var pairing: PairingOptions? {
            if case .pairing(let options) = self { options } else { nil }
        }

        /// Whether a link without a bond is not used.
        var requiresBond: Bool {
            switch self {
            case .asBonded, .none: false
            case .bonded, .pairing: true
            }
        }

        /// What a session demands of later links after one to a bonded peer. `.none` stays;
        /// `.pairing` replaces no good bond.
        var onceBonded: SecurityDemand {
            switch self {
            case .none, .bonded: return self
            case .asBonded: return .bonded
            case .pairing(var options):
                if options.replacing == .always { options.replacing = .never }
                return .pairing(options)
            }
        }

        /// Whether the link to a peer with this bond is encrypted with its key.
        func uses(_ record: BondRecord) -> Bool {
            switch self {
            case .asBonded, .bonded: return true
            case .none: return false
            case .pairing(let options):
                switch options.replacing {
                case .never: return true
                case .always: return false
                case .lostByPeer: return record.state == .good
                }
            }
        }
    }
}

extension ConnectOptions.SecurityDemand: Hashable {
    /// What equality compares. Two agents count as equal if they can show and ask the same.
    private struct Content: Hashable {
        var kind = 0
        var capability: IOCapability?
        var require: PairingOptions.RequiredSecurity?
        var replacing: PairingOptions.Replacement?
        var name: String?
        var timeout: Duration?
    }

    private var content: Content {
        switch self {
        case .asBonded: Content(kind: 0)
        case .none: Content(kind: 1)
        case .bonded: Content(kind: 2)
        case .pairing(let options):
            Content(
                kind: 3, capability: options.agent.capability, require: options.require, replacing: options.replacing,
                name: options.name, timeout: options.timeout)
        }
    }

    /// Returns a Boolean value that indicates whether two demands are the same. Closures of agents are not compared,
    /// only which of them are there.
    public static func == (left: ConnectOptions.SecurityDemand, right: ConnectOptions.SecurityDemand) -> Bool {
        left.content == right.content
    }

    /// Hashes what equality compares.
    public func hash(into hasher: inout Hasher) { hasher.combine(content) }
}
