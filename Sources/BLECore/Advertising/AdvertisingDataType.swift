/// The type of an advertising data structure.
///
/// The set is open: numbers assigned later are valid values too.
///
/// Spec: Assigned Numbers, 2.3.
public struct AdvertisingDataType: RawRepresentable, Hashable, Sendable {
    /// The assigned number.
    public let rawValue: UInt8

    /// Creates a type from its assigned number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Flags.
    public static let flags = AdvertisingDataType(rawValue: 0x01)
    /// Incomplete List of 16-bit Service or Service Class UUIDs.
    public static let incomplete16BitServiceUUIDs = AdvertisingDataType(rawValue: 0x02)
    /// Complete List of 16-bit Service or Service Class UUIDs.
    public static let complete16BitServiceUUIDs = AdvertisingDataType(rawValue: 0x03)
    /// Incomplete List of 32-bit Service or Service Class UUIDs.
    public static let incomplete32BitServiceUUIDs = AdvertisingDataType(rawValue: 0x04)
    /// Complete List of 32-bit Service or Service Class UUIDs.
    public static let complete32BitServiceUUIDs = AdvertisingDataType(rawValue: 0x05)
    /// Incomplete List of 128-bit Service or Service Class UUIDs.
    public static let incomplete128BitServiceUUIDs = AdvertisingDataType(rawValue: 0x06)
    /// Complete List of 128-bit Service or Service Class UUIDs.
    public static let complete128BitServiceUUIDs = AdvertisingDataType(rawValue: 0x07)
    /// Shortened Local Name.
    public static let shortenedLocalName = AdvertisingDataType(rawValue: 0x08)
    /// Complete Local Name.
    public static let completeLocalName = AdvertisingDataType(rawValue: 0x09)
    /// Tx Power Level.
    public static let txPowerLevel = AdvertisingDataType(rawValue: 0x0A)
    /// Class of Device.
    public static let classOfDevice = AdvertisingDataType(rawValue: 0x0D)
    /// Simple Pairing Hash C-192.
    public static let simplePairingHashC192 = AdvertisingDataType(rawValue: 0x0E)
    /// Simple Pairing Randomizer R-192.
    public static let simplePairingRandomizerR192 = AdvertisingDataType(rawValue: 0x0F)
    /// Security Manager TK Value. In BR/EDR inquiry responses, the same number is Device ID.
    public static let securityManagerTKValue = AdvertisingDataType(rawValue: 0x10)
    /// Security Manager Out of Band Flags.
    public static let securityManagerOutOfBandFlags = AdvertisingDataType(rawValue: 0x11)
    /// Peripheral Connection Interval Range.
    public static let peripheralConnectionIntervalRange = AdvertisingDataType(rawValue: 0x12)
    /// List of 16-bit Service Solicitation UUIDs.
    public static let solicited16BitServiceUUIDs = AdvertisingDataType(rawValue: 0x14)
    /// List of 128-bit Service Solicitation UUIDs.
    public static let solicited128BitServiceUUIDs = AdvertisingDataType(rawValue: 0x15)
    /// Service Data - 16-bit UUID.
    public static let serviceData16Bit = AdvertisingDataType(rawValue: 0x16)
    /// Public Target Address.
    public static let publicTargetAddress = AdvertisingDataType(rawValue: 0x17)
    /// Random Target Address.
    public static let randomTargetAddress = AdvertisingDataType(rawValue: 0x18)
    /// Appearance.
    public static let appearance = AdvertisingDataType(rawValue: 0x19)
    /// Advertising Interval.
    public static let advertisingInterval = AdvertisingDataType(rawValue: 0x1A)
    /// LE Bluetooth Device Address.
    public static let leDeviceAddress = AdvertisingDataType(rawValue: 0x1B)
    /// LE Role.
    public static let leRole = AdvertisingDataType(rawValue: 0x1C)
    /// Simple Pairing Hash C-256.
    public static let simplePairingHashC256 = AdvertisingDataType(rawValue: 0x1D)
    /// Simple Pairing Randomizer R-256.
    public static let simplePairingRandomizerR256 = AdvertisingDataType(rawValue: 0x1E)
    /// List of 32-bit Service Solicitation UUIDs.
    public static let solicited32BitServiceUUIDs = AdvertisingDataType(rawValue: 0x1F)
    /// Service Data - 32-bit UUID.
    public static let serviceData32Bit = AdvertisingDataType(rawValue: 0x20)
    /// Service Data - 128-bit UUID.
    public static let serviceData128Bit = AdvertisingDataType(rawValue: 0x21)
    /// LE Secure Connections Confirmation Value.
    public static let secureConnectionsConfirmation = AdvertisingDataType(rawValue: 0x22)
    /// LE Secure Connections Random Value.
    public static let secureConnectionsRandom = AdvertisingDataType(rawValue: 0x23)
    /// URI.
    public static let uri = AdvertisingDataType(rawValue: 0x24)
    /// Indoor Positioning.
    public static let indoorPositioning = AdvertisingDataType(rawValue: 0x25)
    /// Transport Discovery Data.
    public static let transportDiscoveryData = AdvertisingDataType(rawValue: 0x26)
    /// LE Supported Features.
    public static let leSupportedFeatures = AdvertisingDataType(rawValue: 0x27)
    /// Channel Map Update Indication.
    public static let channelMapUpdateIndication = AdvertisingDataType(rawValue: 0x28)
    /// PB-ADV (mesh provisioning).
    public static let pbADV = AdvertisingDataType(rawValue: 0x29)
    /// Mesh Message.
    public static let meshMessage = AdvertisingDataType(rawValue: 0x2A)
    /// Mesh Beacon.
    public static let meshBeacon = AdvertisingDataType(rawValue: 0x2B)
    /// BIGInfo.
    public static let bigInfo = AdvertisingDataType(rawValue: 0x2C)
    /// Broadcast_Code.
    public static let broadcastCode = AdvertisingDataType(rawValue: 0x2D)
    /// Resolvable Set Identifier.
    public static let resolvableSetIdentifier = AdvertisingDataType(rawValue: 0x2E)
    /// Advertising Interval - long.
    public static let advertisingIntervalLong = AdvertisingDataType(rawValue: 0x2F)
    /// Broadcast_Name.
    public static let broadcastName = AdvertisingDataType(rawValue: 0x30)
    /// Encrypted Advertising Data.
    public static let encryptedAdvertisingData = AdvertisingDataType(rawValue: 0x31)
    /// Periodic Advertising Response Timing Information.
    public static let periodicAdvertisingResponseTiming = AdvertisingDataType(rawValue: 0x32)
    /// Electronic Shelf Label.
    public static let electronicShelfLabel = AdvertisingDataType(rawValue: 0x34)
    /// 3D Information Data.
    public static let threeDInformationData = AdvertisingDataType(rawValue: 0x3D)
    /// Manufacturer Specific Data.
    public static let manufacturerSpecificData = AdvertisingDataType(rawValue: 0xFF)

    /// The size of each UUID in a list of offered services, in bytes, or `nil` for other types.
    @inline(__always)
    var serviceListElementSize: Int? {
        switch rawValue {
        case 0x02, 0x03: 2
        case 0x04, 0x05: 4
        case 0x06, 0x07: 16
        default: nil
        }
    }

    /// The size of each UUID in a list of this type, in bytes, or `nil` if the type is not a list of UUIDs.
    var uuidListElementSize: Int? {
        switch rawValue {
        case 0x02, 0x03, 0x14: 2
        case 0x04, 0x05, 0x1F: 4
        case 0x06, 0x07, 0x15: 16
        default: nil
        }
    }
}
