/// Replies that say nothing, for packets that were thrown away unread.
package enum ATTRefusal {
    /// Returns what ends the peer's wait for a response to a packet; `nil` for a packet that has none.
    ///
    /// A request gets an Error Response (Request Not Supported), an indication its confirmation.
    ///
    /// Spec: Core Vol 3 Part F, 3.3.2 (sequential protocol), 3.4.1.1, 3.4.7.3.
    package static func reply(toDiscarded packet: [UInt8]) -> [UInt8]? {
        guard let opcode = packet.first else { return nil }
        if opcode == 0x1D { return [0x1E] }
        // Bit 6 marks a command, bit 7 a signature; responses and notifications have odd numbers, confirmations 1E.
        guard opcode & 0xC0 == 0, opcode.isMultiple(of: 2), opcode != 0x1E else { return nil }
        return [0x01, opcode, 0x00, 0x00, 0x06]
    }
}
