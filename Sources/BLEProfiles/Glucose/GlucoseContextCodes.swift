internal import BLECore

/// The carbohydrate that a user consumed.
///
/// Spec: Carbohydrate ID, Glucose Service 1.0, 3.2.1.4.
public struct GlucoseCarbohydrate: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Breakfast.
    public static let breakfast = Self(rawValue: 1)
    /// Lunch.
    public static let lunch = Self(rawValue: 2)
    /// Dinner.
    public static let dinner = Self(rawValue: 3)
    /// A snack.
    public static let snack = Self(rawValue: 4)
    /// A drink.
    public static let drink = Self(rawValue: 5)
    /// Supper.
    public static let supper = Self(rawValue: 6)
    /// Brunch.
    public static let brunch = Self(rawValue: 7)
}

extension GlucoseCarbohydrate: NamedCode {
    package static var names: [String] { ["", "breakfast", "lunch", "dinner", "snack", "drink", "supper", "brunch"] }
}

/// The relation of a glucose measurement to a meal.
///
/// Spec: Meal, Glucose Service 1.0, 3.2.1.6.
public struct GlucoseMeal: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Before a meal.
    public static let preprandial = Self(rawValue: 1)
    /// After a meal.
    public static let postprandial = Self(rawValue: 2)
    /// While fasting.
    public static let fasting = Self(rawValue: 3)
    /// Casual: snacks or drinks in between.
    public static let casual = Self(rawValue: 4)
    /// At bedtime.
    public static let bedtime = Self(rawValue: 5)
}

extension GlucoseMeal: NamedCode {
    package static var names: [String] { ["", "before", "after", "fasting", "casual", "bedtime"] }
}

/// The person who performed a glucose measurement.
///
/// Spec: Tester, Glucose Service 1.0, 3.2.1.7.
public struct GlucoseTester: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// The user.
    public static let oneself = Self(rawValue: 1)
    /// A health care professional.
    public static let healthCareProfessional = Self(rawValue: 2)
    /// A laboratory.
    public static let laboratory = Self(rawValue: 3)
    /// Not available.
    public static let notAvailable = Self(rawValue: 15)
}

extension GlucoseTester: NamedCode {
    package static var names: [String] {
        [
            "", "self", "health care professional", "laboratory", "", "", "", "", "", "", "", "", "", "", "",
            "not available",
        ]
    }
}

/// The health of the user of a glucose meter.
///
/// Spec: Health, Glucose Service 1.0, 3.2.1.8.
public struct GlucoseHealth: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Minor health issues.
    public static let minorIssues = Self(rawValue: 1)
    /// Major health issues.
    public static let majorIssues = Self(rawValue: 2)
    /// During menses.
    public static let duringMenses = Self(rawValue: 3)
    /// Under stress.
    public static let underStress = Self(rawValue: 4)
    /// No health issues.
    public static let noIssues = Self(rawValue: 5)
    /// Not available.
    public static let notAvailable = Self(rawValue: 15)
}

extension GlucoseHealth: NamedCode {
    package static var names: [String] {
        [
            "", "minor issues", "major issues", "during menses", "under stress", "no issues", "", "", "", "", "", "",
            "", "", "", "not available",
        ]
    }
}

/// The medication that a user took.
///
/// Spec: Medication ID, Glucose Service 1.0, 3.2.1.11.
public struct GlucoseMedication: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Rapid-acting insulin.
    public static let rapidActingInsulin = Self(rawValue: 1)
    /// Short-acting insulin.
    public static let shortActingInsulin = Self(rawValue: 2)
    /// Intermediate-acting insulin.
    public static let intermediateActingInsulin = Self(rawValue: 3)
    /// Long-acting insulin.
    public static let longActingInsulin = Self(rawValue: 4)
    /// Pre-mixed insulin.
    public static let premixedInsulin = Self(rawValue: 5)
}

extension GlucoseMedication: NamedCode {
    package static var names: [String] {
        [
            "", "rapid acting insulin", "short acting insulin", "intermediate acting insulin", "long acting insulin",
            "pre-mixed insulin",
        ]
    }
}
