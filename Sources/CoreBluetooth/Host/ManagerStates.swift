// What managers with restore identifiers keep from one run of the program to the next: a file for each, which one
// process holds at a time, and one manager of it. A manager that replaces another one takes over its file when that one
// ends.
//
// Duties
// - Read the state of the run before within the call that creates the manager,
//   so that it is reported before anything else.
// - Write what has changed on a queue of its own, so that neither the loop nor the program waits for the disk. The
//   state is looked at when it is written, so that a file never gets an older one after a newer one; changes that come
//   while another one is written are written together, and what the file has already is not written again.
//
// Invariants
// - Files are opened, passed on and written on the queue alone, so that no manager misses the end of the one before.
// - A file is replaced as a whole, and one that cannot be used is moved aside, as `StateFile` does.
// - Virtual time stands still while a state waits to be written.

internal import BLECore
internal import BLELinux
internal import BareBLE
internal import Logging

/// The place of the managers' states; `nil` for its directory keeps nothing.
final class ManagerStates: Sendable {
    private struct WeakKeeper { weak var keeper: AnyObject? }

    /// The number of bytes that a restore identifier may take in the name of a file: the file system permits 255 in
    /// all, with the endings of the file, its lock and its temporary file.
    private static let nameLimit = 200

    private let directory: String?
    private let loop: EventLoop
    private let logger: Logger
    private let queue = DispatchQueue(label: "CoreBluetooth.state")
    private let isOnQueue = DispatchSpecificKey<Bool>()
    /// The keepers of this process, by the names of their files and in their order. Only the queue uses it.
    private let keepers = Lock<[String: [WeakKeeper]]>([:])

    init(_ directory: String?, loop: EventLoop, logger: Logger) {
        self.directory = directory
        self.loop = loop
        self.logger = logger
        queue.setSpecific(key: isOnQueue, value: true)
    }

    /// Opens the state of a manager; `nil` if nothing can be kept, which the log states.
    ///
    /// - Returns: Where to keep the next state, and the state of the run before; `nil` if there was none.
    func open<State: Codable & Sendable & Equatable>(
        _ identifier: String, kind: String, as type: State.Type
    ) -> (keeper: ManagerStateFile<State>, former: State?)? {
        guard let directory else {
            logger.warning(
                """
                the manager "\(identifier)" is not restored: set BAREBLE_STATE, or \
                CoreBluetoothHost.Settings.stateDirectory, to a directory for its state
                """)
            return nil
        }
        let name = Self.fileName(of: identifier)
        guard name.utf8.count <= Self.nameLimit else {
            logger.error(
                """
                the manager "\(identifier)" is not restored: its restore identifier takes \(name.utf8.count) bytes in the \
                name of a file, where all but letters, digits, "-" and "." take three, and \(Self.nameLimit) are \
                possible; use a shorter one
                """)
            return nil
        }
        let open = { self.openFile(of: identifier, name, kind: kind, in: directory, as: type) }
        return DispatchQueue.getSpecific(key: isOnQueue) == true ? open() : queue.sync(execute: open)
    }

    private func openFile<State>(
        of identifier: String, _ name: String, kind: String, in directory: String, as type: State.Type
    ) -> (keeper: ManagerStateFile<State>, former: State?)? {
        let others = keepers(of: name + kind, as: type)
        if others.contains(where: \.hasFile) {
            // A program that replaces its manager creates the new one first.
            logger.notice(
                """
                another manager of this process has the restore identifier "\(identifier)", so this one is not restored, \
                and what it does is kept only from the end of the other one on
                """)
            return (keeper(nil, in: nil, name + kind, after: others), nil)
        }
        do throws(BLEError) {
            let store = StateStore(directory: directory, identifier: name)
            let file = try store.openFile(".\(kind)", longest: Self.nameLimit)
            let loaded: StateFile.Loaded<State> = try file.load(
                limit: ManagerStateFile<State>.byteLimit, what: "state of a manager", otherwise: "nothing is restored",
                isOtherVersion: { _ in false }
            ) { bytes throws(MalformedPacket) in
                guard let state = try? JSONDecoder().decode(State.self, from: Data(bytes)) else {
                    throw MalformedPacket(format: "state of a manager", offset: 0, reason: .invalidField("JSON"))
                }
                return state
            }
            if let damage = loaded.damage { logger.error("\(damage)") }
            return (keeper(loaded.value, in: file, name + kind, after: []), loaded.value)
        } catch {
            logger.error("the manager \"\(identifier)\" is not restored: \(error)")
            return nil
        }
    }

    private func keepers<State>(of file: String, as type: State.Type) -> [ManagerStateFile<State>] {
        keepers.withLock { $0[file] ?? [] }.compactMap { $0.keeper as? ManagerStateFile<State> }
    }

    private func keeper<State>(
        _ kept: State?, in opened: StateFile?, _ name: String, after others: [ManagerStateFile<State>]
    ) -> ManagerStateFile<State> {
        let keeper = ManagerStateFile(kept, in: opened, queue, loop: loop, logger: logger) { [weak self] in
            self?.keepers(of: name, as: State.self).first { $0.isWaiting }
        }
        keepers.withLock { $0[name] = (others + [keeper]).map(WeakKeeper.init) }
        return keeper
    }

    /// A name of letters, digits, `-` and `.`; anything else as `_` and the two digits of its number, so that no two
    /// identifiers have one name.
    private static func fileName(of identifier: String) -> String {
        if identifier.isEmpty { return "_" }
        var name = ""
        for byte in identifier.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D: name.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x2E where !name.isEmpty: name += "."
            default: name += (byte < 0x10 ? "_0" : "_") + String(byte, radix: 16)
            }
        }
        return name
    }
}

/// The file with the state of one manager.
final class ManagerStateFile<State: Codable & Sendable & Equatable>: Sendable {
    static var byteLimit: Int { 1 << 20 }

    private struct Pending {
        /// Returns the state to write; `nil` if there is nothing to write.
        var state: (@Sendable () -> State?)?
        /// Whether the manager restores what it had. A part of that is no state.
        var isRestoring = true
        var hasEnded = false
    }

    private struct Disk {
        /// The file; `nil` while another manager has it, and after the end.
        var file: StateFile?
        /// What it has; `nil` if that is not known.
        var kept: State?
    }

    private let queue: DispatchQueue
    private let loop: EventLoop
    private let logger: Logger
    private let pending = Lock(Pending())
    /// Only the queue uses it.
    private let disk: Lock<Disk>
    /// Returns the keeper that takes over the file at the end; `nil` if there is none.
    private let next: @Sendable () -> ManagerStateFile?

    /// Creates a keeper; without a file, it waits for the one of another keeper.
    init(
        _ kept: State?, in file: StateFile?, _ queue: DispatchQueue, loop: EventLoop, logger: Logger,
        next: @escaping @Sendable () -> ManagerStateFile?
    ) {
        disk = Lock(Disk(file: file, kept: kept))
        self.queue = queue
        self.loop = loop
        self.logger = logger
        self.next = next
    }

    /// Whether it has the file. Only the queue asks.
    var hasFile: Bool { disk.withLock { $0.file != nil } }

    /// Whether it waits for the file of another keeper. Only the queue asks.
    var isWaiting: Bool { !hasFile && !pending.withLock { $0.hasEnded } }

    /// Has changes written from now on, together with those until now.
    func begin() {
        let hasChanged = pending.withLock { pending in
            pending.isRestoring = false
            return pending.state != nil
        }
        if hasChanged { writeLater() }
    }

    /// The state has changed: it is looked at and written soon. The closure runs on another thread, and keeps nothing.
    func changed(_ state: @escaping @Sendable () -> State?) {
        let isFirst = pending.withLock { pending in
            guard !pending.hasEnded else { return false }
            defer { pending.state = state }
            return pending.state == nil && !pending.isRestoring
        }
        if isFirst { writeLater() }
    }

    /// Passes the file on soon, or else writes a last state. No later one counts.
    func end(with last: State) {
        pending.withLock { pending in
            pending.state = nil
            pending.hasEnded = true
        }
        onQueueLater { self.finish(with: last) }
    }

    private func finish(with last: State) {
        guard hasFile else { return }
        if let next = next() {
            next.takeOver(disk.withLock { $0 }, otherwise: last)
        } else {
            pending.withLock { $0.state = { last } }
            write()
        }
        disk.withLock { $0.file = nil }
    }

    /// Takes over the file of a manager that has ended, and writes what this one does,
    /// or else the last state of that one.
    private func takeOver(_ other: Disk, otherwise last: State) {
        disk.withLock { $0 = other }
        pending.withLock { pending in
            if pending.state == nil { pending.state = { last } }
        }
        write()
    }

    private func writeLater() {
        onQueueLater { self.write() }
    }

    private func onQueueLater(_ work: @escaping @Sendable () -> Void) {
        loop.hold()
        queue.async {
            work()
            self.loop.release()
        }
    }

    private func write() {
        let (file, kept) = disk.withLock { ($0.file, $0.kept) }
        // What changes meanwhile is written when the file is taken over.
        guard let file else { return }
        let pending = pending.withLock { $0.state.take() }
        guard let state = pending?(), state != kept else { return }
        guard let data = try? JSONEncoder().encode(state) else { return }
        guard data.count <= Self.byteLimit else {
            return logger.error("the state of a manager was not written: it has \(data.count) bytes")
        }
        do throws(BLEError) {
            try file.replace(with: [UInt8](data), during: "keep the state of a manager")
            disk.withLock { $0.kept = state }
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

extension CentralManagerState.Scan {
    /// Decodes a scan. One with a service that cannot be read is damaged: without it, it might be for all devices.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        services = try container.decode([String].self, forKey: .services)
        solicited = try container.decode([String].self, forKey: .solicited)
        allowsDuplicates = try container.decode(Bool.self, forKey: .allowsDuplicates)
        guard (services + solicited).allSatisfy({ BluetoothUUID($0) != nil }) else {
            throw DecodingError.dataCorruptedError(forKey: .services, in: container, debugDescription: "no UUID")
        }
    }
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
        let definition = characteristic.storedDefinition
        uuid = characteristic.uuid.uuidString
        properties = definition.properties.rawValue
        permissions = definition.permissions.rawValue
        value = definition.fixedValue
        descriptors = definition.descriptors.map { descriptor in
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
        // Until the service is published, its state is kept as it was.
        object.setFixedValue(value)
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
