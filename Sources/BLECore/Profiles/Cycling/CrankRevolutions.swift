/// How often the cranks have turned, and when they finished their last turn.
///
///     count 2 | event time 2, in 1/1024 s
///
/// Two readings give the cadence in between, when they are less than 64 s apart.
///
/// Spec: Cycling Speed and Cadence Profile 1.0, 4.7; Cycling Power Service 1.1, 3.2.1.8.
public struct CrankRevolutions: GATTReadable, Hashable, Sendable {
    /// Turns, by a counter that starts again from 0 after 65,535.
    public let count: UInt16
    /// When the last turn ended, in 1/1024 s, by a clock that starts again from 0 after 65,535.
    public let eventTime: UInt16
    /// What the specification calls the two counters.
    public static var formatName: String { "Crank Revolution Data" }

    /// A reading of the two counters.
    public init(count: UInt16, eventTime: UInt16) {
        self.count = count
        self.eventTime = eventTime
    }

    /// Reads 4 bytes.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        count = try reader.read()
        eventTime = try reader.read()
    }

    /// The turns since an earlier reading; fewer than none when the cranks went backwards or the counter was set anew.
    public func turns(since earlier: Self) -> Int {
        Int(Int16(bitPattern: count &- earlier.count))
    }

    /// The cadence since an earlier reading, in turns per minute.
    ///
    /// `nil` when no turn has ended in between: a sensor repeats its last event while the cranks stand, so after some
    /// seconds of `nil` the cadence is 0. `nil` too when the counter went back.
    public func cadence(since earlier: Self) -> Double? {
        let ticks = eventTime &- earlier.eventTime
        return turnsPerSecond(turns(since: earlier), ticks: ticks, ticksPerSecond: 1024).map { $0 * 60 }
    }
}
