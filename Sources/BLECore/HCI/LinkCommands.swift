/// Names a link on this host, 0 to 0x0EFF. It is used again for another link after this one has ended.
public typealias ConnectionHandle = UInt16

/// Ends a link.
///
///     0x0406 | handle 2 | reason 1      reply: Command Status, later HCIDisconnectionComplete
///
/// Spec: HCI_Disconnect, Core Vol 4 Part E, 7.1.6.
public struct HCIDisconnect: HCICommand {
    /// HCI_Disconnect.
    public static let opcode = HCIOpcode.disconnect
    /// The link to end.
    public let handle: ConnectionHandle
    /// What the peer is told.
    public let reason: HCIStatus

    /// Ends a link; the peer is told that the user did it.
    public init(handle: ConnectionHandle, reason: HCIStatus = .remoteUserTerminated) {
        self.handle = handle
        self.reason = reason
    }

    /// Handle and reason.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 3)
        writer.u16(handle)
        writer.u8(reason.rawValue)
        return writer.bytes
    }
}

/// Asks the peer's controller for its version.
///
///     0x041D | handle 2      reply: Command Status, later HCIReadRemoteVersionComplete
///
/// Spec: HCI_Read_Remote_Version_Information, Core Vol 4 Part E, 7.1.23.
public struct HCIReadRemoteVersion: HCICommand {
    /// HCI_Read_Remote_Version_Information.
    public static let opcode = HCIOpcode.readRemoteVersion
    /// The link to the peer.
    public let handle: ConnectionHandle

    /// Asks the peer at the other end of a link.
    public init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The handle.
    public var parameters: [UInt8] { littleEndian(handle) }
}

/// Asks how strong the peer's signal is.
///
///     0x1405 | handle 2      reply: handle 2 | RSSI 1
///
/// Spec: HCI_Read_RSSI, Core Vol 4 Part E, 7.5.4.
public struct HCIReadRSSI: HCIQuery {
    /// HCI_Read_RSSI.
    public static let opcode = HCIOpcode.readRSSI
    /// The link to the peer.
    public let handle: ConnectionHandle

    /// Asks about a link.
    public init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The handle.
    public var parameters: [UInt8] { littleEndian(handle) }

    /// What the controller measured.
    public struct Answer: Hashable, Sendable {
        /// The link.
        public let handle: ConnectionHandle
        /// Signal strength in dBm; `nil` when the controller cannot tell (127).
        public let rssi: Int8?
    }

    /// Reads the answer: handle and signal strength.
    public static func answer(from returned: Span<UInt8>) throws(MalformedPacket) -> Answer {
        var reader = ByteReader(returned)
        guard let handle = reader.u16(), let rssi = reader.i8() else {
            throw MalformedPacket("HCI_Read_RSSI", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_Read_RSSI")
        return Answer(handle: handle & 0x0FFF, rssi: rssi == 127 ? nil : rssi)
    }
}

/// Asks for other connection parameters.
///
///     0x2013 | handle 2 | interval 2, 2 | latency 2 | supervision time-out 2 | event length 2, 2
///     reply: Command Status, later LEConnectionUpdateComplete
///
/// Spec: HCI_LE_Connection_Update, Core Vol 4 Part E, 7.8.18.
public struct LEConnectionUpdate: HCICommand {
    /// HCI_LE_Connection_Update.
    public static let opcode = HCIOpcode.leConnectionUpdate
    /// The link to change.
    public let handle: ConnectionHandle
    /// How it is to run.
    public let connectionParameters: ConnectionParameters

    /// Asks for other parameters on a link.
    public init(handle: ConnectionHandle, parameters: ConnectionParameters) {
        self.handle = handle
        self.connectionParameters = parameters
    }

    /// Fourteen bytes.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 14)
        writer.u16(handle)
        writer.link(connectionParameters)
        return writer.bytes
    }
}

/// Asks what the peer's controller can do on LE.
///
///     0x2016 | handle 2      reply: Command Status, later LERemoteFeaturesComplete
///
/// Spec: HCI_LE_Read_Remote_Features, Core Vol 4 Part E, 7.8.21.
public struct LEReadRemoteFeatures: HCICommand {
    /// HCI_LE_Read_Remote_Features.
    public static let opcode = HCIOpcode.leReadRemoteFeatures
    /// The link to the peer.
    public let handle: ConnectionHandle

    /// Asks the peer at the other end of a link.
    public init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The handle.
    public var parameters: [UInt8] { littleEndian(handle) }
}

/// Suggests how long the packets that we send may be.
///
///     0x2022 | handle 2 | octets 2 (27 to 251) | time 2 (microseconds, 328 to 17,040)      reply: handle 2
///
/// Spec: HCI_LE_Set_Data_Length, Core Vol 4 Part E, 7.8.33.
public struct LESetDataLength: HCICommand {
    /// HCI_LE_Set_Data_Length.
    public static let opcode = HCIOpcode.leSetDataLength
    /// The link to change.
    public let handle: ConnectionHandle
    /// The longest payload to send.
    public let transmitOctets: UInt16
    /// The longest time that a packet may take, in microseconds.
    public let transmitTime: UInt16

    /// Suggests lengths within what the specification allows; the defaults are its largest.
    public init(handle: ConnectionHandle, transmitOctets: UInt16 = 251, transmitTime: UInt16 = 17_040) {
        self.handle = handle
        self.transmitOctets = min(max(transmitOctets, 27), 251)
        self.transmitTime = min(max(transmitTime, 328), 17_040)
    }

    /// Six bytes.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 6)
        writer.u16(handle)
        writer.u16(transmitOctets)
        writer.u16(transmitTime)
        return writer.bytes
    }
}

/// Asks which PHYs a link uses.
///
///     0x2030 | handle 2      reply: handle 2 | transmit 1 | receive 1
///
/// Spec: HCI_LE_Read_PHY, Core Vol 4 Part E, 7.8.47.
public struct LEReadPHY: HCIQuery {
    /// HCI_LE_Read_PHY.
    public static let opcode = HCIOpcode.leReadPHY
    /// The link in question.
    public let handle: ConnectionHandle

    /// Asks about a link.
    public init(handle: ConnectionHandle) {
        self.handle = handle
    }

    /// The handle.
    public var parameters: [UInt8] { littleEndian(handle) }

    /// The PHYs of a link.
    public struct Answer: Hashable, Sendable {
        /// The link.
        public let handle: ConnectionHandle
        /// What we send on.
        public let transmit: PHY
        /// What we receive on.
        public let receive: PHY
    }

    /// Reads the answer: handle and the two PHYs.
    public static func answer(from returned: Span<UInt8>) throws(MalformedPacket) -> Answer {
        var reader = ByteReader(returned)
        guard let handle = reader.u16(), let transmit = reader.u8(), let receive = reader.u8() else {
            throw MalformedPacket("HCI_LE_Read_PHY", at: returned.count, .tooShort)
        }
        try reader.finish("HCI_LE_Read_PHY")
        return Answer(
            handle: handle & 0x0FFF, transmit: PHY(rawValue: transmit), receive: PHY(rawValue: receive))
    }
}

/// Says which PHYs a link may use; the controllers choose among them.
///
///     0x2032 | handle 2 | no preference 1 | transmit 1 | receive 1 | options 2
///     reply: Command Status, later LEPHYUpdateComplete
///
/// Spec: HCI_LE_Set_PHY, Core Vol 4 Part E, 7.8.49.
public struct LESetPHY: HCICommand {
    /// HCI_LE_Set_PHY.
    public static let opcode = HCIOpcode.leSetPHY
    /// The link to change.
    public let handle: ConnectionHandle
    /// What we may send on; empty for no preference.
    public let transmit: LEPHYs
    /// What we may receive on; empty for no preference.
    public let receive: LEPHYs

    /// Says which PHYs a link may use.
    public init(handle: ConnectionHandle, transmit: LEPHYs, receive: LEPHYs) {
        self.handle = handle
        self.transmit = transmit
        self.receive = receive
    }

    /// Seven bytes.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 7)
        writer.u16(handle)
        writer.u8((transmit.isEmpty ? 1 : 0) | (receive.isEmpty ? 2 : 0))
        writer.u8(transmit.rawValue)
        writer.u8(receive.rawValue)
        writer.u16(0)
        return writer.bytes
    }
}

private func littleEndian(_ handle: ConnectionHandle) -> [UInt8] {
    [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
}
