/// The plan of one advertising set: its kind, its PDUs, its timing and its payload.
package struct AdvertisingPlan: Hashable, Sendable {
    /// The rule that invalid values violate.
    package enum Invalid: Error, Hashable, Sendable {
        /// The interval is outside 20 ms to 10.24 s.
        case interval
        /// The primary PHY is neither 1M nor Coded, or a PHY is chosen for legacy PDUs, which use 1M.
        case phy
        /// A part of the payload does not fit the kind and the PDUs.
        case payload
    }

    package typealias Kind = LESetAdvertisingParameters.Kind

    /// The kind, which specifies whether centrals may connect and whether there is a scan response.
    package let kind: Kind
    /// A Boolean value that indicates whether to use extended PDUs, which older devices do not receive. A connectable
    /// advertisement then has no scan response, and a scannable one has all of its data there.
    package let usesExtendedPDUs: Bool
    /// The bounds of the interval, in units of 0.625 ms.
    package let interval: ClosedRange<UInt16>
    /// The PHY of the primary channels.
    package let primaryPHY: PHY
    /// The PHY of the secondary channels, for extended PDUs.
    package let secondaryPHY: PHY
    /// The greatest transmit power in dBm; `nil` leaves it to the controller, as controllers with one advertiser do
    /// always.
    package let txPower: Int8?
    /// The random address to advertise; `nil` for the public one. On a controller with one advertiser, scans and
    /// connection attempts with a random address share it.
    package let randomAddress: BluetoothAddress?
    /// The data.
    package let payload: AdvertisementData.Payload

    /// Creates a plan; times are rounded down to multiples of 0.625 ms.
    ///
    /// - Throws: `Invalid` if the specification does not allow the values, alone or together.
    package init(
        _ payload: AdvertisementData.Payload, kind: Kind = .connectable, usesExtendedPDUs: Bool = false,
        interval: ClosedRange<Duration> = .milliseconds(100)...(.milliseconds(150)),
        primaryPHY: PHY = .le1M,
        secondaryPHY: PHY? = nil, txPower: Int8? = nil, randomAddress: BluetoothAddress? = nil
    ) throws(Invalid) {
        guard interval.lowerBound >= .milliseconds(20), interval.upperBound <= .milliseconds(10_240)
        else {
            throw .interval
        }
        let secondary = secondaryPHY ?? primaryPHY
        guard primaryPHY == .le1M || usesExtendedPDUs && primaryPHY == .leCoded,
            secondary == .le1M || usesExtendedPDUs && (secondary == .le2M || secondary == .leCoded)
        else { throw .phy }
        let limits = Self.limits(kind, usesExtendedPDUs: usesExtendedPDUs, maximum: .max)
        guard payload.advertisingData.count <= limits.advertisingData,
            payload.scanResponse.count <= limits.scanResponse
        else { throw .payload }
        self.kind = kind
        self.usesExtendedPDUs = usesExtendedPDUs
        self.interval = interval.lowerBound.units(of: 625_000)...interval.upperBound.units(of: 625_000)
        self.primaryPHY = primaryPHY
        self.secondaryPHY = secondary
        self.txPower = txPower
        self.randomAddress = randomAddress
        self.payload = payload
    }

    /// Returns how much data such an advertisement holds, on a controller with this maximum for extended PDUs.
    package static func limits(_ kind: Kind, usesExtendedPDUs: Bool, maximum: Int)
        -> AdvertisementData.Limits
    {
        switch kind {
        case .connectable: usesExtendedPDUs ? .extended(maximum: maximum) : .legacy
        case .scannable: usesExtendedPDUs ? .extendedScannable(maximum: maximum) : .legacy
        case .nonconnectable:
            usesExtendedPDUs ? .extended(maximum: maximum) : .legacyWithoutScanResponse
        }
    }
}
