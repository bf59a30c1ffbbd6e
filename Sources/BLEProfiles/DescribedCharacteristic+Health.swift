internal import BLECore

extension DescribedCharacteristic {
    /// The lists of the health profiles.
    package static let health: [[Self]] = [bloodPressure, glucose, pulseOximeter, weightScale]

    private static let bloodPressure: [Self] = [
        Self(.bloodPressureMeasurement), Self(.intermediateCuffPressure), Self(.bloodPressureFeature),
    ]

    private static let glucose: [Self] = [
        Self(.glucoseMeasurement), Self(.glucoseMeasurementContext), Self(.glucoseFeature),
        Self(.recordAccessControlPointResponse),
    ]

    private static let pulseOximeter: [Self] = [
        Self(.plxSpotCheckMeasurement), Self(.plxContinuousMeasurement), Self(.plxFeatures),
    ]

    private static let weightScale: [Self] = [
        Self(.weightMeasurement), Self(.weightScaleFeature), Self(.bodyCompositionMeasurement),
        Self(.bodyCompositionFeature),
    ]
}
