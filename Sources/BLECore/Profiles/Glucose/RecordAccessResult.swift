/// How a request for records ended.
///
/// Spec: Response Code Values, Glucose Service 1.0, 3.4.
public struct RecordAccessResult: RawRepresentable, Hashable, Sendable {
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
    /// The operator is not valid.
    public static let invalidOperator = Self(rawValue: 3)
    /// The device does not know this operator.
    public static let operatorNotSupported = Self(rawValue: 4)
    /// The operand is not valid.
    public static let invalidOperand = Self(rawValue: 5)
    /// No record is meant.
    public static let noRecordsFound = Self(rawValue: 6)
    /// What is under way could not be ended.
    public static let abortUnsuccessful = Self(rawValue: 7)
    /// It was begun and not finished.
    public static let procedureNotCompleted = Self(rawValue: 8)
    /// The device does not know this operand.
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
