import BLECore
import BLELinux
import BLEProfiles

/// The keys of `--keys`, with which everything is decoded that the program shows.
///
/// They are set once, before the first output.
enum SensorKeys {
    private static let keys = Lock<AdvertisementKeys?>(nil)

    /// Decodes with these keys from now on.
    static func use(_ keys: AdvertisementKeys) {
        self.keys.withLock { $0 = keys }
    }

    /// The keys; `nil` without `--keys`.
    static var all: AdvertisementKeys? { keys.withLock { $0 } }

    /// Whether `--keys` was given.
    static var areThere: Bool { keys.withLock { $0 != nil } }

    /// Returns the decoded data of a device.
    static func decoded(_ scanResult: ScanResult) -> [DecodedAdvertisement] {
        guard let keys = all else { return scanResult.decoded }
        return scanResult.decoded(with: keys)
    }

    /// Returns the decoded data of a payload; `senders` are the addresses of the device that has sent it.
    static func decoded(_ data: AdvertisingData, from senders: [BluetoothAddress]) -> [DecodedAdvertisement] {
        guard let keys = all else { return data.decoded }
        return data.decoded(with: keys, from: sender(among: senders, keys))
    }

    /// Returns the decoded data of one structure of a payload.
    static func decoded(
        _ structure: AdvertisingData.Structure, of whole: AdvertisingData, from senders: [BluetoothAddress]
    ) -> DecodedAdvertisement? {
        guard let keys = all else { return whole.decoded(structure) }
        return whole.decoded(structure, with: keys, from: sender(among: senders, keys))
    }

    private static func sender(among senders: [BluetoothAddress], _ keys: AdvertisementKeys) -> BluetoothAddress? {
        senders.first { keys.hasKey(for: $0) } ?? senders.first
    }
}

extension ScanResult {
    /// The addresses that the device is known by.
    var senders: [BluetoothAddress] { [peer?.address, identity?.address].compactMap(\.self) }

    /// Whether what the device has sent has a measurement.
    var hasMeasurement: Bool { SensorKeys.decoded(self).contains(where: \.hasMeasurement) }
}
