/// An advertising set was disabled by the controller: a central has connected, or the set's time or events are over.
///
///     0x3E 12 | status 1 | advertising handle 1 | connection handle 2 | events 1
///
/// Spec: HCI_LE_Advertising_Set_Terminated, Core Vol 4 Part E, 7.7.65.18.
package struct LEAdvertisingSetTerminated: Hashable, Sendable {
    /// Success if a central has connected; Advertising Timeout or Limit Reached otherwise.
    package let status: HCIStatus
    /// The advertising handle.
    package let advertisingHandle: UInt8
    /// The connection handle. Only valid on success.
    package let handle: ConnectionHandle
    /// The number of advertising events that were sent, if it was limited.
    package let completedEvents: UInt8

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let advertisingHandle = reader.u8(), let handle = reader.u16(),
            let completedEvents = reader.u8()
        else { throw MalformedPacket("HCI_LE_Advertising_Set_Terminated", at: reader.offset, .tooShort) }
        try reader.finish("HCI_LE_Advertising_Set_Terminated")
        self.status = HCIStatus(rawValue: status)
        self.advertisingHandle = advertisingHandle
        self.handle = handle & 0x0FFF
        self.completedEvents = completedEvents
    }
}

/// A scanner requested the scan response of an advertising set that reports this.
///
///     0x3E 13 | advertising handle 1 | scanner type 1 | scanner 6
///
/// Spec: HCI_LE_Scan_Request_Received, Core Vol 4 Part E, 7.7.65.19.
package struct LEScanRequestReceived: Hashable, Sendable {
    /// The advertising handle.
    package let advertisingHandle: UInt8
    /// The scanner, or `nil` if the controller reports an unknown address type.
    package let scanner: PeerID?

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let advertisingHandle = reader.u8(), let type = reader.u8(), let address = reader.address() else {
            throw MalformedPacket("HCI_LE_Scan_Request_Received", at: reader.offset, .tooShort)
        }
        try reader.finish("HCI_LE_Scan_Request_Received")
        self.advertisingHandle = advertisingHandle
        self.scanner = AddressType(rawValue: type).map { PeerID(address: address, type: $0) }
    }
}
