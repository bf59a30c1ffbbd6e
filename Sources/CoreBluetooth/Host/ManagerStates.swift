// What managers with restore identifiers keep from one run of the program to the next: a file for each, which one process
// holds at a time.
//
// Duties
// - Read the state of the run before within the call that creates the manager, so that it is reported before anything else.
// - Write each new state on a queue of its own, so that neither the loop nor the program waits for the disk; of several that
//   wait, the newest one.
//
// Invariants
// - A file is replaced as a whole, and one that cannot be used is moved aside, as `StateFile` does.
// - Virtual time stands still while a state waits to be written.

internal import BLECore
internal import BLELinux
internal import BareBLE
internal import Logging

/// The place of the managers' states; `nil` for its directory keeps nothing.
final class ManagerStates: Sendable {
    private let directory: String?
    private let loop: EventLoop
    private let logger: Logger
    private let queue = DispatchQueue(label: "CoreBluetooth.state")

    init(_ directory: String?, loop: EventLoop, logger: Logger) {
        self.directory = directory
        self.loop = loop
        self.logger = logger
    }

    /// Opens the state of a manager; `nil` if nothing can be kept, which the log states.
    ///
    /// - Returns: Where to keep the next state, and the state of the run before; `nil` if there was none.
    func open<State: Codable & Sendable>(
        _ identifier: String, kind: String, as type: State.Type
    ) -> (keeper: StateKeeper<State>, former: State?)? {
        guard let directory else {
            logger.warning(
                """
                the manager "\(identifier)" is not restored: set BAREBLE_STATE, or \
                CoreBluetoothHost.Settings.stateDirectory, to a directory for its state
                """)
            return nil
        }
        do throws(BLEError) {
            let store = StateStore(directory: directory, identifier: Self.fileName(of: identifier))
            let file = try store.openFile(".\(kind)")
            let loaded: StateFile.Loaded<State> = try file.load(
                limit: StateKeeper<State>.byteLimit, what: "state of a manager", otherwise: "nothing is restored",
                isOtherVersion: { _ in false }
            ) { bytes throws(MalformedPacket) in
                guard let state = try? JSONDecoder().decode(State.self, from: Data(bytes)) else {
                    throw MalformedPacket(format: "state of a manager", offset: 0, reason: .invalidField("JSON"))
                }
                return state
            }
            if let damage = loaded.damage { logger.error("\(damage)") }
            return (StateKeeper(file, queue, loop: loop, logger: logger), loaded.value)
        } catch {
            logger.error("the manager \"\(identifier)\" is not restored: \(error)")
            return nil
        }
    }

    /// A name of letters, digits, `-` and `.`; anything else as `_` and its number.
    private static func fileName(of identifier: String) -> String {
        var name = ""
        for byte in identifier.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D: name.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x2E where !name.isEmpty: name += "."
            default: name += "_" + String(byte, radix: 16)
            }
        }
        return name
    }
}

/// The file with the state of one manager.
final class StateKeeper<State: Codable & Sendable>: Sendable {
    static var byteLimit: Int { 1 << 20 }

    private let file: StateFile
    private let queue: DispatchQueue
    private let loop: EventLoop
    private let logger: Logger
    private let next = Lock<State?>(nil)

    init(_ file: StateFile, _ queue: DispatchQueue, loop: EventLoop, logger: Logger) {
        self.file = file
        self.queue = queue
        self.loop = loop
        self.logger = logger
    }

    /// Writes a state soon, instead of one that waits.
    func keep(_ state: State) {
        let isFirst = next.withLock { next in
            defer { next = state }
            return next == nil
        }
        guard isFirst else { return }
        loop.hold()
        queue.async {
            self.write()
            self.loop.release()
        }
    }

    private func write() {
        guard let state = next.withLock({ $0.take() }), let data = try? JSONEncoder().encode(state) else { return }
        guard data.count <= Self.byteLimit else {
            return logger.error("the state of a manager was not written: it has \(data.count) bytes")
        }
        do throws(BLEError) {
            try file.replace(with: [UInt8](data), during: "keep the state of a manager")
        } catch {
            logger.error("\(error)")
        }
    }
}

// MARK: - The states

/// What a central manager keeps.
struct CentralManagerState: Codable, Sendable, Equatable {
    /// A device that is connected, or is to be.
    struct Device: Codable, Equatable {
        let identifier: UUID
        let name: String?
        let reconnects: Bool
    }

    struct Scan: Codable, Equatable {
        let services: [String]
        let solicited: [String]
        let allowsDuplicates: Bool
    }

    var devices: [Device] = []
    var scan: Scan?
}

/// What a peripheral manager keeps.
struct PeripheralManagerState: Codable, Sendable, Equatable {
    struct Descriptor: Codable, Equatable {
        let uuid: String
        let text: String?
        let data: Data?
    }

    struct Characteristic: Codable, Equatable {
        let uuid: String
        let properties: UInt
        let permissions: UInt
        let value: Data?
        let descriptors: [Descriptor]
    }

    struct Service: Codable, Equatable {
        let uuid: String
        let isPrimary: Bool
        /// The indexes of services before this one.
        let includes: [Int]
        let characteristics: [Characteristic]
    }

    struct Advertisement: Codable, Equatable {
        let name: String?
        let services: [String]
    }

    var services: [Service] = []
    var advertisement: Advertisement?
}

extension PeripheralManagerState {
    /// Describes services, of which each is after those that it includes.
    init(_ objects: [CBMutableService], _ advertisement: Advertisement?) {
        self.advertisement = advertisement
        services = objects.map { service in
            Service(
                uuid: service.uuid.uuidString, isPrimary: service.isPrimary,
                includes: (service.includedServices ?? []).compactMap { one in objects.firstIndex { $0 === one } },
                characteristics: (service.characteristics ?? []).map(Characteristic.init))
        }
    }

    /// The services as objects that can be published.
    var objects: [CBMutableService] {
        var objects: [CBMutableService] = []
        for service in services {
            guard let type = BluetoothUUID(service.uuid) else { continue }
            let object = CBMutableService(type: CBUUID(type), primary: service.isPrimary)
            object.includedServices = service.includes.compactMap { objects.indices.contains($0) ? objects[$0] : nil }
            object.characteristics = service.characteristics.compactMap(\.object)
            objects.append(object)
        }
        return objects
    }
}

extension PeripheralManagerState.Advertisement {
    /// The dictionary that advertises this.
    var data: [String: Any] {
        var data: [String: Any] = [:]
        data[CBAdvertisementDataLocalNameKey] = name
        if !services.isEmpty {
            data[CBAdvertisementDataServiceUUIDsKey] = services.compactMap { BluetoothUUID($0).map(CBUUID.init) }
        }
        return data
    }
}

extension PeripheralManagerState.Characteristic {
    fileprivate init(_ characteristic: CBCharacteristic) {
        let state = characteristic.state.withLock { ($0.properties, $0.permissions, $0.value, $0.descriptors ?? []) }
        uuid = characteristic.uuid.uuidString
        properties = state.0.rawValue
        permissions = state.1.rawValue
        // Only a fixed value belongs to the definition.
        value = state.0 == .read ? state.2 : nil
        descriptors = state.3.map { descriptor in
            PeripheralManagerState.Descriptor(
                uuid: descriptor.uuid.uuidString, text: descriptor.value as? String,
                data: descriptor.value as? Data)
        }
    }

    fileprivate var object: CBMutableCharacteristic? {
        guard let type = BluetoothUUID(uuid) else { return nil }
        let object = CBMutableCharacteristic(
            type: CBUUID(type), properties: CBCharacteristicProperties(rawValue: properties), value: value,
            permissions: CBAttributePermissions(rawValue: permissions))
        if !descriptors.isEmpty {
            object.descriptors = descriptors.compactMap { descriptor in
                BluetoothUUID(descriptor.uuid).map {
                    CBMutableDescriptor(type: CBUUID($0), value: descriptor.text ?? descriptor.data)
                }
            }
        }
        return object
    }
}
