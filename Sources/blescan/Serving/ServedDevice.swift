import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// What `blescan serve` serves: services, and the values that it sends to subscribers.
struct ServedDevice: Sendable {
    /// Values that are sent in turn to those that subscribe to a characteristic.
    struct Plan: Sendable {
        let service: BluetoothUUID
        let characteristic: BluetoothUUID
        let values: [[UInt8]]
        let interval: Duration
    }

    var name: String
    /// The Appearance; 0 for an unknown one.
    private(set) var appearance: UInt16 = 0
    var services: [LocalService]
    var plans: [Plan] = []
    /// The characteristics whose values the device itself takes: no event reports their writes.
    private(set) var takingWrites: Set<BluetoothUUID> = []
    /// What is written to characteristics that send it, or replies to it, back.
    let echoes = ServedEchoes()

    /// A virtual device; its plans repeat.
    init(_ device: VirtualDevice) {
        name = device.name
        appearance = Self.appearance(of: device)
        services = []
        // Generic Access and Generic Attribute are there in any case.
        for service in device.services where service.uuid != 0x1800 && service.uuid != 0x1801 {
            services.append(
                LocalService(
                    service.uuid, isPrimary: service.isPrimary,
                    service.characteristics.map { Self.characteristic(of: $0, echoes) })
            )
            for characteristic in service.characteristics {
                if characteristic.takesWrites { takingWrites.insert(characteristic.uuid) }
                guard let plan = characteristic.plan, !plan.values.isEmpty else { continue }
                plans.append(
                    Plan(
                        service: service.uuid, characteristic: characteristic.uuid, values: plan.values,
                        interval: plan.interval))
            }
        }
    }

    /// Parses a declaration; see `Serve` for its lines.
    ///
    /// - Throws: `Failure`, which names the line.
    init(declaration lines: [InputLine], file: String) throws(Failure) {
        name = "BareBLE"
        services = []
        var nameLine: Int?
        for (index, line) in lines.enumerated() {
            do throws(BadValue) {
                switch line {
                case .whole(let text): try take(text, number: index + 1, nameLine: &nameLine)
                case .tooLong(let length): throw BadValue(description: "the line is too long: \(length).")
                }
            } catch {
                throw Failure(
                    message: "\(file.printable), line \(index + 1): \(error.description)",
                    hint: error.suggestion ?? "`blescan help serve` explains the lines.", status: .badData)
            }
        }
        guard !services.isEmpty else {
            throw Failure(
                message: "\(file.printable) declares no service", hint: "A line such as `service 180f` begins one.",
                status: .badData)
        }
    }

    /// - Parameter nameLine: The number of the line with the name, so far.
    private mutating func take(_ line: String, number: Int, nameLine: inout Int?) throws(BadValue) {
        let words = Self.words(of: line)
        guard let keyword = words.first else { return }
        switch keyword {
        case "name":
            guard words.count > 1 else { throw BadValue(description: "`name` takes the device's name.") }
            if let nameLine {
                throw BadValue(
                    description: "the name is in line \(nameLine) already.",
                    suggestion: "A device has one name: leave one of the two lines out.")
            }
            nameLine = number
            name = words.dropFirst().joined(separator: " ")
            guard name.utf8.count <= ServerDatabase.longestName else {
                throw BadValue(description: "a name has \(ServerDatabase.longestName) bytes at most.")
            }
        case "service":
            guard words.count == 2 else { throw BadValue(description: "`service` takes one UUID or name.") }
            let uuid = try Self.uuid(words[1], such: "180f", "battery", named: AssignedNumbers.service(named:))
            if uuid == 0x1800 || uuid == 0x1801 {
                throw BadValue(
                    description: "blescan serves \(uuid) itself.",
                    suggestion: "Set the name with `name`, and leave the service out.")
            }
            services.append(LocalService(uuid, []))
        case "characteristic":
            guard !services.isEmpty else { throw BadValue(description: "a characteristic comes after its service.") }
            services[services.count - 1].characteristics.append(try Self.characteristic(words.dropFirst()))
        default:
            throw BadValue(
                description: "'\(keyword.excerpt().printable)' is none of `name`, `service` and `characteristic`.")
        }
    }

    /// Returns the words of a line before its comment. A name may have the sign that begins one, as in `name Room #3`:
    /// there the sign is a word of its own.
    private static func words(of line: String) -> [String] {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        let words = line.split(whereSeparator: isBlank).map(String.init)
        if words.first == "name" { return Array(words.prefix { $0 != "#" }) }
        return line.prefix { $0 != "#" }.split(whereSeparator: isBlank).map(String.init)
    }

    private static func characteristic(_ words: ArraySlice<String>) throws(BadValue) -> LocalCharacteristic {
        let words = Array(words)
        guard words.count >= 2 else {
            throw BadValue(
                description: "`characteristic` takes a UUID or name, its properties, and its value after `=`.")
        }
        var properties: CharacteristicProperties = []
        var access = AttributeAccess()
        for name in words[1].split(separator: ",") {
            switch name {
            case "read": properties.insert(.read)
            case "write": properties.insert(.write)
            case "write-without-response": properties.insert(.writeWithoutResponse)
            case "notify": properties.insert(.notify)
            case "indicate": properties.insert(.indicate)
            case "encrypted": access = AttributeAccess(.encrypted)
            case "authenticated": access = AttributeAccess(.authenticated)
            default:
                throw BadValue(
                    description:
                        "'\(String(name).excerpt().printable)' is none of read, write, write-without-response, notify, "
                        + "indicate, encrypted and authenticated.")
            }
        }
        guard !properties.isEmpty else {
            throw BadValue(
                description: "the properties state how centrals use a characteristic: read, write, notify, or several.")
        }
        var value: [UInt8] = []
        if words.count > 2 {
            // With a blank after a comma the other properties are in the place of the value.
            if words[2] != "=", words.contains("=") || words[1].hasSuffix(",") || words[2].hasPrefix(",") {
                throw BadValue(description: "write the properties without blanks: read,write.")
            }
            guard words[2] == "=", let bytes = try? Hex.decode(words.dropFirst(3).joined()) else {
                throw BadValue(description: "the value is hex digits after `=`, such as `= 01 ff`.")
            }
            guard bytes.count <= ATTLimits.valueLength else {
                throw BadValue(description: "a value has \(ATTLimits.valueLength) bytes at most.")
            }
            value = bytes
        }
        let uuid = try Self.uuid(
            words[0], such: "2a19", "battery-level", named: AssignedNumbers.characteristic(named:))
        return LocalCharacteristic(uuid, properties, value: .stored(value), access: access)
    }

    private static func uuid(
        _ text: String, such short: String, _ name: String, named find: (String) -> BluetoothUUID?
    ) throws(BadValue) -> BluetoothUUID {
        guard let uuid = BluetoothUUID(written: text) ?? find(text) else {
            throw BadValue(
                description:
                    "'\(text.excerpt().printable)' is no UUID and no name: write \(short), all 32 digits, or \(name).")
        }
        return uuid
    }
}

extension ServedDevice {
    /// Returns the Appearance in the Generic Access service of a virtual device.
    private static func appearance(of virtual: VirtualDevice) -> UInt16 {
        let access = virtual.services.first { $0.uuid == 0x1800 }
        guard let value = access?.characteristics.first(where: { $0.uuid == 0x2A01 })?.value else { return 0 }
        var reader = ByteReader(value.span)
        return reader.u16() ?? 0
    }

    /// Returns the advertisement by which centrals find the device.
    ///
    /// The Appearance is left out where there is no room for it, and where less of the name would be sent.
    func advertisement(named name: String) -> Advertisement {
        let all = services.filter(\.isPrimary).map(\.uuid)
        // There is room for one UUID of 128 bits.
        let listed = all.filter { $0.short != nil } + all.filter { $0.short == nil }.prefix(1)
        let elements: [AdvertisementData.Element] = [
            .flags([.generalDiscoverable, .classicNotSupported]),
            .services(listed, isComplete: listed.count == all.count),
        ]
        let ending = AdvertisementData.Element.localName(name, mayBeShortened: true)
        let plain = AdvertisementData(elements + [ending])
        let look = AdvertisementData.Element.appearance(appearance)
        let full = AdvertisementData(elements + [look, ending])
        guard appearance != 0, let sent = Self.nameLength(in: full), sent == Self.nameLength(in: plain) else {
            return Advertisement(plain)
        }
        return Advertisement(full)
    }

    /// Returns how many bytes of the name an advertisement has; `nil` if the data do not fit.
    private static func nameLength(in data: AdvertisementData) -> Int? {
        guard let payload = try? data.payload(fitting: .legacy) else { return nil }
        let structures =
            AdvertisingData(payload.advertisingData).structures
            + AdvertisingData(payload.scanResponse).structures
        return structures.first { $0.type == .completeLocalName || $0.type == .shortenedLocalName }?.value.count
    }

    private static func characteristic(
        of virtual: VirtualCharacteristic, _ echoes: ServedEchoes
    ) -> LocalCharacteristic {
        let value: LocalValue
        if virtual.isStored {
            value = .stored(virtual.value)
        } else {
            let last = Lock(virtual.value)
            let (read, write) = (virtual.onRead, virtual.onWrite)
            value = .handled(
                read: { _ in
                    switch read {
                    case .refuse(let code)?: throw ATTRefusal(code)
                    case .compute(let body)?: return body()
                    case nil: return last.withLock(\.self)
                    }
                },
                write: { request in
                    switch write {
                    case .refuse(let code)?: throw ATTRefusal(code)
                    case .call(let body)?: if let code = body(request.value) { throw ATTRefusal(code) }
                    case .echo(let target)?:
                        // A long write may continue the value that is there (Core Vol 3 Part F, 3.4.6.1).
                        let start = last.withLock(\.self).prefix(request.offset)
                        guard start.count == request.offset else { throw ATTRefusal(.invalidOffset) }
                        let value = Array(start) + request.value
                        let parts = value.parts(upTo: request.central.maximumUpdateLength)
                        try echoes.add(value, of: request, sending: parts, from: target)
                        last.withLock { $0 = value }
                    case .reply(let target, let replies)?:
                        try echoes.add(
                            request.value, of: request, sending: replies(request.value), from: target)
                    case nil: break
                    }
                })
        }
        var access = AttributeAccess()
        if virtual.protection.isEncrypted {
            access = AttributeAccess(
                AccessRequirement(
                    virtual.protection.isAuthenticated ? .authenticated : .encrypted,
                    keySize: UInt8(clamping: virtual.protection.keySize)))
        }
        return LocalCharacteristic(
            virtual.uuid, virtual.properties, value: value, access: access,
            descriptors: virtual.descriptors.map { LocalDescriptor($0.uuid, value: .fixed($0.value)) })
    }
}

extension VirtualCharacteristic {
    /// Whether the database keeps what is written.
    fileprivate var isStored: Bool {
        switch (onRead, onWrite) {
        case (nil, nil): true
        default: false
        }
    }

    /// Whether a rule of the device alone takes what is written.
    fileprivate var takesWrites: Bool {
        switch onWrite {
        case .echo?, .reply?: false
        case .refuse?, .call?, nil: !isStored
        }
    }
}
