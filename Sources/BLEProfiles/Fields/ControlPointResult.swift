internal import BLECore

/// The result of a control point request.
///
/// Spec: the Response Value tables of CSCS 1.0, RSCS 1.0 and CPS 1.1; Result Codes, FTMS 1.0, 4.16.2.22.
public struct ControlPointResult: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a result from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Success.
    public static let success = Self(rawValue: 1)
    /// The opcode is not supported.
    public static let opCodeNotSupported = Self(rawValue: 2)
    /// The parameter is invalid.
    public static let invalidParameter = Self(rawValue: 3)
    /// The operation failed.
    public static let operationFailed = Self(rawValue: 4)
    /// Fitness machines only: control was not requested, or was lost.
    public static let controlNotPermitted = Self(rawValue: 5)
}

extension ControlPointResult: NamedCode {
    package static var names: [String] {
        ["", "success", "not supported", "invalid parameter", "failed", "control not permitted"]
    }
}
