/// The handle of a connection, 0 to 0x0EFF. It is reused after the connection has ended.
package typealias ConnectionHandle = UInt16

/// Disconnects a link.
///
///     0x0406 | handle 2 | reason 1      reply: Command Status, later HCIDisconnectionComplete
///
/// Spec: HCI_Disconnect, Core Vol 4 Part E, 7.1.6.
package struct HCIDisconnect: HCICommand {
    /// HCI_Disconnect.
    package static let opcode = HCIOpcode.disconnect
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The reason that is sent to the peer.
    package let reason: HCIStatus

    /// Creates a command that disconnects a link; by default, the peer receives "Remote User Terminated Connection".
    package init(handle: ConnectionHandle, reason: HCIStatus = .remoteUserTerminated) {
        self.handle = handle
        self.reason = reason
    }

    /// The connection handle and the reason.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 3)
        writer.u16(handle)
        writer.u8(reason.rawValue)
        return writer.bytes
    }
}

/// Requests the version of the peer's controller.
///
///     0x041D | handle 2      reply: Command Status, later HCIReadRemoteVersionComplete
///
/// Spec: HCI_Read_Remote_Version_Information, Core Vol 4 Part E, 7.1.23.
package struct HCIReadRemoteVersion: HCICommand {
    /// HCI_Read_Remote_Version_Information.
    package static let opcode = HCIOpcode.readRemoteVersion
    /// The connection handle.
    package let handle: ConnectionHandle

    /// Creates a request to the peer of a connection.
    package init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The connection handle.
    package var parameters: [UInt8] { littleEndian(handle) }
}

/// Reads the signal strength of a link.
///
///     0x1405 | handle 2      reply: handle 2 | RSSI 1
///
/// Spec: HCI_Read_RSSI, Core Vol 4 Part E, 7.5.4.
package struct HCIReadRSSI: HCIQuery {
    /// HCI_Read_RSSI.
    package static let opcode = HCIOpcode.readRSSI
    /// The connection handle.
    package let handle: ConnectionHandle

    /// Creates a query for a connection.
    package init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The connection handle.
    package var parameters: [UInt8] { littleEndian(handle) }

    /// The return parameters of the command.
    package struct ReturnParameters: Hashable, Sendable {
        /// The connection handle.
        package let handle: ConnectionHandle
        /// The signal strength in dBm, or `nil` if not available (127).
        package let rssi: Int8?
    }

    /// Decodes the return parameters: handle and signal strength.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> ReturnParameters {
        var reader = ByteReader(returned)
        guard let handle = reader.u16(), let rssi = reader.i8() else {
            throw MalformedPacket("HCI_Read_RSSI", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_Read_RSSI")
        return ReturnParameters(handle: handle & 0x0FFF, rssi: rssi == 127 ? nil : rssi)
    }
}

/// Requests a change of the connection parameters.
///
///     0x2013 | handle 2 | interval 2, 2 | latency 2 | supervision timeout 2 | event length 2, 2
///     reply: Command Status, later LEConnectionUpdateComplete
///
/// Spec: HCI_LE_Connection_Update, Core Vol 4 Part E, 7.8.18.
package struct LEConnectionUpdate: HCICommand {
    /// HCI_LE_Connection_Update.
    package static let opcode = HCIOpcode.leConnectionUpdate
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The requested connection parameters.
    package let connectionParameters: ConnectionParameters

    /// Creates a request for a link.
    package init(handle: ConnectionHandle, parameters: ConnectionParameters) {
        self.handle = handle
        self.connectionParameters = parameters
    }

    /// The 14 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 14)
        writer.u16(handle)
        writer.link(connectionParameters)
        return writer.bytes
    }
}

/// Requests the LE features of the peer's controller.
///
///     0x2016 | handle 2      reply: Command Status, later LERemoteFeaturesComplete
///
/// Spec: HCI_LE_Read_Remote_Features, Core Vol 4 Part E, 7.8.21.
package struct LEReadRemoteFeatures: HCICommand {
    /// HCI_LE_Read_Remote_Features.
    package static let opcode = HCIOpcode.leReadRemoteFeatures
    /// The connection handle.
    package let handle: ConnectionHandle

    /// Creates a request to the peer of a connection.
    package init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The connection handle.
    package var parameters: [UInt8] { littleEndian(handle) }
}

/// Encrypts a link with a key of an earlier pairing, or changes its key.
///
///     0x2019 | handle 2 | Rand 8 | EDIV 2 | key 16
///     reply: Command Status, later HCIEncryptionChange, or HCIEncryptionKeyRefresh if the link was encrypted before
///
/// Spec: HCI_LE_Enable_Encryption, Core Vol 4 Part E, 7.8.24.
package struct LEEnableEncryption: HCICommand {
    /// HCI_LE_Enable_Encryption.
    package static let opcode = HCIOpcode.leEnableEncryption
    /// The connection handle.
    package let handle: ConnectionHandle
    /// Names the key to the peer; zero for Secure Connections.
    package let rand: UInt64
    /// Names the key to the peer; zero for Secure Connections.
    package let ediv: UInt16
    /// The Long Term Key.
    package let key: Secret128

    /// Creates a command that encrypts a link.
    package init(handle: ConnectionHandle, rand: UInt64, ediv: UInt16, key: Secret128) {
        self.handle = handle
        self.rand = rand
        self.ediv = ediv
        self.key = key
    }

    /// The 28 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 28)
        writer.u16(handle)
        writer.u64(rand)
        writer.u16(ediv)
        writer.secret(key)
        return writer.bytes
    }
}

/// Suggests the maximum length of transmitted packets.
///
///     0x2022 | handle 2 | octets 2 (27 to 251) | time 2 (microseconds, 328 to 17,040)      reply: handle 2
///
/// Spec: HCI_LE_Set_Data_Length, Core Vol 4 Part E, 7.8.33.
package struct LESetDataLength: HCICommand {
    /// HCI_LE_Set_Data_Length.
    package static let opcode = HCIOpcode.leSetDataLength
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The maximum payload to send, in bytes.
    package let transmitOctets: UInt16
    /// The maximum time to send a packet, in microseconds.
    package let transmitTime: UInt16

    /// Creates a suggestion; the defaults are the maximum that the specification allows.
    package init(handle: ConnectionHandle, transmitOctets: UInt16 = 251, transmitTime: UInt16 = 17_040) {
        self.handle = handle
        self.transmitOctets = min(max(transmitOctets, 27), 251)
        self.transmitTime = min(max(transmitTime, 328), 17_040)
    }

    /// The 6 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 6)
        writer.u16(handle)
        writer.u16(transmitOctets)
        writer.u16(transmitTime)
        return writer.bytes
    }
}

/// Reads the PHYs of a link.
///
///     0x2030 | handle 2      reply: handle 2 | transmit 1 | receive 1
///
/// Spec: HCI_LE_Read_PHY, Core Vol 4 Part E, 7.8.47.
package struct LEReadPHY: HCIQuery {
    /// HCI_LE_Read_PHY.
    package static let opcode = HCIOpcode.leReadPHY
    /// The connection handle.
    package let handle: ConnectionHandle

    /// Creates a query for a connection.
    package init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The connection handle.
    package var parameters: [UInt8] { littleEndian(handle) }

    /// The return parameters of the command.
    package struct ReturnParameters: Hashable, Sendable {
        /// The connection handle.
        package let handle: ConnectionHandle
        /// The PHY of the transmitter.
        package let transmit: PHY
        /// The PHY of the receiver.
        package let receive: PHY
    }

    /// Decodes the return parameters: handle and the two PHYs.
    package static func parameters(from returned: Span<UInt8>) throws(MalformedPacket) -> ReturnParameters {
        var reader = ByteReader(returned)
        guard let handle = reader.u16(), let transmit = reader.u8(), let receive = reader.u8() else {
            throw MalformedPacket("HCI_LE_Read_PHY", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_LE_Read_PHY")
        return ReturnParameters(
            handle: handle & 0x0FFF, transmit: PHY(rawValue: transmit), receive: PHY(rawValue: receive))
    }
}

/// Sets the PHYs that a link may use; the controllers choose among them.
///
///     0x2032 | handle 2 | no preference 1 | transmit 1 | receive 1 | options 2
///     reply: Command Status, later LEPHYUpdateComplete
///
/// Spec: HCI_LE_Set_PHY, Core Vol 4 Part E, 7.8.49.
package struct LESetPHY: HCICommand {
    /// HCI_LE_Set_PHY.
    package static let opcode = HCIOpcode.leSetPHY
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The PHYs that may be used to transmit; empty for no preference.
    package let transmit: LEPHYs
    /// The PHYs that may be used to receive; empty for no preference.
    package let receive: LEPHYs

    /// Creates a preference for a link.
    package init(handle: ConnectionHandle, transmit: LEPHYs, receive: LEPHYs) {
        self.handle = handle
        self.transmit = transmit
        self.receive = receive
    }

    /// The 7 bytes of parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 7)
        writer.u16(handle)
        writer.u8((transmit.isEmpty ? 1 : 0) | (receive.isEmpty ? 2 : 0))
        writer.u8(transmit.rawValue)
        writer.u8(receive.rawValue)
        writer.u16(0)
        return writer.bytes
    }
}

/// Sets the PHYs that links may use from now on, also where the peer proposes a change.
///
///     0x2031 | no preference 1 | transmit 1 | receive 1      reply: status
///
/// Spec: HCI_LE_Set_Default_PHY, Core Vol 4 Part E, 7.8.48.
package struct LESetDefaultPHY: HCICommand {
    /// HCI_LE_Set_Default_PHY.
    package static let opcode = HCIOpcode.leSetDefaultPHY
    /// The PHYs that may be used to transmit and to receive; empty for no preference.
    package let phys: LEPHYs

    /// Creates a preference for links that are to come.
    package init(_ phys: LEPHYs) {
        self.phys = phys
    }

    /// No preference in either direction, or one for both.
    package var parameters: [UInt8] { [phys.isEmpty ? 3 : 0, phys.rawValue, phys.rawValue] }
}

private func littleEndian(_ handle: ConnectionHandle) -> [UInt8] {
    [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
}
