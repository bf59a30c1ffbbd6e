public import BLECore
internal import BLELinux

/// The reason that a link ended.
public enum DisconnectReason: Hashable, Sendable, CustomStringConvertible {
    /// This program disconnected.
    case requested
    /// This program handed the link over (`Peripheral.detach()`); the link itself is up.
    case detached
    /// The peer ended the link: it was switched off, or needs it no longer.
    case byPeer(HCIStatus?)
    /// The peer was not heard for the supervision timeout: it is out of range, or without power.
    case supervisionTimeout
    /// The peer did not respond to a request, or confirm an indication, within 30 s. The specification permits no
    /// further requests on that bearer, so the link is closed.
    ///
    /// Spec: Transaction, Core Vol 3 Part F, 3.3.3.
    case attTimeout
    /// The peer violated the protocol in a way from which the link cannot recover.
    case protocolViolation(String)
    /// The adapter was powered down, reset, unplugged or blocked.
    case adapterLost
    /// The link ended for another reason: the controller's status or the kernel's `errno`.
    case other(HCIStatus?, errorNumber: Int32?)

    /// The reason as part of a sentence, such as "the peer ended the link".
    public var description: String {
        switch self {
        case .requested: "this program ended the link"
        case .detached: "this program has handed the link over"
        case .byPeer: "the peer ended the link"
        case .supervisionTimeout: "the peer was not heard any more"
        case .attTimeout: "the peer did not respond to a request for 30 s"
        case .protocolViolation(let what): "the peer violated the protocol: \(what)"
        case .adapterLost: "the adapter went away"
        case .other(let status?, _): "the link ended: \(status.name.lowercased())"
        case .other(nil, _): "the link ended"
        }
    }

    /// Returns a sentence in the form that ends another sentence.
    private static func clause(_ sentence: String) -> String {
        sentence.prefix(1).lowercased()
            + (sentence.hasSuffix(".") ? sentence.dropFirst().dropLast() : sentence.dropFirst())
    }

    /// The controller's status; `nil` if it reported none.
    public var hciStatus: HCIStatus? {
        switch self {
        case .byPeer(let status), .other(let status, _): status
        case .supervisionTimeout: .connectionTimeout
        case .requested, .detached, .attTimeout, .protocolViolation, .adapterLost: nil
        }
    }

    /// The kernel's `errno`, if no better reason is known.
    var errorNumber: Int32? {
        if case .other(nil, let number) = self { number } else { nil }
    }

    /// The origin of the failures that the end causes: the peer if it violated the protocol; `nil` otherwise.
    package var origin: BLEError.Origin? {
        if case .protocolViolation = self { .peer } else { nil }
    }

    /// Whether this program ended the link, so that streams end without an error.
    var isIntended: Bool {
        switch self {
        case .requested, .detached: true
        case .byPeer, .supervisionTimeout, .attTimeout, .protocolViolation, .adapterLost, .other: false
        }
    }

    /// What to do next, as a sentence.
    var hint: String? {
        switch self {
        case .requested, .detached: nil
        case .byPeer: "It may have been switched off, or no longer need the link; connect again when it advertises."
        case .supervisionTimeout:
            "Move closer, or check its battery; then connect again, which a session does by itself."
        case .attTimeout, .protocolViolation: "The peer's software is at fault; connect again."
        case .adapterLost: "Check that it is plugged in, powered and not blocked (`rfkill list`)."
        case .other(.micFailure?, _), .other(.keyMissing?, _), .other(.authenticationFailure?, _):
            "The keys of the two sides differ, or there is an attack: find out which before connecting again."
        case .other: "Connect again."
        }
    }

    /// What to do next, as a sentence, where a session makes the next link by itself.
    var hintInSession: String? {
        switch self {
        case .byPeer: "It may have been switched off, or no longer need the link."
        case .supervisionTimeout: "Move closer, or check its battery."
        case .attTimeout, .protocolViolation: "The peer's software is at fault."
        case .other(.micFailure?, _), .other(.keyMissing?, _), .other(.authenticationFailure?, _): hint
        case .requested, .detached, .other: nil
        case .adapterLost: hint
        }
    }
}

extension DisconnectReason {
    init(_ reason: ATTQueue.CloseReason) {
        switch reason {
        case .responseTimeout: self = .attTimeout
        case .linkLost(let errno): self.init(errno: errno, status: nil)
        case .unexplainedResponses, .oversizedResponse, .truncatedValues, .overlappingIndications, .overlappingRequests:
            self = .protocolViolation(Self.clause(reason.sentence))
        }
    }

    init(_ reason: GATTServer.CloseReason) {
        switch reason {
        case .confirmationTimeout: self = .attTimeout
        case .unsendable: self = .other(nil, errorNumber: nil)
        case .overlappingRequests, .oversizedPacket, .droppedPackets:
            self = .protocolViolation(Self.clause(reason.sentence))
        }
    }

    /// Merges the reasons of the kernel and the controller; the controller's is the more precise one.
    package init(errno: Int32, status: HCIStatus?) {
        switch status {
        case .connectionTimeout?: self = .supervisionTimeout
        case .remoteUserTerminated?, .remoteLowResources?, .remotePowerOff?: self = .byPeer(status)
        case let status?: self = .other(status, errorNumber: errno)
        case nil: self.init(errno: errno)
        }
    }

    private init(errno: Int32) {
        switch LinkEnd(errno: errno) {
        case .closed, .endedByPeer: self = .byPeer(nil)
        case .outOfReach: self = .supervisionTimeout
        case .endedByHost: self = .adapterLost
        case .authenticationFailed: self = .other(.authenticationFailure, errorNumber: errno)
        case .keyMissing: self = .other(.keyMissing, errorNumber: errno)
        case .radioFailure, .unknownLink, .other: self = .other(nil, errorNumber: errno)
        }
    }
}
