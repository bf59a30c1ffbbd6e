/// What a sample for a glucose meter was.
///
/// Spec: Type, Glucose Service 1.0, 3.1.1.5.
public struct GlucoseSampleType: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// Whole blood of the capillaries.
    public static let capillaryWholeBlood = Self(rawValue: 1)
    /// Plasma of the capillaries.
    public static let capillaryPlasma = Self(rawValue: 2)
    /// Whole blood of a vein.
    public static let venousWholeBlood = Self(rawValue: 3)
    /// Plasma of a vein.
    public static let venousPlasma = Self(rawValue: 4)
    /// Whole blood of an artery.
    public static let arterialWholeBlood = Self(rawValue: 5)
    /// Plasma of an artery.
    public static let arterialPlasma = Self(rawValue: 6)
    /// Whole blood; from where is not known.
    public static let undeterminedWholeBlood = Self(rawValue: 7)
    /// Plasma; from where is not known.
    public static let undeterminedPlasma = Self(rawValue: 8)
    /// Fluid between the cells.
    public static let interstitialFluid = Self(rawValue: 9)
    /// A solution to check the meter.
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

/// Where a sample for a glucose meter was taken.
///
/// Spec: Sample Location, Glucose Service 1.0, 3.1.1.6.
public struct GlucoseSampleLocation: RawRepresentable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8

    /// The code with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// A finger.
    public static let finger = Self(rawValue: 1)
    /// Another place.
    public static let alternateSite = Self(rawValue: 2)
    /// An earlobe.
    public static let earlobe = Self(rawValue: 3)
    /// A solution to check the meter.
    public static let controlSolution = Self(rawValue: 4)
    /// The meter does not know.
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
