extension DescribedCharacteristic {
    /// The lists of all rooms.
    static let rooms: [[Self]] = [
        heartRate, cycling, running,
    ]

    private static let heartRate = [Self(.heartRateMeasurement)]
}
