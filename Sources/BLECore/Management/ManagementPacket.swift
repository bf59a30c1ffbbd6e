// The kernel's management interface: the control channel of an HCI socket, by which adapters are configured and peers
// are paired.
//
// A command is a value that contains its code and its parameters, and that decodes its return parameters
// (`ManagementCommand`). Everything that the kernel sends is a `ManagementEvent`, including the responses to commands.
// Commands and events are added as those of HCI are: a struct with its layout, and for an event a case in
// `ManagementEvent.Content`.
//
// The kernel does not number commands: a response is matched with its command by the code and the adapter. So only one
// command of a kind may be pending for an adapter on one socket.

/// One packet of the kernel's management interface, in either direction.
///
///     code 2 | adapter 2 | parameter length 2 | parameters
///
/// All numbers are little-endian. Adapter 0xFFFF stands for none.
///
/// Spec: `struct mgmt_hdr` of the Linux kernel; Bluetooth Management API, Packet Structures.
package struct ManagementPacket: Hashable, Sendable {
    /// The code of the command or event.
    package let code: UInt16
    /// The index of the adapter, or `nil` if the packet concerns no adapter.
    package let adapter: UInt16?
    /// The encoded parameters.
    package private(set) var parameters: [UInt8]

    /// Creates a packet; parameters beyond 65,535 bytes are truncated.
    package init(code: UInt16, adapter: UInt16?, parameters: [UInt8]) {
        self.code = code
        self.adapter = adapter == Self.noAdapter ? nil : adapter
        self.parameters = parameters.count <= 0xFFFF ? parameters : [UInt8](parameters.prefix(0xFFFF))
    }

    /// Decodes a packet as it was read from the socket.
    ///
    /// - Throws: `MalformedPacket` if the length field does not match the number of bytes.
    package init(_ packet: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(packet)
        guard let code = reader.u16(), let adapter = reader.u16(), let length = reader.u16(),
            let parameters = reader.array(Int(length))
        else { throw MalformedPacket("mgmt_hdr", at: packet.count, .tooShort) }
        try reader.finish("mgmt_hdr")
        self.init(code: code, adapter: adapter, parameters: parameters)
    }

    /// The complete packet.
    package var bytes: [UInt8] {
        var writer = ByteWriter(reserving: parameters.count + 6)
        writer.u16(code)
        writer.u16(adapter ?? Self.noAdapter)
        writer.u16(UInt16(truncatingIfNeeded: parameters.count))
        writer.array(parameters)
        return writer.bytes
    }

    /// Overwrites the parameters, which may contain keys, unless there is a copy of them.
    package mutating func wipe() { parameters.wipe() }

    private static let noAdapter: UInt16 = 0xFFFF
}

extension ManagementPacket: CustomStringConvertible {
    /// The code and the length: the parameters may contain keys.
    package var description: String {
        let bytes = [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)]
        let target = adapter.map { " of adapter \($0)" } ?? ""
        return "management packet 0x\(Hex.encode(bytes))\(target), \(parameters.count) bytes"
    }
}
