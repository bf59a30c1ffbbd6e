import BLECore
import BareBLE

/// The result of `explore --flat`: a line for each attribute with everything about it, separated by tabs.
enum AttributeLines {
    static func lines(of tree: AttributeTree) -> [String] {
        tree.services.flatMap { service in
            tree.database.characteristics(of: service).flatMap { characteristic in
                let name = AssignedNumbers.characteristicName(characteristic.uuid) ?? ""
                let own = line(
                    tree, service, characteristic.valueHandle, characteristic.uuid, name,
                    characteristic.properties.names.joined(separator: ","))
                return [own]
                    + tree.database.descriptors(of: characteristic).map { descriptor in
                        let name = AssignedNumbers.descriptorName(descriptor.uuid) ?? ""
                        return line(tree, service, descriptor.handle, descriptor.uuid, name, "")
                    }
            }
        }
    }

    private static func line(
        _ tree: AttributeTree, _ service: GATTService, _ handle: AttributeHandle, _ uuid: BluetoothUUID, _ name: String,
        _ properties: String
    ) -> String {
        var value = ""
        var meaning = ""
        switch tree.values[handle] {
        case nil: break
        case .refused(let error): meaning = "! " + error.reason
        case .value(let bytes):
            value = Hex.encode(bytes)
            meaning = tree.meaning(of: bytes, at: handle, uuid)?.line ?? ""
        }
        return [
            service.uuid.description, CharacteristicReference.handle(handle).description, uuid.description, name,
            properties, value, meaning,
        ].joined(separator: "\t")
    }
}
