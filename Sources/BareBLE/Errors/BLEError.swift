/// An error of a call to an adapter, a link or a peer.
///
/// A call that runs a closure also passes on what that throws. Values such as `ScanSettings` have errors of their own.
///
/// `code` classifies the failure and is the only part that equality compares; the other properties hold the peer, the
/// operation and the reason. `hint` is one line about what to do next. `description` joins them into one paragraph.
public struct BLEError: Error, Sendable {
    /// The kind of a failure. The set is open: later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, which is stable: scripts may compare it.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The kernel, or this container, has no Bluetooth sockets.
        public static let unsupported = Code("unsupported")
        /// There is no adapter, or not the requested one.
        public static let noAdapter = Code("noAdapter")
        /// The adapter is powered down.
        public static let adapterDown = Code("adapterDown")
        /// The adapter is blocked by rfkill.
        public static let blocked = Code("blocked")
        /// Low Energy is switched off on the adapter.
        public static let lowEnergyOff = Code("lowEnergyOff")
        /// This process lacks a permission; the hint names the capability.
        public static let notPermitted = Code("notPermitted")
        /// Another program or task uses the adapter, the link or the channel, or the controller has no room for more.
        public static let busy = Code("busy")
        /// No response came, or no device matched, before the deadline.
        public static let timedOut = Code("timedOut")
        /// The link could not be set up.
        public static let connectFailed = Code("connectFailed")
        /// The link ended; `disconnectReason` holds the reason.
        public static let disconnected = Code("disconnected")
        /// This program has already requested a disconnect after the pending operations; this call came later.
        public static let disconnecting = Code("disconnecting")
        /// Another subscription has replaced this one.
        public static let replaced = Code("replaced")
        /// The peer has no such attribute.
        public static let attributeNotFound = Code("attributeNotFound")
        /// Several attributes match; select one by its handle.
        public static let ambiguous = Code("ambiguous")
        /// The peer refused: with an ATT error, which `attError` holds, or a channel request.
        public static let refusedByPeer = Code("refusedByPeer")
        /// The peer requires a more secure link than this one.
        public static let insufficientSecurity = Code("insufficientSecurity")
        /// The characteristic, the peer or this kind of link does not support the operation.
        public static let notSupported = Code("notSupported")
        /// The peer's response violates the protocol.
        public static let malformedReply = Code("malformedReply")
        /// The value's bytes do not fit its type; `partialValue` holds them.
        public static let malformedValue = Code("malformedValue")
        /// The value is longer than this procedure can carry.
        public static let tooLong = Code("tooLong")
        /// The peer has changed its services, and the attribute of this call or subscription may be another one now.
        public static let servicesChanged = Code("servicesChanged")
        /// A stored cache of a peer's database is damaged, or the file holds something else.
        public static let unusableCache = Code("unusableCache")
        /// The stored state of a link or a daemon, or a file with bonds, is damaged, or the file holds something else;
        /// or the bond with a peer is in such a file, and the link would not be encrypted.
        public static let unusableState = Code("unusableState")
        /// There is no bond with the peer, and the call needs one.
        public static let notBonded = Code("notBonded")
        /// The peer has lost its key, or is another device with the same address; the bond is kept, and marked.
        public static let bondRejected = Code("bondRejected")
        /// A bond, or a change of one, could not be stored; the stored bonds are as before.
        public static let bondNotStored = Code("bondNotStored")
        /// Pairing failed: the peer cannot do what is required, or the two sides disagree.
        public static let pairingFailed = Code("pairingFailed")
        /// Pairing was refused: by the peer, its user, or the user of this side.
        public static let pairingRefused = Code("pairingRefused")
        /// The passkey that was entered on this side is not the peer's.
        public static let wrongPasskey = Code("wrongPasskey")
        /// The kernel cannot pair with the adapter: its Security Manager is off, or the adapter has none.
        public static let pairingUnavailable = Code("pairingUnavailable")
        /// The pairing made a key that is shorter than required.
        public static let keyTooShort = Code("keyTooShort")
        /// Another program manages the adapter, and may replace the keys of bonds.
        public static let adapterShared = Code("adapterShared")
        /// The bond is for other hardware than the adapter with its address is now, and its keys are not used.
        public static let adapterMismatch = Code("adapterMismatch")
        /// The disk is full; the previous contents of the file are intact.
        public static let diskFull = Code("diskFull")
        /// Values came faster than they were consumed, and the subscription's overflow policy is `.fail`.
        public static let valuesLost = Code("valuesLost")
        /// Too many operations are already queued on this link.
        public static let queueFull = Code("queueFull")
        /// An argument is outside what the specification allows.
        public static let invalidArgument = Code("invalidArgument")
        /// The surrounding task was cancelled, or every operation on the link was.
        public static let cancelled = Code("cancelled")
        /// A system call failed in a way that has no code of its own; `errorNumber` holds its `errno`.
        public static let system = Code("system")
    }

    /// The part, other than this program, that a failure comes from. The set is open: later versions may add parts.
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The part's name, which is stable.
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The peer: it did not respond, refused, or violated the protocol.
        public static let peer = Origin("peer")
        /// The adapter: its controller did not respond.
        public static let adapter = Origin("adapter")
    }

    /// The kind of the failure.
    public let code: Code
    /// The part that failed, if the code alone does not identify it: a `.timedOut` may be the peer's or the adapter's;
    /// a `.tooLong` is the peer's or, with `nil`, that of an argument; a `.disconnected` is the peer's if the link was
    /// closed because the peer violated the protocol.
    public let origin: Origin?
    /// The name or address of the peer, the name of the adapter, the path of the file or socket, or the descriptor,
    /// identifier or text that was passed. `nil` if it is about none of them.
    public let subject: String?
    /// The operation that failed, such as "connect" or "read 2a19".
    public let operation: String
    /// The reason, as part of a sentence.
    public let reason: String
    /// A sentence about what to do next; `nil` if nothing sensible can be suggested.
    public let hint: String?
    /// The error code of the peer's Error Response; `nil` if there was none.
    public let attError: ATTErrorCode?
    /// The attribute that the peer's Error Response names, which need not be the requested one.
    public let attributeHandle: AttributeHandle?
    /// The controller's status; `nil` if it reported none.
    public let hciStatus: HCIStatus?
    /// The kernel's `errno`; `nil` if it reported none.
    public let errorNumber: Int32?
    /// The bytes received before the failure, if they are of use: of a long read or a response in parts; the whole
    /// value for `.malformedValue`.
    public let partialValue: [UInt8]?
    /// A Boolean value that indicates whether the link was not encrypted, or paired, in time.
    package private(set) var isEncryptionTimeout = false
    /// The security that the peer requires for a channel.
    private var channelSecurity: SecurityLevel?

    /// Creates an error. The library does; tests of an application may too.
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

    /// Returns the same failure with another hint, and another reason, if there is one.
    func hinting(_ hint: String, because reason: String? = nil) -> BLEError {
        copy(code, because: reason, hint: hint)
    }

    /// Returns a refusal for lack of security with the reason that pairing has failed.
    func explained(by cause: BLEError) -> BLEError {
        let hint = "Pairing failed: \(cause.reason)." + (cause.hint.map { " \($0)" } ?? "")
        let passed: [Code] = [.pairingRefused, .wrongPasskey]
        let error = copy(passed.contains(cause.code) ? cause.code : code, hint: hint)
        return cause.isEncryptionTimeout ? error.asEncryptionTimeout() : error
    }

    /// Returns the same failure with another code and hint; each copy is made here, so that none loses a part.
    private func copy(_ code: Code, because reason: String? = nil, hint: String) -> BLEError {
        var error = BLEError(
            code, subject: subject, during: operation, because: reason ?? self.reason, hint: hint,
            attError: attError, attributeHandle: attributeHandle, hciStatus: hciStatus, errorNumber: errorNumber,
            partialValue: partialValue, origin: origin)
        error.isEncryptionTimeout = isEncryptionTimeout
        error.channelSecurity = channelSecurity
        return error
    }

    /// Returns the same failure, as one of a link that was not encrypted in time.
    func asEncryptionTimeout() -> BLEError {
        var error = self
        error.isEncryptionTimeout = true
        return error
    }

    /// Returns the same failure, as one of a channel for which the peer requires this security.
    func requiring(_ level: SecurityLevel) -> BLEError {
        var error = self
        error.channelSecurity = level
        return error
    }

    /// The security that the link needs for the peer to accept the request, for `.insufficientSecurity`.
    ///
    /// For a channel it is `.authentication`: the kernel does not report what exactly the peer requires.
    public var requiredSecurity: SecurityLevel? { attError?.requiredSecurity ?? channelSecurity }

    /// The underlying codes in the form that users quote in reports: `[ATT 0x05]`, `[HCI 0x3e]`, `[errno 110]`.
    public var underlyingCodes: String? {
        var codes: [String] = []
        if let attError { codes.append("ATT 0x" + Hex.encode([attError.rawValue])) }
        if let hciStatus { codes.append("HCI 0x" + Hex.encode([hciStatus.rawValue])) }
        if let errorNumber { codes.append("errno \(errorNumber)") }
        return codes.isEmpty ? nil : "[" + codes.joined(separator: ", ") + "]"
    }
}

extension BLEError: Hashable {
    /// Returns a Boolean value that indicates whether two failures have the same code.
    public static func == (left: BLEError, right: BLEError) -> Bool {
        left.code == right.code
    }

    /// Hashes the code alone.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension BLEError: CustomStringConvertible {
    /// One paragraph: the operation, the subject, the reason, the hint, and the raw codes in brackets.
    public var description: String {
        var text = "could not \(operation)"
        if let subject { text += " (\(subject))" }
        text += ": \(reason)."
        if let hint { text += " \(hint)" }
        if let underlyingCodes { text += " \(underlyingCodes)" }
        return text
    }
}
