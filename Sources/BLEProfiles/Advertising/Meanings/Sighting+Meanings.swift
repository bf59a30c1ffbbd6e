public import BLECore

extension Sighting {
    /// The decoded manufacturer and service data, those of the advertisement before those of the scan response.
    ///
    /// See ``BLECore/AdvertisingData/meanings``.
    public var meanings: [AdvertisementMeaning] {
        payload.meanings
    }
}
