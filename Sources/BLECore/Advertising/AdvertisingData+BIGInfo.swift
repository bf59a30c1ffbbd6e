extension AdvertisingData {
    /// The synchronization information of a broadcast isochronous group.
    public var bigInfo: BIGInfo? {
        first(.bigInfo) { BIGInfo(&$0) }
    }
}

extension AdvertisingData {
    /// The information that a receiver needs to synchronize with a broadcast isochronous group (BIG).
    ///
    ///     33 octets, 57 for an encrypted group; fields are not aligned to octets
    ///
    /// Spec: Core Vol 6 Part B, 4.4.6.11.
    public struct BIGInfo: Hashable, Sendable {
        /// The time from the packet to the group's next anchor point, in units of 30 or 300 µs.
        public let offset: UInt16
        /// A Boolean value that indicates whether `offset` is in units of 300 µs.
        public let offsetInLongUnits: Bool
        /// The time between anchor points, in units of 1.25 ms.
        public let isoInterval: UInt16
        /// The number of streams in the group.
        public let streamCount: UInt8
        /// The number of subevents of a stream per event.
        public let subeventCount: UInt8
        /// The number of new payloads of a stream per event.
        public let burstNumber: UInt8
        /// The time between subevents of a stream, in microseconds.
        public let subInterval: UInt32
        /// The offset of pre-transmitted payloads.
        public let preTransmissionOffset: UInt8
        /// The time between the subevents of adjacent streams, in microseconds.
        public let streamSpacing: UInt32
        /// The number of times a payload is transmitted in an event.
        public let immediateRepetitionCount: UInt8
        /// The maximum payload length, in bytes.
        public let maximumPDU: UInt8
        /// The seed of the access addresses.
        public let seedAccessAddress: UInt32
        /// The time between service data units, in microseconds.
        public let sduInterval: UInt32
        /// The maximum length of a service data unit, in bytes.
        public let maximumSDU: UInt16
        /// The base of the CRC initialization values.
        public let baseCRCInit: UInt16
        /// One bit for each of the 37 data channels, channel 0 lowest.
        public let channels: UInt64
        /// The PHY as encoded on air: 0 is 1M.
        public let phyIndex: UInt8
        /// The counter of the next payload.
        public let payloadCount: UInt64
        /// A Boolean value that indicates whether service data units are framed.
        public let isFramed: Bool
        /// A Boolean value that indicates whether the group is encrypted.
        public let isEncrypted: Bool

        init?(_ reader: inout ByteReader) {
            let size = reader.remaining
            guard size == 33 || size == 57, let first = reader.u32(), let second = reader.u32(),
                let third = reader.u32(),
                let fourth = reader.u8(), let seed = reader.u32(), let service = reader.u32(), let crc = reader.u16(),
                let channelsLow = reader.u32(), let channelsHigh = reader.u8(), let countLow = reader.u32(),
                let countHigh = reader.u8()
            else { return nil }
            _ = fourth
            offset = UInt16(truncatingIfNeeded: first & 0x3FFF)
            offsetInLongUnits = first >> 14 & 1 == 1
            isoInterval = UInt16(truncatingIfNeeded: first >> 15 & 0xFFF)
            streamCount = UInt8(truncatingIfNeeded: first >> 27)
            subeventCount = UInt8(truncatingIfNeeded: second & 0x1F)
            burstNumber = UInt8(truncatingIfNeeded: second >> 5 & 0x07)
            subInterval = second >> 8 & 0xF_FFFF
            preTransmissionOffset = UInt8(truncatingIfNeeded: second >> 28)
            streamSpacing = third & 0xF_FFFF
            immediateRepetitionCount = UInt8(truncatingIfNeeded: third >> 20 & 0x0F)
            maximumPDU = UInt8(truncatingIfNeeded: third >> 24)
            seedAccessAddress = seed
            sduInterval = service & 0xF_FFFF
            maximumSDU = UInt16(truncatingIfNeeded: service >> 20)
            baseCRCInit = crc
            channels = UInt64(channelsHigh & 0x1F) << 32 | UInt64(channelsLow)
            phyIndex = channelsHigh >> 5
            payloadCount = UInt64(countHigh & 0x7F) << 32 | UInt64(countLow)
            isFramed = countHigh & 0x80 != 0
            isEncrypted = size == 57
        }
    }
}

/// The former name of `AdvertisingData.BIGInfo`.
@available(*, deprecated, renamed: "AdvertisingData.BIGInfo")
public typealias BIGInfo = AdvertisingData.BIGInfo
