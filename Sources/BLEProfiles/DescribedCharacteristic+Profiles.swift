internal import BLECore

// The attributes with decoders, one list per profile.

extension DescribedCharacteristic {
    /// The lists of all profiles.
    static let profiles: [[Self]] =
        [
            descriptors, genericAccess, deviceInformation, battery, heartRate, healthThermometer, currentTime,
            environmentalSensing, airQuality,
        ] + sports + health

    private static let descriptors = [
        Self(0x2900, as: GATTDescriptor.ExtendedProperties.self),
        Self(0x2901, as: String.self),
        Self(0x2902, as: GATTDescriptor.ClientConfiguration.self),
        Self(0x2903, as: GATTDescriptor.ServerConfiguration.self),
        Self(0x2904, as: GATTDescriptor.PresentationFormat.self),
        Self(0x2905, as: GATTDescriptor.AggregateFormat.self),
        Self(0x2906, as: GATTDescriptor.ValidRange.self),
    ]

    private static let genericAccess = [
        Self(.deviceName), Self(.appearance), Self(.preferredConnectionParameters),
    ]

    private static let deviceInformation = [
        Self(.manufacturerName), Self(.modelNumber), Self(.serialNumber), Self(.hardwareRevision),
        Self(.firmwareRevision), Self(.softwareRevision), Self(.pnpID), Self(.systemID),
    ]

    private static let battery = [Self(.batteryLevel), Self(.batteryLevelStatus)]

    private static let heartRate = [
        Self(.heartRateMeasurement), Self(.bodySensorLocation), Self(.heartRateControlPoint),
    ]

    private static let healthThermometer = [
        Self(.temperatureMeasurement), Self(.intermediateTemperature), Self(.temperatureType),
        Self(.measurementInterval),
    ]

    private static let currentTime = [
        Self(.currentTime), Self(.localTimeInformation), Self(.referenceTimeInformation),
        Self(0x2A08, as: GATTDateTime.self), Self(0x2A0C, as: ExactTime256.self),
    ]

    private static let environmentalSensing = [
        Self(.temperature), Self(.dewPoint), Self(.heatIndex), Self(.windChill), Self(.humidity), Self(.pressure),
        Self(.pressureTrend), Self(.elevation), Self(.rainfall), Self(.pollenConcentration), Self(.trueWindSpeed),
        Self(.trueWindDirection), Self(.apparentWindSpeed), Self(.apparentWindDirection), Self(.gustFactor),
        Self(.magneticDeclination), Self(.uvIndex), Self(.irradiance), Self(.illuminance),
    ]

    private static let airQuality = [
        Self(.carbonDioxideConcentration), Self(.volatileOrganicCompounds), Self(.methaneConcentration, unit: "ppb"),
        Self(.carbonMonoxideConcentration, unit: "kg/m³"), Self(.nitrogenDioxideConcentration, unit: "kg/m³"),
        Self(.ozoneConcentration, unit: "kg/m³"), Self(.particulateMatter1, unit: "kg/m³"),
        Self(.particulateMatter25, unit: "kg/m³"), Self(.particulateMatter10, unit: "kg/m³"),
    ]

    /// The lists of the sports profiles.
    private static let sports: [[Self]] = [cycling, cyclingPower, fitnessMachine, running]

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

    /// The lists of the health profiles.
    private static let health: [[Self]] = [bloodPressure, glucose, pulseOximeter, weightScale]

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
