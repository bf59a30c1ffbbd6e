internal import BLECore

/// The result of a request for records.
///
/// Spec: Response Code Values, Glucose Service 1.0, 3.4.
public struct RecordAccessResult: RawRepresentable, Hashable, Sendable {
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
    /// The operator is invalid.
    public static let invalidOperator = Self(rawValue: 3)
    /// The operator is not supported.
    public static let operatorNotSupported = Self(rawValue: 4)
    /// The operand is invalid.
    public static let invalidOperand = Self(rawValue: 5)
    /// No record matches the request.
    public static let noRecordsFound = Self(rawValue: 6)
    /// The operation in progress could not be aborted.
    public static let abortUnsuccessful = Self(rawValue: 7)
    /// The procedure was started but not completed.
    public static let procedureNotCompleted = Self(rawValue: 8)
    /// The operand is not supported.
    public static let operandNotSupported = Self(rawValue: 9)
}

extension RecordAccessResult: NamedCode {
    package static var names: [String] {
        [
            "", "success", "not supported", "invalid operator", "operator not supported", "invalid operand",
            "no records found", "abort unsuccessful", "procedure not completed", "operand not supported",
        ]
    }
}
