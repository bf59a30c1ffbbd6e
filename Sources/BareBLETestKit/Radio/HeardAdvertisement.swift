public import BLECore

/// An advertisement of an adapter of a `VirtualRadio`, as others hear it.
public struct HeardAdvertisement: Hashable, Sendable {
    /// The adapter's name, such as `hci0`.
    public let adapter: String
    /// The address that is advertised.
    public let peer: PeerID
    /// The number of the advertising set at the controller; 0 for a controller with one advertiser.
    public let set: UInt8
    /// The advertising data.
    public let data: AdvertisingData
    /// The data of the scan response; `nil` if there is none.
    public let scanResponse: AdvertisingData?
    /// The advertising interval.
    public let interval: Duration
    /// A Boolean value that indicates whether centrals may connect.
    public let isConnectable: Bool
    /// A Boolean value that indicates whether extended PDUs are used, which older devices do not receive.
    public let isExtended: Bool

    init(_ set: VirtualAdvertiser.AdvertisingSet, of address: BluetoothAddress, adapter: String) {
        self.adapter = adapter
        peer =
            set.usesRandomAddress
            ? PeerID(address: set.randomAddress ?? .zero, type: .random) : PeerID(address: address, type: .public)
        self.set = set.handle
        data = AdvertisingData(set.data)
        scanResponse = set.isScannable ? AdvertisingData(set.scanResponse) : nil
        interval = set.interval
        isConnectable = set.isConnectable
        isExtended = set.isExtended
    }
}
