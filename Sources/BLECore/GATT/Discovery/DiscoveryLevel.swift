/// The extent of a discovery.
public enum DiscoveryLevel: String, Hashable, Sendable, CaseIterable {
    /// Services and characteristics.
    case structure
    /// Also the configuration (CCCD) of every value that can be subscribed to.
    case subscribable
    /// Every attribute: descriptors, included and secondary services too.
    case full
}
