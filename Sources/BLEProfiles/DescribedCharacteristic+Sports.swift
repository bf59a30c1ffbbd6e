internal import BLECore

extension DescribedCharacteristic {
    /// The lists of the sports profiles.
    package static let sports: [[Self]] = [cycling, cyclingPower, fitnessMachine, running]

    private static let cycling: [Self] = [
        Self(.cscMeasurement), Self(.cscFeature), Self(.sensorLocation), Self(.scControlPointResponse),
    ]

    private static let cyclingPower: [Self] = [
        Self(.cyclingPowerMeasurement), Self(.cyclingPowerVector), Self(.cyclingPowerFeature),
        Self(.cyclingPowerControlPointResponse),
    ]

    private static let fitnessMachine: [Self] = [
        Self(.fitnessMachineFeature), Self(.treadmillData), Self(.crossTrainerData), Self(.rowerData),
        Self(.indoorBikeData), Self(.trainingStatus), Self(.supportedSpeedRange), Self(.supportedInclinationRange),
        Self(.supportedResistanceLevelRange), Self(.supportedHeartRateRange), Self(.supportedPowerRange),
        Self(.fitnessMachineControlPointResponse), Self(.fitnessMachineStatus),
    ]

    private static let running: [Self] = [Self(.rscMeasurement), Self(.rscFeature)]
}
