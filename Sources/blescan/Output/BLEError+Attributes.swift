import BareBLE

// What a failure at one attribute, or at too many of them, means for the others.

extension BLEError {
    /// Whether what the peer has sent is no value of an attribute: it is too long, or malformed.
    var isOfInvalidValue: Bool {
        switch code {
        case .malformedReply, .malformedValue: true
        case .tooLong: origin == .peer
        default: false
        }
    }

    /// Whether the failed read concerns its attribute alone, so that the others can be read: the peer has refused it,
    /// has not responded in time, or has sent an invalid value.
    var isOfOneAttribute: Bool { attError != nil || code == .timedOut || isOfInvalidValue }

    /// Returns the failure of a discovery of more attributes than the library keeps, with the command that does without
    /// it; other failures as they are.
    func advisedToReadDirectly(_ peer: PeerArgument) -> BLEError {
        // A value that is too long has its beginning in the error.
        guard code == .tooLong, origin == .peer, partialValue == nil else { return self }
        let command = "`blescan read \(peer.description.shellQuoted) UUID`"
        return with(hint: "\(command) reads a value, or those of a service, without discovering everything.")
    }
}
