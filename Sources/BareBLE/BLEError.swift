/// Everything that a call of this library can fail with.
///
/// `code` says what kind of failure it is and is all that equality looks at; the rest says for whom, during what, and
/// why. `hint` is one line that tells what to do next. `description` puts it together as one paragraph.
public struct BLEError: Error, Sendable {
    /// What kind of failure this is. The set is open: later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, which is stable: scripts may compare it.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The kernel, or this container, has no Bluetooth sockets.
        public static let unsupported = Code("unsupported")
        /// No adapter is there, or not the one that was asked for.
        public static let noAdapter = Code("noAdapter")
        /// The adapter is powered down.
        public static let adapterDown = Code("adapterDown")
        /// The adapter is blocked by rfkill.
        public static let blocked = Code("blocked")
        /// Low Energy is switched off on the adapter.
        public static let lowEnergyOff = Code("lowEnergyOff")
        /// This process may not do that; the hint names the capability.
        public static let notPermitted = Code("notPermitted")
        /// Somebody else uses the adapter, the link or the channel.
        public static let busy = Code("busy")
        /// Nobody answered, or no device matched, before the deadline.
        public static let timedOut = Code("timedOut")
        /// The link could not be set up.
        public static let connectFailed = Code("connectFailed")
        /// The link ended; `disconnectReason` tells why.
        public static let disconnected = Code("disconnected")
        /// This program has asked for the link's end behind the calls made before; this one came later.
        public static let disconnecting = Code("disconnecting")
        /// Another subscription has taken this one's place.
        public static let replaced = Code("replaced")
        /// The peer has no attribute of that kind.
        public static let attributeNotFound = Code("attributeNotFound")
        /// Several attributes match; name one by its handle.
        public static let ambiguous = Code("ambiguous")
        /// The peer said no: with an ATT error, which `attError` holds, or to a channel.
        public static let refusedByPeer = Code("refusedByPeer")
        /// The peer wants a more secure link than this one.
        public static let insufficientSecurity = Code("insufficientSecurity")
        /// The characteristic, the peer or this kind of link cannot do that.
        public static let notSupported = Code("notSupported")
        /// The peer's answer does not follow the protocol.
        public static let malformedReply = Code("malformedReply")
        /// The value's bytes are not what its type says; `partialValue` holds them.
        public static let malformedValue = Code("malformedValue")
        /// The value is longer than this procedure can carry.
        public static let tooLong = Code("tooLong")
        /// The peer has changed its services, and what the call or subscription was about may be something else now.
        public static let servicesChanged = Code("servicesChanged")
        /// A stored cache of a peer's database is damaged, or holds something else.
        public static let unusableCache = Code("unusableCache")
        /// A stored state of a link or of a daemon is damaged, or holds something else.
        public static let unusableState = Code("unusableState")
        /// There is no room on the disk; what was there before is unharmed.
        public static let diskFull = Code("diskFull")
        /// Values came faster than they were taken, and the subscription's policy is to fail then.
        public static let valuesLost = Code("valuesLost")
        /// Too many operations wait on this link already.
        public static let queueFull = Code("queueFull")
        /// An argument is outside what the specification allows.
        public static let invalidArgument = Code("invalidArgument")
        /// The surrounding task was cancelled, or everything on the link was.
        public static let cancelled = Code("cancelled")
        /// A system call failed in a way that has no code of its own; `errorNumber` holds it.
        public static let system = Code("system")
    }

    /// Which part beside this program a failure comes from. The set is open: later versions may add parts.
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The part's name, which is stable.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The peer: it did not respond, refused, or sent what makes no sense.
        public static let peer = Origin("peer")
        /// The adapter: its controller did not respond.
        public static let adapter = Origin("adapter")
    }

    /// What kind of failure this is.
    public let code: Code
    /// Which part failed, where the code alone does not say it: a `.timedOut` may be the peer's or the adapter's, a `.tooLong`
    /// the peer's or, with `nil`, that of an argument.
    public let origin: Origin?
    /// For whom: a peer's address, a socket's path, an adapter's name.
    public let subject: String?
    /// During what: "connect", "read 2a19".
    public let operation: String
    /// Why, as part of a sentence.
    public let reason: String
    /// What to do next, as one sentence; `nil` where there is nothing sensible to say.
    public let hint: String?
    /// The peer's error code, when the peer answered with one.
    public let attError: ATTErrorCode?
    /// The attribute that the peer named in its error, which need not be the one that was asked for.
    public let attributeHandle: AttributeHandle?
    /// The controller's status, when it gave one.
    public let hciStatus: HCIStatus?
    /// The kernel's `errno`, when it gave one.
    public let errorNumber: Int32?
    /// What had come before the call failed, when the part is of use: of a long read, of an answer that was assembled; all of
    /// it for `.malformedValue`.
    public let partialValue: [UInt8]?

    /// Describes a failure. The library makes these; tests of one's own code may too.
    public init(
        _ code: Code, subject: String? = nil, during operation: String, because reason: String, hint: String? = nil,
        attError: ATTErrorCode? = nil, attributeHandle: AttributeHandle? = nil, hciStatus: HCIStatus? = nil,
        errorNumber: Int32? = nil, partialValue: [UInt8]? = nil, origin: Origin? = nil
    ) {
        self.code = code
        self.origin = origin
        self.subject = subject
        self.operation = operation
        self.reason = reason
        self.hint = hint
        self.attError = attError
        self.attributeHandle = attributeHandle
        self.hciStatus = hciStatus
        self.errorNumber = errorNumber
        self.partialValue = partialValue
    }

    /// The same failure with another hint.
    func hinting(_ hint: String) -> BLEError {
        BLEError(
            code, subject: subject, during: operation, because: reason, hint: hint, attError: attError,
            attributeHandle: attributeHandle, hciStatus: hciStatus, errorNumber: errorNumber,
            partialValue: partialValue,
            origin: origin)
    }

    /// What the link must have for the peer to agree, when that is why it refused (`.insufficientSecurity`).
    public var requiredSecurity: SecurityLevel? { attError?.requiredSecurity }

    /// The codes underneath, as users quote them in reports: `[ATT 0x05]`, `[HCI 0x3e]`, `[errno 110]`.
    public var underlyingCodes: String? {
        var codes: [String] = []
        if let attError { codes.append("ATT 0x" + Hex.encode([attError.rawValue])) }
        if let hciStatus { codes.append("HCI 0x" + Hex.encode([hciStatus.rawValue])) }
        if let errorNumber { codes.append("errno \(errorNumber)") }
        return codes.isEmpty ? nil : "[" + codes.joined(separator: ", ") + "]"
    }
}

extension BLEError: Equatable {
    /// Two failures are equal when their codes are.
    public static func == (left: BLEError, right: BLEError) -> Bool {
        left.code == right.code
    }
}

extension BLEError: CustomStringConvertible {
    /// One paragraph: what failed, for whom, why, what to do next, and the raw codes in brackets.
    public var description: String {
        var text = "could not \(operation)"
        if let subject { text += " (\(subject))" }
        text += ": \(reason)."
        if let hint { text += " \(hint)" }
        if let underlyingCodes { text += " \(underlyingCodes)" }
        return text
    }
}
