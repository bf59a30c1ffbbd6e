internal import BLECore

/// The cumulative wheel revolutions, and the time of the last one.
///
///     count 4 | event time 2
///
/// Two readings give the speed in between. The event time has 16 bits, so the readings must be less than 64 s apart (32
/// s with 2048 ticks per second).
///
/// Spec: Cycling Speed and Cadence Profile 1.0, 4.7; Cycling Power Service 1.1, 3.2.1.7.
public struct WheelRevolutions: Hashable, Sendable {
    /// The cumulative revolutions.
    public let count: UInt32
    /// The time of the last wheel event, in ticks; wraps to 0 after 65,535.
    public let eventTime: UInt16
    /// The resolution of `eventTime`: 1024 ticks per second in Cycling Speed and Cadence, 2048 in Cycling Power.
    public let ticksPerSecond: Int

    /// Creates a reading.
    public init(count: UInt32, eventTime: UInt16, ticksPerSecond: Int = 1024) {
        self.count = count
        self.eventTime = eventTime
        self.ticksPerSecond = ticksPerSecond
    }

    init(ticksPerSecond: Int, reading reader: inout ByteReader) throws(MalformedPacket) {
        count = try reader.read()
        eventTime = try reader.read()
        self.ticksPerSecond = ticksPerSecond
    }

    /// Returns the revolutions since an earlier reading; negative if the wheel turned backwards or the counter was
    /// reset.
    public func turns(since earlier: Self) -> Int {
        Int(Int32(bitPattern: count &- earlier.count))
    }

    /// Returns the speed since an earlier reading, in metres per second, for a wheel circumference in metres.
    ///
    /// `nil` if no revolution was completed in between: a sensor repeats its last event while the wheel stands still,
    /// so after some seconds of `nil` the speed is 0. Also `nil` if the counter went backwards, or if the two clocks
    /// have different resolutions.
    public func speed(since earlier: Self, circumference: Double) -> Double? {
        guard ticksPerSecond == earlier.ticksPerSecond else { return nil }
        let ticks = eventTime &- earlier.eventTime
        let rate = turnsPerSecond(turns(since: earlier), ticks: ticks, ticksPerSecond: ticksPerSecond)
        return rate.map { $0 * circumference }
    }
}
