/// A device of a list that is kept current.
public struct MonitoredDevice: Hashable, Sendable {
    /// What is known of it: its newest advertisement, scan response and strength.
    public internal(set) var sighting: Sighting
    /// Whether it is here. Only pinned devices stay in the list when they are not.
    public internal(set) var isPresent: Bool
    /// How near it is, by its smoothed strength.
    public internal(set) var proximity: Proximity

    /// The device; `nil` for one that advertises anonymously.
    public var peer: PeerID? { sighting.peer }
}

/// How a list of devices differs from the one told before.
///
/// Who came and went in between is in neither list.
public struct DeviceListChange: Hashable, Sendable {
    /// Who is here now and was not, in the order in which they came.
    public internal(set) var arrived: [MonitoredDevice] = []
    /// Who was here and is not any more, in the order in which they had come.
    public internal(set) var left: [MonitoredDevice] = []
    /// Who was here and is on another level of proximity.
    public internal(set) var moved: [MonitoredDevice] = []

    var isEmpty: Bool { arrived.isEmpty && left.isEmpty && moved.isEmpty }
}
