/// A connection attempt has ended: the link was established, or the attempt failed or was cancelled.
///
///     0x3E 01 | status 1 | handle 2 | role 1 | peer type 1 | peer 6 | interval 2 | latency 2 | timeout 2 | clock 1
///     0x3E 0A | the same, with local private address 6 and peer private address 6 after the peer
///     0x3E 29 | as 0A, with advertising handle 1 and sync handle 2 at the end
///
/// Spec: HCI_LE_Connection_Complete, HCI_LE_Enhanced_Connection_Complete [v1] and [v2], Core Vol 4 Part E, 7.7.65.1
/// and .10.
package struct LEConnectionComplete: Hashable, Sendable {
    enum Layout {
        case plain
        case enhanced
        case enhancedSecond
    }

    /// Success if the link is established; `unknownConnection` if the attempt was cancelled.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle
    /// A Boolean value that indicates whether this host initiated the connection; otherwise the peer did.
    package let isCentral: Bool
    /// The peer, or `nil` if the controller reports an unknown address type. Only valid on success.
    package let peer: PeerID?
    /// The private address that the peer uses, if the controller resolved it.
    package let peerPrivateAddress: BluetoothAddress?
    /// The connection parameters; both bounds of the interval are the one in use.
    package let parameters: ConnectionParameters

    init(_ reader: inout ByteReader, layout: Layout) throws(MalformedPacket) {
        let format: StaticString =
            layout == .plain ? "HCI_LE_Connection_Complete" : "HCI_LE_Enhanced_Connection_Complete"
        guard let status = reader.u8(), let handle = reader.u16(), let role = reader.u8(), let type = reader.u8(),
            let address = reader.address()
        else { throw MalformedPacket(format, at: reader.offset, .tooShort) }
        var resolved: BluetoothAddress?
        if layout != .plain {
            guard reader.skip(6), let peerPrivate = reader.address() else {
                throw MalformedPacket(format, at: reader.offset, .tooShort)
            }
            resolved = peerPrivate == .zero ? nil : peerPrivate
        }
        guard let interval = reader.u16(), let latency = reader.u16(), let timeout = reader.u16(), reader.skip(1),
            layout != .enhancedSecond || reader.skip(3)
        else { throw MalformedPacket(format, at: reader.offset, .tooShort) }
        try reader.finish(format)
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.isCentral = role == 0
        self.peer = AddressType(rawValue: type).map { PeerID(address: address, type: $0) }
        self.peerPrivateAddress = resolved
        self.parameters = ConnectionParameters(
            intervalMin: interval, intervalMax: interval, latency: latency, timeout: timeout)
    }

    /// Returns true if the event may end this host's connection attempt to `target`. A cancelled attempt may complete
    /// without the peer's address.
    package func mayEndAttempt(to target: PeerID) -> Bool {
        isCentral && (peer == target || !status.isSuccess && peer?.address ?? .zero == .zero)
    }
}

/// A link's connection parameters changed, or the change failed.
///
///     0x3E 03 | status 1 | handle 2 | interval 2 | latency 2 | timeout 2
///
/// Spec: HCI_LE_Connection_Update_Complete, Core Vol 4 Part E, 7.7.65.3.
package struct LEConnectionUpdateComplete: Hashable, Sendable {
    /// Success if the parameters changed.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The new connection parameters; both bounds of the interval are the one in use.
    package let parameters: ConnectionParameters

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16(), let interval = reader.u16(),
            let latency = reader.u16(), let timeout = reader.u16()
        else { throw MalformedPacket("HCI_LE_Connection_Update_Complete", at: reader.offset, .tooShort) }
        try reader.finish("HCI_LE_Connection_Update_Complete")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.parameters = ConnectionParameters(
            intervalMin: interval, intervalMax: interval, latency: latency, timeout: timeout)
    }
}

/// The features of the peer's controller.
///
///     0x3E 04 | status 1 | handle 2 | features 8
///
/// Spec: HCI_LE_Read_Remote_Features_Complete, Core Vol 4 Part E, 7.7.65.4.
package struct LERemoteFeaturesComplete: Hashable, Sendable {
    /// Success if `features` is valid.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The features that both sides support.
    package let features: LEFeatures

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16(), let features = reader.u64() else {
            throw MalformedPacket("HCI_LE_Read_Remote_Features_Complete", at: reader.offset, .tooShort)
        }
        try reader.finish("HCI_LE_Read_Remote_Features_Complete")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.features = LEFeatures(rawValue: features)
    }
}

/// A link's maximum packet lengths changed.
///
///     0x3E 07 | handle 2 | transmit octets 2 | transmit time 2 | receive octets 2 | receive time 2
///
/// Spec: HCI_LE_Data_Length_Change, Core Vol 4 Part E, 7.7.65.7.
package struct LEDataLengthChange: Hashable, Sendable {
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The maximum payload that the host's controller sends, in bytes.
    package let transmitOctets: UInt16
    /// The maximum time to send a packet, in microseconds.
    package let transmitTime: UInt16
    /// The maximum payload that the peer sends, in bytes.
    package let receiveOctets: UInt16
    /// The maximum time for the peer to send a packet, in microseconds.
    package let receiveTime: UInt16

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let handle = reader.u16(), let transmitOctets = reader.u16(), let transmitTime = reader.u16(),
            let receiveOctets = reader.u16(), let receiveTime = reader.u16()
        else { throw MalformedPacket("HCI_LE_Data_Length_Change", at: reader.offset, .tooShort) }
        try reader.finish("HCI_LE_Data_Length_Change")
        self.handle = handle & 0x0FFF
        self.transmitOctets = transmitOctets
        self.transmitTime = transmitTime
        self.receiveOctets = receiveOctets
        self.receiveTime = receiveTime
    }
}

/// A link's PHYs changed, or the change failed.
///
///     0x3E 0C | status 1 | handle 2 | transmit 1 | receive 1
///
/// Spec: HCI_LE_PHY_Update_Complete, Core Vol 4 Part E, 7.7.65.12.
package struct LEPHYUpdateComplete: Hashable, Sendable {
    /// Success if the PHYs are valid.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The PHY of the transmitter.
    package let transmit: PHY
    /// The PHY of the receiver.
    package let receive: PHY

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16(), let transmit = reader.u8(),
            let receive = reader.u8()
        else { throw MalformedPacket("HCI_LE_PHY_Update_Complete", at: reader.offset, .tooShort) }
        try reader.finish("HCI_LE_PHY_Update_Complete")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.transmit = PHY(rawValue: transmit)
        self.receive = PHY(rawValue: receive)
    }
}
