import BLECore
import TestSupport

/// One attribute of a model server.
struct ModelAttribute {
    var handle: AttributeHandle
    var type: BluetoothUUID
    var value: [UInt8]
    /// The last handle of the group; for service declarations.
    var groupEnd: AttributeHandle?
}

/// The attribute table of a model server, built front to back.
struct ModelDatabase {
    private(set) var attributes: [ModelAttribute] = []
    private(set) var next: Int = 1
    private var openService: Int?

    init() {}

    /// A table that is known already, sorted by handle.
    init(attributes: [ModelAttribute]) {
        self.attributes = attributes
        next = Int(attributes.last?.handle ?? 0) + 1
    }

    /// Leaves `count` handles unused.
    mutating func skip(_ count: Int) {
        next += count
    }

    @discardableResult
    mutating func append(_ type: BluetoothUUID, _ value: [UInt8] = []) -> AttributeHandle {
        let handle = AttributeHandle(next)
        attributes.append(ModelAttribute(handle: handle, type: type, value: value))
        next += 1
        return handle
    }

    @discardableResult
    mutating func service(_ uuid: BluetoothUUID, isPrimary: Bool = true) -> AttributeHandle {
        let type: BluetoothUUID = isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration
        openService = attributes.count
        return append(type, uuid.attBytes)
    }

    /// Ends the service that was begun last, at the last attribute or at `end`.
    mutating func endService(at end: AttributeHandle? = nil) {
        guard let index = openService else { return }
        attributes[index].groupEnd = end ?? attributes.last?.handle
    }

    mutating func include(_ handles: ClosedRange<AttributeHandle>, uuid: BluetoothUUID) {
        var value = handles.lowerBound.wireBytes + handles.upperBound.wireBytes
        if uuid.short != nil { value += uuid.attBytes }
        append(.includeDeclaration, value)
    }

    /// A declaration and, `distance` handles after it, a value; returns the value's handle.
    @discardableResult
    mutating func characteristic(
        _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, value: [UInt8] = [], distance: Int = 1
    ) -> AttributeHandle {
        let handle = AttributeHandle(next + distance)
        append(.characteristicDeclaration, [properties.rawValue] + handle.wireBytes + uuid.attBytes)
        skip(distance - 1)
        return append(uuid, value)
    }

    mutating func cccd() {
        append(.clientCharacteristicConfiguration, [0, 0])
    }

    /// The last handle of the last primary service.
    var lastPrimaryEnd: AttributeHandle {
        attributes.last { $0.type == .primaryServiceDeclaration }?.groupEnd ?? 0
    }
}

func long(_ number: UInt64) -> BluetoothUUID {
    BluetoothUUID(high: 0x6E40_0000_B5A3_F393 + number << 32, low: 0xE0A9_E50E_24DC_CA9E)
}

// MARK: - The databases of the comparison table

extension ModelDatabase {
    /// GAP, GATT, heart rate, battery, device information: 38 attributes.
    static var smallSensor: ModelDatabase {
        var database = ModelDatabase()
        database.appendGenericServices()
        database.service(0x180D)
        database.characteristic(0x2A37, .notify)
        database.cccd()
        database.characteristic(0x2A38, .read)
        database.characteristic(0x2A39, .write)
        database.endService()
        database.service(0x180F)
        database.characteristic(0x2A19, [.read, .notify])
        database.cccd()
        database.endService()
        database.service(0x180A)
        for number in 0..<7 { database.characteristic(BluetoothUUID(UInt16(0x2A23 + number)), .read) }
        database.endService()
        return database
    }

    mutating func appendGenericServices() {
        service(0x1800)
        for uuid in [0x2A00, 0x2A01, 0x2A04] as [UInt16] { characteristic(BluetoothUUID(uuid), .read) }
        endService()
        service(0x1801)
        characteristic(0x2A05, .indicate)
        cccd()
        endService()
    }

    /// Three services of eight characteristics, all long; every second one with a configuration and a description.
    static func longUUIDs(withGenericServices: Bool) -> ModelDatabase {
        var database = ModelDatabase()
        if withGenericServices { database.appendGenericServices() }
        for service in 0..<3 as Range<UInt64> {
            database.service(long(0x100 * service))
            for number in 0..<8 as Range<UInt64> {
                let described = number % 2 == 0
                database.characteristic(long(0x100 * service + 1 + number), described ? .notify : .read)
                guard described else { continue }
                database.cccd()
                database.append(0x2901)
            }
            database.endService()
        }
        return database
    }

    /// Forty services of five characteristics; with long UUIDs also one configuration in each service.
    static func fortyServices(long isLong: Bool) -> ModelDatabase {
        var database = ModelDatabase()
        for service in 0..<40 as Range<UInt16> {
            database.service(isLong ? BLECoreTests.long(UInt64(service) << 8) : BluetoothUUID(0x1900 + service))
            for number in 0..<5 as Range<UInt16> {
                let notifies = isLong && number == 2
                database.characteristic(
                    isLong
                        ? BLECoreTests.long(UInt64(service) << 8 + UInt64(number) + 1)
                        : BluetoothUUID(0x2B00 + number), notifies ? .notify : .read)
                if notifies { database.cccd() }
            }
            database.endService()
        }
        return database
    }
}
