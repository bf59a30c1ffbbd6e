/// A link was disconnected, or the disconnection failed.
///
///     0x05 | status 1 | handle 2 | reason 1
///
/// Spec: HCI_Disconnection_Complete, Core Vol 4 Part E, 7.7.5.
package struct HCIDisconnectionComplete: Hashable, Sendable {
    /// Success if the link was disconnected.
    package let status: HCIStatus
    /// The connection handle, which may be reused from now on.
    package let handle: ConnectionHandle
    /// The reason for the disconnection.
    package let reason: HCIStatus

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

/// A link's encryption changed, or the change failed.
///
///     0x08 | status 1 | handle 2 | enabled 1
///     0x59 | the same | key size 1
///
/// Spec: HCI_Encryption_Change, Core Vol 4 Part E, 7.7.8.
package struct HCIEncryptionChange: Hashable, Sendable {
    /// The result of the change; `keyMissing` if the peer lost its key.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle
    /// 0 for off, 1 for AES-CCM on LE, 2 for AES-CCM on BR/EDR.
    package let mode: UInt8
    /// The key size in bytes, if reported.
    package let keySize: UInt8?

    /// A Boolean value that indicates whether the link is encrypted now.
    package var isEncrypted: Bool { mode != 0 }

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

/// The key of an encrypted link was changed, or the change failed.
///
///     0x30 | status 1 | handle 2
///
/// Spec: HCI_Encryption_Key_Refresh_Complete, Core Vol 4 Part E, 7.7.39.
package struct HCIEncryptionKeyRefresh: Hashable, Sendable {
    /// Success if the link is encrypted with the new key.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle

    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        guard let status = reader.u8(), let handle = reader.u16() else {
            throw MalformedPacket("HCI_Encryption_Key_Refresh_Complete", at: reader.offset, .tooShort)
        }
        try reader.finish("HCI_Encryption_Key_Refresh_Complete")
        self.status = HCIStatus(rawValue: status)
        self.handle = handle & 0x0FFF
    }
}

/// The version of the peer's controller.
///
///     0x0C | status 1 | handle 2 | version 1 | company 2 | subversion 2
///
/// Spec: HCI_Read_Remote_Version_Information_Complete, Core Vol 4 Part E, 7.7.12.
package struct HCIReadRemoteVersionComplete: Hashable, Sendable {
    /// Success if the other fields are valid.
    package let status: HCIStatus
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The link layer version; `HCIVersion.specification(of:)` returns its name.
    package let version: UInt8
    /// The manufacturer's company identifier.
    package let company: UInt16
    /// The manufacturer's subversion.
    package let subversion: UInt16

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

/// The number of packets sent on one link since the last such event.
///
///     0x13 | links 1 | for each: handle 2 | packets 2
///
/// Spec: HCI_Number_Of_Completed_Packets, Core Vol 4 Part E, 7.7.19.
package struct HCICompletedPackets: Hashable, Sendable {
    /// The connection handle.
    package let handle: ConnectionHandle
    /// The number of packets.
    package let count: UInt16

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
