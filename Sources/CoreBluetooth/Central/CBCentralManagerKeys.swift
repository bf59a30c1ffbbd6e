// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// The keys of the dictionaries that a central manager takes and gives. What each value means on Linux is stated at the
// call that takes or gives it.

/// The local name of a device in its advertisement; an `NSString`.
public let CBAdvertisementDataLocalNameKey: String = "kCBAdvDataLocalName"
/// The manufacturer's data in an advertisement; `NSData` that begins with the company's number, little-endian.
public let CBAdvertisementDataManufacturerDataKey: String = "kCBAdvDataManufacturerData"
/// The data of services in an advertisement; a `[CBUUID: Data]`.
public let CBAdvertisementDataServiceDataKey: String = "kCBAdvDataServiceData"
/// The services in an advertisement; a `[CBUUID]`.
public let CBAdvertisementDataServiceUUIDsKey: String = "kCBAdvDataServiceUUIDs"
/// The services that an iOS device advertises in the background; never present on Linux.
public let CBAdvertisementDataOverflowServiceUUIDsKey: String = "kCBAdvDataHashedServiceUUIDs"
/// The transmit power in an advertisement, in dBm; an `NSNumber`.
public let CBAdvertisementDataTxPowerLevelKey: String = "kCBAdvDataTxPowerLevel"
/// The key of an `NSNumber` with a Boolean value that indicates whether the device accepts connections.
public let CBAdvertisementDataIsConnectable: String = "kCBAdvDataIsConnectable"
/// The services that the device solicits; a `[CBUUID]`.
public let CBAdvertisementDataSolicitedServiceUUIDsKey: String = "kCBAdvDataSolicitedServiceUUIDs"

/// The key of a Boolean value that indicates whether the system alerts the user if Bluetooth is off. On Linux, `true`
/// switches on the adapter, with CAP_NET_ADMIN.
public let CBCentralManagerOptionShowPowerAlertKey: String = "kCBInitOptionShowPowerAlert"
/// The identifier of a central manager that is to be restored.
public let CBCentralManagerOptionRestoreIdentifierKey: String = "kCBInitOptionRestoreIdentifier"
/// Access to media accessories; without effect on Linux.
public let CBCentralManagerOptionDeviceAccessForMedia: String = "kCBInitOptionDeviceAccessForMedia"

/// The key of a Boolean value that indicates whether a scan reports every advertisement of a device.
public let CBCentralManagerScanOptionAllowDuplicatesKey: String = "kCBScanOptionAllowDuplicates"
/// The services that devices have to solicit; a `[CBUUID]`.
public let CBCentralManagerScanOptionSolicitedServiceUUIDsKey: String = "kCBScanOptionSolicitedServiceUUIDs"

/// The key of a Boolean value that indicates whether the system alerts the user of a connection in the background;
/// without effect on Linux.
public let CBConnectPeripheralOptionNotifyOnConnectionKey: String = "kCBConnectOptionNotifyOnConnection"
/// The key of a Boolean value that indicates whether the system alerts the user of a disconnection in the background;
/// without effect on Linux.
public let CBConnectPeripheralOptionNotifyOnDisconnectionKey: String = "kCBConnectOptionNotifyOnDisconnection"
/// The key of a Boolean value that indicates whether the system alerts the user of values in the background; without
/// effect on Linux.
public let CBConnectPeripheralOptionNotifyOnNotificationKey: String = "kCBConnectOptionNotifyOnNotification"
/// The time to wait before the connection attempt, in seconds; an `NSNumber`.
public let CBConnectPeripheralOptionStartDelayKey: String = "kCBConnectOptionStartDelay"
/// The key of a Boolean value that indicates whether the system also connects over Bluetooth Classic; without effect on
/// Linux.
public let CBConnectPeripheralOptionEnableTransportBridgingKey: String = "kCBConnectOptionEnableTransportBridging"
/// The key of a Boolean value that indicates whether the device needs Apple's notification service; without effect on
/// Linux.
public let CBConnectPeripheralOptionRequiresANCS: String = "kCBConnectOptionRequiresANCS"
/// The key of a Boolean value that indicates whether the link is established again after a loss, however many attempts
/// fail.
public let CBConnectPeripheralOptionEnableAutoReconnect: String = "kCBConnectOptionEnableAutoReconnect"

/// The restored peripherals; a `[CBPeripheral]`.
public let CBCentralManagerRestoredStatePeripheralsKey: String = "kCBRestoredPeripherals"
/// The services of the restored scan; a `[CBUUID]`.
public let CBCentralManagerRestoredStateScanServicesKey: String = "kCBRestoredScanServices"
/// The options of the restored scan; a `[String: Any]`.
public let CBCentralManagerRestoredStateScanOptionsKey: String = "kCBRestoredScanOptions"

/// A condition on the devices whose connections are reported, for `registerForConnectionEvents(options:)`.
public struct CBConnectionEventMatchingOption: RawRepresentable, Hashable, Sendable {
    /// The name of the condition.
    public let rawValue: String

    /// Creates a condition from its name.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The device has one of these services; a `[CBUUID]`.
    public static let serviceUUIDs = CBConnectionEventMatchingOption(rawValue: "kCBConnectionEventMatchingServiceUUIDs")
    /// The device is one of these; a `[UUID]` with the values of `CBPeer.identifier`.
    public static let peripheralUUIDs = CBConnectionEventMatchingOption(
        rawValue: "kCBConnectionEventMatchingPeripheralUUIDs")
}

/// An event of `centralManager(_:connectionEventDidOccur:for:)`.
public enum CBConnectionEvent: Int, Sendable {
    /// The link to the device has ended.
    case peerDisconnected = 0
    /// A link to the device was established.
    case peerConnected = 1
}
