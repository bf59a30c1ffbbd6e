// The names are those of Apple's modules, whose documentation describes them.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, AlwaysUseLowerCamelCase

// The part of Apple's logging that code next to CoreBluetooth uses, to standard error.

import Foundation

/// The importance of a message.
public struct OSLogType: RawRepresentable, Equatable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    public static let `default` = OSLogType(rawValue: 0)
    public static let info = OSLogType(rawValue: 1)
    public static let debug = OSLogType(rawValue: 2)
    public static let error = OSLogType(rawValue: 16)
    public static let fault = OSLogType(rawValue: 17)

    fileprivate var name: String {
        switch self {
        case .info: "info"
        case .debug: "debug"
        case .error: "error"
        case .fault: "fault"
        default: "default"
        }
    }
}

/// A place for messages, with the names that precede each of them.
public final class OSLog: NSObject, @unchecked Sendable {
    public static let `default` = OSLog(subsystem: "", category: "")
    public static let disabled = OSLog(subsystem: "", category: "", isEnabled: false)

    private let prefix: String
    private let isOn: Bool

    public convenience init(subsystem: String, category: String) {
        self.init(subsystem: subsystem, category: category, isEnabled: true)
    }

    private init(subsystem: String, category: String, isEnabled: Bool) {
        prefix = [subsystem, category].filter { !$0.isEmpty }.joined(separator: ":")
        isOn = isEnabled
    }

    /// Debugging messages are written if the environment has `OS_ACTIVITY_MODE=debug`.
    public func isEnabled(type: OSLogType) -> Bool {
        isOn && (type != .debug || ProcessInfo.processInfo.environment["OS_ACTIVITY_MODE"] == "debug")
    }

    fileprivate func write(_ text: String, _ type: OSLogType) {
        guard isEnabled(type: type) else { return }
        let name = prefix.isEmpty ? "" : " [\(prefix)]"
        FileHandle.standardError.write(Data("\(type.name)\(name) \(text)\n".utf8))
    }
}

/// Writes a message in the form of `printf`, with `%{public}` and `%{private}`, which are the same here. An argument of
/// another type than the format says is written as its description.
public func os_log(_ type: OSLogType, log: OSLog = .default, _ message: StaticString, _ arguments: any CVarArg...) {
    write(message, arguments, log, type)
}

/// Writes a message in the form of `printf`.
public func os_log(
    _ message: StaticString, dso: UnsafeRawPointer? = nil, log: OSLog = .default, type: OSLogType = .default,
    _ arguments: any CVarArg...
) {
    write(message, arguments, log, type)
}

private func write(_ message: StaticString, _ arguments: [any CVarArg], _ log: OSLog, _ type: OSLogType) {
    guard log.isEnabled(type: type) else { return }
    log.write(LogFormat.text("\(message)", arguments), type)
}

/// How a value appears in a message: always as it is.
public struct OSLogPrivacy: Sendable {
    public static let `public` = OSLogPrivacy()
    public static let `private` = OSLogPrivacy()
    public static let sensitive = OSLogPrivacy()
    public static let auto = OSLogPrivacy()
}

/// A message of a `Logger`.
public struct OSLogMessage: ExpressibleByStringInterpolation {
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        public init(literalCapacity: Int, interpolationCount: Int) {}

        public mutating func appendLiteral(_ literal: String) { text += literal }

        public mutating func appendInterpolation<Value>(
            _ value: @autoclosure () -> Value, privacy: OSLogPrivacy = .auto
        ) {
            text += "\(value())"
        }
    }

    fileprivate let text: String

    public init(stringLiteral value: String) {
        text = value
    }

    public init(stringInterpolation: StringInterpolation) {
        text = stringInterpolation.text
    }
}

/// Writes messages with the names of a part of a program.
public struct Logger: Sendable {
    private let log: OSLog

    public init() {
        log = .default
    }

    public init(subsystem: String, category: String) {
        log = OSLog(subsystem: subsystem, category: category)
    }

    public init(_ log: OSLog) {
        self.log = log
    }

    public func log(_ message: OSLogMessage) { log.write(message.text, .default) }
    public func log(level: OSLogType, _ message: OSLogMessage) { log.write(message.text, level) }
    public func trace(_ message: OSLogMessage) { log.write(message.text, .debug) }
    public func debug(_ message: OSLogMessage) { log.write(message.text, .debug) }
    public func info(_ message: OSLogMessage) { log.write(message.text, .info) }
    public func notice(_ message: OSLogMessage) { log.write(message.text, .default) }
    public func warning(_ message: OSLogMessage) { log.write(message.text, .error) }
    public func error(_ message: OSLogMessage) { log.write(message.text, .error) }
    public func critical(_ message: OSLogMessage) { log.write(message.text, .fault) }
    public func fault(_ message: OSLogMessage) { log.write(message.text, .fault) }
}
