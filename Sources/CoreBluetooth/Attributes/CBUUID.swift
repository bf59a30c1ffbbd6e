// The names are those of Apple's systems.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

internal import BareBLE

/// A UUID of a service, a characteristic or a descriptor.
///
/// A UUID of the Bluetooth SIG has a short form, and both forms are equal: `CBUUID(string: "180D")` and
/// `CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")` have one hash value, one `data` and one `uuidString`.
///
/// Spec: UUID, Core Vol 3 Part B, 2.5.1.
open class CBUUID: NSObject, NSCopying, @unchecked Sendable {
    let value: BluetoothUUID

    init(_ value: BluetoothUUID) {
        self.value = value
    }

    /// Creates a UUID from 4, 8 or 36 characters: `180D`, `0000180D` or the dashed form, in either case.
    ///
    /// Any other text is an error of the program and stops it, with a message, as on Apple's systems.
    public init(string theString: String) {
        guard let value = BluetoothUUID(theString) else {
            fatalError(
                "String \(theString) does not represent a valid UUID: write 4 or 8 hexadecimal digits, "
                    + "or 32 with dashes")
        }
        self.value = value
    }

    /// Creates a UUID from 2, 4 or 16 bytes, the most significant one first.
    ///
    /// Any other number of bytes is an error of the program and stops it, with a message, as on Apple's systems.
    public init(data theData: Data) {
        var high: UInt64 = 0
        var low: UInt64 = 0
        for byte in theData {
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(byte)
        }
        switch theData.count {
        case 2, 4: value = BluetoothUUID(UInt32(truncatingIfNeeded: low))
        case 16: value = BluetoothUUID(high: high, low: low)
        default: fatalError("Data with \(theData.count) bytes does not represent a valid UUID: it has 2, 4 or 16 bytes")
        }
    }

    /// Creates a UUID from Foundation's.
    public convenience init(nsuuid theUUID: UUID) {
        self.init(string: theUUID.uuidString)
    }

    /// The bytes, the most significant one first: 2 or 4 if there is a short form, otherwise 16.
    open var data: Data {
        if let short = value.short { return Data([UInt8(short >> 8), UInt8(short & 0xFF)]) }
        if let medium = value.medium { return Data((0..<4).map { UInt8(truncatingIfNeeded: medium >> (24 - 8 * $0)) }) }
        return Data(
            [value.high, value.low].flatMap { word in
                (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
            })
    }

    /// The text in upper case: 4 or 8 digits if there is a short form, otherwise the dashed form.
    open var uuidString: String {
        guard value.medium != nil else { return value.dashed.uppercased() }
        return data.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return digits.count == 2 ? digits : "0" + digits
        }.joined()
    }

    /// Returns this object, which never changes.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Returns a Boolean value that indicates whether the other object is the same UUID, in any form.
    override open func isEqual(_ object: Any?) -> Bool { (object as? CBUUID)?.value == value }

    /// The hash value, which is the same for all forms of a UUID.
    override open var hash: Int { value.hashValue }

    /// The text of the UUID.
    override open var description: String { uuidString }
}

/// The UUID of Characteristic Extended Properties; its value is an `NSNumber`.
public let CBUUIDCharacteristicExtendedPropertiesString: String = "2900"
/// The UUID of Characteristic User Description; its value is an `NSString`.
public let CBUUIDCharacteristicUserDescriptionString: String = "2901"
/// The UUID of Client Characteristic Configuration; its value is an `NSNumber`.
public let CBUUIDClientCharacteristicConfigurationString: String = "2902"
/// The UUID of Server Characteristic Configuration; its value is an `NSNumber`.
public let CBUUIDServerCharacteristicConfigurationString: String = "2903"
/// The UUID of Characteristic Presentation Format; its value is an `NSData`.
public let CBUUIDCharacteristicFormatString: String = "2904"
/// The UUID of Characteristic Aggregate Format; its value is an `NSData`.
public let CBUUIDCharacteristicAggregateFormatString: String = "2905"
/// The UUID of Valid Range; its value is an `NSData`.
public let CBUUIDCharacteristicValidRangeString: String = "2906"
/// The UUID of Observation Schedule; its value is an `NSData`.
public let CBUUIDCharacteristicObservationScheduleString: String = "2910"
/// The UUID of the characteristic in which a peripheral publishes the PSM of an L2CAP channel.
public let CBUUIDL2CAPPSMCharacteristicString: String = "ABDD3056-28FA-441D-A470-55A75A52553A"
