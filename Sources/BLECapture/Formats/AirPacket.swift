internal import BLECore

/// The link types of pcap files with packets captured on air by a sniffer.
///
/// Spec: the registry of link-layer header types at tcpdump.org.
enum AirLinkType: UInt32, Hashable, Sendable {
    /// Access address 4, PDU, CRC 3; without the direction of the packet.
    case bare = 251
    /// Channel 1, signal 1, noise 1, offenses 1, reference access address 4, flags 2; then as above.
    case withRadioHeader = 256
    /// Nordic's sniffer: board 1, lengths 2, version 1, counter 2, kind 1; length 1, flags 1, channel 1, signal 1,
    /// events 2, time 4.
    case nordic = 272
}

/// A link layer packet, as captured by a sniffer.
///
///     access address 4 | PDU: header 2, payload | CRC 3
///
/// Spec: Core Vol 6 Part B, 2.1.
struct AirPacket: Hashable, Sendable {
    /// The access address of all advertising, except periodic trains. Spec: Core Vol 6 Part B, 2.1.2.
    static let advertisingAccessAddress: UInt32 = 0x8E89_BED6

    let accessAddress: UInt32
    /// The first octet of the header: type and addresses of advertising, or the data PDU's flags.
    let header: UInt8
    let payload: [UInt8]
    /// The signal strength in dBm; 127 if the sniffer does not report it.
    let rssi: Int8
    /// 1, 2 or 3 for LE 1M, 2M or Coded, as in HCI.
    let phy: UInt8
    /// The direction relative to the link's central, or `nil` if the sniffer does not report it.
    let direction: CapturedPacket.Direction?
    /// True if the packet was encrypted on air and the sniffer had the key; the integrity check is then removed.
    let isDecrypted: Bool

    /// Decodes a record. Returns `nil` if it is truncated, has a bad CRC, cannot be decrypted, or is isochronous.
    init?(_ record: [UInt8], _ linkType: AirLinkType) {
        var reader = ByteReader(record.span)
        var rssi: Int8 = 127
        var phy: UInt8 = 1
        var direction: CapturedPacket.Direction?
        var wasEncrypted = false
        var isLegible = false
        switch linkType {
        case .bare:
            break
        case .withRadioHeader:
            guard reader.skip(1), let signal = reader.i8(), reader.skip(6), let flags = reader.u16() else { return nil }
            let isClear = flags & RadioFlag.dewhitened != 0 && flags & RadioFlag.decrypted == 0
            let isBroken = flags & RadioFlag.crcChecked != 0 && flags & RadioFlag.crcValid == 0
            guard isClear, !isBroken else { return nil }
            if flags & RadioFlag.signalValid != 0 { rssi = signal }
            phy = min(3, UInt8(truncatingIfNeeded: flags >> 14) &+ 1)
            switch flags >> 7 & 0b111 {
            case 0, 1: break
            case 2: direction = .sent
            case 3: direction = .received
            default: return nil
            }
        case .nordic:
            guard reader.skip(7), let length = reader.u8(), let flags = reader.u8(), reader.skip(1),
                let loss = reader.u8(), length >= 10, reader.skip(Int(length) &- 4),
                flags & NordicFlag.crcValid != 0
            else { return nil }
            wasEncrypted = flags & NordicFlag.encrypted != 0
            isLegible = flags & NordicFlag.integrityValid != 0
            rssi = Int8(clamping: 0 &- Int(loss))
            direction = flags & NordicFlag.fromCentral == 0 ? .received : .sent
        }
        guard let accessAddress = reader.u32() else { return nil }
        // Packets on the Coded PHY carry a coding indicator.
        if phy == 3, !reader.skip(1) { return nil }
        guard let header = reader.u8(), let length = reader.u8() else { return nil }
        let isAdvertising = accessAddress == Self.advertisingAccessAddress
        // A data PDU with a constant tone extension has one more header octet.
        if !isAdvertising, header & 0x20 != 0, !reader.skip(1) { return nil }
        guard let payload = reader.array(Int(length)) else { return nil }
        isDecrypted = !isAdvertising && wasEncrypted && !payload.isEmpty
        if isDecrypted, !isLegible { return nil }
        self.accessAddress = accessAddress
        self.header = header
        self.payload = payload
        self.rssi = rssi
        self.phy = phy
        self.direction = isAdvertising ? .received : direction
    }

    private enum RadioFlag {
        static let dewhitened: UInt16 = 1 << 0
        static let signalValid: UInt16 = 1 << 1
        static let decrypted: UInt16 = 1 << 3
        static let crcChecked: UInt16 = 1 << 10
        static let crcValid: UInt16 = 1 << 11
    }

    private enum NordicFlag {
        static let crcValid: UInt8 = 1 << 0
        static let fromCentral: UInt8 = 1 << 1
        static let encrypted: UInt8 = 1 << 2
        static let integrityValid: UInt8 = 1 << 3
    }
}
