// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Names that Apple's Foundation brings along, and that the one for Linux lacks. Code written for iOS uses them next to
// CoreBluetooth, so they are here; they are visible in files that import CoreBluetooth.

/// A time in seconds since 1 January 2001, 00:00 UTC.
public typealias CFAbsoluteTime = Double

/// Returns the current time of the system's wall clock, in seconds since 1 January 2001, 00:00 UTC.
public func CFAbsoluteTimeGetCurrent() -> CFAbsoluteTime { Date.timeIntervalSinceReferenceDate }

/// The number of nanoseconds in a second.
public let NSEC_PER_SEC: UInt64 = 1_000_000_000
/// The number of nanoseconds in a millisecond.
public let NSEC_PER_MSEC: UInt64 = 1_000_000
/// The number of nanoseconds in a microsecond.
public let NSEC_PER_USEC: UInt64 = 1_000
/// The number of microseconds in a second.
public let USEC_PER_SEC: UInt64 = 1_000_000

/// Runs `body`. There are no autorelease pools on Linux: objects are released when their last reference goes away.
///
/// - Throws: The error of `body`.
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
