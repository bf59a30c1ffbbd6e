/// A link has ended, or the request to end it failed.
///
///     0x05 | status 1 | handle 2 | reason 1
///
/// Spec: HCI_Disconnection_Complete, Core Vol 4 Part E, 7.7.5.
public struct HCIDisconnectionComplete: Hashable, Sendable {
    /// Success when the link has ended.
    public let status: HCIStatus
    /// The link; its handle may be used again from now on.
    public let handle: ConnectionHandle
    /// Why it ended.
    public let reason: HCIStatus

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16(), let reason = reader.u8() else {
            throw MalformedPacket("HCI_Disconnection_Complete", at: reader.offset, .tooShort)
        }
        try reader.finish("HCI_Disconnection_Complete")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.reason = HCIStatus(rawValue: reason)
    }
}

/// Encryption of a link was switched on or off, or could not be.
///
///     0x08 | status 1 | handle 2 | enabled 1
///     0x59 | the same | key size 1
///
/// Spec: HCI_Encryption_Change, Core Vol 4 Part E, 7.7.8.
public struct HCIEncryptionChange: Hashable, Sendable {
    /// Why it could not be; `keyMissing` when the peer lost its key.
    public let status: HCIStatus
    /// The link.
    public let handle: ConnectionHandle
    /// 0 off, 1 AES-CCM on LE, 2 AES-CCM on BR/EDR.
    public let mode: UInt8
    /// Bytes of the key, where the controller tells.
    public let keySize: UInt8?

    /// Whether the link is encrypted now.
    public var isEncrypted: Bool { mode != 0 }

    init(_ reader: inout ByteReader, reportsKeySize: Bool) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16(), let mode = reader.u8() else {
            throw MalformedPacket("HCI_Encryption_Change", at: reader.offset, .tooShort)
        }
        let size = reader.u8()
        guard (size != nil) == reportsKeySize else {
            throw MalformedPacket(
                "HCI_Encryption_Change", at: reader.offset, size == nil ? .tooShort : .trailingBytes(1))
        }
        try reader.finish("HCI_Encryption_Change")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.mode = mode
        self.keySize = size
    }
}

/// The version of the peer's controller.
///
///     0x0C | status 1 | handle 2 | version 1 | company 2 | subversion 2
///
/// Spec: HCI_Read_Remote_Version_Information_Complete, Core Vol 4 Part E, 7.7.12.
public struct HCIReadRemoteVersionComplete: Hashable, Sendable {
    /// Success when the rest counts.
    public let status: HCIStatus
    /// The link to the peer.
    public let handle: ConnectionHandle
    /// The version of the link layer; `HCIVersion.specification(of:)` is its name.
    public let version: UInt8
    /// The maker's company identifier.
    public let company: UInt16
    /// The maker's version.
    public let subversion: UInt16

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16(), let version = reader.u8(),
            let company = reader.u16(), let subversion = reader.u16()
        else {
            throw MalformedPacket("HCI_Read_Remote_Version_Information_Complete", at: reader.offset, .tooShort)
        }
        try reader.finish("HCI_Read_Remote_Version_Information_Complete")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
        self.version = version
        self.company = company
        self.subversion = subversion
    }
}

/// How many packets of one link were sent since the last such event.
///
///     0x13 | links 1 | for each: handle 2 | packets 2
///
/// Spec: HCI_Number_Of_Completed_Packets, Core Vol 4 Part E, 7.7.19.
public struct HCICompletedPackets: Hashable, Sendable {
    /// The link.
    public let handle: ConnectionHandle
    /// Packets sent.
    public let count: UInt16

    static func list(_ reader: inout ByteReader) throws(MalformedPacket) -> [HCICompletedPackets] {
        guard let links = reader.u8() else {
            throw MalformedPacket("HCI_Number_Of_Completed_Packets", at: reader.offset, .tooShort)
        }
        var list: [HCICompletedPackets] = []
        for _ in 0..<links {
            guard let handle = reader.u16(), let count = reader.u16() else {
                throw MalformedPacket("HCI_Number_Of_Completed_Packets", at: reader.offset, .tooShort)
            }
            list.append(HCICompletedPackets(handle: handle & 0x0FFF, count: count))
        }
        try reader.finish("HCI_Number_Of_Completed_Packets")
        return list
    }
}
