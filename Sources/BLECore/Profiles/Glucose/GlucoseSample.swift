/// What a sample for a glucose meter was.
///
/// Spec: Type, Glucose Service 1.0, 3.1.1.5.
public enum GlucoseSampleType: UInt8, Hashable, Sendable {
    /// Whole blood of the capillaries.
    case capillaryWholeBlood = 1
    /// Plasma of the capillaries.
    case capillaryPlasma
    /// Whole blood of a vein.
    case venousWholeBlood
    /// Plasma of a vein.
    case venousPlasma
    /// Whole blood of an artery.
    case arterialWholeBlood
    /// Plasma of an artery.
    case arterialPlasma
    /// Whole blood; from where is not known.
    case undeterminedWholeBlood
    /// Plasma; from where is not known.
    case undeterminedPlasma
    /// Fluid between the cells.
    case interstitialFluid
    /// A solution to check the meter.
    case controlSolution
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
public enum GlucoseSampleLocation: UInt8, Hashable, Sendable {
    /// A finger.
    case finger = 1
    /// Another place.
    case alternateSite
    /// An earlobe.
    case earlobe
    /// A solution to check the meter.
    case controlSolution
    /// The meter does not know.
    case notAvailable = 15
}

extension GlucoseSampleLocation: NamedCode {
    package static var names: [String] {
        [
            "", "finger", "alternate site", "earlobe", "control solution", "", "", "", "", "", "", "", "", "", "",
            "location not available",
        ]
    }
}
