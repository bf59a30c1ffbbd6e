/// A command is done; its return parameters are here. Not every one that a raw socket shows was ours.
///
///     0x0E | commands the controller can take 1 | opcode 2 | return parameters
///
/// Spec: HCI_Command_Complete, Core Vol 4 Part E, 7.7.14.
public struct HCICommandComplete: Hashable, Sendable {
    /// How many commands the controller can take now; 0 means wait.
    public let credits: UInt8
    /// The command that is done; `none` when only the credits are news.
    public let opcode: HCIOpcode
    /// What the command returned; nearly always a status first.
    public let returnParameters: [UInt8]

    /// A completion made of its parts.
    public init(credits: UInt8, opcode: HCIOpcode, returnParameters: [UInt8]) {
        self.credits = credits
        self.opcode = opcode
        self.returnParameters = returnParameters
    }

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let credits = reader.u8(), let opcode = reader.u16() else {
            throw MalformedPacket("HCI_Command_Complete", at: reader.offset, .tooShort)
        }
        self.init(credits: credits, opcode: HCIOpcode(rawValue: opcode), returnParameters: reader.rest())
    }

    /// The status in front of the return parameters; `nil` when nothing was returned.
    public var status: HCIStatus? {
        returnParameters.first.map { HCIStatus(rawValue: $0) }
    }

    /// The answer to a query, read from what follows the status.
    ///
    /// - Throws: `HCICommandFailure` with the controller's status, or with what is wrong with the bytes.
    public func answer<Query: HCIQuery>(to query: Query.Type) throws(HCICommandFailure) -> Query.Answer {
        guard opcode == Query.opcode, let status else {
            throw HCICommandFailure(opcode: Query.opcode, reason: .noAnswer)
        }
        guard status.isSuccess else { throw HCICommandFailure(opcode: opcode, reason: .status(status)) }
        do throws(MalformedPacket) {
            return try Query.answer(from: returnParameters.span.extracting(droppingFirst: 1))
        } catch {
            throw HCICommandFailure(opcode: opcode, reason: .malformed(error))
        }
    }
}

/// A command has begun, or was refused; what it leads to comes as an event of its own.
///
///     0x0F | status 1 | commands the controller can take 1 | opcode 2
///
/// Spec: HCI_Command_Status, Core Vol 4 Part E, 7.7.15.
public struct HCICommandStatus: Hashable, Sendable {
    /// Success for "has begun", else why not.
    public let status: HCIStatus
    /// How many commands the controller can take now; 0 means wait.
    public let credits: UInt8
    /// The command; `none` when only the credits are news.
    public let opcode: HCIOpcode

    /// A status made of its parts.
    public init(status: HCIStatus, credits: UInt8, opcode: HCIOpcode) {
        self.status = status
        self.credits = credits
        self.opcode = opcode
    }

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let credits = reader.u8(), let opcode = reader.u16() else {
            throw MalformedPacket("HCI_Command_Status", at: reader.offset, .tooShort)
        }
        try reader.finish("HCI_Command_Status")
        self.init(status: HCIStatus(rawValue: status), credits: credits, opcode: HCIOpcode(rawValue: opcode))
    }
}

/// Why a command did not do what it was for.
public struct HCICommandFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause.
    public enum Reason: Hashable, Sendable {
        /// The controller refused.
        case status(HCIStatus)
        /// The controller did not answer within 2 s.
        case timeout
        /// The controller's answer does not fit the command.
        case malformed(MalformedPacket)
        /// The controller's answer lacks what was asked for.
        case noAnswer
        /// Too many commands are waiting already.
        case queueFull
        /// Nobody waits for the answer any more.
        case cancelled
        /// The adapter was unplugged, switched off or reset.
        case adapterLost
        /// The kernel did not take the packet; its error number.
        case notSent(errno: Int32)
    }

    /// The command.
    public let opcode: HCIOpcode
    /// The cause.
    public let reason: Reason

    /// Names a command and why it failed.
    public init(opcode: HCIOpcode, reason: Reason) {
        self.opcode = opcode
        self.reason = reason
    }

    /// The controller's status, when that was the cause.
    public var status: HCIStatus? {
        if case .status(let status) = reason { return status }
        return nil
    }

    /// A sentence such as "LE Set Scan Enable (0x200c): Command Disallowed (0x0c)".
    public var description: String {
        let why =
            switch reason {
            case .status(let status): status.description
            case .timeout: "the controller did not answer within 2 s"
            case .malformed(let packet): packet.description
            case .noAnswer: "the controller's answer is empty"
            case .queueFull: "too many commands are waiting"
            case .cancelled: "cancelled"
            case .adapterLost: "the adapter is gone, switched off or was reset"
            case .notSent(let errno): "the kernel refused the packet with error \(errno)"
            }
        return "\(opcode): \(why)"
    }
}
