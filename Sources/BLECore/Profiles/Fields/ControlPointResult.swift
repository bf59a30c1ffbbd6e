/// How a request to a control point ended.
///
/// Spec: the Response Value tables of CSCS 1.0, RSCS 1.0 and CPS 1.1; Result Codes, FTMS 1.0, 4.16.2.22.
public struct ControlPointResult: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The result with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// It was done.
    public static let success = Self(rawValue: 1)
    /// The device does not know this request.
    public static let opCodeNotSupported = Self(rawValue: 2)
    /// The request's parameter is not valid.
    public static let invalidParameter = Self(rawValue: 3)
    /// It was tried and failed.
    public static let operationFailed = Self(rawValue: 4)
    /// Fitness machines only: control has not been asked for, or was lost.
    public static let controlNotPermitted = Self(rawValue: 5)
}

extension ControlPointResult: NamedCode {
    package static var names: [String] {
        ["", "success", "not supported", "invalid parameter", "failed", "control not permitted"]
    }
}
