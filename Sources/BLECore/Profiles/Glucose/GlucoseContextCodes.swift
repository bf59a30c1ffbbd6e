/// What a user of a glucose meter ate or drank.
///
/// Spec: Carbohydrate ID, Glucose Service 1.0, 3.2.1.4.
public struct GlucoseCarbohydrate: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
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

/// How a measurement of glucose stands to a meal.
///
/// Spec: Meal, Glucose Service 1.0, 3.2.1.6.
public struct GlucoseMeal: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// Before a meal.
    public static let preprandial = Self(rawValue: 1)
    /// After a meal.
    public static let postprandial = Self(rawValue: 2)
    /// While fasting.
    public static let fasting = Self(rawValue: 3)
    /// With snacks or drinks in between.
    public static let casual = Self(rawValue: 4)
    /// At bedtime.
    public static let bedtime = Self(rawValue: 5)
}

extension GlucoseMeal: NamedCode {
    package static var names: [String] { ["", "before", "after", "fasting", "casual", "bedtime"] }
}

/// Who measured glucose.
///
/// Spec: Tester, Glucose Service 1.0, 3.2.1.7.
public struct GlucoseTester: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// The user.
    public static let oneself = Self(rawValue: 1)
    /// Somebody who does it for a living.
    public static let healthCareProfessional = Self(rawValue: 2)
    /// A laboratory.
    public static let laboratory = Self(rawValue: 3)
    /// The meter does not know.
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

/// How a user of a glucose meter was.
///
/// Spec: Health, Glucose Service 1.0, 3.2.1.8.
public struct GlucoseHealth: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// A little ill.
    public static let minorIssues = Self(rawValue: 1)
    /// Very ill.
    public static let majorIssues = Self(rawValue: 2)
    /// During menses.
    public static let duringMenses = Self(rawValue: 3)
    /// Under stress.
    public static let underStress = Self(rawValue: 4)
    /// Well.
    public static let noIssues = Self(rawValue: 5)
    /// The meter does not know.
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

/// What a user of a glucose meter took.
///
/// Spec: Medication ID, Glucose Service 1.0, 3.2.1.11.
public struct GlucoseMedication: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// Insulin that acts rapidly.
    public static let rapidActingInsulin = Self(rawValue: 1)
    /// Insulin that acts for a short time.
    public static let shortActingInsulin = Self(rawValue: 2)
    /// Insulin that acts for a middling time.
    public static let intermediateActingInsulin = Self(rawValue: 3)
    /// Insulin that acts for a long time.
    public static let longActingInsulin = Self(rawValue: 4)
    /// A mixture.
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
