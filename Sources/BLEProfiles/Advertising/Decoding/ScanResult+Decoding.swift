public import BLECore

extension ScanResult {
    /// The decoded manufacturer and service data, those of the advertisement before those of the scan response.
    ///
    /// See ``BLECore/AdvertisingData/decoded``.
    public var decoded: [DecodedAdvertisement] {
        payload.decoded
    }

    /// The former name of `decoded`.
    @available(*, deprecated, renamed: "decoded")
    public var meanings: [DecodedAdvertisement] { decoded }
}
