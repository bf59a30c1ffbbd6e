internal import BLECore

/// The type of a glucose sample.
///
/// Spec: Type, Glucose Service 1.0, 3.1.1.5.
public struct GlucoseSampleType: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Capillary whole blood.
    public static let capillaryWholeBlood = Self(rawValue: 1)
    /// Capillary plasma.
    public static let capillaryPlasma = Self(rawValue: 2)
    /// Venous whole blood.
    public static let venousWholeBlood = Self(rawValue: 3)
    /// Venous plasma.
    public static let venousPlasma = Self(rawValue: 4)
    /// Arterial whole blood.
    public static let arterialWholeBlood = Self(rawValue: 5)
    /// Arterial plasma.
    public static let arterialPlasma = Self(rawValue: 6)
    /// Whole blood of undetermined origin.
    public static let undeterminedWholeBlood = Self(rawValue: 7)
    /// Plasma of undetermined origin.
    public static let undeterminedPlasma = Self(rawValue: 8)
    /// Interstitial fluid.
    public static let interstitialFluid = Self(rawValue: 9)
    /// A control solution.
    public static let controlSolution = Self(rawValue: 10)
}

extension GlucoseSampleType: NamedCode {
    package static var names: [String] {
        [
            "", "capillary whole blood", "capillary plasma", "venous whole blood", "venous plasma",
            "arterial whole blood", "arterial plasma", "undetermined whole blood", "undetermined plasma",
            "interstitial fluid", "control solution",
        ]
    }
}

/// The location where a glucose sample was taken.
///
/// Spec: Sample Location, Glucose Service 1.0, 3.1.1.6.
public struct GlucoseSampleLocation: RawRepresentable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8

    /// Creates a value from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// A finger.
    public static let finger = Self(rawValue: 1)
    /// An alternate site.
    public static let alternateSite = Self(rawValue: 2)
    /// An earlobe.
    public static let earlobe = Self(rawValue: 3)
    /// A control solution.
    public static let controlSolution = Self(rawValue: 4)
    /// Not available.
    public static let notAvailable = Self(rawValue: 15)
}

extension GlucoseSampleLocation: NamedCode {
    package static var names: [String] {
        [
            "", "finger", "alternate site", "earlobe", "control solution", "", "", "", "", "", "", "", "", "", "",
            "location not available",
        ]
    }
}
