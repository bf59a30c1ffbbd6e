public import BLECore

/// The cumulative crank revolutions, and the time of the last one.
///
///     count 2 | event time 2, in 1/1024 s
///
/// Two readings give the cadence in between, provided that they are less than 64 s apart.
///
/// Spec: Cycling Speed and Cadence Profile 1.0, 4.7; Cycling Power Service 1.1, 3.2.1.8.
public struct CrankRevolutions: GATTReadable, Hashable, Sendable {
    /// The cumulative revolutions; wraps to 0 after 65,535.
    public let count: UInt16
    /// The time of the last crank event, in units of 1/1024 s; wraps to 0 after 65,535.
    public let eventTime: UInt16
    /// The specification's name for the pair of counters.
    public static var formatName: String { "Crank Revolution Data" }

    /// Creates a reading.
    public init(count: UInt16, eventTime: UInt16) {
        self.count = count
        self.eventTime = eventTime
    }

    /// Reads 4 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        count = try reader.read()
        eventTime = try reader.read()
    }

    /// Returns the revolutions since an earlier reading; negative if the cranks turned backwards or the counter was
    /// reset.
    public func turns(since earlier: Self) -> Int {
        Int(Int16(bitPattern: count &- earlier.count))
    }

    /// Returns the cadence since an earlier reading, in revolutions per minute.
    ///
    /// `nil` if no revolution was completed in between: a sensor repeats its last event while the cranks stand still,
    /// so after some seconds of `nil` the cadence is 0. Also `nil` if the counter went backwards.
    public func cadence(since earlier: Self) -> Double? {
        let ticks = eventTime &- earlier.eventTime
        return turnsPerSecond(turns(since: earlier), ticks: ticks, ticksPerSecond: 1024).map { $0 * 60 }
    }
}
