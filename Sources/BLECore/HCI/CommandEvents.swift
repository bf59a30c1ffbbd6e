/// A command has completed, with its return parameters. A raw socket also receives events for other programs' commands.
///
///     0x0E | commands that the host may send 1 | opcode 2 | return parameters
///
/// Spec: HCI_Command_Complete, Core Vol 4 Part E, 7.7.14.
package struct HCICommandComplete: Hashable, Sendable {
    /// The number of commands that the host may send now; 0 means wait.
    package let credits: UInt8
    /// The completed command, or `none` if only the credits changed.
    package let opcode: HCIOpcode
    /// The return parameters; nearly always beginning with a status.
    package let returnParameters: [UInt8]

    /// Creates an event.
    package init(credits: UInt8, opcode: HCIOpcode, returnParameters: [UInt8]) {
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

    /// The status at the start of the return parameters, or `nil` if there are none.
    package var status: HCIStatus? {
        returnParameters.first.map { HCIStatus(rawValue: $0) }
    }

    /// Decodes the return parameters of a query after the status.
    ///
    /// - Throws: `HCICommandFailure` with the controller's status, or with the defect of the parameters.
    package func parameters<Query: HCIQuery>(of query: Query.Type) throws(HCICommandFailure) -> Query.ReturnParameters {
        guard opcode == Query.opcode, let status else {
            throw HCICommandFailure(opcode: Query.opcode, reason: .noResponse)
        }
        guard status.isSuccess else { throw HCICommandFailure(opcode: opcode, reason: .status(status)) }
        do throws(MalformedPacket) {
            return try Query.parameters(from: returnParameters.span.extracting(droppingFirst: 1))
        } catch {
            throw HCICommandFailure(opcode: opcode, reason: .malformed(error))
        }
    }
}

/// A command was started or rejected. Its result is reported by a separate event.
///
///     0x0F | status 1 | commands that the host may send 1 | opcode 2
///
/// Spec: HCI_Command_Status, Core Vol 4 Part E, 7.7.15.
package struct HCICommandStatus: Hashable, Sendable {
    /// Success if the command was started, otherwise the reason for its rejection.
    package let status: HCIStatus
    /// The number of commands that the host may send now; 0 means wait.
    package let credits: UInt8
    /// The command, or `none` if only the credits changed.
    package let opcode: HCIOpcode

    /// Creates an event.
    package init(status: HCIStatus, credits: UInt8, opcode: HCIOpcode) {
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

/// The failure of a command.
package struct HCICommandFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause of a failure.
    package enum Reason: Hashable, Sendable {
        /// The controller returned an error status.
        case status(HCIStatus)
        /// The controller did not respond within 2 s.
        case timeout
        /// The controller's response does not fit the command.
        case malformed(MalformedPacket)
        /// The controller's response lacks the requested parameters.
        case noResponse
        /// Too many commands are queued.
        case queueFull
        /// The caller no longer waits for the response.
        case cancelled
        /// The adapter was removed, switched off or reset.
        case adapterLost
        /// The kernel rejected the packet with this error number.
        case notSent(errno: Int32)
    }

    /// The failed command.
    package let opcode: HCIOpcode
    /// The cause.
    package let reason: Reason

    /// Creates a failure.
    package init(opcode: HCIOpcode, reason: Reason) {
        self.opcode = opcode
        self.reason = reason
    }

    /// The controller's status, if that was the cause.
    package var status: HCIStatus? {
        if case .status(let status) = reason { return status }
        return nil
    }

    /// A message such as "LE Set Scan Enable (0x200c): Command Disallowed (0x0c)".
    package var description: String {
        let why =
            switch reason {
            case .status(let status): status.description
            case .timeout: "the controller did not respond within 2 s"
            case .malformed(let packet): packet.description
            case .noResponse: "the controller's response is empty"
            case .queueFull: "too many commands are queued"
            case .cancelled: "cancelled"
            case .adapterLost: "the adapter was removed, switched off or reset"
            case .notSent(let errno): "the kernel rejected the packet with error \(errno)"
            }
        return "\(opcode): \(why)"
    }
}
