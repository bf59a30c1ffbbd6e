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
        /// 0x0004: an adapter has appeared.
        case indexAdded
        /// 0x0005: an adapter is gone.
        case indexRemoved
        /// 0x0006: settings of an adapter have changed; these are all of them.
        case newSettings(ManagementSettings)
        /// 0x000A: a pairing has made a Long Term Key.
        case newLongTermKey(ManagementNewLongTermKey)
        /// 0x000B: a link has come up.
        case deviceConnected(ManagementDeviceConnected)
        /// 0x000C: a link has ended.
        case deviceDisconnected(ManagementDeviceDisconnected)
        /// 0x000F: the kernel asks whether to continue a pairing.
        case userConfirmationRequest(ManagementUserConfirmationRequest)
        /// 0x0010: the kernel asks for the passkey that the peer shows.
        case userPasskeyRequest(ManagementUserPasskeyRequest)
        /// 0x0011: a pairing has failed.
        case authenticationFailed(ManagementAuthenticationFailed)
        /// 0x0015: another program has taken a peer, or all of them, off the list of blocked ones.
        case deviceUnblocked(ManagementPeer)
        /// 0x0016: another program has removed the keys of a peer.
        case deviceUnpaired(ManagementDeviceUnpaired)
        /// 0x0017: the passkey that this side has to show.
        case passkeyNotify(ManagementPasskeyNotify)
        /// 0x0018: a peer has distributed its identity.
        case newIdentityResolvingKey(ManagementNewIdentityResolvingKey)
        /// 0x0019: a pairing has made a key for signed commands.
        case newSignatureKey(ManagementNewSignatureKey)
        /// 0x0023: another program has added the advertising instance with this number.
        case advertisingAdded(UInt8)
        /// 0x0024: another program, or the kernel itself, has removed the advertising instance with this number.
        case advertisingRemoved(UInt8)
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
        let parameters = packet.parameters.span
        content =
            switch packet.code {
            case 0x0001: .commandComplete(try ManagementCommandComplete(parameters))
            case 0x0002: .commandStatus(try ManagementCommandStatus(parameters))
            case 0x0004: try Self.empty("mgmt_ev_index_added", parameters, .indexAdded)
            case 0x0005: try Self.empty("mgmt_ev_index_removed", parameters, .indexRemoved)
            case 0x0006: .newSettings(try ManagementSettings(decoding: parameters))
            case 0x000A: .newLongTermKey(try ManagementNewLongTermKey(parameters))
            case 0x000B: .deviceConnected(try ManagementDeviceConnected(parameters))
            case 0x000C: .deviceDisconnected(try ManagementDeviceDisconnected(parameters))
            case 0x000F: .userConfirmationRequest(try ManagementUserConfirmationRequest(parameters))
            case 0x0010: .userPasskeyRequest(try ManagementUserPasskeyRequest(parameters))
            case 0x0011: .authenticationFailed(try ManagementAuthenticationFailed(parameters))
            case 0x0015: .deviceUnblocked(try ManagementPeer("mgmt_ev_device_unblocked", parameters))
            case 0x0016: .deviceUnpaired(try ManagementDeviceUnpaired(parameters))
            case 0x0017: .passkeyNotify(try ManagementPasskeyNotify(parameters))
            case 0x0018: .newIdentityResolvingKey(try ManagementNewIdentityResolvingKey(parameters))
            case 0x0019: .newSignatureKey(try ManagementNewSignatureKey(parameters))
            case 0x0023: .advertisingAdded(try Self.instance("mgmt_ev_advertising_added", parameters))
            case 0x0024: .advertisingRemoved(try Self.instance("mgmt_ev_advertising_removed", parameters))
            default: .unknown(code: packet.code, parameters: packet.parameters)
            }
    }

    private static func empty(
        _ format: StaticString, _ parameters: Span<UInt8>, _ content: Content
    ) throws(MalformedPacket) -> Content {
        if !parameters.isEmpty { throw MalformedPacket(format, at: 0, .trailingBytes(parameters.count)) }
        return content
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
        default:
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
