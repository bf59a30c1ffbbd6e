import BLECore
import BareBLE

/// An attribute on the command line: `0x0022` is a handle, `2a19` or the long form a UUID, `battery-level` a name.
struct AttributeArgument: Hashable, Sendable {
    let text: String
    let reference: CharacteristicReference

    /// Whether it is a handle, not a type.
    var isHandle: Bool {
        if case .handle = reference { return true }
        return false
    }

    /// Parses an argument.
    ///
    /// - Throws: `NotAnAttribute`, with suggestions.
    init(argument: String) throws(NotAnAttribute) {
        text = argument
        if let digits = argument.dropped(prefix: "0x") {
            guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ $0 != 0x2B }),
                let handle = UInt16(digits, radix: 16), handle != 0
            else { throw NotAnAttribute(description: "handles go from 0x0001 to 0xffff.") }
            reference = .handle(handle)
        } else if let uuid = BluetoothUUID(written: argument) {
            if uuid.isService { throw NotAnAttribute(description: NotAnAttribute.sentence(about: uuid)) }
            reference = .uuid(uuid)
        } else if let uuid = AssignedNumbers.characteristic(named: argument) {
            reference = .uuid(uuid)
        } else {
            throw NotAnAttribute(argument)
        }
    }
}

extension AttributeArgument {
    /// A characteristic that discovery has found.
    init(_ characteristic: GATTCharacteristic) {
        text = characteristic.uuid.description
        reference = .characteristic(characteristic)
    }
}

/// What is to be read, on the command line: an attribute, or a service, which stands for its readable characteristics.
enum ReadArgument: Hashable, Sendable {
    case attribute(AttributeArgument)
    case service(BluetoothUUID)

    /// Parses an argument.
    ///
    /// - Throws: `NotAnAttribute`, with suggestions.
    init(argument: String) throws(NotAnAttribute) {
        if let service = Self.service(argument) {
            self = .service(service)
        } else {
            self = .attribute(try AttributeArgument(argument: argument))
        }
    }

    /// The argument as it was written, or the service.
    var text: String {
        switch self {
        case .attribute(let attribute): attribute.text
        case .service(let service): service.description
        }
    }

    /// Whether it is one value, and not several.
    var isAttribute: Bool {
        if case .attribute = self { return true }
        return false
    }

    /// The UUID of an attribute whose type is unknown, and which the peer may have as a service.
    var possibleService: BluetoothUUID? {
        guard case .attribute(let attribute) = self, case .uuid(let uuid, nil, nil) = attribute.reference,
            AssignedNumbers.characteristicName(uuid) == nil, AssignedNumbers.descriptorName(uuid) == nil
        else { return nil }
        return uuid
    }

    /// Returns the service that an argument names; `nil` if it can be an attribute.
    private static func service(_ argument: String) -> BluetoothUUID? {
        if let uuid = BluetoothUUID(written: argument) { return uuid.isService ? uuid : nil }
        guard AssignedNumbers.characteristic(named: argument) == nil else { return nil }
        return AssignedNumbers.service(named: argument)
    }
}

/// The defect of an argument that names no attribute, as the end of a sentence.
struct NotAnAttribute: Error, CustomStringConvertible {
    let description: String
}

extension NotAnAttribute {
    static func sentence(about service: BluetoothUUID) -> String {
        "that is the service \(service). Name one of its characteristics; `blescan explore` lists them."
    }

    init(_ text: String) {
        self.init(description: Self.sentence(about: text))
    }

    private static func sentence(about text: String) -> String {
        let names = NearNames.near(text, in: AssignedNumbers.characteristicNames)
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let handle = UInt16(text), handle > 0 {
            return "handles are hexadecimal: \(text) is \(CharacteristicReference.handle(handle))."
        } else if let service = AssignedNumbers.service(named: text) {
            return sentence(about: service)
        } else if AssignedNumbers.descriptor(named: text) != nil {
            return "that is a descriptor. Name it by its handle; `blescan explore` shows it."
        } else if names.isEmpty {
            return
                "no characteristic has such a name. `blescan explore` shows the UUIDs and handles of what a peer has."
        } else {
            return "did you mean \(NearNames.list(names))?"
        }
    }
}

extension BluetoothUUID {
    /// Parses a UUID: 128 bits also without dashes.
    init?(written text: String) {
        guard text.utf8.count == 32 else {
            self.init(text)
            return
        }
        var dashed = ""
        for (index, character) in text.enumerated() {
            if [8, 12, 16, 20].contains(index) { dashed.append("-") }
            dashed.append(character)
        }
        self.init(dashed)
    }

    /// Whether it is known as a service, of the SIG or of a vendor, and as nothing else.
    fileprivate var isService: Bool {
        AssignedNumbers.serviceName(self) != nil && AssignedNumbers.characteristicName(self) == nil
    }
}
