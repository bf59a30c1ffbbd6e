// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Names that Apple's Foundation brings along, and that the one for Linux lacks. Code written for iOS uses them next to
// CoreBluetooth, so they are here; they are visible in files that import CoreBluetooth.

/// A time in seconds since 1 January 2001, 00:00 UTC.
public typealias CFAbsoluteTime = Double

/// Returns the current time of the system's wall clock, in seconds since 1 January 2001, 00:00 UTC.
public func CFAbsoluteTimeGetCurrent() -> CFAbsoluteTime { Date.timeIntervalSinceReferenceDate }

/// A time in seconds.
public typealias CFTimeInterval = Double

/// The number of nanoseconds in a second.
public let NSEC_PER_SEC: UInt64 = 1_000_000_000
/// The number of nanoseconds in a millisecond.
public let NSEC_PER_MSEC: UInt64 = 1_000_000
/// The number of nanoseconds in a microsecond.
public let NSEC_PER_USEC: UInt64 = 1_000
/// The number of microseconds in a second.
public let USEC_PER_SEC: UInt64 = 1_000_000

/// Returns a number with its bytes in the opposite order.
public func CFSwapInt16(_ arg: UInt16) -> UInt16 { arg.byteSwapped }
/// Converts a little-endian number to the host's order.
public func CFSwapInt16LittleToHost(_ arg: UInt16) -> UInt16 { UInt16(littleEndian: arg) }
/// Converts a number of the host to little-endian order.
public func CFSwapInt16HostToLittle(_ arg: UInt16) -> UInt16 { arg.littleEndian }
/// Converts a big-endian number to the host's order.
public func CFSwapInt16BigToHost(_ arg: UInt16) -> UInt16 { UInt16(bigEndian: arg) }
/// Converts a number of the host to big-endian order.
public func CFSwapInt16HostToBig(_ arg: UInt16) -> UInt16 { arg.bigEndian }

/// Returns a number with its bytes in the opposite order.
public func CFSwapInt32(_ arg: UInt32) -> UInt32 { arg.byteSwapped }
/// Converts a little-endian number to the host's order.
public func CFSwapInt32LittleToHost(_ arg: UInt32) -> UInt32 { UInt32(littleEndian: arg) }
/// Converts a number of the host to little-endian order.
public func CFSwapInt32HostToLittle(_ arg: UInt32) -> UInt32 { arg.littleEndian }
/// Converts a big-endian number to the host's order.
public func CFSwapInt32BigToHost(_ arg: UInt32) -> UInt32 { UInt32(bigEndian: arg) }
/// Converts a number of the host to big-endian order.
public func CFSwapInt32HostToBig(_ arg: UInt32) -> UInt32 { arg.bigEndian }

/// Returns a number with its bytes in the opposite order.
public func CFSwapInt64(_ arg: UInt64) -> UInt64 { arg.byteSwapped }
/// Converts a little-endian number to the host's order.
public func CFSwapInt64LittleToHost(_ arg: UInt64) -> UInt64 { UInt64(littleEndian: arg) }
/// Converts a number of the host to little-endian order.
public func CFSwapInt64HostToLittle(_ arg: UInt64) -> UInt64 { arg.littleEndian }
/// Converts a big-endian number to the host's order.
public func CFSwapInt64BigToHost(_ arg: UInt64) -> UInt64 { UInt64(bigEndian: arg) }
/// Converts a number of the host to big-endian order.
public func CFSwapInt64HostToBig(_ arg: UInt64) -> UInt64 { arg.bigEndian }

/// The type of a Dispatch source that watches a file. No such source can be made on Linux.
public protocol DispatchSourceFileSystemObject: DispatchSourceProtocol {}

/// Runs `body`. There are no autorelease pools on Linux: objects are released when their last reference goes away.
///
/// - Throws: The error of `body`.
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
