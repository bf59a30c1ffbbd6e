/// How often a wheel has turned, and when it finished its last turn.
///
///     count 4 | event time 2
///
/// Two readings give the speed in between. The event time is a clock of 16 bits, so they must be less than 64 s apart
/// (32 s where it ticks 2048 times a second).
///
/// Spec: Cycling Speed and Cadence Profile 1.0, 4.7; Cycling Power Service 1.1, 3.2.1.7.
public struct WheelRevolutions: Hashable, Sendable {
    /// All turns since the sensor began to count.
    public let count: UInt32
    /// When the last turn ended, by a clock that starts again from 0 after 65,535.
    public let eventTime: UInt16
    /// How often that clock ticks: 1024 a second in Cycling Speed and Cadence, 2048 in Cycling Power.
    public let ticksPerSecond: Int

    /// A reading of the two counters.
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

    /// The turns since an earlier reading; fewer than none when the wheel went backwards or the counter was set anew.
    public func turns(since earlier: Self) -> Int {
        Int(Int32(bitPattern: count &- earlier.count))
    }

    /// The speed since an earlier reading, in metres per second, on a wheel of this circumference in metres.
    ///
    /// `nil` when no turn has ended in between: a sensor repeats its last event while the wheel stands, so after some
    /// seconds of `nil` the speed is 0. `nil` too when the counter went back, and when the two clocks tick differently.
    public func speed(since earlier: Self, circumference: Double) -> Double? {
        guard ticksPerSecond == earlier.ticksPerSecond else { return nil }
        let ticks = eventTime &- earlier.eventTime
        let rate = turnsPerSecond(turns(since: earlier), ticks: ticks, ticksPerSecond: ticksPerSecond)
        return rate.map { $0 * circumference }
    }
}
