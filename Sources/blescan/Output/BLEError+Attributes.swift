import BareBLE

// The failures of a read, by what they mean for the other attributes of the peer.

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
}
