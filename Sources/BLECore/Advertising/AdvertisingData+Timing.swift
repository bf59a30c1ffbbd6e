// Intervals, features, and the isochronous and periodic trains that belong to an advertisement.

extension AdvertisingData {
    /// The connection interval range that the peripheral prefers.
    public var connectionIntervalRange: ConnectionIntervalRange? {
        first(.peripheralConnectionIntervalRange) { value in
            guard value.remaining == 4, let minimum = value.u16(), let maximum = value.u16() else { return nil }
            return ConnectionIntervalRange(minimum: minimum, maximum: maximum)
        }
    }

    /// The advertising interval that the advertiser declares, from the short or the long form.
    public var advertisingInterval: Duration? {
        let units: UInt32? =
            first(.advertisingInterval) { value in
                value.remaining == 2 ? value.u16().map { UInt32($0) } : nil
            }
            ?? first(.advertisingIntervalLong) { value in
                switch value.remaining {
                case 3: value.u24()
                case 4: value.u32()
                default: nil
                }
            }
        return units.map { .microseconds(Int64($0) * 625) }
    }

    /// The controller's first 64 feature bits. Trailing zero octets may be absent on air.
    public var leSupportedFeatures: UInt64? {
        first(.leSupportedFeatures) { value in
            var features: UInt64 = 0
            for shift in stride(from: 0, to: 64, by: 8) {
                guard let byte = value.u8() else { break }
                features |= UInt64(byte) << UInt64(shift)
            }
            return features
        }
    }

    /// An upcoming channel map change of periodic advertising.
    public var channelMapUpdate: ChannelMapUpdate? {
        first(.channelMapUpdateIndication) { value in
            guard value.remaining == 7, let low = value.u32(), let high = value.u8(), let instant = value.u16() else {
                return nil
            }
            return ChannelMapUpdate(channels: UInt64(high & 0x1F) << 32 | UInt64(low), instant: instant)
        }
    }

    /// The timing of responses to periodic advertising.
    public var periodicResponseTiming: PeriodicResponseTiming? {
        first(.periodicAdvertisingResponseTiming) { value in
            guard value.remaining == 8, let accessAddress = value.u32(), let subevents = value.u8(),
                let interval = value.u8(), let delay = value.u8(), let spacing = value.u8()
            else { return nil }
            return PeriodicResponseTiming(
                accessAddress: accessAddress, subeventCount: subevents,
                subeventInterval: .microseconds(Int64(interval) * 1250),
                responseSlotDelay: .microseconds(Int64(delay) * 1250),
                responseSlotSpacing: .microseconds(Int64(spacing) * 125))
        }
    }

    /// The connection interval range that a peripheral prefers.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.9.
    public struct ConnectionIntervalRange: Hashable, Sendable {
        /// The shortest interval in units of 1.25 ms; 0xFFFF means no specific minimum.
        public let minimum: UInt16
        /// The longest interval in units of 1.25 ms; 0xFFFF means no specific maximum.
        public let maximum: UInt16

        /// The shortest interval, or `nil` if there is no limit.
        public var shortest: Duration? { minimum == 0xFFFF ? nil : .microseconds(Int64(minimum) * 1250) }
        /// The longest interval, or `nil` if there is no limit.
        public var longest: Duration? { maximum == 0xFFFF ? nil : .microseconds(Int64(maximum) * 1250) }
    }

    /// An upcoming channel map change of periodic advertising.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.20.
    public struct ChannelMapUpdate: Hashable, Sendable {
        /// One bit for each of the 37 data channels, channel 0 lowest.
        public let channels: UInt64
        /// The event counter at which the change takes effect.
        public let instant: UInt16
    }

    /// The timing of responses to periodic advertising.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.24.
    public struct PeriodicResponseTiming: Hashable, Sendable {
        /// The access address of the responses.
        public let accessAddress: UInt32
        /// The number of subevents per interval.
        public let subeventCount: UInt8
        /// The time from the start of one subevent to the start of the next.
        public let subeventInterval: Duration
        /// The time from the start of a subevent to its first response slot.
        public let responseSlotDelay: Duration
        /// The time between the starts of consecutive response slots.
        public let responseSlotSpacing: Duration
    }
}

// MARK: - Former names

/// The former name of `AdvertisingData.ConnectionIntervalRange`.
@available(*, deprecated, renamed: "AdvertisingData.ConnectionIntervalRange")
public typealias ConnectionIntervalRange = AdvertisingData.ConnectionIntervalRange
/// The former name of `AdvertisingData.ChannelMapUpdate`.
@available(*, deprecated, renamed: "AdvertisingData.ChannelMapUpdate")
public typealias ChannelMapUpdate = AdvertisingData.ChannelMapUpdate
/// The former name of `AdvertisingData.PeriodicResponseTiming`.
@available(*, deprecated, renamed: "AdvertisingData.PeriodicResponseTiming")
public typealias PeriodicResponseTiming = AdvertisingData.PeriodicResponseTiming
