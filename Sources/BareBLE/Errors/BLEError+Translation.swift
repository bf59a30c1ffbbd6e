internal import BLECore
internal import BLELinux
internal import Glibc

extension BLEError {
    /// Describes a failure of the core for a user.
    init(_ failure: OperationFailure, subject: String, during operation: String) {
        switch failure {
        case .gatt(let failure):
            self.init(failure, subject: subject, during: operation)
        case .timedOut:
            self.init(
                .timedOut, subject: subject, during: operation, because: "the peer did not respond in time",
                hint: "The link is still up; try again, or allow more time.", origin: .peer)
        case .cancelled:
            self.init(.cancelled, subject: subject, during: operation, because: "the task was cancelled")
        case .queueFull(let limit):
            self.init(
                .queueFull, subject: subject, during: operation,
                because: "\(limit) operations already wait on this link",
                hint: "Await the earlier ones before you start more.")
        case .servicesChanged:
            self.init(
                .servicesChanged, subject: subject, during: operation,
                because: "the peer has changed its services, and the handle may belong to another attribute now",
                hint: "Nothing was written; look at the peer's services again.")
        case .unsendable(let errno):
            self.init(
                .system, subject: subject, during: operation, because: "the kernel refuses the packet",
                hint: "It may be longer than the channel allows; connect with a smaller MTU.", errorNumber: errno)
        case .linkLost:
            self.init(.disconnected, subject: subject, during: operation, because: "the link is closed")
        }
    }

    init(_ failure: SubscribeFailure, subject: String, during operation: String) {
        switch failure {
        case .operation(let failure):
            self.init(failure, subject: subject, during: operation)
        case .taken:
            self.init(
                .busy, subject: subject, during: operation, because: "it has another subscription, one is exclusive",
                hint: "End the other subscription first, or replace it.")
        case .replaced:
            self.init(
                .replaced, subject: subject, during: operation, because: "another subscription replaced it")
        }
    }

    init(_ failure: GATTFailure, subject: String, during operation: String) {
        switch failure {
        case .att(_, let handle, let code):
            let lacksSecurity = code.asksForSecurity
            self.init(
                lacksSecurity ? .insufficientSecurity : .refusedByPeer, subject: subject, during: operation,
                because: "refused: \(code.name.lowercased())",
                hint: lacksSecurity ? "The peer requires a paired or encrypted link." : code.sentence,
                attError: code, attributeHandle: handle, origin: .peer)
        case .malformed(let packet):
            self.init(
                .malformedReply, subject: subject, during: operation, because: "\(packet)",
                hint: "The peer's software is at fault; `--trace` shows the packet.", origin: .peer)
        case .noProgress, .outOfRange, .quirk, .reliableWriteMismatch, .surplusResponse:
            self.init(
                .malformedReply, subject: subject, during: operation, because: Self.clause(failure),
                hint: "The peer's software is at fault; `--trace` shows the packets.", origin: .peer)
        case .databaseTooLarge:
            self.init(
                .tooLong, subject: subject, during: operation, because: Self.clause(failure),
                hint: "Discover the services you need by their UUIDs instead.", origin: .peer)
        case .valueTooLong(let partial):
            self.init(
                .tooLong, subject: subject, during: operation,
                because: "the value is longer than the 512 bytes that an attribute may have", partialValue: partial,
                origin: .peer)
        case .noCCCD:
            self.init(
                .notSupported, subject: subject, during: operation,
                because: "the characteristic has no client configuration, so the peer cannot be asked to send")
        case .attributeNotFound(let uuid):
            self.init(
                .attributeNotFound, subject: subject, during: operation, because: "the peer has no attribute \(uuid)",
                hint: "List what the peer has with `blescan explore`.")
        case .impossibleRequest(let opcode):
            self.init(
                .invalidArgument, subject: subject, during: operation,
                because: "\(opcode) cannot carry these arguments",
                hint: "A value written at once may have at most MTU - 3 bytes, and a request needs at least one handle."
            )
        }
    }

    private static func clause(_ failure: GATTFailure) -> String {
        let text = failure.description
        return text.prefix(1).lowercased() + (text.hasSuffix(".") ? text.dropFirst().dropLast() : text.dropFirst())
    }
}

extension BLEError {
    /// Describes why the ATT server at a Unix socket cannot be reached.
    init(_ error: SystemCallError, connectingToSocket path: String) {
        // The kernel reports a plain file in the same way as a socket without a listener.
        let isFile = error.errno == ECONNREFUSED && SystemFiles.isOther(thanSocket: path)
        let number = isFile ? ENOTSOCK : error.errno
        let (code, reason, hint): (Code, String, String) =
            switch number {
            case ENOENT:
                (.connectFailed, "there is no such socket", "Start the server first, and check the path.")
            case ENOTSOCK:
                (.connectFailed, "it is not a socket", "Name the socket on which an ATT server listens.")
            case ECONNREFUSED:
                (.connectFailed, "there is no listener", "Start the server of this socket, and try again.")
            case EPROTOTYPE:
                (.connectFailed, "it is not a SEQPACKET socket", "An ATT server has one, where each packet is one PDU.")
            case EACCES, EPERM:
                (.notPermitted, "this user may not write to the socket", "Change its permissions, or use sudo.")
            case EAGAIN:
                (.busy, "too many clients are waiting for the server", "Try again later.")
            case ENAMETOOLONG:
                (.invalidArgument, "the path is too long for a socket", "It may have at most 107 bytes.")
            case EMFILE, ENFILE, ENOMEM, ENOBUFS:
                (.system, "the process or the machine has run out of descriptors or memory", error.remedy)
            default:
                (.connectFailed, "no ATT server can be reached there", "Start the server first, and check the path.")
            }
        self.init(
            code, subject: "unix:\(path)", during: "connect", because: reason, hint: hint, errorNumber: number)
    }
}

extension SystemCallError {
    /// The action that helps when a call for a file fails for a reason that lies in this machine.
    var remedy: String {
        switch errno {
        case EIO: "The disk may be failing: see `dmesg`."
        case ENOLCK, EOPNOTSUPP: "Its file system may not support that; choose a directory on another one."
        default: resourceRemedy
        }
    }

    /// As `remedy`, for a call that concerns an adapter or a link.
    var adapterRemedy: String {
        errno == EIO
            ? "The controller has reported a failure: see `dmesg`, and plug it in again." : resourceRemedy
    }

    private var resourceRemedy: String {
        switch errno {
        case EMFILE: "Close what is not needed, or allow more open files (`ulimit -n`, `LimitNOFILE=`); then try again."
        case ENFILE, ENOMEM, ENOBUFS: "End other programs, or try again when memory is free."
        default: "See `dmesg`, and try again."
        }
    }
}

extension BLEError {
    /// Blocking work needs a thread of its own, and none is available.
    static func noRoom(subject: String? = nil, during operation: String) -> BLEError {
        BLEError(
            .system, subject: subject, during: operation, because: "no further thread can be started",
            hint: "A disk that hangs may block them (`dmesg`), or the limit is too low (`TasksMax=`, `ulimit -u`).")
    }
}
