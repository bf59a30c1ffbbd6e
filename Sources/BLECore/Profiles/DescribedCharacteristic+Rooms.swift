extension DescribedCharacteristic {
    /// The lists of all rooms.
    static let rooms: [[Self]] =
        [
            heartRate
        ] + sports

    private static let heartRate = [Self(.heartRateMeasurement)]
}
