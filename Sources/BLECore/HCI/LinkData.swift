/// The beginning of a packet of ACL data, as far as it matters to a program that only looks on: the kernel reads the
/// data of links.
///
/// Layout: handle and flags (2), length (2). In the first packet of an L2CAP frame follow that frame's length (2), its
/// channel (2) and its payload.
///
/// Spec: HCI ACL Data packets, Core Vol 4 Part E, 5.4.2; B-frames, Vol 3 Part A, 3.1.
package struct LinkData: Hashable, Sendable {
    /// The link that it belongs to.
    package let handle: ConnectionHandle
    /// A Boolean value that indicates whether its sender waits for a response, without which it ends the link after
    /// 30 s: an ATT request, an indication or a Security Request.
    package let needsResponse: Bool
    /// A Boolean value that indicates whether encrypting the link is that response: it is a Security Request.
    package let needsEncryption: Bool

    /// Reads the beginning of a packet, without its packet type; `nil` where that is cut.
    package init?(_ packet: Span<UInt8>) {
        var reader = ByteReader(packet)
        guard let word = reader.u16(), reader.skip(2) else { return nil }
        handle = word & 0x0FFF
        let isContinued = (word >> 12) & 0b11 == Self.continuation
        guard !isContinued, reader.skip(2), let channel = reader.u16(), let opcode = reader.u8() else {
            needsResponse = false
            needsEncryption = false
            return
        }
        needsEncryption = channel == Self.securityChannel && opcode == Self.securityRequest
        needsResponse =
            switch channel {
            case Self.attributeChannel:
                switch ATTOpcode(rawValue: opcode).kind {
                case .request, .indication: true
                case .response, .command, .notification, .confirmation: false
                }
            default: needsEncryption
            }
    }

    /// The packet boundary flag of a packet that continues a frame.
    private static let continuation: UInt16 = 0b01
    /// Spec: Core Vol 3 Part A, 2.1.
    private static let attributeChannel: UInt16 = 0x0004
    private static let securityChannel: UInt16 = 0x0006
    /// Spec: SMP_SECURITY_REQUEST, Core Vol 3 Part H, 3.6.7.
    private static let securityRequest: UInt8 = 0x0B
}
