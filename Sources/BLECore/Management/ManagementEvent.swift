/// A packet that the kernel sends on the management interface: a response to a command, or an event of an adapter.
///
/// Events that are not decoded here are kept with their code and parameters.
///
/// Spec: Bluetooth Management API, Events.
package struct ManagementEvent: Hashable, Sendable {
    /// An event without its adapter.
    package enum Content: Hashable, Sendable {
        /// 0x0001: a command has completed.
        case commandComplete(ManagementCommandComplete)
        /// 0x0002: a command has failed, or returns nothing.
        case commandStatus(ManagementCommandStatus)
        /// Any other event.
        case unknown(code: UInt16, parameters: [UInt8])
    }

    /// The index of the adapter, or `nil` if the event concerns no adapter.
    package let adapter: UInt16?
    /// The event.
    package let content: Content

    /// Decodes an event as it was read from the socket.
    ///
    /// - Throws: `MalformedPacket` if the length field does not match the number of bytes, or if a known event does not
    ///   match its layout.
    package init(_ packet: Span<UInt8>) throws(MalformedPacket) {
        let packet = try ManagementPacket(packet)
        adapter = packet.adapter
        content =
            switch packet.code {
            case 0x0001: .commandComplete(try ManagementCommandComplete(packet.parameters.span))
            case 0x0002: .commandStatus(try ManagementCommandStatus(packet.parameters.span))
            default: .unknown(code: packet.code, parameters: packet.parameters)
            }
    }

    /// Returns the outcome of a command if this event is its response, or `nil` for every other event.
    ///
    /// - Parameters:
    ///   - command: The type of the pending command.
    ///   - adapter: The adapter that the command was sent to.
    package func response<Command: ManagementCommand>(
        to command: Command.Type, of adapter: UInt16?
    ) -> Result<Command.Response, ManagementFailure>? {
        guard adapter == self.adapter else { return nil }
        switch content {
        case .commandStatus(let status):
            guard status.command == Command.code else { return nil }
            return .failure(.status(status.status))
        case .commandComplete(let complete):
            guard complete.command == Command.code else { return nil }
            guard complete.status == .success else { return .failure(.status(complete.status)) }
            do throws(MalformedPacket) {
                return .success(try Command.response(from: complete.returnParameters.span))
            } catch {
                return .failure(.malformed(error))
            }
        case .unknown:
            return nil
        }
    }
}

/// The reason for which a management command has no result.
package enum ManagementFailure: Error, Hashable, Sendable {
    /// The kernel refused the command. It is `.success` where a command that returns something ends with Command
    /// Status.
    case status(ManagementStatus)
    /// The return parameters do not match the layout of the command.
    case malformed(MalformedPacket)
}

/// A command has completed.
///
///     0x0001 | command 2 | status 1 | return parameters
///
/// Spec: MGMT_EV_CMD_COMPLETE; Bluetooth Management API, Command Complete Event.
package struct ManagementCommandComplete: Hashable, Sendable {
    /// The command.
    package let command: ManagementCommandCode
    /// The status; return parameters may follow a failure too.
    package let status: ManagementStatus
    /// The encoded return parameters.
    package let returnParameters: [UInt8]

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let command = reader.u16(), let status = reader.u8() else {
            throw MalformedPacket("mgmt_ev_cmd_complete", at: parameters.count, .tooShort)
        }
        self.command = ManagementCommandCode(rawValue: command)
        self.status = ManagementStatus(rawValue: status)
        returnParameters = reader.rest()
    }
}

/// A command has failed, or returns nothing.
///
///     0x0002 | command 2 | status 1
///
/// Spec: MGMT_EV_CMD_STATUS; Bluetooth Management API, Command Status Event.
package struct ManagementCommandStatus: Hashable, Sendable {
    /// The command.
    package let command: ManagementCommandCode
    /// The status.
    package let status: ManagementStatus

    init(_ parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let command = reader.u16(), let status = reader.u8() else {
            throw MalformedPacket("mgmt_ev_cmd_status", at: parameters.count, .tooShort)
        }
        try reader.finish("mgmt_ev_cmd_status")
        self.command = ManagementCommandCode(rawValue: command)
        self.status = ManagementStatus(rawValue: status)
    }
}
