/// An event from the controller: a command's completion, a change of a link, an advertisement.
///
/// Encoding: event code 1, parameter length 1, parameters. Event 0x3E carries the LE events, whose first parameter is
/// the subevent code. Unknown events are preserved, so that they can be counted and printed; a known event with another
/// layout is an error.
///
/// Spec: HCI Event packet, Core Vol 4 Part E, 5.4.4 and 7.7.
package enum HCIEvent: Hashable, Sendable {
    /// 0x05: a link was disconnected.
    case disconnectionComplete(HCIDisconnectionComplete)
    /// 0x08 and 0x59: a link's encryption changed, or the change failed.
    case encryptionChange(HCIEncryptionChange)
    /// 0x0C: the peer's version.
    case readRemoteVersionComplete(HCIReadRemoteVersionComplete)
    /// 0x0E: a command completed.
    case commandComplete(HCICommandComplete)
    /// 0x0F: a command was started or rejected.
    case commandStatus(HCICommandStatus)
    /// 0x10: the controller has a hardware error; the code is vendor-specific.
    case hardwareError(code: UInt8)
    /// 0x13: the number of packets sent for each link.
    case numberOfCompletedPackets([HCICompletedPackets])
    /// 0x30: an encrypted link has another key.
    case encryptionKeyRefresh(HCIEncryptionKeyRefresh)
    /// 0x3E 01, 0A and 29: a link was established, or the attempt failed.
    case connectionComplete(LEConnectionComplete)
    /// 0x3E 03: a link's connection parameters changed.
    case connectionUpdateComplete(LEConnectionUpdateComplete)
    /// 0x3E 04: the features of the peer's controller.
    case remoteFeaturesComplete(LERemoteFeaturesComplete)
    /// 0x3E 07: a link's maximum packet lengths changed.
    case dataLengthChange(LEDataLengthChange)
    /// 0x3E 0C: a link's PHYs changed.
    case phyUpdateComplete(LEPHYUpdateComplete)
    /// 0x3E 02, 0B and 0D: advertising reports, and counts of those that could not be read.
    case advertisingReports(AdvertisingReport.Batch)
    /// 0x3E 12: an advertising set was disabled by the controller.
    case advertisingSetTerminated(LEAdvertisingSetTerminated)
    /// 0x3E 13: a scanner requested a scan response.
    case scanRequestReceived(LEScanRequestReceived)
    /// 0x3E without a subevent code.
    case emptyMeta
    /// 0x3E with an unknown subevent; the parameters exclude the subevent code.
    case unknownMeta(subevent: UInt8, parameters: [UInt8])
    /// An unknown event.
    case unknown(code: UInt8, parameters: [UInt8])

    /// Decodes an event from the bytes after the packet type.
    ///
    /// - Throws: `MalformedPacket` if the length byte does not match the number of bytes, or if a known event does
    ///   not match its layout exactly.
    package init(_ packet: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(packet)
        guard let code = reader.u8(), let length = reader.u8() else {
            throw MalformedPacket("HCI event", at: packet.count, .tooShort)
        }
        guard Int(length) <= reader.remaining else { throw MalformedPacket("HCI event", at: packet.count, .tooShort) }
        guard var parameters = reader.take(Int(length)) else {
            throw MalformedPacket("HCI event", at: packet.count, .tooShort)
        }
        try reader.finish("HCI event")
        switch code {
        case 0x05: self = .disconnectionComplete(try HCIDisconnectionComplete(&parameters))
        case 0x08: self = .encryptionChange(try HCIEncryptionChange(&parameters, reportsKeySize: false))
        case 0x0C: self = .readRemoteVersionComplete(try HCIReadRemoteVersionComplete(&parameters))
        case 0x0E: self = .commandComplete(try HCICommandComplete(&parameters))
        case 0x0F: self = .commandStatus(try HCICommandStatus(&parameters))
        case 0x10:
            guard let fault = parameters.u8() else { throw MalformedPacket("HCI_Hardware_Error", at: 0, .tooShort) }
            try parameters.finish("HCI_Hardware_Error")
            self = .hardwareError(code: fault)
        case 0x13: self = .numberOfCompletedPackets(try HCICompletedPackets.list(&parameters))
        case 0x30: self = .encryptionKeyRefresh(try HCIEncryptionKeyRefresh(&parameters))
        case 0x3E: self = try Self.meta(&parameters)
        case 0x59: self = .encryptionChange(try HCIEncryptionChange(&parameters, reportsKeySize: true))
        default: self = .unknown(code: code, parameters: parameters.rest())
        }
    }

    private static func meta(_ parameters: inout ByteReader) throws(MalformedPacket) -> HCIEvent {
        guard let subevent = parameters.u8() else { return .emptyMeta }
        switch subevent {
        case 0x01: return .connectionComplete(try LEConnectionComplete(&parameters, layout: .plain))
        case 0x03: return .connectionUpdateComplete(try LEConnectionUpdateComplete(&parameters))
        case 0x04: return .remoteFeaturesComplete(try LERemoteFeaturesComplete(&parameters))
        case 0x07: return .dataLengthChange(try LEDataLengthChange(&parameters))
        case 0x0A: return .connectionComplete(try LEConnectionComplete(&parameters, layout: .enhanced))
        case 0x0C: return .phyUpdateComplete(try LEPHYUpdateComplete(&parameters))
        case 0x12: return .advertisingSetTerminated(try LEAdvertisingSetTerminated(&parameters))
        case 0x13: return .scanRequestReceived(try LEScanRequestReceived(&parameters))
        case 0x29: return .connectionComplete(try LEConnectionComplete(&parameters, layout: .enhancedSecond))
        default:
            if let batch = AdvertisingReport.parse(subevent: subevent, parameters: parameters.unread) {
                return .advertisingReports(batch)
            }
            return .unknownMeta(subevent: subevent, parameters: parameters.rest())
        }
    }
}
