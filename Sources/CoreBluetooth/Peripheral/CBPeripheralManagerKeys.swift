// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// The key of a Boolean value that indicates whether the system alerts the user if Bluetooth is off. On Linux, `true`
/// switches on the adapter, with CAP_NET_ADMIN.
public let CBPeripheralManagerOptionShowPowerAlertKey: String = "kCBInitOptionShowPowerAlert"
/// The identifier of a peripheral manager that is to be restored.
public let CBPeripheralManagerOptionRestoreIdentifierKey: String = "kCBInitOptionRestoreIdentifier"
/// The restored services; a `[CBMutableService]`.
public let CBPeripheralManagerRestoredStateServicesKey: String = "kCBRestoredServices"
/// The restored advertisement; a `[String: Any]`.
public let CBPeripheralManagerRestoredStateAdvertisementDataKey: String = "kCBRestoredAdvertisement"

/// The latency of a link to a central; the lower, the faster and the more expensive.
public enum CBPeripheralManagerConnectionLatency: Int, Sendable {
    /// Values arrive fast, at the cost of the central's battery.
    case low = 0
    /// A balance.
    case medium = 1
    /// The central's battery lasts, at the cost of speed.
    case high = 2
}
