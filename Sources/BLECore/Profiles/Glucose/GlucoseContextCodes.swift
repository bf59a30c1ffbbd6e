/// What a user of a glucose meter ate or drank.
///
/// Spec: Carbohydrate ID, Glucose Service 1.0, 3.2.1.4.
public enum GlucoseCarbohydrate: UInt8, Hashable, Sendable {
    /// Breakfast.
    case breakfast = 1
    /// Lunch.
    case lunch
    /// Dinner.
    case dinner
    /// A snack.
    case snack
    /// A drink.
    case drink
    /// Supper.
    case supper
    /// Brunch.
    case brunch
}

extension GlucoseCarbohydrate: NamedCode {
    package static var names: [String] { ["", "breakfast", "lunch", "dinner", "snack", "drink", "supper", "brunch"] }
}

/// How a measurement of glucose stands to a meal.
///
/// Spec: Meal, Glucose Service 1.0, 3.2.1.6.
public enum GlucoseMeal: UInt8, Hashable, Sendable {
    /// Before a meal.
    case preprandial = 1
    /// After a meal.
    case postprandial
    /// While fasting.
    case fasting
    /// With snacks or drinks in between.
    case casual
    /// At bedtime.
    case bedtime
}

extension GlucoseMeal: NamedCode {
    package static var names: [String] { ["", "before", "after", "fasting", "casual", "bedtime"] }
}

/// Who measured glucose.
///
/// Spec: Tester, Glucose Service 1.0, 3.2.1.7.
public enum GlucoseTester: UInt8, Hashable, Sendable {
    /// The user.
    case oneself = 1
    /// Somebody who does it for a living.
    case healthCareProfessional
    /// A laboratory.
    case laboratory
    /// The meter does not know.
    case notAvailable = 15
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
public enum GlucoseHealth: UInt8, Hashable, Sendable {
    /// A little ill.
    case minorIssues = 1
    /// Very ill.
    case majorIssues
    /// During menses.
    case duringMenses
    /// Under stress.
    case underStress
    /// Well.
    case noIssues
    /// The meter does not know.
    case notAvailable = 15
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
public enum GlucoseMedication: UInt8, Hashable, Sendable {
    /// Insulin that acts rapidly.
    case rapidActingInsulin = 1
    /// Insulin that acts for a short time.
    case shortActingInsulin
    /// Insulin that acts for a middling time.
    case intermediateActingInsulin
    /// Insulin that acts for a long time.
    case longActingInsulin
    /// A mixture.
    case premixedInsulin
}

extension GlucoseMedication: NamedCode {
    package static var names: [String] {
        [
            "", "rapid acting insulin", "short acting insulin", "intermediate acting insulin", "long acting insulin",
            "pre-mixed insulin",
        ]
    }
}
