/// A device in the list of a monitor.
public struct MonitoredDevice: Hashable, Sendable {
    /// The device's newest advertisement, scan response and signal strength.
    public internal(set) var scanResult: ScanResult
    /// A Boolean value that indicates whether the device is present. Only pinned devices stay in the list while
    /// absent.
    public internal(set) var isPresent: Bool
    /// The proximity of the device, from its smoothed signal strength.
    public internal(set) var proximity: Proximity

    /// The device, by the address of its newest report; `nil` for one that advertises anonymously.
    public var peer: PeerID? { scanResult.peer }

    /// The identity address of a bonded device that advertises with a private address; `nil` for every other device.
    public var identity: PeerID? { scanResult.identity }

    /// The former name of `scanResult`.
    @available(*, deprecated, renamed: "scanResult")
    public var sighting: ScanResult { scanResult }
}

/// The difference of a device list from the one delivered before.
///
/// A device that came and went in between is in neither list.
public struct DeviceListChange: Hashable, Sendable {
    /// The devices that are present now and were not, in the order of their arrival.
    public internal(set) var arrived: [MonitoredDevice] = []
    /// The devices that were present and are not any more, in the order of their arrival.
    public internal(set) var left: [MonitoredDevice] = []
    /// The present devices whose level of proximity has changed.
    public internal(set) var moved: [MonitoredDevice] = []

    var isEmpty: Bool { arrived.isEmpty && left.isEmpty && moved.isEmpty }
}
