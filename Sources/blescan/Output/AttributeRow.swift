import BLECore
import BareBLE

/// An attribute of a peer as users see it, without its value.
struct AttributeRow: Hashable, Sendable {
    /// The place of an attribute in the hierarchy.
    enum Kind: Int, Hashable, Sendable {
        case service, include, characteristic, descriptor
    }

    /// The handle: of a characteristic, that of its value.
    let handle: AttributeHandle
    let kind: Kind
    /// The type; of an include, that of the service.
    let type: BluetoothUUID?
    /// The name; a UUID where there is none.
    let name: String
    /// The UUID; `nil` if it is the name.
    var uuid: BluetoothUUID?
    var note = ""
    var properties: CharacteristicProperties = []

    /// The number of attributes that contain it.
    var level: Int {
        switch kind {
        case .service: 0
        case .include, .characteristic: 1
        case .descriptor: 2
        }
    }

    /// Returns the attributes of these services in the order of their handles, then those of the database that belong
    /// to none, if all services are wanted.
    static func rows(of services: [GATTService], in database: GATTDatabase) -> [AttributeRow] {
        let rows = services.flatMap { self.rows(of: $0, in: database) }
        guard services.count == database.services.count else { return rows }
        return rows
            + database.descriptors.filter { database.characteristic(containing: $0.handle) == nil }
            .map { row(of: $0, .characteristic) }
    }

    /// Returns an attribute of which only the handle is known.
    static func unknown(at handle: AttributeHandle) -> AttributeRow {
        AttributeRow(
            handle: handle, kind: .characteristic, type: nil,
            name: "attribute \(CharacteristicReference.handle(handle))")
    }

    private static func rows(of service: GATTService, in database: GATTDatabase) -> [AttributeRow] {
        var rows = [
            AttributeRow(
                handle: service.handles.lowerBound, kind: .service, type: service.uuid,
                name: AssignedNumbers.label(ofService: service.uuid) ?? "Vendor service", uuid: service.uuid,
                note: service.isPrimary ? "" : "(secondary)")
        ]
        for include in service.includes {
            let range = [include.handles.lowerBound, include.handles.upperBound]
                .map { CharacteristicReference.handle($0).description }
            let target = ["includes", range.joined(separator: "-"), include.uuid?.description].compactMap(\.self)
            rows.append(
                AttributeRow(
                    handle: include.handle, kind: .include, type: include.uuid, name: target.joined(separator: " ")))
        }
        for characteristic in database.characteristics(of: service) {
            var row = row(
                characteristic.valueHandle, .characteristic, characteristic.uuid,
                AssignedNumbers.characteristicName(characteristic.uuid), "Vendor characteristic")
            row.properties = characteristic.properties
            rows.append(row)
            rows += database.descriptors(of: characteristic).map { self.row(of: $0, .descriptor) }
        }
        return rows
    }

    private static func row(of descriptor: GATTDescriptor, _ kind: Kind) -> AttributeRow {
        // The position of "Client Characteristic Configuration" is evident.
        let name = AssignedNumbers.descriptorName(descriptor.uuid)?.lowercased()
            .split(separator: " ").filter { $0 != "characteristic" }.joined(separator: " ")
        // The value of a characteristic whose declaration is not known belongs to none.
        let value = kind == .characteristic ? AssignedNumbers.characteristicName(descriptor.uuid) : nil
        return row(descriptor.handle, kind, descriptor.uuid, name ?? value, "vendor descriptor")
    }

    private static func row(
        _ handle: AttributeHandle, _ kind: Kind, _ uuid: BluetoothUUID, _ name: String?, _ substitute: String
    ) -> AttributeRow {
        // A short UUID is a name too.
        let isName = name == nil && uuid.short != nil
        return AttributeRow(
            handle: handle, kind: kind, type: uuid, name: name ?? (isName ? uuid.description : substitute),
            uuid: isName ? nil : uuid)
    }
}

extension CharacteristicProperties {
    /// The order of the properties, which is not quite that of the bits, and their letters.
    static let lettered: [(property: CharacteristicProperties, letter: String)] = [
        (.read, "R"), (.write, "W"), (.writeWithoutResponse, "w"), (.notify, "N"), (.indicate, "I"),
        (.broadcast, "B"), (.authenticatedSignedWrites, "S"), (.extendedProperties, "X"),
    ]

    /// The properties as letters, such as `RN`.
    var letters: String { present.map(\.letter).joined() }

    /// The properties as words, such as `read notify`.
    var words: String { present.flatMap(\.property.names).joined(separator: " ") }

    private var present: [(property: CharacteristicProperties, letter: String)] {
        Self.lettered.filter { contains($0.property) }
    }
}

extension AssignedNumbers {
    /// Returns the name of a service, or of the member of the Bluetooth SIG that its UUID belongs to.
    static func label(ofService uuid: BluetoothUUID) -> String? {
        // The list of assigned numbers has only the abbreviations of these two.
        switch uuid {
        case 0x1800: "Generic Access"
        case 0x1801: "Generic Attribute"
        default: serviceName(uuid) ?? memberName(uuid)
        }
    }

    /// Returns the name of the type of an attribute. The UUIDs of members name the companies of services and of their
    /// data: as those of characteristics they are used by all.
    static func label(ofAttribute uuid: BluetoothUUID) -> String? {
        characteristicName(uuid) ?? descriptorName(uuid) ?? declarationName(uuid)
    }
}
