extension DescribedCharacteristic {
    static let cycling: [Self] = [
        Self(.cscMeasurement), Self(.cscFeature), Self(.sensorLocation), Self(.scControlPointResponse),
    ]

    static let running: [Self] = [Self(.rscMeasurement), Self(.rscFeature)]
}
