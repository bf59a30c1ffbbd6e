extension GATTDatabase {
    /// A violation of the specification by a peer that discovery tolerated.
    ///
    /// The associated value is the handle of the attribute in question.
    public enum Quirk: Hashable, Sendable, CustomStringConvertible {
        /// A service claimed handles that belong to the next one, or lie outside the requested range.
        case serviceEndClamped(AttributeHandle)
        /// A service's end was 0; the handle before the next service was used instead.
        case serviceEndMissing(AttributeHandle)
        /// A service overlaps an earlier one or came out of order, and was left out.
        case serviceDropped(AttributeHandle)
        /// A service that the list of services had skipped was found after a gap.
        case serviceHidden(AttributeHandle)
        /// The list of services ended with an error other than Attribute Not Found, after this handle.
        case serviceListCutShort(AttributeHandle)
        /// A characteristic whose value handle cannot be right, or which came out of order, was left out.
        case characteristicDropped(AttributeHandle)
        /// A characteristic belongs to no service. It is kept.
        case characteristicOutsideService(AttributeHandle)
        /// The list of characteristics ended with an error other than Attribute Not Found, after this handle.
        case characteristicListCutShort(AttributeHandle)
        /// A reference to another service has an impossible range, and was left out.
        case includeDropped(AttributeHandle)
        /// The peer refused to report the type of the service that a reference points to.
        case includeWithoutUUID(AttributeHandle)
        /// A declaration is found by one request and not by another; it is listed as a descriptor.
        case declarationUnreadable(AttributeHandle)
        /// Handles in a list of types came out of order or twice, and were left out.
        case informationDropped(AttributeHandle)
        /// The peer refused to report the types of this handle and the ones after it.
        case informationRefused(AttributeHandle)

        /// The violation and the handle.
        public var description: String {
            let (what, handle) = parts
            return "\(what) (handle \(GATTFailure.text(handle)))"
        }

        private var parts: (String, AttributeHandle) {
            switch self {
            case .serviceEndClamped(let handle): ("a service claims handles that are not its own", handle)
            case .serviceEndMissing(let handle): ("a service has no end", handle)
            case .serviceDropped(let handle): ("a service overlaps another or is out of order", handle)
            case .serviceHidden(let handle): ("a service is missing from the list of services", handle)
            case .serviceListCutShort(let handle): ("the list of services ends with an error", handle)
            case .characteristicDropped(let handle): ("a characteristic has an impossible handle", handle)
            case .characteristicOutsideService(let handle): ("a characteristic belongs to no service", handle)
            case .characteristicListCutShort(let handle): ("the list of characteristics ends with an error", handle)
            case .includeDropped(let handle): ("an included service has an impossible range", handle)
            case .includeWithoutUUID(let handle): ("an included service has no known type", handle)
            case .declarationUnreadable(let handle): ("a declaration cannot be read", handle)
            case .informationDropped(let handle): ("a list of attribute types is out of order", handle)
            case .informationRefused(let handle): ("attribute types cannot be read", handle)
            }
        }
    }
}

/// The former name of `GATTDatabase.Quirk`.
@available(*, deprecated, renamed: "GATTDatabase.Quirk")
public typealias GATTQuirk = GATTDatabase.Quirk

// MARK: - In a stored database

extension GATTDatabase.Quirk {
    /// The attribute in question.
    package var handle: AttributeHandle { parts.1 }

    /// The number that is stored for the kind of quirk; numbers are never reused for another.
    var code: UInt8 {
        switch self {
        case .serviceEndClamped: 1
        case .serviceEndMissing: 2
        case .serviceDropped: 3
        case .serviceHidden: 4
        case .serviceListCutShort: 5
        case .characteristicDropped: 6
        case .characteristicOutsideService: 7
        case .characteristicListCutShort: 8
        case .includeDropped: 9
        case .includeWithoutUUID: 10
        case .declarationUnreadable: 11
        case .informationDropped: 12
        case .informationRefused: 13
        }
    }

    init?(code: UInt8, handle: AttributeHandle) {
        switch code {
        case 1: self = .serviceEndClamped(handle)
        case 2: self = .serviceEndMissing(handle)
        case 3: self = .serviceDropped(handle)
        case 4: self = .serviceHidden(handle)
        case 5: self = .serviceListCutShort(handle)
        case 6: self = .characteristicDropped(handle)
        case 7: self = .characteristicOutsideService(handle)
        case 8: self = .characteristicListCutShort(handle)
        case 9: self = .includeDropped(handle)
        case 10: self = .includeWithoutUUID(handle)
        case 11: self = .declarationUnreadable(handle)
        case 12: self = .informationDropped(handle)
        case 13: self = .informationRefused(handle)
        default: return nil
        }
    }
}
