/// A packet of the kernel's monitor channel, which copies the traffic of all adapters.
///
///     opcode 2 | adapter 2 | length 2 | content
///
/// All numbers are little-endian. The channel first reports what already exists: adapters, then open sockets.
///
/// Spec: `struct hci_mon_hdr` of the Linux kernel.
package enum MonitorPacket: Hashable, Sendable {
    /// 14: a socket is open.
    case controlOpen(MonitorControlOpen)
    /// Any other packet.
    case other(opcode: UInt16)

    /// Decodes a packet as it was read from the socket.
    ///
    /// - Throws: `MalformedPacket` if the length field does not match the number of bytes, or the content not the
    ///   opcode.
    package init(_ packet: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(packet)
        guard let opcode = reader.u16(), let adapter = reader.u16(), let length = reader.u16(),
            var content = reader.take(Int(length))
        else { throw MalformedPacket("hci_mon_hdr", at: packet.count, .tooShort) }
        try reader.finish("hci_mon_hdr")
        if opcode == 14 {
            self = .controlOpen(try MonitorControlOpen(&content, adapter: adapter == 0xFFFF ? nil : adapter))
        } else {
            self = .other(opcode: opcode)
        }
    }
}

/// A program has an HCI socket open.
///
///     14 | cookie 4 | format 2 | version 3 | flags 4 | name length 1 | name
///
/// Spec: HCI_MON_CTRL_OPEN of the Linux kernel.
package struct MonitorControlOpen: Hashable, Sendable {
    /// The channel that the socket is bound to.
    package struct Format: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// Raw HCI, in parallel with the kernel's host.
        package static let raw = Format(rawValue: 0)
        /// The user channel, instead of the kernel's host.
        package static let user = Format(rawValue: 1)
        /// The management interface.
        package static let control = Format(rawValue: 2)
    }

    /// The index of the adapter, or `nil` if the socket belongs to none.
    package let adapter: UInt16?
    /// The number by which later packets name the socket.
    package let cookie: UInt32
    /// The channel.
    package let format: Format
    /// The name of the process, truncated to 15 bytes.
    package let program: String

    init(_ reader: inout ByteReader, adapter: UInt16?) throws(MalformedPacket) {
        // The version of the kernel's Bluetooth, and a flag for CAP_NET_ADMIN.
        guard let cookie = reader.u32(), let format = reader.u16(), reader.skip(3), reader.skip(4),
            let length = reader.u8(), let program = reader.terminatedText(Int(length))
        else { throw MalformedPacket("HCI_MON_CTRL_OPEN", at: reader.offset, .tooShort) }
        try reader.finish("HCI_MON_CTRL_OPEN")
        self.adapter = adapter
        self.cookie = cookie
        self.format = Format(rawValue: format)
        self.program = program
    }
}
