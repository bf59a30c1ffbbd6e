/// Something that the controller says: the answer to a command, news of a link, an advertisement.
///
/// On the wire: event code 1, length of the parameters 1, parameters. Event 0x3E carries the LE events, whose first
/// parameter is the subevent code. What is not known here is kept as it is, so that it can be counted and printed; what
/// is known but does not fit its layout is an error.
///
/// Spec: HCI Event packet, Core Vol 4 Part E, 5.4.4 and 7.7.
public enum HCIEvent: Hashable, Sendable {
    /// 0x05: a link has ended.
    case disconnectionComplete(HCIDisconnectionComplete)
    /// 0x08 and 0x59: encryption of a link was switched on or off, or could not be.
    case encryptionChange(HCIEncryptionChange)
    /// 0x0C: the peer's version.
    case readRemoteVersionComplete(HCIReadRemoteVersionComplete)
    /// 0x0E: a command is done.
    case commandComplete(HCICommandComplete)
    /// 0x0F: a command has begun, or was refused.
    case commandStatus(HCICommandStatus)
    /// 0x10: the controller has a fault; the code is its maker's.
    case hardwareError(code: UInt8)
    /// 0x13: packets that were sent.
    case numberOfCompletedPackets([HCICompletedPackets])
    /// 0x3E 01, 0A and 29: a link has come up, or could not.
    case connectionComplete(LEConnectionComplete)
    /// 0x3E 03: a link has other parameters now.
    case connectionUpdateComplete(LEConnectionUpdateComplete)
    /// 0x3E 04: what the peer's controller can do.
    case remoteFeaturesComplete(LERemoteFeaturesComplete)
    /// 0x3E 07: how long packets of a link may be now.
    case dataLengthChange(LEDataLengthChange)
    /// 0x3E 0C: which PHYs a link uses now.
    case phyUpdateComplete(LEPHYUpdateComplete)
    /// 0x3E 02, 0B and 0D: advertisements, with what could not be read counted.
    case advertisingReports(AdvertisingReport.Batch)
    /// 0x3E without even a subevent code.
    case emptyMeta
    /// 0x3E with a subevent that is not known here; parameters without the subevent code.
    case unknownMeta(subevent: UInt8, parameters: [UInt8])
    /// An event that is not known here.
    case unknown(code: UInt8, parameters: [UInt8])

    /// Reads an event from the bytes behind the packet type.
    ///
    /// - Throws: `MalformedPacket` when the length byte and the bytes disagree, and when a known event does not fit its
    ///   layout exactly.
    public init(_ packet: Span<UInt8>) throws(MalformedPacket) {
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
        case 0x29: return .connectionComplete(try LEConnectionComplete(&parameters, layout: .enhancedSecond))
        default:
            if let batch = AdvertisingReport.parse(subevent: subevent, parameters: parameters.unread) {
                return .advertisingReports(batch)
            }
            return .unknownMeta(subevent: subevent, parameters: parameters.rest())
        }
    }
}
