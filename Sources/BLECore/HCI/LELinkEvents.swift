/// A link has come up, or the call for it has failed or was taken back.
///
///     0x3E 01 | status 1 | handle 2 | role 1 | peer type 1 | peer 6 | interval 2 | latency 2 | time-out 2 | clock 1
///     0x3E 0A | the same, with own private address 6 and peer's private address 6 behind the peer
///     0x3E 29 | as 0A, with advertising handle 1 and sync handle 2 at the end
///
/// Spec: HCI_LE_Connection_Complete, HCI_LE_Enhanced_Connection_Complete [v1] and [v2], Core Vol 4 Part E, 7.7.65.1
/// and .10.
public struct LEConnectionComplete: Hashable, Sendable {
    enum Layout {
        case plain
        case enhanced
        case enhancedSecond
    }

    /// Success when the link is up; `unknownConnection` when the call was taken back.
    public let status: HCIStatus
    /// The link.
    public let handle: ConnectionHandle
    /// Whether this host called; otherwise the peer did.
    public let isCentral: Bool
    /// Who is at the other end; `nil` where the controller gives no known address type. Counts only on success.
    public let peer: PeerID?
    /// The private address that the peer uses, where the controller resolved it.
    public let peerPrivateAddress: BluetoothAddress?
    /// How the link runs: both bounds of the interval are the one in use.
    public let parameters: ConnectionParameters

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

    /// Whether it may tell of this host's call to `called`: one that was taken back may end without saying whom it was for.
    package func isOfCall(to called: PeerID) -> Bool {
        isCentral && (peer == called || !status.isSuccess && peer?.address ?? .zero == .zero)
    }
}

/// A link has other parameters now, or the request for them failed.
///
///     0x3E 03 | status 1 | handle 2 | interval 2 | latency 2 | time-out 2
///
/// Spec: HCI_LE_Connection_Update_Complete, Core Vol 4 Part E, 7.7.65.3.
public struct LEConnectionUpdateComplete: Hashable, Sendable {
    /// Success when the parameters are new.
    public let status: HCIStatus
    /// The link.
    public let handle: ConnectionHandle
    /// How the link runs now: both bounds of the interval are the one in use.
    public let parameters: ConnectionParameters

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

/// What the peer's controller can do.
///
///     0x3E 04 | status 1 | handle 2 | features 8
///
/// Spec: HCI_LE_Read_Remote_Features_Complete, Core Vol 4 Part E, 7.7.65.4.
public struct LERemoteFeaturesComplete: Hashable, Sendable {
    /// Success when the features count.
    public let status: HCIStatus
    /// The link.
    public let handle: ConnectionHandle
    /// What both sides can use.
    public let features: LEFeatures

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

/// How long packets of a link may be now.
///
///     0x3E 07 | handle 2 | transmit octets 2 | transmit time 2 | receive octets 2 | receive time 2
///
/// Spec: HCI_LE_Data_Length_Change, Core Vol 4 Part E, 7.7.65.7.
public struct LEDataLengthChange: Hashable, Sendable {
    /// The link.
    public let handle: ConnectionHandle
    /// The longest payload that we send.
    public let transmitOctets: UInt16
    /// The longest time that one of our packets takes, in microseconds.
    public let transmitTime: UInt16
    /// The longest payload that we receive.
    public let receiveOctets: UInt16
    /// The longest time that one of the peer's packets takes, in microseconds.
    public let receiveTime: UInt16

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

/// Which PHYs a link uses now, or why they did not change.
///
///     0x3E 0C | status 1 | handle 2 | transmit 1 | receive 1
///
/// Spec: HCI_LE_PHY_Update_Complete, Core Vol 4 Part E, 7.7.65.12.
public struct LEPHYUpdateComplete: Hashable, Sendable {
    /// Success when the PHYs count.
    public let status: HCIStatus
    /// The link.
    public let handle: ConnectionHandle
    /// What we send on.
    public let transmit: PHY
    /// What we receive on.
    public let receive: PHY

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
