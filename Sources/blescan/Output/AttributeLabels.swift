import BLECore
import BareBLE

/// The labels before values of several attributes: handle and name, in columns.
struct AttributeLabels: Sendable {
    /// The types, as far as they are known.
    let uuids: [AttributeHandle: BluetoothUUID]
    private let texts: [AttributeHandle: String]
    /// The number of attributes.
    let count: Int

    /// Labels for values with these handles.
    ///
    /// - Parameter isAlone: Whether only one attribute was requested, which needs no label.
    init(_ attributes: [(handle: AttributeHandle, uuid: BluetoothUUID?)], isAlone: Bool) {
        count = Set(attributes.map(\.handle)).count
        // A handle may be requested twice, once by its type: the type of one reading applies to both.
        let uuids = Dictionary(
            attributes.compactMap { attribute in attribute.uuid.map { (attribute.handle, $0) } },
            uniquingKeysWith: { first, _ in first })
        self.uuids = uuids
        guard !isAlone else {
            texts = [:]
            return
        }
        let texts = attributes.map { handle, _ in
            let name = uuids[handle].map { AssignedNumbers.characteristicName($0) ?? $0.description }
            return (handle, [CharacteristicReference.handle(handle).description, name].compactMap(\.self))
        }
        let labels = texts.map { ($0, $1.joined(separator: " ")) }
        let width = labels.map(\.1.count).max() ?? 0
        self.texts = Dictionary(labels.map { ($0, $1.padded(to: width)) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns the label of a value, if it has one.
    func text(of handle: AttributeHandle) -> String? { texts[handle] }
}

extension CharacteristicReference {
    /// The handle of the value, if it is certain.
    func valueHandle(in database: GATTDatabase?) -> AttributeHandle? {
        switch self {
        case .handle(let handle): return handle
        case .characteristic(let characteristic): return characteristic.valueHandle
        case .uuid(let uuid, let service, _):
            let found = database?.characteristics(uuid, in: service) ?? []
            return found.count == 1 ? found.first?.valueHandle : nil
        }
    }
}
